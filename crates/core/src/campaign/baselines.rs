//! The named baselines, measured against one kernel of the campaign, one duel for each: against the
//! original before the first round, and against the final kernel after the last.

use super::left::left;
use super::out_of_order::{EventResult, not_due};
use super::{
    Campaign, CampaignPhase, DuelLeft, DuelName, Event, MeasureStep, ProcessAge, Step, StopReason,
};
use crate::comparison::Comparison;
use crate::duel::{Duel, DuelRule};
use crate::measurement::{Block, Gate};

/// Blocks of the duel with one baseline, at least and at most: fewer give no interval.
const BASELINE_BLOCKS: (u32, u32) = (8, 24);

/// A baseline beside one of our kernels. In its duel the baseline is the parent.
#[derive(Clone, Debug, PartialEq)]
pub struct BaselineDuel {
    /// Its index in the charter.
    pub baseline: u32,
    /// The commit of our kernel.
    pub commit: String,
    /// Rounds that were settled before.
    pub after: u32,
    /// What it showed; or why it does not count.
    pub result: Result<Comparison, Gate>,
}

/// The duel with one baseline, under way.
#[derive(Clone, Debug)]
pub(super) struct RunningBaseline {
    /// Why the campaign ends; before the first round it does not.
    pub(super) reason: Option<StopReason>,
    baseline: u32,
    after: u32,
    pub(super) duel: Box<Duel>,
    blocks: u32,
    spent_ms: u64,
}

impl RunningBaseline {
    fn name(&self) -> DuelName {
        DuelName::Baseline { baseline: self.baseline, after: self.after }
    }

    pub(super) fn step(&self, campaign: &Campaign) -> Step {
        Step::Measure(MeasureStep {
            duel: self.name(),
            parent: campaign.base_commit().to_owned(),
            candidate: campaign.incumbent().to_owned(),
            cases: self.duel.cases(),
            block: self.blocks,
            age: ProcessAge::Usual,
        })
    }

    pub(super) fn left(&self, limit_ms: u64) -> DuelLeft {
        left(&self.duel, self.blocks, self.spent_ms, limit_ms)
    }
}

impl Campaign {
    /// What every baseline showed so far, in order.
    pub fn baseline_duels(&self) -> &[BaselineDuel] {
        &self.baseline_duels
    }

    /// What the baselines showed beside a kernel.
    pub fn baselines_beside(&self, commit: &str) -> Vec<&BaselineDuel> {
        self.baseline_duels.iter().filter(|duel| duel.commit == commit).collect()
    }

    /// The duel with the next baseline that was not measured beside the incumbent.
    pub(super) fn baseline_due(&self, reason: Option<&StopReason>) -> Option<CampaignPhase> {
        let charter = self.charter()?;
        let done = self.baselines_beside(self.incumbent());
        let is_open = |at: &u32| done.iter().all(|duel| duel.baseline != *at);
        let n = u32::try_from(charter.baselines.len()).unwrap_or(u32::MAX);
        let baseline = (0..n).find(is_open)?;
        let mut rule = DuelRule::of(charter, self.keep_evidence());
        rule.blocks_max = charter.limits.final_blocks.clamp(BASELINE_BLOCKS.0, BASELINE_BLOCKS.1);
        rule.blocks_min = rule.blocks_min.clamp(1, rule.blocks_max);
        Some(CampaignPhase::Comparing(Box::new(RunningBaseline {
            reason: reason.cloned(),
            baseline,
            after: u32::try_from(self.rounds.len()).unwrap_or(u32::MAX),
            duel: Box::new(Duel::new(charter, &charter.all_cases(), rule)),
            blocks: 0,
            spent_ms: 0,
        })))
    }

    /// Takes in a block with a baseline, or why there is none.
    pub(super) fn take_baseline_block(&mut self, event: &Event, spent: u64) -> EventResult {
        let limit_ms = self.duel_limit_ms();
        let CampaignPhase::Comparing(running) = &mut self.phase else {
            return not_due();
        };
        let result = match event {
            Event::BlockMeasured { duel, block, .. } if *duel == running.name() => {
                take_block(running, block)?;
                running.spent_ms = running.spent_ms.saturating_add(spent);
                let (n, rule) = (running.duel.n_blocks(), &running.duel.rule);
                let is_late = running.spent_ms >= limit_ms && n >= rule.blocks_min;
                if n < rule.blocks_max && !is_late {
                    return Ok(());
                }
                Ok(running.duel.comparison())
            }
            Event::BlockFailed { duel, gate, .. } if *duel == running.name() => {
                if gate.passed() {
                    return Err("a failed block needs a failed gate".into());
                }
                Err(gate.clone())
            }
            _ => return not_due(),
        };
        let running = running.clone();
        self.baseline_duels.push(BaselineDuel {
            baseline: running.baseline,
            commit: self.incumbent().to_owned(),
            after: running.after,
            result,
        });
        match (self.baseline_due(running.reason.as_ref()), running.reason) {
            (Some(next), _) => self.phase = next,
            (None, Some(reason)) => self.phase = self.ending(reason),
            (None, None) => self.advance(),
        }
        Ok(())
    }
}

fn take_block(running: &mut RunningBaseline, block: &Block) -> EventResult {
    running.duel.check_discard(block).map_err(|bad| bad.0)?;
    running.duel.take(block).map_err(|bad| bad.0)?;
    running.blocks += 1;
    Ok(())
}
