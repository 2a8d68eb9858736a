//! A change that was found in a worktree, and why it may not be included in a candidate.

use super::FileMode;
use super::call::text;

/// How a path differs from the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ChangeKind {
    /// The tree has no such file.
    Added,
    /// Its contents differ, or the target of a link does.
    Modified,
    /// It is gone.
    Deleted,
    /// Only its executable bit differs.
    ModeChanged,
    /// Its kind changed, or it is behind a link now.
    TypeChanged,
}

/// A change with its path as the file system has it, and why it must not be included, if so.
#[derive(Clone, Debug)]
pub(super) struct RawChange {
    pub(super) path: Vec<u8>,
    pub(super) kind: ChangeKind,
    pub(super) mode: FileMode,
    pub(super) tracked: bool,
    pub(super) obstacle: Option<ChangeRefusal>,
}

impl RawChange {
    pub(super) fn change(&self) -> WorktreeChange {
        let Self { kind, mode, tracked, .. } = *self;
        WorktreeChange { path: text(&self.path), kind, mode, tracked }
    }
}

/// The largest file that a candidate may include: far larger than any source, and small enough to
/// read.
pub const FILE_BYTES_MAX: u64 = 64 << 20;

/// Why a change is not included in a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ChangeRefusal {
    /// Its path is not editable.
    NotEditable,
    /// It is, or was, a link, a repository, a pipe or the like.
    NotAFile,
    /// A directory above it is a link now.
    BehindLink,
    /// It is in a submodule.
    InSubmodule,
    /// It cannot be read.
    Unreadable,
    /// It is larger than [`FILE_BYTES_MAX`].
    TooLarge,
    /// There are too many new files to look at all of them.
    TooMany,
    /// Adding it would require removing a read-only file.
    InTheWay,
    /// Its name is one that git reads or protects: `.gitattributes`, `.gitmodules` and the like.
    GitsOwn,
    /// Its name is not UTF-8.
    BadName,
    /// Its name or its contents include the value of a key, which no candidate may.
    HoldsKey,
}

/// Something in a worktree that differs from the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorktreeChange {
    /// Relative to the top; a name that is not UTF-8 has replacement characters.
    pub path: String,
    /// How it differs.
    pub kind: ChangeKind,
    /// What it is in the worktree; for a deleted file, what it was.
    pub mode: FileMode,
    /// Whether the tree has it.
    pub tracked: bool,
}

impl WorktreeChange {
    /// Whether it is a symbolic link now.
    pub fn is_symlink(&self) -> bool {
        self.mode == FileMode::Symlink && self.kind != ChangeKind::Deleted
    }
}
