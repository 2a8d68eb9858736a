//! How much of a duel is left at most, by its blocks and its time so far.

use super::{Campaign, CampaignPhase, RoundPhase};
use crate::duel::Duel;

/// What is left of the duel under way, at most: most duels are decided earlier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DuelLeft {
    /// Its blocks, those that were measured included.
    pub blocks_max: u32,
    /// The time that the rest of them takes; none before the first block.
    pub seconds_max: Option<u64>,
}

impl Campaign {
    /// The duel under way.
    pub fn running_duel(&self) -> Option<&Duel> {
        match &self.phase {
            CampaignPhase::Controlling(control) => Some(control.duel()),
            CampaignPhase::Confirming { duel, .. } => Some(duel),
            CampaignPhase::Comparing(running) => Some(&running.duel),
            CampaignPhase::Round(round) => match &round.phase {
                RoundPhase::Measuring(of) => Some(&of.duel),
                RoundPhase::Checking(of) => Some(&of.duel),
                _ => None,
            },
            _ => None,
        }
    }

    /// What is left of the duel under way.
    pub fn duel_left(&self) -> Option<DuelLeft> {
        let limit_ms = self.duel_limit_ms();
        match &self.phase {
            CampaignPhase::Controlling(control) => Some(control.left(limit_ms)),
            CampaignPhase::Comparing(running) => Some(running.left(limit_ms)),
            CampaignPhase::Confirming { duel, blocks, spent_ms, .. } => {
                Some(left(duel, *blocks, *spent_ms, limit_ms))
            }
            CampaignPhase::Round(round) => match &round.phase {
                RoundPhase::Measuring(of) => Some(left(&of.duel, of.blocks, of.spent_ms, limit_ms)),
                RoundPhase::Checking(of) => Some(left(&of.duel, of.blocks, of.spent_ms, limit_ms)),
                _ => None,
            },
            _ => None,
        }
    }
}

/// Blocks that only warmed up do not count, and are measured again.
pub(super) fn left(duel: &Duel, blocks: u32, spent_ms: u64, limit_ms: u64) -> DuelLeft {
    let rest = duel.rule.blocks_max.saturating_sub(duel.n_blocks());
    let by_blocks = |blocks: u32| spent_ms / u64::from(blocks) * u64::from(rest);
    let by_time = limit_ms.saturating_sub(spent_ms);
    let seconds_max = (blocks > 0).then(|| by_blocks(blocks).min(by_time).div_ceil(1_000));
    DuelLeft { blocks_max: blocks.saturating_add(rest), seconds_max }
}

#[cfg(test)]
mod tests {
    use crate::campaign::Step;
    use crate::testing::script::{play_until, script};

    #[test]
    fn a_duel_says_how_long_it_takes_at_most_after_its_first_block() {
        let script = script(&[1.3]);
        let begins = |step: &Step| matches!(step, Step::Measure(_));
        let (campaign, _) = play_until(&script, &begins);
        let left = campaign.duel_left().unwrap();
        assert_eq!(left.blocks_max, campaign.charter().unwrap().policy.accept.blocks_max);
        assert_eq!(left.seconds_max, None);
        let second = |step: &Step| matches!(step, Step::Measure(measure) if measure.block == 2);
        let (campaign, _) = play_until(&script, &second);
        assert!(campaign.duel_left().unwrap().seconds_max.is_some());
    }
}
