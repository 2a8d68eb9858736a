//! Compares two programs as equals: what each clock shows in either direction, overall and per
//! case.
//!
//! A bench is a fold over its blocks like a duel, but no side is the incumbent: swapping the sides
//! mirrors everything. Nothing here judges; `verdict` does.

use crate::charter::Metric;
use crate::comparison::{Clock, Estimate};
use crate::duel::{BlockError, DISAGREEMENT_RATIO, DuelRule, check_block};
use crate::measurement::Block;
use crate::policy::{SmallGain, WarmUpRule};
use crate::sampling::is_busy_thread;
use karve_numerics::stats::{self, SignEvidence};
use serde::{Deserialize, Serialize};

/// Fewest blocks for a finding.
const BLOCKS_MIN: u32 = 8;

/// The thresholds of a bench, in natural logs where they are ratios.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct BenchRule {
    /// θ0: the difference that must be disproved.
    pub null_ln: f64,
    /// δ: the smallest difference that counts as one.
    pub effect_ln: f64,
    /// How often equal sides may be reported as different, over both directions and all clocks.
    pub alpha: f64,
    /// How often a difference of δ may be missed, over all clocks.
    pub beta: f64,
    /// Most blocks.
    pub blocks_max: u32,
    /// The slowdown that is watched for, as a positive log.
    pub limit_ln: Option<f64>,
    /// Whether each case needs a finding of its own before the bench ends.
    pub until: BenchGoal,
    /// The clock that is read alongside the metric, if any.
    pub second: Option<Clock>,
    /// When that clock counts.
    pub admits: SecondClockRule,
}

/// When the second clock counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SecondClockRule {
    /// Always.
    Always,
    /// As soon as both sides have shown that they run in one thread and do not wait. On a busy
    /// host it takes some runs until one is not held up.
    #[default]
    BusyThreads,
}

/// When a bench has found enough.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BenchGoal {
    /// When there is a finding overall.
    #[default]
    Overall,
    /// When there is one for every case too.
    EveryCase,
}

impl Default for BenchRule {
    fn default() -> Self {
        Self {
            null_ln: 1.01_f64.ln(),
            effect_ln: 1.02_f64.ln(),
            alpha: 0.001,
            beta: 0.05,
            blocks_max: 400,
            limit_ln: None,
            until: BenchGoal::Overall,
            second: None,
            admits: SecondClockRule::BusyThreads,
        }
    }
}

impl BenchRule {
    /// Evidence needed to call the sides different, by one of the clocks in one of two directions.
    pub fn differs_evidence(&self) -> f64 {
        2.0 * self.clocks() / self.alpha
    }

    /// Evidence needed for a secondary statement by one of the clocks.
    pub fn guard_evidence(&self) -> f64 {
        self.clocks() / self.beta
    }

    /// Fewest blocks for a finding.
    pub fn blocks_min(&self) -> u32 {
        BLOCKS_MIN.min(self.blocks_max)
    }

    fn clocks(&self) -> f64 {
        if self.second.is_some() { 2.0 } else { 1.0 }
    }

    /// The rule in one direction, as `power` takes it.
    pub fn one_way(&self) -> DuelRule {
        DuelRule {
            null_ln: self.null_ln,
            effect_ln: self.effect_ln,
            keep_evidence: self.differs_evidence(),
            is_final: true,
            guard_evidence: self.guard_evidence(),
            tail_ratio: f64::INFINITY,
            blocks_min: self.blocks_min(),
            blocks_max: self.blocks_max,
            small_gain: SmallGain::AcceptNote,
            small_gain_ln: 0.0,
            second: self.second,
            watches_command: false,
            warm_up: WarmUpRule::Detected,
        }
    }
}

/// Log speedups of B over A, and the evidence that their signs give.
#[derive(Clone, Debug, Default)]
pub struct SpeedupSigns {
    /// One per block.
    pub ln_speedups: Vec<f64>,
    /// For a speedup above θ0.
    pub faster: SignEvidence,
    /// For a slowdown above θ0.
    pub slower: SignEvidence,
    /// For a speedup below δ.
    pub not_faster: SignEvidence,
    /// For a slowdown below δ.
    pub not_slower: SignEvidence,
    /// For any speedup.
    pub above: SignEvidence,
    /// For any slowdown.
    pub below: SignEvidence,
    /// For a slowdown above the watched limit.
    pub beyond: SignEvidence,
    /// For one below it.
    pub within: SignEvidence,
    /// The highest evidence after each block: faster, slower, the same.
    pub path: Vec<[f64; 3]>,
}

impl SpeedupSigns {
    fn see(&mut self, ln_speedup: f64, rule: &BenchRule) {
        self.ln_speedups.push(ln_speedup);
        self.faster.see(ln_speedup > rule.null_ln);
        self.slower.see(ln_speedup < -rule.null_ln);
        self.not_faster.see(ln_speedup < rule.effect_ln);
        self.not_slower.see(ln_speedup > -rule.effect_ln);
        self.above.see(ln_speedup > 0.0);
        self.below.see(ln_speedup < 0.0);
        if let Some(limit) = rule.limit_ln {
            self.beyond.see(ln_speedup < -limit);
            self.within.see(ln_speedup > -limit);
        }
        let highest = [self.faster.max(), self.slower.max(), self.same()];
        self.path.push(highest);
    }

    /// The speedup of B over A with its interval.
    pub fn estimate(&self) -> Estimate {
        Estimate::of(&self.ln_speedups)
    }

    /// Evidence that the sides differ by less than δ: the weaker of the two directions.
    pub fn same(&self) -> f64 {
        self.not_faster.max().min(self.not_slower.max())
    }
}

/// What one clock shows for one case.
#[derive(Clone, Debug)]
pub struct CaseSigns {
    /// Index of the case.
    pub case: usize,
    /// Its log speedups.
    pub signs: SpeedupSigns,
    /// Readings of A and B, in the clock's unit.
    pub values: Vec<(f64, f64)>,
}

/// What one clock shows.
#[derive(Clone, Debug)]
pub struct ClockSigns {
    /// The clock.
    pub clock: Clock,
    /// The geometric mean over the cases.
    pub overall: SpeedupSigns,
    /// Case by case, in the order of the blocks.
    pub cases: Vec<CaseSigns>,
}

/// Two interleaved sides and the evidence so far. In its blocks A is the parent, B the candidate.
#[derive(Clone, Debug)]
pub struct Bench {
    /// The thresholds.
    pub rule: BenchRule,
    metric: Metric,
    /// What each clock shows: the metric first, then the second one where it counts.
    pub clocks: Vec<ClockSigns>,
    /// Evidence that the metric shows more than the second clock does, by over 5%.
    pub ahead: SignEvidence,
    /// Evidence that it shows less, by over 5%.
    pub behind: SignEvidence,
    /// The highest share of CPU time in wall time that A and B showed.
    highest_shares: [f64; 2],
}

impl Bench {
    /// A bench on `cases` before its first block.
    pub fn new(metric: &Metric, cases: &[usize], rule: BenchRule) -> Self {
        let case = |case: &usize| CaseSigns {
            case: *case,
            signs: SpeedupSigns::default(),
            values: Vec::new(),
        };
        let clocks = std::iter::once(Clock::Metric).chain(rule.second);
        let clocks = clocks.map(|clock| ClockSigns {
            clock,
            overall: SpeedupSigns::default(),
            cases: cases.iter().map(case).collect(),
        });
        Self {
            clocks: clocks.collect(),
            rule,
            metric: metric.clone(),
            ahead: SignEvidence::default(),
            behind: SignEvidence::default(),
            highest_shares: [f64::NAN; 2],
        }
    }

    /// What the metric shows.
    pub fn main(&self) -> &ClockSigns {
        // There is always one: `new` makes it.
        &self.clocks[0]
    }

    /// The clocks that count: the metric, and the second one where it is admitted.
    pub fn counted(&self) -> &[ClockSigns] {
        let admitted = match self.rule.admits {
            SecondClockRule::Always => true,
            SecondClockRule::BusyThreads => self.highest_shares.iter().all(|s| is_busy_thread(*s)),
        };
        if admitted { &self.clocks } else { &self.clocks[..1] }
    }

    /// Whether the clocks are proven to differ by more than 5%.
    pub fn clocks_differ(&self) -> bool {
        let enough = self.rule.guard_evidence();
        self.ahead.reached(enough) || self.behind.reached(enough)
    }

    /// Blocks that count.
    pub fn n_blocks(&self) -> u32 {
        u32::try_from(self.main().overall.ln_speedups.len()).unwrap_or(u32::MAX)
    }

    /// Takes in one block; a discarded one is checked and left out.
    pub fn take(&mut self, block: &Block) -> Result<(), BlockError> {
        let cases: Vec<usize> = self.main().cases.iter().map(|case| case.case).collect();
        check_block(&cases, block)?;
        for pair in &block.pairs {
            let [a, b] = &mut self.highest_shares;
            for (highest, sample) in [(a, &pair.parent), (b, &pair.candidate)] {
                *highest = highest.max(sample.cpu_us as f64 / sample.wall_us.max(1) as f64);
            }
        }
        if block.discarded.is_some() {
            return Ok(());
        }
        let mut overall = Vec::with_capacity(self.clocks.len());
        for clock in &mut self.clocks {
            let mut sum = 0.0;
            for (case, pair) in clock.cases.iter_mut().zip(&block.pairs) {
                let (ln_speedup, values) = clock.clock.read(&self.metric, pair);
                sum += ln_speedup;
                case.values.push(values);
                case.signs.see(ln_speedup, &self.rule);
            }
            let mean = sum / clock.cases.len() as f64;
            clock.overall.see(mean, &self.rule);
            overall.push(mean);
        }
        if let [metric, second] = overall[..] {
            let limit = DISAGREEMENT_RATIO.ln();
            self.ahead.see(metric - second > limit);
            self.behind.see(second - metric > limit);
        }
        Ok(())
    }

    /// The smallest difference that this bench would have detected four times out of five, by the
    /// most sensitive clock.
    pub fn smallest_detectable(&self, seed: u64) -> Option<f64> {
        let rule = self.rule.one_way();
        let by = |clock: &ClockSigns| {
            let residuals = crate::power::residuals(&clock.overall.ln_speedups);
            crate::power::smallest_detectable(&residuals, &rule, seed)
        };
        let found = self.counted().iter().filter_map(by);
        found.min_by(f64::total_cmp)
    }
}

impl CaseSigns {
    /// Median readings of A and B.
    pub fn medians(&self) -> (f64, f64) {
        self.each(stats::median)
    }

    /// Mean readings of A and B.
    pub fn means(&self) -> (f64, f64) {
        self.each(|values| {
            let n = values.len();
            (n > 0).then(|| values.iter().sum::<f64>() / n as f64)
        })
    }

    fn each(&self, figure: impl Fn(&[f64]) -> Option<f64>) -> (f64, f64) {
        let side = |pick: fn(&(f64, f64)) -> f64| {
            let values: Vec<f64> = self.values.iter().map(pick).collect();
            figure(&values).unwrap_or(f64::NAN)
        };
        (side(|pair| pair.0), side(|pair| pair.1))
    }
}
