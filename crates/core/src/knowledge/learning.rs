//! What a round taught: in numbers by us, in words by the agent.

use super::Evidence;
use crate::profile::compare::Came;
use serde::{Deserialize, Serialize};

/// What a round taught, in words and numbers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Lesson {
    /// One or two sentences.
    pub text: String,
    /// What the library learns from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub learning: Option<Box<Learning>>,
}

/// What the library learns from a round.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Learning {
    /// The entry that the round applied, or a new one.
    pub entry: String,
    /// Whether it is new.
    pub is_new: bool,
    /// The change, in one line.
    pub title: String,
    /// What was expected of it, in words of who proposed it.
    pub mechanism: String,
    /// What was measured.
    pub evidence: Evidence,
    /// Counters that were expected to move, and whether they did.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub foretold: Vec<Foretold>,
}

/// A counter that was expected to move.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Foretold {
    /// The counter.
    pub counter: String,
    /// What became of it.
    pub came: Came,
}
