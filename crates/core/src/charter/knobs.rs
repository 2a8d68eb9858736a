//! Tunables that are declared in `karve.toml`, and how all are tuned.

use super::{Charter, Pin, WorkMode};
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

impl Charter {
    /// The name by which its device is leased.
    pub fn leased(&self) -> &str {
        self.device.member.as_deref().unwrap_or(&self.target.device)
    }

    /// The same charter on a member of its pool of devices; `None` if there is none of that name.
    #[must_use]
    pub fn on_member(mut self, name: &str) -> Option<Self> {
        let member = self.tune.pool.iter().find(|member| member.device == name)?.clone();
        self.device.member = Some(member.device);
        self.commands.env.extend(member.env.clone());
        if let WorkMode::Workspace { integration, .. } = &mut self.mode {
            integration.env.extend(member.env);
        }
        if !member.pin.is_empty() {
            self.device.pin = Pin::Cpus { cpus: member.pin };
        }
        Some(self)
    }
}
