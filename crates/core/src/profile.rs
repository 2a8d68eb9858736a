//! Why a kernel is slow: counters, each with its source, and the conclusions from them.

pub mod classify;
pub mod compare;
pub mod counters;
mod family;
mod functions;
mod instructions;
pub mod predicate;
mod report;

pub use classify::{CounterHealth, Diagnosis, DiagnosisRuleSet, Opportunity, diagnose};
pub use family::{families, family_of};
pub use functions::{DisassembledFunction, functions_of};
pub use instructions::instruction_mix;
pub use predicate::{CounterValues, Predicate, PredicateValue};
pub use report::{AgentProfile, REPORT_CHARS_MAX, ReportClaims, ReportedValue};

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Maximum length of a quoted line, in characters.
pub const QUOTE_CHARS: usize = 200;
/// Maximum number of kernels in one profile; the longest ones stay.
pub const KERNELS_MAX: usize = 32;

/// The name of what stands for a whole timeline among kernels.
pub const TIMELINE: &str = "timeline";

/// The name of what stands for a whole program.
pub const PROGRAM: &str = "the whole program";

/// How deep to look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
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
    /// Its name on the command line.
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
    Occupancy,
    Launch,
    Communication,
    Sync,
    Balanced,
    /// Unknown, or added by a newer karve.
    #[serde(other)]
    Unknown,
}

impl Bottleneck {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Compute => "compute",
            Self::Latency => "latency",
            Self::Occupancy => "occupancy",
            Self::Launch => "launch",
            Self::Communication => "communication",
            Self::Sync => "sync",
            Self::Balanced => "balanced",
            Self::Unknown => "unknown",
        }
    }

    /// The bottleneck of that name.
    pub fn by_name(name: &str) -> Self {
        [
            Self::Memory,
            Self::Compute,
            Self::Latency,
            Self::Occupancy,
            Self::Launch,
            Self::Communication,
            Self::Sync,
            Self::Balanced,
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
    /// The end of the output, truncated.
    pub digest: String,
    /// The artifact with the full output, if the command ran.
    pub artifact: Option<String>,
    /// Why there is no profile, if there is none.
    pub skipped: Option<String>,
    /// The share of the time spent in editable code, 0 to 1, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// What was measured for each kernel, the longest-running one first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kernels: Vec<KernelProfile>,
    /// The diagnosis from the counters, and the rules it followed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diagnosis: Option<Box<Diagnosis>>,
    /// What is still missing, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The artifact with the generated code, if the profile looked at it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assembly: Option<String>,
    /// What an agent in the role of a profiler reported, if one was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<Box<AgentProfile>>,
}

/// What was measured for one kernel.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KernelProfile {
    /// Its name, as the profiler reports it.
    pub name: String,
    /// Whether it is defined in an editable file. A function's counters then include the functions
    /// it calls, if the profiler attributes them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub editable: bool,
    /// Its counters by name.
    pub counters: BTreeMap<String, Counter>,
    /// The profiler's own advice about it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<ProfilerRemark>,
}

/// One value, and its source.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Counter {
    /// The value, in the unit of its name.
    pub value: f64,
    /// Where it was read.
    pub source: ProfileSource,
}

/// A place in the output of a profiler: quoted before it is interpreted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProfileSource {
    /// The profiler.
    pub tool: String,
    /// The line of its output, from 1; 0 if the value is derived from others.
    pub line: u32,
    /// The text of the line, shortened: the profiler's own name and value.
    pub quote: String,
    /// The file that it was read from, if there were several.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub file: String,
}

/// Advice from a profiler, verbatim.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProfilerRemark {
    /// The profiler's name for it.
    pub rule: String,
    /// Its text, shortened.
    pub text: String,
    /// The gain that it expects, in percent of the time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gain_pct: Option<f64>,
    /// Where it was read.
    pub source: ProfileSource,
}

impl KernelProfile {
    /// A kernel without any counters yet.
    pub fn named(name: &str) -> Self {
        Self { name: name.chars().take(QUOTE_CHARS).collect(), ..Self::default() }
    }

    /// Whether it stands for a whole timeline, and is not a kernel.
    pub fn is_timeline(&self) -> bool {
        self.name == TIMELINE
    }

    /// The value of a counter.
    pub fn value(&self, name: &str) -> Option<f64> {
        self.counters.get(name).map(|counter| counter.value)
    }

    /// The values of all counters.
    pub fn values(&self) -> CounterValues {
        let values = self.counters.iter();
        values.map(|(name, counter)| (name.clone(), counter.value)).collect()
    }

    /// Adds a value, unless it is not a number or is a share above 100%. Returns whether it did.
    pub fn set(&mut self, name: &str, value: f64, source: ProfileSource) -> bool {
        let can_be = counters::can_be(name, value);
        if can_be {
            self.counters.insert(name.to_owned(), Counter { value, source });
        }
        can_be
    }
}

impl ProfileSource {
    /// A line of a profiler's output.
    pub fn at(tool: &str, line: usize, quote: &str) -> Self {
        let quote = quote.split_whitespace().collect::<Vec<_>>().join(" ");
        Self {
            tool: tool.to_owned(),
            line: u32::try_from(line).unwrap_or(u32::MAX),
            quote: quote.chars().take(QUOTE_CHARS).collect(),
            file: String::new(),
        }
    }

    /// In words.
    pub fn describe(&self) -> String {
        let file = match self.file.as_str() {
            "" => String::new(),
            file => format!(" of {file}"),
        };
        match self.line {
            0 => format!("{}{file}: {}", self.tool, self.quote),
            line => format!("{} line {line}{file}: {}", self.tool, self.quote),
        }
    }
}

impl Profile {
    /// The kernel that the diagnosis is about: the editable one, or the longest-running one.
    pub fn main_kernel(&self) -> Option<&KernelProfile> {
        self.kernels.first()
    }
}
