//! What differs between two versions of an entry, in words.

use karve_core::knowledge::{CLAIMS, Entry, EntrySection, Evidence};
use serde_json::Value;

/// Most characters shown of a value.
const VALUE_CHARS: usize = 60;
/// Most runs that are named.
const RUNS_MAX: usize = 5;

/// What differs, one line per part.
pub fn differences(old: &Entry, new: &Entry) -> Vec<String> {
    let mut lines = Vec::new();
    let (was, is) = (record(old), record(new));
    let mut names: Vec<&String> = was.keys().chain(is.keys()).collect();
    names.sort();
    names.dedup();
    for name in names.into_iter().filter(|name| *name != "evidence") {
        let (was, is) = (was.get(name), is.get(name));
        if was != is {
            lines.push(format!("{name}: {} becomes {}", shown(was), shown(is)));
        }
    }
    for (what, from, to) in [("new", new, old), ("missing", old, new)] {
        let only = from.evidence.iter().filter(|e| !to.evidence.contains(e));
        let runs: Vec<&str> = only.map(|e| e.run.as_str()).collect();
        if !runs.is_empty() {
            let named = runs[..runs.len().min(RUNS_MAX)].join(", ");
            lines.push(format!("evidence: {} {what} ({named})", runs.len()));
        }
    }
    let mut headings: Vec<&str> = Vec::new();
    for section in old.sections.iter().chain(&new.sections) {
        let same = old.section(&section.heading) == new.section(&section.heading);
        if !same && !headings.contains(&section.heading.as_str()) {
            headings.push(&section.heading);
        }
    }
    lines.extend(headings.iter().map(|heading| format!("section {heading}")));
    lines
}

/// The record of an entry by the names of its fields, without empty ones.
pub(super) fn record(entry: &Entry) -> serde_json::Map<String, Value> {
    match serde_json::to_value(entry) {
        Ok(Value::Object(record)) => record,
        Ok(_) | Err(_) => serde_json::Map::new(),
    }
}

fn shown(value: Option<&Value>) -> String {
    let text = match value {
        None => return "nothing".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    };
    text.chars().take(VALUE_CHARS).collect()
}

/// Whether the new version is the old one plus what rounds have shown since: more evidence and its
/// consequences, but no change to the text.
pub fn only_learned(old: &Entry, new: &Entry) -> bool {
    let words = |entry: &Entry| -> Vec<EntrySection> {
        let own = entry.sections.iter().filter(|s| s.heading != CLAIMS);
        own.cloned().collect()
    };
    let run_is_there = |e: &Evidence| new.evidence.iter().any(|other| other.run == e.run);
    let grown = Entry {
        status: new.status,
        except: new.except.clone(),
        evidence: new.evidence.clone(),
        date: new.date.clone(),
        sections: words(new),
        ..old.clone()
    };
    let new = Entry { sections: words(new), ..new.clone() };
    words(old) == new.sections && grown == new && old.evidence.iter().all(run_is_there)
}

#[cfg(test)]
mod tests {
    use super::*;
    use karve_core::knowledge::EntryStatus;

    fn entry() -> Entry {
        Entry {
            id: "x".into(),
            title: "Do x".into(),
            sections: vec![EntrySection { heading: "Mechanism".into(), text: "m".into() }],
            evidence: vec![Evidence { run: "a/round-1".into(), ..Evidence::default() }],
            ..Entry::default()
        }
    }

    #[test]
    fn what_differs_is_named_part_by_part() {
        assert!(differences(&entry(), &entry()).is_empty());
        let mut new = entry();
        new.status = EntryStatus::Verified;
        new.evidence[0].run = "b/round-2".into();
        new.sections[0].text = "other".into();
        assert_eq!(
            differences(&entry(), &new),
            [
                "status: candidate becomes verified",
                "evidence: 1 new (b/round-2)",
                "evidence: 1 missing (a/round-1)",
                "section Mechanism",
            ]
        );
    }

    #[test]
    fn evidence_and_claims_are_growth_and_other_words_are_not() {
        let mut new = entry();
        new.evidence.push(Evidence { run: "b/round-1".into(), ..Evidence::default() });
        new.status = EntryStatus::Verified;
        new.sections.push(EntrySection { heading: CLAIMS.into(), text: "said".into() });
        assert!(only_learned(&entry(), &new));
        let mut lost = new.clone();
        lost.evidence.remove(0);
        let mut retold = new.clone();
        retold.sections[0].text = "other".into();
        let mut titled = new.clone();
        titled.title = "Do y".into();
        for other in [lost, retold, titled] {
            assert!(!only_learned(&entry(), &other));
        }
    }
}
