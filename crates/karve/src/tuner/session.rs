//! A tuning run: asks, tries and tells until the budget is spent, then lets the best setting meet
//! the default in a duel.

use super::budget::{self, Budget};
use super::journal::{Fresh, Journal, Line};
use super::workshop::{Tried, Workshop};
use crate::bench::given::Given;
use crate::bench::record::Recorded;
use crate::bench::sides::{self, Choices, Confined, Tests};
use crate::bench::{self, Plan};
use crate::error::{CommandError, Result};
use crate::git::Oid;
use crate::process::StopFlag;
use crate::project::Place;
use karve_core::bench::BenchRule;
use karve_core::charter::{Better, TuneRule};
use karve_core::grid::{Axis, Grid, Point, Terms};
use karve_core::search::{Kind, Race, Reading, Record, Search};
use karve_core::space::{Config, Knob};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Settings that fail in a row from the start until the run gives up.
const FAILURES_MAX: usize = 20;
/// How long the duel at the end may take, for each case.
const DUEL_TIME: Duration = Duration::from_secs(60);

/// What is wanted.
#[derive(Clone, Copy, Debug)]
pub struct Wish {
    /// How much may be tried, if not as `karve.toml` says.
    pub budget: Option<Budget>,
    /// Who chooses, if not as `karve.toml` says.
    pub kind: Option<Kind>,
    /// What its draws depend on.
    pub seed: u64,
    /// Whether to begin anew.
    pub fresh: Fresh,
}

impl Wish {
    /// What is wanted, where nobody says what the file says.
    fn or_as_written(&self, rule: &TuneRule) -> (Budget, Kind) {
        // It was looked at when the file was read.
        let budget = rule.budget.as_deref().map(budget::parse);
        let budget = self.budget.or(budget.and_then(std::result::Result::ok));
        let kind = rule.strategy.as_deref().and_then(Kind::by_name);
        let kind = self.kind.or(kind).unwrap_or_default();
        (budget.unwrap_or(budget::DEFAULT), kind)
    }
}

/// Which reading of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// The first: it is built and tested.
    First,
    /// Another one, for the race.
    Again,
}

/// One try, for those who watch.
#[derive(Debug)]
pub struct Step<'a> {
    /// What the metric is like.
    pub better: Better,
    /// The setting.
    pub config: &'a Config,
    /// What came of it.
    pub tried: &'a Tried,
    /// Which reading of it this is.
    pub turn: Turn,
    /// How many settings there were so far.
    pub settings: usize,
    /// The best value so far; less is better.
    pub best: Option<f64>,
    /// The value of the default.
    pub default: Option<f64>,
    /// By which factor the next setting is expected to be faster, less one.
    pub expected_gain: Option<f64>,
}

/// What a run found.
#[derive(Debug)]
pub struct Found {
    /// The settings, with what was read.
    pub grid: Arc<Grid>,
    /// What was read: less is better, so a rate is the time of one.
    pub better: Better,
    /// What was tried.
    pub record: Record,
    /// The best setting.
    pub best: Point,
    /// Its commit, and the ref that keeps it.
    pub commit: (Oid, String),
    /// The duel against the default; nothing if the default is the best.
    pub duel: Option<Recorded>,
    /// The journal.
    pub journal: PathBuf,
    /// Whether the user stopped it.
    pub stopped: bool,
}

/// A value as the project's metric has it: readings are turned so that less is better.
pub fn as_metric(value: f64, better: Better) -> f64 {
    match better {
        Better::Lower => value,
        Better::Higher => 1.0 / value,
    }
}

/// The grid of a project's knobs.
pub fn grid_of(knobs: &[Knob], restrictions: &[String]) -> Result<Grid> {
    let wrong = |why: String| {
        CommandError::usage("the knobs cannot be tuned")
            .cause(why)
            .hint("mend the lines \"karve: knob\" and \"karve: restrict\" in the granted files")
            .hint("or [[knobs]] and tune.restrictions in karve.toml")
    };
    let mut axes = Vec::with_capacity(knobs.len());
    for knob in knobs {
        axes.push(Axis::new(&knob.name, &knob.values, Some(&knob.current)).map_err(wrong)?);
    }
    let mut parsed = Vec::with_capacity(restrictions.len());
    let mut terms = Terms::new(&axes, BTreeMap::new());
    for knob in knobs {
        if let Some(when) = &knob.when {
            parsed.push(terms.conditional(&knob.name, when).map_err(wrong)?);
        }
    }
    for text in restrictions {
        parsed.push(terms.restriction(text).map_err(wrong)?);
    }
    drop(terms);
    Grid::new(axes, &parsed).map_err(|error| wrong(error.to_string()))
}

/// Runs a search on the project's knobs; `watch` hears of every try, `say` of what goes on.
pub fn run(
    place: &Place,
    wish: Wish,
    stop: &StopFlag,
    say: &dyn Fn(&str),
    watch: &mut dyn FnMut(&Step<'_>),
) -> Result<Found> {
    let mut workshop = Workshop::open(place, stop)?;
    let grid = Arc::new(grid_of(workshop.knobs(), workshop.restrictions())?);
    grid.notes()
        .iter()
        .for_each(|note| say(&format!("note: {note}")));
    if grid.default_point().is_none() {
        say("note: the default itself is forbidden by a restriction, so it is not tried");
    }
    let changed = workshop.uncommitted()?;
    if !changed.is_empty() {
        say(&format!(
            "note: what is tuned is the last commit; {} is changed and not committed",
            changed.join(", ")
        ));
    }
    let (budget, kind) = wish.or_as_written(&workshop.loaded().charter.tune);
    let (journal, lines) = Journal::open(&workshop, wish.fresh)?;
    let mut run = Run {
        search: Search::new(Arc::clone(&grid), kind, wish.seed, &[]),
        journal,
        spent: Duration::ZERO,
        read: 0,
    };
    run.recall(&lines);
    if run.read > 0 {
        say(&format!("going on after {} settings", run.read));
    }
    say(&format!(
        "{} valid settings of {} knobs",
        grid.len(),
        grid.axes().len()
    ));
    workshop.prepare()?;
    let stopped = run.go_on(&mut workshop, budget, stop, watch)?;
    if workshop.changes_nothing() {
        say("note: no knob has changed what is built; are they used, and does the build see them?");
    }
    let Some((best, _)) = run.search.record().best() else {
        return Err(CommandError::environment("no setting could be measured")
            .hint(format!("{} says why", run.journal.path().display())));
    };
    let oid = workshop.commit(&grid.config(best))?;
    let name = workshop.keep(&oid)?;
    let base = workshop.base().clone();
    let better = workshop.loaded().charter.metric.better;
    workshop.close()?;
    let duel = match stopped || oid == base {
        true => None,
        false => Some(meet(place, (&base, &oid), stop, say)?),
    };
    Ok(Found {
        grid,
        better,
        record: run.search.record().clone(),
        best,
        commit: (oid, name),
        duel,
        journal: run.journal.path().to_owned(),
        stopped,
    })
}

/// The default and the best setting by turns, until there is a finding.
fn meet(
    place: &Place,
    (base, best): (&Oid, &Oid),
    stop: &StopFlag,
    say: &dyn Fn(&str),
) -> Result<Recorded> {
    let choices = Choices {
        harness: None,
        tests: Tests::Required,
        confined: Confined::AsUsual,
    };
    let names = [base.short(), best.short()];
    let ground = sides::of_revisions(place, names, (&Given::default(), choices), stop, say)?;
    let cases = u32::try_from(ground.cases.len()).unwrap_or(u32::MAX);
    let plan = Plan {
        rule: BenchRule::default(),
        time: DUEL_TIME.saturating_mul(cases.max(1)),
    };
    say("the best setting meets the default");
    bench::run(&ground, plan, stop, &mut |_| {})
}

struct Run {
    search: Search,
    journal: Journal,
    spent: Duration,
    /// Settings that were tried before.
    read: usize,
}

impl Run {
    /// Tells the search what earlier runs read.
    fn recall(&mut self, lines: &[Line]) {
        for line in lines {
            self.spent += Duration::from_millis(line.spent_ms());
            let (config, reading) = match line {
                Line::Space { .. } => continue,
                Line::Read { config, value, .. } => (config, Reading::Value(*value)),
                Line::Failed { config, .. } => (config, Reading::Failed),
            };
            if let Some(point) = self.search.grid().point(config) {
                self.search.tell(point, reading);
            }
        }
        self.read = self.search.record().len();
    }

    /// Tries settings until the budget is spent; says whether the user stopped it.
    fn go_on(
        &mut self,
        workshop: &mut Workshop,
        budget: Budget,
        stop: &StopFlag,
        watch: &mut dyn FnMut(&Step<'_>),
    ) -> Result<bool> {
        let started = Instant::now();
        loop {
            if stop.finish_step() {
                return Ok(true);
            }
            let out_of_time = match budget {
                Budget::Settings(_) => false,
                Budget::Time(most) => self.spent + started.elapsed() >= most,
            };
            let again = Race::new(self.search.record()).again();
            let (point, turn) = match (again, self.is_spent(budget)) {
                _ if out_of_time => return Ok(false),
                (Some(point), _) => (point, Turn::Again),
                (None, true) => return Ok(false),
                (None, false) => match self.search.ask() {
                    Some(point) => (point, Turn::First),
                    None => return Ok(false),
                },
            };
            self.try_one(workshop, (point, turn), stop, watch)?;
            let record = self.search.record();
            if record.len() >= FAILURES_MAX && record.best().is_none() {
                return Ok(false);
            }
        }
    }

    fn is_spent(&self, budget: Budget) -> bool {
        match budget {
            Budget::Settings(most) => self.search.record().len() >= most,
            Budget::Time(_) => false,
        }
    }

    fn try_one(
        &mut self,
        workshop: &mut Workshop,
        (point, turn): (Point, Turn),
        stop: &StopFlag,
        watch: &mut dyn FnMut(&Step<'_>),
    ) -> Result<()> {
        let started = Instant::now();
        let grid = Arc::clone(self.search.shared_grid());
        let config = grid.config(point);
        let tried = match turn {
            Turn::Again => workshop.read_again(&config)?,
            Turn::First => {
                let record = self.search.record();
                let same = |other: &Config| record.value(grid.point(other)?);
                workshop.try_setting(&config, &same)?
            }
        };
        if stop.at_once() {
            // What was killed is no reading.
            return Ok(());
        }
        let spent_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.journal.append(&Line::of(&config, &tried, spent_ms))?;
        self.search.tell(
            point,
            match &tried {
                Tried::Value(value) => Reading::Value(*value),
                Tried::Failed(_) => Reading::Failed,
            },
        );
        let record = self.search.record();
        watch(&Step {
            better: workshop.loaded().charter.metric.better,
            config: &config,
            tried: &tried,
            turn,
            settings: record.len(),
            best: record.best().map(|(_, value)| value),
            default: grid.default_point().and_then(|point| record.value(point)),
            expected_gain: self.search.expected_gain(),
        });
        Ok(())
    }
}
