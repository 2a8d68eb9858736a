//! Spaces whose settings were measured before, read from files.
//!
//! | file | what |
//! |---|---|
//! | a table (`.csv`) | one column for each knob, then `valid`, `time` and others |
//! | a cache file of Kernel Tuner (`.json`) | all settings that it tried, closed or not |
//! | T4 results (`.json`) | what several autotuners write, one object for each evaluation |
//!
//! The format and gzip compression are detected from the contents. All formats can be written, too.

mod evaluation;
mod kernel_tuner;
mod t4;
mod table;

pub use evaluation::{Evaluation, EvaluationFailure, EvaluationOutcome, Evaluations};

use flate2::read::GzDecoder;
use karve_numerics::grid::{Axis, Grid, GridPoint};
use karve_numerics::search::TrialResult;
use karve_os::error::{CommandError, Result};
use karve_os::files;
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The largest file, in bytes after decompression.
const BYTES_MAX: u64 = 1 << 30;
/// How many times its size a compressed file may expand to, and bytes that any may.
const EXPANSION_MAX: u64 = 100;
const EXPANDED_BYTES_MIN: u64 = 1 << 20;
/// The magic bytes of gzip files.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// One measured setting: its values by name, and its result.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredSetting {
    /// The values of the knobs, in the order of the names.
    pub values: Vec<String>,
    /// The time; nothing if it failed.
    pub value: Option<f64>,
}

/// A measured space.
#[derive(Clone, Debug)]
pub struct RecordedSpace {
    /// Its name.
    pub name: String,
    /// The settings that were measured.
    pub grid: Arc<Grid>,
    readings: Vec<Option<f64>>,
}

impl RecordedSpace {
    /// A space of measured settings. A setting that was measured twice counts once.
    pub fn new(name: &str, knobs: &[String], rows: &[MeasuredSetting]) -> Result<Self, String> {
        let mut axes = Vec::with_capacity(knobs.len());
        for (index, knob) in knobs.iter().enumerate() {
            let mut seen: BTreeSet<&str> = BTreeSet::new();
            let mut values: Vec<String> = Vec::new();
            for row in rows {
                let value = row.values.get(index).ok_or("a row has too few values")?;
                if seen.insert(value) {
                    values.push(value.clone());
                }
            }
            axes.push(Axis::new(knob, &values, None)?);
        }
        let ranks = |axis: &Axis| -> BTreeMap<String, u16> {
            let ranked = axis.values().iter().cloned().zip(0..);
            ranked.collect()
        };
        let ranks: Vec<BTreeMap<String, u16>> = axes.iter().map(ranks).collect();
        let mut settings: Vec<Vec<u16>> = Vec::with_capacity(rows.len());
        for row in rows {
            let rank = |(ranks, value): (&BTreeMap<String, u16>, &String)| {
                ranks.get(value).copied().unwrap_or_default()
            };
            settings.push(ranks.iter().zip(&row.values).map(rank).collect());
        }
        let grid = Grid::of_list(axes, settings.clone()).map_err(|error| error.to_string())?;
        let mut readings = vec![None; grid.len()];
        for (ranks, row) in settings.iter().zip(rows) {
            if let Some(point) = grid.find(ranks) {
                readings[point.0 as usize] = row.value;
            }
        }
        if readings.iter().all(Option::is_none) {
            return Err("no setting has a time".into());
        }
        Ok(Self { name: name.to_owned(), grid: Arc::new(grid), readings })
    }

    /// The result of a setting.
    pub fn read(&self, point: GridPoint) -> TrialResult {
        let reading = self.readings.get(point.0 as usize).copied().flatten();
        reading.map_or(TrialResult::Failed, TrialResult::Value)
    }

    /// The shortest time of all settings.
    pub fn optimum(&self) -> f64 {
        let times = self.readings.iter().flatten().copied();
        times.fold(f64::INFINITY, f64::min)
    }
}

/// The formats that are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordingFormat {
    /// A table.
    Table,
    /// A cache file of Kernel Tuner.
    KernelTuner,
    /// T4 results.
    T4,
}

/// Evaluations as text.
pub fn render(evaluations: &Evaluations, format: RecordingFormat) -> String {
    match format {
        RecordingFormat::Table => table::render_table(evaluations),
        RecordingFormat::KernelTuner => kernel_tuner::render_cache(evaluations),
        RecordingFormat::T4 => t4::render_results(evaluations),
    }
}

/// What a text contains.
#[derive(Debug, PartialEq)]
enum RecordingContent {
    Table(Vec<String>, Vec<MeasuredSetting>),
    Evaluations(Evaluations),
    /// JSON, but not a measured space.
    Other,
}

/// The parts of a JSON object that distinguish the formats.
#[derive(Deserialize)]
struct RecordingShape {
    cache: Option<IgnoredAny>,
    tune_params_keys: Option<IgnoredAny>,
    results: Option<IgnoredAny>,
}

/// Reads a text in any of the formats.
fn parse(text: &str) -> Result<RecordingContent, String> {
    if !text.trim_start().starts_with('{') {
        return table::parse_table(text).map(|(knobs, rows)| RecordingContent::Table(knobs, rows));
    }
    let text = kernel_tuner::close(text);
    let shape: RecordingShape = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    if shape.cache.is_some() && shape.tune_params_keys.is_some() {
        return kernel_tuner::parse_cache(&text).map(RecordingContent::Evaluations);
    }
    if shape.results.is_some() {
        return t4::parse_results(&text).map(RecordingContent::Evaluations);
    }
    Ok(RecordingContent::Other)
}

/// Reads a measured space.
pub fn load(path: &Path) -> Result<RecordedSpace> {
    let none = "it is JSON, but neither a Kernel Tuner cache file nor T4 results";
    load_if_any(path)?.ok_or_else(|| unreadable(path, none.into()))
}

/// Reads a measured space; nothing if the file is JSON of another kind.
fn load_if_any(path: &Path) -> Result<Option<RecordedSpace>> {
    let wrong = |why: String| unreadable(path, why);
    let file = files::open(path).map_err(|error| wrong(error.to_string()))?;
    parse_space(&name_of(path), BufReader::new(file)).map_err(wrong)
}

/// Reads a measured space from an open file; nothing if it is JSON of another kind.
pub fn parse_space(name: &str, file: impl BufRead) -> Result<Option<RecordedSpace>, String> {
    let text = read(file).map_err(|error| error.to_string())?;
    match parse(&text)? {
        RecordingContent::Table(knobs, rows) => RecordedSpace::new(name, &knobs, &rows).map(Some),
        RecordingContent::Evaluations(evaluations) => evaluations.recorded(name).map(Some),
        RecordingContent::Other => Ok(None),
    }
}

fn unreadable(path: &Path, why: String) -> CommandError {
    CommandError::usage(format!("cannot read the space in {}", path.display()))
        .cause(why)
        .hint("see docs/tune.md for the files that \"karve tune --simulate\" reads")
}

/// All measured spaces of a directory, by name.
///
/// JSON that is not a measured space is skipped, and so is a file next to a table of the same
/// name: it describes that table.
pub fn load_all(dir: &Path) -> Result<Vec<RecordedSpace>> {
    let wrong = |error: std::io::Error| {
        CommandError::usage(format!("cannot read the directory {}", dir.display()))
            .cause(error)
            .hint("name a directory with measured spaces, such as examples/spaces")
    };
    let mut paths: BTreeMap<String, PathBuf> = BTreeMap::new();
    for entry in std::fs::read_dir(dir).map_err(wrong)? {
        let path = entry.map_err(wrong)?.path();
        let text = path.to_string_lossy();
        let text = text.strip_suffix(".gz").unwrap_or(&text);
        if text.ends_with(".csv") {
            paths.insert(name_of(&path), path.clone());
        } else if text.ends_with(".json") {
            paths.entry(name_of(&path)).or_insert(path.clone());
        }
    }
    let spaces = paths.values().map(|path| load_if_any(path));
    spaces.filter_map(Result::transpose).collect()
}

fn name_of(path: &Path) -> String {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
    let name = name.unwrap_or_default();
    name.split('.').next().unwrap_or_default().to_owned()
}

fn read(mut file: impl BufRead) -> std::io::Result<String> {
    let is_packed = file.fill_buf()?.starts_with(&GZIP);
    let mut bytes = read_all(&mut file, BYTES_MAX, "it is larger than 1 GiB")?;
    if is_packed {
        let most = (bytes.len() as u64 * EXPANSION_MAX + EXPANDED_BYTES_MIN).min(BYTES_MAX);
        let why = format!("it expands to more than {most} bytes");
        bytes = read_all(&mut GzDecoder::new(&bytes[..]), most, &why)?;
    }
    String::from_utf8(bytes).map_err(|_| std::io::Error::other("it is not text"))
}

fn read_all(file: &mut dyn Read, most: u64, too_large: &str) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > most {
        true => Err(std::io::Error::other(too_large.to_owned())),
        false => Ok(bytes),
    }
}

#[cfg(test)]
mod tests;
