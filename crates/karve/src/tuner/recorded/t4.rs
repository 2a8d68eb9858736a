//! Results in the T4 format, which several autotuners write: one object for each evaluation.
//!
//! A file names neither the kernel nor the device. The time of an evaluation is its measurement
//! called `time`, else the mean of its `runtimes`.

use super::evaluation::{
    Evaluation, EvaluationFailure, EvaluationOutcome, Evaluations, OrderedObject, json_of, text_of,
    usable,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The version of the format that is written.
const VERSION: &str = "1.0.0";
/// The measurement that counts.
const TIME: &str = "time";

#[derive(Serialize, Deserialize)]
struct T4File {
    results: Vec<T4Row>,
    #[serde(default)]
    schema_version: String,
    #[serde(default)]
    metadata: T4Metadata,
}

#[derive(Default, Serialize, Deserialize)]
struct T4Metadata {
    #[serde(default, alias = "timeUnit", alias = "time_unit")]
    timeunit: String,
}

#[derive(Serialize, Deserialize)]
struct T4Row {
    configuration: OrderedObject<Value>,
    #[serde(default)]
    times: T4Times,
    invalidity: String,
    #[serde(default = "right")]
    correctness: f64,
    #[serde(default)]
    measurements: Vec<T4Measurement>,
    #[serde(default)]
    objectives: Vec<String>,
}

#[derive(Default, Serialize, Deserialize)]
struct T4Times {
    #[serde(default)]
    runtimes: Vec<Value>,
}

#[derive(Serialize, Deserialize)]
struct T4Measurement {
    name: String,
    value: Value,
    #[serde(default)]
    unit: String,
}

fn right() -> f64 {
    1.0
}

/// Reads results.
pub(super) fn parse_results(text: &str) -> Result<Evaluations, String> {
    let file: T4File = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let unit = match file.metadata.timeunit.as_str() {
        "" => Some(1.0),
        unit => milliseconds(unit),
    };
    let unit = unit.ok_or("karve does not know its time unit")?;
    let first = file.results.first().ok_or("it has no results")?;
    let knobs = first.configuration.0.iter().map(|(name, _)| name.clone());
    let knobs: Vec<String> = knobs.collect();
    let mut rows = Vec::with_capacity(file.results.len());
    for (index, row) in file.results.iter().enumerate() {
        let number = index + 1;
        let value = |knob: &String| {
            let value = row.configuration.get(knob).map(text_of);
            value.ok_or_else(|| format!("result {number} has no value for {knob}"))
        };
        let values: Result<Vec<String>, String> = knobs.iter().map(value).collect();
        let outcome = outcome_of(row, unit).ok_or_else(|| format!("result {number} has no time"));
        rows.push(Evaluation { values: values?, outcome: outcome? });
    }
    Ok(Evaluations { kernel: String::new(), device: String::new(), knobs, rows })
}

fn outcome_of(row: &T4Row, unit: f64) -> Option<EvaluationOutcome> {
    let failure = match row.invalidity.as_str() {
        "correct" if row.correctness > 0.0 => None,
        "correct" | "correctness" => Some(EvaluationFailure::Wrong),
        "constraints" => Some(EvaluationFailure::Forbidden),
        "compile" => Some(EvaluationFailure::NotBuilt),
        "timeout" => Some(EvaluationFailure::TimedOut),
        _ => Some(EvaluationFailure::Crashed),
    };
    if let Some(failure) = failure {
        return Some(EvaluationOutcome::Failed(failure));
    }
    let readings = row.times.runtimes.iter().filter_map(Value::as_f64);
    let readings_ms: Vec<f64> = readings.map(|reading| reading * unit).collect();
    let measured = row.measurements.iter().find(|one| one.name == TIME);
    let measured = measured.and_then(|one| {
        let unit = match one.unit.as_str() {
            "" => Some(unit),
            unit => milliseconds(unit),
        };
        Some(one.value.as_f64()? * unit?)
    });
    let mean = || readings_ms.iter().sum::<f64>() / readings_ms.len() as f64;
    let time_ms = measured.unwrap_or_else(mean);
    usable(time_ms).then_some(EvaluationOutcome::Timed { time_ms, readings_ms })
}

/// A unit of time, in milliseconds.
fn milliseconds(unit: &str) -> Option<f64> {
    match unit.to_lowercase().as_str() {
        "s" | "seconds" => Some(1e3),
        "ms" | "milliseconds" => Some(1.0),
        "us" | "µs" | "microseconds" => Some(1e-3),
        "ns" | "nanoseconds" => Some(1e-6),
        _ => None,
    }
}

/// Writes results.
pub(super) fn render_results(evaluations: &Evaluations) -> String {
    let row = |row: &Evaluation| {
        let values = row.values.iter().map(|value| json_of(value));
        let (invalidity, time, readings) = match &row.outcome {
            EvaluationOutcome::Timed { time_ms, readings_ms } => {
                ("correct", Some(*time_ms), readings_ms.as_slice())
            }
            EvaluationOutcome::Failed(failure) => (invalidity_of(*failure), None, [].as_slice()),
        };
        let measurement = |time_ms: f64| T4Measurement {
            name: TIME.into(),
            value: Value::from(time_ms),
            unit: "ms".into(),
        };
        T4Row {
            configuration: OrderedObject(evaluations.knobs.iter().cloned().zip(values).collect()),
            times: T4Times {
                runtimes: readings.iter().map(|reading| Value::from(*reading)).collect(),
            },
            invalidity: invalidity.into(),
            correctness: if invalidity == "correctness" { 0.0 } else { 1.0 },
            measurements: time.into_iter().map(measurement).collect(),
            objectives: vec![TIME.into()],
        }
    };
    let file = T4File {
        results: evaluations.rows.iter().map(row).collect(),
        schema_version: VERSION.into(),
        metadata: T4Metadata { timeunit: "milliseconds".into() },
    };
    serde_json::to_string(&file).unwrap_or_default()
}

fn invalidity_of(failure: EvaluationFailure) -> &'static str {
    match failure {
        EvaluationFailure::Forbidden => "constraints",
        EvaluationFailure::NotBuilt => "compile",
        EvaluationFailure::Crashed => "runtime",
        EvaluationFailure::Wrong => "correctness",
        EvaluationFailure::TimedOut => "timeout",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &str = include_str!("../../../../../testdata/spaces/sum_rows_t4.json");

    #[test]
    fn a_file_of_kernel_tuner_is_read() {
        let read = parse_results(SAMPLE).unwrap();
        assert_eq!(read.knobs, ["UNROLL", "MODE", "NAME"]);
        assert_eq!(read.rows.len(), 14);
        assert_eq!(read.rows[13].values, ["8", "2", "fast"]);
        assert_eq!(read.rows[13].outcome, EvaluationOutcome::Failed(EvaluationFailure::NotBuilt));
        assert!(matches!(
            &read.rows[0].outcome,
            EvaluationOutcome::Timed { readings_ms, .. } if readings_ms.len() == 3
        ));
    }

    /// One evaluation of another program: its time, or why it has none.
    fn check(row: &str, unit: &str, want: Result<EvaluationOutcome, &str>) {
        let text = format!(
            r#"{{"results": [{{"configuration": {{"A": 1}}, {row}}}],
                 "metadata": {{"timeunit": "{unit}"}}}}"#
        );
        match (parse_results(&text), want) {
            (Ok(read), Ok(want)) => assert_eq!(read.rows[0].outcome, want, "{row}"),
            (Err(error), Err(part)) => assert!(error.contains(part), "{error}"),
            (got, want) => panic!("{got:?}, not {want:?}"),
        }
    }

    #[test]
    fn times_come_in_several_units() {
        let timed = |time_ms: f64, readings: &[f64]| {
            Ok(EvaluationOutcome::Timed { time_ms, readings_ms: readings.to_vec() })
        };
        let runs = r#""invalidity": "correct", "times": {"runtimes": [1, 3]}"#;
        check(runs, "seconds", timed(2e3, &[1e3, 3e3]));
        check(runs, "", timed(2.0, &[1.0, 3.0]));
        check(runs, "fortnights", Err("time unit"));
        let measured = r#""invalidity": "correct",
            "measurements": [{"name": "time", "value": 2000000, "unit": "ns"}]"#;
        check(measured, "seconds", timed(2.0, &[]));
        check(r#""invalidity": "correct""#, "", Err("result 1 has no time"));
    }

    #[test]
    fn every_failure_has_its_word() {
        for (word, want) in [
            ("timeout", EvaluationFailure::TimedOut),
            ("compile", EvaluationFailure::NotBuilt),
            ("runtime", EvaluationFailure::Crashed),
            ("correctness", EvaluationFailure::Wrong),
            ("constraints", EvaluationFailure::Forbidden),
        ] {
            let row = format!(r#""invalidity": "{word}""#);
            check(&row, "", Ok(EvaluationOutcome::Failed(want)));
            assert_eq!(invalidity_of(want), word);
        }
        let wrong = r#""invalidity": "correct", "correctness": 0"#;
        check(wrong, "", Ok(EvaluationOutcome::Failed(EvaluationFailure::Wrong)));
    }

    #[test]
    fn what_is_written_is_read_back() {
        let mut read = parse_results(SAMPLE).unwrap();
        read.rows[0].outcome = EvaluationOutcome::Failed(EvaluationFailure::Wrong);
        read.rows[1].outcome = EvaluationOutcome::Failed(EvaluationFailure::TimedOut);
        assert_eq!(parse_results(&render_results(&read)).unwrap(), read);
    }
}
