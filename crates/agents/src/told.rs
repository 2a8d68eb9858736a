//! What was said in a turn, in words that all kinds of agents share.

use serde_json::Value;

/// One thing that was said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// The agent said this.
    Says(String),
    /// It went on with what it was saying.
    More(String),
    /// It used a tool.
    Calls {
        /// The tool.
        tool: String,
        /// What it gave to it.
        with: String,
    },
    /// A tool answered.
    Gives {
        /// What it said.
        text: String,
        /// Whether it failed.
        failed: bool,
    },
    /// Something else that is worth knowing.
    Notes(String),
}

impl Told {
    /// A tool that was used with what a value says.
    pub(super) fn calls(tool: &str, with: Option<&Value>) -> Self {
        Self::Calls {
            tool: tool.to_owned(),
            with: with.map(words_of).unwrap_or_default(),
        }
    }

    /// What a tool answered.
    pub(super) fn gives(said: Option<&Value>, failed: bool) -> Self {
        Self::Gives {
            text: said.map(words_of).unwrap_or_default(),
            failed,
        }
    }
}

/// A value in words: texts as they are, lists of them joined, anything else as JSON.
fn words_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        Value::Array(items) if items.iter().all(|item| item.get("text").is_some()) => {
            let texts = items.iter().filter_map(|item| item["text"].as_str());
            texts.collect::<Vec<_>>().join("\n")
        }
        other => other.to_string(),
    }
}
