//! The tree of kept commits; the log stays linear.

use serde::{Deserialize, Serialize};

/// One kept commit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KeptCommit {
    /// The round that kept it.
    pub round: u32,
    /// The commit.
    pub commit: String,
    /// Its tree.
    pub tree: String,
    /// The commit it was measured against.
    pub parent: String,
    /// The speedup over that parent.
    pub ratio: f64,
}

/// All kept commits, oldest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lineage {
    kept: Vec<KeptCommit>,
}

impl Lineage {
    /// Adds a kept commit.
    pub fn push(&mut self, kept: KeptCommit) {
        self.kept.push(kept);
    }

    /// The kept commits, oldest first.
    pub fn kept(&self) -> &[KeptCommit] {
        &self.kept
    }

    /// The incumbent, if anything was kept.
    pub fn best(&self) -> Option<&KeptCommit> {
        self.kept.last()
    }

    /// The product of all round gains. It overstates; the final duel is the headline.
    pub fn cumulative_ratio(&self) -> f64 {
        self.kept.iter().map(|kept| kept.ratio).product()
    }
}
