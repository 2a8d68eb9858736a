//! The JSON schema of `karve.toml`, for editors and for checking a file's shape.

use super::file::ConfigFile;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

/// The schema as written in `karve.schema.json`.
pub fn schema_json() -> String {
    format!("{:#}\n", schema())
}

/// The schema without references, and without `null`, which TOML does not have.
pub(super) fn schema() -> Value {
    let mut settings = SchemaSettings::draft2020_12();
    settings.inline_subschemas = true;
    let schema = settings.into_generator().into_root_schema_for::<ConfigFile>();
    tidied(schema.to_value())
}

fn tidied(value: Value) -> Value {
    match value {
        Value::Object(object) => tidied_object(object),
        Value::Array(items) => Value::Array(items.into_iter().map(tidied).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value,
    }
}

/// Sorts the keys and removes every `null` alternative.
fn tidied_object(mut object: Map<String, Value>) -> Value {
    let is_null = |value: &Value| *value == "null" || value["type"] == "null";
    object.retain(|key, value| key != "format" || !value.is_string());
    for key in ["type", "anyOf", "enum"] {
        let Some(list) = object.get_mut(key).and_then(Value::as_array_mut) else {
            continue;
        };
        list.retain(|item| !is_null(item) && !item.is_null());
        if list.len() == 1 && key != "enum" {
            let only = list.remove(0);
            object.remove(key);
            match only {
                Value::Object(only) => object.extend(only),
                only => drop(object.insert(key.to_owned(), only)),
            }
        }
    }
    // A key that is left out has no value, even where serde names a default.
    object.remove("default");
    let mut entries: Vec<(String, Value)> = object.into_iter().collect();
    entries.sort_by(|(a, _), (b, _)| a.cmp(b));
    Value::Object(entries.into_iter().map(|(key, value)| (key, tidied(value))).collect())
}
