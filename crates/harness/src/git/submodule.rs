//! Filling the submodules of a new worktree from the user's checkout, without the network.
//!
//! A submodule that is missing in the user's checkout stays empty: what works there works here.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use karve_os::error::{CommandError, Result};

use super::call::{GitCall, nul_separated, one_line, text};
use super::history::RawEntry;
use super::memory::GitCache;
use super::start::canonical;
use super::{FileMode, Oid, Repo};

/// How deep submodules may be nested.
const DEPTH_MAX: u32 = 8;

impl Repo {
    /// Fills the submodules of a worktree that has just been created at a commit.
    pub(super) fn fill_submodules(&self, worktree: &Path, oid: &Oid) -> Result<()> {
        self.fill_to_depth(worktree, oid, DEPTH_MAX)
    }

    fn fill_to_depth(&self, worktree: &Path, oid: &Oid, depth: u32) -> Result<()> {
        // Most repositories have none, which can be seen without starting git.
        if depth == 0 || !worktree.join(".gitmodules").is_file() {
            return Ok(());
        }
        let names = names_by_path(worktree)?;
        for link in self.ls_tree(oid)?.iter().filter(|entry| entry.mode == FileMode::Gitlink) {
            let path = text(&link.path);
            let name = names.iter().find(|(_, at)| *at == path).map(|(name, _)| name);
            let (Some(name), Some(source)) = (name, self.submodule(&link.path)?) else {
                continue;
            };
            self.fill_one(worktree, name, link, &source)?;
            source.fill_to_depth(&worktree.join(&path), &link.oid, depth - 1)?;
        }
        Ok(())
    }

    /// A submodule of the user's checkout; none if it is not initialized.
    pub(super) fn submodule(&self, path: &[u8]) -> Result<Option<Self>> {
        let root = self.root.join(text(path));
        if root.join(".git").symlink_metadata().is_err() {
            return Ok(None);
        }
        let root = canonical(&root)?;
        let call = GitCall::found_from(&root).args(["rev-parse", "--git-common-dir"]);
        let git_dir = canonical(&root.join(text(&one_line(call.output()?))))?;
        let file_modes = self.file_modes;
        Ok(Some(Self {
            root,
            git_dir: git_dir.clone(),
            common_dir: git_dir,
            file_modes,
            scratch: self.scratch.clone(),
            memory: GitCache::default(),
        }))
    }

    /// Checks out one submodule, cloned from the user's copy.
    fn fill_one(&self, worktree: &Path, name: &str, link: &RawEntry, source: &Repo) -> Result<()> {
        let path = text(&link.path);
        let fail = |error: CommandError| {
            error.hint(format!(
                "update it first: git -C {} submodule update --init --recursive",
                self.root.display()
            ))
        };
        let commit = format!("{}^{{commit}}", link.oid);
        let there = source.call().args(["cat-file", "-e", &commit]).ask()?;
        if there.code != 0 {
            let message = format!("the submodule {path} has no commit {}", link.oid.short());
            return Err(fail(CommandError::environment(message)));
        }
        // The settings are passed, not written: the repository's configuration stays unchanged.
        let mut url = OsString::from(format!("submodule.{name}.url="));
        url.push(&source.root);
        let answer = GitCall::found_from(worktree)
            .setting(url)
            .setting(format!("submodule.{name}.active=true"))
            .setting(format!("submodule.{name}.update=checkout"))
            .setting("protocol.file.allow=always")
            .args(["submodule", "--quiet", "update", "--init", "--no-recommend-shallow", "--"])
            .arg(&path)
            .ask()?;
        if answer.code != 0 {
            return Err(fail(answer.into_error(format!("cannot check out the submodule {path}"))));
        }
        Ok(())
    }
}

/// The names that `.gitmodules` gives to paths.
fn names_by_path(worktree: &Path) -> Result<Vec<(String, String)>> {
    let file: PathBuf = worktree.join(".gitmodules");
    if fs::read(&file).map_or(true, |bytes| bytes.is_empty()) {
        return Ok(Vec::new());
    }
    let answer = GitCall::found_from(worktree)
        .args(["config", "-z", "-f"])
        .arg(&file)
        .args(["--get-regexp", r"^submodule\..*\.path$"])
        .ask()?;
    let names = nul_separated(&answer.stdout).filter_map(|part| {
        let part = text(part);
        let (key, path) = part.split_once('\n')?;
        let name = key.strip_prefix("submodule.")?.strip_suffix(".path")?;
        Some((name.to_owned(), path.to_owned()))
    });
    Ok(names.collect())
}
