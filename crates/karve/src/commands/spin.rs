//! `karve spin`: plain work of a known size, for controls. Not for people.

use karve_os::error::Result;
use karve_os::plain_work;

/// Work for about so many microseconds
#[derive(Debug, clap::Args)]
#[command(hide = true)]
pub struct Spin {
    /// Microseconds on an idle core
    micros: u64,
}

impl Spin {
    /// Runs the command.
    pub fn run(&self) -> Result<()> {
        // A fixed count from here on.
        let iterations = self.micros as f64 * 1e3 * plain_work::rate();
        plain_work::work(iterations as u64);
        Ok(())
    }
}
