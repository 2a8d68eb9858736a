//! The arithmetic of suites: how many tasks got faster, and how close kernels are to the limit.
//!
//! `fast_p` is KernelBench's share of tasks that are right and more than p times as fast; the SOL
//! score is SOL-ExecBench's: 0.5 at the baseline, 1 at the speed of light.

use karve_numerics::stats;
use serde::Serialize;

/// The speedups for which the share of tasks is shown.
pub const FAST_P: [f64; 4] = [0.0, 1.0, 1.5, 2.0];

/// The times that a SOL score is made of, in one unit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SolTimes {
    /// Of the kernel.
    pub kernel: f64,
    /// Of the baseline that scores 0.5.
    pub baseline: f64,
    /// The least time that the device allows.
    pub bound: f64,
}

impl SolTimes {
    /// The score, 0 to 1; none if a time is not a positive number. A kernel that seems faster than
    /// the bound scores 1: a measured bound is not exact.
    pub fn score(&self) -> Option<f64> {
        let usable = |time: f64| time.is_finite() && time > 0.0;
        if ![self.kernel, self.baseline, self.bound].into_iter().all(usable) {
            return None;
        }
        let above = (self.kernel - self.bound).max(0.0);
        let gap = self.baseline - self.bound;
        if gap <= 0.0 {
            return Some(if above > 0.0 { 0.0 } else { 1.0 });
        }
        Some(1.0 / (1.0 + above / gap))
    }
}

/// The share of tasks whose speedup is above `p`; none without tasks. A task without a right result
/// has no speedup, and counts as one that is not faster.
pub fn fast_p(speedups: &[Option<f64>], p: f64) -> Option<f64> {
    let fast = speedups.iter().flatten().filter(|speedup| **speedup > p).count();
    (!speedups.is_empty()).then(|| fast as f64 / speedups.len() as f64)
}

/// The figures of a suite.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SuiteScore {
    /// All tasks.
    pub tasks: usize,
    /// Those with a right result.
    pub right: usize,
    /// The geometric mean of their speedups.
    pub speedup: Option<f64>,
    /// The share of all tasks above each of [`FAST_P`].
    pub fast: Vec<FastShare>,
    /// The mean SOL score of those whose bound is known.
    pub sol: Option<f64>,
    /// How many those are.
    pub sol_tasks: usize,
}

/// A share of all tasks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct FastShare {
    /// The speedup that is exceeded.
    pub p: f64,
    /// The share, 0 to 1.
    pub share: f64,
}

/// Sums up tasks: the speedup of each, and its SOL score where there is one.
pub fn suite_score(tasks: &[(Option<f64>, Option<f64>)]) -> SuiteScore {
    let speedups: Vec<Option<f64>> = tasks.iter().map(|(speedup, _)| *speedup).collect();
    let right: Vec<f64> = speedups.iter().flatten().copied().collect();
    let scores: Vec<f64> = tasks.iter().filter_map(|(_, score)| *score).collect();
    let share = |p: f64| Some(FastShare { p, share: fast_p(&speedups, p)? });
    SuiteScore {
        tasks: tasks.len(),
        right: right.len(),
        speedup: stats::geometric_mean(&right),
        fast: FAST_P.into_iter().filter_map(share).collect(),
        sol: mean(&scores),
        sol_tasks: scores.len(),
    }
}

/// The mean; none without numbers.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn score(kernel: f64, baseline: f64, bound: f64) -> Option<f64> {
        SolTimes { kernel, baseline, bound }.score()
    }

    #[test]
    fn the_baseline_scores_a_half_and_the_bound_one() {
        assert_eq!(score(3.0, 3.0, 1.0), Some(0.5));
        assert_eq!(score(1.0, 3.0, 1.0), Some(1.0));
        assert_eq!(score(2.0, 3.0, 1.0), Some(1.0 / 1.5));
        assert_eq!(score(5.0, 3.0, 1.0), Some(1.0 / 3.0));
        // Faster than the bound: not more than one.
        assert_eq!(score(0.5, 1.2, 1.0), Some(1.0));
        // A baseline at the bound leaves nothing to gain.
        assert_eq!((score(1.0, 1.0, 1.0), score(1.1, 1.0, 1.0)), (Some(1.0), Some(0.0)));
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(score(bad, 2.0, 1.0), None);
            assert_eq!(score(2.0, bad, 1.0), None);
            assert_eq!(score(2.0, 3.0, bad), None);
        }
    }

    #[test]
    fn a_faster_kernel_never_scores_less_and_the_unit_does_not_matter() {
        for step in 1..100_u32 {
            let kernel = f64::from(step) * 0.1;
            let own = score(kernel, 4.0, 0.5).unwrap();
            assert!((0.0..=1.0).contains(&own));
            assert!(own >= score(kernel + 0.1, 4.0, 0.5).unwrap());
            let scaled = score(kernel * 1e3, 4e3, 0.5e3).unwrap();
            assert!((own - scaled).abs() < 1e-12);
        }
    }

    #[test]
    fn a_share_counts_all_tasks_and_what_is_strictly_faster() {
        let tasks = [Some(1.0), Some(1.5), Some(2.5), None];
        let shares = FAST_P.map(|p| fast_p(&tasks, p).unwrap());
        assert_eq!(shares, [0.75, 0.5, 0.25, 0.25]);
        assert_eq!(fast_p(&[], 1.0), None);
    }

    #[test]
    fn a_suite_has_the_mean_of_what_is_right_and_of_what_has_a_bound() {
        let sum = suite_score(&[
            (Some(4.0), Some(0.9)),
            (Some(1.0), None),
            (None, None),
            (Some(2.0), Some(0.5)),
        ]);
        assert_eq!((sum.tasks, sum.right, sum.sol_tasks), (4, 3, 2));
        assert!((sum.speedup.unwrap() - 2.0).abs() < 1e-12);
        assert!((sum.sol.unwrap() - 0.7).abs() < 1e-12);
        assert_eq!(sum.fast[1], FastShare { p: 1.0, share: 0.5 });
        let none = suite_score(&[]);
        assert_eq!((none.speedup, none.sol, none.fast.len()), (None, None, 0));
    }
}
