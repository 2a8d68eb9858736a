//! The scale benchmark: does a campaign stay as cheap as it began, and does karve stay out of the
//! way?
//!
//! `cargo bench --bench scale` drives 1,000 rounds through the real loop, store and git with
//! a scripted agent and commands that do next to nothing, so that nearly all of a round is karve's
//! own. Then an old and a young campaign run a round each by turns: what the machine does
//! meanwhile hits both alike. At last a campaign whose commands take 100 ms each says what share
//! of it is karve's own. The exit code is 1 if a bound is missed.
//!
//! `cargo bench --bench scale -- --quick` does the same with fewer rounds.

#[path = "scale/stage.rs"]
mod stage;

use karve::drive::{self, Session};
use karve::error::{Context, Result};
use karve::process::StopFlag;
use karve::store::{self, CampaignDir, Store};
use karve::ui::{self, Screen, Silent};
use karve::world::{Parts, World};
use karve_core::campaign::{Campaign, Event, Record, Step};
use karve_core::charter::Commands;
use karve_core::measurement::Sample;
use stage::{Script, charter, cheap_commands, repository, slowed};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// How much more a late round may cost than an early one.
const GROWTH_MAX: f64 = 1.2;
/// Memory at most, over the whole benchmark.
const MEMORY_MIB_MAX: f64 = 200.0;
/// Reading the log of a long campaign at most.
const REPLAY_S_MAX: f64 = 1.0;
/// karve's own share of a campaign with commands of 100 ms.
const SHARE_PERCENT_MAX: f64 = 2.0;
/// If others use more of the machine than this, the clock says little about karve.
const BUSY_PERCENT_MAX: f64 = 15.0;
/// The unit of CPU times in /proc on every Linux that Rust supports.
const TICKS_PER_S: f64 = 100.0;

/// The young campaign is compared from this round on.
const YOUNG_FROM: u32 = 5;
/// How much is measured.
struct Size {
    /// Rounds of the long campaign.
    rounds: u32,
    /// Rounds that are compared, at the end of the long campaign and at the start of a young one.
    window: u32,
    /// Rounds of the campaign with slow commands.
    slow_rounds: u32,
}

const WHOLE: Size = Size {
    rounds: 1_000,
    window: 50,
    slow_rounds: 20,
};

const QUICK: Size = Size {
    rounds: 200,
    window: 30,
    slow_rounds: 6,
};

fn main() -> ExitCode {
    let size = if std::env::args().any(|arg| arg == "--quick") {
        QUICK
    } else {
        WHOLE
    };
    match measure(&size) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            ui::note(&error.to_string());
            ExitCode::from(error.kind.exit_code())
        }
    }
}

/// Measures everything and says whether all bounds hold.
fn measure(size: &Size) -> Result<bool> {
    let start = Instant::now();
    let scratch = tempfile::tempdir().context(|| "cannot make a scratch directory".into())?;
    let mut figures = Figures::default();
    long_campaign(size, scratch.path(), &mut figures)?;
    slow_commands(size, scratch.path(), &mut figures)?;
    figures.bound("memory, peak", memory_mib(), "MiB", MEMORY_MIB_MAX);
    figures.tell("the benchmark took", start.elapsed().as_secs_f64(), "s");
    Ok(figures.held)
}

/// Figures with their bounds, printed as they come.
struct Figures {
    held: bool,
}

impl Default for Figures {
    fn default() -> Self {
        Self { held: true }
    }
}

impl Figures {
    fn tell(&self, what: &str, value: f64, unit: &str) {
        ui::outln(&format!("{what:<44} {value:>10.3} {unit}"));
    }

    fn bound(&mut self, what: &str, value: f64, unit: &str, most: f64) {
        let holds = value <= most;
        self.held &= holds;
        let verdict = if holds { "ok" } else { "MISSED" };
        ui::outln(&format!(
            "{what:<44} {value:>10.3} {unit:<6} <= {most}: {verdict}"
        ));
    }
}

/// Cost per round, early and late, and the replay of the log.
fn long_campaign(size: &Size, scratch: &Path, figures: &mut Figures) -> Result<()> {
    let commands = cheap_commands();
    let mut old = Play::start(scratch, "old", &commands, size.rounds)?;
    let start = Instant::now();
    for _ in 0..size.rounds - size.window {
        old.round()?;
    }
    figures.tell(
        "rounds before the comparison, each",
        start.elapsed().as_secs_f64() * 1e3 / f64::from(size.rounds - size.window),
        "ms",
    );
    let mut young = Play::start(scratch, "young", &commands, size.rounds)?;
    for _ in 1..YOUNG_FROM {
        young.round()?;
    }
    let (mut early, mut late) = (Vec::new(), Vec::new());
    for _ in 0..size.window {
        early.push(young.round()?);
        late.push(old.round()?);
    }
    young.steps.print("round", YOUNG_FROM, size.window);
    old.steps
        .print("round", size.rounds - size.window + 1, size.window);
    let (early, late) = (median(&early), median(&late));
    figures.tell("an early round, median", early * 1e3, "ms");
    figures.tell("a late round, median", late * 1e3, "ms");
    figures.bound("late / early", late / early, "", GROWTH_MAX);
    let dir = old.finish()?;
    young.session.world.clean_up()?;
    let start = Instant::now();
    let loaded = store::read(&dir)?;
    let replay_s = start.elapsed().as_secs_f64();
    figures.tell("events", loaded.records.len() as f64, "");
    figures.tell("rounds", loaded.campaign.rounds().len() as f64, "");
    figures.tell("kept", loaded.campaign.lineage().kept().len() as f64, "");
    figures.bound("replay of the log", replay_s, "s", REPLAY_S_MAX);
    Ok(())
}

/// karve's own share of a campaign whose commands take 100 ms each: all that is not waiting for
/// them, from taking the lock to removing the last worktree.
fn slow_commands(size: &Size, scratch: &Path, figures: &mut Figures) -> Result<()> {
    let count = scratch.join("commands");
    let commands = slowed(&cheap_commands(), &count);
    let (start, cpu_before) = (Instant::now(), Cpu::now());
    let play = Play::start(scratch, "slow", &commands, size.slow_rounds)?;
    let dir = play.finish()?;
    let (total, cpu) = (start.elapsed().as_secs_f64(), Cpu::now().since(&cpu_before));
    // A benchmark command's time is in the log; builds and tests take as long, and count
    // themselves.
    let samples = bench_samples(&store::read(&dir)?.records);
    let others = fs::metadata(&count).map_or(0, |meta| meta.len()) as f64;
    let spent = |us: fn(&Sample) -> u64| -> f64 {
        let each: Vec<f64> = samples.iter().map(|s| us(s) as f64 / 1e6).collect();
        each.iter().sum::<f64>() + others * median(&each)
    };
    let n_commands = samples.len() as f64 + others;
    let waited = spent(|sample| sample.wall_us);
    figures.tell("slow commands", n_commands, "");
    figures.tell("one of them, mean", waited * 1e3 / n_commands, "ms");
    figures.tell("their campaign", total, "s");
    let per_round = 1e3 / f64::from(size.slow_rounds);
    let own = total - waited;
    let own_cpu = cpu.own - spent(|sample| sample.cpu_us);
    figures.tell("karve's own, each round", own * per_round, "ms");
    figures.tell("karve's own CPU, each round", own_cpu * per_round, "ms");
    let busy = 100.0 * (cpu.all - cpu.own) / (cpu.all + cpu.idle);
    figures.tell("CPU that others used", busy, "%");
    let (what, own) = if busy > BUSY_PERCENT_MAX {
        // Waiting for a busy machine is not karve's own, and the clock cannot tell it apart.
        ("karve's own share, by CPU: others are busy", own_cpu)
    } else {
        ("karve's own share", own)
    };
    figures.bound(what, 100.0 * own / total, "%", SHARE_PERCENT_MAX);
    Ok(())
}

/// Every sample of a campaign: one for each run of the benchmark command.
fn bench_samples(records: &[Record]) -> Vec<Sample> {
    let mut samples = Vec::new();
    for record in records {
        match &record.event {
            Event::BaselineMeasured(baseline) => {
                samples.extend(baseline.readings.iter().map(|reading| reading.sample));
            }
            Event::BlockMeasured { block, .. } => {
                for pair in &block.pairs {
                    samples.extend([pair.parent, pair.candidate]);
                }
            }
            _ => {}
        }
    }
    samples
}

/// Seconds of CPU time that were used up to some moment.
struct Cpu {
    /// By this process and the processes it waited for.
    own: f64,
    /// By everything on the machine.
    all: f64,
    /// By nothing.
    idle: f64,
}

impl Cpu {
    fn now() -> Self {
        let numbers = |path: &str, skip: usize| -> Vec<f64> {
            let text = fs::read_to_string(path).unwrap_or_default();
            let line = text.lines().next().unwrap_or_default().to_owned();
            let words = line.split_whitespace().skip(skip);
            words.map(|word| word.parse().unwrap_or(0.0)).collect()
        };
        // The fields are those of proc(5), in ticks: user, nice, system, idle, waiting for disks,
        // interrupts twice, stolen; and of one process user and system, own and of its children.
        let machine = numbers("/proc/stat", 1);
        let process = numbers("/proc/self/stat", 13);
        let sum = |numbers: &[f64], from: usize, to: usize| -> f64 {
            numbers.iter().take(to).skip(from).sum::<f64>() / TICKS_PER_S
        };
        let idle = sum(&machine, 3, 5);
        Self {
            own: sum(&process, 0, 4),
            all: sum(&machine, 0, 8) - idle,
            idle,
        }
    }

    fn since(&self, before: &Self) -> Self {
        Self {
            own: self.own - before.own,
            all: self.all - before.all,
            idle: self.idle - before.idle,
        }
    }
}

/// A campaign in a repository of its own.
struct Play {
    session: Session,
    dir: CampaignDir,
    steps: Steps,
}

impl Play {
    fn start(scratch: &Path, name: &str, commands: &Commands, rounds: u32) -> Result<Self> {
        let repo = repository(&scratch.join(name))?;
        let charter = charter(name, commands, rounds);
        let dir = CampaignDir::new(&scratch.join(format!("{name}-campaigns")), name);
        let (store, loaded) = Store::open(&dir, "the scale benchmark")?;
        let world = World::new(Parts {
            upstream: repo,
            dir: dir.clone(),
            agent: Box::new(Script),
            stop: StopFlag::new(),
            charter,
        })?;
        let session = Session {
            campaign: loaded.campaign,
            world,
            store,
            stop: StopFlag::new(),
        };
        Ok(Self {
            session,
            dir,
            steps: Steps::default(),
        })
    }

    /// Runs to the end of the next round and gives what that took, in seconds.
    fn round(&mut self) -> Result<f64> {
        self.session.stop = StopFlag::new();
        self.steps.stop = Some(self.session.stop.clone());
        let start = Instant::now();
        drive::drive(&mut self.session, &mut self.steps)?;
        Ok(start.elapsed().as_secs_f64())
    }

    /// Runs the rest.
    fn finish(mut self) -> Result<CampaignDir> {
        self.session.stop = StopFlag::new();
        drive::drive(&mut self.session, &mut Silent)?;
        self.session.world.clean_up()?;
        Ok(self.dir)
    }
}

/// Sums up the time of each kind of step, and stops the drive after each round.
#[derive(Default)]
struct Steps {
    stop: Option<StopFlag>,
    begun: Option<(&'static str, Instant)>,
    /// By round and by name of the step.
    spent: BTreeMap<(u32, &'static str), Duration>,
}

impl Steps {
    /// The mean of each step in some rounds, the time to store and publish included.
    fn print(&self, what: &str, from: u32, n_rounds: u32) {
        let mut sums: BTreeMap<&str, Duration> = BTreeMap::new();
        for ((_, name), time) in self.spent.range((from, "")..(from + n_rounds, "")) {
            *sums.entry(name).or_default() += *time;
        }
        let parts: Vec<String> = sums
            .iter()
            .map(|(name, time)| {
                let ms = time.as_secs_f64() * 1e3 / f64::from(n_rounds);
                format!("{name} {ms:.1}")
            })
            .collect();
        let last = from + n_rounds - 1;
        ui::outln(&format!(
            "{what} {from} to {last}, ms: {}",
            parts.join(", ")
        ));
    }
}

impl Screen for Steps {
    fn starts(&mut self, _: &Campaign, step: &Step) {
        self.begun = Some((step.name(), Instant::now()));
    }

    fn saw(&mut self, campaign: &Campaign, record: &Record) {
        let over = matches!(record.event, Event::Learnt { .. });
        let settled = u32::try_from(campaign.rounds().len()).unwrap_or(u32::MAX);
        let round = if over { settled } else { settled + 1 };
        if let Some((name, begun)) = self.begun.take() {
            *self.spent.entry((round, name)).or_default() += begun.elapsed();
        }
        if let (true, Some(stop)) = (over, &self.stop) {
            stop.request();
        }
    }
}

fn median(values: &[f64]) -> f64 {
    karve_core::stats::median(values).unwrap_or(f64::NAN)
}

/// The most memory this process ever had.
fn memory_mib() -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    kib.map_or(f64::NAN, |kib| kib / 1_024.0)
}
