//! Evaluated settings from files of other programs.

use super::{MeasuredSetting, RecordedSpace};
use karve_numerics::grid::Axis;
use karve_numerics::search::TrialResult;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use std::fmt;
use std::marker::PhantomData;

/// Evaluated settings, in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Evaluations {
    /// The kernel; empty if unknown.
    pub kernel: String,
    /// Where it ran; empty if unknown.
    pub device: String,
    /// The names of the knobs.
    pub knobs: Vec<String>,
    /// One for each evaluation.
    pub rows: Vec<Evaluation>,
}

/// One evaluated setting.
#[derive(Clone, Debug, PartialEq)]
pub struct Evaluation {
    /// The values of the knobs, in the order of the names.
    pub values: Vec<String>,
    /// Its outcome.
    pub outcome: EvaluationOutcome,
}

/// The outcome of an evaluation.
#[derive(Clone, Debug, PartialEq)]
pub enum EvaluationOutcome {
    /// It ran, and its result was correct.
    Timed {
        /// Its representative time, in milliseconds.
        time_ms: f64,
        /// The individual readings, in milliseconds, if known.
        readings_ms: Vec<f64>,
    },
    /// It has no time.
    Failed(EvaluationFailure),
}

/// Why an evaluation has no time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EvaluationFailure {
    /// A restriction or a limit of the device forbids it.
    Forbidden,
    /// It does not build.
    NotBuilt,
    /// It ended with an error.
    #[default]
    Crashed,
    /// Its result is wrong.
    Wrong,
    /// It timed out.
    TimedOut,
}

impl Evaluations {
    /// The evaluations of a measured space. Its times are assumed to be milliseconds.
    pub fn of(space: &RecordedSpace) -> Self {
        let axes = space.grid.axes();
        let row = |point| {
            let value = |(axis, rank): (&Axis, &u16)| axis.values()[usize::from(*rank)].clone();
            let ranks = space.grid.ranks(point);
            Evaluation {
                values: axes.iter().zip(ranks).map(value).collect(),
                outcome: match space.read(point) {
                    TrialResult::Value(time_ms) => {
                        EvaluationOutcome::Timed { time_ms, readings_ms: Vec::new() }
                    }
                    TrialResult::Failed => EvaluationOutcome::Failed(EvaluationFailure::Crashed),
                },
            }
        };
        Self {
            kernel: space.name.clone(),
            device: String::new(),
            knobs: axes.iter().map(|axis| axis.name().to_owned()).collect(),
            rows: space.grid.points().map(row).collect(),
        }
    }

    /// The same as a measured space.
    pub fn recorded(&self, name: &str) -> Result<RecordedSpace, String> {
        let measured = |row: &Evaluation| MeasuredSetting {
            values: row.values.clone(),
            value: match &row.outcome {
                EvaluationOutcome::Timed { time_ms, .. } => Some(*time_ms),
                EvaluationOutcome::Failed(_) => None,
            },
        };
        let rows: Vec<MeasuredSetting> = self.rows.iter().map(measured).collect();
        RecordedSpace::new(name, &self.knobs, &rows)
    }

    /// The values that a knob had, in the order of their first use.
    pub(super) fn values_of(&self, knob: usize) -> Vec<&str> {
        let mut values: Vec<&str> = Vec::new();
        for value in self.rows.iter().filter_map(|row| row.values.get(knob)) {
            if !values.contains(&value.as_str()) {
                values.push(value);
            }
        }
        values
    }
}

/// A JSON object whose entries keep their order.
pub(super) struct OrderedObject<V>(pub(super) Vec<(String, V)>);

impl<V> OrderedObject<V> {
    /// The last entry with a name, as in Python.
    pub(super) fn get(&self, name: &str) -> Option<&V> {
        let found = self.0.iter().rev().find(|(known, _)| known == name);
        found.map(|(_, value)| value)
    }
}

impl<'de, V: Deserialize<'de>> Deserialize<'de> for OrderedObject<V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OrderedObjectVisitor<V>(PhantomData<V>);
        impl<'de, V: Deserialize<'de>> Visitor<'de> for OrderedObjectVisitor<V> {
            type Value = OrderedObject<V>;
            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(OrderedObject(entries))
            }
        }
        deserializer.deserialize_map(OrderedObjectVisitor(PhantomData))
    }
}

impl<V: Serialize> Serialize for OrderedObject<V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

/// The value of a knob as text.
pub(super) fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The value of a knob as JSON: numbers and booleans as such, if they round-trip.
pub(super) fn json_of(text: &str) -> Value {
    let parsed = serde_json::from_str::<Value>(text);
    let plain = parsed
        .ok()
        .filter(|value| (value.is_number() || value.is_boolean()) && text_of(value) == text);
    plain.unwrap_or_else(|| Value::String(text.to_owned()))
}

/// A time that can be compared: above 0 and finite.
pub(super) fn usable(time_ms: f64) -> bool {
    time_ms.is_finite() && time_ms > 0.0
}

/// The same JSON with Python-only constants replaced by `null`.
pub(super) fn plain_json(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let (mut quoted, mut escaped) = (false, false);
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        let word = ["NaN", "-Infinity", "Infinity"]
            .into_iter()
            .find(|word| !quoted && rest.starts_with(word));
        if let Some(word) = word {
            out += "null";
            rest = &rest[word.len()..];
            continue;
        }
        quoted ^= next == '"' && !escaped;
        escaped = quoted && next == '\\' && !escaped;
        out.push(next);
        rest = &rest[next.len_utf8()..];
    }
    out
}
