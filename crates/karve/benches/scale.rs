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

use karve::agents::{Agent, Desk, Implementation, Proposal};
use karve::drive::{self, Session};
use karve::error::{Context, Result};
use karve::git::{self, CommitNote, NewFile, Repo};
use karve::process::StopFlag;
use karve::store::{self, CampaignDir, Store};
use karve::ui::{self, Screen, Silent};
use karve::world::{Parts, World};
use karve_core::campaign::{Campaign, Event, ImplementStep, Record, Step, Usage};
use karve_core::charter::{
    Better, Branch, Case, CaseSet, Charter, Commands, Limits, Metric, Mode, Output, Target,
};
use karve_core::hypothesis::{Direction, Hypothesis};
use karve_core::policy::Preset;
use karve_core::strategy::Brief;
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

/// The young campaign is compared from this round on.
const YOUNG_FROM: u32 = 5;
/// Each so many rounds the agent has a gain to offer.
const GAIN_EVERY: u32 = 25;
/// Files of the repository besides the kernel.
const FILES: u32 = 20;

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
    let start = Instant::now();
    let play = Play::start(scratch, "slow", &commands, size.slow_rounds)?;
    let dir = play.finish()?;
    let total = start.elapsed().as_secs_f64();
    // A benchmark command's time is in the log; builds and tests take as long, and count
    // themselves.
    let benches = bench_walls(&store::read(&dir)?.records);
    let others = fs::metadata(&count).map_or(0, |meta| meta.len());
    let waited = benches.iter().sum::<f64>() + others as f64 * median(&benches);
    figures.tell("slow commands", benches.len() as f64 + others as f64, "");
    figures.tell("one of them, median", median(&benches) * 1e3, "ms");
    figures.tell("their campaign", total, "s");
    let own = total - waited;
    figures.tell(
        "karve's own, each round",
        own * 1e3 / f64::from(size.slow_rounds),
        "ms",
    );
    let share = 100.0 * own / total;
    figures.bound("karve's own share", share, "%", SHARE_PERCENT_MAX);
    Ok(())
}

/// Seconds that each benchmark command took.
fn bench_walls(records: &[Record]) -> Vec<f64> {
    let mut walls = Vec::new();
    for record in records {
        match &record.event {
            Event::BaselineMeasured(baseline) => {
                walls.extend(baseline.readings.iter().map(|r| r.sample.wall_us));
            }
            Event::BlockMeasured { block, .. } => {
                for pair in &block.pairs {
                    walls.extend([pair.parent.wall_us, pair.candidate.wall_us]);
                }
            }
            _ => {}
        }
    }
    walls.into_iter().map(|us| us as f64 / 1e6).collect()
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

/// An agent that has an idea for every round and a gain now and then.
#[derive(Debug)]
struct Script;

impl Agent for Script {
    fn propose(&mut self, brief: &Brief, _: &Desk<'_>) -> Result<Proposal> {
        let round = brief.round;
        let directions = Direction::ALL;
        let hypothesis = Hypothesis {
            title: format!("Split the loop of step {round} in two and hoist the load"),
            bottleneck: "memory".into(),
            mechanism: format!(
                "I expect the loads of variant {round} to overlap, because the halves of the loop \
                 do not depend on each other and the compiler cannot see that"
            ),
            expected_ratio: 1.03,
            direction: directions[round as usize % directions.len()],
            high_risk: false,
            files: vec!["kernel.c".into()],
            counters: vec!["loads per cycle".into()],
            gate: None,
            config: BTreeMap::new(),
            question: None,
        };
        Ok(Proposal::Stated(Box::new(hypothesis), Usage::default()))
    }

    fn implement(&mut self, step: &ImplementStep, desk: &Desk<'_>) -> Result<Implementation> {
        let gain = if step.round.is_multiple_of(GAIN_EVERY) {
            1.05
        } else {
            1.0
        };
        let time_us = 100.0 / (step.brief.cumulative_ratio * gain);
        let path = desk.tree.join("kernel.c");
        fs::write(&path, kernel(time_us, step.round))
            .context(|| format!("cannot write {}", path.display()))?;
        Ok(Implementation::Done {
            summary: "split the loop".into(),
            usage: Usage::default(),
        })
    }

    fn reads_worktree(&self) -> bool {
        false
    }
}

/// A kernel that says itself how fast it is.
fn kernel(time_us: f64, round: u32) -> String {
    format!(
        "// METRIC time_us={time_us:.9}\n\
         // round {round}\n\
         void kernel(int n, const float *a, const float *b, float *c) {{\n\
         \x20   for (int i = 0; i < n; i++) c[i] += a[i] * b[i];\n\
         }}\n"
    )
}

fn repository(path: &Path) -> Result<Repo> {
    let file = |path: String, text: String| NewFile {
        path,
        bytes: text.into_bytes(),
        executable: false,
    };
    let mut files = vec![file("kernel.c".into(), kernel(100.0, 0))];
    files.extend((0..FILES).map(|n| file(format!("src/part-{n}.c"), format!("int part_{n};\n"))));
    let note = CommitNote {
        message: "A kernel\n",
        date: 1_700_000_000,
    };
    git::init_with(path, &files, &note).map(|(repo, _)| repo)
}

/// Commands that start no process but the shell; the test notices the planted faults.
fn cheap_commands() -> Commands {
    Commands {
        build: Some(":".into()),
        test: "while read -r line; do case $line in *'+='*) exit 0;; esac; done < kernel.c; exit 1"
            .into(),
        bench: "read -r _ line < kernel.c; echo \"$line\"".into(),
        ..Commands::default()
    }
}

/// The same commands, each 100 ms slower; builds and tests count themselves.
fn slowed(cheap: &Commands, count: &Path) -> Commands {
    let counted = |line: &str| format!("printf x >> '{}'; sleep 0.1; {line}", count.display());
    Commands {
        build: cheap.build.as_deref().map(counted),
        test: counted(&cheap.test),
        bench: format!("sleep 0.1; {}", cheap.bench),
        ..Commands::default()
    }
}

fn charter(name: &str, commands: &Commands, rounds: u32) -> Charter {
    Charter {
        name: name.into(),
        created: "2026-01-01 00:00".into(),
        target: Target {
            op: "multiply-add".into(),
            backend: "c".into(),
            language: "c".into(),
            device: "cpu".into(),
            ..Target::default()
        },
        mode: Mode::Repo,
        granted: vec!["kernel.c".into()],
        commands: commands.clone(),
        output: Output {
            format: "metric".into(),
            from_file: false,
            case_column: None,
            check_column: None,
            label: None,
        },
        metric: Metric {
            name: "time_us".into(),
            unit: "us".into(),
            better: Better::Lower,
            ..Metric::default()
        },
        cases: vec![Case {
            name: "one".into(),
            params: BTreeMap::new(),
            set: CaseSet::Full,
            minor: false,
            halve: None,
        }],
        policy: Preset::Strict.policy(),
        limits: Limits {
            rounds,
            wall_s: None,
            command_s: 60,
            agent_s: 60,
            duel_s: 600,
            agent_usd: None,
            final_blocks: 10,
        },
        agent: "script".into(),
        knobs: Vec::new(),
        branch: Branch::Named {
            name: format!("optimize/{name}"),
        },
        workdir: String::new(),
        seed: 1,
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
