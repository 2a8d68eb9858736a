//! The tuning benchmark: how near to the optimum does a search come, in how many settings?
//!
//! `cargo bench --bench tune -- DIR` plays every strategy on every measured space of a directory
//! and prints the fraction of the optimum that is reached after 25, 50, 100 and 200 distinct
//! settings: the mean over the seeds, then over the spaces, with its standard error, and the time
//! that the search itself took for each setting. Further arguments:
//!
//! - `--seeds 30`: how many seeds;
//! - `--only auto,random`: which strategies;
//! - `--noise 0.05`, `--failures 0.2`: readings that differ, settings that fail;
//! - `--fitting 0.05`: few settings fit into the device, as on a GPU;
//! - `--each`: a line for each space.

use karve::tuner::recorded::RecordedSpace;
use karve::tuner::simulate::{SimulatedNoise, SimulationResult};
use karve::tuner::{recorded, simulate};
use karve::ui;
use karve_numerics::search::StrategyKind;
use karve_numerics::stats;
use karve_os::error::{CommandError, Result};
use karve_os::sync::locked;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// After how many settings the fraction is looked at.
const MARKS: [usize; 4] = [25, 50, 100, 200];
/// Spaces that come with karve.
const OWN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/spaces");

struct Asked {
    dir: PathBuf,
    seeds: u64,
    kinds: Vec<StrategyKind>,
    trouble: SimulatedNoise,
    each: bool,
}

/// One strategy on one space, over all seeds.
struct Cell {
    fractions: [Vec<f64>; 4],
    readings: f64,
    thinking_ms: f64,
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            ui::note(&error.to_string());
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let asked = parse(&std::env::args().skip(1).collect::<Vec<String>>())?;
    let spaces = recorded::load_all(&asked.dir)?;
    if spaces.is_empty() {
        let why = format!("there is no measured space in {}", asked.dir.display());
        return Err(CommandError::usage(why).hint("name a directory of .csv or .csv.gz files"));
    }
    ui::outln(&format!(
        "{} spaces, {} seeds, noise {}, failures {}, fitting {}\n",
        spaces.len(),
        asked.seeds,
        asked.trouble.noise,
        asked.trouble.failures,
        asked.trouble.fitting,
    ));
    let marks = MARKS.map(|mark| format!(" {mark:>12}")).concat();
    ui::outln(&format!("{:<28}{marks}  readings   ms each", "strategy"));
    for kind in &asked.kinds {
        let cells = play_all(&spaces, *kind, &asked);
        if asked.each {
            for (space, cell) in spaces.iter().zip(&cells) {
                ui::out(&line(&format!("  {}", space.name), std::slice::from_ref(cell)));
            }
        }
        ui::out(&line(kind.name(), &cells));
    }
    Ok(())
}

fn parse(arguments: &[String]) -> Result<Asked> {
    let mut asked = Asked {
        dir: PathBuf::from(OWN),
        seeds: 30,
        kinds: StrategyKind::ALL.to_vec(),
        trouble: SimulatedNoise::default(),
        each: false,
    };
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let wrong = || {
            CommandError::usage(format!("{argument} has no usable value"))
                .hint("crates/karve/benches/tune.rs says what it takes")
        };
        let mut value = || arguments.next().ok_or_else(wrong);
        match argument.as_str() {
            // What cargo says to every benchmark.
            "--bench" => {}
            "--each" => asked.each = true,
            "--seeds" => asked.seeds = value()?.parse().map_err(|_| wrong())?,
            "--noise" => asked.trouble.noise = value()?.parse().map_err(|_| wrong())?,
            "--failures" => asked.trouble.failures = value()?.parse().map_err(|_| wrong())?,
            "--fitting" => asked.trouble.fitting = value()?.parse().map_err(|_| wrong())?,
            "--only" => {
                let kinds = value()?.split(',').map(StrategyKind::by_name).collect::<Option<_>>();
                asked.kinds = kinds.ok_or_else(wrong)?;
            }
            dir => asked.dir = PathBuf::from(dir),
        }
    }
    Ok(asked)
}

/// Plays all seeds on all spaces, on all CPUs.
fn play_all(spaces: &[RecordedSpace], kind: StrategyKind, asked: &Asked) -> Vec<Cell> {
    let seeds = asked.seeds as usize;
    let next = AtomicUsize::new(0);
    let all: Mutex<Vec<(usize, SimulationResult)>> = Mutex::new(Vec::new());
    let work = || loop {
        let job = next.fetch_add(1, Ordering::Relaxed);
        let Some(space) = spaces.get(job / seeds.max(1)) else {
            break;
        };
        // Spaces of one size would draw the same settings from the same seed.
        let named = space.name.bytes().fold(7, |sum: u64, byte| {
            sum.wrapping_mul(1_099_511_628_211).wrapping_add(u64::from(byte))
        });
        let seed = named.wrapping_add((job % seeds) as u64);
        let played = simulate::play(space, kind, seed, MARKS[3], asked.trouble);
        locked(&all).push((job, played));
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    let mut all = all.into_inner().unwrap_or_else(PoisonError::into_inner);
    all.sort_by_key(|(job, _)| *job);
    let played: Vec<SimulationResult> = all.into_iter().map(|(_, played)| played).collect();
    played.chunks(seeds.max(1)).map(cell).collect()
}

fn cell(played: &[SimulationResult]) -> Cell {
    let count = played.len().max(1) as f64;
    let at = |mark: usize| played.iter().map(|p| p.fractions[mark - 1]).collect();
    Cell {
        fractions: MARKS.map(at),
        readings: played.iter().map(|p| p.readings as f64).sum::<f64>() / count,
        thinking_ms: played.iter().map(|p| p.thinking.as_secs_f64()).sum::<f64>() * 1e3
            / (count * MARKS[3] as f64),
    }
}

/// The mean over the spaces, with the standard error that the seeds leave.
fn line(name: &str, cells: &[Cell]) -> String {
    let count = cells.len().max(1) as f64;
    let mut out = format!("{name:<28}");
    for mark in 0..MARKS.len() {
        let (mut mean, mut square) = (0.0, 0.0);
        for cell in cells {
            let values = &cell.fractions[mark];
            let (middle, deviation) = stats::mean_and_deviation(values).unwrap_or_default();
            mean += middle / count;
            square += deviation * deviation / values.len().max(1) as f64;
        }
        out += &format!(" {mean:.3} ±{:.3}", square.sqrt() / count);
    }
    let readings = cells.iter().map(|cell| cell.readings).sum::<f64>() / count;
    let thinking = cells.iter().map(|cell| cell.thinking_ms).sum::<f64>() / count;
    out + &format!(" {readings:>9.0} {thinking:>9.2}\n")
}
