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
use karve_os::copy::{CopyLimit, copy_tree};
use karve_os::error::{CommandError, ErrorKind, WithContext};
use karve_os::sync::locked;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};

/// How often each file with knobs must have changed while builds were compared.
const CHECKS: usize = 2;
/// After this many builds one is compared again, then after twice as many, and so on.
const CHECK_AGAIN: usize = 16;
/// The largest tree to copy: directory entries, and bytes.
pub(crate) const COPY_LIMIT: CopyLimit = CopyLimit { entries: 4_000, bytes: 128 << 20 };
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
        locked(&self.0)
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
        let files = files_of(knobs, setting);
        if files.is_empty() {
            // The default is built already.
            return BuildMode::FromNothing;
        }
        known.builds += 1;
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
        let copied = copy_tree(&source.path, &path, COPY_LIMIT);
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
