//! Every block of a bench with all that is needed to judge it again.

use karve_core::bench::{Bench, BenchRule};
use karve_core::charter::Metric;
use karve_core::measurement::{Block, Environment};
use karve_core::verdict::BenchFinding;
use karve_os::error::{CommandError, Result, WithContext};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::Path;

/// The version of the file.
const VERSION: u32 = 1;

/// A bench as it was run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BenchRecord {
    /// The version of this format.
    pub version: u32,
    /// The karve that ran it.
    pub karve: String,
    /// What B is compared with.
    pub a: BenchSide,
    /// What is compared.
    pub b: BenchSide,
    /// What was measured.
    pub metric: Metric,
    /// Names of the cases, in the order of the pairs of a block.
    pub cases: Vec<String>,
    /// The thresholds.
    pub rule: BenchRule,
    /// The host and tools it was measured with.
    pub environment: Environment,
    /// Why it ended.
    pub end: BenchEnd,
    /// How long it took, in milliseconds.
    pub spent_ms: u64,
    /// Every block, the discarded ones with their reason. A is the parent, B the candidate.
    pub blocks: Vec<Block>,
}

/// One side of a bench.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BenchSide {
    /// What the user called it.
    pub label: String,
    /// The command that was timed.
    pub command: String,
    /// Its commit, if it is a revision or a worktree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Editable files that changed in the worktree since that commit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
}

/// Why a bench ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BenchEnd {
    /// There was a finding, and everything else that was asked for.
    Found,
    /// All pairs were used.
    Pairs,
    /// The time was up.
    Time,
    /// The user stopped it.
    Stopped,
}

impl BenchEnd {
    /// Why a bench with this finding ended.
    pub fn of(finding: BenchFinding, n_blocks: u32, rule: &BenchRule) -> Self {
        match finding {
            BenchFinding::CouldNotTell if n_blocks >= rule.blocks_max => Self::Pairs,
            BenchFinding::CouldNotTell => Self::Time,
            BenchFinding::Faster { .. }
            | BenchFinding::Slower { .. }
            | BenchFinding::NoDifference { .. }
            | BenchFinding::ClocksDisagree { .. } => Self::Found,
        }
    }
}

impl BenchRecord {
    /// The version that is written now.
    pub const VERSION: u32 = VERSION;

    /// The fold over all blocks.
    pub fn bench(&self) -> Result<Bench> {
        let cases: Vec<usize> = (0..self.cases.len()).collect();
        let mut bench = Bench::new(&self.metric, &cases, self.rule);
        for (number, block) in self.blocks.iter().enumerate() {
            bench.take(block).map_err(|bad| {
                CommandError::usage(format!("block {number} of the file cannot be used"))
                    .cause(bad.0)
                    .hint("write the file again with \"karve bench --save FILE\"")
            })?;
        }
        Ok(bench)
    }

    /// Writes it to a file.
    pub fn save(&self, path: &Path) -> Result<()> {
        let text = serde_json::to_string(self).context(|| "cannot write the bench".into())?;
        fs::write(path, text + "\n")
            .context(|| format!("cannot write {}", path.display()))
            .map_err(|error| error.hint("name another file with --save FILE"))
    }
}
