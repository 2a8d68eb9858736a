//! What a campaign found, as pages of the knowledge base of hyper-mla with their index.

use super::DerivedFile;
use super::source::ReportSource;
use crate::library::dialects::{self, KnowledgeFormat};
use crate::library::situation::scope_of;
use karve_core::knowledge::{Entry, EntryKind, Learning, new_entry, with_evidence};

/// The directory of the pages.
const DIR: &str = "docs";

/// A page for each new finding, and an index; nothing if there is none.
pub(super) fn pages(source: &ReportSource<'_>) -> Vec<DerivedFile> {
    let here = scope_of(&source.charter.target);
    let learned = source.campaign.rounds().iter().filter_map(|r| r.lesson.learning.as_deref());
    let entry = |learning: &Learning| {
        let entry = new_entry(learning, &here);
        with_evidence(entry.clone(), learning, &here, |_| true).unwrap_or(entry)
    };
    let entries: Vec<Entry> = learned.filter(|learning| learning.is_new).map(entry).collect();
    let is_page =
        |entry: &&Entry| matches!(entry.kind, EntryKind::Optimization | EntryKind::AntiPattern);
    let entries: Vec<&Entry> = entries.iter().filter(is_page).collect();
    if entries.is_empty() {
        return Vec::new();
    }
    let pages = dialects::render(KnowledgeFormat::HyperMla, &entries).unwrap_or_default();
    let file = |page: dialects::SourcePage| DerivedFile {
        path: format!("{DIR}/{}", page.path.display()),
        text: page.text,
    };
    pages.into_iter().map(file).collect()
}
