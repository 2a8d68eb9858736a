//! The engines by their names.

use super::command::CommandEngine;
use super::engine::Engine;
use super::ray::RayEngine;
use super::slurm::SlurmEngine;
use super::ssh::SshEngine;
use super::table::{EngineKind, RemoteConfig};

/// The engine of a remote.
pub(super) fn engine_of(config: &RemoteConfig) -> Box<dyn Engine> {
    match config.table.engine {
        EngineKind::Ssh => Box::new(SshEngine::new(config)),
        EngineKind::Slurm => Box::new(SlurmEngine::new(config)),
        EngineKind::Ray => Box::new(RayEngine::new(config)),
        EngineKind::Command => Box::new(CommandEngine::new(config)),
    }
}
