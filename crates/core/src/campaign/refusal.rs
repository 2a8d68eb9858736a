//! Why there is no hypothesis.

use serde::{Deserialize, Serialize};

/// Why there is no hypothesis.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "StoredRefusal", into = "StoredRefusal")]
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

/// The form in the log. A limit is a flag on `exhausted`, which is how an older karve reads it.
#[derive(Serialize, Deserialize)]
#[serde(tag = "refusal", rename_all = "snake_case")]
enum StoredRefusal {
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

impl From<StoredRefusal> for ProposalRefusal {
    fn from(stored: StoredRefusal) -> Self {
        match stored {
            StoredRefusal::Unreadable { errors } => Self::Unreadable { errors },
            StoredRefusal::AgentFailed { why } => Self::AgentFailed { why },
            StoredRefusal::Exhausted { why, limit: false } => Self::Exhausted { why },
            StoredRefusal::Exhausted { why, limit: true } => Self::LimitReached { why },
        }
    }
}

impl From<ProposalRefusal> for StoredRefusal {
    fn from(refusal: ProposalRefusal) -> Self {
        match refusal {
            ProposalRefusal::Unreadable { errors } => Self::Unreadable { errors },
            ProposalRefusal::AgentFailed { why } => Self::AgentFailed { why },
            ProposalRefusal::Exhausted { why } => Self::Exhausted { why, limit: false },
            ProposalRefusal::LimitReached { why } => Self::Exhausted { why, limit: true },
        }
    }
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
