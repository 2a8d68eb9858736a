//! Parent and candidate, interleaved: the evidence so far, by each clock that counts.
//!
//! A duel is a fold over its blocks: pushing and looking may be mixed in any way. Nothing here
//! judges; `verdict` does.

use crate::charter::{Charter, ClockRule, Metric};
use crate::comparison::{CaseComparison, Clock, Comparison, Estimate, SecondClock};
use crate::measurement::{Block, DiscardReason, Pair, PassRates, SlowTurns};
use crate::policy::{SmallGain, WarmUpRule};
use crate::sampling::WarmUp;
use karve_numerics::stats::{self, DrawRng, SignEvidence};
use serde::{Deserialize, Serialize};

mod claims;
mod strata;
mod turns;

pub use claims::{CaseClaim, ClaimTrack, fixed_calls};
pub use strata::DeviceStrata;
pub use turns::TurnTrack;

/// Clocks that differ by more than this ratio do not see the same work.
pub const DISAGREEMENT_RATIO: f64 = 1.05;

/// Large gains are stretched by a busy host, more for one clock than for the other: by up to this
/// share of the larger log speedup they still see the same work.
const DISAGREEMENT_SHARE: f64 = 0.3;

/// Calls that pay for the gain of the usual ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SlowCalls {
    /// All calls together.
    Total,
    /// The slowest calls.
    Tail,
    /// Calls of a process that has lived for long.
    Aged,
}

impl SlowCalls {
    /// The statements about turns that one duel may prove: in total, at the 90th percentile, at the
    /// slowest turn, and on the number of slow ones. Each needs that many times the evidence for
    /// the same error bound.
    pub(crate) const N_CLAIMS: f64 = 3.0 + SlowTurns::RATIOS.len() as f64;
}

/// The thresholds of one duel, in natural logs where they are ratios.
#[derive(Clone, Debug, PartialEq)]
pub struct DuelRule {
    /// θ0: the speedup that must be disproved.
    pub null_ln: f64,
    /// δ: the smallest speedup worth keeping.
    pub effect_ln: f64,
    /// Evidence that a keep needs.
    pub keep_evidence: f64,
    /// Whether a keep may follow from this duel alone. One that only has to be promising is
    /// followed by another.
    pub is_final: bool,
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
    /// The clock that counts alongside the metric, if any.
    pub second: Option<Clock>,
    /// Whether a slower command is worth a note when the metric is reported.
    pub watches_command: bool,
    /// Which blocks only warm up.
    pub warm_up: WarmUpRule,
}

impl DuelRule {
    /// The charter's rule, for a duel that needs `keep_evidence`, by the metric alone.
    pub fn of(charter: &Charter, keep_evidence: f64) -> Self {
        let accept = &charter.policy.accept;
        Self {
            null_ln: accept.null_ratio.ln(),
            effect_ln: accept.effect_ratio.ln(),
            keep_evidence,
            is_final: true,
            guard_evidence: accept.guard_evidence,
            tail_ratio: accept.tail_ratio,
            blocks_min: accept.blocks_min,
            blocks_max: accept.blocks_max,
            small_gain: accept.small_gain,
            small_gain_ln: accept.small_gain_ratio.ln(),
            second: None,
            watches_command: charter.metric.clocks != ClockRule::Metric,
            warm_up: accept.warm_up,
        }
    }

    /// The same rule with a second clock.
    #[must_use]
    pub fn with_second(mut self, second: Option<Clock>) -> Self {
        self.second = second;
        self
    }

    /// The same rule for two kernels that should be equal: any difference counts.
    #[must_use]
    pub fn for_equals(mut self) -> Self {
        self.null_ln = 0.0;
        self.effect_ln = 0.0;
        self
    }
}

/// What one clock shows for one case.
#[derive(Clone, Debug)]
pub struct CaseTrack {
    /// Index of the case in the charter.
    pub case: usize,
    /// How much it may lose, as a log; `None` if it is not checked.
    pub regress_ln: Option<f64>,
    /// The loss from which it is reverted, as a log: that, or less.
    pub loss_ln: Option<f64>,
    /// Log speedups, one per block.
    pub ln_speedups: Vec<f64>,
    /// Readings of the parent and the candidate, in the clock's unit.
    pub values: Vec<(f64, f64)>,
    /// The candidate's passes, where the metric is made of two.
    pub passes: Vec<PassRates>,
    /// The least signal-to-noise ratio that the benchmark reported for the candidate.
    pub snr_db: Option<f64>,
    /// Evidence that it did not lose more than allowed.
    pub safe: SignEvidence,
    /// Evidence that it did.
    pub regressed: SignEvidence,
}

/// What one clock shows, per case and overall.
#[derive(Clone, Debug)]
pub struct ClockTrack {
    /// The clock.
    pub clock: Clock,
    /// One entry per case, in the order of the blocks.
    pub cases: Vec<CaseTrack>,
    /// Log of the geometric-mean speedup, one per block.
    pub ln_speedups: Vec<f64>,
    /// Evidence for a speedup above θ0.
    pub faster: SignEvidence,
    /// Evidence for a speedup below δ.
    pub not_faster: SignEvidence,
    /// Evidence for a speedup below 1.
    pub slower: SignEvidence,
    /// What all turns show, where a block has several.
    pub turns: TurnTrack,
}

/// Parent and candidate, interleaved, and the evidence so far.
#[derive(Clone, Debug)]
pub struct Duel {
    /// The thresholds.
    pub rule: DuelRule,
    metric: Metric,
    /// What each clock shows: the metric first, then the second one where it counts.
    pub tracks: Vec<ClockTrack>,
    /// Evidence that the metric shows more than the second clock does, by over 5%.
    pub ahead: SignEvidence,
    /// Evidence that it shows less, by over 5%.
    pub behind: SignEvidence,
    /// Evidence that the whole command became slower by over 5%, where the metric is reported.
    pub command_slower: SignEvidence,
    /// What a self-reported metric claims, against karve's own clock.
    claims: ClaimTrack,
    warm_up: WarmUp,
    /// The devices that it ran on.
    pub strata: DeviceStrata,
    /// The seed of the last block, which no candidate knows.
    last_seed: u64,
}

/// Why a block cannot be taken in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockError(pub String);

impl Duel {
    /// A duel on `cases` before its first block.
    pub fn new(charter: &Charter, cases: &[usize], rule: DuelRule) -> Self {
        let accept = &charter.policy.accept;
        let is_minor = |case: &usize| charter.cases.get(*case).is_some_and(|case| case.minor);
        let regress_ln = |case: &usize| {
            accept.case_regress_ratio.map(|ratio| match is_minor(case) {
                true => ratio.max(accept.minor_regress_ratio).ln(),
                false => ratio.ln(),
            })
        };
        let loss_ln = |case: &usize| {
            let losses = accept.case_loss_ratio.filter(|_| !is_minor(case));
            regress_ln(case).map(|limit| losses.map_or(limit, |ratio| ratio.ln().min(limit)))
        };
        let track = |case: &usize| CaseTrack {
            case: *case,
            regress_ln: regress_ln(case),
            loss_ln: loss_ln(case),
            ln_speedups: Vec::new(),
            values: Vec::new(),
            passes: Vec::new(),
            snr_db: None,
            safe: SignEvidence::default(),
            regressed: SignEvidence::default(),
        };
        let clocks = std::iter::once(Clock::Metric).chain(rule.second);
        let tracks = clocks.map(|clock| ClockTrack {
            clock,
            cases: cases.iter().map(track).collect(),
            ln_speedups: Vec::new(),
            faster: SignEvidence::default(),
            not_faster: SignEvidence::default(),
            slower: SignEvidence::default(),
            turns: TurnTrack::default(),
        });
        Self {
            tracks: tracks.collect(),
            warm_up: WarmUp::new(rule.warm_up),
            rule,
            metric: charter.metric.clone(),
            ahead: SignEvidence::default(),
            behind: SignEvidence::default(),
            command_slower: SignEvidence::default(),
            claims: ClaimTrack::default(),
            strata: DeviceStrata::default(),
            last_seed: 0,
        }
    }

    /// The same duel, with what a self-reported metric claims about the time of whole runs.
    #[must_use]
    pub fn with_claims(mut self, claims: Vec<CaseClaim>) -> Self {
        self.claims = ClaimTrack::of(&self.metric, claims);
        self
    }

    /// What a self-reported metric claims, and what karve's own clock shows.
    pub fn claims(&self) -> &ClaimTrack {
        &self.claims
    }

    /// Whether a coin that no candidate can foresee falls on its side, for the next block; it does
    /// so in one block out of `odds`.
    pub fn toss(&self, odds: usize) -> bool {
        DrawRng::new(self.last_seed).below(odds) == 0
    }

    /// What the metric shows.
    pub fn main(&self) -> &ClockTrack {
        // There is always one: `new` makes it.
        &self.tracks[0]
    }

    /// What the second clock shows, if it counts.
    pub fn second(&self) -> Option<&ClockTrack> {
        self.tracks.get(1)
    }

    /// Indices of the cases, in order.
    pub fn cases(&self) -> Vec<usize> {
        self.main().cases.iter().map(|track| track.case).collect()
    }

    /// Blocks that count.
    pub fn n_blocks(&self) -> u32 {
        u32::try_from(self.main().ln_speedups.len()).unwrap_or(u32::MAX)
    }

    /// Why the next block does not count; `None` if it does.
    pub fn discards(&self, block: &Block) -> Option<DiscardReason> {
        self.warm_up_of(block).discards(&block.pairs)
    }

    /// The warm-up that a block is part of: a device that is new to the duel has its own.
    fn warm_up_of(&self, block: &Block) -> WarmUp {
        match self.strata.is_new(block) {
            true => WarmUp::new(self.rule.warm_up),
            false => self.warm_up,
        }
    }

    /// Refuses a block that is discarded, or not, against the warm-up rule: whoever can choose
    /// which blocks count can choose the verdict.
    pub fn check_discard(&self, block: &Block) -> Result<(), BlockError> {
        if block.discarded == self.discards(block) {
            return Ok(());
        }
        let why = "exactly the warm-up blocks of a duel must be discarded";
        Err(BlockError(why.to_owned()))
    }

    /// The same duel after a break: it warms up again.
    #[must_use]
    pub fn after_a_break(mut self) -> Self {
        self.warm_up = WarmUp::new(self.rule.warm_up);
        self
    }

    /// Takes in one block; a discarded one is checked and left out.
    pub fn take(&mut self, block: &Block) -> Result<(), BlockError> {
        check_block(&self.cases(), block)?;
        self.warm_up = self.warm_up_of(block);
        self.warm_up.record_block(&block.pairs);
        self.strata.saw(block);
        self.last_seed = block.seed;
        if block.discarded.is_some() {
            return Ok(());
        }
        let rule = &self.rule;
        if block.aged > 0 {
            // They show what becomes of a process; only the others are evidence for a gain.
            let tracks = self.tracks.iter_mut();
            tracks.for_each(|t| t.turns.take_aged(t.clock, &block.pairs, &self.metric));
            return Ok(());
        }
        let overall: Vec<f64> = self
            .tracks
            .iter_mut()
            .map(|track| track.take(&block.pairs, rule, &self.metric))
            .collect();
        self.claims.take(block);
        self.strata.counts();
        let limit = DISAGREEMENT_RATIO.ln();
        match overall[..] {
            [metric, second] => {
                let limit = limit.max(DISAGREEMENT_SHARE * metric.abs().max(second.abs()));
                self.ahead.see(metric - second > limit);
                self.behind.see(second - metric > limit);
            }
            _ if self.rule.watches_command => {
                let walls = block.pairs.iter();
                let walls = walls.map(|pair| Clock::Wall.read(&self.metric, pair).0);
                let wall = walls.sum::<f64>() / block.pairs.len() as f64;
                self.command_slower.see(wall < -limit);
            }
            _ => {}
        }
        Ok(())
    }

    /// What the duel has shown.
    pub fn comparison(&self) -> Comparison {
        let main = self.main();
        Comparison {
            blocks: self.n_blocks(),
            overall: self.estimate(&main.ln_speedups),
            evidence_faster: main.faster.max(),
            evidence_not_faster: main.not_faster.max(),
            cases: main.cases.iter().map(|case| self.case_comparison(case)).collect(),
            second: self.second().map(|track| SecondClock {
                clock: track.clock,
                overall: self.estimate(&track.ln_speedups),
                evidence_faster: track.faster.max(),
                evidence_not_faster: track.not_faster.max(),
            }),
            contradiction: self.claims.contradiction(),
            devices: self.device_estimates(),
        }
    }

    fn case_comparison(&self, case: &CaseTrack) -> CaseComparison {
        let estimate = self.estimate(&case.ln_speedups);
        // Times of several devices have no common median.
        let values = self.strata.largest(&case.values);
        let side = |pick: fn(&(f64, f64)) -> f64| {
            let values: Vec<f64> = values.iter().map(pick).collect();
            stats::median(&values).unwrap_or(f64::NAN)
        };
        CaseComparison {
            case: case.case,
            change: estimate.change(),
            magnitude: estimate.magnitude(),
            parent_median: side(|pair| pair.0),
            candidate_median: side(|pair| pair.1),
            passes: PassRates::median(&case.passes),
            snr_db: case.snr_db,
            estimate,
        }
    }

    /// Log speedup by the sum of all turns, by one of the clocks.
    pub fn total_ln(&self, track: &ClockTrack) -> f64 {
        track.turns.total_ln(track.clock, &self.metric)
    }

    /// The geometric mean over cases of the tail ratios, by one of the clocks.
    pub fn tail_ratio(&self, track: &ClockTrack) -> f64 {
        let time = |value: f64| match track.clock {
            // For a rate the slow tail is the low one; as times both are the reciprocal.
            Clock::Metric => self.metric.ln_speedup(value, 1.0).exp(),
            Clock::Cpu | Clock::Wall => value,
        };
        let of_case = |case: &CaseTrack| self.strata.tail_ratio(&case.values, time);
        let ratios: Vec<f64> = track.cases.iter().map(of_case).collect();
        stats::geometric_mean(&ratios).unwrap_or(f64::NAN)
    }
}

/// Refuses a block that does not have one usable pair per case, in order.
pub(crate) fn check_block(cases: &[usize], block: &Block) -> Result<(), BlockError> {
    let bad = |why: &str| Err(BlockError(why.to_owned()));
    if block.pairs.len() != cases.len() {
        return bad("the block does not have one pair for each case");
    }
    for (case, pair) in cases.iter().zip(&block.pairs) {
        let usable = |value: f64| value.is_finite() && value > 0.0;
        if pair.case != *case {
            return bad("the pairs of the block are not in order");
        }
        if !usable(pair.parent.value) || !usable(pair.candidate.value) {
            return bad("a reading is not a positive number");
        }
    }
    Ok(())
}

impl ClockTrack {
    /// Takes in one block and returns its overall log speedup.
    fn take(&mut self, pairs: &[Pair], rule: &DuelRule, metric: &Metric) -> f64 {
        let mut sum = 0.0;
        for (case, pair) in self.cases.iter_mut().zip(pairs) {
            let (ln_speedup, values) = self.clock.read(metric, pair);
            sum += ln_speedup;
            case.values.push(values);
            case.passes.extend(pair.candidate.passes);
            let seen = case.snr_db.into_iter().chain(pair.candidate.snr_db);
            case.snr_db = seen.reduce(f64::min);
            case.ln_speedups.push(ln_speedup);
            if let (Some(regress_ln), Some(loss_ln)) = (case.regress_ln, case.loss_ln) {
                case.safe.see(ln_speedup > -regress_ln);
                case.regressed.see(ln_speedup < -loss_ln);
            }
        }
        self.turns.take(self.clock, pairs, rule, metric);
        let overall = sum / self.cases.len() as f64;
        self.ln_speedups.push(overall);
        self.faster.see(overall > rule.null_ln);
        self.not_faster.see(overall < rule.effect_ln);
        self.slower.see(overall < 0.0);
        overall
    }
}

impl CaseTrack {
    /// Whether a loss for which it is reverted is proven. Where any loss counts, a case without one
    /// is as likely to look worse as better, so all cases share the error.
    pub(crate) fn lost(&self, enough: f64, cases: usize) -> bool {
        let shared = if self.is_strict() { cases as f64 } else { 1.0 };
        self.regressed.reached(enough * shared)
    }

    /// Whether it is reverted for less than it may lose at most.
    fn is_strict(&self) -> bool {
        self.loss_ln < self.regress_ln
    }

    /// Whether its interval shows a loss that must be gone, or proven, before anything is kept.
    pub(crate) fn may_have_lost(&self) -> bool {
        let high = Estimate::of(&self.ln_speedups).high;
        let limit = self.loss_ln.map_or(f64::INFINITY, f64::exp);
        self.is_strict() && high.is_some_and(|high| high < limit.recip())
    }
}
