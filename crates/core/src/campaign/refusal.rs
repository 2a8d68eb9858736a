//! Why there is no hypothesis.

use serde::{Deserialize, Serialize};

/// Why there is no hypothesis.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Stored", into = "Stored")]
#[allow(missing_docs)]
pub enum Refusal {
    /// The reply does not follow the contract.
    Unreadable { errors: Vec<String> },
    /// The agent failed or timed out.
    AgentFailed { why: String },
    /// The agent has nothing left to try.
    Exhausted { why: String },
    /// The next question may cost more than is left; asking again would not help.
    LimitReached { why: String },
}

/// The form in the log. A limit is a flag on `exhausted`, which is how an older karve reads it.
#[derive(Serialize, Deserialize)]
#[serde(tag = "refusal", rename_all = "snake_case")]
enum Stored {
    Unreadable {
        errors: Vec<String>,
    },
    AgentFailed {
        why: String,
    },
    Exhausted {
        why: String,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        limit: bool,
    },
}

impl From<Stored> for Refusal {
    fn from(stored: Stored) -> Self {
        match stored {
            Stored::Unreadable { errors } => Self::Unreadable { errors },
            Stored::AgentFailed { why } => Self::AgentFailed { why },
            Stored::Exhausted { why, limit: false } => Self::Exhausted { why },
            Stored::Exhausted { why, limit: true } => Self::LimitReached { why },
        }
    }
}

impl From<Refusal> for Stored {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Unreadable { errors } => Self::Unreadable { errors },
            Refusal::AgentFailed { why } => Self::AgentFailed { why },
            Refusal::Exhausted { why } => Self::Exhausted { why, limit: false },
            Refusal::LimitReached { why } => Self::Exhausted { why, limit: true },
        }
    }
}

impl Refusal {
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
