//! Which library entries a campaign loads: those that apply to its target.

use super::{Layer, LoadedLibrary};
use karve_core::knowledge::{
    CLAIMS, Entry, EntryKind, EntryStatus, KnownEntry, LibraryQuery, Situation, cut_at_sentence,
    expected,
};
use karve_core::profile::Diagnosis;

/// Most entries that a campaign loads.
const KNOWN_MAX: usize = 150;
/// Most refuted ones among them.
const REFUTED_MAX: usize = 40;
/// Most characters of an entry's text.
const TEXT_CHARS: usize = 700;

/// The entries that apply in a situation, ordered by id.
pub fn known_in(loaded: &LoadedLibrary, at: &Situation) -> Vec<KnownEntry> {
    let mut found: Vec<KnownEntry> = Vec::new();
    let mut refuted = 0;
    for placed in loaded.placed.values() {
        let entry = &placed.entry;
        if !entry.scope.holds(at) {
            continue;
        }
        let known = known(loaded, entry, placed.layer, at);
        let out = matches!(known.status, EntryStatus::Refuted | EntryStatus::Superseded);
        refuted += usize::from(out);
        if out && refuted > REFUTED_MAX {
            continue;
        }
        found.push(known);
    }
    // If there are too many, prefer entries that were measured or can be applied automatically.
    if found.len() > KNOWN_MAX {
        found.sort_by_key(|known| {
            let useful = known.n_evidence > 0 || !known.apply.is_empty();
            (!useful, known.triggers.is_empty(), known.id.clone())
        });
        found.truncate(KNOWN_MAX);
        found.sort_by(|a, b| a.id.cmp(&b.id));
    }
    found
}

/// Adds to each item to try the entry that says more about it, if there is one.
pub fn name_entries(loaded: &LoadedLibrary, query: &LibraryQuery<'_>, diagnosis: &mut Diagnosis) {
    for opportunity in &mut diagnosis.opportunities {
        let telling = loaded.library.entry_for(opportunity, query);
        opportunity.entry = telling.map(|entry| entry.id.clone());
    }
}

/// One entry as a campaign in this situation loads it.
pub fn known(loaded: &LoadedLibrary, entry: &Entry, layer: Layer, at: &Situation) -> KnownEntry {
    let standing = loaded.library.standing(&entry.id);
    let mut status = standing.map_or(entry.status, |standing| standing.status);
    let mut why = String::new();
    if let Some(standing) = standing.filter(|standing| standing.is_out()) {
        why = standing.describe();
        if status != EntryStatus::Superseded {
            status = EntryStatus::Refuted;
        }
    } else if let Some(except) = entry.except.iter().find(|scope| scope.holds(at)) {
        why = format!("shown not to hold for {}", except.describe());
        status = EntryStatus::Refuted;
    }
    let promised = expected(entry, Some(at));
    KnownEntry {
        id: entry.id.clone(),
        kind: entry.kind,
        title: entry.title.chars().take(120).collect(),
        status,
        refuted: why.chars().take(300).collect(),
        triggers: entry.triggers.iter().take(8).cloned().collect(),
        letter: entry.letter(),
        text: text_of(entry),
        expected_ratio: promised.shown,
        n_evidence: promised.n_evidence,
        elsewhere: promised.elsewhere,
        apply: entry.apply.iter().take(8).cloned().collect(),
        layer: layer.name().to_owned(),
        interactions: entry.interactions.clone(),
        spent_after: spent_after(entry, at),
        scope: entry.scope.clone(),
    }
}

/// Entries after which it was shown to give no further gain.
fn spent_after(entry: &Entry, at: &Situation) -> Vec<String> {
    let spent = entry.except.iter();
    let spent = spent.filter(|scope| scope.whatever_it_has().holds(at));
    let mut ids: Vec<String> = spent.flat_map(|scope| scope.after.clone()).collect();
    ids.sort();
    ids.dedup();
    ids
}

/// Its mechanism and how to implement it.
fn text_of(entry: &Entry) -> String {
    let headings = match entry.kind {
        EntryKind::AntiPattern => ["Failure mode", "Instead"],
        EntryKind::Tip => ["Takeaway", "Signal"],
        EntryKind::Optimization | EntryKind::Case | EntryKind::Technique => ["Mechanism", "Recipe"],
    };
    let headings = headings.iter().chain([&CLAIMS]);
    let parts = headings.filter_map(|heading| entry.section(heading));
    let text = parts.collect::<Vec<_>>().join("\n");
    cut_at_sentence(&text, TEXT_CHARS)
}
