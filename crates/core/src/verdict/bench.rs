//! What a bench of two equals has found: faster, slower, no difference, or could not tell.

use super::DuelDeadline;
use crate::bench::{Bench, BenchGoal, BenchRule, SpeedupSigns};
use crate::comparison::{Clock, Estimate};
use karve_numerics::stats;
use serde::{Deserialize, Serialize};

/// What a bench has found about B against A.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "finding", rename_all = "snake_case")]
pub enum BenchFinding {
    /// B is faster.
    Faster {
        /// The clock that proves it.
        by: Clock,
    },
    /// B is slower.
    Slower {
        /// The clock that proves it.
        by: Clock,
    },
    /// B is neither faster nor slower by δ or more.
    NoDifference {
        /// δ in percent.
        percent: f64,
        /// The clock that proves it.
        by: Clock,
    },
    /// The metric and the second clock differ: work sleeps, waits or is hidden in threads.
    ClocksDisagree {
        /// The second clock.
        clock: Clock,
        /// The speedup by the metric.
        metric: f64,
        /// The speedup by the second clock.
        second: f64,
    },
    /// The readings support none of these.
    CouldNotTell,
}

impl BenchFinding {
    /// One word or two, for tables.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Faster { .. } => "faster",
            Self::Slower { .. } => "slower",
            Self::NoDifference { .. } => "no difference",
            Self::ClocksDisagree { .. } => "clocks disagree",
            Self::CouldNotTell => "could not tell",
        }
    }

    /// The same next to an interval, so that the two do not contradict each other: an interval that
    /// excludes 1 means likely, though not proven.
    pub fn word_beside(&self, estimate: &Estimate) -> &'static str {
        match (self, estimate.low, estimate.high) {
            (Self::CouldNotTell, Some(low), _) if low > 1.0 => "likely faster",
            (Self::CouldNotTell, _, Some(high)) if high < 1.0 => "likely slower",
            _ => self.word(),
        }
    }

    /// The clock that proves it, if any.
    pub fn by(&self) -> Option<Clock> {
        match self {
            Self::Faster { by } | Self::Slower { by } | Self::NoDifference { by, .. } => Some(*by),
            Self::ClocksDisagree { .. } | Self::CouldNotTell => None,
        }
    }
}

/// What is known about a slowdown that is watched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitVerdict {
    /// B is slower than the limit allows: proven.
    Beyond,
    /// It is not: proven.
    Within,
    /// Neither is.
    NotProven,
}

/// Judges a bench after any block; `None` asks for another one.
pub fn judge_bench(bench: &Bench, time: DuelDeadline) -> Option<BenchFinding> {
    let finding = find(bench);
    let over = bench.n_blocks() >= bench.rule.blocks_max || time == DuelDeadline::Up;
    let n_cases = bench.main().cases.len();
    let open = |finding: BenchFinding| finding == BenchFinding::CouldNotTell;
    let cases_open = || (0..n_cases).any(|index| open(find_case(bench, index)));
    let waits = open(finding)
        || judge_limit(bench) == Some(LimitVerdict::NotProven)
        || (bench.rule.until == BenchGoal::EveryCase && cases_open());
    (over || !waits).then_some(finding)
}

/// What a bench has found overall so far.
pub fn find(bench: &Bench) -> BenchFinding {
    if bench.n_blocks() < bench.rule.blocks_min() {
        return BenchFinding::CouldNotTell;
    }
    let enough = bench.rule.guard_evidence();
    if let [_, second] = bench.counted()
        && bench.clocks_differ()
        && !one_way(bench, enough)
    {
        return BenchFinding::ClocksDisagree {
            clock: second.clock,
            metric: bench.main().overall.estimate().ratio,
            second: second.overall.estimate().ratio,
        };
    }
    let all: Vec<(Clock, &SpeedupSigns)> =
        bench.counted().iter().map(|clock| (clock.clock, &clock.overall)).collect();
    finding_by(&all, &bench.rule, 1.0)
}

/// Whether all clocks lean the same way: then they differ in size only, as on a busy host, which
/// holds up long runs more than short ones.
fn one_way(bench: &Bench, enough: f64) -> bool {
    let all = |lean: fn(&SpeedupSigns) -> &stats::SignEvidence| {
        let mut clocks = bench.counted().iter();
        clocks.all(|clock| lean(&clock.overall).reached(enough))
    };
    all(|signs| &signs.above) || all(|signs| &signs.below)
}

/// What it has found about one case, by its index. With several cases each needs more evidence,
/// so that the error bound holds for all of them together.
pub fn find_case(bench: &Bench, index: usize) -> BenchFinding {
    let all: Vec<(Clock, &SpeedupSigns)> = bench
        .counted()
        .iter()
        .filter_map(|clock| Some((clock.clock, &clock.cases.get(index)?.signs)))
        .collect();
    if bench.n_blocks() < bench.rule.blocks_min() || all.is_empty() {
        return BenchFinding::CouldNotTell;
    }
    finding_by(&all, &bench.rule, bench.main().cases.len() as f64)
}

/// Whether the watched slowdown is proven or disproven; `None` if none is watched.
pub fn judge_limit(bench: &Bench) -> Option<LimitVerdict> {
    bench.rule.limit_ln?;
    let (needed, enough) = (bench.rule.differs_evidence(), bench.rule.guard_evidence());
    let mut clocks = bench.counted().iter().map(|clock| &clock.overall);
    let steady = bench.n_blocks() >= bench.rule.blocks_min();
    let beyond =
        |signs: &SpeedupSigns| signs.beyond.reached(needed) && !signs.above.reached(enough);
    Some(if steady && clocks.clone().any(beyond) {
        LimitVerdict::Beyond
    } else if steady && clocks.any(|signs| signs.within.reached(enough)) {
        LimitVerdict::Within
    } else {
        LimitVerdict::NotProven
    })
}

/// The finding on the same statement by all clocks; `times` is how much more evidence it needs.
fn finding_by(all: &[(Clock, &SpeedupSigns)], rule: &BenchRule, times: f64) -> BenchFinding {
    let needed = rule.differs_evidence() * times;
    let enough = rule.guard_evidence() * times;
    let contradicted = |by: Clock, against: fn(&SpeedupSigns) -> &stats::SignEvidence| {
        let mut others = all.iter().filter(|(clock, _)| *clock != by);
        others.any(|(_, signs)| against(signs).reached(rule.guard_evidence()))
    };
    for (by, signs) in all {
        let (faster, slower) = (signs.faster.reached(needed), signs.slower.reached(needed));
        // Both at once: the sides changed during the bench, so neither claim holds.
        if faster == slower {
            continue;
        }
        // The estimate comes last: it takes a quadratic number of pairs.
        let large = |sign: f64| {
            let estimate = stats::hodges_lehmann(&signs.ln_speedups);
            estimate.is_some_and(|estimate| sign * estimate >= rule.effect_ln)
        };
        if faster && !contradicted(*by, |other| &other.below) && large(1.0) {
            return BenchFinding::Faster { by: *by };
        }
        if slower && !contradicted(*by, |other| &other.above) && large(-1.0) {
            return BenchFinding::Slower { by: *by };
        }
    }
    let same =
        |signs: &SpeedupSigns| signs.not_faster.reached(enough) && signs.not_slower.reached(enough);
    match all.iter().find(|(_, signs)| same(signs)) {
        Some((by, _)) => {
            BenchFinding::NoDifference { percent: rule.effect_ln.exp_m1() * 100.0, by: *by }
        }
        None => BenchFinding::CouldNotTell,
    }
}

#[cfg(test)]
mod tests;
