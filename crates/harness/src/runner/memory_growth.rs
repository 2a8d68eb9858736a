//! Whether a candidate keeps ever more memory, call by call.
//!
//! Aged processes call their kernels many times. A buffer that is allocated once, or that grows
//! with a case, is one step; a leak grows in the first half of the calls and in the second.

use karve_core::measurement::{FailureCategory, Gate};

/// Growth beyond the incumbent's that is still no leak: bytes in one call, and in all of them.
const PER_CALL_MAX: f64 = 1_024.0;
const TOTAL_MAX: f64 = (4 << 20) as f64;

/// Bytes of private memory of the incumbent's process and of the candidate's, before the first
/// batch and after each.
#[derive(Clone, Debug, Default)]
pub(super) struct MemoryGrowth(Vec<[u64; 2]>);

impl MemoryGrowth {
    /// Adds a reading of both processes.
    pub(super) fn add(&mut self, bytes: [u64; 2]) {
        self.0.push(bytes);
    }

    /// Judges a candidate after batches of this many calls on a case.
    pub(super) fn check(&self, case: &str, calls: u32) -> Result<(), Gate> {
        match leak(&self.0, calls) {
            None => Ok(()),
            Some(kib) => Err(Gate::WrongResult {
                case: case.to_owned(),
                category: FailureCategory::RuntimeOom,
                excerpt: format!("it leaks memory: {kib} KiB a call, or more"),
            }),
        }
    }
}

/// How much a candidate leaks in a call, in KiB, if it does. It is rounded down to a power of two:
/// a kernel chooses the number, and could tell about a hidden case with it.
fn leak(readings: &[[u64; 2]], calls: u32) -> Option<u64> {
    let batches = readings.len().checked_sub(1).filter(|batches| *batches >= 2)?;
    let middle = batches / 2;
    let growth =
        |from: usize, to: usize, arm: usize| readings[to][arm] as f64 - readings[from][arm] as f64;
    let per_call = |from: usize, to: usize| {
        let beyond = growth(from, to, 1) - growth(from, to, 0).max(0.0);
        beyond / ((to - from) as f64 * f64::from(calls.max(1)))
    };
    let steady = per_call(0, middle).min(per_call(middle, batches));
    let total = steady * batches as f64 * f64::from(calls);
    let kib = (steady / 1_024.0) as u64;
    let power = kib.checked_ilog2()?;
    (steady > PER_CALL_MAX && total > TOTAL_MAX).then_some(1 << power)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    /// Readings of an incumbent that stays as it is, and of a candidate.
    fn beside_a_calm_one(candidate: &[u64]) -> Vec<[u64; 2]> {
        candidate.iter().map(|bytes| [10 * MIB, *bytes]).collect()
    }

    #[track_caller]
    fn check(candidate: &[u64], calls: u32, want: Option<u64>) {
        assert_eq!(leak(&beside_a_calm_one(candidate), calls), want);
    }

    #[test]
    fn steady_growth_is_a_leak() {
        let grown: Vec<u64> = (0..=50).map(|batch| 10 * MIB + batch * 100 * 4_096).collect();
        check(&grown, 100, Some(4));
        // The exact number is not told.
        let grown: Vec<u64> = (0..=50).map(|batch| 10 * MIB + batch * 100 * 7_900).collect();
        check(&grown, 100, Some(4));
    }

    #[test]
    fn little_growth_is_none_in_a_call_or_in_all() {
        let slow: Vec<u64> = (0..=50).map(|batch| 10 * MIB + batch * 1_000 * 1_000).collect();
        check(&slow, 1_000, None);
        let short: Vec<u64> = (0..=10).map(|batch| 10 * MIB + batch * 300_000).collect();
        check(&short, 1, None);
    }

    #[test]
    fn a_buffer_that_is_allocated_once_is_no_leak_whenever_that_is() {
        for step in 1..=10 {
            let mut kept = vec![10 * MIB; 11];
            kept[step..].fill(90 * MIB);
            check(&kept, 10, None);
        }
    }

    #[test]
    fn what_the_incumbent_grows_by_too_is_not_the_candidates() {
        let both: Vec<[u64; 2]> = (0..=50).map(|batch| [batch * MIB, batch * MIB]).collect();
        assert_eq!(leak(&both, 10), None);
        // An incumbent that gives memory back does not make a leak of the same size everywhere.
        let shrinking: Vec<[u64; 2]> =
            (0..=50).map(|batch| [100 * MIB - batch * MIB, MIB]).collect();
        assert_eq!(leak(&shrinking, 10), None);
    }

    #[test]
    fn too_few_readings_say_nothing() {
        check(&[], 10, None);
        check(&[MIB, 100 * MIB], 10, None);
    }

    #[test]
    fn the_message_says_what_happens() {
        let mut growth = MemoryGrowth::default();
        for batch in 0..=50 {
            growth.add([MIB, MIB * (1 + batch)]);
        }
        let said = growth.check("n=64", 64).unwrap_err().describe();
        assert_eq!(said, "wrong on n=64: it leaks memory: 16 KiB a call, or more");
    }
}
