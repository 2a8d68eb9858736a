//! How a piece gets into a file, and out of it again. Pure: text in, text out.
//!
//! What is not karve's stays, byte for byte. A piece that was changed since karve wrote it is
//! refused, unless force is set.

use super::OverwritePolicy;
use super::jsonc::{self, JsoncDocument};
use super::record::{WrittenContent, WrittenFile};
use karve_os::files::sha256_hex;
use serde_json::{Map, Value};

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
    Json { within: String, value: Value },
    /// The table of the server in a TOML file.
    Toml { within: String, lines: String },
    /// A part between two marks.
    Section(String),
}

/// Why a file is left alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum EditRefusal {
    /// It was changed since karve wrote it, or was there before.
    Changed,
    /// It cannot be parsed.
    Malformed(String),
}

/// The new text of a file, and what to record; nothing if it is not karve's.
type EditResult = (String, Option<WrittenFile>);

/// Where karve's part of a shared file is.
#[derive(Clone, Copy, Debug)]
enum EntryPlace<'a> {
    /// In this object of a JSON file.
    Json(&'a str),
    /// In this table of a TOML file.
    Toml(&'a str),
    /// Between two marks.
    Section,
}

impl EntryPlace<'_> {
    /// The file as a value; null if it is plain text.
    fn parse(self, text: &str) -> Result<Value, EditRefusal> {
        match self {
            Self::Json(_) => Ok(JsoncDocument::read(text).map_err(EditRefusal::Malformed)?.value),
            Self::Toml(_) => toml::from_str(text)
                .map_err(|error| EditRefusal::Malformed(error.message().to_owned())),
            Self::Section => Ok(Value::Null),
        }
    }

    /// The part that is there now.
    fn entry(self, text: &str) -> Result<Option<Value>, EditRefusal> {
        let parsed = self.parse(text)?;
        Ok(match self {
            Self::Json(within) | Self::Toml(within) => {
                parsed.get(within).and_then(|object| object.get(KEY)).cloned()
            }
            Self::Section => between(text)?.map(Value::from),
        })
    }

    /// What the file says without the part, and without what only holds it.
    fn rest(self, text: &str) -> Result<Value, EditRefusal> {
        let mut parsed = self.parse(text)?;
        if let Self::Json(within) | Self::Toml(within) = self
            && let Some(object) = parsed.get_mut(within).and_then(Value::as_object_mut)
        {
            object.remove(KEY);
            if object.is_empty() {
                parsed.as_object_mut().and_then(|root| root.remove(within));
            }
        }
        Ok(parsed)
    }

    /// The text without the part: without what was `put` there, if that is still there unchanged,
    /// or else cut out where the part is now. `made` says that the object around it was created
    /// for it.
    fn remove(self, text: &str, put: &str, made: bool) -> Result<String, EditRefusal> {
        let cut = match self {
            Self::Json(within) => {
                let document = JsoncDocument::read(text).map_err(EditRefusal::Malformed)?;
                document.without(within, KEY, made).map_err(EditRefusal::Malformed)?
            }
            Self::Toml(within) => without_table(text, within),
            Self::Section => text.replacen(between(text)?.unwrap_or_default(), "", 1),
        };
        let before = self.rest(text)?;
        let says_the_same = |after: &String| {
            self.entry(after) == Ok(None) && self.rest(after).as_ref() == Ok(&before)
        };
        let mut ways = without_once(text, put).into_iter().chain([cut]);
        ways.find(says_the_same).ok_or_else(|| {
            EditRefusal::Malformed(format!("the entry {KEY} cannot be removed: do it by hand"))
        })
    }
}

impl PlannedContent {
    /// Where it goes, and what a file then says there; none for a whole file.
    fn entry(&self) -> Option<(EntryPlace<'_>, Result<Option<Value>, EditRefusal>)> {
        match self {
            Self::Whole(_) => None,
            Self::Json { within, value } => {
                Some((EntryPlace::Json(within), Ok(Some(value.clone()))))
            }
            Self::Toml { within, lines } => {
                let place = EntryPlace::Toml(within);
                Some((place, place.entry(&table(within, lines))))
            }
            Self::Section(text) => Some((EntryPlace::Section, Ok(Some(section(text).into())))),
        }
    }

    /// The text with it, and what to record.
    fn insert(&self, text: &str) -> Result<(String, WrittenContent), EditRefusal> {
        let appended = |ours: String| {
            let put = apart(text) + &ours;
            (format!("{text}{put}"), put)
        };
        Ok(match self {
            Self::Whole(text) => {
                (text.clone(), WrittenContent::Whole { digest: sha256_hex(text.as_bytes()) })
            }
            Self::Json { within, value } => {
                let document = JsoncDocument::read(text).map_err(EditRefusal::Malformed)?;
                let made_object = document.value.get(within).is_none();
                let put = document.with(within, KEY, value);
                let (after, text) = put.map_err(EditRefusal::Malformed)?;
                let (within, value) = (within.clone(), value.clone());
                (after, WrittenContent::Json { within, value, text, made_object })
            }
            Self::Toml { within, lines } => {
                let (after, text) = appended(table(within, lines));
                (after, WrittenContent::Toml { within: within.clone(), text })
            }
            Self::Section(inner) => {
                let ours = section(inner);
                let (after, text) = match between(text)? {
                    Some(old) => (text.replacen(old, &ours, 1), ours),
                    None => appended(ours),
                };
                (after, WrittenContent::Section { text })
            }
        })
    }
}

impl PlannedWrite {
    /// What is written, for people.
    pub(super) fn shown(&self) -> String {
        match &self.how {
            PlannedContent::Whole(text) => text.clone(),
            PlannedContent::Json { within, value } => {
                let entry = Value::from_iter([(KEY.to_owned(), value.clone())]);
                jsonc::pretty(&Value::from_iter([(within.clone(), entry)]), "  ") + "\n"
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
        let Some(text) = before else {
            return self.put_new(None, care);
        };
        if self.is_in(text)? {
            // Content that karve did not write is not karve's, except for files that can only be
            // karve's.
            let written = match &self.how {
                PlannedContent::Whole(_) => Some(self.written(true, self.how.insert(text)?.1)),
                _ => known.cloned(),
            };
            return Ok((text.to_owned(), written));
        }
        let Some(known) = known else {
            return self.put_new(before, care);
        };
        // An earlier version of it is removed first.
        let bare = take(known, text, care)?;
        let (after, written) = self.put_new(bare.as_deref(), care)?;
        Ok((after, written.map(|written| WrittenFile { made: known.made, ..written })))
    }

    fn written(&self, made: bool, what: WrittenContent) -> WrittenFile {
        WrittenFile { path: self.path.clone(), made, what }
    }

    /// Whether a text contains it unchanged.
    fn is_in(&self, text: &str) -> Result<bool, EditRefusal> {
        match (&self.how, self.how.entry()) {
            (_, Some((place, ours))) => Ok(place.entry(text)? == ours?),
            (PlannedContent::Whole(whole), None) => Ok(whole == text),
            (_, None) => Ok(false),
        }
    }

    fn put_new(
        &self,
        before: Option<&str>,
        care: OverwritePolicy,
    ) -> Result<EditResult, EditRefusal> {
        let (empty, container) = match &self.how {
            PlannedContent::Json { within, .. } => ("{}\n", format!("{within} is not an object")),
            PlannedContent::Toml { within, .. } => ("", format!("{within} is not a table")),
            PlannedContent::Whole(_) | PlannedContent::Section(_) => ("", String::new()),
        };
        let mut text = before.unwrap_or(empty).to_owned();
        let place = self.how.entry().map(|(place, _)| place);
        let is_taken = match place {
            Some(place) => place.entry(&text)?.is_some(),
            None => before.is_some(),
        };
        if is_taken && care == OverwritePolicy::Unchanged {
            return Err(EditRefusal::Changed);
        }
        // A section is replaced where it is.
        if let (true, Some(place @ (EntryPlace::Json(_) | EntryPlace::Toml(_)))) = (is_taken, place)
        {
            text = place.remove(&text, "", false)?;
        }
        let (after, what) = self.how.insert(&text)?;
        if self.is_in(&after) != Ok(true) {
            return Err(EditRefusal::Malformed(container));
        }
        let made = before.is_none() || place.is_none();
        Ok((after, Some(self.written(made, what))))
    }
}

/// The text of a file without what was written to it; none if the file goes.
pub(super) fn take(
    written: &WrittenFile,
    text: &str,
    care: OverwritePolicy,
) -> Result<Option<String>, EditRefusal> {
    let may = |is_ours: bool| match is_ours || care == OverwritePolicy::Force {
        true => Ok(()),
        false => Err(EditRefusal::Changed),
    };
    let (place, put, made_object) = match &written.what {
        WrittenContent::Whole { digest } => {
            may(*digest == sha256_hex(text.as_bytes()))?;
            return Ok(None);
        }
        WrittenContent::Json { within, text, made_object, .. } => {
            (EntryPlace::Json(within), text, *made_object)
        }
        WrittenContent::Toml { within, text } => (EntryPlace::Toml(within), text, false),
        WrittenContent::Section { text } => (EntryPlace::Section, text, false),
    };
    let Some(there) = place.entry(text)? else {
        return Ok(Some(text.to_owned()));
    };
    may(match &written.what {
        WrittenContent::Json { value, .. } => there == *value,
        _ => Some(there) == place.entry(put)?,
    })?;
    let after = place.remove(text, put, made_object)?;
    let is_left = !written.made || !place.is_bare(&after)?;
    Ok(is_left.then_some(after))
}

impl EntryPlace<'_> {
    /// Whether nothing is left of a file that was made for the part.
    fn is_bare(self, text: &str) -> Result<bool, EditRefusal> {
        Ok(match self {
            // A comment would be the user's.
            Self::Json(_) => self.parse(text)? == Value::Object(Map::new()) && !text.contains('/'),
            Self::Toml(_) | Self::Section => text.trim().is_empty(),
        })
    }
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

/// A text without the server's table: its lines up to the next table outside it.
fn without_table(text: &str, within: &str) -> String {
    let head = format!("[{within}.{KEY}]");
    let below = format!("[{within}.{KEY}.");
    let mut is_inside = false;
    let is_outside = |line: &&str| {
        let start = line.trim_start();
        if start.starts_with('[') {
            is_inside = start.starts_with(&head) || start.starts_with(&below);
        }
        !is_inside
    };
    text.split_inclusive('\n').filter(is_outside).collect()
}
