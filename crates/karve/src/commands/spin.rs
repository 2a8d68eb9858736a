//! `karve spin`: busy work of a known size, for A/A tests. Internal.

use karve_os::error::Result;
use karve_os::plain_work;

/// Busy-loop for about this many microseconds
#[derive(Debug, clap::Args)]
#[command(hide = true)]
pub struct SpinArgs {
    /// Microseconds on an idle core
    micros: u64,
}

impl SpinArgs {
    /// Runs the command.
    pub fn run(&self) -> Result<()> {
        // From here on the iteration count is fixed.
        let iterations = self.micros as f64 * 1e3 * plain_work::rate();
        plain_work::work(iterations as u64);
        Ok(())
    }
}
