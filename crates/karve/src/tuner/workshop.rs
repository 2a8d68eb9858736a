//! Makes settings of a project's knobs into built and tested trees, and reads their times.
//!
//! A setting becomes a commit: the parent's tree with other values in the granted files. So two
//! settings with the same sources are built once, and the best can meet the default in a duel of
//! revisions. Builds whose artifacts are the same are not measured twice.

use super::session::as_metric;
use crate::agents::builtin::{knobs_at, write_config};
use crate::clock;
use crate::config::{self, Loaded, Overrides};
use crate::device::{Notices, Session};
use crate::error::{CommandError, Result};
use crate::git::{CommitNote, Oid, Repo};
use crate::harness::{Call, Harness, Variant};
use crate::process::StopFlag;
use crate::project::Place;
use crate::sandbox::Sandbox;
use crate::scratch::{Kind, Scratch};
use crate::trees::{Built, Trees};
use crate::{host, ui, world};
use globset::GlobSet;
use karve_core::charter::Case;
use karve_core::measurement::{Gate, Sample};
use karve_core::space::{Config, Knob, parse_restrictions};
use karve_core::stats;
use std::collections::BTreeMap;

/// Built settings that are kept for another reading, at most.
const KEPT_MAX: usize = 8;

/// So many settings with the same artifacts say that the knobs change nothing.
const ALIKE_MIN: usize = 6;

/// What came of a try.
#[derive(Clone, Debug, PartialEq)]
pub enum Tried {
    /// The geometric mean of the metric over the cases; less is better.
    Value(f64),
    /// What was wrong, in words.
    Failed(String),
}

/// Where settings are made.
pub struct Workshop {
    repo: Repo,
    loaded: Loaded,
    base: Oid,
    knobs: Vec<Knob>,
    restrictions: Vec<String>,
    globs: GlobSet,
    cases: Vec<Case>,
    trees: Trees,
    harness: Harness,
    device: Session,
    /// What the host is, as far as readings depend on it.
    host: String,
    notices: Notices,
    stop: StopFlag,
    /// The commit of each setting, and which of them stand built, the latest last.
    commits: BTreeMap<Config, Oid>,
    standing: Vec<Oid>,
    /// What was read of settings by the digest of their artifacts.
    artifacts: BTreeMap<String, Config>,
    /// Settings whose artifacts were looked at.
    looked_at: usize,
    /// Goes with it.
    _scratch: Scratch,
}

impl Workshop {
    /// The workshop of the project one stands in, at its last commit.
    pub fn open(place: &Place, stop: &StopFlag) -> Result<Self> {
        let repo = place.repo()?;
        let loaded = place.load_in(&repo, &Overrides::default())?;
        let base = repo.head()?.oid().clone();
        let charter = &loaded.charter;
        let knobs = knobs_at(&repo, base.as_str(), &charter.granted, &charter.knobs)?;
        if knobs.is_empty() {
            return Err(CommandError::usage("the granted files declare no knobs")
                .hint("declare one before its definition, as in \"// karve: knob TILE in 8,16\"")
                .hint("commit it with \"git commit\": what is tuned is the last commit"));
        }
        let globs = config::glob_set(&charter.granted)?;
        let mut restrictions = charter.tune.restrictions.clone();
        for (_, bytes) in repo.read_matching(&base, &globs)? {
            restrictions.extend(parse_restrictions(&String::from_utf8_lossy(&bytes)));
        }
        let scratch = Scratch::new(Kind::Tune, &[&repo])?;
        // Before the sandbox, which holds on to the directory that is there.
        let trees = Trees::new(&repo, scratch.path().join("worktrees"))?;
        let sandbox = Sandbox::of(&repo, &loaded.root, scratch.path(), charter)?;
        let tmp = scratch.path().join("tmp");
        let harness = Harness::new(charter, &tmp, &scratch.tag(), stop);
        let visible = charter.visible_cases();
        let environment = host::environment(stop);
        let notices = ui::notices();
        let mut device = Session::new(charter, scratch.path(), scratch.path(), &notices)?;
        device.knows(&environment);
        Ok(Self {
            trees,
            harness: harness.in_sandbox(sandbox.as_ref()),
            cases: visible
                .iter()
                .map(|at| charter.cases[*at].clone())
                .collect(),
            repo,
            base,
            knobs,
            restrictions,
            globs,
            device,
            host: host::fingerprint(&environment),
            notices,
            stop: stop.clone(),
            commits: BTreeMap::new(),
            standing: Vec::new(),
            artifacts: BTreeMap::new(),
            looked_at: 0,
            loaded,
            _scratch: scratch,
        })
    }

    /// The project's contract.
    pub fn loaded(&self) -> &Loaded {
        &self.loaded
    }

    /// The knobs that are tuned.
    pub fn knobs(&self) -> &[Knob] {
        &self.knobs
    }

    /// What settings must satisfy.
    pub fn restrictions(&self) -> &[String] {
        &self.restrictions
    }

    /// What the host is, as far as readings depend on it.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// What is tuned: the last commit.
    pub fn base(&self) -> &Oid {
        &self.base
    }

    /// The granted files that are changed and not committed.
    pub fn uncommitted(&self) -> Result<Vec<String>> {
        let dirty = self.repo.dirty()?;
        let granted = dirty.into_iter().filter(|path| self.globs.is_match(path));
        Ok(granted.collect())
    }

    /// The default, built and tested: what cannot be tuned is said before anything else.
    pub fn prepare(&mut self) -> Result<()> {
        let harness = self.harness.clone();
        let built = self.trees.built(&self.repo, &harness, self.base.as_str())?;
        let built = built.map_err(|gate| self.unusable(&gate))?;
        let fitted = world::fit_cases(&harness, &built.path, &mut self.cases)?;
        fitted.map_err(|gate| self.unusable(&gate))?;
        self.harness = harness.beside(&built.path);
        Ok(())
    }

    fn unusable(&self, gate: &Gate) -> CommandError {
        CommandError::environment("the kernel as it stands does not pass its gate")
            .cause(gate.describe())
            .hint("mend it and commit; \"karve check\" shows the same")
    }

    /// The commit of a setting.
    pub fn commit(&mut self, setting: &Config) -> Result<Oid> {
        if let Some(oid) = self.commits.get(setting) {
            return Ok(oid.clone());
        }
        let tree = self
            .trees
            .fresh(&self.repo, "setting", self.base.as_str())?;
        let changed = write_config(&tree, &self.knobs, setting)?;
        let oid = match changed.is_empty() {
            true => self.base.clone(),
            false => {
                let message = format!("Set {}", changed.join(", "));
                let note = CommitNote {
                    message: &message,
                    date: clock::now_s(),
                };
                let (base, globs) = (&self.base, &self.globs);
                self.repo.commit_candidate(&tree, base, globs, &note)?.oid
            }
        };
        self.trees.remove(&self.repo, &tree)?;
        self.commits.insert(setting.clone(), oid.clone());
        Ok(oid)
    }

    /// Builds and tests a setting, and reads it for the first time.
    pub fn try_setting(&mut self, setting: &Config, same: Same<'_>) -> Result<Tried> {
        let oid = self.commit(setting)?;
        let built = match self.built(&oid)? {
            Ok(built) => built,
            Err(gate) => return Ok(Tried::Failed(gate.describe())),
        };
        if let Some(digest) = &built.artifacts {
            self.looked_at += 1;
            if let Some(value) = self.artifacts.get(digest).and_then(same) {
                return Ok(Tried::Value(value));
            }
            self.artifacts.insert(digest.clone(), setting.clone());
        }
        if let Err(gate) = self
            .harness
            .test(&built.path, &self.cases, Variant::Usual)?
        {
            return Ok(Tried::Failed(gate.describe()));
        }
        self.read(&built)
    }

    /// Reads a setting again.
    pub fn read_again(&mut self, setting: &Config) -> Result<Tried> {
        let oid = self.commit(setting)?;
        match self.built(&oid)? {
            Ok(built) => self.read(&built),
            Err(gate) => Ok(Tried::Failed(gate.describe())),
        }
    }

    fn built(&mut self, oid: &Oid) -> Result<crate::harness::Gated<Built>> {
        let built = self.trees.built(&self.repo, &self.harness, oid.as_str())?;
        self.standing.retain(|standing| standing != oid);
        self.standing.push(oid.clone());
        if self.standing.len() > KEPT_MAX {
            self.standing.remove(0);
            let mut kept: Vec<&str> = self.standing.iter().map(Oid::as_str).collect();
            kept.push(self.base.as_str());
            self.trees.keep_only(&self.repo, &kept)?;
        }
        Ok(built)
    }

    fn read(&mut self, built: &Built) -> Result<Tried> {
        self.device.before_block(&self.stop, &self.notices)?;
        let call = Call::fresh(Variant::Usual)?;
        let samples = match self.harness.bench(&built.path, &self.cases, call)? {
            Ok(samples) => samples,
            Err(gate) => return Ok(Tried::Failed(gate.describe())),
        };
        let better = self.loaded.charter.metric.better;
        // A rate is turned over, as it is turned back for people.
        let one = |sample: &Sample| as_metric(sample.value, better);
        let values: Vec<f64> = samples.iter().map(one).collect();
        Ok(match stats::geometric_mean(&values) {
            Some(value) => Tried::Value(value),
            None => Tried::Failed("the metric is not above 0".into()),
        })
    }

    /// Whether several settings were built, and all builds made the same.
    pub fn changes_nothing(&self) -> bool {
        self.looked_at >= ALIKE_MIN && self.artifacts.len() == 1
    }

    /// Lets go of the device and of everything that was built.
    pub fn close(&mut self) -> Result<()> {
        self.device.close(&self.notices);
        self.standing.clear();
        self.trees.clear(&self.repo)
    }

    /// Keeps the commit of the best setting from being collected.
    pub fn keep(&self, oid: &Oid) -> Result<String> {
        let name = format!("refs/karve/tune/{}", self.base.short());
        self.repo
            .update_ref(&name, oid, crate::git::Expected::Any)?;
        Ok(name)
    }
}

/// The value of a setting whose build made the same, if it is known.
pub type Same<'a> = &'a dyn Fn(&Config) -> Option<f64>;

impl Drop for Workshop {
    fn drop(&mut self) {
        // What cannot be removed now is removed by the next "git worktree prune".
        let _ = self.close();
    }
}
