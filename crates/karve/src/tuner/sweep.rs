//! A sweep: asks the search for settings, tries them and reports back until the budget is spent.
//!
//! No worker waits for the slowest: a worker that is done asks for the next setting at once. All
//! build at the same time, and measure one after another if they share a device. A setting is
//! measured again by the worker that built it.

mod chosen;
mod ordered;
mod trier;

pub use chosen::SettingJudge;
pub use trier::{SameSetting, SettingTrial, SettingTrier, SweepWorker};

use super::at_once;
use super::evaluator::SettingResult;
use super::journal::{Journal, JournalLine};
use super::quiet::BuildPolicy;
use super::recorded::EvaluationFailure;
use karve_core::charter::{Better, Charter};
use karve_numerics::grid::GridPoint;
use karve_numerics::search::budget::TuneBudget;
use karve_numerics::search::{Race, Search, SearchRecord, TrialResult};
use karve_numerics::space::KnobSetting;
use karve_os::error::Result;
use karve_os::process::StopFlag;
use karve_os::sync::locked;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

/// How many settings may fail in a row at the start before the sweep gives up.
const FAILURES_MAX: usize = 20;
/// This many settings with the same artifacts mean that the knobs change nothing.
const ALIKE_MIN: usize = 6;
/// The share of the time in which new settings are tried.
const TRYING_SHARE: f64 = 0.85;
/// How often an idle worker checks for new work.
const IDLE: Duration = Duration::from_millis(20);

/// Which reading of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadingPass {
    /// The first: it is built and tested.
    First,
    /// Another one, for the race.
    Again,
}

/// One try, for observers.
#[derive(Debug)]
pub struct TrialProgress<'a> {
    /// The direction of the metric.
    pub better: Better,
    /// The unit of the metric.
    pub unit: &'a str,
    /// The setting.
    pub config: &'a KnobSetting,
    /// Its number, in the order in which settings were asked for.
    pub number: usize,
    /// How often it was measured, including this reading.
    pub readings: usize,
    /// Whether it is from an earlier run.
    pub recalled: bool,
    /// Its result.
    pub tried: &'a SettingResult,
    /// Which reading of it this is.
    pub turn: ReadingPass,
    /// How many settings have been tried so far.
    pub settings: usize,
    /// The best value so far; lower is better.
    pub best: Option<f64>,
    /// The value of the default.
    pub default: Option<f64>,
    /// The expected speedup of the next setting, minus one.
    pub expected_gain: Option<f64>,
}

/// Called for every try.
pub type TrialObserver<'a> = &'a mut (dyn FnMut(&TrialProgress<'_>) + Send);

/// Why a sweep ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SweepEnd {
    /// The budget is spent, or all settings were tried.
    Done,
    /// The user stopped it.
    Stopped,
}

/// The state of a sweep, shared by the workers.
#[derive(Debug)]
pub struct Sweep {
    search: Search,
    journal: Journal,
    spent: Duration,
    /// Settings that were tried before.
    recalled: usize,
    /// The first setting that made these artifacts, by their digest.
    artifacts: BTreeMap<String, GridPoint>,
    /// The digest of the artifacts of each setting that was built.
    digests: BTreeMap<GridPoint, String>,
    /// How many settings had their artifacts compared.
    looked_at: usize,
    /// Settings that are being measured again.
    at_work: BTreeSet<GridPoint>,
    /// Which worker built a setting.
    built_by: BTreeMap<GridPoint, usize>,
    /// Readings of single cases, by setting.
    by_case: BTreeMap<GridPoint, Vec<Vec<f64>>>,
    /// Why settings failed.
    failures: BTreeMap<GridPoint, EvaluationFailure>,
    /// How long workers waited for their devices, which does not count as work.
    waited: Duration,
    /// A worker failed; the others stop.
    broken: bool,
}

/// How a sweep runs.
#[derive(Clone, Debug)]
pub struct SweepRule {
    /// How much is tried.
    pub budget: TuneBudget,
    /// What the user asked for with Ctrl-C.
    pub stop: StopFlag,
    /// The direction of the metric.
    better: Better,
    /// The unit of the metric.
    unit: String,
}

impl SweepRule {
    /// The rule for a charter.
    pub fn new(charter: &Charter, budget: TuneBudget, stop: &StopFlag) -> Self {
        let unit = charter.metric.unit.clone();
        Self { budget, stop: stop.clone(), better: charter.metric.better, unit }
    }
}

/// What to do next.
enum SweepStep {
    Try(GridPoint, ReadingPass),
    Wait,
    End(SweepEnd),
}

impl Sweep {
    /// A sweep that continues from a journal.
    pub fn new(search: Search, journal: Journal, lines: &[JournalLine]) -> Self {
        let mut sweep = Self {
            search,
            journal,
            spent: Duration::ZERO,
            recalled: 0,
            artifacts: BTreeMap::new(),
            digests: BTreeMap::new(),
            looked_at: 0,
            at_work: BTreeSet::new(),
            built_by: BTreeMap::new(),
            by_case: BTreeMap::new(),
            failures: BTreeMap::new(),
            waited: Duration::ZERO,
            broken: false,
        };
        for line in lines {
            sweep.recall(line);
        }
        sweep.recalled = sweep.search.record().len();
        sweep
    }

    /// Passes the readings of an earlier run to the search.
    fn recall(&mut self, line: &JournalLine) {
        self.spent += Duration::from_millis(line.spent_ms());
        let (config, tried, digest) = match line {
            JournalLine::Space { .. } => return,
            JournalLine::Read { config, value, cases, artifacts, .. } => {
                let (value, cases) = (*value, cases.clone());
                (config, SettingResult::Read { value, cases }, artifacts.as_ref())
            }
            JournalLine::Failed { config, why, failure, .. } => {
                let (why, failure) = (why.clone(), *failure);
                (config, SettingResult::Failed { why, failure }, None)
            }
        };
        if let Some(point) = self.search.grid().point(config) {
            self.take(point, &tried);
            self.record_artifacts(point, digest);
        }
    }

    fn take(&mut self, point: GridPoint, tried: &SettingResult) {
        let reading = match tried {
            SettingResult::Read { value, cases } => {
                let readings = self.by_case.entry(point).or_default();
                readings.push(cases.clone());
                TrialResult::Value(*value)
            }
            SettingResult::Failed { failure, .. } => {
                self.failures.insert(point, *failure);
                TrialResult::Failed
            }
        };
        self.search.add_result(point, reading);
    }

    /// How many settings were tried before this sweep.
    pub fn recalled(&self) -> usize {
        self.recalled
    }

    /// What was tried.
    pub fn record(&self) -> &SearchRecord {
        self.search.record()
    }

    /// The path of the journal.
    pub fn journal(&self) -> &Path {
        self.journal.path()
    }

    /// The expected speedup of the next setting over the best, minus one.
    pub fn expected_gain(&self) -> Option<f64> {
        self.search.expected_gain()
    }

    /// Readings of single cases, by setting.
    pub fn by_case(&self) -> &BTreeMap<GridPoint, Vec<Vec<f64>>> {
        &self.by_case
    }

    /// Why settings failed.
    pub fn failures(&self) -> &BTreeMap<GridPoint, EvaluationFailure> {
        &self.failures
    }

    /// Whether several settings were built, and all builds had the same artifacts.
    pub fn changes_nothing(&self) -> bool {
        self.looked_at >= ALIKE_MIN && self.artifacts.len() == 1
    }

    fn next(&mut self, rule: &SweepRule, started: Instant, worker: usize) -> SweepStep {
        let budget = rule.budget;
        if rule.stop.finish_step() {
            return SweepStep::End(SweepEnd::Stopped);
        }
        let record = self.search.record();
        let hopeless = record.len() >= FAILURES_MAX && record.best().is_none();
        let worked = started.elapsed().saturating_sub(self.waited);
        if self.broken || hopeless || self.spent + worked >= budget.time {
            return SweepStep::End(SweepEnd::Done);
        }
        // While there is more to try, only the apparent best is measured again; the race between
        // all similar settings is decided at the end.
        let trying = record.len() < budget.settings.min(self.search.grid().len());
        let race = Race::new(record);
        let again = if trying && self.spent + worked < budget.time.mul_f64(TRYING_SHARE) {
            race.confirm()
        } else {
            race.again()
        };
        // Another worker would have to build it first.
        let mine = |point: &GridPoint| self.built_by.get(point).is_none_or(|by| *by == worker);
        let free = |point: &GridPoint| !self.at_work.contains(point);
        if let Some(point) = again.filter(|point| mine(point) && free(point)) {
            self.at_work.insert(point);
            self.built_by.insert(point, worker);
            return SweepStep::Try(point, ReadingPass::Again);
        }
        let open = again.is_some() || record.entries().iter().any(|entry| entry.is_pending());
        let asked = if trying { self.search.ask() } else { None };
        match asked {
            Some(point) => {
                self.built_by.insert(point, worker);
                SweepStep::Try(point, ReadingPass::First)
            }
            // Pending results of other workers may still require another reading.
            None if open => SweepStep::Wait,
            None => SweepStep::End(SweepEnd::Done),
        }
    }

    /// The value of an earlier setting with the same artifacts.
    fn same(&mut self, artifacts: Option<&String>, point: GridPoint) -> Option<f64> {
        self.looked_at += usize::from(artifacts.is_some());
        let twin = self.record_artifacts(point, artifacts)?;
        self.record().value(twin)
    }

    /// Records the artifacts of a setting; returns another setting with the same artifacts.
    fn record_artifacts(&mut self, point: GridPoint, digest: Option<&String>) -> Option<GridPoint> {
        let digest = digest?;
        self.digests.insert(point, digest.clone());
        let twin = *self.artifacts.entry(digest.clone()).or_insert(point);
        self.search.add_same(twin, point);
        (twin != point).then_some(twin)
    }

    fn takes(
        &mut self,
        (point, turn): (GridPoint, ReadingPass),
        one: &FinishedTrial,
        rule: &SweepRule,
        watch: TrialObserver<'_>,
    ) -> Result<()> {
        let spent_ms = u64::try_from(one.spent.as_millis()).unwrap_or(u64::MAX);
        let line = JournalLine::of(&one.config, &one.tried, spent_ms)
            .with_artifacts(one.artifacts.as_ref());
        self.journal.append(&line)?;
        self.take(point, &one.tried);
        let record = self.search.record();
        let default = self.search.grid().default_point();
        let mut entries = record.entries().iter();
        let place = entries.position(|entry| entry.point == point);
        let place = place.unwrap_or_default();
        watch(&TrialProgress {
            better: rule.better,
            unit: &rule.unit,
            config: &one.config,
            number: place + 1,
            readings: record.entry(point).map_or(0, |entry| entry.readings.len()),
            recalled: place < self.recalled,
            tried: &one.tried,
            turn,
            settings: record.len(),
            best: record.best().map(|(_, value)| value),
            default: default.and_then(|point| record.value(point)),
            expected_gain: self.search.expected_gain(),
        });
        Ok(())
    }
}

/// A finished try.
struct FinishedTrial {
    config: KnobSetting,
    tried: SettingResult,
    /// The digest of the artifacts.
    artifacts: Option<String>,
    spent: Duration,
}

/// What workers share.
struct SweepState<'a> {
    sweep: Mutex<&'a mut Sweep>,
    watch: Mutex<TrialObserver<'a>>,
    rule: SweepRule,
    started: Instant,
    workers: u32,
}

impl<'a> SweepState<'a> {
    fn sweep(&self) -> MutexGuard<'_, &'a mut Sweep> {
        locked(&self.sweep)
    }

    fn work(&self, number: usize, worker: &mut dyn SettingTrier) -> Result<SweepEnd> {
        // The others do not wait for the result of a failed worker.
        let mut whole = WorkerDropGuard { shared: self, ended: false };
        let ended = self.work_on(number, worker);
        whole.ended = ended.is_ok();
        ended
    }

    fn work_on(&self, number: usize, worker: &mut dyn SettingTrier) -> Result<SweepEnd> {
        loop {
            let next = self.sweep().next(&self.rule, self.started, number);
            let (point, turn) = match next {
                SweepStep::End(ended) => return Ok(ended),
                SweepStep::Wait => {
                    thread::sleep(IDLE);
                    continue;
                }
                SweepStep::Try(point, turn) => (point, turn),
            };
            let done = self.try_one(point, turn, worker);
            let waited = worker.waited();
            let mut sweep = self.sweep();
            sweep.waited += match worker.builds() {
                // No worker could do anything meanwhile.
                BuildPolicy::Wait => waited,
                BuildPolicy::GoOn | BuildPolicy::WithTests => waited / self.workers,
            };
            sweep.at_work.remove(&point);
            if self.rule.stop.at_once() {
                // A killed run is not a reading.
                return Ok(SweepEnd::Stopped);
            }
            let mut watch = locked(&self.watch);
            let mut done = done?;
            // So that all lines add up to the elapsed time.
            done.spent = done.spent.saturating_sub(waited) / self.workers;
            sweep.takes((point, turn), &done, &self.rule, &mut **watch)?;
        }
    }

    fn try_one(
        &self,
        point: GridPoint,
        turn: ReadingPass,
        worker: &mut dyn SettingTrier,
    ) -> Result<FinishedTrial> {
        let started = Instant::now();
        let config = self.sweep().search.grid().config(point);
        let mut same = |digest: Option<&String>| self.sweep().same(digest, point);
        let SettingTrial { result, artifacts } = worker.try_setting(&config, turn, &mut same)?;
        Ok(FinishedTrial { config, tried: result, artifacts, spent: started.elapsed() })
    }
}

/// Signals the other workers when one fails.
struct WorkerDropGuard<'a, 'b> {
    shared: &'a SweepState<'b>,
    ended: bool,
}

impl Drop for WorkerDropGuard<'_, '_> {
    fn drop(&mut self) {
        if !self.ended {
            self.shared.sweep().broken = true;
        }
    }
}

/// Tries settings until the budget is spent.
pub fn run_sweep(
    sweep: &mut Sweep,
    workers: &mut [&mut dyn SettingTrier],
    rule: &SweepRule,
    watch: TrialObserver<'_>,
) -> Result<SweepEnd> {
    let shared = SweepState {
        sweep: Mutex::new(sweep),
        watch: Mutex::new(watch),
        rule: rule.clone(),
        started: Instant::now(),
        workers: u32::try_from(workers.len()).unwrap_or(u32::MAX).max(1),
    };
    let shared = &shared;
    let ended = match workers.iter().any(|worker| worker.is_far()) {
        true => ordered::run(shared, workers),
        false => at_once(workers, &|number, worker| shared.work(number, &mut **worker)),
    };
    let mut all = SweepEnd::Done;
    for one in ended {
        if one? == SweepEnd::Stopped {
            all = SweepEnd::Stopped;
        }
    }
    Ok(all)
}
