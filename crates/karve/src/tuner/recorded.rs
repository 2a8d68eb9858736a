//! Spaces whose settings were measured before, read from files.
//!
//! | file | what |
//! |---|---|
//! | `.csv`, `.csv.gz` | one column for each knob, then `valid`, `time` and others |

mod table;

use crate::error::{CommandError, Result};
use crate::plain_file;
use flate2::read::GzDecoder;
use karve_core::grid::{Axis, Grid, Point};
use karve_core::search::Reading;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes of one file at most, unpacked.
const BYTES_MAX: u64 = 1 << 30;

/// One setting that was measured: its values by name, and what came of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// The values of the knobs, in the order of the names.
    pub values: Vec<String>,
    /// The time; nothing if it failed.
    pub value: Option<f64>,
}

/// A measured space.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// What it is called.
    pub name: String,
    /// The settings that were measured.
    pub grid: Arc<Grid>,
    readings: Vec<Option<f64>>,
}

impl Recorded {
    /// A space of settings that were measured. One that was measured twice counts once.
    pub fn new(name: &str, knobs: &[String], rows: &[Measured]) -> Result<Self, String> {
        let mut axes = Vec::with_capacity(knobs.len());
        for (index, knob) in knobs.iter().enumerate() {
            let mut values: Vec<String> = Vec::new();
            for row in rows {
                let value = row.values.get(index).ok_or("a row has too few values")?;
                if !values.contains(value) {
                    values.push(value.clone());
                }
            }
            axes.push(Axis::new(knob, &values, None)?);
        }
        let mut settings: Vec<Vec<u16>> = Vec::with_capacity(rows.len());
        for row in rows {
            let rank = |(axis, value): (&Axis, &String)| {
                let at = axis.values().iter().position(|known| known == value);
                at.and_then(|at| u16::try_from(at).ok()).unwrap_or_default()
            };
            settings.push(axes.iter().zip(&row.values).map(rank).collect());
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
        Ok(Self {
            name: name.to_owned(),
            grid: Arc::new(grid),
            readings,
        })
    }

    /// What came of a setting.
    pub fn read(&self, point: Point) -> Reading {
        let reading = self.readings.get(point.0 as usize).copied().flatten();
        reading.map_or(Reading::Failed, Reading::Value)
    }

    /// The least time of all settings.
    pub fn optimum(&self) -> f64 {
        let times = self.readings.iter().flatten().copied();
        times.fold(f64::INFINITY, f64::min)
    }
}

/// Reads a measured space.
pub fn load(path: &Path) -> Result<Recorded> {
    let wrong = |why: String| {
        CommandError::usage(format!("cannot read the space in {}", path.display()))
            .cause(why)
            .hint("docs/tune.md says which files \"karve tune --simulate\" reads")
    };
    let text = read(path).map_err(|error| wrong(error.to_string()))?;
    let name = name_of(path);
    let extension = path
        .extension()
        .map(|extension| extension.to_string_lossy().into_owned());
    let table = match extension.as_deref() {
        Some("gz") => path
            .with_extension("")
            .extension()
            .is_some_and(|ext| ext == "csv"),
        other => other == Some("csv"),
    };
    if !table {
        return Err(wrong("its name does not end with .csv or .csv.gz".into()));
    }
    let (knobs, rows) = table::parse_table(&text).map_err(wrong)?;
    Recorded::new(&name, &knobs, &rows).map_err(wrong)
}

/// All measured spaces of a directory, by name.
pub fn load_all(dir: &Path) -> Result<Vec<Recorded>> {
    let wrong = |error: std::io::Error| {
        CommandError::usage(format!("cannot read the directory {}", dir.display()))
            .cause(error)
            .hint("name a directory with measured spaces, such as examples/spaces")
    };
    let mut paths: BTreeMap<String, PathBuf> = BTreeMap::new();
    for entry in std::fs::read_dir(dir).map_err(wrong)? {
        let path = entry.map_err(wrong)?.path();
        let text = path.to_string_lossy();
        if text.ends_with(".csv") || text.ends_with(".csv.gz") {
            paths.insert(name_of(&path), path.clone());
        }
    }
    paths.values().map(|path| load(path)).collect()
}

fn name_of(path: &Path) -> String {
    let name = path
        .file_name()
        .map(|name| name.to_string_lossy().into_owned());
    let name = name.unwrap_or_default();
    name.split('.').next().unwrap_or_default().to_owned()
}

fn read(path: &Path) -> std::io::Result<String> {
    let file = plain_file::open(path)?;
    let packed = path.extension().is_some_and(|extension| extension == "gz");
    let mut reader: Box<dyn Read> = match packed {
        true => Box::new(GzDecoder::new(file)),
        false => Box::new(file),
    };
    let mut bytes = Vec::new();
    reader
        .by_ref()
        .take(BYTES_MAX + 1)
        .read_to_end(&mut bytes)?;
    if bytes.len() as u64 > BYTES_MAX {
        return Err(std::io::Error::other("it is larger than 1 GiB"));
    }
    String::from_utf8(bytes).map_err(|_| std::io::Error::other("it is not text"))
}
