//! The line that carries what another format cannot store: which entry it is, its status, and its
//! risk for results.
//!
//! ```text
//! > karve: id=x kind=optimization status=refuted risk=rounding retracted=2026-11-16 why=the cause
//! ```

use karve_core::knowledge::{
    Entry, EntryKind, EntrySection, EntryStatus, Retraction, Risk, assess,
};
use karve_os::text::one_line;

/// How the line begins: as a block quote, which every Markdown reader treats as text.
const BEGIN: &str = "> karve: ";
/// Most characters of the reason.
const WHY_CHARS: usize = 300;
/// The section that says why an entry is out, if there is no retraction.
pub(super) const RETRACTED: &str = "Taken back";

/// The content of such a line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct EntryMark {
    id: String,
    kind: EntryKind,
    status: EntryStatus,
    risk: Risk,
    superseded_by: Option<String>,
    retracted: Option<String>,
    why: String,
}

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
            let date = one_word(&retraction.date);
            line.push_str(&format!(" retracted={date}"));
            retraction.why.clone()
        }
        None if standing.is_out() => {
            let reported = entry.section(RETRACTED).map(str::to_owned);
            reported.unwrap_or(standing.why)
        }
        None => String::new(),
    };
    if !why.is_empty() {
        line.push_str(&format!(" why={}", one_line(&why, WHY_CHARS)));
    }
    line
}

fn one_word(text: &str) -> String {
    text.split_whitespace().collect()
}

/// Reads a line; an unclear one is ignored.
pub(super) fn parse(line: &str) -> Option<EntryMark> {
    let said = line.trim().strip_prefix(BEGIN)?;
    let (words, why) = said.split_once(" why=").unwrap_or((said, ""));
    let mut mark = EntryMark { why: one_line(why, WHY_CHARS), ..EntryMark::default() };
    for word in words.split_whitespace() {
        let (name, value) = word.split_once('=')?;
        match name {
            "id" => mark.id = plain_id(value)?,
            "kind" => mark.kind = EntryKind::by_name(value)?,
            "status" => mark.status = EntryStatus::by_name(value)?,
            "risk" => mark.risk = Risk::by_name(value)?,
            "superseded-by" => mark.superseded_by = Some(plain_id(value)?),
            "retracted" => mark.retracted = Some(value.chars().take(10).collect()),
            _ => return None,
        }
    }
    (!mark.id.is_empty()).then_some(mark)
}

fn plain_id(text: &str) -> Option<String> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let fits = !text.is_empty() && text.len() <= 100 && text.chars().all(plain);
    fits.then(|| text.to_owned())
}

/// The mark of a page, which comes before its first section.
pub(super) fn of_page(body: &str) -> Option<EntryMark> {
    let mut head = body.lines().take_while(|line| !line.starts_with("## "));
    head.find_map(parse)
}

impl EntryMark {
    /// Applies the line to an entry.
    pub(super) fn put(self, entry: &mut Entry) {
        entry.id = self.id;
        entry.kind = self.kind;
        entry.status = self.status;
        entry.risk = self.risk;
        entry.superseded_by = self.superseded_by;
        let reported = entry.section(RETRACTED).is_some();
        if let Some(date) = self.retracted {
            entry.retracted = Some(Retraction { date, why: self.why });
        } else if !self.why.is_empty() && !reported {
            entry.sections.push(EntrySection { heading: RETRACTED.to_owned(), text: self.why });
        }
    }
}
