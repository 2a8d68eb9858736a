//! The messages of the published workflows: their forms from `crates/agents/data/messages.toml`,
//! how they are parsed, and which of them karve accepts as an answer.

mod form;
mod hypothesis;
mod markdown;

pub use form::{FieldKind, Message, MessageField, MessageFormat};
pub use hypothesis::{hypothesis_of, render_review, review_of, summary_of};

use karve_core::markdown::last_block;
use karve_os::error::{CommandError, ErrorKind, Result};
use serde::Deserialize;
use serde_json::Value;
use std::sync::LazyLock;

/// The forms of all messages.
const BUILT_IN: &str = include_str!("../data/messages.toml");

/// The longest message that is parsed, in bytes.
pub const BYTES_MAX: usize = 256 << 10;
/// The error for text that is not an object.
const UNREADABLE: &str = "the object cannot be read";

/// The file of forms.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct MessageFile {
    message: Vec<Message>,
}

/// The forms, parsed once.
static FORMS: LazyLock<Result<Vec<Message>, String>> = LazyLock::new(|| {
    let forms: MessageFile = toml::from_str(BUILT_IN).map_err(|error| error.to_string())?;
    Ok(forms.message)
});

/// All forms.
pub fn all() -> Result<&'static [Message]> {
    match &*FORMS {
        Ok(forms) => Ok(forms),
        Err(why) => {
            Err(CommandError::new(ErrorKind::Bug, "messages.toml is broken").cause(why.clone()))
        }
    }
}

/// The form with that name.
pub fn form(name: &str) -> Result<&'static Message> {
    let forms = all()?;
    forms.iter().find(|form| form.name == name).ok_or_else(|| {
        CommandError::usage(format!("there is no message {name:?}"))
            .hint("\"karve messages\" lists them")
    })
}

/// Parses a message, or names everything that is wrong with it. An object may be the whole text, or
/// be in the last fenced `json` block of a longer text.
pub fn parse(form: &Message, text: &str) -> std::result::Result<Value, Vec<String>> {
    if text.len() > BYTES_MAX {
        return Err(vec![format!("the message is longer than {BYTES_MAX} bytes")]);
    }
    let text = text.trim_start_matches('\u{feff}');
    match form.form {
        MessageFormat::Object => checked(form, object_in(text)),
        MessageFormat::Markdown => markdown::parse_markdown(form, text),
        MessageFormat::Own => Err(vec![format!("{} has a reader of its own", form.name)]),
    }
}

/// A value, if it matches its form.
fn checked(
    form: &Message,
    value: std::result::Result<Value, String>,
) -> std::result::Result<Value, Vec<String>> {
    let value = value.map_err(|fault| vec![fault])?;
    match form.check(&value) {
        faults if faults.is_empty() => Ok(value),
        faults => Err(faults),
    }
}

/// The object of a text.
pub(crate) fn object_in(text: &str) -> std::result::Result<Value, String> {
    let text = text.trim();
    let block = if text.starts_with('{') {
        text
    } else {
        last_block(text, "json").ok_or("the answer has no JSON object")?
    };
    let unreadable = |error: serde_json::Error| format!("{UNREADABLE}: {error}");
    serde_json::from_str(block).map_err(unreadable)
}

#[cfg(test)]
mod tests;
