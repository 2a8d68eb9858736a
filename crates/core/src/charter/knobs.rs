//! Tunables that are declared in `karve.toml`, and how all are tuned.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A tunable declared in `karve.toml`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnobDeclaration {
    /// Its name as it stands in the file.
    pub name: String,
    /// The values it may take.
    pub values: Vec<String>,
    /// The granted file in which it stands.
    pub file: String,
    /// Instead of values: flags, each of which stands in the list of that name or does not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<String>,
    /// How the kernel gets to know it.
    #[serde(default, skip_serializing_if = "Delivery::is_source")]
    pub deliver: Delivery,
    /// Where it stands in a JSON file, if not under its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Where it matters, if not everywhere: an expression over the other knobs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
}

/// How knobs are tuned, where the user says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TuneRule {
    /// What settings must satisfy, beside what the granted files say.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub restrictions: Vec<String>,
    /// How much "karve tune" may try, as `--budget` has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<String>,
    /// Who chooses, as `--strategy` has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<String>,
    /// Devices that settings are tried on at the same time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pool: Vec<PoolMember>,
}

/// One of several devices that are alike.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolMember {
    /// Its name, by which it is leased.
    pub device: String,
    /// Added to the environment of its commands.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// The CPUs that its benchmarks are held to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pin: Vec<usize>,
}

impl TuneRule {
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// How a kernel gets to know the value of a knob. It always stands in a granted file, so that a
/// setting is a commit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Delivery {
    /// By the definition in the file.
    #[default]
    Source,
    /// By a key of the file, which is JSON.
    Json,
    /// Also by a variable in the environment of every command.
    Environment,
    /// Also by `{NAME}` in the commands.
    Argument,
    /// By a file that is made of the file, a template, before each build.
    Placeholder,
}

impl Delivery {
    /// Whether the definition itself is what the kernel reads.
    pub fn is_source(&self) -> bool {
        *self == Self::Source
    }
}
