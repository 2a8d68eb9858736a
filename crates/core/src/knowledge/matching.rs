//! Which entries to consider: by trigger, by scope and by words, each with the reason.

use super::expected::{expected, promises};
use super::standing::{Dependents, EntryStanding, assess};
use super::text::WordIndex;
use super::{Entry, EntryKind, EntryStatus, Scope, Situation};
use crate::profile::{CounterValues, Opportunity, Predicate, PredicateValue};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::OnceLock;

/// The score of a trigger that fires, relative to those for words and scope.
const FIRED_SCORE: f64 = 4.0;
/// The score of each list of the scope that names the situation.
const NEAR_SCORE: f64 = 0.5;
/// The score of each list that asks for something unknown.
const UNKNOWN_SCORE: f64 = 1.5;
/// The total score of the words of a query.
const WORDS_SCORE: f64 = 6.0;

/// Entries with parsed triggers.
#[derive(Clone, Debug, Default)]
pub struct Library {
    entries: Vec<Entry>,
    triggers: Vec<Vec<Predicate>>,
    standings: Vec<EntryStanding>,
    /// The log speedup that each entry promises without a given place.
    gains: Vec<f64>,
    /// The words of all entries, once somebody searches for some.
    index: OnceLock<WordIndex>,
    by_id: HashMap<String, usize>,
}

/// A query. A field that is left empty does not restrict the result.
#[derive(Clone, Debug, Default)]
pub struct LibraryQuery<'a> {
    /// The situation.
    pub situation: Option<&'a Situation>,
    /// The counters of the kernel.
    pub values: Option<&'a CounterValues>,
    /// Words.
    pub text: &'a str,
    /// Whether to include refuted and superseded entries.
    pub refuted: bool,
}

/// An entry that matches, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct EntryMatch<'a> {
    /// The entry.
    pub entry: &'a Entry,
    /// The higher, the better.
    pub score: f64,
    /// Why it matches.
    pub why: Vec<MatchReason>,
}

/// Why an entry matches.
#[derive(Clone, Debug, PartialEq)]
pub enum MatchReason {
    /// A trigger fires.
    Fired {
        /// The trigger.
        when: String,
        /// The values that make it fire, as `name=value`.
        values: String,
    },
    /// Its scope names the situation.
    Near(Vec<String>),
    /// It contains words of the query.
    Words(Vec<String>),
}

impl MatchReason {
    /// In words.
    pub fn describe(&self) -> String {
        match self {
            Self::Fired { when, values } => format!("trigger {when} ({values})"),
            Self::Near(words) => format!("scope {}", words.join(", ")),
            Self::Words(words) => format!("words {}", words.join(", ")),
        }
    }
}

/// An entry as stored in a campaign: what a brief shows of it, and what it is matched by.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct KnownEntry {
    /// Its name.
    pub id: String,
    /// Its kind.
    pub kind: EntryKind,
    /// One line.
    pub title: String,
    /// How far it can be trusted, here.
    pub status: EntryStatus,
    /// Why it is refuted here, if it is.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub refuted: String,
    /// When to consider it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub triggers: Vec<String>,
    /// Its letter in the playbook of its language, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub letter: Option<char>,
    /// How it works and how to do it, shortened.
    pub text: String,
    /// The expected speedup.
    pub expected_ratio: f64,
    /// How many rounds showed it, here or elsewhere.
    pub n_evidence: u32,
    /// Whether all of them were about other operations.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub elsewhere: bool,
    /// How to apply it without an agent.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub apply: Vec<super::Action>,
    /// The layer it comes from: built in, user, project or staged.
    pub layer: String,
    /// Its relations to other entries.
    #[serde(skip_serializing_if = "super::Interactions::is_empty")]
    pub interactions: super::Interactions,
    /// Entries after which it was shown to gain nothing more, here.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub spent_after: Vec<String>,
    /// Where it applies, to select who gets it.
    #[serde(skip_serializing_if = "Scope::is_everywhere")]
    pub scope: Scope,
}

/// Whether two lists of `name=value` have a name in common.
fn share_a_name(these: &str, those: &str) -> bool {
    let names = |list: &str| -> Vec<String> {
        let pairs = list.split(", ").filter_map(|pair| pair.split_once('='));
        pairs.map(|(name, _)| name.trim().to_owned()).collect()
    };
    let those = names(those);
    names(these).iter().any(|name| those.contains(name))
}

/// The standing of each entry; entries that depend on one that is out are in question.
fn standings(entries: &[Entry]) -> Vec<EntryStanding> {
    let mut standings: Vec<EntryStanding> = entries.iter().map(assess).collect();
    let out: Vec<usize> = (0..entries.len()).filter(|number| standings[*number].is_out()).collect();
    let numbers = entries.iter().enumerate();
    let numbers: HashMap<&str, usize> = numbers.map(|(n, e)| (e.id.as_str(), n)).collect();
    let needed = Dependents::of(entries);
    for number in out {
        let (id, status) = (&entries[number].id, standings[number].status.name());
        let why = format!("it depends on {id}, which is {status}");
        for dependant in needed.by(id) {
            if let Some(of) = numbers.get(dependant) {
                standings[*of].in_question = Some(why.clone());
            }
        }
    }
    standings
}

impl Library {
    /// A library of these entries. A trigger that cannot be parsed never fires; lint reports it.
    pub fn new(entries: Vec<Entry>) -> Self {
        let triggers = entries.iter().map(|entry| {
            let parsed = entry.triggers.iter().map(|t| Predicate::parse(t));
            parsed.filter_map(Result::ok).collect()
        });
        let gain = |entry: &Entry| match promises(entry.kind) {
            true => expected(entry, None).gain(1.0),
            false => 0.0,
        };
        let by_id = entries.iter().enumerate();
        Self {
            gains: entries.iter().map(gain).collect(),
            triggers: triggers.collect(),
            standings: standings(&entries),
            index: OnceLock::new(),
            by_id: by_id.map(|(number, entry)| (entry.id.clone(), number)).collect(),
            entries,
        }
    }

    fn index(&self) -> &WordIndex {
        self.index.get_or_init(|| WordIndex::of(self.entries.iter()))
    }

    /// All entries, in order.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The entry of that id or alias.
    pub fn get(&self, id: &str) -> Option<&Entry> {
        let by_alias = || {
            let is = |alias: &String| alias.eq_ignore_ascii_case(id);
            self.entries.iter().find(|entry| entry.aliases.iter().any(is))
        };
        self.by_id.get(id).map(|number| &self.entries[*number]).or_else(by_alias)
    }

    /// The standing of an entry, from its evidence.
    pub fn standing(&self, id: &str) -> Option<&EntryStanding> {
        self.by_id.get(id).map(|number| &self.standings[*number])
    }

    /// The entries that match, the best first. With words, only those that contain some of them;
    /// with values and no words, only those with a trigger that fires.
    pub fn search<'a>(&'a self, query: &LibraryQuery<'_>) -> Vec<EntryMatch<'a>> {
        let hits = (!query.text.trim().is_empty()).then(|| self.index().search(query.text));
        let best = hits.iter().flat_map(HashMap::values).map(|(score, _)| *score);
        let best = best.fold(1e-9, f64::max);
        let mut found: Vec<EntryMatch<'a>> = Vec::new();
        for (number, entry) in self.entries.iter().enumerate() {
            let hit = match &hits {
                Some(hits) => match hits.get(&number) {
                    Some((score, words)) => Some((score / best * WORDS_SCORE, words)),
                    None => continue,
                },
                None => None,
            };
            if let Some(matched) = self.fits(number, entry, query, hit) {
                found.push(matched);
            }
        }
        found.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.entry.id.cmp(&b.entry.id)));
        found
    }

    /// The entry that says more about an opportunity: among those with a trigger that fires on one
    /// of its counters, the one that matches its words best.
    pub fn entry_for(&self, opportunity: &Opportunity, query: &LibraryQuery<'_>) -> Option<&Entry> {
        let asked = LibraryQuery { text: "", ..query.clone() };
        let words = self.index().search(&opportunity.name);
        let score = |matched: &EntryMatch<'_>| {
            let number = self.by_id.get(&matched.entry.id);
            let hit = number.and_then(|number| words.get(number));
            hit.map_or(0.0, |(score, _)| *score)
        };
        let says_so = |matched: &EntryMatch<'_>| {
            matched.why.iter().any(|why| match why {
                MatchReason::Fired { values, .. } => share_a_name(values, &opportunity.trigger),
                MatchReason::Near(_) | MatchReason::Words(_) => false,
            })
        };
        let mut found = self.search(&asked);
        found.retain(says_so);
        // On a tie the better match, which comes first in the list, is compared last.
        let best = found.into_iter().rev();
        let best = best.max_by(|a, b| score(a).total_cmp(&score(b)));
        best.map(|matched| matched.entry)
    }

    fn fits<'a>(
        &'a self,
        number: usize,
        entry: &'a Entry,
        query: &LibraryQuery<'_>,
        hit: Option<(f64, &Vec<String>)>,
    ) -> Option<EntryMatch<'a>> {
        let standing = &self.standings[number];
        if standing.is_out() && !query.refuted {
            return None;
        }
        let mut score = 0.0;
        let mut why = Vec::new();
        if let Some(at) = query.situation {
            let excepted = entry.except.iter().any(|scope| scope.holds(at));
            if !entry.scope.holds(at) || (excepted && !query.refuted) {
                return None;
            }
            score -= UNKNOWN_SCORE * f64::from(entry.scope.unknown(at));
            let near = entry.scope.named_by(at);
            if !near.is_empty() {
                score += NEAR_SCORE * near.len() as f64;
                why.push(MatchReason::Near(near));
            }
        }
        if let Some(values) = query.values {
            let fires = |trigger: &&Predicate| trigger.truth(values) == PredicateValue::Holds;
            match self.triggers[number].iter().find(fires) {
                Some(trigger) => {
                    score += FIRED_SCORE;
                    why.insert(
                        0,
                        MatchReason::Fired {
                            when: trigger.text().to_owned(),
                            values: trigger.quote(values),
                        },
                    );
                }
                None if hit.is_none() => return None,
                None => {}
            }
        }
        if let Some((words_score, words)) = hit {
            score += words_score;
            why.push(MatchReason::Words(words.clone()));
        }
        score += standing.trust() + self.gains[number].clamp(-2.0, 2.0);
        Some(EntryMatch { entry, score, why })
    }
}
