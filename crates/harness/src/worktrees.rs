//! Built worktrees of commits: at most the few that the current step needs.
//!
//! Both arms of a duel are in directories whose names have the same length, because the length
//! of a path alone can move a program's stack.

use crate::commands::Harness;
use crate::git::{Oid, Repo};
use crate::outcome::{GateResult, split};
use crate::project_file;
use crate::store;
use karve_os::copy::{CopyLimit, copy_tree};
use karve_os::error::{Result, WithContext};
use karve_os::files;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Where cargo builds, and where a first build is kept for the others. Only crates of a registry
/// are reused: those of a worktree are known to cargo by its path.
const CARGO_TARGET: &str = "target";
/// The directory of the first build, beside the campaigns.
pub const CARGO_SEED: &str = "cargo-seed";
/// The compiler that a build was made with, in cargo's own file.
const CARGO_COMPILER: &str = ".rustc_info.json";
/// Where a benchmark leaves its results, which no other build may find.
const CRITERION: &str = "criterion";
/// A larger build is not kept.
const SEED_LIMIT: CopyLimit = CopyLimit { entries: 20_000, bytes: 2 << 30 };

/// Characters that distinguish the worktrees of one campaign from those of another.
const PREFIX_CHARS: usize = 8;

/// A built worktree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuiltTree {
    /// Its directory.
    pub path: PathBuf,
    /// Digest of the build's output, if the charter names artifacts.
    pub artifacts: Option<String>,
}

/// Which build of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BuildVariant {
    /// The one that everything is measured on.
    Usual,
    /// A second one, for a control.
    Copy,
    /// The same code in a different layout.
    Layout(u32),
}

/// Where a first build of cargo is kept for the others.
#[derive(Clone, Debug, PartialEq, Eq)]
enum BuildSeed {
    /// With the worktrees: whatever is built first.
    Own(PathBuf),
    /// Beside the campaigns of a project, for later processes: only what is built of the unchanged
    /// project, because nothing that a candidate built may reach another one.
    Shared(PathBuf),
}

/// The worktrees of one campaign.
#[derive(Debug)]
pub struct Worktrees {
    dir: PathBuf,
    /// How the name of each worktree starts. Git gives its own entry of a worktree the same name,
    /// so that an empty entry left by a crash is known to be ours.
    prefix: String,
    built: BTreeMap<String, BuiltTree>,
    /// The trees of commits: one that was committed again is not built again.
    trees: BTreeMap<String, String>,
    /// Where a first build is kept, and by whom.
    seed: BuildSeed,
    /// The file that names hidden cases, relative to the worktree, if they must stay secret.
    secret: Option<String>,
}

impl Worktrees {
    /// The worktrees in a directory. Leftovers of an earlier process are removed first.
    pub fn new(repo: &Repo, dir: PathBuf) -> Result<Self> {
        repo.prune_under(&dir)?;
        let _ = std::fs::remove_dir_all(&dir);
        let prefix = prefix_of(&dir);
        repo.prune_half_made(&prefix)?;
        let seed = BuildSeed::Own(dir.join(CARGO_SEED));
        let (built, trees) = (BTreeMap::new(), BTreeMap::new());
        Ok(Self { dir, prefix, built, trees, seed, secret: None })
    }

    /// The same worktrees, with a first build that every process of the project shares.
    #[must_use]
    pub fn sharing_builds(mut self, campaigns: &Path) -> Self {
        self.seed = BuildSeed::Shared(campaigns.join(CARGO_SEED));
        self
    }

    /// The same worktrees, without the hidden cases of a `karve.toml`.
    #[must_use]
    pub fn keeping_secret(mut self, file: Option<String>) -> Self {
        self.secret = file;
        self
    }

    /// Removes the hidden cases from a worktree.
    fn conceal(&self, path: &Path) -> Result<()> {
        let Some(file) = &self.secret else {
            return Ok(());
        };
        let path = path.join(file);
        // A link could point anywhere, and is not a file that was read for the charter.
        let plain = fs::symlink_metadata(&path).is_ok_and(|data| data.is_file());
        let text = fs::read_to_string(&path).ok().filter(|_| plain);
        match text.and_then(|text| project_file::without_hidden(&text)) {
            Some(less) => {
                fs::write(&path, less).context(|| format!("cannot write {}", path.display()))
            }
            None => Ok(()),
        }
    }

    /// Restores them, unless the file was changed meanwhile.
    pub fn reveal(&self, repo: &Repo, path: &Path, commit: &str) -> Result<()> {
        let Some(file) = &self.secret else {
            return Ok(());
        };
        let Some(bytes) = repo.read_file(&Oid::named(commit)?, file)? else {
            return Ok(());
        };
        let path = path.join(file);
        let plain = fs::symlink_metadata(&path).is_ok_and(|data| data.is_file());
        let found = fs::read_to_string(&path).ok().filter(|_| plain);
        let less = project_file::without_hidden(&String::from_utf8_lossy(&bytes));
        if found.is_some() && found == less {
            fs::write(&path, bytes).context(|| format!("cannot write {}", path.display()))?;
        }
        Ok(())
    }

    /// The built worktree of a commit, or why it does not build.
    pub fn built(&mut self, repo: &Repo, harness: &Harness, commit: &str) -> GateResult<BuiltTree> {
        self.built_as(repo, harness, commit, BuildVariant::Usual)
    }

    /// One of the builds of a commit, or why it does not build.
    pub fn built_as(
        &mut self,
        repo: &Repo,
        harness: &Harness,
        commit: &str,
        build: BuildVariant,
    ) -> GateResult<BuiltTree> {
        let (key, layout) = match build {
            BuildVariant::Usual => (self.tree_of(repo, commit)?, 0),
            BuildVariant::Copy => (files::sha256_hex(format!("{commit} copy").as_bytes()), 0),
            BuildVariant::Layout(n) => (files::sha256_hex(format!("{commit} {n}").as_bytes()), n),
        };
        if let Some(built) = self.built.get(&key) {
            return Ok(built.clone());
        }
        let path = self.path_of(&key);
        repo.worktree_add(&path, &Oid::named(commit)?)?;
        self.conceal(&path)?;
        self.use_seed(harness, &path);
        if let Err(gate) = split(harness.build_layout(&path, layout))? {
            repo.worktree_remove(&path)?;
            return Err(gate.into());
        }
        if let BuildSeed::Own(_) = &self.seed {
            self.keep_seed(harness, &path);
        }
        let built = BuiltTree { artifacts: harness.artifacts_digest(&path)?, path };
        self.built.insert(key, built.clone());
        Ok(built)
    }

    /// Keeps what cargo built in a worktree of the unchanged project, if it has dependencies.
    pub fn keep_seed(&self, harness: &Harness, tree: &Path) {
        let Some(seed) = self.seed_for(harness, tree) else {
            return;
        };
        let built = harness.home(tree).join(CARGO_TARGET);
        if built.is_dir() && compiler_of(&seed) != compiler_of(&built) {
            // Another process may keep or use one at the same time.
            let _ = fs::remove_dir_all(&seed);
            let part = seed.with_extension(format!("part-{}", std::process::id()));
            let kept = copy_tree(&built, &part, SEED_LIMIT);
            let _ = fs::remove_dir_all(part.join(CRITERION));
            let _ = seed.parent().map(store::ignore_in_git);
            if kept.and_then(|()| fs::rename(&part, &seed)).is_err() {
                let _ = fs::remove_dir_all(&part);
            }
        }
    }

    /// Puts it into another worktree, which is then built in less time.
    pub fn use_seed(&self, harness: &Harness, tree: &Path) {
        let target = harness.home(tree).join(CARGO_TARGET);
        if let Some(seed) = self.seed_for(harness, tree)
            && seed.is_dir()
            && !target.exists()
        {
            let _ = copy_tree(&seed, &target, SEED_LIMIT);
        }
    }

    /// Where the build of a worktree is kept, if it uses crates of a registry.
    fn seed_for(&self, harness: &Harness, tree: &Path) -> Option<PathBuf> {
        let lock = fs::read_to_string(harness.home(tree).join("Cargo.lock")).ok()?;
        if !lock.contains("\nsource = ") {
            return None;
        }
        let (BuildSeed::Own(dir) | BuildSeed::Shared(dir)) = &self.seed;
        Some(dir.join(CARGO_TARGET))
    }

    /// A fresh worktree that is not built, for an agent or a planted bug.
    pub fn fresh(&self, repo: &Repo, name: &str, commit: &str) -> Result<PathBuf> {
        let path = self.dir.join(format!("{}-{name}", self.prefix));
        repo.worktree_add(&path, &Oid::named(commit)?)?;
        self.conceal(&path)?;
        Ok(path)
    }

    /// Removes a worktree that `fresh` created.
    pub fn remove(&self, repo: &Repo, path: &Path) -> Result<()> {
        repo.worktree_remove(path)
    }

    /// Removes every built worktree except those of some commits.
    pub fn keep_only(&mut self, repo: &Repo, commits: &[&str]) -> Result<()> {
        let kept = commits.iter().filter(|commit| !commit.is_empty());
        let kept = kept.map(|commit| self.tree_of(repo, commit)).collect::<Result<Vec<_>>>()?;
        self.trees.retain(|_, tree| kept.contains(tree));
        let gone: Vec<String> =
            self.built.keys().filter(|of| !kept.contains(of)).cloned().collect();
        for tree in gone {
            if let Some(built) = self.built.remove(&tree) {
                repo.worktree_remove(&built.path)?;
            }
        }
        Ok(())
    }

    fn tree_of(&mut self, repo: &Repo, commit: &str) -> Result<String> {
        if let Some(tree) = self.trees.get(commit) {
            return Ok(tree.clone());
        }
        let tree = repo.tree_of(&Oid::named(commit)?)?.to_string();
        self.trees.insert(commit.to_owned(), tree.clone());
        Ok(tree)
    }

    /// Removes everything.
    pub fn clear(&mut self, repo: &Repo) -> Result<()> {
        self.keep_only(repo, &[])?;
        repo.prune_under(&self.dir)?;
        let _ = std::fs::remove_dir_all(&self.dir);
        Ok(())
    }

    fn path_of(&self, key: &str) -> PathBuf {
        let short = key.get(..12).unwrap_or(key);
        self.dir.join(format!("{}-{short}", self.prefix))
    }
}

/// What cargo knows about the compiler of a build.
fn compiler_of(target: &Path) -> Option<String> {
    let known = fs::read_to_string(target.join(CARGO_COMPILER)).ok()?;
    known.split(',').next().map(str::to_owned)
}

/// How the name of each worktree in a directory starts.
fn prefix_of(dir: &Path) -> String {
    let mut prefix = files::sha256_hex(dir.to_string_lossy().as_bytes());
    prefix.truncate(PREFIX_CHARS);
    prefix
}

/// Whether the path of a worktree is one that only karve creates.
pub fn is_named_by_us(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let dir = path.parent().unwrap_or(path);
    name.starts_with(&format!("{}-", prefix_of(dir)))
}
