//! The only place that judges: what becomes of a candidate, and why.

use crate::comparison::{Clock, Comparison, DeviceEstimate, SpeedChange};
use crate::duel::{CaseTrack, ClockTrack, Duel, SlowCalls};
use crate::integrity::GainDoubt;
use crate::measurement::Gate;
use crate::policy::SmallGain;
use karve_numerics::stats;
use serde::{Deserialize, Serialize};
use turns::AgedRuling;

mod bands;
mod baselines;
mod bench;
mod contradiction;
mod doubt;
mod keep_note;
mod missing;
mod original;
mod reviewed;
mod stale_memory;
mod turns;
mod words;

pub use bands::{RegressionBand, case_band, overall_band};
pub use baselines::fastest_baseline;
pub use bench::{BenchFinding, LimitVerdict, find, find_case, judge_bench, judge_limit};
pub use doubt::{ImplausibleFigure, ProofState, find_doubts, judge_doubts, judge_proof};
pub use keep_note::KeepNote;
pub use missing::{MissingProof, missing_proof};
pub use original::{InflatedGain, OriginalClaim, judge_original};
pub(crate) use reviewed::judge_review;
pub use stale_memory::{StaleMemoryRuling, judge_stale_memory};
pub use turns::{aging_allowed, aging_due};

/// A proven small gain needs this many times the fewest blocks that a keep can need.
const REMEASURE_FACTOR: u32 = 3;

/// What becomes of a candidate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum Verdict {
    /// It becomes the incumbent.
    Keep {
        /// What a reader should know.
        notes: Vec<KeepNote>,
    },
    /// It becomes the incumbent, and its change is behind a predicate.
    KeepGated {
        /// The predicate of the hypothesis.
        predicate: String,
        /// What a reader should know.
        notes: Vec<KeepNote>,
    },
    /// The incumbent stays.
    Drop {
        /// Why.
        reason: DropReason,
    },
    /// The readings support neither; the incumbent stays, and the duel may be continued.
    Undecided {
        /// Blocks that were taken.
        blocks: u32,
    },
}

/// Why a candidate is dropped.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum DropReason {
    /// The agent produced no candidate.
    NoCandidate {
        /// What happened instead.
        why: String,
    },
    /// The editable files did not change.
    NoChange,
    /// The build made byte-identical artifacts, or only comments and white space changed.
    SameArtifact,
    /// The same source was judged before.
    AlreadyTried {
        /// In this round.
        round: u32,
    },
    /// It did not pass the gate.
    Gate {
        /// The result of the gate.
        gate: Gate,
    },
    /// A speedup worth keeping is disproved.
    NotFaster,
    /// These cases lost more than the policy allows.
    Regressed {
        /// Indices of the cases in the charter.
        cases: Vec<usize>,
    },
    /// The round took longer than the policy allows.
    RoundTimeUp,
    /// Other layouts of the same code do not show the gain.
    LayoutLuck {
        /// The speedup of each layout.
        ratios: Vec<f64>,
    },
    /// It is too good to be kept without a proof, and nothing proves it.
    Unproven {
        /// The round.
        round: u32,
        /// Why it needs a proof.
        doubts: Vec<GainDoubt>,
        /// Why its work counts do not prove it, if they could have.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        work: Option<String>,
    },
    /// The usual call is faster, but other calls pay for it.
    SlowCalls {
        /// Which ones.
        which: SlowCalls,
        /// Their speedup.
        ratio: f64,
    },
    /// The kept gains multiply to more than it shows against the original, which is no gain.
    Inflated(InflatedGain),
    /// The reviewer downgraded it after the duel, and the policy lets it.
    Downgraded {
        /// Why, in the reviewer's words.
        why: String,
    },
    /// The metric and the second clock differ: work was offloaded, sleeps or is hidden in threads.
    ClocksDisagree {
        /// The second clock.
        clock: Clock,
        /// The speedup by the metric.
        metric: f64,
        /// The speedup by the second clock.
        second: f64,
    },
}

/// The state of a duel after a block.
#[derive(Clone, Debug, PartialEq)]
pub enum DuelRuling {
    /// Another block is needed.
    Continue,
    /// This is decided.
    Decided(Verdict),
}

/// Whether the duel's time is up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DuelDeadline {
    /// There is time for another block.
    Left,
    /// There is none.
    Up,
}

/// Whether the final duel confirms that the result is faster than the original; `None` if it had
/// too few blocks for an interval.
pub fn confirms(comparison: &Comparison) -> Option<bool> {
    comparison.overall.low.map(|low| low > 1.0)
}

/// Evidence for a difference between two equal kernels that is worth a warning.
pub const NOISE_EVIDENCE: f64 = 20.0;
/// An interval wider than this hides the gains that most campaigns are after.
const NOISE_WIDTH: f64 = 1.1;

/// What an A/A test shows about the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoiseVerdict {
    /// It finds a difference: the readings cannot be trusted.
    Differs,
    /// It finds none, but small gains could not be detected either.
    Wide,
    /// It finds none, and small gains can be detected.
    Quiet,
}

/// Judges an A/A test (a kernel against itself); its rule has θ0 = δ = 0.
pub fn judge_noise(duel: &Duel) -> NoiseVerdict {
    let estimate = duel.comparison().overall;
    let track = duel.main();
    if track.faster.reached(NOISE_EVIDENCE) || track.not_faster.reached(NOISE_EVIDENCE) {
        return NoiseVerdict::Differs;
    }
    match (estimate.low, estimate.high) {
        (Some(low), Some(high)) if high / low <= NOISE_WIDTH => NoiseVerdict::Quiet,
        _ => NoiseVerdict::Wide,
    }
}

/// A difference that was found between equal kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FalsePositive {
    /// By this clock.
    pub clock: Clock,
    /// In favor of this arm.
    pub favors: Arm,
}

/// The arms of a duel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum Arm {
    Parent,
    Candidate,
}

/// Judges a control; its rule has θ0 = δ = 0. Any difference between equals is suspicious.
pub fn judge_control(duel: &Duel) -> Option<FalsePositive> {
    duel.tracks.iter().find_map(|track| {
        let arms = [(track.faster, Arm::Candidate), (track.not_faster, Arm::Parent)];
        let found = arms.into_iter().find(|(e, _)| e.reached(NOISE_EVIDENCE));
        found.map(|(_, favors)| FalsePositive { clock: track.clock, favors })
    })
}

/// Judges the layouts of a proven candidate, as log speedups; the first is the proven one.
pub fn judge_layouts(ln_speedups: &[f64], effect_ln: f64) -> Option<Verdict> {
    let agree = ln_speedups.iter().all(|gain| *gain > 0.0);
    let middle = stats::median(ln_speedups).unwrap_or(f64::NAN);
    if agree && middle >= effect_ln {
        return None;
    }
    let ratios = ln_speedups.iter().map(|gain| gain.exp()).collect();
    Some(Verdict::Drop { reason: DropReason::LayoutLuck { ratios } })
}

/// Judges a round that has no candidate.
pub fn judge_absent(why: &str) -> Verdict {
    Verdict::Drop { reason: DropReason::NoCandidate { why: why.to_owned() } }
}

/// Judges a round that ran over its time limit.
pub fn judge_overtime() -> Verdict {
    Verdict::Drop { reason: DropReason::RoundTimeUp }
}

/// Judges the source alone: nothing changed, or judged before.
pub fn judge_source(tree: &str, parent_tree: &str, tried: Option<u32>) -> Option<Verdict> {
    let reason = if tree == parent_tree {
        DropReason::NoChange
    } else {
        DropReason::AlreadyTried { round: tried? }
    };
    Some(Verdict::Drop { reason })
}

/// Judges the result of the gate; `None` lets the candidate be measured.
pub fn judge_gate(gate: &Gate, same_artifact: bool) -> Option<Verdict> {
    let reason = if !gate.passed() {
        DropReason::Gate { gate: gate.clone() }
    } else if same_artifact {
        DropReason::SameArtifact
    } else {
        return None;
    };
    Some(Verdict::Drop { reason })
}

/// Judges a duel after any block. Looking early and often costs nothing: see `stats`.
pub fn judge_duel(duel: &Duel, time: DuelDeadline) -> DuelRuling {
    let rule = &duel.rule;
    let n = duel.n_blocks();
    if n >= rule.blocks_min {
        if let Some(reason) = drop_reason(duel) {
            return DuelRuling::Decided(Verdict::Drop { reason });
        }
        // Either clock may supply the proof if the other does not contradict it.
        let supplied = duel.tracks.iter().find_map(|track| proof(duel, track));
        match supplied {
            Some((notes, AgedRuling::Shown)) => {
                return DuelRuling::Decided(Verdict::Keep { notes });
            }
            Some((_, AgedRuling::Gone(ratio))) => {
                let reason = DropReason::SlowCalls { which: SlowCalls::Aged, ratio };
                return DuelRuling::Decided(Verdict::Drop { reason });
            }
            Some((_, AgedRuling::More)) if time == DuelDeadline::Left => {
                return DuelRuling::Continue;
            }
            Some((_, AgedRuling::More)) | None => {}
        }
    }
    if n >= rule.blocks_max || time == DuelDeadline::Up {
        return DuelRuling::Decided(Verdict::Undecided { blocks: n });
    }
    DuelRuling::Continue
}

/// What one clock supplies for a keep, if the others do not contradict it.
fn proof(duel: &Duel, track: &ClockTrack) -> Option<(Vec<KeepNote>, AgedRuling)> {
    if contradiction::is_contradicted(duel, track) {
        return None;
    }
    Some((keep_notes(duel, track)?, turns::judge_aged(duel, track)))
}

/// Whether only aged blocks are missing for a keep.
fn lacks_aged(duel: &Duel) -> bool {
    let first = duel.tracks.iter().find_map(|track| proof(duel, track));
    duel.n_blocks() >= duel.rule.blocks_min
        && drop_reason(duel).is_none()
        && matches!(first, Some((_, AgedRuling::More)))
}

/// Either clock may decide, so each needs this many times more evidence for the same error bound.
fn clocks(duel: &Duel) -> f64 {
    duel.tracks.len() as f64
}

/// Why a candidate is dropped now, if anything is proven against it by any clock.
fn drop_reason(duel: &Duel) -> Option<DropReason> {
    let enough = duel.rule.guard_evidence * clocks(duel);
    if let Some(second) = duel.second()
        && (duel.ahead.reached(enough) || duel.behind.reached(enough))
    {
        let ratio =
            |track: &ClockTrack| stats::median(&track.ln_speedups).map_or(f64::NAN, f64::exp);
        return Some(DropReason::ClocksDisagree {
            clock: second.clock,
            metric: ratio(duel.main()),
            second: ratio(second),
        });
    }
    let mut regressed: Vec<usize> = duel
        .tracks
        .iter()
        .flat_map(|track| &track.cases)
        .filter(|track| track.lost(enough, duel.cases().len()))
        .map(|track| track.case)
        .collect();
    regressed.sort_unstable();
    regressed.dedup();
    if !regressed.is_empty() {
        return Some(DropReason::Regressed { cases: regressed });
    }
    let not_faster = |track: &ClockTrack| track.not_faster.reached(enough);
    if duel.tracks.iter().any(not_faster) {
        return Some(DropReason::NotFaster);
    }
    turns::drop_reason(duel)
}

/// The notes of a keep, if one clock has everything that a keep needs.
fn keep_notes(duel: &Duel, track: &ClockTrack) -> Option<Vec<KeepNote>> {
    let rule = &duel.rule;
    if !track.faster.reached(rule.keep_evidence * clocks(duel)) {
        return None;
    }
    let mut guarded = track.cases.iter().filter(|case| case.regress_ln.is_some());
    if guarded.any(|case| !case.safe.reached(rule.guard_evidence)) {
        return None;
    }
    if track.cases.iter().any(CaseTrack::may_have_lost) {
        return None;
    }
    // A NaN ratio is not within the limit.
    let tail_within = duel.tail_ratio(track) <= rule.tail_ratio;
    if !tail_within || !turns::allow_keep(duel, track) {
        return None;
    }
    // The estimate comes last: it takes a quadratic number of pairs.
    let estimate = duel.location(&track.ln_speedups)?;
    if estimate < rule.effect_ln {
        return None;
    }
    let mut notes = Vec::new();
    if estimate < rule.small_gain_ln {
        match rule.small_gain {
            SmallGain::Reject => return None,
            SmallGain::Remeasure if duel.n_blocks() < remeasured_blocks(rule.keep_evidence) => {
                return None;
            }
            SmallGain::Remeasure | SmallGain::AcceptNote | SmallGain::AcceptAndStop => {
                notes.push(KeepNote::SmallGain);
            }
        }
    }
    notes.extend(other_notes(duel, track));
    Some(notes)
}

/// What a reader of a keep should know beyond its size.
fn other_notes(duel: &Duel, track: &ClockTrack) -> Vec<KeepNote> {
    let mut notes = Vec::new();
    let comparison = duel.comparison();
    let losses: Vec<usize> = comparison
        .cases
        .iter()
        .filter(|case| case.change == SpeedChange::Regressed)
        .map(|case| case.case)
        .collect();
    if !losses.is_empty() {
        notes.push(KeepNote::Losses { cases: losses });
    }
    if track.clock != Clock::Metric {
        notes.push(KeepNote::ShownBy { clock: track.clock });
    }
    let effect = DeviceEstimate::describe_effect(&comparison.devices);
    notes.extend(effect.map(|seen| KeepNote::DeviceEffect { seen }));
    // As certain as the gain itself: a note caused by noise is worse than none.
    if duel.command_slower.reached(duel.rule.keep_evidence) {
        notes.push(KeepNote::CommandSlower);
    }
    notes
}

fn remeasured_blocks(keep_evidence: f64) -> u32 {
    let fewest = (1..200).find(|n| stats::ln_evidence(*n, 0) >= keep_evidence.ln());
    REMEASURE_FACTOR * fewest.unwrap_or(200)
}

impl Verdict {
    /// Whether the candidate becomes the incumbent.
    pub fn keeps(&self) -> bool {
        match self {
            Self::Keep { .. } | Self::KeepGated { .. } => true,
            Self::Drop { .. } | Self::Undecided { .. } => false,
        }
    }

    /// Whether the source of the candidate was judged: then the same source is not judged again.
    /// What was never built, or only ran out of time, may come back.
    pub fn is_of_source(&self) -> bool {
        match self {
            Self::Keep { .. } | Self::KeepGated { .. } | Self::Undecided { .. } => true,
            Self::Drop { reason } => match reason {
                DropReason::Gate { gate } => gate.is_of_source(),
                DropReason::SameArtifact
                | DropReason::NotFaster
                | DropReason::Regressed { .. }
                | DropReason::LayoutLuck { .. }
                | DropReason::SlowCalls { .. }
                | DropReason::Inflated(_)
                | DropReason::ClocksDisagree { .. } => true,
                // Once a person allows it, the same source may be submitted again.
                DropReason::Unproven { .. }
                | DropReason::Downgraded { .. }
                | DropReason::NoCandidate { .. }
                | DropReason::NoChange
                | DropReason::AlreadyTried { .. }
                | DropReason::RoundTimeUp => false,
            },
        }
    }

    /// The same verdict, with the hypothesis's predicate if it keeps.
    #[must_use]
    pub fn gated_by(self, predicate: Option<&String>) -> Self {
        match (self, predicate) {
            (Self::Keep { notes }, Some(predicate)) => {
                Self::KeepGated { predicate: predicate.clone(), notes }
            }
            (verdict, _) => verdict,
        }
    }

    /// The clock that proved a keep.
    pub fn shown_by(&self) -> Clock {
        let notes = match self {
            Self::Keep { notes } | Self::KeepGated { notes, .. } => &notes[..],
            Self::Drop { .. } | Self::Undecided { .. } => &[],
        };
        let second = notes.iter().find_map(|note| match note {
            KeepNote::ShownBy { clock } => Some(*clock),
            KeepNote::SmallGain
            | KeepNote::Losses { .. }
            | KeepNote::CommandSlower
            | KeepNote::DeviceEffect { .. }
            | KeepNote::Inflated(_)
            | KeepNote::NoiseBound
            | KeepNote::NearImpossible { .. }
            | KeepNote::BlindTests { .. } => None,
        });
        second.unwrap_or(Clock::Metric)
    }

    /// Whether a small gain was kept.
    pub fn is_small_gain(&self) -> bool {
        match self {
            Self::Keep { notes } | Self::KeepGated { notes, .. } => {
                notes.contains(&KeepNote::SmallGain)
            }
            Self::Drop { .. } | Self::Undecided { .. } => false,
        }
    }

    /// One word for tables.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Keep { .. } => "keep",
            Self::KeepGated { .. } => "keep (gated)",
            Self::Drop { .. } => "drop",
            Self::Undecided { .. } => "undecided",
        }
    }
}

#[cfg(test)]
mod tests;
