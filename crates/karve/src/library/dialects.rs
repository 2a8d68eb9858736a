//! Other formats for knowledge, imported as entries and exported from them.
//!
//! What a format cannot store goes into a section or into the line that `mark` writes; what is
//! still lost is reported. Imported entries are never verified, whatever they say about
//! themselves; a refuted status is kept.

mod casebook;
mod mark;
mod pages;
mod phrases;
mod tips;
mod wiki;

use super::difference::record;
use super::markdown;
use karve_core::knowledge::{Entry, EntrySection, EntryStatus};
use karve_core::table;
use std::collections::BTreeMap;
use std::path::PathBuf;

pub use pages::{render_cross_reference, render_index};
pub use phrases::triggers_in;

/// Most characters of a cell.
const CELL_CHARS: usize = 300;

/// A format for knowledge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum KnowledgeFormat {
    /// karve's own: Markdown with the whole record in its front matter
    Karve,
    /// hyper-mla: catalog pages under optimizations/ and anti-patterns/, with an index
    HyperMla,
    /// trtllm: casebook pages with front matter
    Casebook,
    /// primus: tips.md, by device, operation and backend
    Tips,
    /// tilegym: wiki pages with front matter
    Wiki,
    /// tilegym: one playbook with lettered sections
    Playbook,
}

/// A text, and its path below the given directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourcePage {
    /// The path.
    pub path: PathBuf,
    /// The text.
    pub text: String,
}

/// Reads a page; returns its entries.
pub fn parse(form: KnowledgeFormat, page: &SourcePage) -> Result<Vec<Entry>, String> {
    let mut entries = match form {
        KnowledgeFormat::Karve => vec![markdown::parse_entry(&page.text)?],
        KnowledgeFormat::HyperMla => pages::parse(page)?,
        KnowledgeFormat::Casebook => vec![casebook::parse(&page.text)?],
        KnowledgeFormat::Tips => tips::parse(page)?,
        KnowledgeFormat::Wiki => vec![wiki::parse(page)?],
        KnowledgeFormat::Playbook => wiki::parse_playbook(&page.text)?,
    };
    for entry in &mut entries {
        if form != KnowledgeFormat::Karve && entry.status == EntryStatus::Verified {
            entry.status = EntryStatus::Candidate;
        }
    }
    Ok(entries)
}

/// What a format cannot store, and how many entries have it: each is written, read again and
/// compared, so this is exactly what is lost.
pub fn lost_fields(form: KnowledgeFormat, entries: &[&Entry]) -> Vec<(String, usize)> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for entry in entries {
        let pages = render(form, &[*entry]).unwrap_or_default();
        let read = pages.iter().filter_map(|page| parse(form, page).ok());
        let again = read.flatten().find(|again| again.id == entry.id);
        let parts = match &again {
            Some(again) => lost_parts(entry, again),
            None => vec!["entries of that kind".to_owned()],
        };
        for part in parts {
            *counts.entry(part).or_default() += 1;
        }
    }
    counts.into_iter().collect()
}

/// The fields of an entry that changed in a round trip. The verified status, which is never
/// imported, is not a loss, and a summary that a format writes itself is not one of our fields.
fn lost_parts(entry: &Entry, again: &Entry) -> Vec<String> {
    let (was, is) = (record(entry), record(again));
    let kept = |name: &&String| *name != "status" && was.get(*name) != is.get(*name);
    let mut parts: Vec<String> = was.keys().filter(kept).cloned().collect();
    let whole =
        |section: &EntrySection| again.section(&section.heading) == Some(section.text.trim());
    if !entry.sections.iter().all(whole) {
        parts.push("sections".to_owned());
    }
    parts
}

/// Writes entries.
pub fn render(form: KnowledgeFormat, entries: &[&Entry]) -> Result<Vec<SourcePage>, String> {
    match form {
        KnowledgeFormat::Karve => {
            let page = |entry: &&Entry| {
                Ok(SourcePage {
                    path: PathBuf::from(format!("{}.md", entry.id)),
                    text: markdown::render_entry(entry)?,
                })
            };
            entries.iter().map(page).collect()
        }
        KnowledgeFormat::HyperMla => Ok(pages::render(entries)),
        KnowledgeFormat::Casebook => entries.iter().map(|entry| casebook::render(entry)).collect(),
        KnowledgeFormat::Tips => Ok(tips::render(entries)),
        KnowledgeFormat::Wiki => entries.iter().map(|entry| wiki::render(entry)).collect(),
        KnowledgeFormat::Playbook => Ok(vec![wiki::render_playbook(entries)]),
    }
}

/// A title as an id.
pub fn slug(title: &str) -> String {
    let mut id = String::new();
    for c in title.to_lowercase().chars() {
        if c.is_ascii_alphanumeric() {
            id.push(c);
        } else if !id.ends_with('-') && !id.is_empty() {
            id.push('-');
        }
        if id.len() >= 60 {
            break;
        }
    }
    id.trim_matches('-').to_owned()
}

/// Sections under other headings; the rest is unchanged.
fn renamed(sections: Vec<EntrySection>, names: &[(&str, &str)]) -> Vec<EntrySection> {
    let rename = |mut section: EntrySection| {
        let known = names.iter().find(|(from, _)| section.heading.eq_ignore_ascii_case(from));
        if let Some((_, to)) = known {
            (*to).clone_into(&mut section.heading);
        }
        section
    };
    sections.into_iter().map(rename).collect()
}

/// The cells of a table row that is not a separator.
fn cells(line: &str) -> Option<Vec<String>> {
    table::cells(line).filter(|cells| !table::is_rule(cells))
}

/// Text that fits into a cell.
fn cell(text: &str) -> String {
    table::cell(text, CELL_CHARS)
}

#[cfg(test)]
mod tests;
