//! Hidden seeds: every test and every block of a duel has its own, in the environment and as
//! `{seed}`, the same for both arms. No agent sees one before it was used.

use super::output::OutputRow;
use super::{Harness, rows};
use karve_core::measurement::Sample;

/// The variable with the seed of a test or benchmark.
pub const SEED: &str = "KARVE_SEED";

/// The columns in which a benchmark may report a checksum of its results.
const CHECKSUMS: [&str; 2] = ["checksum", "extra_info.checksum"];

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
            CHECKSUMS.iter().find_map(|name| {
                let value = row.values.get(*name).copied();
                value.or_else(|| row.params.get(*name)?.parse().ok())
            })
        };
        rows.iter().filter_map(checksum).collect()
    }
}
