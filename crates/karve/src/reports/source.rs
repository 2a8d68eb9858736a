//! The source of every report: the campaign, and which names may be shown.
//!
//! An agent may read everything rendered here: as a file of a campaign, through the server, or by
//! running `karve report`. An agent must not learn the hidden cases, even after the campaign is
//! finished, because the next one is judged on the same cases. `ReportSource` is the only place
//! that hides them: a hidden case has a number instead of its name, and names are removed from free
//! text such as logs and lessons. A person finds the names in `karve.toml`.

use super::text::{bounded, one_line};
use karve_core::campaign::{Campaign, RoundSummary, StopReason};
use karve_core::charter::Charter;
use karve_core::hypothesis::Direction;
use karve_core::measurement::Gate;
use karve_core::verdict::{DropReason, Verdict};
use karve_numerics::case::CaseSet;

/// The placeholder for the name of a hidden case.
const WITHHELD: &str = "(hidden)";

/// A campaign with its charter, and the names that must stay hidden.
pub(super) struct ReportSource<'a> {
    /// The campaign.
    pub(super) campaign: &'a Campaign,
    /// Its charter.
    pub(super) charter: &'a Charter,
    /// The names that must stay hidden.
    pub(super) guard: HiddenNames,
}

/// Names that must stay hidden, longest first.
pub struct HiddenNames {
    names: Vec<String>,
}

impl HiddenNames {
    /// Hides the hidden cases of a charter.
    pub(super) fn of(charter: &Charter) -> Self {
        let hidden = charter.cases.iter().filter(|c| c.set == CaseSet::Hidden);
        Self::withholding(hidden.map(|case| case.name.clone()))
    }

    /// The names that a campaign hides; none before its target is defined.
    pub fn in_campaign(campaign: &Campaign) -> Option<Self> {
        campaign.charter().map(|charter| Self::of_campaign(campaign, charter))
    }

    /// The same for a campaign, in which a case may have been renamed when it was shrunk.
    fn of_campaign(campaign: &Campaign, charter: &Charter) -> Self {
        let measured = charter.all_cases().into_iter();
        let measured = measured.filter_map(|index| campaign.case(index));
        let hidden = charter.cases.iter().cloned().chain(measured);
        let hidden = hidden.filter(|case| case.set == CaseSet::Hidden);
        Self::withholding(hidden.map(|case| case.name))
    }

    pub(super) fn withholding(names: impl Iterator<Item = String>) -> Self {
        let names = names.map(|name| one_line(&name));
        let mut names: Vec<String> = names.filter(|name| !name.is_empty()).collect();
        names.sort_by_key(|name| (std::cmp::Reverse(name.len()), name.clone()));
        names.dedup();
        Self { names }
    }

    /// The text with its line breaks, without the names.
    pub fn clean(&self, text: &str) -> String {
        self.names.iter().fold(text.to_owned(), |text, name| withhold(&text, name))
    }

    /// One line without the names, at most `max` characters.
    pub(super) fn line(&self, text: &str, max: usize) -> String {
        bounded(&self.clean(&one_line(text)), max)
    }

    fn withholds(&self, name: &str) -> bool {
        let name = one_line(name);
        self.names.iter().any(|n| n.eq_ignore_ascii_case(&name))
    }
}

/// A shorter name, if it is one word, is a part of too many others.
const GLUED_CHARS_MIN: usize = 4;
/// What makes another form of the same word: "larger" does not tell that a case is named "large".
const ENDINGS: [&str; 8] = ["s", "r", "er", "st", "est", "d", "ed", "ing"];
/// A word of hexadecimal digits from this length on is a hash.
const HASH_CHARS_MIN: usize = 7;

/// Whether a name, where it is glued to what is before or after it, is a part of another number, of
/// a hash, or of an ordinary word.
fn is_part_of_word(before: &str, name: &str, after: &str) -> bool {
    let left: String = before.chars().rev().take_while(|c| c.is_alphanumeric()).collect();
    let right: String = after.chars().take_while(|c| c.is_alphanumeric()).collect();
    let glued = |is: fn(char) -> bool| {
        let both = |a: Option<char>, b: Option<char>| a.is_some_and(is) && b.is_some_and(is);
        let (first, last) = (name.chars().next(), name.chars().next_back());
        (both(left.chars().next(), first), both(last, right.chars().next()))
    };
    let (word_before, word_after) = glued(char::is_alphanumeric);
    let is_word = name.chars().all(char::is_alphanumeric);
    if is_word && name.chars().count() < GLUED_CHARS_MIN {
        return word_before || word_after;
    }
    let (digit_before, digit_after) = glued(|c| c.is_ascii_digit());
    let mut whole = left.chars().chain(name.chars()).chain(right.chars());
    let is_hash = whole.clone().count() >= HASH_CHARS_MIN
        && whole.all(|c| matches!(c, '0'..='9' | 'a'..='f'));
    let is_glued = word_before || word_after;
    let (_, letter_after) = glued(char::is_alphabetic);
    digit_before
        || digit_after
        || is_glued && is_hash
        || !word_before && letter_after && ENDINGS.contains(&right.as_str())
}

/// Replaces a name wherever it is not a part of something else.
fn withhold(text: &str, name: &str) -> String {
    // Lowercase ASCII only, so that positions stay the same.
    let (lower, wanted) = (text.to_ascii_lowercase(), name.to_ascii_lowercase());
    let mut clean = String::with_capacity(text.len());
    let mut from = 0;
    while let Some(at) = lower[from..].find(&wanted) {
        let (start, end) = (from + at, from + at + wanted.len());
        let found = &text[start..end];
        let stays = is_part_of_word(&text[..start], found, &text[end..]);
        clean.push_str(&text[from..start]);
        clean.push_str(if stays { found } else { WITHHELD });
        from = end;
    }
    clean.push_str(&text[from..]);
    clean
}

impl<'a> ReportSource<'a> {
    /// What may be shown of a campaign; `None` before the target is defined.
    pub(super) fn guarded(campaign: &'a Campaign) -> Option<Self> {
        let charter = campaign.charter()?;
        let guard = HiddenNames::of_campaign(campaign, charter);
        Some(Self { campaign, charter, guard })
    }

    /// One line, bounded.
    pub(super) fn line(&self, text: &str, max: usize) -> String {
        self.guard.line(text, max)
    }

    /// A text without the names, otherwise unchanged.
    pub(super) fn clean(&self, text: &str) -> String {
        self.guard.clean(text)
    }

    /// The name of a case; for a hidden one, its number among the hidden ones.
    pub(super) fn case(&self, case: usize) -> String {
        let hidden = self.charter.hidden_cases();
        if let Some(at) = hidden.iter().position(|hidden| *hidden == case) {
            return format!("hidden case {}", at + 1);
        }
        // The name as measured: a case that was shrunk has another one.
        let measured = self.campaign.case(case).map(|case| case.name);
        one_line(&measured.unwrap_or_else(|| self.campaign.case_name(case)))
    }

    /// How many cases are hidden.
    pub(super) fn n_hidden(&self) -> usize {
        self.charter.hidden_cases().len()
    }

    /// The result of the gate; the log of a hidden case is not shown either.
    pub(super) fn gate(&self, gate: &Gate) -> String {
        match gate {
            Gate::WrongResult { case, .. } if self.guard.withholds(case) => {
                "wrong on a hidden case".to_owned()
            }
            gate => gate.describe(),
        }
    }

    /// The log of a failed gate, if it has one that may be shown.
    pub(super) fn excerpt<'b>(&self, gate: &'b Gate) -> Option<&'b str> {
        let excerpt = match gate {
            Gate::WrongResult { case, .. } if self.guard.withholds(case) => return None,
            Gate::BuildFailed { excerpt, .. } | Gate::WrongResult { excerpt, .. } => excerpt,
            Gate::Passed
            | Gate::OutOfScope { .. }
            | Gate::TimedOut { .. }
            | Gate::SlowerElsewhere { .. }
            | Gate::Dishonest { .. } => return None,
        };
        (!excerpt.trim().is_empty()).then_some(excerpt)
    }

    /// Why a round ended as it did, as one bounded line.
    pub(super) fn why(&self, round: &RoundSummary, max: usize) -> String {
        let why = match &round.verdict {
            Verdict::Drop { reason: DropReason::Gate { gate } } => self.gate(gate),
            _ => round.why(&|case| self.case(case)),
        };
        self.line(&why, max)
    }

    /// Why the campaign ended, as one bounded line.
    pub(super) fn stop(&self, reason: &StopReason, max: usize) -> String {
        let why = match reason {
            StopReason::BaselineFailed { gate } => {
                format!("the unchanged kernel fails: {}", self.gate(gate))
            }
            StopReason::MutationCheckFailed => self.campaign.stop_text().unwrap_or_default(),
            reason => reason.describe(),
        };
        self.line(&why, max)
    }

    /// The title of a round's hypothesis, one bounded line.
    pub(super) fn title(&self, round: &RoundSummary, max: usize) -> String {
        self.line(round.title(), max)
    }

    /// What a round taught, as one bounded line; empty if it taught nothing.
    pub(super) fn lesson(&self, round: &RoundSummary, max: usize) -> String {
        match &round.gate {
            // Its text may contain the log of the hidden case.
            Some(Gate::WrongResult { case, .. }) if self.guard.withholds(case) => {
                "wrong on a hidden case".to_owned()
            }
            Some(_) | None => self.line(&round.lesson.text, max),
        }
    }

    /// The round with that number, if it is finished.
    pub(super) fn round(&self, number: u32) -> Option<&'a RoundSummary> {
        let rounds = self.campaign.rounds();
        rounds.iter().find(|round| round.number == number)
    }

    /// Directions that no hypothesis has taken yet.
    pub(super) fn unexplored(&self) -> Vec<Direction> {
        let taken = |direction: &Direction| {
            let rounds = self.campaign.rounds().iter();
            let mut hypotheses = rounds.filter_map(|round| round.hypothesis.as_ref());
            hypotheses.any(|hypothesis| hypothesis.direction == *direction)
        };
        let all = Direction::ALL.into_iter();
        all.filter(|direction| !taken(direction)).collect()
    }
}
