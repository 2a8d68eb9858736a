//! What is on another machine: copies of projects, of their campaigns, and of karve itself.

use serde::{Deserialize, Serialize};

/// One copy.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "of", rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum CopyName {
    /// A campaign of a project.
    Campaign { project: String, campaign: String },
    /// A project, with its campaigns.
    Project { project: String },
    /// A version of karve.
    Program { digest: String },
}

/// What a copy takes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FarCopy {
    /// Which one.
    pub name: CopyName,
    /// Of all its files.
    pub bytes: u64,
    /// Whether a worker uses it now.
    pub is_used: bool,
    /// How long ago something in it was changed last.
    pub idle_s: u64,
}
