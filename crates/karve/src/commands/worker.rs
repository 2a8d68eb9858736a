//! `karve worker`: loads a kernel and calls it when karve asks. Internal.

use karve_harness::runner;
use karve_os::error::Result;

/// Serve the karve that started this process
#[derive(Debug, clap::Args)]
#[command(hide = true)]
pub struct WorkerArgs {}

impl WorkerArgs {
    /// Runs the command.
    pub fn run(&self) -> Result<()> {
        runner::serve();
        Ok(())
    }
}
