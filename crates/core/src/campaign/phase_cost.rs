//! What each phase of a round took: time, turns of agents, and what they used.

use super::Event;
use crate::spending::AgentUsage;
use serde::{Deserialize, Serialize};

/// A phase of a round, under the names of primus.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[allow(missing_docs)]
pub enum WorkPhase {
    Profile,
    Analyze,
    Optimize,
    Validate,
    Review,
    Learn,
}

/// What a phase of a round took.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PhaseCost {
    /// The phase.
    pub phase: WorkPhase,
    /// When it ended, by the host's clock.
    pub at_ms: i64,
    /// Time of work.
    pub spent_ms: u64,
    /// Turns of agents.
    pub turns: u32,
    /// What they used.
    pub usage: AgentUsage,
}

impl WorkPhase {
    /// The phase that an event of a round belongs to.
    fn of(event: &Event) -> Self {
        match event {
            Event::Profiled { .. } => Self::Profile,
            Event::Proposed { .. } | Event::ProposalRefused { .. } => Self::Analyze,
            Event::Implemented { .. } | Event::NotImplemented { .. } => Self::Optimize,
            Event::Reviewed { .. } => Self::Review,
            Event::Learned { .. } => Self::Learn,
            _ => Self::Validate,
        }
    }

    fn is_turn(self) -> bool {
        match self {
            Self::Analyze | Self::Optimize | Self::Review => true,
            Self::Profile | Self::Validate | Self::Learn => false,
        }
    }
}

impl PhaseCost {
    /// Of one event.
    pub(super) fn of(record: &super::Record, usage: AgentUsage) -> Self {
        let phase = WorkPhase::of(&record.event);
        let asked = phase.is_turn() || usage.tokens > 0 || usage.usd > 0.0;
        Self {
            phase,
            at_ms: record.at_ms,
            spent_ms: record.spent_ms,
            turns: u32::from(asked),
            usage,
        }
    }

    /// Adds it to the phases of a round: consecutive events of a phase are one.
    pub(super) fn add_to(self, phases: &mut Vec<Self>) {
        match phases.last_mut() {
            Some(last) if last.phase == self.phase => {
                last.at_ms = self.at_ms;
                last.spent_ms = last.spent_ms.saturating_add(self.spent_ms);
                last.turns = last.turns.saturating_add(self.turns);
                last.usage = last.usage.plus(self.usage);
            }
            _ => phases.push(self),
        }
    }
}
