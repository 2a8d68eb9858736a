//! A kernel of a campaign and its figures in the formats of other projects: what `karve export`
//! writes.
//!
//! ```text
//! campaign ──▶ VersionFigures ─┐
//! files of the version ────────┴─▶ one file per format ──▶ ExportResult
//! ```
//!
//! Nothing is measured or judged here: every number is one of the log.

mod figures;
mod kernel;
mod metrics;
mod results_tsv;
mod submission;
mod traces;

pub use figures::{CaseFigures, VersionFigures};

use crate::tasks::TASK_PATH;
use karve_core::campaign::Campaign;
use karve_core::charter::Charter;
use karve_os::error::Result;
use serde_json::Value as Json;
use std::collections::BTreeMap;

/// The formats that a kernel can be exported to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum ExportFormat {
    /// KernelBench: one file with ModelNew
    Kernelbench,
    /// GPU MODE: submission.py
    Gpumode,
    /// FlashInfer-Bench: solutions/NAME.json and traces/NAME.jsonl
    Flashinfer,
    /// SOL-ExecBench: solution.json, traces.jsonl and the SOL score in score.json
    SolExecbench,
    /// autoresearch: results.tsv with all rounds
    Autoresearch,
    /// OpenEvolve: metrics.json
    Openevolve,
    /// ShinkaEvolve: metrics.json and correct.json
    Shinka,
}

/// What is exported.
#[derive(Debug)]
pub struct ExportSource<'a> {
    /// The campaign.
    pub campaign: &'a Campaign,
    /// What it agreed to.
    pub charter: &'a Charter,
    /// The figures of the version.
    pub figures: VersionFigures,
    /// The commit of the version.
    pub commit: String,
    /// Its text files by their path, relative to `karve.toml`.
    pub files: BTreeMap<String, String>,
    /// When the last figure was recorded, in seconds since 1970.
    pub at_s: i64,
    /// What the user calls things.
    pub names: ExportNames,
}

/// Names that a format has and karve does not know.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExportNames {
    /// The leaderboard of GPU MODE.
    pub leaderboard: Option<String>,
    /// Its GPUs.
    pub gpus: Vec<String>,
    /// The definition that a solution is for.
    pub definition: Option<String>,
    /// The author of a solution.
    pub author: Option<String>,
}

/// A file of an export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportFile {
    /// Its usual path.
    pub path: String,
    /// Its contents.
    pub text: String,
}

/// The files of an export, and what a user must know.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExportResult {
    /// The files.
    pub files: Vec<ExportFile>,
    /// Sentences.
    pub notes: Vec<String>,
}

impl ExportFormat {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Kernelbench => "kernelbench",
            Self::Gpumode => "gpumode",
            Self::Flashinfer => "flashinfer",
            Self::SolExecbench => "sol-execbench",
            Self::Autoresearch => "autoresearch",
            Self::Openevolve => "openevolve",
            Self::Shinka => "shinka",
        }
    }

    /// Writes a version in this format.
    pub fn export(self, source: &ExportSource<'_>) -> Result<ExportResult> {
        match self {
            Self::Kernelbench => submission::kernelbench(source),
            Self::Gpumode => submission::gpumode(source),
            Self::Flashinfer => traces::flashinfer(source),
            Self::SolExecbench => traces::sol_execbench(source),
            Self::Autoresearch => Ok(results_tsv::autoresearch(source)),
            Self::Openevolve => metrics::openevolve(source),
            Self::Shinka => metrics::shinka(source),
        }
    }
}

impl ExportSource<'_> {
    /// What the import of a task wrote about it; null if the project is not an imported task.
    fn task(&self) -> Json {
        let text = self.files.get(TASK_PATH);
        text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or(Json::Null)
    }
}

impl ExportResult {
    fn one(path: impl Into<String>, text: String) -> Self {
        Self { files: vec![ExportFile { path: path.into(), text }], notes: Vec::new() }
    }
}
