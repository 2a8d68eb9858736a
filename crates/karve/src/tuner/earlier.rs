//! Settings that were best on other commits, hosts or devices, which are tried first.

use super::journal::JournalLine;
use super::recorded;
use karve_numerics::grid::{Grid, GridPoint};
use karve_numerics::search::TrialResult;
use karve_numerics::space::KnobSetting;
use karve_numerics::stats;
use karve_os::error::Result;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// How many settings of one earlier record are tried first.
const FROM_EACH: usize = 3;
/// How many settings of all earlier records are tried first.
const SEEDS_MAX: usize = 6;
/// The most journals that are read, the latest first.
const JOURNALS_MAX: usize = 4;
/// The largest journal that is read, in bytes.
const BYTES_MAX: u64 = 16 << 20;

/// Settings with their values, the best first; lower is better.
pub type Ranking = Vec<(KnobSetting, f64)>;

/// The best settings of each ranking that are settings of this grid, alternating between the
/// rankings. A knob that a ranking does not have keeps its default.
pub fn best_of(grid: &Grid, rankings: &[Ranking]) -> Vec<GridPoint> {
    let default = grid.default_point().map(|point| grid.config(point));
    let fitting = |ranking: &Ranking| -> Vec<GridPoint> {
        let point = |(config, _): &(KnobSetting, f64)| {
            let known = |name: &String| grid.axes().iter().any(|axis| axis.name() == name);
            if !config.keys().any(known) {
                return None;
            }
            let mut full = default.clone().unwrap_or_default();
            full.extend(config.clone());
            grid.point(&full)
        };
        ranking.iter().filter_map(point).take(FROM_EACH).collect()
    };
    let lists: Vec<Vec<GridPoint>> = rankings.iter().map(fitting).collect();
    let mut given: Vec<GridPoint> = Vec::new();
    for turn in 0..FROM_EACH {
        for point in lists.iter().filter_map(|list| list.get(turn)) {
            if !given.contains(point) && given.len() < SEEDS_MAX {
                given.push(*point);
            }
        }
    }
    given
}

/// The rankings of measured spaces.
pub fn spaces(paths: &[PathBuf]) -> Result<Vec<Ranking>> {
    let one = |path: &PathBuf| {
        let space = recorded::load(path)?;
        let value = |point: GridPoint| match space.read(point) {
            TrialResult::Value(value) => Some((space.grid.config(point), value)),
            TrialResult::Failed => None,
        };
        Ok(sorted(space.grid.points().filter_map(value).collect()))
    };
    paths.iter().map(one).collect()
}

/// The rankings of the latest journals next to this one. Unreadable ones are skipped.
pub fn journals(dir: &Path, this: &Path) -> Vec<Ranking> {
    let Ok(entries) = fs::read_dir(dir) else {
        return Vec::new();
    };
    let mut paths: Vec<(std::time::SystemTime, PathBuf)> = entries
        .flatten()
        .filter_map(|entry| {
            let (path, meta) = (entry.path(), entry.metadata().ok()?);
            let fits = path.extension().is_some_and(|end| end == "jsonl")
                && path != this
                && meta.is_file()
                && meta.len() <= BYTES_MAX;
            fits.then_some((meta.modified().ok()?, path))
        })
        .collect();
    paths.sort();
    let latest = paths.iter().rev().take(JOURNALS_MAX);
    latest
        .filter_map(|(_, path)| fs::read_to_string(path).ok())
        .map(|text| ranking_of(&text))
        .collect()
}

fn ranking_of(journal: &str) -> Ranking {
    let mut readings: BTreeMap<KnobSetting, Vec<f64>> = BTreeMap::new();
    let lines = journal.lines().map(serde_json::from_str);
    for line in lines.filter_map(std::result::Result::ok) {
        if let JournalLine::Read { config, value, .. } = line {
            readings.entry(config).or_default().push(value);
        }
    }
    let median =
        |(config, values): (KnobSetting, Vec<f64>)| Some((config, stats::median(&values)?));
    sorted(readings.into_iter().filter_map(median).collect())
}

fn sorted(mut ranking: Ranking) -> Ranking {
    ranking.sort_by(|a, b| a.1.total_cmp(&b.1));
    ranking
}

#[cfg(test)]
mod tests {
    use super::*;
    use karve_numerics::grid::Axis;

    fn config(text: &str) -> KnobSetting {
        let pairs = text.split(' ').filter_map(|pair| pair.split_once('='));
        pairs.map(|(a, b)| (a.to_owned(), b.to_owned())).collect()
    }

    #[test]
    fn the_best_of_each_record_come_first_interleaved() {
        let axis = |name: &str| {
            let values = ["1", "2", "4"].map(str::to_owned);
            Axis::new(name, &values, Some("1")).unwrap()
        };
        let grid = Grid::new(vec![axis("A"), axis("B")], &[]).unwrap();
        let one = vec![(config("A=2 B=4"), 1.0), (config("A=4 B=4"), 2.0)];
        // A value that no longer exists; a removed knob, and a new one.
        let other = vec![(config("A=8 B=1"), 1.0), (config("A=4 C=7"), 2.0)];
        let strange = vec![(config("X=1"), 1.0)];
        let given = best_of(&grid, &[one, other, strange]);
        let given: Vec<KnobSetting> = given.iter().map(|point| grid.config(*point)).collect();
        let want = ["A=2 B=4", "A=4 B=1", "A=4 B=4"].map(config);
        assert_eq!(given, want);
        let gone = vec![(config("A=4"), 2.0)];
        let given = best_of(&grid, &[gone]);
        assert_eq!(grid.config(given[0]), config("A=4 B=1"));
    }

    #[test]
    fn a_journal_is_ranked_by_medians() {
        let line = |a: u32, value: f64| {
            let tried = crate::tuner::evaluator::SettingResult::Read { value, cases: Vec::new() };
            serde_json::to_string(&JournalLine::of(&config(&format!("A={a}")), &tried, 1)).unwrap()
        };
        let lines = [line(1, 1.0), line(1, 9.0), line(1, 8.0), line(2, 3.0)];
        let text = format!("{}\n{{\"kind\":\"re", lines.join("\n"));
        let ranking = ranking_of(&text);
        assert_eq!(ranking[0], (config("A=2"), 3.0));
        assert_eq!(ranking[1], (config("A=1"), 8.0));
    }
}
