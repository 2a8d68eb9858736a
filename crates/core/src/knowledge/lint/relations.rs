//! Contradictions between entries: cycles, and an entry that cannot be used with one that it
//! needs.

use super::super::{Entry, Interactions};
use super::{LintFinding, LintSeverity};
use std::collections::{BTreeSet, HashMap, HashSet};

/// Maximum number of entries of a cycle to name.
const CIRCLE_SHOWN: usize = 6;

/// A relation that must not form a cycle.
type EntryRelation = (&'static str, fn(&Entry) -> &[String]);

const RELATIONS: [EntryRelation; 3] = [
    ("depends on itself", |entry| &entry.interactions.depends_on),
    ("is contained in itself", |entry| &entry.interactions.contained_in),
    ("is superseded by itself", |entry| entry.superseded_by.as_slice()),
];

/// What is wrong with entries together.
pub(super) fn lint(entries: &[Entry]) -> Vec<LintFinding> {
    let numbers = entries.iter().enumerate();
    let numbers: HashMap<&str, usize> = numbers.map(|(n, e)| (e.id.as_str(), n)).collect();
    let complain = |entry: &Entry, what: String| LintFinding {
        id: entry.id.clone(),
        severity: LintSeverity::Error,
        what,
    };
    let mut found = Vec::new();
    for (what, of) in RELATIONS {
        let next: Vec<Vec<usize>> = entries
            .iter()
            .map(|entry| {
                let named = of(entry).iter();
                let known = named.filter_map(|id| numbers.get(id.as_str()).copied());
                // An entry that names itself is reported elsewhere.
                known.filter(|n| entries[*n].id != entry.id).collect()
            })
            .collect();
        for circle in circles(&next) {
            let names: Vec<&str> = circle.iter().map(|n| entries[*n].id.as_str()).collect();
            let more = names.len().saturating_sub(CIRCLE_SHOWN);
            let mut reported = names[..names.len() - more].join(", ");
            if more > 0 {
                reported = format!("{reported} and {more} more");
            }
            found.push(complain(&entries[circle[0]], format!("it {what}: {reported}")));
        }
    }
    // Only few entries exclude another or are excluded; only those are checked.
    let excludes = |entry: &&Entry| !entry.interactions.incompatible_with.is_empty();
    let lists = entries.iter().filter(excludes);
    let named = lists.flat_map(|entry| entry.interactions.incompatible_with.iter());
    let excluded: HashSet<&str> = named.map(String::as_str).collect();
    let looked_at = |entry: &&Entry| excludes(entry) || excluded.contains(entry.id.as_str());
    for entry in entries.iter().filter(looked_at) {
        if let Some(other) = needs_and_excludes(entry, entries, &numbers) {
            let what =
                format!("it is incompatible with {other}, which it depends on or is part of");
            found.push(complain(entry, what));
        }
    }
    found
}

/// Cycles, each once and from its first member on; as many as there are groups that form a cycle.
fn circles(next: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let mut left: BTreeSet<usize> = (0..next.len()).collect();
    let mut found = Vec::new();
    loop {
        // What leads nowhere is not part of a cycle.
        loop {
            let leads_on = |at: &usize| next[*at].iter().any(|to| left.contains(to));
            let leading: BTreeSet<usize> = left.iter().copied().filter(leads_on).collect();
            if leading.len() == left.len() {
                break;
            }
            left = leading;
        }
        let Some(mut at) = left.first().copied() else {
            return found;
        };
        // Everything else leads into a cycle.
        let mut way = Vec::new();
        while !way.contains(&at) {
            way.push(at);
            at = next[at].iter().copied().find(|to| left.contains(to)).unwrap_or(at);
        }
        let mut circle: Vec<usize> = way.into_iter().skip_while(|on| *on != at).collect();
        let first = circle.iter().min().copied();
        let place = circle.iter().position(|on| Some(*on) == first);
        circle.rotate_left(place.unwrap_or(0));
        left.retain(|at| !circle.contains(at));
        found.push(circle);
    }
}

/// An entry that is both needed and excluded, directly or through others.
fn needs_and_excludes<'a>(
    entry: &Entry,
    entries: &'a [Entry],
    numbers: &HashMap<&str, usize>,
) -> Option<&'a str> {
    let needs = |of: &Interactions| -> Vec<usize> {
        let named = of.depends_on.iter().chain(&of.contained_in);
        let known = named.filter_map(|id| numbers.get(id.as_str()).copied());
        known.collect()
    };
    if entry.interactions.depends_on.is_empty() && entry.interactions.contained_in.is_empty() {
        return None;
    }
    let mut seen: HashSet<usize> = HashSet::new();
    let mut next = needs(&entry.interactions);
    while let Some(number) = next.pop() {
        if !seen.insert(number) {
            continue;
        }
        let other = &entries[number];
        let own = entry.interactions.incompatible_with.contains(&other.id);
        let theirs = other.interactions.incompatible_with.contains(&entry.id);
        if own || theirs {
            return Some(&other.id);
        }
        let further = other.interactions.depends_on.iter();
        next.extend(further.filter_map(|id| numbers.get(id.as_str()).copied()));
    }
    None
}
