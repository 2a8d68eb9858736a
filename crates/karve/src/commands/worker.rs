//! `karve worker`: loads a kernel and calls it when karve asks. Internal.

use crate::{remote_worker, ui};
use karve_harness::runner;
use karve_os::error::Result;
use std::path::PathBuf;

/// Serve the karve that started this process
#[derive(Debug, clap::Args)]
#[command(hide = true)]
pub struct WorkerArgs {
    /// Call a function once, and tell how far it reaches into its arguments
    #[arg(long)]
    probe: bool,
    /// Build and measure for a karve on another machine, with this directory
    #[arg(long, value_name = "DIR")]
    remote: Option<PathBuf>,
    /// Make the call that a directory describes, for a profiler
    #[arg(long, value_name = "DIR")]
    play: Option<PathBuf>,
}

impl WorkerArgs {
    /// Runs the command.
    pub fn run(&self) -> Result<()> {
        if self.probe {
            ui::outln(&runner::serve_probe()?);
            return Ok(());
        }
        if let Some(dir) = &self.remote {
            return remote_worker::serve(dir);
        }
        if let Some(dir) = &self.play {
            return runner::play(dir);
        }
        runner::serve();
        Ok(())
    }
}
