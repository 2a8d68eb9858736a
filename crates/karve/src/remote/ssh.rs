//! Hosts that `ssh` reaches, with the user's configuration, jump hosts and keys.

use super::engine::{Allocation, DeviceWait, Engine, quoted};
use super::table::RemoteConfig;
use karve_os::error::Result;
use karve_os::process::Command;
use std::path::Path;

/// Options for every call: nothing is asked, and a dead line is noticed. An open connection of the
/// user is used; none is left open, because it would end with karve.
const OPTIONS: [&str; 12] = [
    "-T",
    "-x",
    "-o",
    "BatchMode=yes",
    "-o",
    "ConnectTimeout=15",
    "-o",
    "ServerAliveInterval=5",
    "-o",
    "ServerAliveCountMax=3",
    "-o",
    "ControlMaster=no",
];

/// A host.
#[derive(Debug)]
pub(super) struct SshEngine {
    host: String,
    options: Vec<String>,
}

impl SshEngine {
    pub(super) fn new(config: &RemoteConfig) -> Self {
        let host = config.table.host.clone().unwrap_or_default();
        Self { host, options: config.table.options.clone() }
    }

    /// A local command that runs a shell script on the host.
    pub(super) fn command(&self, script: &str) -> Command {
        Command::argv(self.words(script), Path::new("/"))
    }

    /// The same as words.
    pub(super) fn words(&self, script: &str) -> Vec<String> {
        let mut argv: Vec<String> = vec!["ssh".to_owned()];
        argv.extend(OPTIONS.map(str::to_owned));
        argv.extend(self.options.iter().cloned());
        argv.extend(["--".to_owned(), self.host.clone()]);
        argv.push(format!("exec /bin/sh -c {}", quoted(script)));
        argv
    }
}

impl Engine for SshEngine {
    fn acquire(&mut self, _wait: &DeviceWait<'_>) -> Result<Allocation> {
        Ok(Allocation { id: String::new(), own: false })
    }

    fn gate(&self, _held: &Allocation, script: &str) -> Command {
        self.command(script)
    }

    fn may_drop(&self) -> bool {
        true
    }
}
