//! How the project's commands and the agent are confined.

use serde::{Deserialize, Serialize};

/// What commands and agents may see and touch.
///
/// A log that does not say means that nothing was confined.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SandboxRule {
    /// Whether they are confined.
    pub mode: SandboxMode,
    /// Whether the project's commands may use the network.
    pub network: bool,
    /// Whether the agent may use the network.
    pub agent_network: bool,
    /// Files and directories outside the worktree that may be read although they are hidden.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<String>,
    /// What tests and benchmarks may write: in the worktree, or by a full path.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub write: Vec<String>,
    /// Variables that are passed in addition to the usual ones.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
    /// How long a command's files in home and caches live.
    pub caches: Caches,
    /// Memory that one command may use, in GiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_gib: Option<f64>,
    /// Processes that one command may have at a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processes: Option<u32>,
    /// Whether the history before the parent is hidden from the agent.
    pub seals_history: bool,
}

impl SandboxRule {
    /// Whether it equals the default, which a log need not store.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Whether commands and agents are confined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SandboxMode {
    /// They are not.
    #[default]
    Off,
    /// By whatever the host offers.
    Auto,
    /// By the full sandbox, or nothing runs.
    Require,
}

/// How long a command's files in home and caches live.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Caches {
    /// Until the command ends.
    #[default]
    Run,
    /// As long as the worktree, for its own commands.
    Tree,
}
