//! The measured peaks of this host: floating-point operations without memory traffic, and the
//! bandwidth of every cache level.
//!
//! A small C program is compiled for the host and run: this way every instruction that the
//! compiler knows is used, and karve itself needs no unsafe code. The best of many short runs
//! counts, and the gap between it and the median run is reported. The result is saved for later,
//! under the fingerprint of the host.

pub mod cases;
pub mod counters;
mod gpu;
mod levels;
pub mod plot;
pub mod text;

pub use gpu::{GpuRoofline, measure_gpu};
pub use levels::{CacheLevel, levels};

pub use karve_numerics::roof::{
    ByteRate, CallDemand, Cores, DevicePeaks, LevelRate, Roof, RoofLevel,
};
use karve_numerics::stats;
use karve_os::error::{CommandError, Result, WithContext};
use karve_os::process::{Command, StopFlag};
use karve_os::text::safe;
use karve_os::{files, host, process};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The program that measures the host.
const PROGRAM: &str = include_str!("roofline/cpu.c");
/// Compilers to try, the system's own first.
const COMPILERS: [&str; 3] = ["cc", "gcc", "clang"];
/// Flags for the instruction set of this host; the first that the compiler accepts is used.
const NATIVE: [&[&str]; 3] = [&["-march=native"], &["-mcpu=native"], &[]];
/// How long compiling and measuring may take.
const COMPILE_LIMIT: Duration = Duration::from_secs(60);
const MEASURE_LIMIT: Duration = Duration::from_secs(180);
/// The most lines of the program's output.
const LINES_MAX: usize = 100_000;
/// The most bytes of a saved record.
const CACHE_BYTES_MAX: u64 = 1 << 20;
/// The version of the saved record.
const VERSION: u32 = 1;
/// A median run this far below the best one means that the host was busy with other work.
const DISTURBED: f64 = 0.3;
/// Several cores must be at least this much faster than one.
const MORE_THAN_ONE: f64 = 1.05;
/// A rate beyond this is a measurement error.
const RATE_MAX: f64 = 1e18;

/// How long to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RooflineEffort {
    /// A quick estimate.
    Quick,
    /// The full measurement, which is saved.
    Usual,
}

/// The best of many runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Peak {
    /// Operations or bytes per second.
    pub best: f64,
    /// How far the median run is below it, 0 to 1.
    pub spread: f64,
    /// How many runs there were.
    pub runs: usize,
}

/// With one core, and with all.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CorePeaks {
    /// With one thread.
    pub one: Peak,
    /// With a thread for each core.
    pub all: Peak,
}

/// How fast bytes are moved at one level.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LevelBandwidth {
    /// Which level: `L1`, `L2`, `LLC` or `memory`.
    pub level: String,
    /// The most bytes that one core can hold there; none for memory.
    pub holds_one: Option<u64>,
    /// All cores together.
    pub holds_all: Option<u64>,
    /// Only read.
    pub read: CorePeaks,
    /// Read, and written to another place.
    pub copy: CorePeaks,
    /// Two read, one written, with a multiply-add.
    pub triad: CorePeaks,
}

/// What was measured on a host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostRoofline {
    /// The version of this record.
    pub version: u32,
    /// Which host it was.
    pub fingerprint: String,
    /// The model of its CPU.
    pub cpu: String,
    /// How many cores took part.
    pub cores: usize,
    /// How many fp32 values a register of the widest instructions holds.
    pub lanes: u32,
    /// Floating-point operations per second in fp32.
    pub flops: CorePeaks,
    /// From the nearest level to memory.
    pub levels: Vec<LevelBandwidth>,
}

/// What some cores reach.
fn reached(cores: Cores, pair: &CorePeaks) -> f64 {
    match cores {
        Cores::One => pair.one.best,
        Cores::All => pair.all.best,
    }
}

impl LevelBandwidth {
    /// The fastest of its rates.
    pub fn best(&self, cores: Cores) -> f64 {
        let ways = [&self.read, &self.copy, &self.triad];
        ways.map(|pair| reached(cores, pair)).into_iter().fold(0.0, f64::max)
    }

    fn holds(&self, cores: Cores) -> Option<u64> {
        match cores {
            Cores::One => self.holds_one,
            Cores::All => self.holds_all,
        }
    }
}

impl HostRoofline {
    /// Operations per second.
    pub fn flops(&self, cores: Cores) -> f64 {
        reached(cores, &self.flops)
    }

    /// The level that holds this many bytes, if they are reused.
    pub fn level_of(&self, bytes: f64, cores: Cores) -> Option<&LevelBandwidth> {
        let holds =
            |level: &&LevelBandwidth| level.holds(cores).is_none_or(|most| bytes <= most as f64);
        self.levels.iter().find(holds).or(self.levels.last())
    }

    /// The peaks for a call, with the bandwidth of the level that holds its bytes.
    pub fn peaks(&self, demand: CallDemand, cores: Cores) -> DevicePeaks {
        let level = self.level_of(demand.bytes.unwrap_or(f64::MAX), cores);
        DevicePeaks { flops: Some(self.flops(cores)), bytes: level.map(|level| level.best(cores)) }
    }

    /// Whether the median run was so far below the best one that the host must have been busy.
    pub fn was_disturbed(&self) -> bool {
        self.flops.one.spread > DISTURBED
    }

    /// Takes the better figures of another measurement of the same levels.
    fn raised_by(&mut self, other: &Self) {
        let names = |measured: &Self| {
            let names = measured.levels.iter().map(|level| level.level.clone());
            (measured.cores, names.collect::<Vec<_>>())
        };
        if names(self) != names(other) {
            return;
        }
        raise(&mut self.flops, &other.flops);
        for (own, other) in self.levels.iter_mut().zip(&other.levels) {
            raise(&mut own.read, &other.read);
            raise(&mut own.copy, &other.copy);
            raise(&mut own.triad, &other.triad);
        }
    }

    /// Whether all cores were no faster than one, so that the other cores must have been busy.
    pub fn hid_cores(&self) -> bool {
        self.cores > 1 && self.flops.all.best < self.flops.one.best * MORE_THAN_ONE
    }

    /// As a roof. To judge whether a gain is plausible: all cores, where each rate applies from the
    /// size of the level before it. To plot calls: the levels for one core and for all.
    pub fn roof(&self) -> Roof {
        let mut held = 0;
        let mut rates = Vec::new();
        for level in &self.levels {
            let (bytes, per_s) = (held, level.best(Cores::All));
            rates.push(ByteRate { bytes, per_s });
            held = level.holds_all.unwrap_or(held);
        }
        let rate = |level: &LevelBandwidth, cores: Cores| LevelRate {
            per_s: level.best(cores),
            holds: level.holds(cores),
        };
        let levels = self.levels.iter().map(|level| RoofLevel {
            name: level.level.clone(),
            one: rate(level, Cores::One),
            all: rate(level, Cores::All),
        });
        Roof {
            flops: Some(self.flops(Cores::All)),
            rates,
            flops_one: Some(self.flops(Cores::One)),
            levels: levels.collect(),
        }
    }
}

/// Measures this host.
pub fn measure(effort: RooflineEffort, stop: &StopFlag) -> Result<HostRoofline> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let levels = levels(cores);
    let dir = tempfile::tempdir().context(|| "cannot create a temporary directory".into())?;
    let program = compile(dir.path(), stop)?;
    let (runs, ms) = match effort {
        RooflineEffort::Quick => (15, "1"),
        RooflineEffort::Usual => (60, "2"),
    };
    let mut line = vec![program.display().to_string(), cores.min(1024).to_string()];
    line.extend([runs.to_string(), ms.to_owned()]);
    for level in &levels {
        line.extend([level.goes_over_one, level.goes_over_all].map(|n| n.to_string()));
    }
    let command = Command::argv(line, dir.path()).limit(MEASURE_LIMIT);
    let run = process::run(&command, stop)?;
    if !run.exit.success() {
        let why = format!("the program that measures the host failed: {}", run.exit.describe());
        return Err(CommandError::environment(why)
            .cause(safe(run.stderr.text().trim(), 400))
            .hint("free some memory, or try \"karve roofline --quick\""));
    }
    let readings = parse_readings(&run.stdout.text());
    let machine = host::machine();
    let read = HostInfo {
        fingerprint: host::fingerprint(&machine),
        cpu: host::cpu_model().unwrap_or_default(),
        cores,
    };
    put_together(&readings, &levels, read).ok_or_else(|| {
        CommandError::environment("the program that measures the host printed no figures")
            .hint("run \"karve roofline\" again when the host is idle")
    })
}

/// Compiles the program for this host.
fn compile(dir: &Path, stop: &StopFlag) -> Result<PathBuf> {
    let found = COMPILERS.iter().find_map(|name| process::find_program(name));
    let Some(compiler) = found else {
        return Err(CommandError::environment("no C compiler found to measure the host with")
            .hint("install gcc or clang, so that \"cc\" is on the PATH"));
    };
    let (source, program) = (dir.join("cpu.c"), dir.join("cpu"));
    fs::write(&source, PROGRAM).context(|| format!("cannot write {}", source.display()))?;
    let mut why = String::new();
    for native in NATIVE {
        let mut line = vec![compiler.display().to_string()];
        line.extend(["-O3", "-std=c11", "-D_POSIX_C_SOURCE=200809L"].map(str::to_owned));
        line.extend(native.iter().map(|flag| (*flag).to_owned()));
        line.extend(["-o", "cpu", "cpu.c", "-lpthread"].map(str::to_owned));
        let run = process::run(&Command::argv(line, dir).limit(COMPILE_LIMIT), stop)?;
        if run.exit.success() {
            return Ok(program);
        }
        why = run.stderr.text().trim().to_owned();
    }
    let what = format!("{} cannot compile the program that measures the host", compiler.display());
    Err(CommandError::environment(what)
        .cause(safe(&why, 400))
        .hint("check that \"cc\" compiles and links a small program"))
}

/// Facts about the host besides the readings.
struct HostInfo {
    fingerprint: String,
    cpu: String,
    cores: usize,
}

/// Readings by kind, bytes and threads.
#[derive(Debug, Default, PartialEq)]
struct RooflineReadings {
    flops: BTreeMap<usize, Vec<f64>>,
    moved: BTreeMap<(String, u64, usize), Vec<f64>>,
    lanes: u32,
}

/// Reads what the program printed; malformed lines are ignored.
fn parse_readings(text: &str) -> RooflineReadings {
    let rate = |word: &str| {
        let rate = word.parse::<f64>().ok()?;
        (rate > 0.0 && rate < RATE_MAX).then_some(rate)
    };
    let mut readings = RooflineReadings::default();
    for line in text.lines().take(LINES_MAX) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["lanes", n] => readings.lanes = n.parse().unwrap_or(0),
            ["flops", threads, found] => {
                if let (Ok(threads), Some(found)) = (threads.parse(), rate(found)) {
                    readings.flops.entry(threads).or_default().push(found);
                }
            }
            [kind @ ("read" | "copy" | "triad"), bytes, threads, found] => {
                let key = (bytes.parse(), threads.parse());
                if let ((Ok(bytes), Ok(threads)), Some(found)) = (key, rate(found)) {
                    let key = (kind.to_owned(), bytes, threads);
                    readings.moved.entry(key).or_default().push(found);
                }
            }
            _ => {}
        }
    }
    readings
}

fn peak(values: &[f64]) -> Option<Peak> {
    let best = values.iter().copied().reduce(f64::max)?;
    let median = stats::median(values)?;
    Some(Peak { best, spread: (1.0 - median / best).clamp(0.0, 1.0), runs: values.len() })
}

/// All cores together are at least as fast as one; a lower reading was disturbed.
fn pair(one: Option<&Vec<f64>>, all: Option<&Vec<f64>>) -> Option<CorePeaks> {
    let one = peak(one?)?;
    let all = all.and_then(|all| peak(all)).filter(|all| all.best >= one.best);
    Some(CorePeaks { one, all: all.unwrap_or(one) })
}

fn put_together(
    readings: &RooflineReadings,
    levels: &[CacheLevel],
    host: HostInfo,
) -> Option<HostRoofline> {
    let cores = host.cores.min(1024);
    let flops = pair(readings.flops.get(&1), readings.flops.get(&cores))?;
    let mut moved = Vec::new();
    for level in levels {
        let of = |kind: &str| {
            let key = |bytes, threads| (kind.to_owned(), bytes, threads);
            let one = readings.moved.get(&key(level.goes_over_one, 1));
            pair(one, readings.moved.get(&key(level.goes_over_all, cores)))
        };
        moved.push(LevelBandwidth {
            level: level.name.to_owned(),
            holds_one: level.holds_one,
            holds_all: level.holds_all,
            read: of("read")?,
            copy: of("copy")?,
            triad: of("triad")?,
        });
    }
    // A nearer level is never slower; a lower reading was disturbed.
    for index in (1..moved.len()).rev() {
        let (near, far) = moved.split_at_mut(index);
        if let (Some(near), Some(far)) = (near.last_mut(), far.first()) {
            raise(&mut near.read, &far.read);
            raise(&mut near.copy, &far.copy);
            raise(&mut near.triad, &far.triad);
        }
    }
    Some(HostRoofline {
        version: VERSION,
        fingerprint: host.fingerprint,
        cpu: host.cpu,
        cores: host.cores,
        lanes: readings.lanes,
        flops,
        levels: moved,
    })
}

fn raise(near: &mut CorePeaks, far: &CorePeaks) {
    if near.one.best < far.one.best {
        near.one = far.one;
    }
    if near.all.best < far.all.best {
        near.all = far.all;
    }
    if near.all.best < near.one.best {
        near.all = near.one;
    }
}

/// Where the measurements of a host are saved.
fn cache_path() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let dir = match (set("XDG_CACHE_HOME"), set("HOME")) {
        (Some(cache), _) => PathBuf::from(cache),
        (None, Some(home)) => PathBuf::from(home).join(".cache"),
        (None, None) => return None,
    };
    dir.is_absolute().then(|| dir.join("karve/roofline.json"))
}

/// Saves the measurement, merged with any better earlier figures: a busy host lowers no peak.
/// Failing to save it is not an error.
pub fn keep(measured: &HostRoofline) -> Option<PathBuf> {
    let path = cache_path()?;
    fs::create_dir_all(path.parent()?).ok()?;
    let mut best = measured.clone();
    if let Some(earlier) = read_cached() {
        best.raised_by(&earlier);
    }
    let text = serde_json::to_vec_pretty(&best).ok()?;
    files::write_atomic(&path, &text).ok()?;
    Some(path)
}

/// The saved measurement of this host, if the fingerprint still matches.
pub fn read_cached() -> Option<HostRoofline> {
    let text = files::read_text(&cache_path()?, CACHE_BYTES_MAX).ok()?;
    let fingerprint = host::fingerprint(&host::machine());
    parse_cached(&text).filter(|kept| kept.fingerprint == fingerprint)
}

/// The saved measurement, unless one of its figures is impossible.
fn parse_cached(text: &str) -> Option<HostRoofline> {
    let kept: HostRoofline = serde_json::from_str(text).ok()?;
    let usable = |peak: &Peak| peak.best > 0.0 && peak.best < RATE_MAX;
    let both = |pair: &CorePeaks| usable(&pair.one) && usable(&pair.all);
    let level =
        |level: &LevelBandwidth| both(&level.read) && both(&level.copy) && both(&level.triad);
    let sound = both(&kept.flops) && kept.levels.iter().all(level) && !kept.levels.is_empty();
    (kept.version == VERSION && sound).then_some(kept)
}

/// The roof of this host for a campaign, if it was measured before with `karve roofline`.
pub fn measured_roof() -> Option<Roof> {
    read_cached().map(|kept| kept.roof())
}

#[cfg(test)]
mod tests;
