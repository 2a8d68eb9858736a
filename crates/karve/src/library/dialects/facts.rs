//! Facts of a page that no field of an entry stores.

use serde::Deserialize;

/// A fact that no field of an entry stores: one text or several.
#[derive(Debug, Default, Deserialize)]
#[serde(from = "serde_json::Value")]
pub(super) struct FactList(Vec<String>);

impl From<serde_json::Value> for FactList {
    fn from(value: serde_json::Value) -> Self {
        let text = |value: &serde_json::Value| match value {
            serde_json::Value::String(text) => text.trim().to_owned(),
            other => other.to_string(),
        };
        Self(match &value {
            serde_json::Value::Null => Vec::new(),
            serde_json::Value::Array(items) => items.iter().map(text).collect(),
            other => vec![text(other)],
        })
    }
}

impl FactList {
    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All of them in one line.
    pub(super) fn line(&self) -> String {
        self.0.join("; ").split_whitespace().collect::<Vec<_>>().join(" ")
    }
}
