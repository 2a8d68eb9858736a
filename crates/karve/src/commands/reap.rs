//! `karve reap`: ends and removes what a killed karve left behind. Internal.

use karve_harness::scratch;
use karve_os::error::Result;
use karve_os::process::{self, Reaper};

/// Wait for a karve process to end, and clean up after it if it was killed
#[derive(Debug, clap::Args)]
#[command(hide = true)]
pub struct CleanupArgs {
    /// Its process id
    pid: u32,
    /// Its mark
    mark: String,
}

impl CleanupArgs {
    /// Starts it for this process. Without it, the next karve cleans up.
    pub fn start() -> Option<Reaper> {
        let pid = std::process::id().to_string();
        Reaper::start(&["reap", &pid, process::own_mark()]).ok()
    }

    /// Runs the command.
    pub fn run(&self) -> Result<()> {
        if Reaper::is_needed(&mut std::io::stdin().lock()) {
            process::end_of_karve(self.pid, &self.mark);
            scratch::remove_leftovers_of(&self.mark);
        }
        Ok(())
    }
}
