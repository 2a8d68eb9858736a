//! What a device can do at most, what a call must do at least, and the least time that follows.

use serde::{Deserialize, Serialize};

/// The least operations or bytes of a call that are believed; fractions may be an average.
pub const AMOUNT_MIN: f64 = 1e-6;

/// The most: no device does as much in a century.
pub const AMOUNT_MAX: f64 = 1e24;

/// Whether a call can have so many operations or bytes.
pub fn is_amount(amount: f64) -> bool {
    (AMOUNT_MIN..=AMOUNT_MAX).contains(&amount)
}

/// The least that one call must do.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CallDemand {
    /// Floating-point operations.
    pub work: Option<f64>,
    /// Bytes that must be read or written, each counted once.
    pub bytes: Option<f64>,
}

/// The most that the device can do.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DevicePeaks {
    /// Floating-point operations per second.
    pub flops: Option<f64>,
    /// Bytes per second.
    pub bytes: Option<f64>,
}

/// The most that a host or a device can do, measured or declared.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Roof {
    /// Floating-point operations per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flops: Option<f64>,
    /// The memory bandwidth; small amounts of data are faster because of caches.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rates: Vec<ByteRate>,
    /// Floating-point operations per second of one core, where that was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flops_one: Option<f64>,
    /// The cache levels and memory, the nearest first, if they were measured. They are used to show
    /// calls; plausibility of a gain is judged by what all cores can do together.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub levels: Vec<RoofLevel>,
}

/// The bandwidth of one core and of all cores at a cache level.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoofLevel {
    /// Its name.
    pub name: String,
    /// One core.
    pub one: LevelRate,
    /// All together.
    pub all: LevelRate,
}

/// The bandwidth at a cache level, and its capacity.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LevelRate {
    /// Bytes per second.
    pub per_s: f64,
    /// The capacity in bytes; memory is unlimited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holds: Option<u64>,
}

/// Which cores of a host a call is compared with.
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

    /// The bandwidth of these cores at a level.
    pub fn of(self, level: &RoofLevel) -> LevelRate {
        match self {
            Self::One => level.one,
            Self::All => level.all,
        }
    }
}

/// A measured bandwidth.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ByteRate {
    /// When this many bytes are moved repeatedly.
    pub bytes: u64,
    /// Bytes per second.
    pub per_s: f64,
}

/// Part of the bytes may be in a nearer cache: a rate applies up to this many times its bytes.
const RATE_FACTOR: f64 = 4.0;

impl Roof {
    /// The peaks for a call that moves this many bytes. The rate is that of the largest amount that
    /// is well below them, so that data that stays in a cache is not considered impossible.
    pub fn peaks(&self, demand: CallDemand) -> DevicePeaks {
        let moved = demand.bytes.unwrap_or(0.0);
        let holds = |rate: &&ByteRate| rate.bytes as f64 * RATE_FACTOR <= moved;
        let rate = self.rates.iter().filter(holds).max_by_key(|r| r.bytes);
        DevicePeaks { flops: self.flops, bytes: rate.map(|rate| rate.per_s) }
    }

    /// The peaks to show a call against: where no rate is known for so few bytes, the best one, so
    /// that a ceiling is too high rather than too low.
    pub fn shown_peaks(&self, demand: CallDemand) -> DevicePeaks {
        let mut peaks = self.peaks(demand);
        let best = self.rates.iter().map(|rate| rate.per_s).reduce(f64::max);
        peaks.bytes = peaks.bytes.or(best);
        peaks
    }

    /// The peaks to show a call against that runs on some cores, with the level that fits its
    /// bytes. Without measured levels, the peaks of the whole device.
    pub fn peaks_on(&self, cores: Cores, demand: CallDemand) -> (DevicePeaks, Option<&RoofLevel>) {
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
        (DevicePeaks { flops, bytes }, Some(level))
    }

    /// The shortest possible time of one call, in seconds, as far as it is known.
    pub fn floor_s(&self, demand: CallDemand) -> Option<f64> {
        roofline_s(demand, self.peaks(demand))
    }
}

/// The shortest possible time of one call, in seconds, as far as work, bytes and peaks are known.
pub fn roofline_s(demand: CallDemand, peaks: DevicePeaks) -> Option<f64> {
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
