//! Tips of primus: `historical_experience/<gpu>/<op>/<backend>/tips.md`, one section per round.

use super::{SourcePage, mark, slug};
use karve_core::knowledge::{
    Entry, EntryBasis, EntryKind, EntrySection, EntryStatus, Retraction, Scope,
};
use karve_os::text::one_line;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;

const FIELDS: [&str; 4] = ["Context", "Signal", "Takeaway", "Applicability"];
/// The word for a change that was rolled back.
const ROLLED_BACK: &str = "ROLLED BACK";
/// Characters of a heading or a field.
const LINE_CHARS: usize = 1_000;

pub(super) fn parse(page: &SourcePage) -> Result<Vec<Entry>, String> {
    let scope = scope_of(&page.path);
    let mut entries: Vec<Entry> = Vec::new();
    for part in format!("\n{}", page.text).split("\n### ").skip(1) {
        let (heading, body) = part.split_once('\n').unwrap_or((part, ""));
        entries.push(tip(heading.trim(), body, &scope, entries.len() + 1));
    }
    if entries.is_empty() {
        return Err("there is no tip: a line \"### <time> round-N — ACCEPTED\"".to_owned());
    }
    Ok(entries)
}

/// The fields of a tip; a line without a name belongs to the field before it.
fn fields_of(body: &str) -> BTreeMap<&'static str, String> {
    let mut fields: BTreeMap<&str, String> = BTreeMap::new();
    let mut current = None;
    for line in body.lines() {
        let plain = line.trim().trim_start_matches(['-', '*', ' ']).replace("**", "");
        let named = FIELDS.iter().find_map(|field| {
            let rest = plain.strip_prefix(field)?.trim_start();
            Some((*field, rest.strip_prefix(':')?.trim().to_owned()))
        });
        match (named, current) {
            (Some((field, text)), _) => {
                fields.insert(field, text);
                current = Some(field);
            }
            (None, Some(field)) if !line.trim().is_empty() => {
                if let Some(text) = fields.get_mut(field) {
                    let _ = write!(text, " {}", line.trim());
                }
            }
            (None, _) => {}
        }
    }
    fields
}

fn tip(heading: &str, body: &str, scope: &Scope, number: usize) -> Entry {
    let fields = fields_of(body);
    let field = |name: &str| fields.get(name).cloned();
    let date: String = heading.chars().take(10).collect();
    let is_date = date.len() == 10 && date.chars().all(|c| c.is_ascii_digit() || c == '-');
    // A rolled-back tip is titled by what was tried, and the lesson is the reason.
    let rolled_back = heading.contains(ROLLED_BACK);
    let title = match rolled_back {
        true => field("Context").or(field("Takeaway")),
        false => field("Takeaway").or(field("Context")),
    };
    let title: String = title.unwrap_or_else(|| heading.to_owned()).chars().take(100).collect();
    let sections = FIELDS.iter().filter_map(|field| {
        Some(EntrySection { heading: (*field).to_owned(), text: fields.get(field)?.clone() })
    });
    let mut sections: Vec<EntrySection> = sections.collect();
    sections.push(EntrySection { heading: "Source".into(), text: heading.to_owned() });
    let place = [&scope.device, &scope.op, &scope.backend].map(|l| l.join("-"));
    let date = if is_date { date } else { String::new() };
    let mut entry = Entry {
        id: slug(&format!("tip {} {number} {heading}", place.join(" "))),
        kind: EntryKind::Tip,
        title,
        basis: EntryBasis::SingleObservation,
        scope: scope.clone(),
        status: match rolled_back {
            true => EntryStatus::Refuted,
            false => EntryStatus::Candidate,
        },
        retracted: rolled_back.then(|| Retraction {
            date: date.clone(),
            why: format!("rolled back: {}", field("Takeaway").unwrap_or_default()),
        }),
        date,
        sections,
        ..Entry::default()
    };
    if let Some(mark) = body.lines().next().and_then(mark::parse) {
        entry.retracted = None;
        mark.put(&mut entry);
    }
    entry
}

/// `<device>/<op>/<backend>/tips.md` gives the target they apply to.
fn scope_of(path: &std::path::Path) -> Scope {
    let parts: Vec<String> = path
        .parent()
        .map(|dir| dir.iter().map(|p| p.to_string_lossy().to_lowercase()).collect())
        .unwrap_or_default();
    match parts.as_slice() {
        [.., device, op, backend] => Scope {
            device: vec![device.clone()],
            op: vec![op.clone()],
            backend: vec![backend.clone()],
            ..Scope::default()
        },
        _ => Scope::default(),
    }
}

pub(super) fn render(entries: &[&Entry]) -> Vec<SourcePage> {
    let mut files: BTreeMap<PathBuf, String> = BTreeMap::new();
    for entry in entries {
        let first = |list: &Vec<String>| list.first().cloned().unwrap_or_else(|| "any".into());
        let path = ["historical_experience".to_owned(), first(&entry.scope.device)]
            .into_iter()
            .chain([first(&entry.scope.op), first(&entry.scope.backend), "tips.md".into()])
            .collect();
        let text = files.entry(path).or_insert_with(|| "# Tips\n".to_owned());
        let outcome = match karve_core::knowledge::assess(entry).is_out() {
            true => ROLLED_BACK,
            false => "ACCEPTED",
        };
        let heading = entry
            .section("Source")
            .map_or_else(|| format!("{} {} — {outcome}", entry.date, entry.id), str::to_owned);
        let _ = writeln!(text, "\n### {}", one_line(&heading, LINE_CHARS));
        let _ = writeln!(text, "{}", mark::render(entry));
        for field in FIELDS {
            let _ = writeln!(text, "- {field}: {}", one_line(&field_of(entry, field), LINE_CHARS));
        }
    }
    let page = |(path, text)| SourcePage { path, text };
    files.into_iter().map(page).collect()
}

/// A field of a tip, also for entries of another kind.
fn field_of(entry: &Entry, field: &str) -> String {
    let own = entry.section(field).map(str::to_owned);
    own.unwrap_or_else(|| match field {
        "Context" => entry.title.clone(),
        "Signal" => match entry.evidence.last() {
            Some(e) => format!("{:.3}x in {} ({})", e.ratio, e.run, e.device),
            None => entry.triggers.join("; "),
        },
        "Takeaway" => entry.section("Mechanism").unwrap_or(&entry.title).to_owned(),
        _ => entry.scope.describe(),
    })
}
