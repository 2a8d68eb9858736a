//! The items of an autopilot agenda: what the first profile and the library suggest.

use super::{BriefEntry, LibraryRecall};
use crate::agenda::{AgendaItem, AgendaSource, ITEMS_MAX, ItemAction, ItemEffort, is_id};
use crate::knowledge::{EntryKind, ExpectedGain, KnownEntry};
use crate::profile::{Opportunity, Profile};

/// Maximum number of profile opportunities to consider.
const OPPORTUNITIES_MAX: usize = 3;
/// The largest saving that is believed of one opportunity, in percent of the time.
const GAIN_PCT_MAX: f64 = 90.0;
/// Expected gain of tuning all knobs, before anything is known.
const SWEEP_RATIO: f64 = 1.2;

/// The items to try: the opportunities of the profile, the entries that match it, and the knobs.
pub fn items_of_profile(
    wanted: &AgendaSource,
    profile: Option<&Profile>,
    known: &[KnownEntry],
    recall: &LibraryRecall,
) -> Vec<AgendaItem> {
    let AgendaSource::Autopilot { knobs, by_machine } = wanted else {
        return Vec::new();
    };
    let mut items: Vec<AgendaItem> = Vec::new();
    let mut push = |item: AgendaItem| {
        let there = items.iter().any(|other| other.id == item.id);
        if !there && items.len() < ITEMS_MAX {
            items.push(item);
        }
    };
    let diagnosis = profile.and_then(|profile| profile.diagnosis.as_ref());
    let opportunities = diagnosis.iter().flat_map(|d| &d.opportunities);
    for (number, opportunity) in opportunities.take(OPPORTUNITIES_MAX).enumerate() {
        let entry = opportunity.entry.as_ref();
        let entry = entry.and_then(|id| known.iter().find(|known| known.id == *id));
        match entry {
            Some(known) => push(of_entry(known, ratio_of(opportunity), &opportunity.trigger)),
            None if *by_machine => {}
            None => push(of_opportunity(number + 1, opportunity)),
        }
    }
    for reported in &recall.entries {
        if let Some(known) = known.iter().find(|known| known.id == reported.id) {
            push(item_from_entry(known, reported));
        }
    }
    if *knobs > 0 {
        push(sweep(*knobs));
    }
    let doable = |item: &AgendaItem| {
        let entry = item.entry();
        let known = entry.and_then(|id| known.iter().find(|known| known.id == id));
        let is_pattern = known.is_none_or(|known| known.kind != EntryKind::AntiPattern);
        let by_hand = known.is_some_and(|known| known.apply.is_empty());
        is_pattern && !(*by_machine && by_hand)
    };
    items.retain(doable);
    ordered_by_need(items, known)
}

/// An entry's dependencies come first, if they are on the agenda too.
fn ordered_by_need(mut items: Vec<AgendaItem>, known: &[KnownEntry]) -> Vec<AgendaItem> {
    let ids: Vec<String> = items.iter().map(|item| item.id.clone()).collect();
    for item in &mut items {
        let of = known.iter().find(|known| item.entry() == Some(&known.id));
        let needs = of.iter().flat_map(|known| &known.interactions.depends_on);
        let here = needs.filter(|id| ids.contains(id) && **id != item.id);
        item.needs = here.cloned().collect();
    }
    items
}

fn ratio_of(opportunity: &Opportunity) -> f64 {
    let gain = opportunity.gain_pct.clamp(0.0, GAIN_PCT_MAX);
    1.0 / (1.0 - gain / 100.0)
}

fn of_opportunity(number: usize, opportunity: &Opportunity) -> AgendaItem {
    AgendaItem {
        id: format!("opportunity-{number}"),
        title: opportunity.name.clone(),
        text: format!("{} ({})", opportunity.name, opportunity.trigger),
        expected_ratio: ratio_of(opportunity),
        ..AgendaItem::default()
    }
}

fn item_from_entry(known: &KnownEntry, reported: &BriefEntry) -> AgendaItem {
    // Before any round, the claims of entries are taken as given.
    let expected = ExpectedGain::of(known).gain(1.0).exp();
    of_entry(known, expected, &reported.why)
}

fn of_entry(known: &KnownEntry, expected_ratio: f64, why: &str) -> AgendaItem {
    let id = match is_id(&known.id) {
        true => known.id.clone(),
        false => known.id.chars().filter(char::is_ascii_alphanumeric).collect(),
    };
    AgendaItem {
        id,
        title: known.title.clone(),
        text: format!("{} ({why})", known.title),
        expected_ratio,
        // A change that karve can make without an agent takes the least effort.
        effort: match known.apply.is_empty() {
            true => ItemEffort::Medium,
            false => ItemEffort::Low,
        },
        how: ItemAction::Entry { entry: known.id.clone() },
        ..AgendaItem::default()
    }
}

fn sweep(knobs: u32) -> AgendaItem {
    let title = match knobs {
        1 => "tune the knob".to_owned(),
        n => format!("tune all {n} knobs"),
    };
    AgendaItem {
        id: "sweep".to_owned(),
        title,
        expected_ratio: SWEEP_RATIO,
        how: ItemAction::Sweep,
        ..AgendaItem::default()
    }
}
