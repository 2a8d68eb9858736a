//! `karve relay`: holds a worker for a karve on another machine while the line is lost. Internal.

use crate::remote::relay;
use karve_os::error::Result;
use std::path::PathBuf;
use std::time::Duration;

/// Attach to a worker, which goes on for a while when the line drops
#[derive(Debug, clap::Args)]
#[command(hide = true)]
pub struct RelayArgs {
    /// karve's directory
    dir: PathBuf,
    /// Whose worker
    session: String,
    /// Seconds that the worker goes on without a line
    #[arg(long, value_name = "S")]
    grace: u64,
    /// Be the process that holds the worker
    #[arg(long)]
    serve: bool,
    /// The worker
    #[arg(last = true, required = true)]
    worker: Vec<String>,
}

impl RelayArgs {
    /// Runs the command.
    pub fn run(&self) -> Result<()> {
        match self.serve {
            true => {
                let grace = Duration::from_secs(self.grace);
                relay::serve(&self.dir, &self.session, grace, &self.worker)
            }
            false => relay::attach(&self.dir, &self.session, self.grace, &self.worker),
        }
    }
}
