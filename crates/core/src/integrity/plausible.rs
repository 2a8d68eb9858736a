//! What a change can gain at most. A gain beyond that is a fault of the measurement or a cheat: it
//! is blocked, not celebrated.
//!
//! ```text
//! roofline   a call that does W operations and moves B bytes takes max(W / peak, B / bandwidth)
//! Amdahl     a change to a share p of the time makes the whole faster by 1 / (1 - p) at most
//! ```

use crate::measurement::Gate;
use serde::{Deserialize, Serialize};

/// A measured peak is itself a little too low: a time may be below the floor by this factor.
pub const ROOFLINE_SLACK: f64 = 0.8;
/// A time below the floor by this factor cannot be, however the peak was measured.
pub const ROOFLINE_HARD: f64 = 0.5;
/// A share of the time is measured, too: a gain may exceed the bound by this factor.
const AMDAHL_SLACK: f64 = 1.1;

/// What one call must do at least.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Demand {
    /// Floating-point operations.
    pub work: Option<f64>,
    /// Bytes that must be read or written, each counted once.
    pub bytes: Option<f64>,
}

/// What the device can do at most.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Peaks {
    /// Floating-point operations per second.
    pub flops: Option<f64>,
    /// Bytes per second.
    pub bytes: Option<f64>,
}

/// What a host or a device can do at most, as it was measured or declared.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Roof {
    /// Floating-point operations per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flops: Option<f64>,
    /// How fast bytes are moved; caches make it faster where there are few.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rates: Vec<Rate>,
    /// Floating-point operations per second of one core, where that was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flops_one: Option<f64>,
    /// The levels of the caches and memory, the nearest first, where they were measured. Calls are
    /// shown under them; a gain is doubted by what all cores can do together.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub levels: Vec<RoofLevel>,
}

/// How fast one core and all move bytes at a level of the caches.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoofLevel {
    /// Its name.
    pub name: String,
    /// One core.
    pub one: LevelRate,
    /// All together.
    pub all: LevelRate,
}

/// How fast bytes are moved at a level, and how many it holds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LevelRate {
    /// Bytes per second.
    pub per_s: f64,
    /// So many bytes at most; memory holds all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holds: Option<u64>,
}

/// Which cores of a host a call is shown under.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cores {
    /// One.
    One,
    /// All.
    All,
}

impl Cores {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Self::One => "one core",
            Self::All => "all cores",
        }
    }

    /// What a level gives them.
    pub fn of(self, level: &RoofLevel) -> LevelRate {
        match self {
            Self::One => level.one,
            Self::All => level.all,
        }
    }
}

/// How fast bytes are moved.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rate {
    /// When so many are moved again and again.
    pub bytes: u64,
    /// Bytes per second.
    pub per_s: f64,
}

/// A part of the bytes may be where fewer would be: a rate holds for so many times its bytes.
const RATE_FACTOR: f64 = 4.0;

impl Roof {
    /// The peaks for a call that moves so many bytes. The rate is that of the largest amount which
    /// is well below them, so that what stays in a cache is not taken for impossible.
    pub fn peaks(&self, demand: Demand) -> Peaks {
        let moved = demand.bytes.unwrap_or(0.0);
        let holds = |rate: &&Rate| rate.bytes as f64 * RATE_FACTOR <= moved;
        let rate = self.rates.iter().filter(holds).max_by_key(|r| r.bytes);
        Peaks {
            flops: self.flops,
            bytes: rate.map(|rate| rate.per_s),
        }
    }

    /// The peaks to show a call under: where no rate is known to hold for so few bytes, the best
    /// one, so that a ceiling is rather too high than too low.
    pub fn shown_peaks(&self, demand: Demand) -> Peaks {
        let mut peaks = self.peaks(demand);
        let best = self.rates.iter().map(|rate| rate.per_s).reduce(f64::max);
        peaks.bytes = peaks.bytes.or(best);
        peaks
    }

    /// The peaks to show a call under that runs on some cores, with the level that holds its bytes.
    /// Where no levels were measured, those of the whole.
    pub fn peaks_on(&self, cores: Cores, demand: Demand) -> (Peaks, Option<&RoofLevel>) {
        let moved = demand.bytes.unwrap_or(f64::MAX);
        let holds = |level: &&RoofLevel| {
            let most = cores.of(level).holds;
            most.is_none_or(|most| moved <= most as f64)
        };
        let level = self.levels.iter().find(holds).or(self.levels.last());
        let Some(level) = level else {
            return (self.shown_peaks(demand), None);
        };
        let flops = match cores {
            Cores::One => self.flops_one,
            Cores::All => self.flops,
        };
        let bytes = Some(cores.of(level).per_s);
        (Peaks { flops, bytes }, Some(level))
    }

    /// The least time of one call, in seconds, as far as it is known.
    pub fn floor_s(&self, demand: Demand) -> Option<f64> {
        roofline_s(demand, self.peaks(demand))
    }
}

/// Why a figure cannot be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Implausible {
    /// No time is that short on this device.
    BelowRoofline {
        /// What was read, in seconds.
        time_s: f64,
        /// The least that is possible.
        floor_s: f64,
    },
    /// No change of that part gains so much.
    BeyondAmdahl {
        /// What was read.
        ratio: f64,
        /// The most that is possible.
        bound: f64,
    },
    /// A time or a ratio that is no positive number.
    NotANumber,
}

impl Implausible {
    /// In words.
    pub fn describe(self) -> String {
        match self {
            Self::BelowRoofline { time_s, floor_s } => format!(
                "{time_s:.3e} s for one call is below the roofline of this device (all cores that \
                 may take part), {floor_s:.3e} s"
            ),
            Self::BeyondAmdahl { ratio, bound } => {
                format!("{ratio:.3}x is more than the part that was changed can give, {bound:.3}x")
            }
            Self::NotANumber => "the figure is no positive number".to_owned(),
        }
    }

    /// Whether it cannot be, whatever the slack of what was measured; else it is worth a look.
    pub fn is_certain(self) -> bool {
        match self {
            Self::BelowRoofline { time_s, floor_s } => time_s < floor_s * ROOFLINE_HARD,
            Self::BeyondAmdahl { .. } | Self::NotANumber => true,
        }
    }

    /// As the gate says it.
    pub fn gate(self, case: &str) -> Gate {
        Gate::Dishonest {
            why: format!("{case}: {}", self.describe()),
        }
    }
}

/// The least time of one call, in seconds, as far as work, bytes and peaks are known.
pub fn roofline_s(demand: Demand, peaks: Peaks) -> Option<f64> {
    let usable = |value: f64| value.is_finite() && value > 0.0;
    let part = |amount: Option<f64>, peak: Option<f64>| {
        let (amount, peak) = (amount?, peak?);
        let seconds = amount / peak;
        (usable(amount) && usable(peak) && usable(seconds)).then_some(seconds)
    };
    let compute = part(demand.work, peaks.flops);
    let memory = part(demand.bytes, peaks.bytes);
    match (compute, memory) {
        (Some(a), Some(b)) => Some(a.max(b)),
        (one, None) | (None, one) => one,
    }
}

/// Assesses the time of one call against the roofline; without a floor, any positive time passes.
pub fn assess_time(time_s: f64, floor_s: Option<f64>) -> Result<(), Implausible> {
    if !(time_s.is_finite() && time_s > 0.0) {
        return Err(Implausible::NotANumber);
    }
    match floor_s {
        Some(floor_s) if time_s < floor_s * ROOFLINE_SLACK => {
            Err(Implausible::BelowRoofline { time_s, floor_s })
        }
        Some(_) | None => Ok(()),
    }
}

/// The largest speedup of the whole when a share of its time, 0 to 1, vanishes.
pub fn amdahl_ratio(share: f64) -> f64 {
    let share = if share.is_nan() {
        1.0
    } else {
        share.clamp(0.0, 1.0)
    };
    1.0 / (1.0 - share)
}

/// Assesses a speedup against the share of the time that was changed, if that is known.
pub fn assess_gain(ratio: f64, share: Option<f64>) -> Result<(), Implausible> {
    if !(ratio.is_finite() && ratio > 0.0) {
        return Err(Implausible::NotANumber);
    }
    let Some(bound) = share.map(amdahl_ratio) else {
        return Ok(());
    };
    if ratio > bound * AMDAHL_SLACK {
        return Err(Implausible::BeyondAmdahl { ratio, bound });
    }
    Ok(())
}
