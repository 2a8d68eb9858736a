//! Parent against candidate as plain data: what a duel has shown, per case and overall.

use crate::charter::{Metric, OwnClock};
use crate::measurement::{Pair, PassRates, Sample};
use karve_numerics::stats;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Level of every interval that is shown.
pub const INTERVAL_ALPHA: f64 = 0.05;

/// What a duel has shown, as plain data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Blocks that counted.
    pub blocks: u32,
    /// The geometric mean over the cases.
    pub overall: Estimate,
    /// Highest evidence for a speedup above the null.
    pub evidence_faster: f64,
    /// Highest evidence for a speedup below the minimum effect.
    pub evidence_not_faster: f64,
    /// Case by case.
    pub cases: Vec<CaseComparison>,
    /// What the second clock shows, if one counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub second: Option<SecondClock>,
    /// How karve's own clock contradicts a self-reported gain, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contradiction: Option<ClaimCheck>,
    /// What each device showed, if there were several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<DeviceEstimate>,
}

/// What a duel showed on one of its devices.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeviceEstimate {
    /// Its host, its id and its driver.
    pub device: String,
    /// Blocks that counted there.
    pub blocks: u32,
    /// The geometric mean over the cases.
    pub overall: Estimate,
    /// Whether it is one of the two that prove that the gain depends on the device.
    pub differs: bool,
}

impl DeviceEstimate {
    /// The devices that prove that the gain depends on the device, in words; none if none do.
    pub fn describe_effect(devices: &[Self]) -> Option<String> {
        let differing = devices.iter().filter(|one| one.differs);
        let parts = differing.map(|one| format!("{} on {}", one.overall.describe(), one.device));
        let parts: Vec<String> = parts.collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    }
}

impl Comparison {
    /// The candidate's median in each case.
    pub fn candidate_values(&self) -> BTreeMap<usize, f64> {
        self.cases.iter().map(|case| (case.case, case.candidate_median)).collect()
    }

    /// The second clock, if it and not the metric shows most that there is no gain.
    pub fn disproved_by(&self) -> Option<&SecondClock> {
        self.second.as_ref().filter(|other| other.evidence_not_faster > self.evidence_not_faster)
    }
}

/// By how much a run of the benchmark became shorter.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClaimCheck {
    /// By what it reports: its calls together, at least.
    pub claimed_s: f64,
    /// By karve's own clock around the command.
    pub seen_s: f64,
}

/// What the second clock of a duel shows.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SecondClock {
    /// Which clock.
    pub clock: Clock,
    /// The geometric mean over the cases.
    pub overall: Estimate,
    /// Highest evidence for a speedup above the null.
    pub evidence_faster: f64,
    /// Highest evidence for a speedup below the minimum effect.
    pub evidence_not_faster: f64,
}

/// One case of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CaseComparison {
    /// Index of the case in the charter.
    pub case: usize,
    /// The speedup.
    pub estimate: Estimate,
    /// Better, worse, or indistinguishable.
    pub change: SpeedChange,
    /// How much.
    pub magnitude: Magnitude,
    /// Median reading of the parent, in the metric's unit.
    pub parent_median: f64,
    /// Median reading of the candidate, in the metric's unit.
    pub candidate_median: f64,
    /// The candidate's passes, where the metric is made of two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passes: Option<PassRates>,
    /// The least signal-to-noise ratio that the benchmark reported for the candidate, in decibels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snr_db: Option<f64>,
}

/// How far apart two estimates from the same readings may be.
const NEAR: f64 = 1e-9;

/// A speedup with its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The median of the pairs; 1.1 means 10% faster.
    pub ratio: f64,
    /// Lower end of the 95% confidence sequence, if there are enough blocks.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
}

/// Whether something is better: only if the whole interval says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum SpeedChange {
    Improved,
    Regressed,
    Inconclusive,
}

/// How much something changed, by the estimate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Magnitude {
    /// Below 1%.
    Negligible,
    /// 1 to 2%.
    Small,
    /// 2 to 5%.
    Medium,
    /// Above 5%.
    Large,
}

impl Estimate {
    /// The estimate from log speedups.
    pub fn of(ln_speedups: &[f64]) -> Self {
        let interval = stats::interval(ln_speedups, INTERVAL_ALPHA);
        Self {
            // The median, because the interval is for the median.
            ratio: stats::median(ln_speedups).map_or(f64::NAN, f64::exp),
            low: interval.map(|(low, _)| low.exp()),
            high: interval.map(|(_, high)| high.exp()),
        }
    }

    /// Whether both say the same, apart from the last digits.
    pub(crate) fn is_near(&self, other: &Self) -> bool {
        let near = |a: f64, b: f64| (a - b).abs() <= NEAR * a.abs();
        let ends = [(self.low, other.low), (self.high, other.high)];
        near(self.ratio, other.ratio)
            && ends.into_iter().all(|ends| match ends {
                (Some(a), Some(b)) => near(a, b),
                (a, b) => a.is_none() && b.is_none(),
            })
    }

    /// The estimate with its interval, in words.
    pub fn describe(&self) -> String {
        match (self.low, self.high) {
            (Some(low), Some(high)) => format!("{:.3}x [{low:.3}, {high:.3}]", self.ratio),
            _ => format!("{:.3}x", self.ratio),
        }
    }

    pub(crate) fn change(&self) -> SpeedChange {
        match (self.low, self.high) {
            (Some(low), _) if low > 1.0 => SpeedChange::Improved,
            (_, Some(high)) if high < 1.0 => SpeedChange::Regressed,
            _ => SpeedChange::Inconclusive,
        }
    }

    pub(crate) fn magnitude(&self) -> Magnitude {
        let percent = (self.ratio.ln().abs().exp() - 1.0) * 100.0;
        if percent >= 5.0 {
            Magnitude::Large
        } else if percent >= 2.0 {
            Magnitude::Medium
        } else if percent >= 1.0 {
            Magnitude::Small
        } else {
            Magnitude::Negligible
        }
    }
}

/// The clock of a reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Clock {
    /// The metric of the charter.
    Metric,
    /// The CPU time of the command's process tree.
    Cpu,
    /// The wall time of the command.
    Wall,
}

impl Clock {
    /// The clock to read alongside one of karve's own.
    pub fn beside(own: OwnClock) -> Self {
        match own {
            OwnClock::Wall => Self::Cpu,
            OwnClock::Cpu => Self::Wall,
        }
    }

    /// Its name for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Metric => "metric",
            Self::Cpu => "CPU time",
            Self::Wall => "wall time",
        }
    }

    /// Its name for people if the metric is known: a metric that is one of karve's own clocks goes
    /// by the name of that clock.
    pub fn called(self, metric: &Metric) -> &str {
        match (self, metric.own_clock()) {
            (Self::Metric, Some(OwnClock::Wall)) => Self::Wall.name(),
            (Self::Metric, Some(OwnClock::Cpu)) => Self::Cpu.name(),
            (Self::Metric, None) => &metric.name,
            (Self::Cpu | Self::Wall, _) => self.name(),
        }
    }

    /// Log speedup of a pair and the readings it comes from.
    pub(crate) fn read(self, metric: &Metric, pair: &Pair) -> (f64, (f64, f64)) {
        // A clock that counts whole microseconds reads 0 for anything shorter.
        let micros = |us: u64| us.max(1) as f64;
        let of = |sample: &Sample| match self {
            Self::Metric => sample.value,
            Self::Cpu => micros(sample.cpu_us),
            Self::Wall => micros(sample.wall_us),
        };
        let values = (of(&pair.parent), of(&pair.candidate));
        let ln_speedup = match self {
            Self::Metric => metric.ln_speedup(values.0, values.1),
            Self::Cpu | Self::Wall => values.0.ln() - values.1.ln(),
        };
        (ln_speedup, values)
    }
}
