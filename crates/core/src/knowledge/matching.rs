//! Which entries to think of: by trigger, by scope and by words, each with the reason.

use super::expected::{expected, promises};
use super::standing::{Needed, Standing, assess};
use super::text::Index;
use super::{Entry, Kind, Scope, Situation, Status};
use crate::profile::{Opportunity, Predicate, Truth, Values};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// What a trigger that fires is worth, beside what words and nearness are.
const FIRED_SCORE: f64 = 4.0;
/// What each list of the scope that names the situation is worth.
const NEAR_SCORE: f64 = 0.5;
/// What each list is worth that asks for something nobody knows.
const UNKNOWN_SCORE: f64 = 1.5;
/// The words of a query are worth this much in all.
const WORDS_SCORE: f64 = 6.0;

/// Entries with their triggers read and their words indexed.
#[derive(Clone, Debug, Default)]
pub struct Library {
    entries: Vec<Entry>,
    triggers: Vec<Vec<Predicate>>,
    standings: Vec<Standing>,
    /// The log speedup that each promises somewhere.
    gains: Vec<f64>,
    index: Index,
    by_id: HashMap<String, usize>,
}

/// What is asked for. What is left out does not restrict.
#[derive(Clone, Debug, Default)]
pub struct Query<'a> {
    /// Where somebody is.
    pub situation: Option<&'a Situation>,
    /// What was read of the kernel.
    pub values: Option<&'a Values>,
    /// Words.
    pub text: &'a str,
    /// Whether refuted and superseded ones are wanted, too.
    pub refuted: bool,
}

/// An entry that fits, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct Match<'a> {
    /// The entry.
    pub entry: &'a Entry,
    /// The more, the better.
    pub score: f64,
    /// Why it fits.
    pub why: Vec<Why>,
}

/// Why an entry fits.
#[derive(Clone, Debug, PartialEq)]
pub enum Why {
    /// A trigger fires.
    Fired {
        /// The trigger.
        when: String,
        /// The values that it rests on, as `name=value`.
        values: String,
    },
    /// Its scope names the situation.
    Near(Vec<String>),
    /// It holds words that were asked for.
    Words(Vec<String>),
}

impl Why {
    /// In words.
    pub fn describe(&self) -> String {
        match self {
            Self::Fired { when, values } => format!("trigger {when} ({values})"),
            Self::Near(words) => format!("scope {}", words.join(", ")),
            Self::Words(words) => format!("words {}", words.join(", ")),
        }
    }
}

/// An entry as a campaign remembers it: what a brief tells of it, and what it is matched by.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Known {
    /// Its name.
    pub id: String,
    /// What it is.
    pub kind: Kind,
    /// One line.
    pub title: String,
    /// How far it can be trusted, here.
    pub status: Status,
    /// Why it is refuted here, if it is.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub refuted: String,
    /// When to think of it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub triggers: Vec<String>,
    /// How it works and how it is done, shortened.
    pub text: String,
    /// The speedup to expect.
    pub expected_ratio: f64,
    /// How many rounds showed it, here or elsewhere.
    pub n_evidence: u32,
    /// Whether all of them were about other operations.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub elsewhere: bool,
    /// How a machine can do it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub apply: Vec<super::Action>,
    /// Where it was read: built in, user, project or staged.
    pub layer: String,
    /// What it has to do with others.
    #[serde(skip_serializing_if = "super::Interactions::is_empty")]
    pub interactions: super::Interactions,
    /// Entries after which it was shown to give nothing more, here.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub spent_after: Vec<String>,
    /// Where it holds, for who gets it.
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

/// How each entry stands; what depends on one that is out is in question.
fn standings(entries: &[Entry]) -> Vec<Standing> {
    let mut standings: Vec<Standing> = entries.iter().map(assess).collect();
    let out: Vec<usize> = (0..entries.len())
        .filter(|number| standings[*number].is_out())
        .collect();
    let numbers = entries.iter().enumerate();
    let numbers: HashMap<&str, usize> = numbers.map(|(n, e)| (e.id.as_str(), n)).collect();
    let needed = Needed::of(entries);
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
    /// A library of these entries. A trigger that cannot be read never fires; lint tells of it.
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
            index: Index::of(entries.iter()),
            by_id: by_id
                .map(|(number, entry)| (entry.id.clone(), number))
                .collect(),
            entries,
        }
    }

    /// All entries, in order.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The entry of that id or alias.
    pub fn get(&self, id: &str) -> Option<&Entry> {
        let by_alias = || {
            let is = |alias: &String| alias.eq_ignore_ascii_case(id);
            self.entries
                .iter()
                .find(|entry| entry.aliases.iter().any(is))
        };
        self.by_id
            .get(id)
            .map(|number| &self.entries[*number])
            .or_else(by_alias)
    }

    /// What its evidence makes of an entry.
    pub fn standing(&self, id: &str) -> Option<&Standing> {
        self.by_id.get(id).map(|number| &self.standings[*number])
    }

    /// The entries that fit, the best first. With words, only those that hold some of them; with
    /// values and no words, only those of which a trigger fires.
    pub fn search<'a>(&'a self, query: &Query<'_>) -> Vec<Match<'a>> {
        let hits = (!query.text.trim().is_empty()).then(|| self.index.search(query.text));
        let best = hits
            .iter()
            .flat_map(HashMap::values)
            .map(|(score, _)| *score);
        let best = best.fold(1e-9, f64::max);
        let mut found: Vec<Match<'a>> = Vec::new();
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
        found.sort_by(|a, b| {
            b.score
                .total_cmp(&a.score)
                .then(a.entry.id.cmp(&b.entry.id))
        });
        found
    }

    /// The entry that tells more of something to try: of those whose trigger fires on a counter
    /// that also says so, the one that holds its words best.
    pub fn telling_of(&self, opportunity: &Opportunity, query: &Query<'_>) -> Option<&Entry> {
        let asked = Query {
            text: "",
            ..query.clone()
        };
        let words = self.index.search(&opportunity.name);
        let score = |matched: &Match<'_>| {
            let number = self.by_id.get(&matched.entry.id);
            let hit = number.and_then(|number| words.get(number));
            hit.map_or(0.0, |(score, _)| *score)
        };
        let says_so = |matched: &Match<'_>| {
            matched.why.iter().any(|why| match why {
                Why::Fired { values, .. } => share_a_name(values, &opportunity.trigger),
                Why::Near(_) | Why::Words(_) => false,
            })
        };
        let mut found = self.search(&asked);
        found.retain(says_so);
        // Of equals the better match, which stands first, is the last to be compared.
        let best = found.into_iter().rev();
        let best = best.max_by(|a, b| score(a).total_cmp(&score(b)));
        best.map(|matched| matched.entry)
    }

    fn fits<'a>(
        &'a self,
        number: usize,
        entry: &'a Entry,
        query: &Query<'_>,
        hit: Option<(f64, &Vec<String>)>,
    ) -> Option<Match<'a>> {
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
                why.push(Why::Near(near));
            }
        }
        if let Some(values) = query.values {
            let fires = |trigger: &&Predicate| trigger.truth(values) == Truth::Holds;
            match self.triggers[number].iter().find(fires) {
                Some(trigger) => {
                    score += FIRED_SCORE;
                    why.insert(
                        0,
                        Why::Fired {
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
            why.push(Why::Words(words.clone()));
        }
        score += standing.trust() + self.gains[number].clamp(-2.0, 2.0);
        Some(Match { entry, score, why })
    }
}
