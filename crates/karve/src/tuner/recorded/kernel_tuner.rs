//! Cache files of Kernel Tuner: all settings that it tried, a line of JSON for each.
//!
//! Kernel Tuner adds a line whenever it has tried a setting and closes the file at the end, so a
//! file of a running or interrupted run lacks its last brackets. A setting that failed has the
//! reason in `__error__`; older files have it in place of the time. Times are milliseconds.

use super::evaluation::{
    Evaluation, EvaluationFailure, EvaluationOutcome, Evaluations, OrderedObject, json_of,
    plain_json, text_of, usable,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::borrow::Cow;

/// A time of at least this means a failure, as in early files of Kernel Tuner.
const ENDLESS_MS: f64 = 1e20;

#[derive(Deserialize)]
struct KernelTunerFile {
    #[serde(default)]
    device_name: String,
    #[serde(default)]
    kernel_name: String,
    tune_params_keys: Vec<String>,
    cache: OrderedObject<OrderedObject<Value>>,
}

/// The header of a cache file.
#[derive(Serialize)]
struct CacheHeader<'a> {
    device_name: &'a str,
    kernel_name: &'a str,
    tune_params_keys: &'a [String],
    tune_params: OrderedObject<Vec<Value>>,
    objective: [&'a str; 1],
}

/// Reads a cache file.
pub(super) fn parse_cache(text: &str) -> Result<Evaluations, String> {
    let file: KernelTunerFile = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let mut rows = Vec::with_capacity(file.cache.0.len());
    for (key, entry) in &file.cache.0 {
        let value = |knob: &String| {
            let value = entry.get(knob).map(text_of);
            value.ok_or_else(|| format!("the setting {key} has no value for {knob}"))
        };
        let values: Result<Vec<String>, String> = file.tune_params_keys.iter().map(value).collect();
        let outcome = outcome_of(entry).ok_or_else(|| format!("the setting {key} has no time"))?;
        rows.push(Evaluation { values: values?, outcome });
    }
    Ok(Evaluations {
        kernel: file.kernel_name,
        device: file.device_name,
        knobs: file.tune_params_keys,
        rows,
    })
}

/// The text with its last brackets, if they are missing.
///
/// A line that was cut off in the middle is dropped.
pub(super) fn close(text: &str) -> Cow<'_, str> {
    let whole = |text: &str| serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
    let text = if text.contains("NaN") || text.contains("Infinity") {
        Cow::Owned(plain_json(text))
    } else {
        Cow::Borrowed(text)
    };
    if whole(&text) {
        return text;
    }
    let shut = |text: &str| format!("{}}}\n}}", text.trim_end().trim_end_matches(','));
    let closed = shut(&text);
    if whole(&closed) {
        return Cow::Owned(closed);
    }
    let lines = text.trim_end().rfind('\n').map(|end| shut(&text[..end]));
    match lines.filter(|lines| whole(lines)) {
        Some(lines) => Cow::Owned(lines),
        None => text,
    }
}

fn outcome_of(entry: &OrderedObject<Value>) -> Option<EvaluationOutcome> {
    if let Some(error) = entry.get("__error__") {
        return Some(EvaluationOutcome::Failed(failure_of(error.as_str())));
    }
    match entry.get("time")? {
        Value::Number(time) => {
            let time_ms = time.as_f64().filter(|time| usable(*time))?;
            if time_ms >= ENDLESS_MS {
                return Some(EvaluationOutcome::Failed(EvaluationFailure::Crashed));
            }
            let readings = entry.get("times").and_then(Value::as_array);
            let readings = readings.into_iter().flatten().filter_map(Value::as_f64);
            Some(EvaluationOutcome::Timed { time_ms, readings_ms: readings.collect() })
        }
        other => Some(EvaluationOutcome::Failed(failure_of(other.as_str()))),
    }
}

fn failure_of(error: Option<&str>) -> EvaluationFailure {
    match error {
        Some("InvalidConfig") => EvaluationFailure::Forbidden,
        Some("CompilationFailedConfig") => EvaluationFailure::NotBuilt,
        _ => EvaluationFailure::Crashed,
    }
}

/// Writes a cache file. Wrong results and timeouts count as crashes, because Kernel Tuner does
/// not distinguish them.
pub(super) fn render_cache(evaluations: &Evaluations) -> String {
    let values = |(index, knob): (usize, &String)| {
        let values = evaluations.values_of(index);
        (knob.clone(), values.into_iter().map(json_of).collect())
    };
    let knobs = evaluations.knobs.iter().enumerate();
    let head = CacheHeader {
        device_name: &evaluations.device,
        kernel_name: &evaluations.kernel,
        tune_params_keys: &evaluations.knobs,
        tune_params: OrderedObject(knobs.map(values).collect()),
        objective: ["time"],
    };
    let head = serde_json::to_string_pretty(&head).unwrap_or_default();
    let mut out = head.trim_end_matches("\n}").to_owned();
    out += ",\n  \"cache\": {";
    for (index, row) in evaluations.rows.iter().enumerate() {
        out += if index == 0 { "\n" } else { ",\n" };
        out += &render_row(&evaluations.knobs, row);
    }
    out + "}\n}"
}

fn render_row(knobs: &[String], row: &Evaluation) -> String {
    let values: Vec<Value> = row.values.iter().map(|value| json_of(value)).collect();
    let key: Vec<String> = values.iter().map(python_text).collect();
    let mut entry: Vec<(String, Value)> = knobs.iter().cloned().zip(values).collect();
    let mut put = |name: &str, value: Value| entry.push((name.to_owned(), value));
    let mut benchmark_ms = 0.0;
    match &row.outcome {
        EvaluationOutcome::Timed { time_ms, readings_ms } => {
            put("time", json!(time_ms));
            put("times", json!(readings_ms));
            benchmark_ms = readings_ms.iter().sum();
        }
        EvaluationOutcome::Failed(failure) => put(
            "__error__",
            json!(match failure {
                EvaluationFailure::Forbidden => "InvalidConfig",
                EvaluationFailure::NotBuilt => "CompilationFailedConfig",
                EvaluationFailure::Crashed
                | EvaluationFailure::Wrong
                | EvaluationFailure::TimedOut => "RuntimeFailedConfig",
            }),
        ),
    }
    // Kernel Tuner fails without these when it simulates a time limit or writes T4.
    put("compile_time", json!(0));
    put("verification_time", json!(0));
    put("benchmark_time", json!(benchmark_ms));
    let entry = OrderedObject(vec![(key.join(","), OrderedObject(entry))]);
    let line = serde_json::to_string(&entry).unwrap_or_default();
    let inner = line.strip_prefix('{').and_then(|line| line.strip_suffix('}'));
    inner.unwrap_or_default().to_owned()
}

/// A value as Python's `str` writes it: Kernel Tuner finds settings by this text.
fn python_text(value: &Value) -> String {
    match value {
        Value::Bool(true) => "True".into(),
        Value::Bool(false) => "False".into(),
        Value::Number(number) if number.is_f64() => {
            let number = number.as_f64().unwrap_or_default();
            if number == 0.0 || (1e-4..1e16).contains(&number.abs()) {
                format!("{number:?}")
            } else {
                python_exponent(number)
            }
        }
        other => text_of(other),
    }
}

/// A number whose exponent has a sign and at least two digits.
fn python_exponent(number: f64) -> String {
    let text = format!("{number:e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, exponent) = match exponent.strip_prefix('-') {
        Some(exponent) => ('-', exponent),
        None => ('+', exponent),
    };
    format!("{digits}e{sign}{exponent:0>2}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &str = include_str!("../../../../../testdata/spaces/sum_rows.json");
    const OPEN: &str = include_str!("../../../../../testdata/spaces/sum_rows_open.json");

    #[test]
    fn a_file_of_kernel_tuner_is_read() {
        let read = parse_cache(&close(SAMPLE)).unwrap();
        assert_eq!(read.kernel, "sum_rows");
        assert_eq!(read.knobs, ["UNROLL", "MODE", "NAME"]);
        assert_eq!(read.rows.len(), 14);
        assert_eq!(read.rows[0].values, ["1", "1", "plain"]);
        let EvaluationOutcome::Timed { time_ms, readings_ms } = &read.rows[0].outcome else {
            panic!("the first setting has a time");
        };
        let mean = readings_ms.iter().sum::<f64>() / 3.0;
        assert!((time_ms - mean).abs() < 1e-9, "{time_ms} {readings_ms:?}");
        let last = &read.rows[13];
        assert_eq!(last.outcome, EvaluationOutcome::Failed(EvaluationFailure::NotBuilt));
    }

    #[test]
    fn a_file_that_is_not_closed_yet_is_read() {
        assert_eq!(parse_cache(&close(OPEN)).unwrap().rows.len(), 12);
        // Cut in the middle of the last line.
        let cut = &OPEN[..OPEN.len() - 60];
        assert_eq!(parse_cache(&close(cut)).unwrap().rows.len(), 11);
    }

    #[test]
    fn failures_stand_in_place_of_the_time_in_older_files() {
        let check = |time: &str, want: EvaluationFailure| {
            let text = format!(
                r#"{{"tune_params_keys": ["A"], "cache": {{"1": {{"A": 1, "time": {time}}}}}}}"#
            );
            let read = parse_cache(&close(&text)).unwrap();
            assert_eq!(read.rows[0].outcome, EvaluationOutcome::Failed(want), "{time}");
        };
        check(r#""InvalidConfig""#, EvaluationFailure::Forbidden);
        check(r#""CompilationFailedConfig""#, EvaluationFailure::NotBuilt);
        check(r#""RuntimeFailedConfig""#, EvaluationFailure::Crashed);
        check("1e20", EvaluationFailure::Crashed);
        check("NaN", EvaluationFailure::Crashed);
        check("Infinity", EvaluationFailure::Crashed);
    }

    #[test]
    fn mistakes_are_named() {
        for (entry, part) in [
            (r#"{"A": 1}"#, "the setting 1 has no time"),
            (r#"{"time": 1}"#, "has no value for A"),
            (r#"{"A": 1, "time": -1}"#, "has no time"),
        ] {
            let text = format!(r#"{{"tune_params_keys": ["A"], "cache": {{"1": {entry}}}}}"#);
            let error = parse_cache(&text).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        let read = parse_cache(&close(SAMPLE)).unwrap();
        let written = render_cache(&read);
        assert!(written.ends_with("}\n}"), "Kernel Tuner looks for this end");
        assert_eq!(parse_cache(&written).unwrap(), read);
        let nothing = Evaluations::default();
        assert_eq!(parse_cache(&render_cache(&nothing)).unwrap(), nothing);
    }

    #[test]
    fn keys_are_written_as_python_writes_values() {
        for (text, want) in [
            ("16", "16"),
            ("1.0", "1.0"),
            ("0.0001", "0.0001"),
            ("0.00001", "1e-05"),
            ("true", "True"),
            ("fast", "fast"),
            ("007", "007"),
        ] {
            let got = python_text(&json_of(text));
            assert_eq!(got, want, "{text}");
        }
        assert_eq!(python_text(&json!(1e16)), "1e+16");
        assert_eq!(python_text(&json!(1e22)), "1e+22");
        assert_eq!(python_text(&json!(1.5e-7)), "1.5e-07");
        assert_eq!(python_text(&json!(1e300)), "1e+300");
    }
}
