//! The original against a would-be keep. A kept kernel can slow down once it is the incumbent, or
//! hide its speed until then: each later gain is real in its duel, and their product is not. So the
//! product is checked now and then before another keep; docs/decisions/0036 says when and why.

use super::out_of_order::{EventResult, not_due};
use super::round::{RoundPhase, RoundState};
use super::{Campaign, DuelName, Event, MeasureStep, ProcessAge, Record};
use crate::comparison::Comparison;
use crate::duel::{Duel, DuelRule};
use crate::hypothesis::Candidate;
use crate::lineage::Lineage;
use crate::measurement::Block;
use crate::verdict::{self, DuelDeadline, OriginalClaim, Verdict};
use karve_numerics::case::CaseSet;
use serde::{Deserialize, Serialize};

/// The first keep that is checked; the first one of all is measured against the original anyway.
const FIRST_CHECK: usize = 3;
/// From then on, every keep whose number is a multiple of this.
const CHECK_EVERY: usize = 5;
/// Gains that multiply to more than this since the last check are checked at once.
const UNCHECKED_RATIO_MAX: f64 = 2.0;

/// Fewest blocks of a check, enough for an interval, and most.
const CHECK_BLOCKS_MIN: u32 = 8;
const CHECK_BLOCKS_MAX: u32 = 24;

/// A would-be keep while it is measured against the original.
#[derive(Clone, Debug)]
pub struct RunningCheck {
    /// The candidate.
    pub candidate: Candidate,
    /// Its verdict, if the check agrees.
    pub verdict: Verdict,
    /// What the kept gains say.
    pub claim: OriginalClaim,
    /// What the duel has shown so far.
    pub duel: Box<Duel>,
    /// Blocks taken, the warm-up included.
    pub blocks: u32,
    /// Time spent on it.
    pub spent_ms: u64,
}

/// What a duel of the original against a would-be keep showed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OriginalCheck {
    /// The product of the kept gains, this candidate's included.
    pub claimed: f64,
    /// What was measured.
    pub comparison: Comparison,
}

/// Whether a candidate with this gain is measured against the original before it is kept.
fn check_due(lineage: &Lineage, gain: f64) -> bool {
    let number = lineage.kept().len() + 1;
    let since = lineage.cumulative_ratio() / lineage.last_checked() * gain;
    let jumps = number > 1 && since > UNCHECKED_RATIO_MAX;
    number == FIRST_CHECK || number.is_multiple_of(CHECK_EVERY) || jumps
}

impl RunningCheck {
    /// The next block.
    pub(super) fn step(&self, round: u32, base: &str) -> MeasureStep {
        MeasureStep {
            duel: DuelName::Original { round },
            parent: base.to_owned(),
            candidate: self.candidate.commit.clone(),
            cases: self.duel.cases(),
            block: self.blocks,
            age: ProcessAge::Usual,
        }
    }
}

impl Campaign {
    /// What comes before a candidate with this verdict is settled.
    pub(super) fn settling(
        &self,
        round: &RoundState,
        candidate: &Candidate,
        verdict: Verdict,
    ) -> RoundPhase {
        let shown = round.shown();
        let gain = shown.map_or(1.0, |comparison| comparison.overall.ratio);
        match self.charter() {
            Some(charter) if verdict.keeps() && check_due(&self.lineage, gain) => {
                let mut rule =
                    DuelRule::of(charter, self.keep_evidence()).with_second(self.second_clock());
                rule.blocks_min = rule.blocks_min.max(CHECK_BLOCKS_MIN);
                rule.blocks_max = rule.blocks_min.max(CHECK_BLOCKS_MAX);
                let claim = OriginalClaim {
                    claimed: self.lineage.cumulative_ratio() * gain,
                    before: self.lineage.last_checked(),
                };
                RoundPhase::Checking(RunningCheck {
                    candidate: candidate.clone(),
                    verdict,
                    claim,
                    duel: Box::new(Duel::new(charter, &self.cases_of(CaseSet::Full), rule)),
                    blocks: 0,
                    spent_ms: 0,
                })
            }
            _ => RoundPhase::Settling { verdict },
        }
    }

    pub(super) fn take_check(&self, round: &mut RoundState, record: &Record) -> EventResult {
        match &record.event {
            Event::BlockMeasured { duel: DuelName::Original { round: of }, block, .. }
                if *of == round.number =>
            {
                self.take_check_block(round, block, record.spent_ms)
            }
            Event::BlockFailed { duel: DuelName::Original { round: of }, gate, .. }
                if *of == round.number =>
            {
                round.fail_block(gate)
            }
            _ => not_due(),
        }
    }

    fn take_check_block(&self, round: &mut RoundState, block: &Block, spent: u64) -> EventResult {
        let RoundPhase::Checking(check) = &mut round.phase else {
            return not_due();
        };
        check.duel.check_discard(block).map_err(|bad| bad.0)?;
        check.duel.take(block).map_err(|bad| bad.0)?;
        check.blocks += 1;
        check.spent_ms = check.spent_ms.saturating_add(spent);
        let is_late = check.spent_ms >= self.duel_limit_ms();
        let time = if is_late { DuelDeadline::Up } else { DuelDeadline::Left };
        let ruling = verdict::judge_original(&check.duel, check.claim, &check.verdict, time);
        if let Some(verdict) = ruling {
            round.check = Some(OriginalCheck {
                claimed: check.claim.claimed,
                comparison: check.duel.comparison(),
            });
            round.phase = RoundPhase::Settling { verdict };
        }
        Ok(())
    }

    /// Whether an earlier karve kept this candidate without a check. Its logs are accepted
    /// unchanged, and the keep counts as not yet checked.
    pub(super) fn was_kept_unchecked(&self, round: &RoundState, verdict: &Verdict) -> bool {
        match &round.phase {
            RoundPhase::Checking(check) => check.blocks == 0 && check.verdict == *verdict,
            _ => false,
        }
    }
}
