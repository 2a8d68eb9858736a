//! `[sandbox]` of `karve.toml`: what commands and agents may read and write.

use super::file::{CachesName, ConfigFile, ModeName};
use super::source::ConfigSource;
use karve_core::charter::{Caches, SandboxMode, SandboxRule};
use karve_os::error::Result;
use karve_os::text::shown;
use std::path::{Component, Path};

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
