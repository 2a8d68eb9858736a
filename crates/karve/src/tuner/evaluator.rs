//! The evaluator: turns settings of a project's knobs into built and tested trees, and times them.
//!
//! A setting becomes a commit: the parent's tree with other values in the editable files. So two
//! settings with the same sources are built once, and the best can run a duel against the default
//! as a revision. Builds with the same artifacts are not measured twice.

use super::copies::{BuildCopies, BuildMode, IncrementalTrust};
use super::recorded::EvaluationFailure;
use super::unused_knobs::unused_knobs;
use crate::checks;
use globset::GlobSet;
use karve_agents::builtin::{knobs_at, write_config};
use karve_core::charter::Charter;
use karve_core::measurement::{Gate, Sample};
use karve_harness::commands::{BenchParams, CommandVariant, Harness};
use karve_harness::git::{CommitNote, Oid, Repo};
use karve_harness::outcome::{Failure, GateResult, split};
use karve_harness::project_file;
use karve_harness::runner::{KernelScreen, SoloKernel};
use karve_harness::worktrees::{BuiltTree, Worktrees};
use karve_numerics::case::Case;
use karve_numerics::space::{Knob, KnobSetting, parse_restrictions};
use karve_numerics::stats;
use karve_os::clock;
use karve_os::device::{DeviceSession, NoticeSink};
use karve_os::error::{CommandError, ErrorKind, Result};
use karve_os::process::StopFlag;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::thread;

/// The most built settings that are kept for another reading, and of those the ones whose processes
/// keep running, where they last.
const KEPT_MAX: usize = 8;
const RUNNING_MAX: usize = 2;

/// The result of a try.
#[derive(Clone, Debug, PartialEq)]
pub enum SettingResult {
    /// It was measured; lower is better.
    Read {
        /// The geometric mean of the metric over the cases.
        value: f64,
        /// The metric of each case.
        cases: Vec<f64>,
    },
    /// It failed.
    Failed {
        /// Why, as text.
        why: String,
        /// The kind of failure.
        failure: EvaluationFailure,
    },
}

impl From<&Gate> for SettingResult {
    fn from(gate: &Gate) -> Self {
        let failure = match gate {
            Gate::BuildFailed { .. } => EvaluationFailure::NotBuilt,
            Gate::WrongResult { .. } => EvaluationFailure::Wrong,
            Gate::TimedOut { .. } => EvaluationFailure::TimedOut,
            Gate::OutOfScope { .. } => EvaluationFailure::Forbidden,
            _ => EvaluationFailure::Crashed,
        };
        Self::Failed { why: gate.describe(), failure }
    }
}

/// What the evaluator needs.
#[derive(Debug)]
pub struct EvaluatorParts {
    /// The repository with the commits.
    pub repo: Repo,
    /// The worktrees for builds.
    pub trees: Worktrees,
    /// Builds, tests and measures settings.
    pub harness: Harness,
    /// The cases to measure.
    pub cases: Vec<Case>,
    /// The hidden cases, on which the best setting must also be correct.
    pub hidden: Vec<Case>,
    /// The directory for copies of the built default.
    pub copies: PathBuf,
    /// What is known about builds in them.
    pub trust: IncrementalTrust,
}

/// The device that settings are measured on.
#[derive(Debug)]
pub struct TuningDevice<'a> {
    /// The device.
    pub session: &'a mut DeviceSession,
    /// Where to report what karve is waiting for.
    pub notices: &'a NoticeSink,
    /// What the user asked for with Ctrl-C.
    pub stop: &'a StopFlag,
}

/// The evaluator.
#[derive(Debug)]
pub struct Evaluator {
    tools: EvaluatorParts,
    charter: Charter,
    base: Oid,
    knobs: Vec<Knob>,
    restrictions: Vec<String>,
    globs: GlobSet,
    /// The commit of each setting, and which of them are built, the latest last.
    commits: BTreeMap<KnobSetting, Oid>,
    standing: Vec<Oid>,
    /// Builds that start from the build of the default.
    copies: BuildCopies,
    /// A note about them.
    note: Option<String>,
    /// What settings are compared with, where they are only screened.
    screen: Option<KernelScreen>,
    /// Settings whose processes keep running, the latest last.
    running: Vec<(KnobSetting, SoloKernel)>,
}

impl Evaluator {
    /// The evaluator for the knobs of a commit.
    pub fn new(tools: EvaluatorParts, charter: &Charter, base: &Oid) -> Result<Self> {
        let repo = &tools.repo;
        let knobs = knobs_at(repo, base.as_str(), &charter.editable, &charter.knobs)?;
        let globs = project_file::glob_set(&charter.editable)?;
        let mut restrictions = charter.tune.restrictions.clone();
        for (_, bytes) in repo.read_matching(base, &globs)? {
            restrictions.extend(parse_restrictions(&String::from_utf8_lossy(&bytes)));
        }
        Ok(Self {
            charter: charter.clone(),
            base: base.clone(),
            knobs,
            restrictions,
            globs,
            commits: BTreeMap::new(),
            standing: Vec::new(),
            copies: BuildCopies::new(tools.copies.clone(), &tools.trust),
            note: None,
            screen: None,
            running: Vec::new(),
            tools,
        })
    }

    /// The charter of the settings.
    pub fn charter(&self) -> &Charter {
        &self.charter
    }

    /// The knobs that are tuned.
    pub fn knobs(&self) -> &[Knob] {
        &self.knobs
    }

    /// What settings must satisfy.
    pub fn restrictions(&self) -> &[String] {
        &self.restrictions
    }

    /// The commit that is tuned.
    pub fn base(&self) -> &Oid {
        &self.base
    }

    /// What all settings have in common: the tree in which each knob has its first value. It does
    /// not depend on the values of the commit that is tuned.
    pub fn common_tree(&mut self) -> Result<Oid> {
        let first = |knob: &Knob| Some((knob.name.clone(), knob.values.first()?.clone()));
        let setting = self.knobs.iter().filter_map(first).collect();
        let commit = self.commit(&setting)?;
        self.tools.repo.tree_of(&commit)
    }

    /// The editable files with uncommitted changes.
    pub fn uncommitted(&self) -> Result<Vec<String>> {
        let dirty = self.tools.repo.dirty()?;
        let editable = dirty.into_iter().filter(|path| self.globs.is_match(path));
        Ok(editable.collect())
    }

    /// Notes on unused knobs.
    pub fn unused_knobs(&self) -> Result<Vec<String>> {
        let editable = self.tools.repo.read_matching(&self.base, &self.globs)?;
        let Charter { commands, knobs, .. } = &self.charter;
        Ok(unused_knobs(commands, knobs, &editable))
    }

    /// Builds and tests the default first, so that a project that cannot be tuned fails early.
    pub fn prepare(&mut self) -> Result<()> {
        let tools = &mut self.tools;
        let harness = tools.harness.clone();
        let built =
            tools.trees.built(&tools.repo, &harness, self.base.as_str()).map_err(unusable)?;
        checks::fit_cases(&harness, &built.path, &mut tools.cases).map_err(unusable)?;
        tools.harness = harness.beside(&built.path);
        self.copies.copy_from(&built);
        Ok(())
    }

    /// Builds the default, for an evaluator beside one that is prepared.
    pub fn prepare_beside(&mut self, first: &[Case]) -> Result<()> {
        let tools = &mut self.tools;
        tools.cases = first.to_vec();
        let built = tools.trees.built(&tools.repo, &tools.harness, self.base.as_str());
        let built = built.map_err(unusable)?;
        tools.harness = tools.harness.clone().beside(&built.path);
        self.copies.copy_from(&built);
        Ok(())
    }

    /// The commit of a setting.
    pub fn commit(&mut self, setting: &KnobSetting) -> Result<Oid> {
        if let Some(oid) = self.commits.get(setting) {
            return Ok(oid.clone());
        }
        let EvaluatorParts { repo, trees, .. } = &self.tools;
        let tree = trees.fresh(repo, "setting", self.base.as_str())?;
        let changed = write_config(&tree, &self.knobs, setting)?;
        let oid = match changed.is_empty() {
            true => self.base.clone(),
            false => {
                let message = format!("Set {}", changed.join(", "));
                let note = CommitNote { message: &message, date: clock::now_s() };
                trees.reveal(repo, &tree, self.base.as_str())?;
                let made = repo.commit_candidate(&tree, &self.base, &self.globs, &note)?;
                made.oid
            }
        };
        trees.remove(repo, &tree)?;
        self.commits.insert(setting.clone(), oid.clone());
        Ok(oid)
    }

    /// Builds a setting, unless it is already built.
    pub fn build(&mut self, setting: &KnobSetting) -> GateResult<BuiltTree> {
        if let Some(built) = self.copies.standing(setting) {
            return Ok(built);
        }
        match self.copies.build_mode(&self.knobs, setting) {
            BuildMode::FromNothing => self.build_from_nothing(setting),
            BuildMode::Copy => self.copies.build(&self.tools.harness, &self.knobs, setting),
            BuildMode::Both(files) => {
                let [copy, built] = self.build_both(setting)?.map(split);
                let built = built?;
                // A copy that cannot be made says nothing about the build.
                if let Ok(copy) = copy
                    && self.copies.compare(&files, copy.as_ref().ok(), built.as_ref().ok())
                {
                    let note = "an incremental build had other artifacts than a build from \
                                scratch, so each setting is built from scratch";
                    self.note = Some(note.to_owned());
                }
                Ok(built?)
            }
        }
    }

    /// The note about the builds, once.
    pub fn note(&mut self) -> Option<String> {
        self.note.take()
    }

    /// Builds a setting in a copy and from nothing, at the same time.
    fn build_both(&mut self, setting: &KnobSetting) -> Result<[GateResult<BuiltTree>; 2]> {
        let oid = self.commit(setting)?;
        let Self { tools: EvaluatorParts { repo, trees, harness, .. }, copies, knobs, .. } = self;
        let beside = harness.clone();
        let both = thread::scope(|scope| {
            let copy = scope.spawn(|| copies.build(&beside, knobs, setting));
            let built = trees.built(repo, harness, oid.as_str());
            let died = || CommandError::new(ErrorKind::Bug, "a build's thread died").into();
            [copy.join().unwrap_or_else(|_| Err(died())), built]
        });
        self.note_standing(oid)?;
        Ok(both)
    }

    fn build_from_nothing(&mut self, setting: &KnobSetting) -> GateResult<BuiltTree> {
        let oid = self.commit(setting)?;
        let EvaluatorParts { repo, trees, harness, .. } = &mut self.tools;
        let built = split(trees.built(repo, harness, oid.as_str()))?;
        self.note_standing(oid)?;
        Ok(built?)
    }

    /// Notes that this commit was built last, and removes the builds that are too old.
    fn note_standing(&mut self, oid: Oid) -> Result<()> {
        self.standing.retain(|standing| *standing != oid);
        self.standing.push(oid);
        if self.standing.len() > KEPT_MAX {
            self.standing.remove(0);
            let mut kept: Vec<&str> = self.standing.iter().map(Oid::as_str).collect();
            kept.push(self.base.as_str());
            self.tools.trees.keep_only(&self.tools.repo, &kept)?;
        }
        Ok(())
    }

    /// How many settings can be evaluated at the same time on one device.
    pub fn at_once(&mut self) -> Result<usize> {
        let EvaluatorParts { harness, trees, repo, cases, .. } = &mut self.tools;
        let built = trees.built(repo, harness, self.base.as_str()).map_err(unusable)?;
        harness.screened_at_once(&built.path, cases)
    }

    /// What is known about incremental builds.
    pub fn trust(&self) -> &IncrementalTrust {
        &self.tools.trust
    }

    /// Tests a built setting. Where that takes long it is only screened, and its process is kept
    /// for its readings.
    pub fn test(&mut self, built: &BuiltTree, setting: &KnobSetting) -> GateResult<()> {
        let EvaluatorParts { harness, cases, .. } = &self.tools;
        if self.screen.is_none() {
            self.screen = harness.screen(&built.path, cases)?;
        }
        let Some(screen) = &mut self.screen else {
            return harness.test(&built.path, cases, CommandVariant::Usual);
        };
        let kernel = screen.admit(&built.path)?;
        self.running.retain(|(running, _)| running != setting);
        self.running.push((setting.clone(), kernel));
        let most = self.running.len().saturating_sub(RUNNING_MAX);
        self.running.drain(..most);
        Ok(())
    }

    /// Whether settings are only screened.
    pub fn screens(&self) -> bool {
        self.tools.harness.screens()
    }

    /// Whether a setting, built from scratch, is also correct on the hidden cases. Which they are
    /// and how it fails is not reported. One that was only screened is tested on all cases.
    pub fn is_right_on_hidden(&mut self, setting: &KnobSetting) -> Result<bool> {
        if self.tools.harness.screens() {
            let Ok(built) = split(self.build_from_nothing(setting))? else {
                return Ok(false);
            };
            let EvaluatorParts { harness, cases, .. } = &self.tools;
            if split(harness.test(&built.path, cases, CommandVariant::Usual))?.is_err() {
                return Ok(false);
            }
        }
        let EvaluatorParts { harness, hidden, trees, repo, .. } = &mut self.tools;
        if !harness.tests_each_case(hidden) {
            return Ok(true);
        }
        if let Ok(default) = split(trees.built(repo, harness, self.base.as_str()))?
            && split(checks::fit_cases(harness, &default.path, hidden))?.is_err()
        {
            // The default itself is wrong there, so they say nothing about a setting.
            hidden.clear();
            return Ok(true);
        }
        let Ok(built) = split(self.build_from_nothing(setting))? else {
            return Ok(false);
        };
        let EvaluatorParts { harness, hidden, .. } = &self.tools;
        Ok(split(harness.test(&built.path, hidden, CommandVariant::Usual))?.is_ok())
    }

    /// Measures a built setting, in its process if that is still running.
    pub fn read(
        &mut self,
        built: &BuiltTree,
        setting: &KnobSetting,
        device: &mut TuningDevice<'_>,
    ) -> Result<SettingResult> {
        let at = self.running.iter().position(|(running, _)| running == setting);
        let (_, mut kernel) = at.map(|at| self.running.remove(at)).unzip();
        if kernel.is_none() {
            kernel = self.solo(built)?;
        }
        let read = self.read_tree(built, kernel.as_mut(), device)?;
        if let (Some(kernel), SettingResult::Read { .. }) = (kernel, &read) {
            self.running.push((setting.clone(), kernel));
        }
        Ok(read)
    }

    /// A process for several readings of a tree, if it starts and lasts.
    pub fn solo(&self, built: &BuiltTree) -> Result<Option<SoloKernel>> {
        let EvaluatorParts { harness, cases, .. } = &self.tools;
        Ok(split(harness.solo(&built.path, cases))?.ok().flatten())
    }

    /// Measures a tree, in this process if there is one.
    pub fn read_tree(
        &self,
        built: &BuiltTree,
        running: Option<&mut SoloKernel>,
        device: &mut TuningDevice<'_>,
    ) -> Result<SettingResult> {
        device.session.before_block(device.stop, device.notices)?;
        let call = BenchParams::fresh(CommandVariant::Usual)?;
        let EvaluatorParts { harness, cases, .. } = &self.tools;
        let read = match running {
            Some(kernel) => kernel.read(harness.metric()),
            None => harness.bench(&built.path, cases, call),
        };
        device.session.after_block();
        let samples = match split(read)? {
            Ok(samples) => samples,
            Err(gate) => return Ok(SettingResult::from(&gate)),
        };
        let better = self.charter.metric.better;
        // Rates are inverted here, and inverted again for display.
        let one = |sample: &Sample| better.as_metric(sample.value);
        let cases: Vec<f64> = samples.iter().map(one).collect();
        Ok(match stats::geometric_mean(&cases) {
            Some(value) => SettingResult::Read { value, cases },
            None => SettingResult::Failed {
                why: "the metric is not above 0".into(),
                failure: EvaluationFailure::Crashed,
            },
        })
    }

    /// The cases that settings are measured on.
    pub fn cases(&self) -> &[Case] {
        &self.tools.cases
    }

    /// Removes everything that was built.
    pub fn close(&mut self) -> Result<()> {
        self.running.clear();
        self.screen = None;
        self.copies.clear();
        self.standing.clear();
        self.tools.trees.clear(&self.tools.repo)
    }

    /// Protects the commit of the best setting from garbage collection.
    pub fn keep(&self, oid: &Oid) -> Result<String> {
        let name = format!("refs/karve/tune/{}", self.base.short());
        let repo = &self.tools.repo;
        repo.update_ref(&name, oid, karve_harness::git::ExpectedRef::Any)?;
        Ok(name)
    }
}

fn unusable(failure: Failure<Gate>) -> CommandError {
    failure.into_error(|gate| {
        CommandError::environment("the unchanged kernel fails its gate")
            .cause(gate.describe())
            .hint("fix it and commit; \"karve check\" shows the same failure")
    })
}

impl Drop for Evaluator {
    fn drop(&mut self) {
        // If one cannot be removed now, the next "git worktree prune" removes it.
        let _ = self.close();
    }
}
