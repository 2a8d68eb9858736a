//! What is known: entries with their triggers, the evidence for and against them, and where they
//! hold.
//!
//! One record serves all published forms of such knowledge. An entry is data: it is matched against
//! a profile, told to an agent, applied by the built-in strategy where it says how, and judged by
//! what rounds show of it. Words come from people and agents, numbers from measurements.

mod expected;
mod learning;
mod lint;
mod matching;
mod praise;
mod scope;
mod standing;
#[cfg(test)]
mod tests;
mod text;

pub use expected::{Expected, expected, promises};
pub use learning::{Foretold, Learning, Lesson, Words};
pub use lint::{Complaint, Grave, lint, lint_all};
pub use matching::{Known, Library, Match, Query, Why};
pub use scope::{Scope, Situation};
pub use standing::{
    Effect, Standing, VOUCHED, assess, dependants, effect_of, is_of, narrowed, spent_after, weigh,
};

use crate::hypothesis::Direction;
use serde::{Deserialize, Serialize};

/// What an entry is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A change that makes kernels faster.
    #[default]
    Optimization,
    /// A change or a habit that makes them slower.
    AntiPattern,
    /// A decision that was taken once, with its figures.
    Case,
    /// A lesson of one round.
    Tip,
    /// A way of working: how to find out, how to check.
    Technique,
}

/// How far an entry can be trusted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// Not replicated yet.
    #[default]
    Candidate,
    /// Replicated, or a person vouches for it.
    Verified,
    /// Shown to be wrong.
    Refuted,
    /// Another entry took its place.
    Superseded,
}

/// What an entry rests on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// It follows from how the machine or the language works.
    SourceSemantics,
    /// It was measured, with what is needed to do it again.
    Measured,
    /// It was seen once.
    SingleObservation,
    /// Others report it.
    #[default]
    Reported,
}

/// What a change may do to results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Risk {
    /// The same bits.
    #[default]
    Lossless,
    /// Other rounding, within what tests allow.
    Rounding,
    /// Less accurate: needs a record of how much.
    Lossy,
}

/// A piece of knowledge.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct Entry {
    /// Its name: lower case letters, digits and hyphens.
    pub id: String,
    /// What it is.
    pub kind: Kind,
    /// One line.
    pub title: String,
    /// How far it can be trusted.
    pub status: Status,
    /// What it rests on.
    pub basis: Basis,
    /// What it may do to results.
    pub risk: Risk,
    /// Other names, such as a number in a published catalog.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// Where it holds.
    #[serde(skip_serializing_if = "Scope::is_everywhere")]
    pub scope: Scope,
    /// Where it was shown not to hold.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub except: Vec<Scope>,
    /// When to think of it: conditions on counters, any of which is enough.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub triggers: Vec<String>,
    /// What speaks against it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub counter_signals: Vec<String>,
    /// Where the idea belongs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub direction: Option<Direction>,
    /// The speedup that may be expected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub impact: Option<Impact>,
    /// How a machine can do it; several ways are alternatives.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub apply: Vec<Action>,
    /// Measured facts, for and against.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<Evidence>,
    /// What it has to do with others.
    #[serde(skip_serializing_if = "Interactions::is_empty")]
    pub interactions: Interactions,
    /// The entry that took its place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub superseded_by: Option<String>,
    /// That it was taken back, and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retracted: Option<Retraction>,
    /// When it was written or last changed: `YYYY-MM` or `YYYY-MM-DD`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub date: String,
    /// Its text, by heading.
    #[serde(skip)]
    pub sections: Vec<Section>,
}

/// A part of an entry's text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Section {
    /// Its heading.
    pub heading: String,
    /// Markdown.
    pub text: String,
}

/// A speedup that may be expected, from and to; 1.1 is 10% faster.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Impact {
    /// From.
    pub low: f64,
    /// To.
    pub high: f64,
}

/// A change that a machine can make.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case")]
pub enum Action {
    /// Sets a declared knob; `*` in the name stands for anything.
    Knob {
        /// The name, or a pattern of it.
        name: String,
        /// Values to try, the most promising first.
        values: Vec<String>,
    },
    /// Puts a line where the compiler sees it first in each matching file.
    Top {
        /// The line.
        line: String,
        /// Files, as globs.
        files: Vec<String>,
    },
    /// Puts a line before every innermost loop of each matching file.
    BeforeInnerLoops {
        /// The line.
        line: String,
        /// Files, as globs.
        files: Vec<String>,
    },
    /// Replaces what a regular expression matches in each matching file.
    Rewrite {
        /// The regular expression.
        pattern: String,
        /// What takes its place; `$1` is what the first group matched.
        to: String,
        /// Files, as globs.
        files: Vec<String>,
    },
    /// Adds a flag to an assignment such as `CFLAGS = -O2` in each matching file.
    Flag {
        /// The flag.
        flag: String,
        /// The variable, or a pattern of it.
        variable: String,
        /// Files, as globs.
        files: Vec<String>,
    },
}

/// A measured fact. Everything that is needed to trace it is in it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct Evidence {
    /// What was measured.
    pub metric: String,
    /// Before the change.
    pub before: f64,
    /// After it.
    pub after: f64,
    /// The speedup.
    pub ratio: f64,
    /// The lower end of its interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// The upper end of its interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
    /// On what.
    pub device: String,
    /// Of what: operation, shape, element type.
    pub workload: String,
    /// Which run, so that it can be found again.
    pub run: String,
    /// When.
    pub date: String,
    /// Built with what.
    pub toolchain: String,
    /// How many readings.
    pub n: u32,
    /// What else is to be said of it, such as that the result was wrong.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// Whether the result was wrong or did not build.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub failed: bool,
    /// Whether the verdict was that it is not faster by what is worth keeping.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub not_faster: bool,
    /// The commit that was changed; two rounds of a campaign on the same one are one run.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub parent: String,
    /// Other ways to the same end that were in the kernel already.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub on_top_of: Vec<String>,
    /// The run that contradicts it, where it cannot be traced itself; then it counts no more.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub disputed: String,
    /// Whether it was taken over from elsewhere: then it promises something, and proves nothing.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub reported: bool,
}

/// Characters of an id at most.
const ID_CHARS_MAX: usize = 100;

/// Whether a text can be the id of an entry, and so the name of its file.
pub fn is_id(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let fits = !text.is_empty() && text.len() <= ID_CHARS_MAX;
    fits && !text.starts_with('-') && text.chars().all(plain)
}

impl Entry {
    /// The entry as somebody else tells it: a candidate, whatever it says of itself.
    #[must_use]
    pub fn as_reported(mut self) -> Self {
        if self.status == Status::Verified {
            self.status = Status::Candidate;
        }
        for evidence in &mut self.evidence {
            evidence.reported = true;
        }
        self
    }
}

/// What an entry has to do with others, by their ids.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct Interactions {
    /// It is of no use without these.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<String>,
    /// It goes well with these.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub composes_with: Vec<String>,
    /// It cannot be used with these.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub incompatible_with: Vec<String>,
    /// Other ways to the same end.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub alternative_to: Vec<String>,
    /// Whoever does one of these has done it, too.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub contained_in: Vec<String>,
}

/// That an entry was taken back. It stays, so that nobody writes it again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Retraction {
    /// When.
    pub date: String,
    /// Why.
    pub why: String,
}

/// The beginning of a text, of at most so many characters: whole sentences and lines, and no half
/// of a fenced block, where there is one to end at.
pub fn cut_at_sentence(text: &str, chars_max: usize) -> String {
    let Some((end, _)) = text.char_indices().nth(chars_max) else {
        return text.to_owned();
    };
    let mut cut = &text[..end];
    if cut.matches("```").count() % 2 == 1 {
        cut = cut.rfind("```").map_or(cut, |at| &cut[..at]);
    }
    let mut stops = cut.match_indices(['.', '!', '?', '\n']);
    let ends = |(at, stop): &(usize, &str)| {
        let next = text[at + stop.len()..].chars().next();
        *stop == "\n" || next.is_none_or(char::is_whitespace)
    };
    let last = stops.rfind(ends);
    let whole = last.map_or(cut, |(at, stop)| &cut[..at + stop.len()]);
    whole.trim_end().to_owned()
}

impl Interactions {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Every id that is named.
    pub fn ids(&self) -> impl Iterator<Item = &String> {
        let lists = [
            &self.depends_on,
            &self.composes_with,
            &self.incompatible_with,
            &self.alternative_to,
            &self.contained_in,
        ];
        lists.into_iter().flatten()
    }
}

impl Entry {
    /// The text under a heading, whatever its case.
    pub fn section(&self, heading: &str) -> Option<&str> {
        let is = |section: &&Section| section.heading.eq_ignore_ascii_case(heading);
        self.sections.iter().find(is).map(|s| s.text.as_str())
    }

    /// The speedup that its own evidence shows: the geometric mean of what is trusted.
    pub fn shown_ratio(&self) -> Option<f64> {
        let trusted = self.evidence.iter().filter(|e| !e.failed && e.ratio > 0.0);
        let logs: Vec<f64> = trusted.map(|e| e.ratio.ln()).collect();
        let mean = logs.iter().sum::<f64>() / logs.len() as f64;
        mean.is_finite().then(|| mean.exp())
    }

    /// The speedup to expect before a trial: what was shown, or what is said.
    pub fn expected_ratio(&self) -> f64 {
        let said = self.impact.map(|impact| (impact.low * impact.high).sqrt());
        let expected = self.shown_ratio().or(said);
        let expected = expected.unwrap_or(expected::UNSAID_RATIO);
        if expected.is_finite() {
            expected.clamp(0.01, 100.0)
        } else {
            expected::UNSAID_RATIO
        }
    }
}

macro_rules! names {
    ($type:ty { $($variant:ident => $name:literal),+ $(,)? }) => {
        impl $type {
            /// Its name, as it is written.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }

            /// What has that name.
            pub fn by_name(name: &str) -> Option<Self> {
                match name { $($name => Some(Self::$variant),)+ _ => None }
            }
        }
    };
}

names!(Kind {
    Optimization => "optimization",
    AntiPattern => "anti-pattern",
    Case => "case",
    Tip => "tip",
    Technique => "technique",
});
names!(Status {
    Candidate => "candidate",
    Verified => "verified",
    Refuted => "refuted",
    Superseded => "superseded",
});
names!(Basis {
    SourceSemantics => "source-semantics",
    Measured => "measured",
    SingleObservation => "single-observation",
    Reported => "reported",
});
names!(Risk { Lossless => "lossless", Rounding => "rounding", Lossy => "lossy" });
