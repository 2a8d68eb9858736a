//! Makes settings of a project's knobs into built and tested trees, and reads their times.
//!
//! A setting becomes a commit: the parent's tree with other values in the granted files. So two
//! settings with the same sources are built once, and the best can meet the default in a duel of
//! revisions. Builds whose artifacts are the same are not measured twice.

use super::copies::{Copies, Trust, Wanted};
use super::recorded::Failure;
use super::session::as_metric;
use super::unheard::unheard;
use crate::world;
use globset::GlobSet;
use karve_agents::builtin::{knobs_at, write_config};
use karve_core::charter::Charter;
use karve_core::measurement::{Gate, Sample};
use karve_harness::commands::{Call, Harness, Variant};
use karve_harness::git::{CommitNote, Oid, Repo};
use karve_harness::outcome::Gated;
use karve_harness::project_file;
use karve_harness::trees::{Built, Trees};
use karve_numerics::case::Case;
use karve_numerics::space::{Config, Knob, parse_restrictions};
use karve_numerics::stats;
use karve_os::clock;
use karve_os::device::{Notices, Session};
use karve_os::error::{CommandError, Result};
use karve_os::process::StopFlag;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Built settings that are kept for another reading, at most.
const KEPT_MAX: usize = 8;

/// What came of a try.
#[derive(Clone, Debug, PartialEq)]
pub enum Tried {
    /// It was read; less is better.
    Read {
        /// The geometric mean of the metric over the cases.
        value: f64,
        /// The metric of each case.
        cases: Vec<f64>,
    },
    /// It cannot be used.
    Failed {
        /// Why, in words.
        why: String,
        /// Of what kind that is.
        failure: Failure,
    },
}

impl From<&Gate> for Tried {
    fn from(gate: &Gate) -> Self {
        let failure = match gate {
            Gate::BuildFailed { .. } => Failure::NotBuilt,
            Gate::WrongResult { .. } => Failure::Wrong,
            Gate::TimedOut { .. } => Failure::TimedOut,
            Gate::OutOfScope { .. } => Failure::Forbidden,
            _ => Failure::Crashed,
        };
        Self::Failed {
            why: gate.describe(),
            failure,
        }
    }
}

/// What settings are made with.
#[derive(Debug)]
pub struct Tools {
    /// Where their commits lie.
    pub repo: Repo,
    /// What they are built in.
    pub trees: Trees,
    /// What builds, tests and reads them.
    pub harness: Harness,
    /// What they are read on.
    pub cases: Vec<Case>,
    /// What the best of them must be right on as well.
    pub hidden: Vec<Case>,
    /// Where copies of the built default may lie.
    pub copies: PathBuf,
    /// What is known of builds in them.
    pub trust: Trust,
}

/// The device that settings are read on.
#[derive(Debug)]
pub struct Device<'a> {
    /// The device.
    pub session: &'a mut Session,
    /// Where it is said why nothing seems to happen.
    pub notices: &'a Notices,
    /// What the user asked for with Ctrl-C.
    pub stop: &'a StopFlag,
}

/// Where settings are made.
#[derive(Debug)]
pub struct Workshop {
    tools: Tools,
    charter: Charter,
    base: Oid,
    knobs: Vec<Knob>,
    restrictions: Vec<String>,
    globs: GlobSet,
    /// The commit of each setting, and which of them stand built, the latest last.
    commits: BTreeMap<Config, Oid>,
    standing: Vec<Oid>,
    /// Builds that go on from that of the default.
    copies: Copies,
    /// What is to be said of them.
    note: Option<String>,
}

impl Workshop {
    /// The workshop for the knobs of a commit.
    pub fn new(tools: Tools, charter: &Charter, base: &Oid) -> Result<Self> {
        let repo = &tools.repo;
        let knobs = knobs_at(repo, base.as_str(), &charter.granted, &charter.knobs)?;
        let globs = project_file::glob_set(&charter.granted)?;
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
            copies: Copies::new(tools.copies.clone(), &tools.trust),
            note: None,
            tools,
        })
    }

    /// What the settings are judged by.
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

    /// The granted files that are changed and not committed.
    pub fn uncommitted(&self) -> Result<Vec<String>> {
        let dirty = self.tools.repo.dirty()?;
        let granted = dirty.into_iter().filter(|path| self.globs.is_match(path));
        Ok(granted.collect())
    }

    /// What is to be said of knobs that nothing names.
    pub fn unheard(&self) -> Result<Vec<String>> {
        let granted = self.tools.repo.read_matching(&self.base, &self.globs)?;
        let Charter {
            commands, knobs, ..
        } = &self.charter;
        Ok(unheard(commands, knobs, &granted))
    }

    /// The default, built and tested: what cannot be tuned is said before anything else.
    pub fn prepare(&mut self) -> Result<()> {
        let tools = &mut self.tools;
        let harness = tools.harness.clone();
        let built = tools
            .trees
            .built(&tools.repo, &harness, self.base.as_str())?;
        let built = built.map_err(|gate| unusable(&gate))?;
        let fitted = world::fit_cases(&harness, &built.path, &mut tools.cases)?;
        fitted.map_err(|gate| unusable(&gate))?;
        tools.harness = harness.beside(&built.path);
        self.copies.copy_from(&built);
        Ok(())
    }

    /// The commit of a setting.
    pub fn commit(&mut self, setting: &Config) -> Result<Oid> {
        if let Some(oid) = self.commits.get(setting) {
            return Ok(oid.clone());
        }
        let Tools { repo, trees, .. } = &self.tools;
        let tree = trees.fresh(repo, "setting", self.base.as_str())?;
        let changed = write_config(&tree, &self.knobs, setting)?;
        let oid = match changed.is_empty() {
            true => self.base.clone(),
            false => {
                let message = format!("Set {}", changed.join(", "));
                let note = CommitNote {
                    message: &message,
                    date: clock::now_s(),
                };
                trees.reveal(repo, &tree, self.base.as_str())?;
                let made = repo.commit_candidate(&tree, &self.base, &self.globs, &note)?;
                made.oid
            }
        };
        trees.remove(repo, &tree)?;
        self.commits.insert(setting.clone(), oid.clone());
        Ok(oid)
    }

    /// Builds a setting, unless it stands built.
    pub fn build(&mut self, setting: &Config) -> Result<Gated<Built>> {
        if let Some(built) = self.copies.standing(setting) {
            return Ok(Ok(built));
        }
        let of = (self.knobs.as_slice(), setting);
        match self.copies.wanted(&self.knobs, setting) {
            Wanted::FromNothing => self.build_from_nothing(setting),
            Wanted::Copy => self.copies.build(&self.tools.harness, of),
            Wanted::Both(files) => {
                let copy = self.copies.build(&self.tools.harness, of);
                let built = self.build_from_nothing(setting)?;
                if copy.is_ok_and(|copy| self.copies.compare(&files, (&copy, &built))) {
                    let note = "the build made something else where it went on from an earlier \
                                one, so each setting is built from nothing";
                    self.note = Some(note.to_owned());
                }
                Ok(built)
            }
        }
    }

    /// What is to be said of the builds, once.
    pub fn note(&mut self) -> Option<String> {
        self.note.take()
    }

    fn build_from_nothing(&mut self, setting: &Config) -> Result<Gated<Built>> {
        let oid = self.commit(setting)?;
        let Tools {
            repo,
            trees,
            harness,
            ..
        } = &mut self.tools;
        let built = trees.built(repo, harness, oid.as_str())?;
        self.standing.retain(|standing| *standing != oid);
        self.standing.push(oid);
        if self.standing.len() > KEPT_MAX {
            self.standing.remove(0);
            let mut kept: Vec<&str> = self.standing.iter().map(Oid::as_str).collect();
            kept.push(self.base.as_str());
            trees.keep_only(repo, &kept)?;
        }
        Ok(built)
    }

    /// Tests a built setting.
    pub fn test(&self, built: &Built) -> Result<Gated<()>> {
        let Tools { harness, cases, .. } = &self.tools;
        harness.test(&built.path, cases, Variant::Usual)
    }

    /// Whether a setting, built from nothing, is right on the hidden cases too. Which they are and
    /// how it fails is not told.
    pub fn is_right_on_hidden(&mut self, setting: &Config) -> Result<bool> {
        let Tools {
            harness,
            hidden,
            trees,
            repo,
            ..
        } = &mut self.tools;
        if !harness.tests_each_case(hidden) {
            return Ok(true);
        }
        if let Ok(default) = trees.built(repo, harness, self.base.as_str())?
            && world::fit_cases(harness, &default.path, hidden)?.is_err()
        {
            // The default is wrong there itself, so they tell nothing of a setting.
            hidden.clear();
            return Ok(true);
        }
        let Ok(built) = self.build_from_nothing(setting)? else {
            return Ok(false);
        };
        let Tools {
            harness, hidden, ..
        } = &self.tools;
        let tested = harness.test(&built.path, hidden, Variant::Usual)?;
        Ok(tested.is_ok())
    }

    /// Reads a built setting.
    pub fn read(&self, built: &Built, device: &mut Device<'_>) -> Result<Tried> {
        device.session.before_block(device.stop, device.notices)?;
        let call = Call::fresh(Variant::Usual)?;
        let Tools { harness, cases, .. } = &self.tools;
        let read = harness.bench(&built.path, cases, call);
        device.session.after_block();
        let samples = match read? {
            Ok(samples) => samples,
            Err(gate) => return Ok(Tried::from(&gate)),
        };
        let better = self.charter.metric.better;
        // A rate is turned over, as it is turned back for people.
        let one = |sample: &Sample| as_metric(sample.value, better);
        let cases: Vec<f64> = samples.iter().map(one).collect();
        Ok(match stats::geometric_mean(&cases) {
            Some(value) => Tried::Read { value, cases },
            None => Tried::Failed {
                why: "the metric is not above 0".into(),
                failure: Failure::Crashed,
            },
        })
    }

    /// The cases that settings are read on.
    pub fn cases(&self) -> &[Case] {
        &self.tools.cases
    }

    /// Lets go of everything that was built.
    pub fn close(&mut self) -> Result<()> {
        self.copies.clear();
        self.standing.clear();
        self.tools.trees.clear(&self.tools.repo)
    }

    /// Keeps the commit of the best setting from being collected.
    pub fn keep(&self, oid: &Oid) -> Result<String> {
        let name = format!("refs/karve/tune/{}", self.base.short());
        let repo = &self.tools.repo;
        repo.update_ref(&name, oid, karve_harness::git::Expected::Any)?;
        Ok(name)
    }
}

fn unusable(gate: &Gate) -> CommandError {
    CommandError::environment("the kernel as it stands does not pass its gate")
        .cause(gate.describe())
        .hint("mend it and commit; \"karve check\" shows the same")
}

impl Drop for Workshop {
    fn drop(&mut self) {
        // What cannot be removed now is removed by the next "git worktree prune".
        let _ = self.close();
    }
}
