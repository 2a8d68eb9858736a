//! Everything karve asks of git: worktrees, candidate commits, refs, history; nothing else in karve
//! starts git.
//!
//! Two trust levels meet here. The *repository* is the user's: each call names its common
//! directory explicitly; its checkout, index and branches are read and never written. A *worktree*
//! is where an agent worked, and nothing in it is trusted: not its `.git` file, `HEAD`, index,
//! attributes or ignore rules. Its contents are found by looking at its files, and compared with
//! the parent's tree as karve itself would check it out.
//!
//! ```text
//! call.rs       one launcher: the environment, the options, the errors
//! start.rs      finding the repository, its state, making a new one
//! history.rs    trees, files, differences, logs
//! memory.rs     cached facts about objects, so that git need not be called again
//! patch.rs      the change between two commits, and the tree that it makes
//! refs.rs       refs with an expected old value
//! worktree.rs   making and removing worktrees, whatever a crash left behind
//! submodule.rs  filling the submodules of a worktree from the user's checkout
//! survey.rs     what in a worktree differs from a tree, combined from
//! compare.rs      the files that are in the tree, and
//! walk.rs         the files that are not
//! transfer.rs   commits that travel to a copy on another machine
//! scratch.rs    karve's own index and files, outside of every worktree
//! candidate.rs  the parent's tree plus the changes to editable files, as a commit
//! ```

mod call;
mod candidate;
mod change;
mod compare;
mod detached;
mod history;
mod memory;
mod objects;
mod patch;
mod refs;
mod scratch;
mod start;
mod submodule;
mod survey;
mod transfer;
mod walk;
mod worktree;

use karve_os::error::{CommandError, Result};
use karve_os::sandbox::Checkout;
use std::fmt;
use std::path::{Path, PathBuf};

pub use candidate::{CandidateCommit, CandidateFilter, RefusedChange};
pub use change::{ChangeKind, ChangeRefusal, FILE_BYTES_MAX, WorktreeChange};
pub use detached::HistoryAccess;
pub use history::{FileStat, PatchResult, TreeEntry, reads_answer};
pub use patch::PatchedTree;
pub use refs::ExpectedRef;
pub use start::{CheckoutHead, GitVersion, NewFile, init_with, version};
pub use transfer::mirror;

/// The full name of a git object, in lower-case hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Oid(String);

impl Oid {
    /// Parses a full object name of 40 (SHA-1) or 64 (SHA-256) digits; `None` for anything else.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        (digits && matches!(text.len(), 40 | 64)).then(|| Self(text.to_owned()))
    }

    /// The digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Parses an object name from the log.
    pub fn named(text: &str) -> Result<Self> {
        Self::parse(text).ok_or_else(|| {
            CommandError::environment(format!("{text:?} is not an object name"))
                .hint("the log is damaged; \"karve verify\" says where")
        })
    }

    /// The first ten digits, for people.
    pub fn short(&self) -> &str {
        &self.0[..10]
    }

    /// The name that git uses for "no object", in the hash of this object.
    fn zero(&self) -> String {
        "0".repeat(self.0.len())
    }
}

impl fmt::Display for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What kind of thing a path is, as git stores it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FileMode {
    /// A plain file.
    File,
    /// A file with the executable bit.
    Executable,
    /// A symbolic link.
    Symlink,
    /// A submodule, or a repository inside the worktree.
    Gitlink,
    /// Not storable in git: a pipe, a socket, a device, or an unreadable entry.
    Other,
}

impl FileMode {
    /// The mode as git writes it in a tree; zero if git cannot store it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::File => "100644",
            Self::Executable => "100755",
            Self::Symlink => "120000",
            Self::Gitlink => "160000",
            Self::Other => "000000",
        }
    }

    /// Parses a mode from a tree; old trees have a few more modes, which mean a plain file.
    fn parse(text: &str) -> Self {
        match text {
            "100755" => Self::Executable,
            "120000" => Self::Symlink,
            "160000" => Self::Gitlink,
            _ => Self::File,
        }
    }

    /// Whether it is a file with contents.
    pub fn is_file(self) -> bool {
        matches!(self, Self::File | Self::Executable)
    }
}

/// The metadata of a commit; the date comes from the caller, so that the same contents with the
/// same note give the same commit.
#[derive(Clone, Copy, Debug)]
pub struct CommitNote<'a> {
    /// The whole message.
    pub message: &'a str,
    /// Seconds since 1970, in UTC; negative values count as zero, since git has none.
    pub date: i64,
}

/// A repository with a checkout and at least one commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repo {
    root: PathBuf,
    git_dir: PathBuf,
    common_dir: PathBuf,
    file_modes: ExecutableBit,
    scratch: Option<PathBuf>,
    memory: memory::GitCache,
}

/// Whether the executable bit of a file means anything in this repository (`core.fileMode`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ExecutableBit {
    Kept,
    Ignored,
}

impl Repo {
    /// Where it is, for a sandbox.
    pub fn checkout(&self) -> Checkout<'_> {
        Checkout { root: self.root(), history: self.common_dir() }
    }

    /// The top of the user's checkout.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Whether a commit exists here; false if git cannot be asked.
    pub fn has_commit(&self, oid: &str) -> bool {
        let Ok(oid) = Oid::named(oid) else {
            return false;
        };
        let commit = format!("{oid}^{{commit}}");
        let asked = self.call().args(["cat-file", "-e", &commit]).ask();
        asked.is_ok_and(|answer| answer.code == 0)
    }

    /// The same repository, with temporary files in a directory that the caller cleans up: a
    /// killed process does not.
    #[must_use]
    pub fn with_scratch(mut self, dir: PathBuf) -> Self {
        self.scratch = Some(dir);
        self
    }

    /// The directory that all worktrees of the repository share.
    pub fn common_dir(&self) -> &Path {
        &self.common_dir
    }
}
