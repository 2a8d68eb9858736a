//! Tunables that are declared in `karve.toml`, and how all are tuned.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How knobs are tuned, if the user says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TuneRule {
    /// What settings must satisfy, in addition to what the editable files say.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub restrictions: Vec<String>,
    /// How much "karve tune" may try, as in `--budget`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<String>,
    /// The search strategy, as in `--strategy`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<String>,
    /// Devices that settings are tried on at the same time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pool: Vec<PoolMember>,
}

/// One of several identical devices.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolMember {
    /// Its name, by which it is leased.
    pub device: String,
    /// Added to the environment of its commands.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// The CPUs that its benchmarks are pinned to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pin: Vec<usize>,
}

impl TuneRule {
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}
