//! Why there is no hypothesis.

use serde::{Deserialize, Serialize};

/// Why there is no hypothesis.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "refusal", rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum ProposalRefusal {
    /// The reply does not follow the contract.
    Unreadable { errors: Vec<String> },
    /// The agent failed or timed out.
    AgentFailed { why: String },
    /// The agent has nothing left to try.
    Exhausted { why: String },
    /// The next question may cost more than is left; asking again would not help.
    LimitReached { why: String },
}

impl ProposalRefusal {
    /// In words.
    pub fn describe(&self) -> String {
        match self {
            Self::Unreadable { errors } => format!("refused: {}", errors.join("; ")),
            Self::AgentFailed { why } => format!("failed: {why}"),
            Self::Exhausted { why } => format!("nothing left to try: {why}"),
            Self::LimitReached { why } => format!("a limit is reached: {why}"),
        }
    }
}
