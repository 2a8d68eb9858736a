//! A worktree with a repository of its own: what an agent may do with git, and how far back it
//! sees.
//!
//! A worktree shares the user's repository, which an agent may not write to. So it gets one that
//! lies in the worktree: it borrows the user's objects, or holds one commit without a past.

use std::fs;
use std::path::Path;

use karve_os::error::{Context, Result};

use super::call::Call;
use super::start::commit_tree;
use super::{CommitNote, Oid, Repo};

/// How far back a worktree of its own sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Past {
    /// As far as the repository does; its objects are borrowed.
    Shown,
    /// Not at all: one commit holds what lies in the worktree now.
    Sealed,
}

impl Repo {
    /// Gives a worktree of a commit a repository of its own. What is removed with the worktree is
    /// as before.
    pub fn detach_worktree(&self, tree: &Path, commit: &Oid, past: Past) -> Result<()> {
        let git = tree.join(".git");
        let cannot = || format!("cannot make {}", git.display());
        fs::remove_file(&git).context(cannot)?;
        let format = match commit.as_str().len() {
            64 => "--object-format=sha256",
            _ => "--object-format=sha1",
        };
        Call::found_from(tree)
            .args(["init", "--quiet", "--template=", format])
            .effect()?;
        let info = git.join("objects").join("info");
        let borrowed = info.join("alternates");
        let objects = format!("{}\n", self.common_dir.join("objects").display());
        fs::create_dir_all(&info)
            .and_then(|()| fs::write(&borrowed, objects))
            .context(cannot)?;
        let call = || Call::on(&git).work_tree(tree).own_index();
        call().args(["read-tree", commit.as_str()]).effect()?;
        let head = match past {
            Past::Shown => commit.clone(),
            Past::Sealed => {
                // What was put in the place of tracked files is all that is ever seen of them.
                call().args(["add", "--update"]).effect()?;
                let note = CommitNote {
                    message: "the parent\n",
                    date: 0,
                };
                let listed = call().arg("write-tree").oid()?;
                commit_tree(call(), &listed, None, &note)?
            }
        };
        call()
            .args(["update-ref", "--no-deref", "HEAD", head.as_str()])
            .effect()?;
        if past == Past::Sealed {
            call().args(["repack", "-a", "-d", "-q"]).effect()?;
            fs::remove_file(&borrowed).context(cannot)?;
        }
        call().args(["update-index", "-q", "--refresh"]).ask()?;
        Ok(())
    }
}
