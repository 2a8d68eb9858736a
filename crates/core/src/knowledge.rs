//! The knowledge model: entries with their triggers, the evidence for and against them, and where
//! they apply.
//!
//! One record serves all published forms of such knowledge. An entry is data: it is matched against
//! a profile, shown to an agent, applied by the built-in strategy where it says how, and judged by
//! the results of rounds. Text comes from people and agents, numbers from measurements.

mod expected;
mod learning;
mod lint;
mod matching;
mod scope;
mod standing;
mod takeaway;
#[cfg(test)]
mod tests;
mod text;

pub use expected::{ExpectedGain, expected, promises};
pub use learning::{
    CLAIMS, Learning, Lesson, LessonNotes, PredictedCounter, became, is_same_measurement,
    new_entry, with_evidence, without_evidence,
};
pub use lint::{LintFinding, LintSeverity, lint, lint_all};
pub use matching::{EntryMatch, KnownEntry, Library, LibraryQuery, MatchReason};
pub use scope::{Scope, Situation};
pub use standing::{EntryStanding, EvidenceEffect, VOUCHED, assess, dependants, effect_of, weigh};
pub use takeaway::{casebook_family, root_cause, takeaway};

use crate::hypothesis::Direction;
use serde::{Deserialize, Serialize};

/// The kind of an entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EntryKind {
    /// A change that makes kernels faster.
    #[default]
    Optimization,
    /// A change or a habit that makes kernels slower.
    AntiPattern,
    /// A decision that was made once, with its figures.
    Case,
    /// A lesson from one round.
    Tip,
    /// A way of working: how to investigate, how to check.
    Technique,
}

/// How far an entry can be trusted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EntryStatus {
    /// Not replicated yet.
    #[default]
    Candidate,
    /// Replicated, or vouched for by a person.
    Verified,
    /// Shown to be wrong.
    Refuted,
    /// Replaced by another entry.
    Superseded,
}

/// The basis of an entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EntryBasis {
    /// It follows from how the machine or the language works.
    SourceSemantics,
    /// It was measured, with everything needed to measure it again.
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
    /// Identical bits.
    #[default]
    Lossless,
    /// Different rounding, within the tolerance of the tests.
    Rounding,
    /// Less accurate: must state by how much.
    Lossy,
}

/// A piece of knowledge.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct Entry {
    /// Its name: lower case letters, digits and hyphens.
    pub id: String,
    /// Its kind.
    pub kind: EntryKind,
    /// One line.
    pub title: String,
    /// How far it can be trusted.
    pub status: EntryStatus,
    /// Its basis.
    pub basis: EntryBasis,
    /// Its risk for the results.
    pub risk: Risk,
    /// Other names, such as a number in a published catalog.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// Where it applies.
    #[serde(skip_serializing_if = "Scope::is_everywhere")]
    pub scope: Scope,
    /// Where it was shown not to apply.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub except: Vec<Scope>,
    /// When to consider it: conditions on counters, any one of which is enough.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub triggers: Vec<String>,
    /// Reasons against it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub counter_signals: Vec<String>,
    /// Where the change belongs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub direction: Option<Direction>,
    /// The expected speedup.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub impact: Option<Impact>,
    /// How to apply it without an agent; several actions are alternatives.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub apply: Vec<Action>,
    /// Measured facts, for and against.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<Evidence>,
    /// Its relations to other entries.
    #[serde(skip_serializing_if = "Interactions::is_empty")]
    pub interactions: Interactions,
    /// The entry that replaces it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub superseded_by: Option<String>,
    /// Its retraction, with the reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retracted: Option<Retraction>,
    /// When it was written or last changed: `YYYY-MM` or `YYYY-MM-DD`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub date: String,
    /// Its text, by heading.
    #[serde(skip)]
    pub sections: Vec<EntrySection>,
}

/// A part of an entry's text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EntrySection {
    /// Its heading.
    pub heading: String,
    /// Markdown.
    pub text: String,
}

/// A range of expected speedups; 1.1 is 10% faster.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Impact {
    /// From.
    pub low: f64,
    /// To.
    pub high: f64,
}

/// A change that can be applied without an agent.
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
    /// Inserts a line at the top of each matching file.
    Top {
        /// The line.
        line: String,
        /// Files, as globs.
        files: Vec<String>,
    },
    /// Inserts a line before every innermost loop of each matching file.
    BeforeInnerLoops {
        /// The line.
        line: String,
        /// Files, as globs.
        files: Vec<String>,
    },
    /// Replaces every match of a regular expression in each matching file.
    Rewrite {
        /// The regular expression.
        pattern: String,
        /// The replacement; `$1` is the text of the first group.
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

/// A measured fact, with everything needed to trace it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct Evidence {
    /// The metric.
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
    /// The device.
    pub device: String,
    /// The workload: operation, shape, element type.
    pub workload: String,
    /// The run, so that it can be found again.
    pub run: String,
    /// When.
    pub date: String,
    /// The toolchain.
    pub toolchain: String,
    /// The number of readings.
    pub n: u32,
    /// Anything else worth noting, such as that the result was wrong.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// Whether the result was wrong or the change did not build.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub failed: bool,
    /// Whether the verdict was that it is not faster by enough to keep.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub not_faster: bool,
    /// The commit that was changed; two rounds of a campaign on the same commit are one run.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub parent: String,
    /// Alternatives to it that were already in the kernel.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub on_top_of: Vec<String>,
    /// The run that contradicts it, where it cannot be traced itself; then it no longer counts.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub disputed: String,
    /// Whether more of the metric is better, as for a rate.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub more_is_better: bool,
    /// Whether it was imported from elsewhere: then it raises expectations but proves nothing.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub reported: bool,
}

/// Maximum length of an id, in characters.
const ID_CHARS_MAX: usize = 100;

/// Whether a text can be the id of an entry, and so the name of its file.
pub fn is_id(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let fits = !text.is_empty() && text.len() <= ID_CHARS_MAX;
    fits && !text.starts_with('-') && text.chars().all(plain)
}

impl Entry {
    /// Its letter in a playbook, from an alias such as `cutile-A` or `playbook-A`.
    pub fn letter(&self) -> Option<char> {
        self.aliases.iter().find_map(|alias| {
            let (_, letter) = alias.rsplit_once('-')?;
            let mut letters = letter.chars();
            let first = letters.next().filter(char::is_ascii_uppercase)?;
            letters.next().is_none().then_some(first)
        })
    }

    /// The entry as reported by others: a candidate, whatever status it claims.
    #[must_use]
    pub fn as_reported(mut self) -> Self {
        if self.status == EntryStatus::Verified {
            self.status = EntryStatus::Candidate;
        }
        for evidence in &mut self.evidence {
            evidence.reported = true;
        }
        self
    }
}

/// Relations of an entry to others, by their ids.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct Interactions {
    /// It is useless without these.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<String>,
    /// It goes well with these.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub composes_with: Vec<String>,
    /// It cannot be used with these.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub incompatible_with: Vec<String>,
    /// Alternatives to it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub alternative_to: Vec<String>,
    /// Applying one of these includes it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub contained_in: Vec<String>,
}

/// The retraction of an entry. The entry stays, so that it is not written again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Retraction {
    /// When.
    pub date: String,
    /// Why.
    pub why: String,
}

/// The beginning of a text, up to this many characters: whole sentences and lines, and no partial
/// fenced block, where there is a suitable place to end.
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

    /// Every id in it.
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
    /// The text under a heading, ignoring case.
    pub fn section(&self, heading: &str) -> Option<&str> {
        let is = |section: &&EntrySection| section.heading.eq_ignore_ascii_case(heading);
        self.sections.iter().find(is).map(|s| s.text.as_str())
    }

    /// The speedup shown by its own evidence: the geometric mean of the trusted ratios.
    pub fn shown_ratio(&self) -> Option<f64> {
        let trusted = self.evidence.iter().filter(|e| !e.failed && e.ratio > 0.0);
        let logs: Vec<f64> = trusted.map(|e| e.ratio.ln()).collect();
        let mean = logs.iter().sum::<f64>() / logs.len() as f64;
        mean.is_finite().then(|| mean.exp())
    }

    /// The speedup to expect before a trial: shown by evidence, or else claimed.
    pub fn expected_ratio(&self) -> f64 {
        let said = self.impact.map(|impact| (impact.low * impact.high).sqrt());
        let expected = self.shown_ratio().or(said);
        let expected = expected.unwrap_or(expected::UNSAID_RATIO);
        if expected.is_finite() { expected.clamp(0.01, 100.0) } else { expected::UNSAID_RATIO }
    }
}

names!(EntryKind {
    Optimization => "optimization",
    AntiPattern => "anti-pattern",
    Case => "case",
    Tip => "tip",
    Technique => "technique",
});
names!(EntryStatus {
    Candidate => "candidate",
    Verified => "verified",
    Refuted => "refuted",
    Superseded => "superseded",
});
names!(EntryBasis {
    SourceSemantics => "source-semantics",
    Measured => "measured",
    SingleObservation => "single-observation",
    Reported => "reported",
});
names!(Risk { Lossless => "lossless", Rounding => "rounding", Lossy => "lossy" });
