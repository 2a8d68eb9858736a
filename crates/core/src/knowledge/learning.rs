//! What a round taught: in numbers by us, in words by the agent.

use super::Evidence;
use crate::profile::compare::{CounterChange, ExpectationResult};
use crate::profile::counters::known;
use serde::{Deserialize, Serialize};

/// What a round taught, in words and numbers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Lesson {
    /// One or two sentences.
    pub text: String,
    /// What the library learns from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub learning: Option<Box<Learning>>,
    /// Counters of the parent and of the candidate, where both were profiled.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub moved: Vec<CounterChange>,
    /// Counters that the hypothesis predicted to move, and whether they did.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub predicted: Vec<PredictedCounter>,
}

/// What the library learns from a round.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Learning {
    /// The entry that the round applied, or a new one.
    pub entry: String,
    /// Whether it is a new entry.
    pub is_new: bool,
    /// The change, in one line.
    pub title: String,
    /// What the proposer expected of it, in the proposer's words.
    pub mechanism: String,
    /// What was measured.
    pub evidence: Evidence,
    /// The agent's comments: claims, never figures.
    #[serde(skip_serializing_if = "LessonNotes::is_empty")]
    pub words: LessonNotes,
    /// Why the agent did not comment, if it was asked.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub unsaid: String,
    /// The new status of the entry, if it changed.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub became: String,
}

/// An agent's comments after a round. All of them may be empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LessonNotes {
    /// Why the change had the effect that was measured.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub mechanism: String,
    /// When it applies, or does not.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub condition: String,
    /// What to look out for.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub pitfall: String,
}

impl LessonNotes {
    /// Whether there are no comments.
    pub fn is_empty(&self) -> bool {
        self.named().is_empty()
    }

    /// The comments, with the name of each part.
    pub fn named(&self) -> Vec<(&'static str, &str)> {
        let parts = [
            ("mechanism", self.mechanism.as_str()),
            ("condition", self.condition.as_str()),
            ("pitfall", self.pitfall.as_str()),
        ];
        let said = parts.into_iter().filter(|(_, text)| !text.is_empty());
        said.collect()
    }
}

/// A counter that was predicted to move.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PredictedCounter {
    /// The counter.
    pub counter: String,
    /// What happened to it.
    pub result: ExpectationResult,
    /// Before and after, in words; empty if it was not measured twice.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub values: String,
}

impl PredictedCounter {
    /// In words.
    pub fn describe(&self) -> String {
        let what = match self.values.as_str() {
            "" if known(&self.counter).is_none() => {
                return format!("\"{}\" was not read: no counter has that name", self.counter);
            }
            "" => &self.counter,
            values => values,
        };
        format!("{what} {}", self.result.words())
    }
}
