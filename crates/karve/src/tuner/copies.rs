//! Incremental builds that start from the build of the default, instead of from scratch.
//!
//! A copy of the default's built tree keeps the timestamps of its files, so that a build tool like
//! `make` rebuilds only what depends on the files that a setting changes. Whether the project's
//! build is reliable enough for that is checked first: settings are built both ways, until each
//! file with knobs was changed often enough and the artifacts matched every time, and then again
//! now and then. After one mismatch no worker uses copies again. The final duel always builds from
//! scratch.

use karve_agents::builtin::write_config;
use karve_harness::commands::Harness;
use karve_harness::outcome::GateResult;
use karve_harness::worktrees::BuiltTree;
use karve_numerics::space::{Knob, KnobSetting};
use karve_os::error::{CommandError, ErrorKind, WithContext};
use std::collections::BTreeMap;
use std::fs::{File, FileTimes};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::{fs, io};

/// How often each file with knobs must have changed while builds were compared.
const CHECKS: usize = 2;
/// After this many builds one is compared again, then after twice as many, and so on.
const CHECK_AGAIN: usize = 16;
/// The largest tree to copy: directory entries, and bytes.
const ENTRIES_MAX: usize = 4_000;
const BYTES_MAX: u64 = 128 << 20;
/// The most copies at the same time.
const KEPT_MAX: usize = 8;

/// What all workers know about incremental builds.
#[derive(Clone, Debug, Default)]
pub struct IncrementalTrust(Arc<Mutex<IncrementalStats>>);

#[derive(Debug, Default)]
struct IncrementalStats {
    /// A build did not match once, or the tree cannot be copied.
    lost: bool,
    builds: usize,
    /// How often each file changed in compared builds.
    compared: BTreeMap<String, usize>,
}

impl IncrementalTrust {
    fn known(&self) -> MutexGuard<'_, IncrementalStats> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Built copies of a tree.
#[derive(Debug)]
pub struct BuildCopies {
    dir: PathBuf,
    /// The built tree that is copied, and the digest of its artifacts.
    source: Option<BuiltTree>,
    trust: IncrementalTrust,
    /// The existing copies, the latest last.
    standing: Vec<(KnobSetting, BuiltTree)>,
    made: usize,
}

impl BuildCopies {
    /// No copies yet; they will be in this directory.
    pub fn new(dir: PathBuf, trust: &IncrementalTrust) -> Self {
        Self { dir, source: None, trust: trust.clone(), standing: Vec::new(), made: 0 }
    }

    /// Sets the tree to copy. Without artifacts nothing could be compared.
    pub fn copy_from(&mut self, built: &BuiltTree) {
        self.source = built.artifacts.is_some().then(|| built.clone());
    }

    /// The existing copy for a setting.
    pub fn standing(&mut self, setting: &KnobSetting) -> Option<BuiltTree> {
        if self.trust.known().lost {
            return None;
        }
        let at = self.standing.iter().position(|(of, _)| of == setting)?;
        let found = self.standing.remove(at);
        self.standing.push(found);
        self.standing.last().map(|(_, built)| built.clone())
    }

    /// Whether a setting may be built in a copy; if so, whether to compare it.
    pub fn build_mode(&self, knobs: &[Knob], setting: &KnobSetting) -> BuildMode {
        let mut known = self.trust.known();
        if self.source.is_none() || known.lost {
            return BuildMode::FromNothing;
        }
        known.builds += 1;
        let files = files_of(knobs, setting);
        let seldom = |knob: &Knob| known.compared.get(&knob.file).is_none_or(|n| *n < CHECKS);
        let due = known.builds >= CHECK_AGAIN && known.builds.is_power_of_two();
        if knobs.iter().any(seldom) || due { BuildMode::Both(files) } else { BuildMode::Copy }
    }

    /// Records whether a build in a copy matches one from scratch; neither may exist. Returns
    /// whether it was the first mismatch.
    pub fn compare(
        &mut self,
        files: &[String],
        copy: Option<&BuiltTree>,
        built: Option<&BuiltTree>,
    ) -> bool {
        let same = copy.map(|copy| &copy.artifacts) == built.map(|built| &built.artifacts);
        let mut known = self.trust.known();
        if same {
            for file in files {
                *known.compared.entry(file.clone()).or_default() += 1;
            }
            return false;
        }
        let first = !std::mem::replace(&mut known.lost, true);
        drop(known);
        self.clear();
        first
    }

    /// Builds a setting in a copy.
    pub fn build(
        &mut self,
        harness: &Harness,
        knobs: &[Knob],
        setting: &KnobSetting,
    ) -> GateResult<BuiltTree> {
        let Some(source) = self.source.clone() else {
            return Err(CommandError::new(ErrorKind::Bug, "there is nothing to copy").into());
        };
        self.made += 1;
        let path = self.dir.join(format!("copy-{:06}", self.made));
        let copied = copy_tree(&source.path, &path);
        if copied.is_err() {
            // The tree is too large, or contains something that cannot be copied.
            self.trust.known().lost = true;
        }
        copied.context(|| format!("cannot copy {}", source.path.display()))?;
        write_config(&path, knobs, setting)?;
        if let Err(failure) = harness.build(&path) {
            let _ = fs::remove_dir_all(&path);
            return Err(failure);
        }
        let built = BuiltTree { artifacts: harness.artifacts_digest(&path)?, path };
        self.standing.push((setting.clone(), built.clone()));
        if self.standing.len() > KEPT_MAX {
            let (_, oldest) = self.standing.remove(0);
            let _ = fs::remove_dir_all(&oldest.path);
        }
        Ok(built)
    }

    /// Removes all copies.
    pub fn clear(&mut self) {
        self.standing.clear();
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// How a setting is built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BuildMode {
    /// In a separate worktree.
    FromNothing,
    /// In a copy.
    Copy,
    /// In both, to compare; with the files that the setting changes.
    Both(Vec<String>),
}

/// The files that a setting changes.
fn files_of(knobs: &[Knob], setting: &KnobSetting) -> Vec<String> {
    let changed = |knob: &&Knob| setting.get(&knob.name).is_some_and(|v| *v != knob.current);
    let mut files: Vec<String> = knobs.iter().filter(changed).map(|k| k.file.clone()).collect();
    files.sort();
    files.dedup();
    files
}

/// Copies a directory with the timestamps and permissions of its files; links stay links.
pub(crate) fn copy_tree(from: &Path, to: &Path) -> io::Result<()> {
    let mut left = (ENTRIES_MAX, BYTES_MAX);
    let copied = copy_into(from, to, &mut left);
    if copied.is_err() {
        let _ = fs::remove_dir_all(to);
    }
    copied
}

fn copy_into(from: &Path, to: &Path, left: &mut (usize, u64)) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (meta, target) = (entry.metadata()?, to.join(entry.file_name()));
        let (entries, bytes) = (left.0.checked_sub(1), left.1.checked_sub(meta.len()));
        let (Some(entries), Some(bytes)) = (entries, bytes) else {
            return Err(io::Error::other("it is too large"));
        };
        *left = (entries, bytes);
        if meta.is_dir() {
            copy_into(&entry.path(), &target, left)?;
        } else if meta.is_symlink() {
            std::os::unix::fs::symlink(fs::read_link(entry.path())?, &target)?;
        } else if meta.is_file() {
            fs::copy(entry.path(), &target)?;
            let times = FileTimes::new().set_modified(meta.modified()?);
            File::options().write(true).open(&target)?.set_times(times)?;
        } else {
            return Err(io::Error::other("it contains something that is not a file"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_copy_keeps_times_rights_and_links() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("from"), dir.path().join("to"));
        fs::create_dir_all(from.join("sub")).unwrap();
        fs::write(from.join("sub/a"), "x").unwrap();
        fs::set_permissions(from.join("sub/a"), fs::Permissions::from_mode(0o755)).unwrap();
        std::os::unix::fs::symlink("sub/a", from.join("link")).unwrap();
        let old = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000);
        let file = File::options().write(true).open(from.join("sub/a")).unwrap();
        file.set_times(FileTimes::new().set_modified(old)).unwrap();
        copy_tree(&from, &to).unwrap();
        let meta = fs::metadata(to.join("sub/a")).unwrap();
        assert_eq!(meta.modified().unwrap(), old);
        assert_eq!(meta.permissions().mode() & 0o777, 0o755);
        assert_eq!(fs::read_link(to.join("link")).unwrap(), Path::new("sub/a"));
    }

    #[test]
    fn what_is_too_much_is_not_copied_in_part() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("from"), dir.path().join("to"));
        fs::create_dir_all(&from).unwrap();
        let big = File::create(from.join("big")).unwrap();
        big.set_len(BYTES_MAX + 1).unwrap();
        assert!(copy_tree(&from, &to).is_err());
        assert!(!to.exists());
    }
}
