//! The readings of a tuning run as a measured space: a table, a Kernel Tuner cache file, or T4.

use super::recorded::{self, Evaluation, EvaluationOutcome, Evaluations, RecordingFormat};
use super::session::TuneResult;
use flate2::Compression;
use flate2::write::GzEncoder;
use karve_numerics::search::TriedSetting;
use karve_os::error::{CommandError, Result, WithContext};
use std::fs;
use std::io::Write;
use std::path::Path;

/// Writes the measured settings to a file, whose name determines the format.
pub fn write(found: &TuneResult, path: &Path) -> Result<()> {
    let name = path.to_string_lossy();
    let plain = name.strip_suffix(".gz").unwrap_or(&name);
    let format = format_of(plain).ok_or_else(|| {
        CommandError::usage(format!("{} does not name a format", path.display())).hint(
            "--export takes FILE.csv, FILE.json (Kernel Tuner) or FILE.t4.json, or those with .gz",
        )
    })?;
    let text = recorded::render(&evaluations_of(found), format);
    let bytes = match plain == name {
        true => Ok(text.into_bytes()),
        false => {
            let mut packed = GzEncoder::new(Vec::new(), Compression::best());
            packed.write_all(text.as_bytes()).and_then(|()| packed.finish())
        }
    };
    let failed = || format!("cannot write {}", path.display());
    let written = bytes.and_then(|bytes| fs::write(path, bytes)).context(failed);
    written.map_err(|error| error.hint("name another file with --export FILE"))
}

/// Whether a name determines a format; checked before anything runs.
pub fn format_of(name: &str) -> Option<RecordingFormat> {
    let name = name.strip_suffix(".gz").unwrap_or(name);
    if name.ends_with(".csv") {
        Some(RecordingFormat::Table)
    } else if name.ends_with(".t4.json") {
        Some(RecordingFormat::T4)
    } else {
        name.ends_with(".json").then_some(RecordingFormat::KernelTuner)
    }
}

fn evaluations_of(found: &TuneResult) -> Evaluations {
    let to_ms = match found.about.unit.as_str() {
        "s" => 1e3,
        "us" | "\u{b5}s" | "\u{3bc}s" => 1e-3,
        "ns" => 1e-6,
        // Milliseconds, or something that is not a time.
        _ => 1.0,
    };
    let row = |entry: &TriedSetting| {
        let config = found.grid.config(entry.point);
        let axes = found.grid.axes().iter();
        let values = axes.map(|axis| config.get(axis.name()).cloned().unwrap_or_default());
        let outcome = match (entry.value(), entry.failed) {
            (Some(value), false) => EvaluationOutcome::Timed {
                time_ms: value * to_ms,
                readings_ms: entry.readings.iter().map(|one| one * to_ms).collect(),
            },
            (None, false) => return None,
            (_, true) => {
                let failure = found.failures.get(&entry.point).copied();
                EvaluationOutcome::Failed(failure.unwrap_or_default())
            }
        };
        Some(Evaluation { values: values.collect(), outcome })
    };
    Evaluations {
        kernel: found.about.op.clone(),
        device: found.about.device.clone(),
        knobs: found.grid.axes().iter().map(|axis| axis.name().to_owned()).collect(),
        rows: found.record.entries().iter().filter_map(row).collect(),
    }
}
