//! The hyper-mla catalog: one page per optimization and anti-pattern, an index, and a
//! cross-reference from metric states to entries.

use super::{SourcePage, cell, cells, mark, renamed, slug, triggers_in};
use crate::library::markdown::parse_sections;
use karve_core::knowledge::{
    Entry, EntryBasis, EntryKind, EntrySection, EntryStatus, Evidence, Impact, Risk, Scope, assess,
};
use karve_core::profile::Predicate;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Their headings and ours.
const HEADINGS: [(&str, &str); 3] = [
    ("When to Apply", "When to apply"),
    ("Implementation", "Recipe"),
    ("Affected Metrics", "Affected metrics"),
];

pub(super) fn parse(page: &SourcePage) -> Result<Vec<Entry>, String> {
    if page.text.contains("Detail File") {
        return parse_index(&page.text);
    }
    let (title, sections) = parse_sections(&page.text);
    if title.is_empty() {
        return Err("there is no title: a line \"# name\"".to_owned());
    }
    let kind = kind_of(&page.path);
    let mut entry = Entry {
        id: page
            .path
            .file_stem()
            .map(|stem| slug(&stem.to_string_lossy()))
            .filter(|id| !id.is_empty())
            .unwrap_or_else(|| slug(&title)),
        kind,
        title,
        scope: scope_of(&page.path),
        ..Entry::default()
    };
    let when = sections.iter().find(|s| s.heading.eq_ignore_ascii_case("When to Apply"));
    entry.triggers = when.map(|s| triggers_in(&s.text)).unwrap_or_default();
    let shown = sections.iter().find(|s| s.heading.eq_ignore_ascii_case("Performance Evidence"));
    if let Some(shown) = shown {
        entry.basis = match shown.text.to_lowercase().contains("local experiment") {
            true => EntryBasis::Measured,
            false => EntryBasis::Reported,
        };
        entry.evidence = evidence_in(&shown.text, &entry.id);
    }
    entry.sections = renamed(sections, &HEADINGS);
    if let Some(mark) = mark::of_page(&page.text) {
        mark.put(&mut entry);
    }
    Ok(vec![entry])
}

fn kind_of(path: &Path) -> EntryKind {
    let anti = path.iter().any(|part| part == "anti-patterns");
    if anti { EntryKind::AntiPattern } else { EntryKind::Optimization }
}

/// `languages/<language>/...` gives the language.
fn scope_of(path: &Path) -> Scope {
    let parts: Vec<String> = path.iter().map(|p| p.to_string_lossy().into_owned()).collect();
    let at = parts.iter().position(|part| part == "languages");
    let language = at.and_then(|at| parts.get(at + 1)).cloned();
    Scope { language: language.into_iter().collect(), ..Scope::default() }
}

/// Rows `Config | Before | After | Change`; a row whose cells are not numbers stays text. One that
/// only gives the change, such as `1.25x`, has neither before nor after.
fn evidence_in(text: &str, id: &str) -> Vec<Evidence> {
    let positive = |text: &str| {
        let value: f64 = text.parse().ok()?;
        (value.is_finite() && value > 0.0).then_some(value)
    };
    let number = |cell: &str| positive(cell.split_whitespace().next()?);
    let row = |cells: Vec<String>| -> Option<Evidence> {
        let [config, before, after, change @ ..] = cells.as_slice() else {
            return None;
        };
        let reported = change.first().and_then(|cell| cell.strip_suffix('x'));
        let (was, is, ratio) = match (number(before), number(after)) {
            (Some(was), Some(is)) => (was, is, was / is),
            _ => (0.0, 0.0, positive(reported?)?),
        };
        Some(Evidence {
            metric: before.split_whitespace().nth(1).unwrap_or("time").to_owned(),
            before: was,
            after: is,
            ratio,
            workload: config.clone(),
            run: format!("page {id}"),
            device: "not reported".into(),
            toolchain: "not reported".into(),
            n: 1,
            ..Evidence::default()
        })
    };
    text.lines().filter_map(cells).filter_map(row).collect()
}

/// The rows of an index.
fn parse_index(text: &str) -> Result<Vec<Entry>, String> {
    let mut entries = Vec::new();
    let mut kind = EntryKind::Optimization;
    for cells in text.lines().filter_map(cells) {
        match cells.as_slice() {
            [id, second, ..] if id == "ID" => {
                kind = match second.as_str() {
                    "Anti-Pattern" => EntryKind::AntiPattern,
                    _ => EntryKind::Optimization,
                };
            }
            [alias, title, third, .., file] if cells.len() >= 5 => {
                entries.push(of_row(kind, (alias, title), third, file));
            }
            _ => {}
        }
    }
    if entries.is_empty() {
        return Err("the index has no rows".to_owned());
    }
    Ok(entries)
}

fn of_row(kind: EntryKind, (alias, title): (&str, &str), third: &str, file: &str) -> Entry {
    let file = file.trim_matches(['`', '[', ']']);
    let stem = Path::new(file.split(['(', ']']).next().unwrap_or(file)).file_stem();
    let id = stem.map(|stem| slug(&stem.to_string_lossy())).unwrap_or_default();
    let heading = match kind {
        EntryKind::AntiPattern => "Failure mode",
        EntryKind::Optimization | EntryKind::Case | EntryKind::Tip | EntryKind::Technique => {
            "When to apply"
        }
    };
    let (title, status, risk) = unmarked(title);
    Entry {
        id: if id.is_empty() { slug(title) } else { id },
        kind,
        status,
        risk,
        title: title.to_owned(),
        aliases: vec![alias.to_owned()],
        triggers: triggers_in(third),
        sections: vec![EntrySection { heading: heading.to_owned(), text: third.to_owned() }],
        ..Entry::default()
    }
}

/// The title of a row: with the status and risk of the entry, where they matter.
fn marked(entry: &Entry) -> String {
    let status = assess(entry).status;
    let status = match status {
        EntryStatus::Refuted | EntryStatus::Superseded => Some(status.name()),
        EntryStatus::Candidate | EntryStatus::Verified => None,
    };
    let risk = (entry.risk != Risk::Lossless).then(|| entry.risk.name());
    let said: Vec<&str> = status.into_iter().chain(risk).collect();
    match said.is_empty() {
        true => cell(&entry.title),
        false => format!("{} [{}]", cell(&entry.title), said.join(", ")),
    }
}

/// Parses such a title; brackets with other words are part of the title.
fn unmarked(title: &str) -> (&str, EntryStatus, Risk) {
    let plain = (title, EntryStatus::default(), Risk::default());
    let Some((own, said)) = title.strip_suffix(']').and_then(|t| t.rsplit_once(" [")) else {
        return plain;
    };
    let mut read = (own, EntryStatus::default(), Risk::default());
    for word in said.split(", ") {
        match (EntryStatus::by_name(word), Risk::by_name(word)) {
            (Some(status), _) => read.1 = status,
            (None, Some(risk)) => read.2 = risk,
            (None, None) => return plain,
        }
    }
    read
}

pub(super) fn render(entries: &[&Entry]) -> Vec<SourcePage> {
    let own =
        |entry: &&&Entry| matches!(entry.kind, EntryKind::Optimization | EntryKind::AntiPattern);
    let entries: Vec<&Entry> = entries.iter().filter(own).copied().collect();
    let mut pages: Vec<SourcePage> = entries
        .iter()
        .map(|entry| SourcePage { path: path_of(entry), text: render_page(entry) })
        .collect();
    let index = format!("{}\n{}", render_index(&entries), render_cross_reference(&entries));
    pages.push(SourcePage { path: PathBuf::from("optimization-catalog.md"), text: index });
    pages
}

/// Shared knowledge and language-specific knowledge are in separate directories.
fn path_of(entry: &Entry) -> PathBuf {
    let mut path = PathBuf::from("knowledge");
    if let [language] = entry.scope.language.as_slice() {
        path.push("languages");
        path.push(slug(language));
    }
    path.push(match entry.kind {
        EntryKind::AntiPattern => "anti-patterns",
        EntryKind::Optimization | EntryKind::Case | EntryKind::Tip | EntryKind::Technique => {
            "optimizations"
        }
    });
    path.push(format!("{}.md", entry.id));
    path
}

fn render_page(entry: &Entry) -> String {
    let mut text = format!("# {}\n\n{}\n", entry.title, mark::render(entry));
    let any = |names: &[&str]| {
        let found = names.iter().find_map(|name| entry.section(name));
        found.unwrap_or("-").to_owned()
    };
    let mut when = any(&["When to apply", "Failure mode"]);
    for trigger in &entry.triggers {
        let _ = write!(when, "\n- `{trigger}`");
    }
    let mut shown = format!(
        "Source: {}\n",
        match entry.basis {
            EntryBasis::Measured | EntryBasis::SingleObservation => "local experiment",
            EntryBasis::Reported | EntryBasis::SourceSemantics => "external report",
        }
    );
    shown.push_str("\n| Config | Before | After | Change |\n|---|---|---|---|\n");
    for e in &entry.evidence {
        let read = |value: f64| match value > 0.0 {
            true => format!("{value} {}", cell(&e.metric)),
            false => format!("- {}", cell(&e.metric)),
        };
        let _ = writeln!(
            shown,
            "| {} | {} | {} | {:.3}x |",
            cell(&format!("{}, {}, {}", e.workload, e.device, e.date)),
            read(e.before),
            read(e.after),
            e.ratio
        );
    }
    let ids: Vec<&str> = entry.interactions.ids().map(String::as_str).collect();
    let parts = [
        ("When to Apply", when),
        ("Mechanism", any(&["Mechanism", "How it shows"])),
        ("Affected Metrics", any(&["Affected metrics"])),
        ("Implementation", any(&["Recipe", "Instead"])),
        ("Performance Evidence", shown),
        ("Generalization", any(&["Generalization"])),
        ("Pitfalls", any(&["Pitfalls"])),
        ("Interactions", if ids.is_empty() { "-".into() } else { ids.join(", ") }),
    ];
    for (heading, body) in parts {
        let _ = write!(text, "\n## {heading}\n\n{}\n", body.trim());
    }
    text
}

/// The number of an entry in the index: the one it has elsewhere, or the next.
fn numbers(entries: &[&Entry]) -> BTreeMap<String, String> {
    let is_number = |alias: &&String, letter: char| {
        alias.strip_prefix(letter).is_some_and(|n| n.parse::<u32>().is_ok())
    };
    let letter = |entry: &Entry| match entry.kind {
        EntryKind::AntiPattern => 'A',
        EntryKind::Optimization | EntryKind::Case | EntryKind::Tip | EntryKind::Technique => 'O',
    };
    let mut numbers = BTreeMap::new();
    let mut taken: Vec<String> = Vec::new();
    for entry in entries {
        if let Some(own) = entry.aliases.iter().find(|a| is_number(a, letter(entry))) {
            numbers.insert(entry.id.clone(), own.clone());
            taken.push(own.clone());
        }
    }
    let mut next = BTreeMap::from([('O', 1), ('A', 1)]);
    for entry in entries {
        if numbers.contains_key(&entry.id) {
            continue;
        }
        let letter = letter(entry);
        let mut number = next.get(&letter).copied().unwrap_or(1);
        while taken.contains(&format!("{letter}{number}")) {
            number += 1;
        }
        numbers.insert(entry.id.clone(), format!("{letter}{number}"));
        next.insert(letter, number + 1);
    }
    numbers
}

/// The index of some entries, in the published columns.
pub fn render_index(entries: &[&Entry]) -> String {
    let numbers = numbers(entries);
    let number = |entry: &Entry| numbers.get(&entry.id).cloned().unwrap_or_default();
    let first = |entry: &Entry, names: &[&str]| -> String {
        let text = names.iter().find_map(|name| entry.section(name)).unwrap_or("-");
        let line = text.lines().find(|line| !line.trim().is_empty());
        cell(line.unwrap_or("-").trim_start_matches("- "))
    };
    let mut text = "# Optimization catalog\n\n## Optimizations\n\n| ID | Optimization | Trigger \
                    Conditions | Est. Impact | Pitfalls | Detail File |\n\
                    |---|---|---|---|---|---|\n"
        .to_owned();
    for entry in entries.iter().filter(|e| e.kind != EntryKind::AntiPattern) {
        let when = match entry.triggers.is_empty() {
            true => first(entry, &["When to apply"]),
            false => cell(&entry.triggers.join("; ")),
        };
        let _ = writeln!(
            text,
            "| {} | {} | {when} | {} | {} | {} |",
            number(entry),
            marked(entry),
            impact(entry.impact),
            first(entry, &["Pitfalls"]),
            path_of(entry).display()
        );
    }
    text.push_str(
        "\n## Anti-patterns\n\n| ID | Anti-Pattern | Failure Mode | Source | Detail File |\n\
         |---|---|---|---|---|\n",
    );
    for entry in entries.iter().filter(|e| e.kind == EntryKind::AntiPattern) {
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} |",
            number(entry),
            marked(entry),
            first(entry, &["Failure mode"]),
            entry.basis.name(),
            path_of(entry).display()
        );
    }
    text
}

fn impact(impact: Option<Impact>) -> String {
    impact.map_or_else(|| "-".to_owned(), |i| format!("{:.2}x to {:.2}x", i.low, i.high))
}

/// From metric states to entries.
pub fn render_cross_reference(entries: &[&Entry]) -> String {
    let numbers = numbers(entries);
    let mut states: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for entry in entries {
        for trigger in &entry.triggers {
            let readable = Predicate::parse(trigger).is_ok();
            if let (true, Some(number)) = (readable, numbers.get(&entry.id)) {
                states.entry(trigger.clone()).or_default().push(number.clone());
            }
        }
    }
    let mut text =
        "## Cross-reference\n\n| Profiling metric state | Likely entries |\n|---|---|\n".to_owned();
    for (state, likely) in states {
        let _ = writeln!(text, "| {} | {} |", cell(&state), likely.join(", "));
    }
    text
}
