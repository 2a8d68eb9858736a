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
    /// The speedup over the original, if a duel against it was measured.
    pub checked: Option<f64>,
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

    /// The product of all round gains. It overstates, and a slow incumbent inflates it; see
    /// `cumulative_ratio`.
    pub fn product(&self) -> f64 {
        self.kept.iter().map(|kept| kept.ratio).product()
    }

    /// The speedup over the original that was last measured directly; 1 before anything was kept.
    pub fn last_checked(&self) -> f64 {
        self.kept.iter().rev().find_map(|kept| kept.checked).unwrap_or(1.0)
    }

    /// Commits kept since then.
    pub fn unchecked(&self) -> &[KeptCommit] {
        let checked = self.kept.iter().rposition(|kept| kept.checked.is_some());
        &self.kept[checked.map_or(0, |last| last + 1)..]
    }

    /// The speedup over the original: as last measured directly, times the gains kept since then.
    pub fn cumulative_ratio(&self) -> f64 {
        self.last_checked() * self.unchecked().iter().map(|kept| kept.ratio).product::<f64>()
    }

    /// How many commits were kept since the last duel against the original.
    pub fn n_unchecked(&self) -> u32 {
        u32::try_from(self.unchecked().len()).unwrap_or(u32::MAX)
    }
}

/// What must be said along with a speedup that contains this many gains not yet checked.
pub fn unchecked_note(keeps: u32) -> Option<String> {
    match keeps {
        0 => None,
        1 => Some("last keep not yet checked against the original".to_owned()),
        more => Some(format!("last {more} keeps not yet checked against the original")),
    }
}
