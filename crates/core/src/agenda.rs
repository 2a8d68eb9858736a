//! What a campaign was asked to do, item by item: which item is due, and how each one ended.
//!
//! An agenda is part of the charter. How an item ended follows from the settled rounds, the last
//! profile and the library; nothing else is stored.

#[cfg(test)]
mod tests;
mod values;

use crate::hypothesis::EXPECTED;
use crate::knowledge::{EntryStatus, KnownEntry};
use crate::profile::counters::known as known_counter;
use crate::profile::{CounterValues, Predicate, PredicateValue};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of items in one agenda.
pub const ITEMS_MAX: usize = 50;
/// Rounds that one item may take, unless the charter says otherwise.
pub const TRIES: u32 = 2;
/// Maximum number of rounds that the charter may allow one item.
pub const TRIES_MAX: u32 = 10;
/// Maximum length of an item's name, in characters.
const ID_CHARS: usize = 64;

/// What a campaign was asked to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Agenda {
    /// The items.
    pub wanted: AgendaSource,
    /// Rounds that one item may take.
    #[serde(default = "default_tries")]
    pub tries: u32,
}

fn default_tries() -> u32 {
    TRIES
}

/// Where the items come from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "mode", rename_all = "snake_case")]
pub enum AgendaSource {
    /// One optimization that the user named.
    Only {
        /// In the user's words.
        request: String,
        /// The item itself.
        item: AgendaItem,
    },
    /// The recommendations of an analysis.
    Plan {
        /// The text of the analysis.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        bottleneck: String,
        /// What it recommends.
        items: Vec<AgendaItem>,
    },
    /// Whatever the first profile and the library suggest.
    Autopilot {
        /// Knobs that the kernel declared at the start.
        #[serde(default)]
        knobs: u32,
        /// Whether only items that karve can carry out without an agent are wanted.
        #[serde(default)]
        by_machine: bool,
    },
}

/// One thing to try.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AgendaItem {
    /// Its name: letters, digits, `.`, `_` and `-`.
    pub id: String,
    /// One line.
    pub title: String,
    /// The task, in words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// The expected speedup.
    pub expected_ratio: f64,
    /// The effort it takes.
    #[serde(default)]
    pub effort: ItemEffort,
    /// How likely it is to go wrong, or hard to take back.
    #[serde(default, skip_serializing_if = "ItemEffort::is_medium")]
    pub risk: ItemEffort,
    /// Items that must be kept first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<String>,
    /// Conditions on counters, all of which must hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub when: Vec<String>,
    /// How it is carried out.
    #[serde(default)]
    pub how: ItemAction,
}

/// How much work an item takes, or how risky it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum ItemEffort {
    Low,
    #[default]
    Medium,
    High,
}

names!(ItemEffort { Low => "low", Medium => "medium", High => "high" });

impl ItemEffort {
    #[allow(clippy::trivially_copy_pass_by_ref)] // Required by serde.
    fn is_medium(&self) -> bool {
        *self == Self::Medium
    }

    /// The cost of an item of this effort, as a multiple of the lowest.
    fn cost(self) -> f64 {
        match self {
            Self::Low => 1.0,
            Self::Medium => 2.0,
            Self::High => 4.0,
        }
    }
}

/// How an item is carried out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "how", rename_all = "snake_case")]
pub enum ItemAction {
    /// As its text says.
    #[default]
    Words,
    /// As a library entry says.
    Entry {
        /// The entry.
        entry: String,
    },
    /// Sets these knobs to these values.
    Knobs {
        /// Values by knob.
        config: BTreeMap<String, String>,
    },
    /// Tunes all knobs.
    Sweep,
}

/// How an item ended, or that it is still open.
#[derive(Clone, Debug, PartialEq)]
pub enum ItemOutcome {
    /// One of its rounds was kept.
    Kept {
        /// The round.
        round: u32,
        /// The speedup, if it was measured.
        ratio: Option<f64>,
    },
    /// All of its rounds are used up, and none was kept.
    Dropped {
        /// Its rounds.
        rounds: Vec<u32>,
    },
    /// A prerequisite is not met.
    Skipped {
        /// Which, and why.
        why: String,
    },
    /// It has not been done yet.
    Open,
}

/// The result of a settled round for its item.
#[derive(Clone, Debug, PartialEq)]
pub struct SettledItem<'a> {
    /// The item.
    pub task: &'a str,
    /// The round.
    pub round: u32,
    /// Whether it was kept.
    pub kept: bool,
    /// The speedup, if it was measured.
    pub ratio: Option<f64>,
    /// Whether the agent reported that nothing is left to try for the item.
    pub gave_up: bool,
}

/// What is known about the kernel and its environment now.
#[derive(Clone, Copy, Debug)]
pub struct AgendaFacts<'a> {
    /// Counters of the last profile.
    pub values: &'a CounterValues,
    /// Library entries that apply here.
    pub known: &'a [KnownEntry],
    /// Why no role can take an item here, in the order of the items; may be empty.
    pub ruled_out: &'a [Option<String>],
}

/// Whether the conditions of an item hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ItemCondition {
    /// They do, or there are none.
    Holds,
    /// One does not, with the reason.
    Fails(String),
    /// Counters that they use were not measured.
    Unknown(String),
}

impl Agenda {
    /// The items, where they are known from the start.
    pub fn items(&self) -> Option<Vec<AgendaItem>> {
        match &self.wanted {
            AgendaSource::Only { item, .. } => Some(vec![item.clone()]),
            AgendaSource::Plan { items, .. } => Some(items.clone()),
            AgendaSource::Autopilot { .. } => None,
        }
    }

    /// One line of text.
    pub fn describe(&self) -> String {
        match &self.wanted {
            AgendaSource::Only { item, .. } => match item.how {
                // Its id only says that it is the only one.
                ItemAction::Words => format!("only: {}", item.title),
                _ if item.id == item.title => format!("only {}", item.id),
                ItemAction::Entry { .. } | ItemAction::Knobs { .. } | ItemAction::Sweep => {
                    format!("only {} ({})", item.id, item.title)
                }
            },
            AgendaSource::Plan { items, .. } if items.len() == 1 => "a plan of 1 item".to_owned(),
            AgendaSource::Plan { items, .. } => format!("a plan of {} items", items.len()),
            AgendaSource::Autopilot { .. } => {
                "autopilot: what the first profile and the library suggest".to_owned()
            }
        }
    }
}

impl AgendaItem {
    /// The entry that it applies.
    pub fn entry(&self) -> Option<&str> {
        match &self.how {
            ItemAction::Entry { entry } => Some(entry),
            ItemAction::Words | ItemAction::Knobs { .. } | ItemAction::Sweep => None,
        }
    }

    /// Rounds that it may take: a change that can be made in only one way is tried once.
    pub fn tries(&self, of_agenda: u32) -> u32 {
        match self.how {
            ItemAction::Words | ItemAction::Entry { .. } => of_agenda.clamp(1, TRIES_MAX),
            ItemAction::Knobs { .. } | ItemAction::Sweep => 1,
        }
    }

    /// Log speedup per unit of effort: the higher, the earlier.
    fn worth(&self) -> f64 {
        let gain = self.expected_ratio.max(1e-6).ln();
        match gain > 0.0 {
            true => gain / self.effort.cost(),
            // An expected loss does not get better by being easy.
            false => gain * self.effort.cost(),
        }
    }
}

/// Whether a text may be the name of an item.
pub fn is_id(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    (1..=ID_CHARS).contains(&text.len()) && text.chars().all(plain)
}

/// What is wrong with the items, each with its item number.
pub fn errors(items: &[AgendaItem]) -> Vec<(usize, String)> {
    let mut faults = Vec::new();
    let ids: BTreeSet<&str> = items.iter().map(|item| item.id.as_str()).collect();
    for (number, item) in items.iter().enumerate() {
        let mut fault = |text: String| faults.push((number, text));
        if !is_id(&item.id) {
            fault(format!(
                "an id is made of letters, digits, `.`, `_` and `-`, at most {ID_CHARS}"
            ));
        }
        if items[..number].iter().any(|other| other.id == item.id) {
            fault(format!("there is an item {} already", item.id));
        }
        if item.title.trim().is_empty() {
            fault("the title is empty".to_owned());
        }
        if !EXPECTED.contains(&item.expected_ratio) {
            fault("the expected speedup is not a number such as 1.15, at least 1".to_owned());
        }
        for needed in &item.needs {
            if *needed == item.id {
                fault("it needs itself".to_owned());
            } else if !ids.contains(needed.as_str()) {
                fault(format!("it needs {needed}, and there is no such item"));
            }
        }
        for when in &item.when {
            condition_error(when).into_iter().for_each(&mut fault);
        }
    }
    if let Some(number) = in_circle(items) {
        let id = &items[number].id;
        faults.push((number, format!("{id} needs itself through other items")));
    }
    faults
}

fn condition_error(when: &str) -> Option<String> {
    let predicate = match Predicate::parse(when) {
        Ok(predicate) => predicate,
        Err(why) => return Some(format!("the condition `{when}` cannot be read: {why}")),
    };
    let names = predicate.names();
    let strange = names.iter().find(|name| known_counter(name).is_none())?;
    Some(format!("the condition `{when}` asks for {strange}, which is not a counter"))
}

/// An item that would have to come before itself.
fn in_circle(items: &[AgendaItem]) -> Option<usize> {
    let mut done: BTreeSet<&str> = BTreeSet::new();
    let known = |id: &String| items.iter().any(|item| item.id == *id);
    for _ in 0..items.len() {
        let ready = items.iter().filter(|item| {
            let mut needs = item.needs.iter().filter(|id| known(id));
            needs.all(|id| done.contains(id.as_str()))
        });
        let ready: Vec<&str> = ready.map(|item| item.id.as_str()).collect();
        done.extend(ready);
    }
    let mut left = (0..items.len()).filter(|number| !done.contains(items[*number].id.as_str()));
    // An item that names itself directly is already reported.
    left.find(|number| !items[*number].needs.contains(&items[*number].id))
}

/// The order in which items are tried: impact per effort, then the less risky one, then the easier
/// one, then as listed.
pub fn order(items: &[AgendaItem]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..items.len()).collect();
    order.sort_by(|a, b| {
        let (a, b) = (&items[*a], &items[*b]);
        let by_worth = b.worth().total_cmp(&a.worth());
        by_worth.then_with(|| (a.risk, a.effort).cmp(&(b.risk, b.effort)))
    });
    order
}

/// The state of each item.
pub fn assess(
    items: &[AgendaItem],
    tries: u32,
    past: &[SettledItem<'_>],
    now: AgendaFacts<'_>,
) -> Vec<ItemOutcome> {
    let mut fates: Vec<ItemOutcome> =
        items.iter().map(|item| of_rounds(item, tries, past, now)).collect();
    for (fate, why) in fates.iter_mut().zip(now.ruled_out) {
        if let (ItemOutcome::Open, Some(why)) = (&*fate, why) {
            *fate = ItemOutcome::Skipped { why: why.clone() };
        }
    }
    // An item that needs one that was not kept is skipped, and so is every item that needs it.
    for _ in 0..items.len() {
        let out: Vec<(usize, String)> = (0..items.len())
            .filter(|number| fates[*number] == ItemOutcome::Open)
            .filter_map(|number| Some((number, missing(&items[number], items, &fates)?)))
            .collect();
        if out.is_empty() {
            break;
        }
        for (number, why) in out {
            fates[number] = ItemOutcome::Skipped { why };
        }
    }
    fates
}

/// The item that is due.
pub fn due(items: &[AgendaItem], fates: &[ItemOutcome]) -> Option<usize> {
    let kept = |id: &String| match items.iter().position(|item| item.id == *id) {
        Some(number) => matches!(fates.get(number), Some(ItemOutcome::Kept { .. })),
        None => true,
    };
    let ready = |number: &usize| {
        fates.get(*number) == Some(&ItemOutcome::Open) && items[*number].needs.iter().all(kept)
    };
    order(items).into_iter().find(ready)
}

/// The state of an item from its rounds and its own prerequisites.
fn of_rounds(
    item: &AgendaItem,
    tries: u32,
    past: &[SettledItem<'_>],
    now: AgendaFacts<'_>,
) -> ItemOutcome {
    let own: Vec<&SettledItem<'_>> = past.iter().filter(|past| past.task == item.id).collect();
    if let Some(kept) = own.iter().find(|past| past.kept) {
        let (round, ratio) = (kept.round, kept.ratio);
        return ItemOutcome::Kept { round, ratio };
    }
    let used = u32::try_from(own.len()).unwrap_or(u32::MAX);
    let gave_up = own.iter().any(|past| past.gave_up);
    let out = unfit(item, past, now);
    if used >= item.tries(tries) || gave_up || (used > 0 && out.is_some()) {
        let rounds = own.iter().map(|past| past.round).collect();
        return ItemOutcome::Dropped { rounds };
    }
    if let Some(why) = out {
        return ItemOutcome::Skipped { why };
    }
    match condition(item, now) {
        // An item that was started is not abandoned because another change moved a counter.
        ItemCondition::Fails(why) if used == 0 => ItemOutcome::Skipped { why },
        ItemCondition::Fails(_) | ItemCondition::Holds | ItemCondition::Unknown(_) => {
            ItemOutcome::Open
        }
    }
}

/// Why an entry can no longer be applied.
fn unfit(item: &AgendaItem, past: &[SettledItem<'_>], now: AgendaFacts<'_>) -> Option<String> {
    let entry = item.entry()?;
    let known = now.known.iter().find(|known| known.id == entry)?;
    if matches!(known.status, EntryStatus::Refuted | EntryStatus::Superseded) {
        let status = known.status.name();
        return Some(format!("the entry {entry} is {status} here: {}", known.refuted));
    }
    let kept = |id: &String| past.iter().any(|past| past.kept && past.task == *id);
    let other = known.interactions.incompatible_with.iter().find(|id| kept(id))?;
    Some(format!("it cannot be used with {other}, which was kept"))
}

/// The required item that was not kept and never will be.
fn missing(item: &AgendaItem, items: &[AgendaItem], fates: &[ItemOutcome]) -> Option<String> {
    item.needs.iter().find_map(|id| {
        let number = items.iter().position(|item| item.id == *id)?;
        match fates.get(number)? {
            ItemOutcome::Dropped { .. } => Some(format!("it needs {id}, which was dropped")),
            ItemOutcome::Skipped { .. } => Some(format!("it needs {id}, which was skipped")),
            ItemOutcome::Kept { .. } | ItemOutcome::Open => None,
        }
    })
}

/// Whether the conditions of an item and the triggers of its entry hold, as far as is known.
pub fn condition(item: &AgendaItem, now: AgendaFacts<'_>) -> ItemCondition {
    let mut unknown = Vec::new();
    for when in &item.when {
        let Ok(predicate) = Predicate::parse(when) else {
            unknown.push(when.clone());
            continue;
        };
        match predicate.truth(now.values) {
            PredicateValue::Holds => {}
            PredicateValue::Fails => {
                let quote = predicate.quote(now.values);
                return ItemCondition::Fails(format!("`{when}` does not hold ({quote})"));
            }
            PredicateValue::Unknown => unknown.push(when.clone()),
        }
    }
    let known = item.entry().and_then(|entry| now.known.iter().find(|known| known.id == entry));
    match known.map(|known| of_triggers(known, now.values)) {
        Some(ItemCondition::Fails(why)) => return ItemCondition::Fails(why),
        Some(ItemCondition::Unknown(what)) => unknown.push(what),
        Some(ItemCondition::Holds) | None => {}
    }
    match unknown.is_empty() {
        true => ItemCondition::Holds,
        false => ItemCondition::Unknown(format!("`{}`", unknown.join("`, `"))),
    }
}

/// One trigger that fires is enough; an entry does not apply only if all of them fail.
fn of_triggers(known: &KnownEntry, values: &CounterValues) -> ItemCondition {
    let triggers = known.triggers.iter();
    let triggers: Vec<Predicate> = triggers.filter_map(|t| Predicate::parse(t).ok()).collect();
    let truths: Vec<PredicateValue> = triggers.iter().map(|t| t.truth(values)).collect();
    if triggers.is_empty() || truths.contains(&PredicateValue::Holds) {
        return ItemCondition::Holds;
    }
    let texts: Vec<&str> = triggers.iter().map(Predicate::text).collect();
    let all = texts.join("` or `");
    if truths.contains(&PredicateValue::Unknown) {
        return ItemCondition::Unknown(all);
    }
    let quotes: Vec<String> = triggers.iter().map(|t| t.quote(values)).collect();
    let quotes = quotes.join(", ");
    let id = &known.id;
    ItemCondition::Fails(format!("the entry {id} asks for `{all}` ({quotes})"))
}
