//! Why it is slow: what a profile says, as far as the project's own profile command tells.

use serde::{Deserialize, Serialize};

/// How deep to look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProfileDepth {
    /// The usual first look.
    Light,
    /// Everything, and classify again.
    Full,
    /// Down to the generated code.
    Code,
}

impl ProfileDepth {
    /// Its name, as commands are told.
    pub fn name(self) -> &'static str {
        match self {
            Self::Light => "light",
            Self::Full => "full",
            Self::Code => "code",
        }
    }
}

/// What limits the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum Bottleneck {
    Memory,
    Compute,
    Latency,
    Launch,
    Communication,
    Unknown,
}

impl Bottleneck {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Compute => "compute",
            Self::Latency => "latency",
            Self::Launch => "launch",
            Self::Communication => "communication",
            Self::Unknown => "unknown",
        }
    }

    /// The bottleneck of that name.
    pub fn by_name(name: &str) -> Self {
        [
            Self::Memory,
            Self::Compute,
            Self::Latency,
            Self::Launch,
            Self::Communication,
        ]
        .into_iter()
        .find(|bottleneck| name.to_lowercase().starts_with(bottleneck.name()))
        .unwrap_or(Self::Unknown)
    }
}

/// A profile of one commit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// The commit.
    pub commit: String,
    /// How deep it looked.
    pub depth: ProfileDepth,
    /// The class that the output names.
    pub bottleneck: Bottleneck,
    /// The end of the output, bounded.
    pub digest: String,
    /// The artifact that holds all of it, if the command ran.
    pub artifact: Option<String>,
    /// Why there is nothing, if there is nothing.
    pub skipped: Option<String>,
    /// The share of the time that is spent in what a candidate may change, 0 to 1, if it says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
}
