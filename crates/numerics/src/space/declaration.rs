//! Knobs that are declared in `karve.toml`, and how a kernel gets their values.

use serde::{Deserialize, Serialize};

/// A tunable declared in `karve.toml`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnobDeclaration {
    /// Its name in the file.
    pub name: String,
    /// The values it may take.
    pub values: Vec<String>,
    /// The editable file that defines it.
    pub file: String,
    /// Instead of values: flags, each of which is in the list of that name or not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<String>,
    /// How its value reaches the kernel.
    #[serde(default, skip_serializing_if = "Delivery::is_source")]
    pub deliver: Delivery,
    /// Its key in a JSON file, if not its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Where it matters, if not everywhere: an expression over the other knobs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
}

/// How the value of a knob reaches the kernel. It is always in an editable file, so that a
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
    /// By a file that is generated from the file, a template, before each build.
    Placeholder,
}

impl Delivery {
    /// Whether the definition itself is what the kernel reads.
    pub fn is_source(&self) -> bool {
        *self == Self::Source
    }
}
