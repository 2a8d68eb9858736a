//! `karve tune`: finds good values for a kernel's knobs in few trials.

use super::remote;
use crate::bench::view::BenchView;
use crate::project::ProjectArgs;
use crate::tuner::evaluator::SettingResult;
use crate::tuner::journal::FreshStart;
use crate::tuner::session::{TuneOptions, TuneResult};
use crate::tuner::simulate::SimulatedNoise;
use crate::tuner::sweep::{ReadingPass, TrialProgress};
use crate::tuner::{export, plots, portfolio, recorded, session, simulate};
use crate::ui::Progress;
use crate::{bench, ui};
use karve_core::score::figure;
use karve_core::verdict::BenchFinding;
use karve_numerics::grid::{Grid, GridPoint};
use karve_numerics::search;
use karve_numerics::search::budget::TuneBudget;
use karve_numerics::search::{PortfolioGoal, Race, StrategyKind, TriedSetting, budget};
use karve_numerics::space::KnobSetting;
use karve_os::error::{CommandError, ErrorKind, Result};
use karve_os::process::StopFlag;
use karve_os::text::{counted, safe};
use std::path::PathBuf;

/// Settings in the final table.
const ROWS: usize = 8;
/// Most characters of a reason.
const WHY_CHARS: usize = 120;
/// Fewest settings for which the importance of knobs can be estimated.
const IMPORTANCE_MIN: usize = 20;

/// Find good values for the knobs of a kernel in few trials
///
/// Knobs are declared in the editable files, before their definitions: "// karve: knob TILE in
/// 8,16,32". A line "// karve: restrict TILE % VEC == 0" excludes settings. karve tunes the last
/// commit. Every reading is saved, so an interrupted or crashed run is resumed. At the end a duel
/// compares the best setting with the default.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  karve tune                       50 settings
  karve tune --budget 10m          ten minutes, including earlier runs
  karve tune --simulate space.csv.gz --strategy random")]
pub struct TuneArgs {
    /// Run it on this remote, with the files of this checkout; see `karve remote`
    #[arg(long, value_name = "NAME")]
    pub(super) on: Option<String>,
    /// How many settings to try, or for how long, such as 50 or 10m [default: tune.budget, or 50]
    #[arg(long, value_name = "N|TIME", value_parser = budget::parse)]
    budget: Option<TuneBudget>,
    /// Search strategy: auto, random, local, annealing or genetic [default: tune.strategy, or auto]
    #[arg(long, value_name = "NAME", value_parser = parse_kind)]
    strategy: Option<StrategyKind>,
    /// The random seed of the strategy
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Resume from earlier trials; this is the default
    #[arg(long)]
    resume: bool,
    /// Set earlier trials aside and start over
    #[arg(long, conflicts_with = "resume")]
    fresh: bool,
    /// Settings to try at the same time [default: one per device of tune.pool, two on CPUs]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=64))]
    jobs: Option<u8>,
    /// First try the best settings of a measured space of a related kernel or device
    #[arg(long, value_name = "FILE")]
    like: Vec<PathBuf>,
    /// Write the plots convergence.svg, importance.svg and pairs.svg into a directory
    #[arg(long, value_name = "DIR", conflicts_with = "simulate")]
    svg: Option<PathBuf>,
    /// Write the readings as a measured space: FILE.csv, FILE.json (Kernel Tuner) or FILE.t4.json
    #[arg(long, value_name = "FILE", conflicts_with = "simulate", value_parser = parse_export)]
    export: Option<PathBuf>,
    /// Choose at most N settings that together cover all cases
    #[arg(long, value_name = "N", conflicts_with = "simulate",
          value_parser = clap::value_parser!(u8).range(1..=8))]
    portfolio: Option<u8>,
    /// What a portfolio optimizes: the worst case, or the mean of all
    #[arg(long, value_name = "worst|mean", requires = "portfolio", value_parser = parse_aim)]
    aim: Option<PortfolioGoal>,
    /// Simulate the search on a measured space, without running anything
    #[arg(long, value_name = "FILE")]
    simulate: Option<PathBuf>,
}

fn parse_export(text: &str) -> std::result::Result<PathBuf, String> {
    let named = export::format_of(text).map(|_| PathBuf::from(text));
    named.ok_or_else(|| "the name must end in .csv, .json or .t4.json, optionally with .gz".into())
}

fn parse_aim(text: &str) -> std::result::Result<PortfolioGoal, String> {
    match text {
        "worst" => Ok(PortfolioGoal::Worst),
        "mean" => Ok(PortfolioGoal::Mean),
        _ => Err("expected worst or mean".into()),
    }
}

fn parse_kind(text: &str) -> std::result::Result<StrategyKind, String> {
    StrategyKind::by_name(text).ok_or_else(|| {
        let names: Vec<&str> = StrategyKind::ALL.iter().map(|kind| kind.name()).collect();
        format!("expected one of {}", names.join(", "))
    })
}

impl TuneArgs {
    /// Runs the command.
    pub fn run(&self, place: &ProjectArgs) -> Result<()> {
        if let Some(path) = &self.simulate {
            return self.simulate(path);
        }
        let stop = StopFlag::new();
        let at_once = "stopping immediately; resume with \"karve tune\"";
        crate::session::watch_signals_of(&stop, at_once)?;
        let progress = Progress::new();
        let wish = TuneOptions {
            budget: self.budget,
            kind: self.strategy,
            seed: self.seed,
            fresh: if self.fresh { FreshStart::Yes } else { FreshStart::No },
            jobs: self.jobs.map(usize::from),
            like: self.like.clone(),
            on: match &self.on {
                Some(name) => Some(remote::named(place, name)?),
                None => None,
            },
        };
        let say = |text: &str| progress.start_phase(text);
        let found = session::run(place, &wish, &stop, &say, &mut |step| {
            ui::outln(&line(step));
        })?;
        drop(progress);
        show(&found)?;
        if let Some(most) = self.portfolio {
            show_portfolio(&found, usize::from(most), self.aim.unwrap_or_default());
        }
        if let Some(path) = &self.export {
            export::write(&found, path)?;
        }
        if let Some(dir) = &self.svg {
            plots::write(&found, dir)?;
        }
        match found.stopped {
            true => Err(CommandError::new(ErrorKind::Interrupted, "stopped by the user")
                .hint("resume with \"karve tune\"")),
            false => Ok(()),
        }
    }

    fn simulate(&self, path: &std::path::Path) -> Result<()> {
        let space = recorded::load(path)?;
        let budget = self.budget.unwrap_or(budget::DEFAULT);
        if budget.is_time() {
            return Err(CommandError::usage("a simulation cannot have a time budget")
                .hint("give a number of settings, as in --budget 50"));
        }
        let budget = budget.settings.min(space.grid.len());
        let kind = self.strategy.unwrap_or_default();
        let noise = SimulatedNoise::default();
        let played = simulate::play(&space, kind, self.seed, budget, noise);
        ui::outln(&format!(
            "{}: {} settings, {budget} of them tried by {}",
            safe(&space.name, WHY_CHARS),
            space.grid.len(),
            kind.name()
        ));
        let mut at = 1;
        while at <= played.fractions.len() {
            ui::outln(&format!(
                "after {at:>4}   {:.1}% of the optimum",
                played.fractions[at - 1] * 100.0
            ));
            at *= 2;
        }
        let last = played.fractions.last().copied().unwrap_or_default();
        let each = played.thinking.as_secs_f64() * 1e3 / budget.max(1) as f64;
        ui::outln(&format!(
            "at the end   {:.1}% of the optimum; the search took {each:.2} ms per setting",
            last * 100.0
        ));
        Ok(())
    }
}

/// One trial per line. A setting shown before is only shown by its number.
fn line(step: &TrialProgress<'_>) -> String {
    let unit = safe(step.unit, 12);
    let shown = |value: f64| {
        let text = format!("{} {unit}", figure(step.better.as_metric(value)));
        text.trim_end().to_owned()
    };
    let what = match step.tried {
        SettingResult::Read { value, .. } => shown(*value),
        SettingResult::Failed { why, .. } => format!("failed: {}", safe(why, WHY_CHARS)),
    };
    let mut out = match (step.turn, step.recalled) {
        (ReadingPass::First, _) => format!("{:>4}  {}  {what}", step.number, words(step.config)),
        (ReadingPass::Again, false) => {
            format!("{:>4}  again, reading {}  {what}", step.number, step.readings)
        }
        (ReadingPass::Again, true) => format!(
            "{:>4}  again, reading {}  {}  {what}",
            step.number,
            step.readings,
            words(step.config)
        ),
    };
    if let (Some(best), Some(default)) = (step.best, step.default) {
        out += &format!("   best {} ({:.2}x)", shown(best), default / best);
    }
    if let Some(gain) = step.expected_gain {
        out += &format!("   next +{:.1}%", gain * 100.0);
    }
    out
}

fn words(config: &KnobSetting) -> String {
    let all: Vec<String> = config.iter().map(|(name, value)| format!("{name}={value}")).collect();
    safe(&all.join(" "), 200)
}

/// The final table, and the result of the duel.
fn show(found: &TuneResult) -> Result<()> {
    let race = Race::new(&found.record);
    ui::outln(&format!(
        "\n{} of {} settings tried, {} failed; readings of one setting differ by {:.1}%\n",
        found.record.len(),
        found.grid.len(),
        found.record.entries().iter().filter(|entry| entry.failed).count(),
        race.noise() * 100.0
    ));
    let default = found.grid.default_point();
    for (point, value) in found.record.ranking().into_iter().take(ROWS) {
        let readings =
            found.record.entry(point).map_or(0, |entry: &TriedSetting| entry.readings.len());
        let mark = if Some(point) == default { "  the default" } else { "" };
        let read = if readings == 1 { "reading " } else { "readings" };
        ui::outln(&format!(
            "{:>12}  {readings} {read}  {}{mark}",
            figure(found.better.as_metric(value)),
            changed(&found.grid, &found.grid.config(point))
        ));
    }
    show_importance(found);
    show_duel(found)?;
    ui::outln(&format!("every reading: {}", found.journal.display()));
    Ok(())
}

/// How much each knob matters.
fn show_importance(found: &TuneResult) {
    let matters = search::importance(&found.grid, &found.record);
    let reported = |one: &search::Importance| {
        let name = found.grid.axes()[one.axis].name();
        format!("{name} {:.0}%", one.share * 100.0)
    };
    let reported: Vec<String> = matters.iter().take(ROWS).map(reported).collect();
    ui::outln(&format!("\nimportance: {}", safe(&reported.join(", "), 300)));
    ui::outln(
        "  share of the spread that each knob explains alone; shares overlap and need not add up",
    );
    let read = found.record.ranking().len();
    if read < IMPORTANCE_MIN {
        let settings = counted(read, "setting");
        ui::outln(&format!("  {settings} measured: too few to rely on it"));
    }
}

/// The result of the duel, and what to do with it.
fn show_duel(found: &TuneResult) -> Result<()> {
    let (oid, name) = &found.commit;
    let Some(duel) = &found.duel else {
        let default = Some(found.best) == found.grid.default_point();
        ui::outln(if default {
            "\nthe default is the best setting that was tried"
        } else {
            "\nthe best setting has not been compared with the default yet"
        });
        return Ok(());
    };
    let view = BenchView::of_duel(duel)?;
    ui::outln(&format!("\nA is the default, B the best setting ({}):", oid.short()));
    ui::out_toned(&bench::text::render_text(&view, ui::style::color()));
    let why = match &view.finding {
        BenchFinding::Faster { .. } => {
            ui::outln(&format!("apply it with \"git cherry-pick {name}\""));
            return Ok(());
        }
        BenchFinding::Slower { .. } => "the best setting is slower",
        BenchFinding::NoDifference { .. } => "the duel saw no difference",
        BenchFinding::ClocksDisagree { .. } => "the clocks disagree",
        BenchFinding::CouldNotTell => "the duel could not tell",
    };
    ui::outln(&format!("the default stays: {why}; the best setting is saved as {name}"));
    Ok(())
}

/// The settings that together cover all cases.
fn show_portfolio(found: &TuneResult, most: usize, aim: PortfolioGoal) {
    let Some(table) = portfolio::choose(found, most, aim) else {
        ui::outln("\nno portfolio: no setting was measured on every case");
        return;
    };
    let settings = match table.rows.len() {
        1 => "one setting covers".to_owned(),
        many => format!("{many} settings cover"),
    };
    ui::outln(&format!(
        "\n{settings} all cases: the worst at {:.1}% of its best reading, {:.1}% on average",
        table.worst * 100.0,
        table.mean * 100.0
    ));
    let single = |(point, _): &&(GridPoint, Vec<String>)| {
        let entry = found.record.entry(*point);
        entry.is_some_and(|entry| entry.readings.len() < 2)
    };
    if table.rows.iter().any(|row| single(&row)) {
        ui::outln("  some were measured only once, and may look better than they are");
    }
    for (point, cases) in &table.rows {
        let config = found.grid.config(*point);
        let cases = safe(&cases.join(" "), 200);
        ui::outln(&format!("  {}   for {cases}", changed(&found.grid, &config)));
    }
}

/// The knobs of a setting that differ from the default.
fn changed(grid: &Grid, config: &KnobSetting) -> String {
    let default = grid.default_point().map(|point| grid.config(point));
    let differs = |(name, value): &(&String, &String)| {
        default.as_ref().and_then(|default| default.get(*name)) != Some(*value)
    };
    let all: KnobSetting =
        config.iter().filter(differs).map(|(name, value)| (name.clone(), value.clone())).collect();
    if all.is_empty() { "unchanged".to_owned() } else { words(&all) }
}
