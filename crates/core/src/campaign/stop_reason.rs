//! Why a campaign ends.

use crate::measurement::Gate;
use crate::verdict::Suspicion;
use serde::{Deserialize, Serialize};

/// Why a campaign ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "stop", rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum StopReason {
    /// The tests do not notice a broken kernel.
    NotEngaged,
    /// The unchanged kernel does not build or is wrong.
    BaselineFailed { gate: Gate },
    /// The goal of the charter is reached.
    TargetMet,
    /// The kernel is as fast as this machine allows.
    HardwareLimit,
    /// The rounds are used.
    RoundsUsed { rounds: u32 },
    /// The wall time is used.
    TimeUsed,
    /// The agent's money is used.
    CostUsed,
    /// So many rounds in a row gained nothing.
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
    /// Every item of the agenda is done with.
    AgendaThrough { kept: u32, items: u32 },
    /// The agent gave no candidate in so many rounds in a row.
    AgentUnusable { rounds: u32 },
    /// Equal kernels were told apart twice in a row.
    MeasurementInvalid { found: Suspicion },
}

impl StopReason {
    /// In words.
    pub fn describe(&self) -> String {
        match self {
            Self::NotEngaged => "the engagement proof failed".into(),
            Self::BaselineFailed { gate } => {
                format!("the unchanged kernel does not pass: {}", gate.describe())
            }
            Self::TargetMet => "the goal is reached".into(),
            Self::HardwareLimit => "the kernel reaches the limit of this machine".into(),
            Self::RoundsUsed { rounds: 1 } => "the one round is used".into(),
            Self::RoundsUsed { rounds } => format!("all {rounds} rounds are used"),
            Self::TimeUsed => "the time is used".into(),
            Self::CostUsed => "the agent's budget is used".into(),
            Self::NoGain { rounds } => format!("{rounds} rounds in a row gained nothing"),
            Self::SmallGain => "the last gain was small".into(),
            Self::Exhausted { why, limit: false } => format!("nothing is left to try: {why}"),
            Self::Exhausted { why, limit: true } => format!("a limit is reached: {why}"),
            Self::MeasurementInvalid { found } => format!(
                "measurement invalid: the incumbent and its own copy differ by the {}, twice in \
                 a row",
                found.clock.name()
            ),
            Self::AgendaThrough { items: 0, .. } => {
                "the agenda is through: there is nothing to try".into()
            }
            Self::AgendaThrough { kept, items: 1 } => match kept {
                0 => "the agenda is through: its one item was not kept".into(),
                _ => "the agenda is through: its one item was kept".into(),
            },
            Self::AgendaThrough { kept, items } => {
                format!("the agenda is through: {kept} of {items} items kept")
            }
            Self::AgentUnusable { rounds } => {
                format!("the agent gave no candidate in {rounds} rounds in a row")
            }
        }
    }
}
