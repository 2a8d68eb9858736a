//! The scale benchmark: does a campaign stay as cheap as it began, and does karve stay out of the
//! way?
//!
//! `cargo bench --bench scale` drives 1,000 rounds through the real loop, store and git with
//! a scripted agent and commands that do next to nothing, so that nearly all of a round is karve's
//! own. Then an old and a young campaign run rounds interleaved: what the machine does
//! meanwhile hits both alike. At last a campaign whose commands take 100 ms each says what share
//! of it is karve's own. The exit code is 1 if a bound is missed.
//!
//! `cargo bench --bench scale -- --quick` does the same with fewer rounds, and only shows the
//! share: a campaign of a few rounds is mostly its start. `-- --pages` measures the pages of 1,000
//! rounds on 8 cases instead (`-- --pages --quick`: of 200): their size, how soon they open, in a
//! Chromium too where there is one, how smoothly they scroll, and how soon 20 of them are told of
//! a change. That campaign is made up, not played: its readings are, and karve's decisions are not.

#[path = "scale/made_up.rs"]
mod made_up;
#[path = "scale/pages.rs"]
mod pages;
#[path = "scale/stage.rs"]
mod stage;

use karve::drive::CampaignSession;
use karve::publish::Publisher;
use karve::steps::{Context, ContextParts};
use karve::ui::{Screen, SilentScreen};
use karve::{drive, ui};
use karve_core::campaign::{Campaign, Event, Record, Step};
use karve_core::charter::Charter;
use karve_core::measurement::Sample;
use karve_harness::git::Repo;
use karve_harness::store::{self, CampaignDir, Store};
use karve_os::device::NoticeSink;
use karve_os::error::{Result, WithContext as _};
use karve_os::process::StopFlag;
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
/// Cases of the campaign with slow commands.
const CASES: usize = 3;
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
    /// The most that karve's own share may be; a short campaign shows too much of its start.
    share_percent_max: Option<f64>,
}

const WHOLE: Size =
    Size { rounds: 1_000, window: 50, slow_rounds: 16, share_percent_max: Some(SHARE_PERCENT_MAX) };

const QUICK: Size = Size { rounds: 200, window: 30, slow_rounds: 8, share_percent_max: None };

fn main() -> ExitCode {
    let given = |flag: &str| std::env::args().any(|arg| arg == flag);
    let size = if given("--quick") { &QUICK } else { &WHOLE };
    match if given("--pages") { measure_pages(size) } else { measure(size) } {
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

/// The same for pages.
fn measure_pages(size: &Size) -> Result<bool> {
    let scratch = tempfile::tempdir().context(|| "cannot make a scratch directory".into())?;
    let mut figures = Figures::default();
    pages::measure(size, scratch.path(), &mut figures)?;
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
        ui::outln(&format!("{what:<44} {value:>10.3} {unit:<6} <= {most}: {verdict}"));
    }
}

/// Cost per round, early and late, and the replay of the log.
fn long_campaign(size: &Size, scratch: &Path, figures: &mut Figures) -> Result<()> {
    let commands = cheap_commands();
    let start = |name: &str| {
        let repo = repository(&scratch.join(name))?;
        Play::start(repo, charter(name, &commands, size.rounds, 1))
    };
    let mut old = start("old")?;
    let begun = Instant::now();
    for _ in 0..size.rounds - size.window {
        old.round()?;
    }
    figures.tell(
        "rounds before the comparison, each",
        begun.elapsed().as_secs_f64() * 1e3 / f64::from(size.rounds - size.window),
        "ms",
    );
    let mut young = start("young")?;
    for _ in 1..YOUNG_FROM {
        young.round()?;
    }
    let (mut early, mut late) = (Vec::new(), Vec::new());
    for _ in 0..size.window {
        early.push(young.round()?);
        late.push(old.round()?);
    }
    young.steps.print("round", YOUNG_FROM, size.window);
    old.steps.print("round", size.rounds - size.window + 1, size.window);
    let (early, late) = (median(&early), median(&late));
    figures.tell("an early round, median", early * 1e3, "ms");
    figures.tell("a late round, median", late * 1e3, "ms");
    figures.bound("late / early", late / early, "", GROWTH_MAX);
    let dir = old.finish()?;
    young.session.context.clean_up()?;
    let begun = Instant::now();
    let loaded = store::read(&dir)?;
    let replay_s = begun.elapsed().as_secs_f64();
    figures.tell("events", loaded.records.len() as f64, "");
    figures.tell("rounds", loaded.campaign.rounds().len() as f64, "");
    figures.tell("kept", loaded.campaign.lineage().kept().len() as f64, "");
    figures.bound("replay of the log", replay_s, "s", REPLAY_S_MAX);
    Ok(())
}

/// karve's own share of a campaign whose commands take 100 ms each: all that is not waiting for
/// them, from taking the lock to removing the last worktree. A kernel is judged on a few cases;
/// with a single one a round cannot have fewer commands.
fn slow_commands(size: &Size, scratch: &Path, figures: &mut Figures) -> Result<()> {
    for n_cases in [1, CASES] {
        slow_campaign(size, n_cases, scratch, figures)?;
    }
    Ok(())
}

fn slow_campaign(size: &Size, n_cases: usize, scratch: &Path, figures: &mut Figures) -> Result<()> {
    let share = Share::of(scratch, n_cases, size.slow_rounds)?;
    figures.tell("cases", n_cases as f64, "");
    figures.tell("CPU that others used", share.busy_percent, "%");
    figures.tell("slow commands", share.n_commands, "");
    figures.tell("one of them, mean", share.command_ms, "ms");
    figures.tell("their campaign", share.total_s, "s");
    figures.tell("karve's own, each round", share.own_ms, "ms");
    figures.tell("karve's own CPU, each round", share.own_cpu_ms, "ms");
    match size.share_percent_max {
        Some(most) => figures.bound("karve's own share", share.percent, share.unit(), most),
        None => figures.tell("karve's own share", share.percent, share.unit()),
    }
    Ok(())
}

/// What a campaign with slow commands took, and how much of it was karve.
struct Share {
    total_s: f64,
    n_commands: f64,
    command_ms: f64,
    own_ms: f64,
    own_cpu_ms: f64,
    busy_percent: f64,
    percent: f64,
}

impl Share {
    fn of(scratch: &Path, n_cases: usize, rounds: u32) -> Result<Self> {
        let name = format!("slow-{n_cases}");
        let count = scratch.join(format!("{name}-commands"));
        let repo = repository(&scratch.join(&name))?;
        let commands = slowed(&cheap_commands(), &count);
        let (begun, cpu_before) = (Instant::now(), Cpu::now());
        let dir = Play::start(repo, charter(&name, &commands, rounds, n_cases))?.finish()?;
        let total_s = begun.elapsed().as_secs_f64();
        let cpu = Cpu::now().since(&cpu_before);
        // A benchmark command's time is in the log; builds and tests take as long, and count
        // themselves.
        let samples = bench_samples(&store::read(&dir)?.records);
        let others = fs::metadata(&count).map_or(0, |meta| meta.len()) as f64;
        let spent = |us: fn(&Sample) -> u64| -> f64 {
            let each: Vec<f64> = samples.iter().map(|s| us(s) as f64 / 1e6).collect();
            each.iter().sum::<f64>() + others * median(&each)
        };
        let waited = spent(|sample| sample.wall_us);
        let own_cpu = cpu.own - spent(|sample| sample.cpu_us);
        let busy_percent = 100.0 * (cpu.all - cpu.own) / (cpu.all + cpu.idle);
        let n_commands = samples.len() as f64 + others;
        let is_busy = busy_percent > BUSY_PERCENT_MAX;
        let own = if is_busy { own_cpu } else { total_s - waited };
        Ok(Self {
            total_s,
            n_commands,
            command_ms: waited * 1e3 / n_commands,
            own_ms: (total_s - waited) * 1e3 / f64::from(rounds),
            own_cpu_ms: own_cpu * 1e3 / f64::from(rounds),
            busy_percent,
            percent: 100.0 * own / total_s,
        })
    }

    /// By the clock; or by CPU time, where others keep the machine busy: waiting for them is not
    /// karve's own, and the clock cannot tell it apart.
    fn unit(&self) -> &'static str {
        if self.busy_percent > BUSY_PERCENT_MAX { "% CPU" } else { "%" }
    }
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
        Self { own: sum(&process, 0, 4), all: sum(&machine, 0, 8) - idle, idle }
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
    session: CampaignSession,
    dir: CampaignDir,
    steps: Steps,
}

impl Play {
    fn start(repo: Repo, charter: Charter) -> Result<Self> {
        let name = charter.name.clone();
        let root = repo.root().with_extension("campaigns");
        let dir = CampaignDir::new(&root, &name);
        let (store, loaded) = Store::open(&dir, "the scale benchmark")?;
        let context = Context::new(ContextParts {
            remote: None,
            upstream: repo,
            dir: dir.clone(),
            agent: Box::new(Script),
            stop: StopFlag::new(),
            charter,
            notices: NoticeSink::default(),
            secrets: karve_agents::config::secrets_of(&BTreeMap::new()),
        })?;
        let session = CampaignSession {
            campaign: loaded.campaign,
            context,
            store,
            publisher: Publisher::new(dir.clone(), &loaded.records),
            stop: StopFlag::new(),
        };
        Ok(Self { session, dir, steps: Steps::default() })
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
        drive::drive(&mut self.session, &mut SilentScreen)?;
        self.session.context.clean_up()?;
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
        ui::outln(&format!("{what} {from} to {last}, ms: {}", parts.join(", ")));
    }
}

impl Screen for Steps {
    fn starts(&mut self, _: &Campaign, step: &Step) {
        self.begun = Some((step.name(), Instant::now()));
    }

    fn saw(&mut self, campaign: &Campaign, record: &Record) {
        let over = matches!(record.event, Event::Learned { .. });
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
    karve_numerics::stats::median(values).unwrap_or(f64::NAN)
}

/// The most memory this process ever had.
fn memory_mib() -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    kib.map_or(f64::NAN, |kib| kib / 1_024.0)
}
