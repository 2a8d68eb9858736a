//! The evaluators of a tuning run: one for each worker, with its own device and directory.

use super::at_once;
use super::copies::IncrementalTrust;
use super::evaluator::{Evaluator, EvaluatorParts, TuningDevice};
use super::quiet::{BuildPolicy, QuietLock};
use super::sweep::SweepWorker;
use crate::config::LoadedConfig;
use karve_core::charter::{Charter, Pin};
use karve_core::measurement::Environment;
use karve_harness::commands::Harness;
use karve_harness::git::{Oid, Repo};
use karve_harness::scratch::{ScratchDir, ScratchKind as For};
use karve_harness::worktrees::Worktrees;
use karve_os::device::{self, NoticeSink, cpu, gpu};
use karve_os::error::Result;
use karve_os::process::StopFlag;
use karve_os::sandbox::Sandbox;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The most workers.
const WORKERS_MAX: usize = 64;
/// The default number of workers on CPUs.
const WORKERS_ON_CPUS: usize = 2;

/// What is tuned and where.
#[derive(Debug)]
pub struct TuningTarget<'a> {
    /// The project's repository.
    pub repo: &'a Repo,
    /// The commit that is tuned.
    pub base: &'a Oid,
    /// The configuration of the project.
    pub loaded: &'a LoadedConfig,
    /// Facts about the host.
    pub environment: &'a Environment,
    /// Where to report what karve is waiting for.
    pub notices: &'a NoticeSink,
    /// What the user asked for with Ctrl-C.
    pub stop: &'a StopFlag,
}

impl TuningTarget<'_> {
    /// The evaluator and device of each worker.
    pub fn workers(&self, jobs: Option<usize>) -> Result<Vec<TuningWorker>> {
        let trust = IncrementalTrust::default();
        let mut devices: BTreeMap<String, Arc<QuietLock>> = BTreeMap::new();
        let mut open = |charter: &Charter| {
            let device = devices.entry(charter.target.device.clone());
            let quiet = device.or_insert_with(|| Arc::new(QuietLock::new(builds_beside(charter))));
            self.open(charter, Arc::clone(quiet), &trust)
        };
        let charters = charters(&self.loaded.charter, jobs);
        let opened = charters.iter().map(&mut open);
        let mut tuning_workers = opened.collect::<Result<Vec<_>>>()?;
        if let (None, [first]) = (jobs, &mut tuning_workers[..]) {
            let more = first.evaluator.at_once()?.saturating_sub(1);
            for _ in 0..more {
                tuning_workers.push(open(&charters[0])?);
            }
        }
        Ok(tuning_workers)
    }

    fn open(
        &self,
        charter: &Charter,
        quiet: Arc<QuietLock>,
        trust: &IncrementalTrust,
    ) -> Result<TuningWorker> {
        let Self { repo, loaded, .. } = self;
        let scratch = ScratchDir::new(For::Tune, &[repo])?;
        // Before the sandbox, which keeps the existing directory open.
        let trees = Worktrees::new(repo, scratch.path().join("worktrees"))?;
        let sandbox = Sandbox::of(&repo.checkout(), &loaded.root, scratch.path(), charter)?;
        let tmp = scratch.path().join("tmp");
        let harness = Harness::new(charter, &tmp, &scratch.tag(), self.stop);
        let visible = charter.visible_cases();
        let cases = visible.iter().map(|at| charter.cases[*at].clone());
        let hidden = charter.hidden_cases();
        let hidden = hidden.iter().map(|at| charter.cases[*at].clone());
        let tools = EvaluatorParts {
            repo: (*repo).clone(),
            trees,
            harness: harness.in_sandbox(sandbox.as_ref()),
            copies: scratch.path().join("worktrees").join("copies"),
            trust: trust.clone(),
            cases: cases.collect(),
            hidden: hidden.collect(),
        };
        let (dir, notices) = (scratch.path(), self.notices);
        let mut device = device::DeviceSession::new(charter, dir, dir, notices)?;
        device.knows(self.environment);
        Ok(TuningWorker {
            evaluator: Evaluator::new(tools, charter, self.base)?,
            device,
            quiet,
            _scratch: Some(scratch),
        })
    }
}

/// An evaluator with its own device and directory.
#[derive(Debug)]
pub struct TuningWorker {
    /// The evaluator.
    pub evaluator: Evaluator,
    /// The device that settings are measured on.
    pub device: device::DeviceSession,
    /// Coordinates with the other workers of the device.
    quiet: Arc<QuietLock>,
    /// Removed when this is dropped.
    _scratch: Option<ScratchDir>,
}

impl TuningWorker {
    /// An evaluator that has its device to itself.
    pub fn alone(evaluator: Evaluator, device: device::DeviceSession) -> Self {
        let quiet = Arc::new(QuietLock::new(BuildPolicy::Wait));
        Self { evaluator, device, quiet, _scratch: None }
    }

    /// The worker that uses it.
    pub fn worker<'a>(
        &'a mut self,
        notices: &'a NoticeSink,
        stop: &'a StopFlag,
    ) -> SweepWorker<'a> {
        SweepWorker {
            evaluator: &mut self.evaluator,
            device: TuningDevice { session: &mut self.device, notices, stop },
            quiet: Arc::clone(&self.quiet),
        }
    }
}

/// Builds and tests the default, and then builds it for all other workers at the same time.
pub fn prepare(tuning_workers: &mut [TuningWorker]) -> Result<()> {
    let Some((first, others)) = tuning_workers.split_first_mut() else {
        return Ok(());
    };
    first.evaluator.prepare()?;
    let cases = first.evaluator.cases();
    let prepared = at_once(others, &|_, other| other.evaluator.prepare_beside(cases));
    prepared.into_iter().collect()
}

/// What builds do during a reading. The CPUs of a pool are the user's choice.
fn builds_beside(charter: &Charter) -> BuildPolicy {
    match &charter.contract {
        Some(contract) if contract.is_on_device() => BuildPolicy::WithTests,
        _ if charter.tune.pool.is_empty() && !gpu::is_gpu(&charter.target) => BuildPolicy::Wait,
        _ => BuildPolicy::GoOn,
    }
}

/// The default number of workers.
fn usual_jobs(charter: &Charter) -> usize {
    match builds_beside(charter) {
        BuildPolicy::Wait => cpu::allowed().len().min(WORKERS_ON_CPUS),
        BuildPolicy::GoOn | BuildPolicy::WithTests => charter.tune.pool.len(),
    }
}

/// The charter of each worker: with its own device, if there is a pool.
fn charters(charter: &Charter, jobs: Option<usize>) -> Vec<Charter> {
    let pool = &charter.tune.pool;
    let jobs = jobs.unwrap_or_else(|| usual_jobs(charter));
    let of_worker = |worker: usize| {
        let mut charter = charter.clone();
        if !pool.is_empty() {
            let member = &pool[worker % pool.len()];
            charter.target.device.clone_from(&member.device);
            charter.commands.env.extend(member.env.clone());
            if !member.pin.is_empty() {
                let cpus = member.pin.clone();
                charter.device.pin = Pin::Cpus { cpus };
            }
        }
        charter
    };
    let jobs = jobs.clamp(1, WORKERS_MAX);
    (0..jobs).map(of_worker).collect()
}
