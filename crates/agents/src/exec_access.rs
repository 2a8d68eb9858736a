//! How an agent runs commands on the machine with the device, if that is another one.

use std::path::PathBuf;

/// The variable that names the socket.
pub const EXEC_SOCKET: &str = "KARVE_EXEC";

/// What an agent needs for `karve exec`: it asks karve, which asks the worker of the campaign.
#[derive(Clone, Debug)]
pub struct ExecAccess {
    /// Where karve listens while the agent works.
    pub socket: PathBuf,
    /// karve itself.
    pub karve: PathBuf,
}

impl ExecAccess {
    /// The variables of the agent: where karve listens, and karve as a last resort of the path.
    pub(crate) fn variables(&self) -> [(&'static str, String); 2] {
        let path = std::env::var("PATH").unwrap_or_default();
        let own = self.karve.parent().unwrap_or(&self.karve).display().to_string();
        let socket = self.socket.display().to_string();
        [(EXEC_SOCKET, socket), ("PATH", format!("{path}:{own}"))]
    }

    /// What it must see.
    pub(crate) fn shown(&self) -> [PathBuf; 2] {
        [self.socket.clone(), self.karve.clone()]
    }
}
