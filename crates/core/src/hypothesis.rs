//! Hypotheses, candidates, and when two hypotheses are the same.

use crate::integrity::Bucket;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::RangeInclusive;

/// The speedups that a hypothesis may expect.
pub const EXPECTED: RangeInclusive<f64> = 1.0..=10_000.0;

/// One falsifiable claim, stated before the change.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Hypothesis {
    /// One line: the change.
    pub title: String,
    /// What limits the kernel now.
    pub bottleneck: String,
    /// "I expect X because Y".
    pub mechanism: String,
    /// The expected speedup; 1.1 means 10% faster.
    pub expected_ratio: f64,
    /// Where the idea belongs.
    pub direction: Direction,
    /// Whether control flow or data layout change, so that the full set must be measured.
    pub high_risk: bool,
    /// The files that will change.
    pub files: Vec<String>,
    /// Counters expected to move, in words.
    pub counters: Vec<String>,
    /// The predicate that gates the change, if it is meant for some cases only.
    pub gate: Option<String>,
    /// Knob values, if that is all that changes.
    pub config: BTreeMap<String, String>,
    /// A question for a person; the campaign continues.
    pub question: Option<String>,
    /// Whether all knobs are tuned from their current values, and nothing else changes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sweep: bool,
    /// The entry of the library that it applies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<String>,
    /// Which of the entry's ways, where it has several.
    #[serde(default, skip_serializing_if = "is_first")]
    pub variant: u32,
    /// What is different this time, if it repeats something refuted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub differs: Option<String>,
    /// The item of the agenda that it carries out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// The steps of the implementation, if they were planned.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<String>,
    /// Where its gain comes from, by its author.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bucket: Option<Bucket>,
    /// Fundamentally different ideas that were weighed and not taken now, one line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alternatives: Vec<String>,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // Required by serde.
fn is_first(variant: &u32) -> bool {
    *variant == 0
}

/// The six categories of ideas.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum Direction {
    Tile,
    Memory,
    Pipeline,
    Resource,
    Backend,
    #[default]
    Algorithm,
}

// In the order in which they are suggested.
names!(Direction {
    Algorithm => "algorithm",
    Memory => "memory",
    Tile => "tile",
    Pipeline => "pipeline",
    Resource => "resource",
    Backend => "backend",
});

/// A commit that claims to implement a hypothesis.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Candidate {
    /// The commit.
    pub commit: String,
    /// Its tree: the same source has the same tree.
    pub tree: String,
    /// The editable files that differ from the parent.
    pub files: Vec<String>,
    /// The artifact that holds the patch.
    pub patch: String,
    /// Changes by the agent outside the editable files; they were left out.
    pub out_of_scope: Vec<String>,
    /// The artifact with the patch of everything the agent changed, if something was left out: a
    /// recording replays it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whole: Option<String>,
    /// The agent's description of the change.
    pub summary: String,
    /// Its parts, by the functions and names that they share.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<ChangePart>,
}

/// A part of a change.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangePart {
    /// Where it is, and the names that it is about.
    pub what: String,
    /// Whether the hypothesis names it.
    pub stated: bool,
}

/// What a part of a kept change is worth.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PartShare {
    /// Where it is, and the names that it is about.
    pub what: String,
    /// How many times slower the kernel is without it, if that was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slower: Option<f64>,
    /// Its share of the gain in percent, on a logarithmic scale.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub percent: Option<f64>,
    /// Why it was not measured, or why that shows nothing.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub why: String,
}

impl PartShare {
    /// In words.
    pub fn describe(&self) -> String {
        let Self { what, why, .. } = self;
        let share = self.percent.map(|percent| format!(", {percent:.0}% of the gain"));
        match self.slower {
            Some(slower) => {
                let doubt = if why.is_empty() { String::new() } else { format!(" ({why})") };
                let share = share.unwrap_or_default();
                format!("{what}: without it {slower:.3}x slower{share}{doubt}")
            }
            None => format!("{what}: cannot be left out: {why}"),
        }
    }
}

/// Files of a refused change that are named.
const NAMED_MAX: usize = 10;

impl Candidate {
    /// Why it is not a candidate, if its author changed only files that it may not change, in its
    /// role if it has one. A sweep changes nothing itself.
    pub fn why_out_of_scope(
        &self,
        hypothesis: &Hypothesis,
        refused: &[String],
        role: Option<&str>,
    ) -> Option<String> {
        if !self.files.is_empty() || refused.is_empty() || hypothesis.sweep {
            return None;
        }
        let named = refused[..refused.len().min(NAMED_MAX)].join(", ");
        let more = match refused.len().saturating_sub(NAMED_MAX) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let who = match role {
            None => "not editable".to_owned(),
            Some(role) => format!("not editable in the role {role}"),
        };
        Some(format!("out of scope: the only changes are to {named}{more}, {who}"))
    }
}

/// How alike two hypotheses are, 0 to 1, or 0 if the numbers in them differ.
///
/// Two sweeps of the same tile share nearly all words; their numbers tell them apart. Claims
/// that set knobs are the same only if they set the same knobs to the same values.
pub fn similarity(a: &Hypothesis, b: &Hypothesis) -> f64 {
    HypothesisDigest::of(a).similarity(&HypothesisDigest::of(b))
}

/// How alike two titles are, 0 to 1: the share of their words that they have in common, or 0 if the
/// numbers in them differ.
pub fn title_similarity(a: &str, b: &str) -> f64 {
    let words = |text: &str| -> BTreeSet<String> {
        let lower = text.to_lowercase();
        let parts = lower.split(|c: char| !c.is_alphanumeric());
        let kept = |word: &&str| word.len() > 1 || word.chars().any(|c| c.is_ascii_digit());
        parts.filter(kept).map(str::to_owned).collect()
    };
    let (a, b) = (words(a), words(b));
    let is_number = |word: &&String| word.chars().any(|c| c.is_ascii_digit());
    let same_numbers = a.iter().filter(is_number).eq(b.iter().filter(is_number));
    let all = a.union(&b).count();
    if all == 0 || !same_numbers {
        return 0.0;
    }
    a.intersection(&b).count() as f64 / all as f64
}

/// What a hypothesis is compared by, computed once: every proposal is compared with every
/// dropped one.
#[derive(Clone, Debug)]
pub(crate) struct HypothesisDigest {
    config: BTreeMap<String, String>,
    /// Hashes in order, each once: thousands are compared at every resume.
    words: Vec<u64>,
    numbers: Vec<u64>,
}

impl HypothesisDigest {
    pub(crate) fn of(hypothesis: &Hypothesis) -> Self {
        let (words, numbers) = tokens(hypothesis);
        let mut config = hypothesis.config.clone();
        if let Some(entry) = &hypothesis.entry {
            // Claims that apply entries are the same only if they apply the same one the same way.
            config.insert("entry".to_owned(), entry.clone());
            config.insert("variant".to_owned(), hypothesis.variant.to_string());
        }
        Self { config, words: hashes(&words), numbers: hashes(&numbers) }
    }

    pub(crate) fn similarity(&self, other: &Self) -> f64 {
        if !self.config.is_empty() || !other.config.is_empty() {
            return if self.config == other.config { 1.0 } else { 0.0 };
        }
        self.similarity_of_words(other)
    }

    /// The same, whatever they set or apply.
    pub(crate) fn similarity_of_words(&self, other: &Self) -> f64 {
        if self.numbers != other.numbers {
            return 0.0;
        }
        let common = n_common(&self.words, &other.words);
        let all = self.words.len() + other.words.len() - common;
        if all == 0 { 0.0 } else { common as f64 / all as f64 }
    }
}

fn hashes(tokens: &BTreeSet<String>) -> Vec<u64> {
    let mut hashes: Vec<u64> = tokens
        .iter()
        .map(|token| {
            let mut hasher = DefaultHasher::new();
            token.hash(&mut hasher);
            hasher.finish()
        })
        .collect();
    hashes.sort_unstable();
    hashes
}

/// How many numbers two ordered lists share.
fn n_common(a: &[u64], b: &[u64]) -> usize {
    let (mut i, mut j, mut common) = (0, 0, 0);
    while let (Some(x), Some(y)) = (a.get(i), b.get(j)) {
        common += usize::from(x == y);
        i += usize::from(x <= y);
        j += usize::from(y <= x);
    }
    common
}

/// Words that say nothing about an idea.
const FILLER: [&str; 24] = [
    "a", "an", "and", "as", "at", "be", "because", "by", "expect", "for", "from", "i", "in", "is",
    "it", "of", "on", "so", "that", "the", "this", "to", "use", "with",
];

fn tokens(hypothesis: &Hypothesis) -> (BTreeSet<String>, BTreeSet<String>) {
    let text = format!("{} {}", hypothesis.title, hypothesis.mechanism).to_lowercase();
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|token| !token.is_empty() && !FILLER.contains(token))
        .map(str::to_owned)
        .partition(|token| !token.starts_with(|c: char| c.is_ascii_digit()))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn hypothesis(title: &str, mechanism: &str) -> Hypothesis {
        Hypothesis {
            title: title.into(),
            bottleneck: "memory".into(),
            mechanism: mechanism.into(),
            expected_ratio: 1.1,
            direction: Direction::Tile,
            high_risk: false,
            files: vec!["kernel.c".into()],
            counters: Vec::new(),
            gate: None,
            config: BTreeMap::new(),
            question: None,
            sweep: false,
            entry: None,
            variant: 0,
            differs: None,
            task: None,
            steps: Vec::new(),
            bucket: None,
            alternatives: Vec::new(),
        }
    }

    fn check(a: &str, b: &str, same: bool) {
        let found = similarity(&hypothesis(a, ""), &hypothesis(b, "")) >= 0.6;
        assert_eq!(found, same, "{a} / {b}");
    }

    #[test]
    fn the_same_idea_in_other_words_is_a_duplicate() {
        check("Unroll the inner loop four times", "unroll inner loop four times", true);
        check("Unroll the inner loop", "Prefetch the next tile of B", false);
    }

    #[test]
    fn shared_words_over_all_words_is_the_similarity() {
        let check = |a: &str, b: &str, want: f64| {
            let found = similarity(&hypothesis(a, "x"), &hypothesis(b, "x"));
            assert!((found - want).abs() < 1e-9, "{a} / {b}: {found}");
        };
        check("alpha beta", "beta gamma", 0.5);
        check("alpha beta", "beta beta alpha", 1.0);
        check("alpha", "beta gamma", 0.25);
        let empty = similarity(&hypothesis("", ""), &hypothesis("", ""));
        assert!(empty.abs() < 1e-9);
    }

    #[test]
    fn changes_to_read_only_files_alone_are_not_a_candidate() {
        let mut candidate = Candidate {
            commit: "c".into(),
            tree: "t".into(),
            files: Vec::new(),
            patch: String::new(),
            out_of_scope: Vec::new(),
            whole: None,
            summary: String::new(),
            parts: Vec::new(),
        };
        let mut idea = hypothesis("x", "");
        let refused: Vec<String> = (1..13).map(|n| format!("{n}.c")).collect();
        let check = |candidate: &Candidate, idea: &Hypothesis, n, role, want: Option<&str>| {
            let why = candidate.why_out_of_scope(idea, &refused[..n], role);
            assert_eq!(why.as_deref(), want.map(|want| format!("out of scope: {want}")).as_deref());
        };
        check(&candidate, &idea, 0, None, None);
        check(&candidate, &idea, 1, None, Some("the only changes are to 1.c, not editable"));
        let in_role = "the only changes are to 1.c, 2.c, not editable in the role tuner";
        check(&candidate, &idea, 2, Some("tuner"), Some(in_role));
        let many = "the only changes are to 1.c, 2.c, 3.c, 4.c, 5.c, 6.c, 7.c, 8.c, 9.c, 10.c and \
                    2 more, not editable";
        check(&candidate, &idea, 12, None, Some(many));
        candidate.files.push("kernel.c".into());
        check(&candidate, &idea, 1, None, None);
        candidate.files.clear();
        idea.sweep = true;
        check(&candidate, &idea, 1, None, None);
    }

    #[test]
    fn another_number_is_another_idea() {
        check("Set the tile to 32 columns", "Set the tile to 64 columns", false);
    }

    #[test]
    fn knob_settings_are_compared_exactly() {
        let mut a = hypothesis("Set TILE", "x");
        let mut b = a.clone();
        a.config.insert("TILE".into(), "8".into());
        b.config.insert("TILE".into(), "16".into());
        assert!(similarity(&a, &b) < 0.5);
        assert!(similarity(&a, &a) > 0.9);
    }
}
