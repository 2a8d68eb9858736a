//! `karve worker`: loads a kernel and calls it when karve asks. Internal.

use crate::ui;
use karve_harness::runner;
use karve_os::error::Result;

/// Serve the karve that started this process
#[derive(Debug, clap::Args)]
#[command(hide = true)]
pub struct WorkerArgs {
    /// Call a function once, and tell how far it reaches into its arguments
    #[arg(long)]
    probe: bool,
}

impl WorkerArgs {
    /// Runs the command.
    pub fn run(&self) -> Result<()> {
        if self.probe {
            ui::outln(&runner::serve_probe()?);
            return Ok(());
        }
        runner::serve();
        Ok(())
    }
}
