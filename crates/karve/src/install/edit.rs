//! How a piece gets into a file, and out of it again. Pure: text in, text out.
//!
//! What is not karve's stays, byte for byte. A piece that was changed since karve wrote it is
//! refused, unless force is set.

use super::OverwritePolicy;
use super::jsonc::JsoncDocument;
use super::record::{WrittenContent, WrittenFile};
use serde_json::Value;
use sha2::{Digest, Sha256};

/// The name of the entry that registers the server.
const KEY: &str = "karve";
/// Marks around karve's part of a shared file.
const BEGIN: &str = "<!-- karve: begin; \"karve install\" writes this part -->\n";
const END: &str = "<!-- karve: end -->\n";

/// One thing that is written.
#[derive(Clone, Debug)]
pub(super) struct PlannedWrite {
    /// The file, from the root.
    pub(super) path: String,
    /// What is written to it.
    pub(super) how: PlannedContent,
}

/// What is written to a file.
#[derive(Clone, Debug)]
pub(super) enum PlannedContent {
    /// All of it.
    Whole(String),
    /// The entry of the server in an object of a JSON file.
    Json { within: &'static str, value: Value },
    /// The table of the server in a TOML file.
    Toml { within: &'static str, lines: String },
    /// A part between two marks.
    Section(String),
}

/// What happens to a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FileEdit {
    Stays,
    Becomes(String),
    Goes,
}

/// Why a file is left alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum EditRefusal {
    /// It was changed since karve wrote it, or was there before.
    Changed,
    /// It cannot be parsed.
    Malformed(String),
}

/// What happens to a file, and what to record; nothing if it is not karve's.
type EditResult = (FileEdit, Option<WrittenFile>);

impl PlannedWrite {
    /// What is written, for people.
    pub(super) fn shown(&self) -> String {
        match &self.how {
            PlannedContent::Whole(text) => text.clone(),
            PlannedContent::Json { within, value } => {
                let entry = Value::from_iter([(KEY.to_owned(), value.clone())]);
                let all = Value::from_iter([((*within).to_owned(), entry)]);
                serde_json::to_string_pretty(&all).unwrap_or_default() + "\n"
            }
            PlannedContent::Toml { within, lines } => table(within, lines),
            PlannedContent::Section(text) => section(text),
        }
    }

    /// Adds it to a file with this text.
    pub(super) fn put(
        &self,
        before: Option<&str>,
        known: Option<&WrittenFile>,
        care: OverwritePolicy,
    ) -> Result<EditResult, EditRefusal> {
        if let (Some(text), Some(known)) = (before, known)
            && !self.is_in(text)?
        {
            // An earlier version of it is removed first.
            let bare = match take(known, Some(text), care)? {
                FileEdit::Stays => Some(text.to_owned()),
                FileEdit::Becomes(text) => Some(text),
                FileEdit::Goes => None,
            };
            let (change, written) = self.put_new(bare.as_deref(), care)?;
            let written = written.map(|written| WrittenFile { made: known.made, ..written });
            return Ok((change, written));
        }
        if before.is_some_and(|text| self.is_in(text) == Ok(true)) {
            // Content that karve did not write is not karve's, except for files that can only be
            // karve's.
            let written = match &self.how {
                PlannedContent::Whole(text) => Some(self.written(true, whole(text))),
                _ => known.cloned(),
            };
            return Ok((FileEdit::Stays, written));
        }
        self.put_new(before, care)
    }

    fn written(&self, made: bool, what: WrittenContent) -> WrittenFile {
        WrittenFile { path: self.path.clone(), made, what }
    }

    /// Whether a text contains it unchanged.
    fn is_in(&self, text: &str) -> Result<bool, EditRefusal> {
        Ok(match &self.how {
            PlannedContent::Whole(whole) => whole == text,
            PlannedContent::Json { within, value } => {
                let document = JsoncDocument::read(text).map_err(EditRefusal::Malformed)?;
                document.value.get(within).and_then(|o| o.get(KEY)) == Some(value)
            }
            PlannedContent::Toml { within, lines } => {
                let ours = parse_toml(&table(within, lines))?;
                let there = parse_toml(text)?;
                entry(&there, within) == entry(&ours, within)
            }
            PlannedContent::Section(inner) => between(text)? == Some(section(inner).as_str()),
        })
    }

    fn put_new(
        &self,
        before: Option<&str>,
        care: OverwritePolicy,
    ) -> Result<EditResult, EditRefusal> {
        let made = before.is_none();
        match &self.how {
            PlannedContent::Whole(text) => {
                if before.is_some() && care == OverwritePolicy::Unchanged {
                    return Err(EditRefusal::Changed);
                }
                let written = self.written(true, whole(text));
                Ok((FileEdit::Becomes(text.clone()), Some(written)))
            }
            PlannedContent::Json { within, value } => {
                let mut text = before.unwrap_or("{}\n").to_owned();
                let document = JsoncDocument::read(&text).map_err(EditRefusal::Malformed)?;
                let object = document.value.get(within);
                if object.and_then(|object| object.get(KEY)).is_some() {
                    if care == OverwritePolicy::Unchanged {
                        return Err(EditRefusal::Changed);
                    }
                    text = document.without(within, KEY, false).map_err(EditRefusal::Malformed)?;
                }
                let document = JsoncDocument::read(&text).map_err(EditRefusal::Malformed)?;
                let made_object = document.value.get(within).is_none();
                let put = document.with(within, KEY, value);
                let (after, put) = put.map_err(EditRefusal::Malformed)?;
                if self.is_in(&after) != Ok(true) {
                    return Err(EditRefusal::Malformed(format!("{within} is not an object")));
                }
                let what = WrittenContent::Json {
                    within: (*within).to_owned(),
                    value: value.clone(),
                    text: put,
                    made_object,
                };
                Ok((FileEdit::Becomes(after), Some(self.written(made, what))))
            }
            PlannedContent::Toml { within, lines } => self.put_table(before, (within, lines), care),
            PlannedContent::Section(text) => self.put_section(before, text, care),
        }
    }

    fn put_table(
        &self,
        before: Option<&str>,
        (within, lines): (&'static str, &str),
        care: OverwritePolicy,
    ) -> Result<EditResult, EditRefusal> {
        let mut text = before.unwrap_or_default().to_owned();
        if entry(&parse_toml(&text)?, within).is_some() {
            if care == OverwritePolicy::Unchanged {
                return Err(EditRefusal::Changed);
            }
            text = without_table(&text, within)?;
        }
        let put = apart(&text) + &table(within, lines);
        let after = format!("{text}{put}");
        if self.is_in(&after) != Ok(true) {
            return Err(EditRefusal::Malformed(format!("{within} is not a table")));
        }
        let what = WrittenContent::Toml { within: within.to_owned(), text: put };
        let written = self.written(before.is_none(), what);
        Ok((FileEdit::Becomes(after), Some(written)))
    }

    fn put_section(
        &self,
        before: Option<&str>,
        text: &str,
        care: OverwritePolicy,
    ) -> Result<EditResult, EditRefusal> {
        let ours = section(text);
        let there = before.unwrap_or_default();
        let (after, put) = match between(there)? {
            Some(_) if care == OverwritePolicy::Unchanged => return Err(EditRefusal::Changed),
            Some(old) => (there.replacen(old, &ours, 1), ours),
            None => {
                let put = apart(there) + &ours;
                (format!("{there}{put}"), put)
            }
        };
        let written = self.written(before.is_none(), WrittenContent::Section { text: put });
        Ok((FileEdit::Becomes(after), Some(written)))
    }
}

/// Removes what was written to a file.
pub(super) fn take(
    written: &WrittenFile,
    before: Option<&str>,
    care: OverwritePolicy,
) -> Result<FileEdit, EditRefusal> {
    let Some(text) = before else {
        return Ok(FileEdit::Stays);
    };
    let may = |is_ours: bool| match is_ours || care == OverwritePolicy::Force {
        true => Ok(()),
        false => Err(EditRefusal::Changed),
    };
    let after = match &written.what {
        WrittenContent::Whole { digest } => {
            may(*digest == digest_of(text))?;
            return Ok(FileEdit::Goes);
        }
        WrittenContent::Json { within, value, text: put, made_object } => {
            let document = JsoncDocument::read(text).map_err(EditRefusal::Malformed)?;
            let Some(there) = document.value.get(within).and_then(|o| o.get(KEY)) else {
                return Ok(FileEdit::Stays);
            };
            may(there == value)?;
            let cut = document.without(within, KEY, *made_object);
            let cut = cut.map_err(EditRefusal::Malformed)?;
            let ways = without_once(text, put).into_iter().chain([cut]);
            let mut ways = ways.filter(|after| lacks(after, &document.value, within));
            let by_hand = || EditRefusal::Malformed(format!("{within}.{KEY} cannot be removed"));
            ways.next().ok_or_else(by_hand)?
        }
        WrittenContent::Toml { within, text: put } => {
            let table = parse_toml(text)?;
            if entry(&table, within).is_none() {
                return Ok(FileEdit::Stays);
            }
            let ours = parse_toml(put)?;
            may(entry(&table, within) == entry(&ours, within))?;
            match without_once(text, put).filter(|after| parse_toml(after).is_ok()) {
                Some(after) => after,
                None => without_table(text, within)?,
            }
        }
        WrittenContent::Section { text: put } => {
            let Some(there) = between(text)? else {
                return Ok(FileEdit::Stays);
            };
            may(put.ends_with(there))?;
            match without_once(text, put) {
                Some(after) => after,
                None => text.replacen(there, "", 1),
            }
        }
    };
    Ok(match written.made && is_bare(&after, &written.what) {
        true => FileEdit::Goes,
        false => FileEdit::Becomes(after),
    })
}

/// Whether nothing is left of a file that was made for it.
fn is_bare(text: &str, what: &WrittenContent) -> bool {
    match what {
        WrittenContent::Json { .. } => {
            let document = JsoncDocument::read(text);
            let is_empty = |value: &Value| value.as_object().is_some_and(serde_json::Map::is_empty);
            // A comment would be the user's.
            document.is_ok_and(|document| is_empty(&document.value)) && !text.contains('/')
        }
        WrittenContent::Whole { .. }
        | WrittenContent::Toml { .. }
        | WrittenContent::Section { .. } => text.trim().is_empty(),
    }
}

/// Whether a text says the same as before, without the entry.
fn lacks(after: &str, before: &Value, within: &str) -> bool {
    let Ok(after) = JsoncDocument::read(after) else {
        return false;
    };
    let mut want = before.clone();
    if let Some(object) = want.get_mut(within).and_then(Value::as_object_mut) {
        object.remove(KEY);
    }
    let mut without = want.clone();
    if let Some(root) = without.as_object_mut() {
        root.remove(within);
    }
    let nothing = Value::Object(serde_json::Map::new());
    after.value == want || (after.value == without && want[within] == nothing)
}

fn whole(text: &str) -> WrittenContent {
    WrittenContent::Whole { digest: digest_of(text) }
}

fn digest_of(text: &str) -> String {
    let bytes = Sha256::digest(text.as_bytes());
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A text without a part that occurs in it exactly once.
fn without_once(text: &str, part: &str) -> Option<String> {
    let mut found = text.match_indices(part);
    let (at, _) = found.next().filter(|_| !part.is_empty())?;
    match found.next() {
        Some(_) => None,
        None => Some(format!("{}{}", &text[..at], &text[at + part.len()..])),
    }
}

/// What separates an addition from the text before it.
fn apart(text: &str) -> String {
    match text {
        "" => String::new(),
        text if text.ends_with("\n\n") => String::new(),
        text if text.ends_with('\n') => "\n".to_owned(),
        _ => "\n\n".to_owned(),
    }
}

fn section(text: &str) -> String {
    format!("{BEGIN}{text}{END}")
}

/// The part between the marks, with them.
fn between(text: &str) -> Result<Option<&str>, EditRefusal> {
    let half =
        || EditRefusal::Malformed("one of the marks around karve's part is missing".to_owned());
    match (text.matches(BEGIN).count(), text.matches(END).count()) {
        (0, 0) => Ok(None),
        (1, 1) => {
            let start = text.find(BEGIN).ok_or_else(half)?;
            let end = text.find(END).ok_or_else(half)? + END.len();
            text.get(start..end).map(Some).ok_or_else(half)
        }
        _ => Err(half()),
    }
}

fn table(within: &str, lines: &str) -> String {
    format!("[{within}.{KEY}]\n{lines}")
}

fn parse_toml(text: &str) -> Result<toml::Table, EditRefusal> {
    text.parse()
        .map_err(|error: toml::de::Error| EditRefusal::Malformed(error.message().to_owned()))
}

fn entry<'a>(table: &'a toml::Table, within: &str) -> Option<&'a toml::Value> {
    table.get(within)?.get(KEY)
}

/// A text without the server's table: its lines up to the next table outside it.
fn without_table(text: &str, within: &str) -> Result<String, EditRefusal> {
    let head = format!("[{within}.{KEY}]");
    let below = format!("[{within}.{KEY}.");
    let mut out = String::new();
    let mut is_inside = false;
    for line in text.split_inclusive('\n') {
        let start = line.trim_start();
        if start.starts_with('[') {
            is_inside = start.starts_with(&head) || start.starts_with(&below);
        }
        if !is_inside {
            out.push_str(line);
        }
    }
    let mut want = parse_toml(text)?;
    if let Some(toml::Value::Table(servers)) = want.get_mut(within) {
        servers.remove(KEY);
    }
    let mut got = parse_toml(&out)?;
    // The parent table may have existed only because of it.
    got.entry(within.to_owned()).or_insert_with(|| toml::Value::Table(toml::Table::new()));
    match got == want {
        true => Ok(out),
        false => Err(EditRefusal::Malformed(format!("{within}.{KEY} is not a separate table"))),
    }
}
