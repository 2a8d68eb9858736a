//! When a campaign has reached its end: the stop predicates of its policy, in their order.

use super::{Campaign, StopReason};
use crate::charter::{Goal, Limits};
use crate::policy::StopRule;

/// After this many rounds in a row without a candidate the agent is considered broken.
const ABSENT_ROUNDS_MAX: u32 = 3;

impl Campaign {
    /// The first stop predicate of the policy that holds.
    pub(super) fn stop_due(&self) -> Option<StopReason> {
        let charter = self.charter()?;
        let absent = self
            .rounds
            .iter()
            .skip(self.resumed_at)
            .rev()
            .take_while(|round| round.candidate.is_none() && !round.gave_up);
        let absent = u32::try_from(absent.count()).unwrap_or(u32::MAX);
        // A replayed recording may be judged differently and then have patches that do not apply;
        // it ends when it has no more rounds.
        if absent >= ABSENT_ROUNDS_MAX && !charter.is_replay() {
            return Some(StopReason::AgentUnusable { rounds: absent });
        }
        if let Some(reason) = self.agenda_through() {
            return Some(reason);
        }
        charter.policy.stop.iter().find_map(|rule| self.stop_by(*rule, charter.limits))
    }

    fn stop_by(&self, rule: StopRule, limits: Limits) -> Option<StopReason> {
        let rounds = u32::try_from(self.rounds.len()).unwrap_or(u32::MAX);
        let resumed_at = u32::try_from(self.resumed_at).unwrap_or(u32::MAX);
        let (holds, reason) = match rule {
            StopRule::TargetMet => (self.goal_met(), StopReason::TargetMet),
            StopRule::HardwareLimit { share } => {
                (self.peak_share().is_some_and(|s| s >= share), StopReason::HardwareLimit)
            }
            StopRule::Rounds => (rounds >= limits.rounds, StopReason::RoundsUsed { rounds }),
            StopRule::WallTime => (
                limits.wall_s.is_some_and(|wall_s| self.spent_ms >= wall_s.saturating_mul(1_000)),
                StopReason::TimeUsed,
            ),
            StopRule::AgentCost => {
                (limits.agent_usd.is_some_and(|usd| self.cost.usd >= usd), StopReason::CostUsed)
            }
            StopRule::NoGain { rounds: limit } => (
                self.streak().min(rounds - resumed_at) >= limit,
                StopReason::NoGain { rounds: limit },
            ),
            StopRule::SmallGainKept => (
                self.rounds
                    .iter()
                    .skip(self.resumed_at)
                    .next_back()
                    .is_some_and(|round| round.verdict.is_small_gain()),
                StopReason::SmallGain,
            ),
            // An agent that has nothing left says so when it is asked.
            StopRule::ProposalsExhausted => (false, StopReason::TargetMet),
        };
        holds.then_some(reason)
    }

    /// Whether the incumbent meets the goal; false if there is none.
    pub fn goal_met(&self) -> bool {
        let Some(goal) = self.charter().and_then(|charter| charter.target.goal) else {
            return false;
        };
        match goal {
            Goal::Speedup { ratio } => self.lineage.cumulative_ratio() >= ratio,
            Goal::PeakShare { share } => self.peak_share().is_some_and(|s| s >= share),
            Goal::AtLeast { value } => self.aggregate().is_some_and(|a| a >= value),
            Goal::AtMost { value } => self.aggregate().is_some_and(|a| a <= value),
        }
    }
}
