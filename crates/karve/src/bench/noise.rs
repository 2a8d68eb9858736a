//! A/A tests on this host: how they are measured, which remedies are tried, and how they help.
//!
//! A remedy is interleaved with plain runs, block by block, so that both see the same host.

use super::record::BenchEnd;
use super::sides::BenchSetup;
use super::{block, block_in};
use karve_core::bench::{Bench, BenchRule, SecondClockRule};
use karve_core::charter::{OwnClock, Pin};
use karve_core::comparison::Clock;
use karve_core::measurement::Block;
use karve_core::noise::{self, ClockNoise};
use karve_harness::pair_runner::PairRunner;
use karve_os::device;
use karve_os::device::cpu::CpuFiles;
use karve_os::error::{CommandError, Result};
use karve_os::process::StopFlag;
use serde::Serialize;
use std::thread;
use std::time::{Duration, Instant};

/// The seed of the power simulation; any number works.
const SEED: u64 = 1;
/// How often a command is run for one reading when repeats are tried.
const REPEATS: u32 = 4;
/// The longest that one block waits for a quiet host.
const QUIET_WAIT: Duration = Duration::from_millis(500);
/// The window over which CPU pressure is read.
const QUIET_WINDOW: Duration = Duration::from_millis(20);
/// The host is quiet if tasks waited for a CPU in less than this share of the time.
const QUIET_SHARE: f64 = 0.1;

/// The result of the A/A test on a host.
#[derive(Clone, Debug, Serialize)]
pub struct HostNoise {
    /// The version of this shape.
    pub version: u32,
    /// A/A pairs.
    pub pairs: u32,
    /// How long one pair takes.
    pub seconds_per_pair: f64,
    /// The result for each clock.
    pub clocks: Vec<ClockNoise>,
    /// Remedies that were tried.
    pub remedies: Vec<NoiseRemedy>,
    /// Whether the user stopped it.
    pub stopped: bool,
}

/// A remedy that was tried.
#[derive(Clone, Debug, Serialize)]
pub struct NoiseRemedy {
    /// What it is, worded as advice.
    pub advice: String,
    /// The smallest detectable difference without it, in percent; none if none is detectable.
    pub before_percent: Option<f64>,
    /// The same with it.
    pub after_percent: Option<f64>,
    /// How many times longer a pair takes with it.
    pub cost: f64,
    /// Whether it helped enough to be given as advice.
    pub helped: bool,
}

/// How many pairs to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoiseBudget {
    /// For the A/A test.
    pub pairs: u32,
    /// With each remedy, and as many without it.
    pub remedy_pairs: u32,
    /// The time limit for each of these.
    pub time: Duration,
}

/// Runs the A/A test and tries the remedies; `say` receives progress messages.
pub fn measure(
    ground: &BenchSetup,
    effort: NoiseBudget,
    stop: &StopFlag,
    say: &mut dyn FnMut(String),
) -> Result<HostNoise> {
    let rule = rule(ground);
    let _device = super::BenchDevice::hold(ground, stop)?;
    let started = Instant::now();
    let mut bench = Bench::new(&ground.charter.metric, &ground.case_indices(), rule);
    // The first block loads caches and pages.
    block(ground, stop)?;
    let end = loop {
        if stop.finish_step() {
            break BenchEnd::Stopped;
        }
        if bench.n_blocks() >= effort.pairs || started.elapsed() > effort.time {
            break BenchEnd::Pairs;
        }
        let Some(block) = block(ground, stop)? else {
            break BenchEnd::Stopped;
        };
        take(&mut bench, &block)?;
        say(format!("A/A test: pair {} of {}", bench.n_blocks(), effort.pairs));
    };
    let seconds = started.elapsed().as_secs_f64() / f64::from(bench.n_blocks().max(1));
    let clocks = noise::examine(&bench, SEED);
    let mut remedies = Vec::new();
    if end != BenchEnd::Stopped {
        remedies.extend(other_clock(ground, &clocks));
        for remedy in remedies_of(ground) {
            say(format!("trying: {}", remedy.advice));
            remedies.extend(try_remedy(ground, &remedy, effort, stop)?);
        }
    }
    Ok(HostNoise {
        version: 1,
        pairs: bench.n_blocks(),
        seconds_per_pair: seconds,
        clocks,
        remedies,
        stopped: stop.finish_step(),
    })
}

/// The usual rule, with both clocks if karve reads them itself.
fn rule(ground: &BenchSetup) -> BenchRule {
    let second = match ground.charter.metric.own_clock() {
        Some(OwnClock::Cpu) => Clock::Wall,
        Some(OwnClock::Wall) | None => Clock::Cpu,
    };
    BenchRule { second: Some(second), admits: SecondClockRule::Always, ..BenchRule::default() }
}

fn take(bench: &mut Bench, block: &Block) -> Result<()> {
    let bad = |bad: karve_core::duel::BlockError| {
        CommandError::environment("a block cannot be used").cause(bad.0)
    };
    bench.take(block).map_err(bad)
}

/// CPU time instead of wall time needs no separate run: both were measured.
fn other_clock(ground: &BenchSetup, clocks: &[ClockNoise]) -> Option<NoiseRemedy> {
    let [metric, second] = clocks else {
        return None;
    };
    if ground.charter.metric.own_clock() != Some(OwnClock::Wall) {
        return None;
    }
    let advice = "let CPU time decide too: use --clocks both, or metric.clocks in karve.toml";
    Some(NoiseRemedy::of(advice, metric.smallest, second.smallest, 1.0))
}

impl NoiseRemedy {
    fn of(advice: &str, before: Option<f64>, after: Option<f64>, cost: f64) -> Self {
        let percent = |ratio: f64| (ratio - 1.0) * 100.0;
        Self {
            advice: advice.to_owned(),
            before_percent: before.map(percent),
            after_percent: after.map(percent),
            cost,
            helped: noise::helps(before, after),
        }
    }
}

/// Something that may make the readings steadier.
struct RemedyAttempt {
    advice: String,
    pair_runner: PairRunner,
    /// Whether each block waits until the host is quiet.
    waits: bool,
}

fn remedies_of(ground: &BenchSetup) -> Vec<RemedyAttempt> {
    let mut attempts = Vec::new();
    if ground.charter.metric.own_clock().is_some() {
        let repeated =
            |line: &str| format!("k=0\nwhile [ $k -lt {REPEATS} ]; do\n{line}\nk=$((k + 1))\ndone");
        attempts.push(RemedyAttempt {
            advice: format!("do {REPEATS} times the work in one run"),
            pair_runner: ground.runner_with(repeated),
            waits: false,
        });
    }
    let cpus = device::cpus_of(&Pin::Auto).unwrap_or_default();
    if ground.charter.device.pin == Pin::No && !cpus.is_empty() {
        let mut runner = ground.pair_runner.clone();
        for arm in [&mut runner.parent, &mut runner.candidate] {
            arm.harness = arm.harness.clone().pinned_to(&cpus);
        }
        attempts.push(RemedyAttempt {
            advice: "pin it to one CPU: use --pin, or device.pin in karve.toml".to_owned(),
            pair_runner: runner,
            waits: false,
        });
    }
    if pressure_us().is_some() {
        attempts.push(RemedyAttempt {
            advice: "run it when the host is quiet".to_owned(),
            pair_runner: ground.pair_runner.clone(),
            waits: true,
        });
    }
    attempts
}

/// Plain runs and the remedy, interleaved; `None` if the user stopped it.
fn try_remedy(
    ground: &BenchSetup,
    attempt: &RemedyAttempt,
    effort: NoiseBudget,
    stop: &StopFlag,
) -> Result<Option<NoiseRemedy>> {
    let metric = &ground.charter.metric;
    let new = || Bench::new(metric, &ground.case_indices(), rule(ground));
    let (mut plain, mut with) = (new(), new());
    let mut spent = [Duration::ZERO; 2];
    let started = Instant::now();
    while plain.n_blocks() < effort.remedy_pairs && started.elapsed() < effort.time {
        for (number, bench) in [&mut plain, &mut with].into_iter().enumerate() {
            if stop.finish_step() {
                return Ok(None);
            }
            let begun = Instant::now();
            let runner = if number == 1 {
                if attempt.waits {
                    wait_for_quiet();
                }
                &attempt.pair_runner
            } else {
                &ground.pair_runner
            };
            let Some(block) = block_in(runner, ground, stop)? else {
                return Ok(None);
            };
            take(bench, &block)?;
            spent[number] += begun.elapsed();
        }
    }
    let cost = spent[1].as_secs_f64() / spent[0].as_secs_f64().max(1e-9);
    let (before, after) = (plain.smallest_detectable(SEED), with.smallest_detectable(SEED));
    Ok(Some(NoiseRemedy::of(&attempt.advice, before, after, cost)))
}

/// Waits until few tasks wait for a CPU, up to a limit.
fn wait_for_quiet() {
    let started = Instant::now();
    while started.elapsed() < QUIET_WAIT {
        let (Some(before), begun) = (pressure_us(), Instant::now()) else {
            return;
        };
        thread::sleep(QUIET_WINDOW);
        let waited = pressure_us().unwrap_or(before).saturating_sub(before);
        if (waited as f64) < begun.elapsed().as_micros() as f64 * QUIET_SHARE {
            return;
        }
    }
}

/// How long tasks have waited for a CPU since boot, in microseconds.
fn pressure_us() -> Option<u64> {
    CpuFiles::default().pressure().map(|now| now.total_us)
}
