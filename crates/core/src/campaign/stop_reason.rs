//! Why a campaign ends.

use crate::measurement::Gate;
use crate::verdict::FalsePositive;
use serde::{Deserialize, Serialize};

/// Why a campaign ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "stop", rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum StopReason {
    /// The tests do not notice a broken kernel.
    MutationCheckFailed,
    /// The unchanged kernel does not build or is wrong.
    BaselineFailed { gate: Gate },
    /// The goal of the charter is reached.
    TargetMet,
    /// The kernel is as fast as this machine allows.
    HardwareLimit,
    /// The rounds are used up.
    RoundsUsed { rounds: u32 },
    /// The wall time is used up.
    TimeUsed,
    /// The agent's budget is used up.
    CostUsed,
    /// This many rounds in a row gained nothing.
    NoGain { rounds: u32 },
    /// The last gain was small.
    SmallGain,
    /// The agent has nothing left to try, or nothing to try it with.
    Exhausted {
        why: String,
        /// What is left of a limit is less than the next question may cost.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        limit: bool,
    },
    /// Every item of the agenda is done.
    AgendaThrough { kept: u32, items: u32 },
    /// The agent produced no candidate in this many rounds in a row.
    AgentUnusable { rounds: u32 },
    /// The A/A test found a difference twice in a row.
    MeasurementInvalid { found: FalsePositive },
}

impl StopReason {
    /// In words.
    pub fn describe(&self) -> String {
        match self {
            Self::MutationCheckFailed => "the mutation check failed".into(),
            Self::BaselineFailed { gate } => {
                format!("the unchanged kernel fails: {}", gate.describe())
            }
            Self::TargetMet => "the goal is reached".into(),
            Self::HardwareLimit => "the kernel is at the hardware limit of this machine".into(),
            Self::RoundsUsed { rounds: 1 } => "the only round is used up".into(),
            Self::RoundsUsed { rounds } => format!("all {rounds} rounds are used up"),
            Self::TimeUsed => "the time is used up".into(),
            Self::CostUsed => "the agent's budget is used up".into(),
            Self::NoGain { rounds } => format!("no gain in {rounds} rounds in a row"),
            Self::SmallGain => "the last gain was small".into(),
            Self::Exhausted { why, limit: false } => format!("nothing is left to try: {why}"),
            Self::Exhausted { why, limit: true } => format!("a limit is reached: {why}"),
            Self::MeasurementInvalid { found } => format!(
                "measurement invalid: the A/A test found a difference by the {} twice in a row",
                found.clock.name()
            ),
            Self::AgendaThrough { items: 0, .. } => {
                "the agenda is done: there is nothing to try".into()
            }
            Self::AgendaThrough { kept, items: 1 } => match kept {
                0 => "the agenda is done: its only item was not kept".into(),
                _ => "the agenda is done: its only item was kept".into(),
            },
            Self::AgendaThrough { kept, items } => {
                format!("the agenda is done: {kept} of {items} items kept")
            }
            Self::AgentUnusable { rounds } => {
                format!("the agent produced no candidate in {rounds} rounds in a row")
            }
        }
    }
}
