//! A worktree with its own repository: what an agent may do with git, and how much history it
//! sees.
//!
//! A worktree shares the user's repository, which an agent may not write to. So it gets its own
//! inside the worktree: it borrows the user's objects, or holds one commit without history.

use std::fs;
use std::path::Path;

use karve_os::error::{Result, WithContext};

use super::call::GitCall;
use super::objects::commit_tree;
use super::{CommitNote, Oid, Repo};

/// How much history a worktree with its own repository sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HistoryAccess {
    /// All of the repository's history; its objects are borrowed.
    Shown,
    /// None: one commit holds the current contents of the worktree.
    Sealed,
}

impl Repo {
    /// Gives a worktree of a commit its own repository. Removing the worktree works as before.
    pub fn detach_worktree(&self, tree: &Path, commit: &Oid, past: HistoryAccess) -> Result<()> {
        let git = tree.join(".git");
        let cannot = || format!("cannot create {}", git.display());
        fs::remove_file(&git).context(cannot)?;
        let format = match commit.as_str().len() {
            64 => "--object-format=sha256",
            _ => "--object-format=sha1",
        };
        GitCall::found_from(tree).args(["init", "--quiet", "--template=", format]).effect()?;
        let info = git.join("objects").join("info");
        let borrowed = info.join("alternates");
        let objects = format!("{}\n", self.common_dir.join("objects").display());
        fs::create_dir_all(&info).and_then(|()| fs::write(&borrowed, objects)).context(cannot)?;
        let call = || GitCall::on(&git).work_tree(tree).own_index();
        call().args(["read-tree", commit.as_str()]).effect()?;
        let head = match past {
            HistoryAccess::Shown => commit.clone(),
            HistoryAccess::Sealed => {
                // Only the replaced versions of tracked files are ever visible.
                call().args(["add", "--update"]).effect()?;
                let note = CommitNote { message: "the parent\n", date: 0 };
                let listed = call().arg("write-tree").oid()?;
                commit_tree(call(), &listed, None, &note)?
            }
        };
        call().args(["update-ref", "--no-deref", "HEAD", head.as_str()]).effect()?;
        if past == HistoryAccess::Sealed {
            call().args(["repack", "-a", "-d", "-q"]).effect()?;
            fs::remove_file(&borrowed).context(cannot)?;
        }
        call().args(["update-index", "-q", "--refresh"]).ask()?;
        Ok(())
    }
}
