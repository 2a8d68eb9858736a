//! Whether the results of a benchmark follow the hidden seed, by the checksums that it reports.

use serde::{Deserialize, Serialize};

/// Checksums that differ by less than this, relative to the larger, are equal: sums in another
/// order differ in their last digits.
const EQUAL_WITHIN: f64 = 1e-6;

/// How a benchmark reacts to its seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SeedReaction {
    /// Another seed gives other results, and the same seed the same.
    Follows,
    /// Every seed gives the same results.
    Ignores,
    /// Results differ; whether the seed is the reason is unknown.
    Varies,
}

impl SeedReaction {
    /// From checksums of two runs with one seed, and of one with another, if there are any.
    pub fn of(first: &[f64], again: &[f64], other: &[f64]) -> Option<Self> {
        if first.is_empty() {
            return None;
        }
        Some(match (equal(first, again), equal(first, other)) {
            (true, true) => Self::Ignores,
            (true, false) => Self::Follows,
            (false, _) => Self::Varies,
        })
    }

    /// From checksums of runs that each had another seed.
    pub fn of_fresh(runs: &[Vec<f64>]) -> Option<Self> {
        let first = runs.first().filter(|first| !first.is_empty() && runs.len() > 1)?;
        Some(match runs.iter().all(|run| equal(first, run)) {
            true => Self::Ignores,
            false => Self::Varies,
        })
    }
}

fn equal(a: &[f64], b: &[f64]) -> bool {
    differing_checksum(a, b, EQUAL_WITHIN).is_none()
}

/// How far the checksums of two kernels on the same inputs may differ by default, relative to the
/// larger one: what single precision loses by another order of additions.
pub const CHECKSUM_REL_MAX: f64 = 1e-5;

/// The first row whose checksums differ by more than this, relative to the larger one; a row that
/// only one of the two has differs.
pub fn differing_checksum(a: &[f64], b: &[f64], rel_max: f64) -> Option<usize> {
    let is_close = |(a, b): (&f64, &f64)| (a - b).abs() <= rel_max * a.abs().max(b.abs());
    let common = a.iter().zip(b).position(|pair| !is_close(pair));
    common.or_else(|| (a.len() != b.len()).then(|| a.len().min(b.len())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_is_followed_if_it_alone_decides_the_results() {
        let of =
            |first: f64, again: f64, other: f64| SeedReaction::of(&[first], &[again], &[other]);
        assert_eq!(of(1.5, 1.5, 2.5), Some(SeedReaction::Follows));
        assert_eq!(of(1.5, 1.500_000_1, 2.5), Some(SeedReaction::Follows));
        assert_eq!(of(1.5, 1.5, 1.5), Some(SeedReaction::Ignores));
        assert_eq!(of(1.5, 1.7, 2.5), Some(SeedReaction::Varies));
        assert_eq!(SeedReaction::of(&[], &[], &[]), None);
        assert_eq!(SeedReaction::of(&[1.0, 2.0], &[1.0], &[1.0]), Some(SeedReaction::Varies));
    }

    #[test]
    fn equal_results_for_fresh_seeds_show_that_they_are_ignored() {
        let of = |runs: &[f64]| {
            let runs: Vec<Vec<f64>> = runs.iter().map(|run| vec![*run]).collect();
            SeedReaction::of_fresh(&runs)
        };
        assert_eq!(of(&[3.0, 3.0, 3.0]), Some(SeedReaction::Ignores));
        assert_eq!(of(&[3.0, 3.0, 4.0]), Some(SeedReaction::Varies));
        assert_eq!(of(&[3.0]), None);
        assert_eq!(SeedReaction::of_fresh(&[Vec::new(), Vec::new()]), None);
    }

    #[test]
    fn a_checksum_of_another_kernel_may_differ_by_rounding_only() {
        let check = |a: &[f64], b: &[f64], want| assert_eq!(differing_checksum(a, b, 1e-5), want);
        check(&[8192.0, 3.0], &[8192.01, 3.0], None);
        check(&[8192.0, 3.0], &[8192.0, 3.01], Some(1));
        check(&[8192.0], &[8194.2], Some(0));
        check(&[0.0], &[0.0], None);
        check(&[1.0], &[1.0, 2.0], Some(1));
        check(&[1.0], &[f64::NAN], Some(0));
    }
}
