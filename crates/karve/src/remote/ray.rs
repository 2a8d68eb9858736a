//! Actors of a Ray cluster: one worker in each, started by a small Python program.

use super::engine::{Allocation, DeviceWait, Engine};
use super::table::RemoteConfig;
use karve_os::error::Result;
use karve_os::process::Command;
use std::path::Path;

/// Passes frames between karve and an actor.
const LAUNCHER: &str = include_str!("ray_line.py");

/// A cluster.
#[derive(Debug)]
pub(super) struct RayEngine {
    config: RemoteConfig,
}

impl RayEngine {
    pub(super) fn new(config: &RemoteConfig) -> Self {
        Self { config: config.clone() }
    }
}

impl Engine for RayEngine {
    fn acquire(&mut self, _wait: &DeviceWait<'_>) -> Result<Allocation> {
        Ok(Allocation { id: String::new(), own: true })
    }

    fn gate(&self, _held: &Allocation, script: &str) -> Command {
        Command::argv(["/bin/sh", "-c", script], Path::new("/"))
    }

    /// `args` are the number of GPUs and other resources of the actor, as JSON.
    fn bring(&self, _held: &Allocation) -> Vec<String> {
        let table = &self.config.table;
        let python = table.python.as_deref().unwrap_or("python3");
        let address = table.address.as_deref().unwrap_or("auto");
        let arg = |at: usize, default: &str| {
            table.args.get(at).cloned().unwrap_or_else(|| default.to_owned())
        };
        let words = [python, "-c", LAUNCHER, address].map(str::to_owned);
        words.into_iter().chain([arg(0, "1"), arg(1, "{}")]).collect()
    }

    fn may_drop(&self) -> bool {
        false
    }
}
