//! Plain work of a known size, for controls: a busy host slows it down just as it does a kernel.

use std::hint::black_box;
use std::time::{Duration, Instant};

/// Number of tries to time a piece of work; the shortest one was not interrupted.
const PROBES: u32 = 16;

/// Iterations of one try, some ten microseconds.
const PROBE_ITERATIONS: u64 = 8_192;

/// Iterations per nanosecond on this core, without interruptions.
pub fn rate() -> f64 {
    let probe = || {
        let start = Instant::now();
        work(PROBE_ITERATIONS);
        start.elapsed()
    };
    let shortest = (0..PROBES).map(|_| probe()).min().unwrap_or_default();
    PROBE_ITERATIONS as f64 / shortest.max(Duration::from_nanos(1)).as_nanos() as f64
}

/// Runs this many iterations.
pub fn work(iterations: u64) {
    let mut sum = 0_u64;
    for n in 0..iterations {
        sum = black_box(sum.wrapping_mul(31).wrapping_add(n));
    }
    black_box(sum);
}
