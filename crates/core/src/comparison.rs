//! Parent against candidate: what a duel has shown so far, per case and overall.

use crate::charter::{Charter, Metric};
use crate::measurement::Block;
use crate::policy::SmallGain;
use crate::stats::{self, Evidence};
use serde::{Deserialize, Serialize};

/// Level of every interval that is shown.
pub const INTERVAL_ALPHA: f64 = 0.05;

/// The thresholds of one duel, in natural logs where they are ratios.
#[derive(Clone, Debug, PartialEq)]
pub struct DuelRule {
    /// θ0: the speedup that must be disproved.
    pub null_ln: f64,
    /// δ: the smallest speedup worth keeping.
    pub effect_ln: f64,
    /// Evidence that a keep needs.
    pub keep_evidence: f64,
    /// Evidence that a drop or a guard needs.
    pub guard_evidence: f64,
    /// The highest tail ratio.
    pub tail_ratio: f64,
    /// Fewest blocks.
    pub blocks_min: u32,
    /// Most blocks.
    pub blocks_max: u32,
    /// What happens to a small gain.
    pub small_gain: SmallGain,
    /// Where a gain stops being small.
    pub small_gain_ln: f64,
}

impl DuelRule {
    /// The charter's rule, for a duel that needs `keep_evidence`.
    pub fn of(charter: &Charter, keep_evidence: f64) -> Self {
        let accept = &charter.policy.accept;
        Self {
            null_ln: accept.null_ratio.ln(),
            effect_ln: accept.effect_ratio.ln(),
            keep_evidence,
            guard_evidence: accept.guard_evidence,
            tail_ratio: accept.tail_ratio,
            blocks_min: accept.blocks_min,
            blocks_max: accept.blocks_max,
            small_gain: accept.small_gain,
            small_gain_ln: accept.small_gain_ratio.ln(),
        }
    }
}

/// The readings of one case in a duel.
#[derive(Clone, Debug)]
pub struct CaseTrack {
    /// Index of the case in the charter.
    pub case: usize,
    /// How much it may lose, as a log; `None` if nobody looks.
    pub regress_ln: Option<f64>,
    /// Log speedups, one per block.
    pub ln_speedups: Vec<f64>,
    /// Readings of the parent and the candidate, in the metric's unit.
    pub values: Vec<(f64, f64)>,
    /// Evidence that it did not lose more than allowed.
    pub safe: Evidence,
    /// Evidence that it did.
    pub regressed: Evidence,
}

/// Parent and candidate by turns, and what that has shown.
#[derive(Clone, Debug)]
pub struct Duel {
    /// The thresholds.
    pub rule: DuelRule,
    metric: Metric,
    /// One track per case, in the order of the blocks.
    pub tracks: Vec<CaseTrack>,
    /// Log of the geometric-mean speedup, one per block.
    pub ln_speedups: Vec<f64>,
    /// Evidence for a speedup above θ0.
    pub faster: Evidence,
    /// Evidence for a speedup below δ.
    pub not_faster: Evidence,
}

/// Why a block cannot be taken in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadBlock(pub String);

impl Duel {
    /// A duel on `cases` before its first block.
    pub fn new(charter: &Charter, cases: &[usize], rule: DuelRule) -> Self {
        let accept = &charter.policy.accept;
        let track = |case: &usize| CaseTrack {
            case: *case,
            regress_ln: accept.case_regress_ratio.map(|ratio| {
                let minor = charter.cases.get(*case).is_some_and(|case| case.minor);
                if minor {
                    ratio.max(accept.minor_regress_ratio).ln()
                } else {
                    ratio.ln()
                }
            }),
            ln_speedups: Vec::new(),
            values: Vec::new(),
            safe: Evidence::default(),
            regressed: Evidence::default(),
        };
        Self {
            rule,
            metric: charter.metric.clone(),
            tracks: cases.iter().map(track).collect(),
            ln_speedups: Vec::new(),
            faster: Evidence::default(),
            not_faster: Evidence::default(),
        }
    }

    /// Indices of the cases, in order.
    pub fn cases(&self) -> Vec<usize> {
        self.tracks.iter().map(|track| track.case).collect()
    }

    /// Blocks that count.
    pub fn n_blocks(&self) -> u32 {
        u32::try_from(self.ln_speedups.len()).unwrap_or(u32::MAX)
    }

    /// Takes in one block; a discarded one is checked and left out.
    pub fn take(&mut self, block: &Block) -> Result<(), BadBlock> {
        if block.pairs.len() != self.tracks.len() {
            return Err(BadBlock(
                "the block does not have one pair for each case".into(),
            ));
        }
        for (track, pair) in self.tracks.iter().zip(&block.pairs) {
            let usable = |value: f64| value.is_finite() && value > 0.0;
            if pair.case != track.case {
                return Err(BadBlock("the pairs of the block are not in order".into()));
            }
            if !usable(pair.parent.value) || !usable(pair.candidate.value) {
                return Err(BadBlock("a reading is not a positive number".into()));
            }
        }
        if block.discarded.is_some() {
            return Ok(());
        }
        let mut sum = 0.0;
        for (track, pair) in self.tracks.iter_mut().zip(&block.pairs) {
            let values = (pair.parent.value, pair.candidate.value);
            let ln_speedup = self.metric.ln_speedup(values.0, values.1);
            sum += ln_speedup;
            track.values.push(values);
            track.ln_speedups.push(ln_speedup);
            if let Some(regress_ln) = track.regress_ln {
                track.safe.see(ln_speedup > -regress_ln);
                track.regressed.see(ln_speedup < -regress_ln);
            }
        }
        let overall = sum / self.tracks.len() as f64;
        self.ln_speedups.push(overall);
        self.faster.see(overall > self.rule.null_ln);
        self.not_faster.see(overall < self.rule.effect_ln);
        Ok(())
    }

    /// What the duel has shown.
    pub fn comparison(&self) -> Comparison {
        Comparison {
            blocks: self.n_blocks(),
            overall: Estimate::of(&self.ln_speedups),
            evidence_faster: self.faster.max(),
            evidence_not_faster: self.not_faster.max(),
            cases: self.tracks.iter().map(CaseTrack::comparison).collect(),
        }
    }
}

impl CaseTrack {
    fn comparison(&self) -> CaseComparison {
        let estimate = Estimate::of(&self.ln_speedups);
        let side = |pick: fn(&(f64, f64)) -> f64| {
            let values: Vec<f64> = self.values.iter().map(pick).collect();
            stats::median(&values).unwrap_or(f64::NAN)
        };
        CaseComparison {
            case: self.case,
            change: estimate.change(),
            magnitude: estimate.magnitude(),
            parent_median: side(|pair| pair.0),
            candidate_median: side(|pair| pair.1),
            estimate,
        }
    }

    /// p90 of the worse side of the candidate's readings over the parent's.
    pub fn tail_ratio(&self, metric: &Metric) -> f64 {
        // For a rate the slow tail is the low one; as times both are the reciprocal.
        let times = |pick: fn(&(f64, f64)) -> f64| -> Vec<f64> {
            self.values
                .iter()
                .map(|pair| metric.ln_speedup(pick(pair), 1.0).exp())
                .collect()
        };
        let p90 = |values: &[f64]| stats::quantile(values, 0.9).unwrap_or(f64::NAN);
        p90(&times(|pair| pair.1)) / p90(&times(|pair| pair.0))
    }
}

impl Duel {
    /// The geometric mean over cases of the tail ratios.
    pub fn tail_ratio(&self) -> f64 {
        let ratios: Vec<f64> = self
            .tracks
            .iter()
            .map(|t| t.tail_ratio(&self.metric))
            .collect();
        stats::geometric_mean(&ratios).unwrap_or(f64::NAN)
    }
}

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
}

/// One case of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CaseComparison {
    /// Index of the case in the charter.
    pub case: usize,
    /// The speedup.
    pub estimate: Estimate,
    /// Whether it is better, worse, or not told apart.
    pub change: Change,
    /// How much.
    pub magnitude: Magnitude,
    /// Median reading of the parent, in the metric's unit.
    pub parent_median: f64,
    /// Median reading of the candidate, in the metric's unit.
    pub candidate_median: f64,
}

/// A speedup with its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The median of the pairs; 1.1 means 10% faster.
    pub ratio: f64,
    /// Lower end of the 95% confidence sequence, if there are blocks enough.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
}

/// Whether something is better: only if the whole interval says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum Change {
    Improved,
    Regressed,
    NotToldApart,
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
            // The median, because that is what the interval is about.
            ratio: stats::median(ln_speedups).map_or(f64::NAN, f64::exp),
            low: interval.map(|(low, _)| low.exp()),
            high: interval.map(|(_, high)| high.exp()),
        }
    }

    /// The estimate with its interval, in words.
    pub fn describe(&self) -> String {
        match (self.low, self.high) {
            (Some(low), Some(high)) => format!("{:.3}x [{low:.3}, {high:.3}]", self.ratio),
            _ => format!("{:.3}x", self.ratio),
        }
    }

    fn change(&self) -> Change {
        match (self.low, self.high) {
            (Some(low), _) if low > 1.0 => Change::Improved,
            (_, Some(high)) if high < 1.0 => Change::Regressed,
            _ => Change::NotToldApart,
        }
    }

    fn magnitude(&self) -> Magnitude {
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
