//! Hidden seeds: every test and every block of a duel has its own, in the environment and as
//! `{seed}`, the same for both arms. No agent sees one before it was used.

use super::output::OutputRow;
use super::{Harness, rows};
use karve_core::measurement::Sample;

/// The variable with the seed of a test or benchmark.
pub const SEED: &str = "KARVE_SEED";

/// The column in which a benchmark reports a checksum of its results.
const CHECKSUM: &str = "checksum";

/// One run of a benchmark.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BenchReading {
    /// One sample for each case.
    pub samples: Vec<Sample>,
    /// The checksums that it reports, row by row; empty if it reports none.
    pub checksums: Vec<f64>,
}

impl Harness {
    /// The checksums in the output of a benchmark.
    pub(super) fn checksums_in(&self, text: &str) -> Vec<f64> {
        let rows = match self.metric.own_clock() {
            // Its output is not read otherwise, and may be anything.
            Some(_) => None,
            None => rows::rows(text, &self.output).ok(),
        };
        let rows = rows.unwrap_or_default();
        let checksum = |row: &OutputRow| {
            let value = row.values.get(CHECKSUM).copied();
            value.or_else(|| row.params.get(CHECKSUM)?.parse().ok())
        };
        rows.iter().filter_map(checksum).collect()
    }
}
