//! Other formats for knowledge, imported as entries and exported from them.
//!
//! `data/dialects.toml` says what each format calls things, `import` reads pages, `export` writes
//! them with a template. What a format cannot store goes into a section or into the line that
//! `mark` writes; what is still lost is reported. Imported entries are never verified, whatever
//! they say about themselves; a refuted status is kept.

mod export;
mod facts;
mod import;
mod mark;
mod phrases;
mod wiki;

use super::difference::record;
use super::markdown;
use karve_core::knowledge::{Entry, EntryBasis, EntryKind, EntrySection, EntryStatus, Risk};
use karve_os::text;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::LazyLock;

pub use export::render_index;
use phrases::triggers_in;

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

/// What one format calls things; `dialects.toml` explains the fields.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
struct Dialect {
    template: String,
    path: String,
    index: Option<String>,
    only: Vec<EntryKind>,
    front_matter: bool,
    headings: BTreeMap<String, String>,
    triggers: Option<String>,
    counter_signals: Option<String>,
    facts: Option<String>,
    evidence: EvidencePlace,
    kinds: BTreeMap<String, EntryKind>,
    bases: BTreeMap<String, EntryBasis>,
    risks: BTreeMap<String, Risk>,
    banned: Vec<String>,
    marked: Option<String>,
    kept_kinds: BTreeMap<String, String>,
}

/// Where the figures of a page are.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum EvidencePlace {
    #[default]
    FrontMatter,
    Table,
    Claims,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Dialects {
    phrases: Vec<(String, String)>,
    hyper_mla: Dialect,
    casebook: Dialect,
    wiki: Dialect,
    tips: Dialect,
    playbook: Dialect,
}

static DIALECTS: LazyLock<Result<Dialects, String>> = LazyLock::new(|| {
    let text = include_str!("../../data/dialects.toml");
    toml::from_str(text).map_err(|error| format!("dialects.toml is broken: {error}"))
});

fn dialects() -> Result<&'static Dialects, String> {
    DIALECTS.as_ref().map_err(Clone::clone)
}

/// Reads a page; returns its entries.
pub fn parse(form: KnowledgeFormat, page: &SourcePage) -> Result<Vec<Entry>, String> {
    let known = dialects()?;
    let mut entries = match form {
        KnowledgeFormat::Karve => return Ok(vec![markdown::parse_entry(&page.text)?]),
        KnowledgeFormat::HyperMla if page.text.contains("Detail File") => {
            import::parse_index(&page.text)?
        }
        KnowledgeFormat::HyperMla => vec![import::parse_page(&known.hyper_mla, page)?],
        KnowledgeFormat::Casebook => vec![import::parse_page(&known.casebook, page)?],
        KnowledgeFormat::Wiki => vec![import::parse_page(&known.wiki, page)?],
        KnowledgeFormat::Tips => import::parse_tips(page)?,
        KnowledgeFormat::Playbook => import::parse_playbook(&page.text)?,
    };
    for entry in &mut entries {
        // A staged entry is read again from its file.
        if markdown::render_entry(entry)?.len() > markdown::ENTRY_BYTES_MAX {
            let most = markdown::ENTRY_BYTES_MAX;
            return Err(format!(
                "its entry {} would be larger than {most} bytes: split the page",
                text::safe(&entry.id, 80)
            ));
        }
        if entry.status == EntryStatus::Verified {
            entry.status = EntryStatus::Candidate;
        }
    }
    Ok(entries)
}

/// Writes entries.
pub fn render(form: KnowledgeFormat, entries: &[&Entry]) -> Result<Vec<SourcePage>, String> {
    let known = dialects()?;
    let dialect = match form {
        KnowledgeFormat::Karve => {
            let page = |entry: &&Entry| {
                Ok(SourcePage {
                    path: PathBuf::from(format!("{}.md", entry.id)),
                    text: markdown::render_entry(entry)?,
                })
            };
            return entries.iter().map(page).collect();
        }
        KnowledgeFormat::HyperMla => &known.hyper_mla,
        KnowledgeFormat::Casebook => &known.casebook,
        KnowledgeFormat::Tips => &known.tips,
        KnowledgeFormat::Wiki => &known.wiki,
        KnowledgeFormat::Playbook => &known.playbook,
    };
    export::render(dialect, entries)
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

#[cfg(test)]
mod tests;
