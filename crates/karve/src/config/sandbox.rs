//! `[sandbox]` of `karve.toml`: what commands and agents may read and write.

use super::file::ConfigFile;
use super::source::ConfigSource;
use karve_core::charter::{Caches, SandboxMode, SandboxRule};
use karve_os::error::Result;
use karve_os::text::shown;
use schemars::JsonSchema;
use serde::Deserialize;
use std::path::{Component, Path};

/// What commands and agents may read and write.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SandboxTable {
    /// `auto` sandboxes with what the host supports, `require` refuses to start if something is
    /// missing, `off` disables the sandbox; `auto` by default.
    pub(super) mode: Option<ModeName>,
    /// Whether the project's commands may use the network; false by default.
    #[serde(default)]
    pub(super) network: bool,
    /// Whether the agent may use the network; true by default.
    pub(super) agent_network: Option<bool>,
    /// Otherwise hidden files and directories outside the worktree that may be read.
    #[serde(default)]
    #[schemars(length(max = 64))]
    pub(super) read: Vec<String>,
    /// What tests and benchmarks may write: a worktree path such as `target`, or a full path.
    #[serde(default)]
    #[schemars(length(max = 64))]
    pub(super) write: Vec<String>,
    /// Environment variables to pass in addition to the usual ones; `NAME*` matches a prefix.
    #[serde(default)]
    #[schemars(length(max = 64))]
    pub(super) env: Vec<String>,
    /// `run` empties home and caches before every command, `tree` keeps them for commands in
    /// the same worktree; `run` by default.
    pub(super) caches: Option<CachesName>,
    /// Maximum memory for one command, in GiB; by default nine tenths of the machine's.
    #[schemars(range(min = 0.001, max = 1_000_000))]
    pub(super) memory_gib: Option<f64>,
    /// Maximum number of processes of one command at a time; 4096 by default.
    #[schemars(range(min = 1, max = 4_000_000))]
    pub(super) processes: Option<u32>,
}

/// Whether commands and agents are sandboxed.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum ModeName {
    /// With what the host supports.
    Auto,
    /// With everything, or nothing runs.
    Require,
    /// Not at all.
    Off,
}

/// How long files that a command leaves in home and caches are kept.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum CachesName {
    /// Until the command ends.
    Run,
    /// As long as the worktree.
    Tree,
}

/// The sandbox settings of the file.
pub(super) fn sandbox_of(source: &ConfigSource<'_>, file: &ConfigFile) -> Result<SandboxRule> {
    let table = &file.sandbox;
    for path in &table.write {
        let leaves = Path::new(path).components().any(|part| part == Component::ParentDir);
        if path.is_empty() || leaves {
            return Err(source
                .error_at("sandbox.write", format!("`{}` leaves the worktree", shown(path)))
                .hint("write a path inside the worktree or a full path in sandbox.write"));
        }
    }
    Ok(SandboxRule {
        mode: match table.mode {
            None | Some(ModeName::Auto) => SandboxMode::Auto,
            Some(ModeName::Require) => SandboxMode::Require,
            Some(ModeName::Off) => SandboxMode::Off,
        },
        network: table.network,
        agent_network: table.agent_network.unwrap_or(true),
        read: table.read.clone(),
        write: table.write.clone(),
        env: table.env.clone(),
        caches: match table.caches {
            None | Some(CachesName::Run) => Caches::Run,
            Some(CachesName::Tree) => Caches::Tree,
        },
        memory_gib: table.memory_gib,
        processes: table.processes,
        seals_history: file.git.sealed,
    })
}
