//! The agenda of a campaign: which item a round is for, and when the agenda is done.

use super::round::{RoundPhase, RoundState};
use super::{Campaign, StopReason};
use crate::agenda::{
    self, Agenda, AgendaFacts, AgendaItem, ItemCondition, ItemOutcome, SettledItem,
};
use crate::campaign::strategy;
use crate::campaign::strategy::items_of_profile;
use crate::hypothesis::Hypothesis;
use crate::profile::CounterValues;
use crate::profile::classify::with_derived;

/// The item that a round is for, as the brief shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct AgendaTask {
    /// The item.
    pub item: AgendaItem,
    /// Which try it is, from 1.
    pub try_no: u32,
    /// Tries in all.
    pub tries: u32,
    /// What could not be checked because it was not read.
    pub unchecked: Option<String>,
}

impl Campaign {
    fn agenda(&self) -> Option<&Agenda> {
        self.charter()?.agenda.as_deref()
    }

    /// The items of the agenda, as far as they are known; an autopilot finds them at its first
    /// round.
    pub fn items(&self) -> &[AgendaItem] {
        self.facts.items.as_deref().unwrap_or_default()
    }

    /// What became of each item, in the order of the items.
    pub fn fates(&self) -> Vec<ItemOutcome> {
        let tries = self.agenda().map_or(agenda::TRIES, |agenda| agenda.tries);
        let past: Vec<SettledItem<'_>> = self
            .rounds
            .iter()
            .filter_map(|round| {
                Some(SettledItem {
                    task: round.task.as_deref()?,
                    round: round.number,
                    kept: round.verdict.keeps(),
                    ratio: round.ratio(),
                    gave_up: round.gave_up,
                })
            })
            .collect();
        let values = self.values();
        let ruled_out: Vec<Option<String>> =
            self.items().iter().map(|item| strategy::unroutable(self, item)).collect();
        agenda::assess(
            self.items(),
            tries,
            &past,
            AgendaFacts { ruled_out: &ruled_out, ..self.now(&values) },
        )
    }

    /// The counters of the last profile.
    fn values(&self) -> CounterValues {
        let kernel = self.profile().and_then(|profile| profile.main_kernel());
        kernel.map(with_derived).unwrap_or_default()
    }

    fn now<'a>(&'a self, values: &'a CounterValues) -> AgendaFacts<'a> {
        AgendaFacts { values, known: self.known(), ruled_out: &[] }
    }

    /// The item that a round would be for if it started now.
    fn item_due(&self) -> Option<&AgendaItem> {
        let number = agenda::due(self.items(), &self.fates())?;
        self.items().get(number)
    }

    /// An autopilot's items are derived once, when the first profile was read or is not due.
    pub(super) fn find_items(&mut self) {
        if self.facts.items.is_some() {
            return;
        }
        let Some(agenda) = self.agenda() else {
            return;
        };
        let items = agenda.items().unwrap_or_else(|| {
            let recall = strategy::recall(self);
            items_of_profile(&agenda.wanted, self.first_profile(), self.known(), &recall)
        });
        self.facts.items = Some(items);
    }

    /// Whether an autopilot has yet to profile the kernel.
    pub(super) fn must_look_first(&self) -> bool {
        self.agenda().is_some() && self.facts.items.is_none() && self.first_profile().is_none()
    }

    /// Why the campaign ends, if no item is left. A prerequisite that does not hold may hold after
    /// the profile that is due.
    pub(super) fn agenda_through(&self) -> Option<StopReason> {
        self.agenda()?;
        self.facts.items.as_ref()?;
        let fates = self.fates();
        if agenda::due(self.items(), &fates).is_some() {
            return None;
        }
        let settled = |fate: &ItemOutcome| {
            matches!(fate, ItemOutcome::Kept { .. } | ItemOutcome::Dropped { .. })
        };
        if !fates.iter().all(settled) && self.profile_due() {
            return None;
        }
        Some(self.through(&fates))
    }

    fn through(&self, fates: &[ItemOutcome]) -> StopReason {
        let kept = fates.iter().filter(|fate| matches!(fate, ItemOutcome::Kept { .. }));
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        StopReason::AgendaThrough { kept: count(kept.count()), items: count(fates.len()) }
    }

    /// Asks for a hypothesis about the item that is due; ends the campaign if there is an agenda
    /// and none is.
    pub(super) fn begin_proposing(&mut self, round: &mut RoundState) {
        self.find_items();
        round.task = self.item_due().map(|item| item.id.clone());
        round.phase = RoundPhase::Proposing { try_no: 1, errors: Vec::new() };
        if round.task.is_none() && self.agenda().is_some() {
            // The round never had a hypothesis, so it does not count.
            self.phase = self.closing(self.through(&self.fates()));
        }
    }

    /// The item that the round under way is for.
    pub fn task(&self) -> Option<AgendaTask> {
        let id = self.current_round()?.task.as_ref()?;
        let item = self.items().iter().find(|item| item.id == *id)?;
        let of_it = |round: &&super::RoundSummary| round.task.as_ref() == Some(id);
        let before = self.rounds.iter().filter(of_it).count();
        let tries = self.agenda().map_or(agenda::TRIES, |agenda| agenda.tries);
        let values = self.values();
        Some(AgendaTask {
            item: item.clone(),
            try_no: u32::try_from(before).unwrap_or(u32::MAX).saturating_add(1),
            tries: item.tries(tries),
            unchecked: match agenda::condition(item, self.now(&values)) {
                ItemCondition::Unknown(what) => Some(what),
                ItemCondition::Holds | ItemCondition::Fails(_) => None,
            },
        })
    }

    /// Why a hypothesis is not about the item that is due.
    pub(super) fn misses_task(&self, round: &RoundState, new: &Hypothesis) -> Option<String> {
        let due = round.task.as_ref()?;
        match &new.task {
            Some(task) if task == due => {}
            Some(task) => {
                return Some(format!(
                    "this round is for item {due:?}, not {task:?}: do that and name it in \"task\""
                ));
            }
            None => {
                return Some(format!("\"task\" is missing: this round is for item {due:?}"));
            }
        }
        let item = self.items().iter().find(|item| item.id == *due)?;
        let (wanted, named) = (item.entry()?, new.entry.as_deref()?);
        (wanted != named)
            .then(|| format!("item {due:?} applies the entry {wanted:?}, not {named:?}"))
    }
}
