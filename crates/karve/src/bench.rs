//! Runs two sides interleaved until there is a finding: `karve bench` and `karve noise`.
//!
//! ```text
//! given     commands, cases and metric from the command line
//! contract  one metric and one harness for two revisions, or why they cannot share one
//! sides     revisions, worktrees or commands ──▶ two arms that can be timed
//! record    every measured block, saved to a file and loaded again
//! baselines ours against every baseline of a project
//! account   reading a saved bench, and whether it is consistent
//! view      the result as plain data: text, Markdown, plots and JSON come from here
//! noise     the A/A test: the smallest difference this host can show, and what would help
//! ```

mod account;
pub mod baselines;
pub mod command_args;
pub mod contract;
pub mod noise;
pub mod plot;
pub mod record;
pub mod repeat;
pub mod sides;
pub mod text;
pub mod view;

use crate::ui;
use karve_core::bench::{Bench, BenchRule, SecondClockRule};
use karve_core::campaign::ProcessAge;
use karve_core::charter::{ClockRule, Metric};
use karve_core::comparison::Clock;
use karve_core::measurement::{Block, Conditions, Gate};
use karve_core::policy::WarmUpRule;
use karve_core::sampling::WarmUp;
use karve_core::verdict::{self, DuelDeadline};
use karve_harness::outcome::{BlockFailure, split};
use karve_harness::pair_runner::PairRunner;
use karve_os::device::{DeviceSession, NoticeSink};
use karve_os::error::{CommandError, Result};
use karve_os::process::StopFlag;
use record::{BenchEnd, BenchRecord, BenchSide};
use sides::BenchSetup;
use std::time::{Duration, Instant};

/// The limits of a bench.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BenchPlan {
    /// The thresholds.
    pub rule: BenchRule,
    /// How long it may take.
    pub time: Duration,
}

/// The host is checked every this many blocks, with a bounded wait until it is calm.
const LOOK_EVERY: usize = 25;

/// The most seconds that a bench waits for a busy host to calm down.
const PAUSE_S: u64 = 2;

/// The device under a bench: held from the first block to the last.
pub struct BenchDevice {
    session: DeviceSession,
    notices: NoticeSink,
}

impl BenchDevice {
    /// Waits for the device, and holds it.
    pub fn hold(ground: &BenchSetup, stop: &StopFlag) -> Result<Self> {
        let mut charter = ground.charter.clone();
        charter.device.pause_max_s = charter.device.pause_max_s.min(PAUSE_S);
        let notices = ui::notices();
        let dir = ground.scratch();
        let mut session = DeviceSession::new(&charter, dir, dir, &notices)?;
        session.knows(&ground.environment);
        let mut device = Self { session, notices };
        device.look(stop)?;
        Ok(device)
    }

    /// The current conditions on the host.
    fn look(&mut self, stop: &StopFlag) -> Result<Box<Conditions>> {
        let conditions = self.session.before_block(stop, &self.notices)?;
        Ok(Box::new(conditions))
    }
}

impl Drop for BenchDevice {
    fn drop(&mut self) {
        self.session.close(&self.notices);
    }
}

/// Runs a bench to its end; `watch` is called after each block.
pub fn run(
    ground: &BenchSetup,
    plan: BenchPlan,
    stop: &StopFlag,
    watch: &mut dyn FnMut(&Bench),
) -> Result<BenchRecord> {
    let mut device = BenchDevice::hold(ground, stop)?;
    let started = Instant::now();
    let metric = &ground.charter.metric;
    let rule = with_second(plan.rule, metric);
    let mut bench = Bench::new(metric, &ground.case_indices(), rule);
    let mut blocks = Vec::new();
    let mut warm_up = WarmUp::new(WarmUpRule::Detected);
    ground.pair_runner.fresh_pages()?;
    let end = loop {
        if stop.finish_step() {
            break BenchEnd::Stopped;
        }
        let up = started.elapsed() >= plan.time;
        let time = if up { DuelDeadline::Up } else { DuelDeadline::Left };
        if let Some(finding) = verdict::judge_bench(&bench, time) {
            break BenchEnd::of(finding, bench.n_blocks(), &rule);
        }
        let due = blocks.len().is_multiple_of(LOOK_EVERY);
        let conditions = due.then(|| device.look(stop)).transpose()?;
        let Some(mut block) = block(ground, stop)? else {
            break BenchEnd::Stopped;
        };
        block.conditions = conditions;
        block.discarded = warm_up.discards(&block.pairs);
        warm_up.record_block(&block.pairs);
        bench
            .take(&block)
            .map_err(|bad| CommandError::environment("a block cannot be used").cause(bad.0))?;
        blocks.push(block);
        watch(&bench);
    };
    Ok(ground.recorded(rule, blocks, end, started.elapsed()))
}

/// The rule with the second clock that the metric asks for.
pub fn with_second(rule: BenchRule, metric: &Metric) -> BenchRule {
    let other = metric.own_clock().map(Clock::beside);
    let (second, admits) = match metric.clocks {
        ClockRule::Metric => (None, SecondClockRule::BusyThreads),
        ClockRule::Auto => (other, SecondClockRule::BusyThreads),
        ClockRule::Both => (Some(other.unwrap_or(Clock::Cpu)), SecondClockRule::Always),
    };
    BenchRule { second, admits, ..rule }
}

/// One block; `None` if the user asked to stop at once.
pub fn block(ground: &BenchSetup, stop: &StopFlag) -> Result<Option<Block>> {
    block_in(&ground.pair_runner, ground, stop)
}

/// One block in another pair runner of the same ground.
pub fn block_in(
    runner: &PairRunner,
    ground: &BenchSetup,
    stop: &StopFlag,
) -> Result<Option<Block>> {
    match split(runner.block(&ground.cases, ProcessAge::Usual))? {
        Ok(block) => Ok(Some(block)),
        Err(_) if stop.at_once() => Ok(None),
        Err(BlockFailure::Parent(gate)) => Err(cannot_measure(ground, "A", &ground.a, &gate)),
        Err(BlockFailure::Candidate(gate)) => Err(cannot_measure(ground, "B", &ground.b, &gate)),
    }
}

fn cannot_measure(
    ground: &BenchSetup,
    letter: &str,
    side: &BenchSide,
    gate: &Gate,
) -> CommandError {
    let name = sides::called(letter, side, [&ground.a.label, &ground.b.label]);
    let what = format!("{name} cannot be measured");
    let why = match gate {
        Gate::WrongResult { case, excerpt, .. } => format!("{case}: {excerpt}"),
        other => other.describe(),
    };
    CommandError::environment(what).cause(why).hint(match side.command.is_empty() {
        true => "run \"karve check\" there, and see [contract] in karve.toml".to_owned(),
        false => format!("run \"{}\" by hand", side.command),
    })
}
