//! How the numbers of a benchmark are read.

use serde::{Deserialize, Serialize};

/// How the benchmark's output is read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OutputRule {
    /// The format's name in `karve.toml`.
    pub format: String,
    /// Whether the result is in the file that `{out}` names, or on standard output.
    pub from_file: bool,
    /// The column that names the case.
    pub case_column: Option<String>,
    /// The column that says PASS or FAIL.
    pub check_column: Option<String>,
    /// Which of several records is meant.
    pub label: Option<String>,
    /// The least signal-to-noise ratio that a row may report, in decibels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snr_db_min: Option<f64>,
    /// What the lines of plain text look like.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    /// How far checksums of incumbent and candidate may differ, relative to the larger one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checksum_rel_max: Option<f64>,
}
