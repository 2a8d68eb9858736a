//! The line that carries what another format cannot store: which entry it is, its status, and its
//! risk for results.
//!
//! ```text
//! > karve: id=x kind=optimization status=refuted risk=rounding retracted=2026-11-16 why=the cause
//! ```

use karve_core::knowledge::{
    Entry, EntryKind, EntrySection, EntryStatus, Retraction, Risk, assess, is_id,
};
use karve_os::text::one_line;

/// How the line begins: as a block quote, which every Markdown reader treats as text.
const BEGIN: &str = "> karve: ";
/// Most characters of the reason.
const WHY_CHARS: usize = 300;
/// The section that says why an entry is out, if there is no retraction.
const RETRACTED: &str = "Taken back";

/// The line of an entry. Its status is derived from its evidence, which few formats can store.
pub(super) fn render(entry: &Entry) -> String {
    let standing = assess(entry);
    let mut line = format!(
        "{BEGIN}id={} kind={} status={} risk={}",
        entry.id,
        entry.kind.name(),
        standing.status.name(),
        entry.risk.name()
    );
    if let Some(by) = &entry.superseded_by {
        line.push_str(&format!(" superseded-by={by}"));
    }
    let why = match &entry.retracted {
        Some(retraction) => {
            let date: String = retraction.date.split_whitespace().collect();
            line.push_str(&format!(" retracted={date}"));
            retraction.why.clone()
        }
        None if standing.is_out() => entry.section(RETRACTED).map_or(standing.why, str::to_owned),
        None => String::new(),
    };
    if !why.is_empty() {
        line.push_str(&format!(" why={}", one_line(&why, WHY_CHARS)));
    }
    line
}

/// An entry as such a line says; none if the line is not clear.
pub(super) fn marked(entry: &Entry, line: &str) -> Option<Entry> {
    let said = line.trim().strip_prefix(BEGIN)?;
    let (words, why) = said.split_once(" why=").unwrap_or((said, ""));
    let why = one_line(why, WHY_CHARS);
    let mut marked = Entry {
        id: String::new(),
        kind: EntryKind::default(),
        status: EntryStatus::default(),
        risk: Risk::default(),
        superseded_by: None,
        retracted: None,
        ..entry.clone()
    };
    for word in words.split_whitespace() {
        let (name, value) = word.split_once('=')?;
        match name {
            "id" => marked.id = id_in(value)?,
            "kind" => marked.kind = EntryKind::by_name(value)?,
            "status" => marked.status = EntryStatus::by_name(value)?,
            "risk" => marked.risk = Risk::by_name(value)?,
            "superseded-by" => marked.superseded_by = Some(id_in(value)?),
            "retracted" => {
                let date = value.chars().take(10).collect();
                marked.retracted = Some(Retraction { date, why: why.clone() });
            }
            _ => return None,
        }
    }
    if marked.retracted.is_none() && !why.is_empty() && marked.section(RETRACTED).is_none() {
        marked.sections.push(EntrySection { heading: RETRACTED.to_owned(), text: why });
    }
    (!marked.id.is_empty()).then_some(marked)
}

fn id_in(text: &str) -> Option<String> {
    is_id(text).then(|| text.to_owned())
}
