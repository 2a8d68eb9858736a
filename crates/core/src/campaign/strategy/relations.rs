//! Relations between entries: what the kernel already has, what that contains or rules out, and
//! what should come first.

use crate::campaign::Campaign;
use crate::knowledge::KnownEntry;
use std::collections::BTreeSet;

/// An entry that can be applied without an agent.
#[derive(Clone, Debug, PartialEq)]
pub struct UsableEntry {
    /// The entry.
    pub known: KnownEntry,
    /// The log speedup that it promises here.
    pub promise: f64,
}

/// The entries in the parent of the current round: those that were kept on its own path from the
/// base.
pub(super) fn in_kernel(campaign: &Campaign) -> Vec<String> {
    let lineage = campaign.lineage();
    let round = campaign.current_round().map(|round| round.parent.as_str());
    let newest = || lineage.best().map(|best| best.commit.as_str());
    let Some(mut at) = round.or_else(newest) else {
        return Vec::new();
    };
    let mut entries = Vec::new();
    for kept in lineage.kept().iter().rev() {
        if kept.commit != at {
            continue;
        }
        at = &kept.parent;
        let round = campaign.rounds().iter().find(|r| r.number == kept.round);
        let hypothesis = round.and_then(|round| round.hypothesis.as_ref());
        entries.extend(hypothesis.and_then(|hypothesis| hypothesis.entry.clone()));
    }
    entries.reverse();
    entries
}

/// Whether an entry in the kernel contains this one, directly or through others.
pub(super) fn is_contained(id: &str, library: &[KnownEntry], kept: &[String]) -> bool {
    let mut seen = BTreeSet::from([id]);
    let mut next = vec![id];
    while let Some(id) = next.pop() {
        let known = library.iter().filter(|known| known.id == id);
        for whole in known.flat_map(|known| &known.interactions.contained_in) {
            if kept.contains(whole) {
                return true;
            }
            if seen.insert(whole) {
                next.push(whole);
            }
        }
    }
    false
}

/// Whether an entry cannot help this kernel: an entry in the kernel contains it, rules it out, or
/// leaves it nothing to gain.
pub(super) fn is_of_no_use(known: &KnownEntry, library: &[KnownEntry], kept: &[String]) -> bool {
    let any = |list: &[String]| list.iter().any(|id| kept.contains(id));
    let ruled_out = library.iter().any(|other| {
        kept.contains(&other.id) && other.interactions.incompatible_with.contains(&known.id)
    });
    any(&known.interactions.incompatible_with)
        || ruled_out
        || any(&known.spent_after)
        || is_contained(&known.id, library, kept)
}

/// Alternatives to an entry that are already in the kernel, whichever of the two names the
/// other.
pub(super) fn other_ways(id: &str, library: &[KnownEntry], kept: &[String]) -> Vec<String> {
    let names = |from: &str, to: &str| {
        let mut of = library.iter().filter(|known| known.id == from);
        of.any(|known| known.interactions.alternative_to.iter().any(|way| way == to))
    };
    let other = |way: &&String| *way != id && (names(id, way) || names(way, id));
    let mut ways: Vec<String> = kept.iter().filter(other).cloned().collect();
    ways.sort();
    ways.dedup();
    ways
}

/// The same list, with dependencies first, unless they were already applied. Entries in a
/// dependency cycle keep their order.
pub(super) fn after_what_they_need(
    mut waiting: Vec<UsableEntry>,
    applied: &[(String, u32)],
) -> Vec<UsableEntry> {
    let mut ordered = Vec::with_capacity(waiting.len());
    while !waiting.is_empty() {
        let is_due = |id: &String| {
            let done = applied.iter().any(|(of, _)| of == id);
            !done && waiting.iter().any(|other| other.known.id == *id)
        };
        let is_ready = |usable: &UsableEntry| {
            let mut needs = usable.known.interactions.depends_on.iter();
            !needs.any(|id| *id != usable.known.id && is_due(id))
        };
        let first = waiting.iter().position(is_ready).unwrap_or(0);
        ordered.push(waiting.remove(first));
    }
    ordered
}
