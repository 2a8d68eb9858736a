//! The form of a proposal: what `karve propose` reads from a file, and what the server's tool
//! `propose` takes as arguments. Both use this type.
//!
//! It is parsed leniently: a number may be a string, a list may be a line with commas, and null
//! means absent. Errors in its meaning are reported by `answer`.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

/// Entries of one list.
const LIST_MAX: usize = 50;

/// The names of all fields.
pub(super) const FIELDS: [&str; 21] = [
    "task",
    "title",
    "bottleneck",
    "mechanism",
    "expected_ratio",
    "direction",
    "high_risk",
    "files",
    "counters",
    "gate",
    "question",
    "sweep",
    "entry",
    "differs",
    "steps",
    "alternatives",
    "bucket",
    "exhausted",
    "usage",
    "tokens",
    "usd",
];

/// A hypothesis.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub struct ProposalForm {
    /// The id of the agenda item that is due, if the brief names one.
    #[serde(deserialize_with = "text", skip_serializing_if = "is_unset")]
    pub task: String,
    /// One line: the change.
    #[serde(deserialize_with = "text", skip_serializing_if = "is_unset")]
    pub title: String,
    /// What limits the kernel now.
    #[serde(deserialize_with = "text", skip_serializing_if = "is_unset")]
    pub bottleneck: String,
    /// I expect X because Y.
    #[serde(deserialize_with = "text", skip_serializing_if = "is_unset")]
    pub mechanism: String,
    /// The expected speedup, such as 1.15.
    #[serde(deserialize_with = "number", skip_serializing_if = "is_unset")]
    pub expected_ratio: Option<f64>,
    /// algorithm, memory, tile, pipeline, resource or backend.
    #[serde(deserialize_with = "text", skip_serializing_if = "is_unset")]
    pub direction: String,
    /// Whether it may break the kernel.
    #[serde(deserialize_with = "truth", skip_serializing_if = "is_unset")]
    pub high_risk: bool,
    /// Files that will change.
    #[serde(deserialize_with = "list", skip_serializing_if = "is_unset")]
    pub files: Vec<String>,
    /// Counters that should move, such as "l2_hit_pct up".
    #[serde(deserialize_with = "list", skip_serializing_if = "is_unset")]
    pub counters: Vec<String>,
    /// A predicate over case parameters under which the change is active.
    #[serde(deserialize_with = "text", skip_serializing_if = "is_unset")]
    pub gate: String,
    /// A question for the user who runs the campaign.
    #[serde(deserialize_with = "text", skip_serializing_if = "is_unset")]
    pub question: String,
    /// Change nothing and let karve tune the declared knobs.
    #[serde(deserialize_with = "truth", skip_serializing_if = "is_unset")]
    pub sweep: bool,
    /// The id of the library entry that is applied.
    #[serde(deserialize_with = "text", skip_serializing_if = "is_unset")]
    pub entry: String,
    /// What is different, if it repeats a refuted entry.
    #[serde(deserialize_with = "text", skip_serializing_if = "is_unset")]
    pub differs: String,
    /// The steps of the implementation, if you plan for another role.
    #[serde(deserialize_with = "list", skip_serializing_if = "is_unset")]
    pub steps: Vec<String>,
    /// Fundamentally different ideas that were weighed and not taken now, one line each.
    #[serde(deserialize_with = "list", skip_serializing_if = "is_unset")]
    pub alternatives: Vec<String>,
    /// Where the gain comes from: K1 the kernel itself, K2 another layout, K3 fewer launches, K4
    /// data passed inside the call, W1 prepared weights, W2 and W3 caches of anything else.
    #[serde(deserialize_with = "text", skip_serializing_if = "is_unset")]
    pub bucket: String,
    /// Why nothing is left to try; ends the campaign, or the agenda item that is due.
    #[serde(deserialize_with = "text", skip_serializing_if = "is_unset")]
    pub exhausted: String,
    /// What the proposal cost.
    #[serde(deserialize_with = "cost", skip_serializing_if = "is_unset")]
    pub usage: ReportedCost,
    /// The same as in usage.
    #[serde(deserialize_with = "number", skip_serializing_if = "is_unset")]
    pub tokens: Option<f64>,
    /// The same as in usage.
    #[serde(deserialize_with = "number", skip_serializing_if = "is_unset")]
    pub usd: Option<f64>,
}

/// The usage that an agent reports.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default)]
pub struct ReportedCost {
    /// Tokens of a model.
    #[serde(deserialize_with = "number", skip_serializing_if = "is_unset")]
    pub tokens: Option<f64>,
    /// US dollars.
    #[serde(deserialize_with = "number", skip_serializing_if = "is_unset")]
    pub usd: Option<f64>,
}

impl ProposalForm {
    /// The form of an answer; unknown fields are ignored.
    pub(super) fn of(fields: &Map<String, Value>) -> Result<Self, String> {
        let known = fields.iter().filter(|(name, _)| FIELDS.contains(&name.as_str()));
        let known = known.map(|(name, value)| (name.clone(), value.clone()));
        serde_json::from_value(Value::Object(known.collect())).map_err(|error| error.to_string())
    }
}

fn is_unset<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// A value as text.
pub(super) fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

pub(super) fn number_of(value: &Value) -> Option<f64> {
    let number = match value {
        Value::Number(number) => number.as_f64()?,
        Value::String(text) => text.trim().trim_end_matches('x').parse().ok()?,
        _ => return None,
    };
    number.is_finite().then_some(number)
}

fn text<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    Ok(text_of(&Value::deserialize(from)?))
}

fn number<'de, D: Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
    Ok(number_of(&Value::deserialize(from)?))
}

fn truth<'de, D: Deserializer<'de>>(from: D) -> Result<bool, D::Error> {
    Ok(match Value::deserialize(from)? {
        Value::Bool(truth) => truth,
        Value::String(text) => matches!(text.trim(), "true" | "yes"),
        _ => false,
    })
}

fn list<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    let texts: Vec<String> = match Value::deserialize(from)? {
        Value::Array(items) => items.iter().map(text_of).collect(),
        Value::String(text) => text.split(',').map(|item| item.trim().to_owned()).collect(),
        _ => Vec::new(),
    };
    let said = texts.into_iter().filter(|text| !text.is_empty());
    Ok(said.take(LIST_MAX).collect())
}

fn cost<'de, D: Deserializer<'de>>(from: D) -> Result<ReportedCost, D::Error> {
    let said = Value::deserialize(from)?;
    Ok(serde_json::from_value(said).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_names_are_those_of_the_form() {
        let schema = schemars::schema_for!(ProposalForm);
        let named = schema.get("properties").and_then(Value::as_object).unwrap();
        let mut named: Vec<&str> = named.keys().map(String::as_str).collect();
        let mut fields = FIELDS.to_vec();
        named.sort_unstable();
        fields.sort_unstable();
        assert_eq!(named, fields);
    }

    #[test]
    fn what_is_written_is_read_again_and_what_is_unset_is_left_out() {
        let said = json!({
            "task": "only", "title": "T", "expected_ratio": "1.5x", "files": "a.c, b.c",
            "question": "why?", "usage": {"tokens": 7, "usd": "0.5"}, "gate": null, "other": 1,
        });
        let form = ProposalForm::of(said.as_object().unwrap()).unwrap();
        assert_eq!((form.task.as_str(), form.question.as_str()), ("only", "why?"));
        assert_eq!((form.expected_ratio, form.files.len()), (Some(1.5), 2));
        assert_eq!((form.gate.as_str(), form.usage.tokens), ("", Some(7.0)));
        let written = serde_json::to_value(&form).unwrap();
        assert_eq!(ProposalForm::of(written.as_object().unwrap()).unwrap(), form);
        assert!(written.get("gate").is_none() && written.get("other").is_none());
    }

    #[test]
    fn what_has_another_type_is_no_fault_of_the_form() {
        let said = json!({"title": 3, "files": 4, "usage": "much", "high_risk": [], "usd": {}});
        let form = ProposalForm::of(said.as_object().unwrap()).unwrap();
        assert_eq!((form.title.as_str(), form.files.len()), ("3", 0));
        assert_eq!((form.usage, form.usd), (ReportedCost::default(), None));
    }
}
