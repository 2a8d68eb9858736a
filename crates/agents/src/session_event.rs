//! The messages of a turn, in a form common to all kinds of agents.

use serde_json::Value;

/// One message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionEvent {
    /// Text from the agent.
    Text(String),
    /// A continuation of the last text.
    TextMore(String),
    /// A tool call.
    ToolCall {
        /// The tool.
        tool: String,
        /// Its input.
        with: String,
    },
    /// Tool output.
    ToolOutput {
        /// The output.
        text: String,
        /// Whether it failed.
        failed: bool,
    },
    /// Any other note.
    Note(String),
}

impl SessionEvent {
    /// A tool call with a JSON value as input.
    pub(super) fn calls(tool: &str, with: Option<&Value>) -> Self {
        Self::ToolCall { tool: tool.to_owned(), with: with.map(words_of).unwrap_or_default() }
    }

    /// Tool output.
    pub(super) fn tool_output(said: Option<&Value>, failed: bool) -> Self {
        Self::ToolOutput { text: said.map(words_of).unwrap_or_default(), failed }
    }
}

/// A value as text: strings unchanged, lists of strings joined, anything else as JSON.
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
