//! `karve spin`: plain work of a known size, for controls. Not for people.

use crate::error::Result;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Tries to find out how long a piece of work takes; the shortest was not interrupted.
const PROBES: u32 = 16;

/// Iterations of one try, some ten microseconds.
const PROBE_ITERATIONS: u64 = 8_192;

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
        let probe = || {
            let start = Instant::now();
            work(PROBE_ITERATIONS);
            start.elapsed()
        };
        let shortest = (0..PROBES).map(|_| probe()).min().unwrap_or_default();
        let shortest = shortest.max(Duration::from_nanos(1)).as_secs_f64();
        // A fixed count from here on: a busy host makes it longer, as it does with a kernel.
        let iterations = self.micros as f64 * 1e-6 / shortest * PROBE_ITERATIONS as f64;
        work(iterations as u64);
        Ok(())
    }
}

fn work(iterations: u64) {
    let mut sum = 0_u64;
    for n in 0..iterations {
        sum = black_box(sum.wrapping_mul(31).wrapping_add(n));
    }
    black_box(sum);
}
