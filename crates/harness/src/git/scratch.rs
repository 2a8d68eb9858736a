//! karve's own index and files, in a temporary directory outside of every worktree.
//!
//! The shadow holds files of the parent as git checks them out: with the parent's attributes,
//! since the shadow has no others. It shows whether a file that differs from the stored bytes was
//! changed by the agent or by a conversion at checkout, and it carries the parent's ignore rules.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use karve_os::error::{Result, WithContext};

use super::{Oid, Repo};

/// The temporary directory of one survey.
pub(super) struct SurveyScratch {
    dir: TempDir,
    index: IndexState,
}

enum IndexState {
    Missing,
    Loaded,
}

impl SurveyScratch {
    /// A scratch directory inside a directory, or in the system's temporary directory.
    pub(super) fn new(below: Option<&Path>) -> Result<Self> {
        let mut builder = tempfile::Builder::new();
        builder.prefix("karve-git-");
        let dir = match below {
            Some(below) => fs::create_dir_all(below).and_then(|()| builder.tempdir_in(below)),
            None => builder.tempdir(),
        };
        let dir = dir.context(|| "cannot create a temporary directory".into())?;
        for name in ["shadow", "kept"] {
            let path = dir.path().join(name);
            fs::create_dir(&path).context(|| format!("cannot create {}", path.display()))?;
        }
        Ok(Self { dir, index: IndexState::Missing })
    }

    /// Where the index is, or will be.
    pub(super) fn index(&self) -> PathBuf {
        self.dir.path().join("index")
    }

    /// Where files of the parent are checked out.
    pub(super) fn shadow(&self) -> PathBuf {
        self.dir.path().join("shadow")
    }

    /// Fills the index with a tree, once.
    pub(super) fn load(&mut self, repo: &Repo, tree: &Oid) -> Result<()> {
        if matches!(self.index, IndexState::Loaded) {
            return Ok(());
        }
        let path = self.index();
        if let Some(bytes) = repo.memory.index(tree) {
            fs::write(&path, &*bytes).context(|| format!("cannot write {}", path.display()))?;
        } else {
            repo.call().index(&path)?.args(["read-tree", tree.as_str()]).effect()?;
            if let Ok(bytes) = fs::read(&path) {
                repo.memory.keep_index(tree, bytes);
            }
        }
        self.index = IndexState::Loaded;
        Ok(())
    }

    /// Checks out files of a tree into the shadow.
    pub(super) fn check_out(&mut self, repo: &Repo, tree: &Oid, paths: &[&[u8]]) -> Result<()> {
        if paths.is_empty() {
            return Ok(());
        }
        self.load(repo, tree)?;
        let mut names = paths.join(&0);
        names.push(0);
        repo.call()
            .work_tree(&self.shadow())
            .index(&self.index())?
            .args(["checkout-index", "--force", "--quiet", "-z", "--stdin"])
            .stdin(names)
            .effect()
    }

    /// Writes bytes to a file that no agent sees, and returns its name.
    pub(super) fn keep(&self, name: &str, bytes: &[u8]) -> Result<Vec<u8>> {
        let path: &Path = &self.dir.path().join("kept").join(name);
        fs::write(path, bytes).context(|| format!("cannot write {}", path.display()))?;
        Ok(path.as_os_str().as_bytes().to_vec())
    }
}
