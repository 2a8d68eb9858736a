//! Raw readings, with everything needed to trace them and to judge them again.

mod hidden;

pub use hidden::cases_for_user;

use karve_numerics::stats;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One reading of one case on one arm.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// The metric's value.
    pub value: f64,
    /// Wall time of the whole command, by the parent's clock.
    pub wall_us: u64,
    /// User and system time of the command's process tree.
    pub cpu_us: u64,
    /// The rates of the passes that the value is made of, if it is made of two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passes: Option<PassRates>,
    /// The least signal-to-noise ratio that the benchmark reports, in decibels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snr_db: Option<f64>,
}

/// The rates of a forward and a backward pass, in the metric's unit. Nothing is decided by them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PassRates {
    /// Of the forward pass.
    pub forward: f64,
    /// Of the backward pass.
    pub backward: f64,
}

impl PassRates {
    /// The medians of these, if there are any.
    pub fn median(all: &[Self]) -> Option<Self> {
        let of = |pick: fn(&Self) -> f64| stats::median(&all.iter().map(pick).collect::<Vec<_>>());
        Some(Self { forward: of(|p| p.forward)?, backward: of(|p| p.backward)? })
    }
}

/// A reported time may exceed the whole command's time by this much, for rounding.
const CLOCK_SLACK: f64 = 1.05;

impl Sample {
    /// Whether one call can have taken so long: no longer than the whole command.
    pub fn can_hold(&self, seconds: f64) -> bool {
        // The clock counts whole microseconds, rounded down.
        seconds <= (self.wall_us as f64 + 1.0) * 1e-6 * CLOCK_SLACK
    }
}

/// Which arm ran first; a private coin decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FirstArm {
    /// The incumbent.
    Parent,
    /// The candidate.
    Candidate,
}

/// One case of a block: parent and candidate right after each other, on the same seed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pair {
    /// Index of the case in the charter.
    pub case: usize,
    /// Which arm ran first.
    pub first: FirstArm,
    /// The incumbent's reading.
    pub parent: Sample,
    /// The candidate's reading.
    pub candidate: Sample,
    /// All turns that the readings were picked from, where there were several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turns: Option<PairTurns>,
}

/// What all turns of a pair showed. The readings of the pair are those of its usual turn.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PairTurns {
    /// Turns of each arm.
    pub n: u32,
    /// The incumbent's.
    pub parent: TurnTimes,
    /// The candidate's.
    pub candidate: TurnTimes,
}

/// The turns of one arm, summed up.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TurnTimes {
    /// Their mean.
    pub mean: Sample,
    /// Their 90th percentile.
    pub p90: Sample,
    /// The slowest of them.
    pub worst: Sample,
    /// How many were slow.
    #[serde(default, skip_serializing_if = "SlowTurns::is_none")]
    pub slow: SlowTurns,
}

/// How many turns of a block took more than each of `RATIOS` times the incumbent's usual turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlowTurns {
    /// By karve's clock.
    pub time: [u32; SlowTurns::RATIOS.len()],
    /// By CPU time.
    pub cpu: [u32; SlowTurns::RATIOS.len()],
}

impl SlowTurns {
    /// What a turn is compared with, in usual turns of the incumbent.
    pub const RATIOS: [f64; 4] = [1.5, 3.0, 6.0, 12.0];

    /// Fewest turns of a block that have a usual one among them.
    const TURNS_MIN: usize = 5;

    /// The slow ones among these turns, given those of the incumbent by the same clock.
    pub fn count(turns: &[f64], incumbent: &[f64]) -> [u32; SlowTurns::RATIOS.len()] {
        let usual = stats::median(incumbent).filter(|usual| *usual > 0.0);
        let Some(usual) = usual.filter(|_| incumbent.len() >= Self::TURNS_MIN) else {
            return Default::default();
        };
        Self::RATIOS.map(|ratio| {
            let slow = turns.iter().filter(|turn| **turn > ratio * usual).count();
            u32::try_from(slow).unwrap_or(u32::MAX)
        })
    }

    fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// One pair for each case of the duel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Block {
    /// The seed that both arms were given.
    pub seed: u64,
    /// Bytes of padding added to the environment of both arms.
    #[serde(default)]
    pub pad: u32,
    /// One entry per case, in the order of the duel.
    pub pairs: Vec<Pair>,
    /// Calls of each arm's process on each case before the block, if it was aged on purpose.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub aged: u32,
    /// Why the block does not count, if it does not.
    pub discarded: Option<DiscardReason>,
    /// The state of the host when it started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Box<Conditions>>,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // Required by serde.
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// The state of the host and the device, as far as they report it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Conditions {
    /// The name of the host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Processes that ran or wanted to, on average over the last minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load: Option<f64>,
    /// The share of the last ten seconds in which some process waited for a CPU, in percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pressure: Option<f64>,
    /// How the CPU chooses its frequency.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub governor: Option<String>,
    /// The current frequency of a core that the benchmark may run on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_mhz: Option<u32>,
    /// The GPU, if the kernel runs on one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu: Option<GpuConditions>,
    /// The CPUs that the benchmark was pinned to; empty if it may run on all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pinned: Vec<usize>,
    /// What was waited for before the block, and how long.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pauses: Vec<Pause>,
    /// The first digits of a digest of what does not change while a host runs: CPU, cores,
    /// kernel, container, compilers, GPU, driver.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub environment: Option<String>,
}

/// What a GPU reports about itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct GpuConditions {
    /// Its name.
    pub name: String,
    /// What tells it from all others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The version of its driver.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// The clock of its processors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sm_clock_mhz: Option<u32>,
    /// The clock of its memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mem_clock_mhz: Option<u32>,
    /// Its temperature.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature_c: Option<f64>,
    /// The power that it draws.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power_w: Option<f64>,
    /// What throttles its clocks, by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub throttle: Vec<String>,
}

/// A wait before a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pause {
    /// What for.
    pub why: PauseReason,
    /// How long.
    pub waited_ms: u64,
}

/// What a block waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PauseReason {
    /// Other processes wanted the CPUs.
    Pressure,
    /// The GPU was throttled by heat or by its power supply.
    Throttling,
    /// Another karve held the device.
    Lease,
}

/// Why readings are stored but not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DiscardReason {
    /// The first run after a build loads caches and pages.
    WarmUp,
}

/// A reading outside a duel, as the baseline takes them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct BaselineReading {
    /// Index of the case in the charter.
    pub case: usize,
    /// The reading.
    pub sample: Sample,
}

/// What the readings were taken on and with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Environment {
    /// What the host reports about itself, by name: CPU model, cores, governor, kernel, compilers.
    pub facts: BTreeMap<String, String>,
}

/// The result of the build and the correctness check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "gate", rename_all = "snake_case")]
pub enum Gate {
    /// Built, and right on every case of the set.
    Passed,
    /// It does not build.
    BuildFailed {
        /// What kind of failure it is.
        category: FailureCategory,
        /// The end of the log.
        excerpt: String,
    },
    /// It is wrong, or crashes.
    WrongResult {
        /// The first case that failed.
        case: String,
        /// What kind of failure it is.
        category: FailureCategory,
        /// The end of the log.
        excerpt: String,
    },
    /// Read-only files were changed.
    OutOfScope {
        /// Which ones.
        paths: Vec<String>,
        /// Files in another language than the role was asked for.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        wrong_framework: Vec<WrongLanguageFile>,
        /// Parts of the change that its hypothesis does not state.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        unstated: Vec<String>,
    },
    /// A command timed out.
    TimedOut {
        /// Which command.
        what: String,
    },
    /// It is right, but much slower where it is not measured.
    SlowerElsewhere {
        /// Where, and by how much.
        why: String,
    },
    /// The change is forbidden, or the benchmark's own figures do not add up.
    Dishonest {
        /// What was seen.
        why: String,
    },
}

/// Kinds of failures, as the failure ledger names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum FailureCategory {
    BuildCompile,
    BuildLink,
    RuntimeAssert,
    RuntimeOom,
    RuntimeHang,
    SnrFail,
    BenchRegression,
    Other,
}

impl Gate {
    /// Whether the candidate may be measured.
    pub fn passed(&self) -> bool {
        matches!(self, Self::Passed)
    }

    /// Whether the agent may fix it within the round.
    pub fn repairable(&self) -> bool {
        match self {
            Self::BuildFailed { .. } | Self::WrongResult { .. } | Self::OutOfScope { .. } => true,
            Self::Passed
            | Self::TimedOut { .. }
            | Self::SlowerElsewhere { .. }
            | Self::Dishonest { .. } => false,
        }
    }

    /// Whether it says something about the editable files themselves. Changed read-only files are
    /// not in the tree that is judged, so the tree is neither right nor wrong.
    pub fn is_of_source(&self) -> bool {
        match self {
            Self::OutOfScope { wrong_framework, unstated, .. } => {
                !wrong_framework.is_empty() || !unstated.is_empty()
            }
            Self::Passed
            | Self::BuildFailed { .. }
            | Self::WrongResult { .. }
            | Self::TimedOut { .. }
            | Self::SlowerElsewhere { .. }
            | Self::Dishonest { .. } => true,
        }
    }

    /// The same failure, which occurs only while the allocator overwrites memory.
    #[must_use]
    pub fn with_overwritten_memory(self) -> Self {
        let said = "only while the allocator overwrites freed and fresh memory \
                    (GLIBC_TUNABLES=glibc.malloc.perturb); it reads memory that it did not write";
        match self {
            Self::WrongResult { case, category, excerpt } => {
                Self::WrongResult { case, category, excerpt: format!("{said}: {excerpt}") }
            }
            Self::TimedOut { what } => Self::TimedOut { what: format!("{what}, {said},") },
            Self::Passed
            | Self::BuildFailed { .. }
            | Self::OutOfScope { .. }
            | Self::SlowerElsewhere { .. }
            | Self::Dishonest { .. } => self,
        }
    }

    /// The same failure, which occurs with a setting of the environment.
    #[must_use]
    pub fn with_setting(self, setting: &str) -> Self {
        match self {
            Self::WrongResult { case, category, excerpt } => {
                Self::WrongResult { case, category, excerpt: format!("with {setting}: {excerpt}") }
            }
            Self::TimedOut { what } => Self::TimedOut { what: format!("{what} with {setting}") },
            Self::Passed
            | Self::BuildFailed { .. }
            | Self::OutOfScope { .. }
            | Self::SlowerElsewhere { .. }
            | Self::Dishonest { .. } => self,
        }
    }

    /// One line for people and for the agent that fixes it.
    pub fn describe(&self) -> String {
        match self {
            Self::Passed => "passed".into(),
            Self::BuildFailed { excerpt, .. } => format!("the build failed: {excerpt}"),
            Self::WrongResult { case, excerpt, .. } => format!("wrong on {case}: {excerpt}"),
            Self::OutOfScope { paths, wrong_framework, unstated } => {
                let orphans = wrong_framework.iter().map(WrongLanguageFile::describe);
                let orphans = orphans.map(|orphan| format!("wrong_framework: {orphan}"));
                let mut said: Vec<String> = orphans.collect();
                if !unstated.is_empty() {
                    let parts = unstated.join("; ");
                    said.push(format!(
                        "more than one change: the hypothesis does not state {parts}; leave it \
                         out, or state it in a round of its own"
                    ));
                }
                if !paths.is_empty() || said.is_empty() {
                    said.insert(0, format!("read-only files changed: {}", paths.join(", ")));
                }
                said.join("; ")
            }
            Self::TimedOut { what } => format!("{what} timed out"),
            Self::SlowerElsewhere { why } => why.clone(),
            Self::Dishonest { why } => format!("integrity check failed: {why}"),
        }
    }
}

/// The best category for a failure, from its log.
pub fn classify_failure(building: bool, log: &str) -> FailureCategory {
    let log = log.to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| log.contains(word));
    if has(&["out of memory", "outofmemory", "cannot allocate memory", "bad_alloc"]) {
        FailureCategory::RuntimeOom
    } else if building && has(&["undefined reference", "ld returned", "linker command failed"]) {
        FailureCategory::BuildLink
    } else if building {
        FailureCategory::BuildCompile
    } else if has(&["snr", "not close", "mismatch", "tolerance"]) {
        FailureCategory::SnrFail
    } else if has(&["assert", "abort"]) {
        FailureCategory::RuntimeAssert
    } else {
        FailureCategory::Other
    }
}

/// A file in a different language than its author was asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WrongLanguageFile {
    /// The file.
    pub path: String,
    /// The language it is written in.
    pub speaks: String,
    /// The language that was requested.
    pub asked: String,
    /// The line that shows it.
    pub line: String,
}

impl WrongLanguageFile {
    /// In words.
    pub fn describe(&self) -> String {
        let Self { path, speaks, asked, line } = self;
        format!("{path} is written in {speaks} (\"{line}\"), but {asked} was requested")
    }
}
