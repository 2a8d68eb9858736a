//! `karve bench`: is B faster than A? For revisions, worktrees and plain commands.

use crate::bench::command_args::{PlainCommandArgs, parse_alpha, parse_effect, parse_percent};
use crate::bench::contract::HarnessSide;
use crate::bench::record::{BenchEnd, BenchRecord};
use crate::bench::repeat::RepeatedBench;
use crate::bench::sides::{BenchSetup, ConfinementChoice, SideOptions, SideTests};
use crate::bench::view::BenchView;
use crate::bench::{BenchPlan, baselines, plot, sides, text};
use crate::project::ProjectArgs;
use crate::ui::Progress;
use crate::{bench, session, ui};
use karve_core::bench::{BenchGoal, BenchRule};
use karve_core::verdict::{BenchFinding, LimitVerdict};
use karve_numerics::search::budget::parse_time;
use karve_os::error::{CommandError, ErrorKind, Result};
use karve_os::process::StopFlag;
use std::path::PathBuf;
use std::time::Duration;

/// Compare two revisions, worktrees or commands: faster, slower, no difference, or could not tell
///
/// Runs of A and B are interleaved, in a random order for each pair, until the signs of the pairs
/// prove something. It is safe to check after every pair: equal sides are reported as different at
/// most once in 1/alpha benches, however noisy the host is.
///
/// A revision is built in a scratch worktree. A directory is a worktree of the project: karve
/// builds its HEAD plus its changes to the editable files, as "karve check" does; your checkout
/// is not touched. Both sides must have the same read-only files and must pass their tests.
/// Commands after "--" need neither git nor karve.toml; they run with "sh -c" in this directory.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  karve bench main .                           the worktree against main
  karve bench v1.2 HEAD --markdown             a table for a pull request
  karve bench --baselines                      the worktree against [baselines] of karve.toml
  karve bench -- ./old ./new                   two commands
  karve bench --sandbox -- ./old ./new         no network, and your own files hidden
  karve bench --case size=64 --case size=256 -- './old {size}' './new {size}'
  karve bench --metric time_ms -- ./old ./new  a number that the commands print (METRIC time_ms=…)
  karve bench main . --fail-if-slower 2%       for scripts
  karve bench HEAD HEAD --repeat 100           how often equal sides are found different
  karve bench main . --save bench.json --svg plots; karve bench --load bench.json --json

Findings:
  faster, slower   proven: more than 1% by the signs, and at least --min-effect by the estimate
  no difference    proven: less than --min-effect either way
  could not tell   nothing proven within --pairs and --time
  clocks disagree  wall time and CPU time differ by more than 5%, and not only in magnitude

Exit codes: 0 whatever the finding; 1 with --fail-if-slower if a larger slowdown is proven, and
with --fail-unless-faster if B was not found faster (with --baselines: than the fastest correct
one); 2 usage, or sides that cannot be compared;
3 a side does not build, fails its tests or cannot be measured; 130 stopped by the user.")]
pub struct BenchArgs {
    /// Run it on this remote, with the files of this checkout; see `karve remote`
    #[arg(long, value_name = "NAME")]
    pub(super) on: Option<String>,
    /// A and B: revisions, or directories of worktrees such as "."
    #[arg(value_name = "A B", num_args = 0..=2)]
    sides: Vec<String>,
    /// Compare this worktree, or one side, with every baseline of [baselines] in karve.toml
    #[arg(long, conflicts_with_all = ["commands", "load", "save", "svg", "repeat"])]
    baselines: bool,
    /// Two commands to compare instead
    #[arg(last = true, value_name = "COMMANDS")]
    commands: Vec<String>,
    #[command(flatten)]
    given: PlainCommandArgs,
    /// The smallest difference that counts, 1% or more
    #[arg(long, value_name = "SHARE", default_value = "2%", value_parser = parse_effect)]
    min_effect: f64,
    /// How often equal sides may be reported as different
    #[arg(long, value_name = "P", default_value = "0.001", value_parser = parse_alpha)]
    alpha: f64,
    /// Maximum number of pairs for each case
    #[arg(long, value_name = "N", default_value_t = 400,
          value_parser = clap::value_parser!(u32).range(8..=1000))]
    pairs: u32,
    /// Maximum time for each case
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = parse_time)]
    time: Duration,
    /// Continue until every case has its own finding, not only all of them together
    #[arg(long)]
    every_case: bool,
    /// Use this side's read-only files for both, where they differ
    #[arg(long, value_name = "SIDE", value_enum)]
    harness: Option<HarnessSide>,
    /// Sandbox both sides like candidates in a campaign
    #[arg(long, conflicts_with = "load")]
    sandbox: bool,
    /// Do not run the project's tests first
    #[arg(long)]
    no_test: bool,
    /// Exit with 1 if B is proven slower by more than this, at the same error rate as a finding
    #[arg(long, value_name = "SHARE", value_parser = parse_percent)]
    fail_if_slower: Option<f64>,
    /// Exit with 1 unless B was found faster
    #[arg(long)]
    fail_unless_faster: bool,
    /// Decide this many times, and count the findings: how far this host and rule can be trusted
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=10_000),
          conflicts_with_all = ["save", "load", "svg", "markdown", "fail_if_slower",
                                "fail_unless_faster"])]
    repeat: Option<u32>,
    /// Write every reading to a file
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Judge a saved bench again, without running anything
    #[arg(long, value_name = "FILE", conflicts_with_all = [
        "sides", "commands", "save", "min_effect", "alpha", "pairs", "time", "every_case", "clocks"
    ])]
    load: Option<PathBuf>,
    /// Write the plots evidence.svg and ratios.svg into a directory
    #[arg(long, value_name = "DIR")]
    svg: Option<PathBuf>,
    /// Print JSON
    #[arg(long, conflicts_with = "markdown")]
    json: bool,
    /// Print Markdown
    #[arg(long)]
    markdown: bool,
}

impl BenchArgs {
    /// Runs the command.
    pub fn run(&self, place: &ProjectArgs) -> Result<()> {
        if let Some(n) = self.repeat {
            return self.decide_repeatedly(place, n);
        }
        if self.baselines {
            return self.against_baselines(place);
        }
        let mut recorded = match &self.load {
            Some(path) => BenchRecord::load(path)?,
            None => self.measure(place)?,
        };
        if self.load.is_some() && self.fail_if_slower.is_some() {
            recorded.rule.limit_ln = self.limit_ln();
        }
        if let Some(path) = &self.save {
            recorded.save(path)?;
        }
        if let Some(dir) = &self.svg {
            plot::write(&recorded, dir)?;
        }
        let view = BenchView::of(&recorded)?;
        if self.json {
            ui::out_json(&view);
        } else if self.markdown {
            ui::out(&text::render_markdown(&view));
        } else {
            ui::out_toned(&text::render_text(&view, ui::style::color()));
        }
        self.answer(&view)
    }

    /// Measures one side against every baseline of the project.
    fn against_baselines(&self, place: &ProjectArgs) -> Result<()> {
        let side = match &self.sides[..] {
            [] => ".",
            [side] => side,
            _ => {
                return Err(CommandError::usage(
                    "--baselines compares one side with the baselines",
                )
                .hint("name one revision or directory, as in \"karve bench --baselines main\""));
            }
        };
        let stop = StopFlag::new();
        session::watch_signals_at_once(&stop, "stopping; showing the results so far")?;
        let progress = Progress::new();
        let mut ground = self.ground_of([side, side], place, &stop, &progress)?;
        let plan = self.plan(&ground);
        let say = |text: &str| progress.start_phase(text);
        let found = baselines::measure(&mut ground, plan, &stop, &say);
        let found = session::unless_stopped(&stop, found)?;
        drop(progress);
        if self.json {
            ui::out_json(&found);
        } else if self.markdown {
            ui::out(&found.render_markdown());
        } else {
            ui::out(&found.render_text());
        }
        if stop.finish_step() {
            return Err(session::stopped());
        }
        match found.deciding() {
            Some(view) => self.answer(view),
            None if self.fail_unless_faster => {
                let message = format!("it was not found faster: {}", found.words());
                Err(CommandError::new(ErrorKind::Negative, message)
                    .hint("correct one of [baselines] in karve.toml"))
            }
            None => Ok(()),
        }
    }

    fn measure(&self, place: &ProjectArgs) -> Result<BenchRecord> {
        let stop = StopFlag::new();
        session::watch_signals_at_once(&stop, "stopping; showing the results so far")?;
        session::unless_stopped(&stop, self.measure_until(place, &stop))
    }

    /// Decides many times, and shows how often it found what.
    fn decide_repeatedly(&self, place: &ProjectArgs, n: u32) -> Result<()> {
        let stop = StopFlag::new();
        session::watch_signals_at_once(&stop, "stopping; showing the results so far")?;
        let mut progress = Progress::new();
        let ground = self.ground(place, &stop, &progress)?;
        let plan = self.plan(&ground);
        progress.start_phase("deciding");
        let mut found = RepeatedBench::default();
        for at in 1..=n {
            let recorded = bench::run(&ground, plan, &stop, &mut |_| {})?;
            if stop.finish_step() {
                break;
            }
            found.add(&BenchView::of(&recorded)?);
            progress.at(|| format!("{at} of {n} times"));
        }
        drop(progress);
        match self.json {
            true => ui::out_json(&found),
            false => ui::out(&found.describe()),
        }
        if stop.finish_step() { Err(session::stopped()) } else { Ok(()) }
    }

    fn measure_until(&self, place: &ProjectArgs, stop: &StopFlag) -> Result<BenchRecord> {
        let mut progress = Progress::new();
        let ground = self.ground(place, stop, &progress)?;
        let plan = self.plan(&ground);
        progress.start_phase("warming up");
        bench::run(&ground, plan, stop, &mut |bench| {
            if bench.n_blocks() == 0 {
                return;
            }
            progress.at(|| {
                let signs = &bench.main().overall;
                format!(
                    "pair {} of at most {}: ratio {}, evidence faster {}, slower {}, same {}",
                    bench.n_blocks(),
                    bench.rule.blocks_max,
                    signs.estimate().describe(),
                    text::count(signs.faster.max()),
                    text::count(signs.slower.max()),
                    text::count(signs.same()),
                )
            });
        })
    }

    fn plan(&self, ground: &BenchSetup) -> BenchPlan {
        let cases = u32::try_from(ground.cases.len()).unwrap_or(u32::MAX);
        BenchPlan {
            rule: BenchRule {
                effect_ln: self.min_effect.ln(),
                alpha: self.alpha,
                blocks_max: self.pairs,
                limit_ln: self.limit_ln(),
                until: if self.every_case { BenchGoal::EveryCase } else { BenchGoal::Overall },
                ..BenchRule::default()
            },
            time: self.time.saturating_mul(cases.max(1)),
        }
    }

    fn limit_ln(&self) -> Option<f64> {
        self.fail_if_slower.map(f64::ln)
    }

    fn ground(
        &self,
        place: &ProjectArgs,
        stop: &StopFlag,
        progress: &Progress,
    ) -> Result<BenchSetup> {
        let confined = self.confined();
        match (&self.sides[..], &self.commands[..]) {
            ([a, b], []) => self.ground_of([a, b], place, stop, progress),
            ([], [a, b]) => sides::of_commands(place, [a, b], &self.given, confined, stop),
            ([], commands) if commands.len() > 2 => {
                Err(CommandError::usage("a bench compares two commands")
                    .hint("quote each of them, as in \"karve bench -- './old 64' './new 64'\""))
            }
            _ => Err(CommandError::usage("a bench needs two sides").hint(
                "name two revisions or directories, as in \"karve bench main .\", or two commands \
                 after \"--\"",
            )),
        }
    }

    /// Two revisions or worktrees.
    fn ground_of(
        &self,
        names: [&str; 2],
        place: &ProjectArgs,
        stop: &StopFlag,
        progress: &Progress,
    ) -> Result<BenchSetup> {
        let tests = if self.no_test { SideTests::Skipped } else { SideTests::Required };
        let confined = self.confined();
        let choices = SideOptions { given: &self.given, harness: self.harness, tests, confined };
        let say = |text: &str| progress.start_phase(text);
        sides::of_revisions(place, names, choices, stop, &say)
    }

    fn confined(&self) -> ConfinementChoice {
        if self.sandbox { ConfinementChoice::Always } else { ConfinementChoice::AsUsual }
    }

    /// The exit code for the --fail options.
    fn answer(&self, view: &BenchView) -> Result<()> {
        let no = |what: String| Err(CommandError::new(ErrorKind::Negative, what));
        if view.end == BenchEnd::Stopped && self.load.is_none() {
            return Err(session::stopped());
        }
        if let (Some(limit), Some(_)) = (&view.limit, self.fail_if_slower)
            && limit.state == LimitVerdict::Beyond
        {
            let percent = crate::bench::view::percent_text(limit.percent);
            return no(format!("B is slower than A by more than {percent}"));
        }
        let faster = matches!(view.finding, BenchFinding::Faster { .. });
        if self.fail_unless_faster && !faster {
            return no(format!("B was not found faster: {}", view.words));
        }
        Ok(())
    }
}
