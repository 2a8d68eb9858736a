//! How much work an item takes.

use serde::{Deserialize, Serialize};

/// The effort of an item.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum ItemEffort {
    Low,
    #[default]
    Medium,
    High,
}

impl ItemEffort {
    /// All of them, lowest effort first.
    pub const ALL: [Self; 3] = [Self::Low, Self::Medium, Self::High];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }

    /// The effort with that name, ignoring case.
    pub fn by_name(name: &str) -> Option<Self> {
        let is = |effort: &Self| effort.name().eq_ignore_ascii_case(name.trim());
        Self::ALL.into_iter().find(is)
    }

    /// The cost of an item of this effort, as a multiple of the lowest.
    pub(super) fn cost(self) -> f64 {
        match self {
            Self::Low => 1.0,
            Self::Medium => 2.0,
            Self::High => 4.0,
        }
    }
}
