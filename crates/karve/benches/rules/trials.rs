//! The recorded timings of `testdata/timings`; the README beside them describes the format.

use flate2::read::GzDecoder;
use karve_os::error::{CommandError, ErrorKind, Result, WithContext};
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

/// Lines of one trial: a head, the order, and two arms on two clocks.
const LINES: usize = 6;
/// Unit of the recorded times.
const UNIT_NS: f64 = 50.0;

/// The loads that were recorded, by the name in the files.
pub(crate) const LOADS: [&str; 3] = ["none", "one", "three"];

/// One duel as it was recorded.
#[derive(Debug)]
pub(crate) struct Trial {
    /// Which of the loads.
    pub(crate) load: usize,
    /// By how many percent more work the parent did; 0 means equal arms.
    pub(crate) effect: u32,
    /// The host's load average of the minute before.
    pub(crate) average: f64,
    /// For each pair whether the candidate ran first.
    pub(crate) candidate_first: Vec<bool>,
    /// By the parent process's clock.
    pub(crate) wall: Series,
    /// By the CPU time of the worker.
    pub(crate) cpu: Series,
}

/// The times of both arms on one clock, in ns.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    /// The incumbent's.
    pub(crate) parent: Vec<f64>,
    /// The candidate's.
    pub(crate) candidate: Vec<f64>,
}

impl Series {
    /// The same readings with the labels of the arms exchanged.
    fn mirrored(&self) -> Self {
        Self { parent: self.candidate.clone(), candidate: self.parent.clone() }
    }

    /// Log speedups, pair by pair.
    pub(crate) fn ln_speedups(&self) -> Vec<f64> {
        let pairs = self.parent.iter().zip(&self.candidate);
        pairs.map(|(a, b)| (a / b).ln()).collect()
    }
}

impl Trial {
    /// The same readings with the labels of the arms exchanged.
    pub(crate) fn mirrored(&self) -> Self {
        Self {
            load: self.load,
            effect: self.effect,
            average: self.average,
            candidate_first: self.candidate_first.iter().map(|first| !first).collect(),
            wall: self.wall.mirrored(),
            cpu: self.cpu.mirrored(),
        }
    }
}

/// All trials of all files in a directory, in the order of the names.
pub(crate) fn read_all(dir: &Path) -> Result<Vec<Trial>> {
    let listing = fs::read_dir(dir).context(|| format!("cannot list {}", dir.display()))?;
    let mut paths: Vec<_> = listing.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "gz"));
    paths.sort();
    let mut trials = Vec::new();
    for path in paths {
        let mut text = String::new();
        File::open(&path)
            .and_then(|file| GzDecoder::new(file).read_to_string(&mut text))
            .context(|| format!("cannot read {}", path.display()))?;
        let lines: Vec<&str> = text.lines().collect();
        for lines in lines.chunks(LINES) {
            trials.push(parse_trial(lines).ok_or_else(|| damaged(&path, lines))?);
        }
    }
    Ok(trials)
}

fn damaged(path: &Path, lines: &[&str]) -> CommandError {
    let head = lines.first().unwrap_or(&"");
    let message = format!("{} is damaged at {head:?}", path.display());
    CommandError::new(ErrorKind::Environment, message)
}

fn parse_trial(lines: &[&str]) -> Option<Trial> {
    let [head, order, wall_a, wall_b, cpu_a, cpu_b] = lines else {
        return None;
    };
    let field = |name: &str| {
        let mut words = head.split(' ').filter_map(|word| word.split_once('='));
        Some(words.find(|(key, _)| *key == name)?.1)
    };
    let load = field("load")?;
    let series =
        |a: &str, b: &str| Some(Series { parent: parse_times(a)?, candidate: parse_times(b)? });
    let trial = Trial {
        load: LOADS.iter().position(|name| *name == load)?,
        effect: field("effect")?.parse().ok()?,
        average: field("average")?.parse().ok()?,
        candidate_first: order.bytes().map(|first| first == b'B').collect(),
        wall: series(wall_a, wall_b)?,
        cpu: series(cpu_a, cpu_b)?,
    };
    let pairs = trial.candidate_first.len();
    let whole = [&trial.wall, &trial.cpu]
        .iter()
        .all(|series| series.parent.len() == pairs && series.candidate.len() == pairs);
    whole.then_some(trial)
}

/// A column of times: each number is the difference to the one before.
fn parse_times(line: &str) -> Option<Vec<f64>> {
    let mut units = 0_i64;
    line.split(' ')
        .map(|word| {
            units += word.parse::<i64>().ok()?;
            (units > 0).then_some(units as f64 * UNIT_NS)
        })
        .collect()
}
