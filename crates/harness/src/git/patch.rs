//! The change between two commits as a patch, and whether a patch makes a tree.

use karve_os::error::{CommandError, Result, WithContext};
use std::fs;

use super::scratch::SurveyScratch;
use super::{Oid, Repo};

/// What a patch makes of a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PatchedTree {
    /// This tree.
    Tree(Oid),
    /// Nothing, with git's reason.
    Refused(String),
}

impl Repo {
    /// The patch that turns one commit into another, binary files included.
    pub fn patch(&self, from: &Oid, to: &Oid) -> Result<Vec<u8>> {
        Ok(self.changes_between(from, to)?.1)
    }

    /// The tree that a patch makes of a commit. Nothing is written into the repository: new objects
    /// go to a temporary directory.
    pub fn tree_with_patch(&self, commit: &Oid, patch: &[u8]) -> Result<PatchedTree> {
        if patch.is_empty() {
            return Ok(PatchedTree::Tree(self.tree_of(commit)?));
        }
        let mut scratch = SurveyScratch::new(self.scratch.as_deref())?;
        scratch.load(self, commit)?;
        let objects = scratch.shadow().join("objects");
        fs::create_dir(&objects).context(|| format!("cannot create {}", objects.display()))?;
        let own = self.common_dir.join("objects");
        let call = || -> Result<_> {
            let name = |path: &std::path::Path| {
                path.to_str().map(str::to_owned).ok_or_else(|| {
                    let message = format!("the name of {} is not UTF-8", path.display());
                    CommandError::environment(message).hint("set TMPDIR to another directory")
                })
            };
            let call = self.call().work_tree(&scratch.shadow()).index(&scratch.index())?;
            let call = call.env("GIT_OBJECT_DIRECTORY", name(&objects)?);
            Ok(call.env("GIT_ALTERNATE_OBJECT_DIRECTORIES", name(&own)?))
        };
        let args = ["apply", "--cached", "--whitespace=nowarn", "-"];
        let answer = call()?.args(args).stdin(patch).ask()?;
        if answer.code != 0 {
            return Ok(PatchedTree::Refused(answer.complaint));
        }
        Ok(PatchedTree::Tree(call()?.arg("write-tree").oid()?))
    }
}
