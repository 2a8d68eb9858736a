//! A tuning run on a project: a sweep of the last commit's knobs, then a duel between the best
//! setting and the default.

use super::evaluator::Evaluator;
use super::far::FarTuner;
use super::journal::{FreshStart, Journal};
use super::recorded::EvaluationFailure;
use super::sweep::{
    SettingJudge, SettingTrier, Sweep, SweepEnd, SweepRule, SweepWorker, TrialObserver,
};
use super::worker::{TuningTarget, TuningWorker};
use super::{earlier, sweep, worker};
use crate::bench::command_args::PlainCommandArgs;
use crate::bench::record::BenchRecord;
use crate::bench::sides::{ConfinementChoice, SideOptions, SideTests};
use crate::bench::{BenchPlan, sides};
use crate::config::Overrides;
use crate::project::ProjectArgs;
use crate::remote::host::{HostUser, RemoteHost};
use crate::remote::table::RemoteConfig;
use crate::remote::wire::TunerSource;
use crate::{bench, remote, ui};
use karve_core::bench::BenchRule;
use karve_core::charter::{Better, TuneRule};
use karve_harness::git::{Oid, Repo};
use karve_harness::store;
use karve_numerics::grid::{Axis, Grid, GridPoint, RestrictionNames};
use karve_numerics::search::budget::TuneBudget;
use karve_numerics::search::{Search, SearchRecord, StrategyKind, budget};
use karve_numerics::space::Knob;
use karve_os::device::NoticeSink;
use karve_os::error::{CommandError, Result};
use karve_os::host;
use karve_os::process::StopFlag;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The time limit of the final duel, for each case.
const DUEL_TIME: Duration = Duration::from_secs(60);

/// The options of a run.
#[derive(Clone, Debug)]
pub struct TuneOptions {
    /// The budget, if it differs from `karve.toml`.
    pub budget: Option<TuneBudget>,
    /// The search strategy, if it differs from `karve.toml`.
    pub kind: Option<StrategyKind>,
    /// The seed.
    pub seed: u64,
    /// Whether to start over.
    pub fresh: FreshStart,
    /// How many settings are evaluated at the same time; by default one per device.
    pub jobs: Option<usize>,
    /// Measured spaces of related kernels or devices, whose best settings come first.
    pub like: Vec<PathBuf>,
    /// Where settings are tried, if not here.
    pub on: Option<RemoteConfig>,
}

impl TuneOptions {
    /// The options with the defaults from the file.
    fn or_as_written(&self, rule: &TuneRule) -> (TuneBudget, StrategyKind) {
        // It was validated when the file was read.
        let budget = rule.budget.as_deref().map(budget::parse);
        let budget = self.budget.or(budget.and_then(std::result::Result::ok));
        let kind = rule.strategy.as_deref().and_then(StrategyKind::by_name);
        let kind = self.kind.or(kind).unwrap_or_default();
        (budget.unwrap_or(budget::DEFAULT), kind)
    }
}

/// What a run found.
#[derive(Debug)]
pub struct TuneResult {
    /// The grid of settings.
    pub grid: Arc<Grid>,
    /// The direction of the metric. Lower is better in the record, so rates are inverted.
    pub better: Better,
    /// What was tried.
    pub record: SearchRecord,
    /// The names of the cases, and their readings by setting.
    pub by_case: (Vec<String>, BTreeMap<GridPoint, Vec<Vec<f64>>>),
    /// Why settings failed.
    pub failures: BTreeMap<GridPoint, EvaluationFailure>,
    /// What is tuned.
    pub about: TuneSubject,
    /// The best setting.
    pub best: GridPoint,
    /// Its commit, and the ref that keeps it.
    pub commit: (Oid, String),
    /// The duel against the default; nothing if the default is the best.
    pub duel: Option<BenchRecord>,
    /// The journal.
    pub journal: PathBuf,
    /// Whether the user stopped it.
    pub stopped: bool,
}

/// What is tuned.
#[derive(Clone, Debug)]
pub struct TuneSubject {
    /// The operation.
    pub op: String,
    /// The device.
    pub device: String,
    /// The unit of the metric.
    pub unit: String,
}

/// The grid of an evaluator's knobs, with notes about it.
pub fn grid_of(setting_evaluator: &Evaluator, say: &dyn Fn(&str)) -> Result<Grid> {
    if setting_evaluator.knobs().is_empty() {
        return Err(CommandError::usage("the editable files declare no knobs")
            .hint("declare one before its definition, as in \"// karve: knob TILE in 8,16\"")
            .hint("commit it with \"git commit\": karve tunes the last commit"));
    }
    let grid = grid(setting_evaluator.knobs(), setting_evaluator.restrictions())?;
    grid.notes().iter().for_each(|note| say(&format!("note: {note}")));
    if grid.default_point().is_none() {
        say("note: a restriction forbids the default, so it is not tried");
    }
    for sentence in setting_evaluator.unused_knobs()? {
        say(&format!("note: {sentence}"));
    }
    let changed = setting_evaluator.uncommitted()?;
    if !changed.is_empty() {
        say(&format!(
            "note: karve tunes the last commit; {} has uncommitted changes",
            changed.join(", ")
        ));
    }
    Ok(grid)
}

/// The grid of some knobs.
pub fn grid(knobs: &[Knob], restrictions: &[String]) -> Result<Grid> {
    let wrong = |why: String| {
        CommandError::usage("the knobs cannot be tuned")
            .cause(why)
            .hint("fix the lines \"karve: knob\" and \"karve: restrict\" in the editable files")
            .hint("or [[knobs]] and tune.restrictions in karve.toml")
    };
    let mut axes = Vec::with_capacity(knobs.len());
    for knob in knobs {
        axes.push(Axis::new(&knob.name, &knob.values, Some(&knob.current)).map_err(wrong)?);
    }
    let mut parsed = Vec::with_capacity(restrictions.len());
    let mut terms = RestrictionNames::new(&axes, BTreeMap::new());
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

/// Runs a search on the project's knobs; `watch` is called for each try, `say` for progress.
pub fn run(
    place: &ProjectArgs,
    wish: &TuneOptions,
    stop: &StopFlag,
    say: &dyn Fn(&str),
    watch: TrialObserver<'_>,
) -> Result<TuneResult> {
    let repo = place.repo()?;
    let loaded = place.load_in(&repo, &Overrides::default())?;
    let base = repo.head()?.oid().clone();
    let notices = ui::notices();
    let host = wish.on.as_ref().map(|config| far_host(config, &repo, &notices, stop));
    let far = host.map(|host| far_tuners(host, &repo, &base, &loaded.charter.workdir));
    let mut far = far.unwrap_or_default();
    let environment = match far.first_mut() {
        Some(first) => first.environment()?,
        None => host::environment(stop),
    };
    // Where settings are tried elsewhere, an evaluator here still makes their commits.
    let jobs = if far.is_empty() { wish.jobs } else { Some(1) };
    let (repo, base, loaded) = (&repo, &base, &loaded);
    let (environment, notices) = (&environment, &notices);
    let site = TuningTarget { repo, base, loaded, environment, notices, stop };
    let mut tuning_workers = site.workers(jobs)?;
    let grid = Arc::new(grid_of(&tuning_workers[0].evaluator, say)?);
    let (budget, kind) = wish.or_as_written(&loaded.charter.tune);
    let dir = loaded.root.join("tune");
    let host = host::fingerprint(environment);
    let first = &mut tuning_workers[0].evaluator;
    let (journal, lines) = Journal::open(&dir, first, &host, wish.fresh)?;
    store::ignore_in_git(&loaded.root)?;
    let given = earlier_best(wish, &grid, &dir, journal.path())?;
    let search = Search::new(Arc::clone(&grid), kind, wish.seed, &given);
    let mut sweep = Sweep::new(search, journal, &lines);
    let at_once = if far.is_empty() { tuning_workers.len() } else { far.len() };
    report_start(&sweep, &grid, given.len(), at_once, say);
    let rule = SweepRule::new(&loaded.charter, budget, stop);
    let ended = match far.is_empty() {
        true => sweep_here(&mut sweep, &rule, &mut tuning_workers, notices, watch)?,
        false => {
            let triers = far.iter_mut().map(|one| one as &mut dyn SettingTrier);
            sweep::run_sweep(&mut sweep, &mut triers.collect::<Vec<_>>(), &rule, watch)?
        }
    };
    let notes = tuning_workers.iter_mut().filter_map(|one| one.evaluator.note());
    notes.for_each(|note| say(&format!("note: {note}")));
    if sweep.changes_nothing() {
        say("note: no knob changed the build output; check that the code uses them");
    }
    let setting_evaluator = &mut tuning_workers[0].evaluator;
    let best = match (ended, far.first_mut()) {
        (SweepEnd::Done, Some(far)) => chosen(&mut sweep, far, say)?,
        (SweepEnd::Done, None) => chosen(&mut sweep, setting_evaluator, say)?,
        (SweepEnd::Stopped, _) => sweep.record().best().map(|(point, _)| point),
    };
    let found = settled(&sweep, &grid, best, setting_evaluator, ended)?;
    tuning_workers.iter_mut().for_each(|tuning_worker| tuning_worker.device.close(notices));
    drop(tuning_workers);
    let met = ended == SweepEnd::Done && found.commit.0 != *base;
    let best = found.commit.0.clone();
    let duel = met.then(|| match far.first_mut() {
        Some(far) => {
            say("duel: the best setting against the default");
            far.meet(base, &best, &loaded.charter.workdir)
        }
        None => meet(place, base, &best, stop, say),
    });
    Ok(TuneResult { duel: duel.transpose()?, ..found })
}

/// Tries settings on this machine.
fn sweep_here(
    sweep: &mut Sweep,
    rule: &SweepRule,
    tuning_workers: &mut [TuningWorker],
    notices: &NoticeSink,
    watch: TrialObserver<'_>,
) -> Result<SweepEnd> {
    worker::prepare(tuning_workers)?;
    let workers = tuning_workers.iter_mut().map(|one| one.worker(notices, &rule.stop));
    let mut workers: Vec<SweepWorker<'_>> = workers.collect();
    let triers = workers.iter_mut().map(|worker| worker as &mut dyn SettingTrier);
    sweep::run_sweep(sweep, &mut triers.collect::<Vec<_>>(), rule, watch)
}

/// The first device of a remote.
fn far_host(
    config: &RemoteConfig,
    repo: &Repo,
    notices: &NoticeSink,
    stop: &StopFlag,
) -> RemoteHost {
    let user = HostUser {
        project: remote::project_id(repo),
        campaign: None,
        patience_s: None,
        notices: notices.clone(),
        stop: stop.clone(),
    };
    RemoteHost::new(config.clone(), user)
}

/// All devices of a remote, each of which tries settings.
fn far_tuners(first: RemoteHost, repo: &Repo, base: &Oid, dir: &str) -> Vec<FarTuner> {
    let source = TunerSource::Project { base: base.to_string(), dir: dir.to_owned() };
    let helpers = first.helpers();
    let hosts = std::iter::once(first).chain(helpers);
    hosts.map(|host| FarTuner::of_project(host, repo, source.clone())).collect()
}

/// Settings that were best elsewhere.
fn earlier_best(
    wish: &TuneOptions,
    grid: &Grid,
    dir: &Path,
    journal: &Path,
) -> Result<Vec<GridPoint>> {
    let like = earlier::best_of(grid, &earlier::spaces(&wish.like)?);
    let journals = match wish.fresh {
        FreshStart::Yes => Vec::new(),
        FreshStart::No => earlier::best_of(grid, &earlier::journals(dir, journal)),
    };
    let mut given: Vec<GridPoint> = Vec::new();
    for point in like.into_iter().chain(journals) {
        if !given.contains(&point) && Some(point) != grid.default_point() {
            given.push(point);
        }
    }
    Ok(given)
}

/// What a sweep found, before the duel.
fn settled(
    sweep: &Sweep,
    grid: &Arc<Grid>,
    best: Option<GridPoint>,
    setting_evaluator: &mut Evaluator,
    ended: SweepEnd,
) -> Result<TuneResult> {
    let Some(best) = best else {
        return Err(CommandError::environment("no setting could be measured")
            .hint(format!("see {} for the reasons", sweep.journal().display())));
    };
    let oid = setting_evaluator.commit(&grid.config(best))?;
    let name = setting_evaluator.keep(&oid)?;
    let names = setting_evaluator.cases().iter().map(|case| case.name.clone());
    let charter = setting_evaluator.charter();
    Ok(TuneResult {
        grid: Arc::clone(grid),
        better: charter.metric.better,
        record: sweep.record().clone(),
        by_case: (names.collect(), sweep.by_case().clone()),
        failures: sweep.failures().clone(),
        about: TuneSubject {
            op: charter.target.op.clone(),
            device: charter.target.device.clone(),
            unit: charter.metric.unit.clone(),
        },
        best,
        commit: (oid, name),
        duel: None,
        journal: sweep.journal().to_owned(),
        stopped: ended == SweepEnd::Stopped,
    })
}

/// The best setting that is right on the hidden cases.
fn chosen(
    sweep: &mut Sweep,
    judge: &mut dyn SettingJudge,
    say: &dyn Fn(&str),
) -> Result<Option<GridPoint>> {
    let (best, wrong) = sweep.chosen(judge)?;
    report_wrong(wrong, say);
    Ok(best)
}

/// Reports that settings were rejected; the hidden cases are not named.
fn report_wrong(wrong: usize, say: &dyn Fn(&str)) {
    match wrong {
        0 => {}
        1 => say("note: a setting that looked better is wrong on a hidden case"),
        many => {
            say(&format!("note: {many} settings that looked better are wrong on a hidden case"))
        }
    }
}

fn report_start(sweep: &Sweep, grid: &Grid, given: usize, workers: usize, say: &dyn Fn(&str)) {
    if sweep.recalled() > 0 {
        say(&format!("resuming after {} settings", sweep.recalled()));
    } else if given > 0 {
        say(&format!("trying {given} settings first that were best elsewhere"));
    }
    let knobs = grid.axes().len();
    say(&format!("{} valid settings of {knobs} knobs", grid.len()));
    if workers > 1 {
        say(&format!("evaluating {workers} settings at the same time"));
    }
}

/// The default and the best setting, interleaved, until there is a finding.
fn meet(
    place: &ProjectArgs,
    base: &Oid,
    best: &Oid,
    stop: &StopFlag,
    say: &dyn Fn(&str),
) -> Result<BenchRecord> {
    let options = SideOptions {
        given: &PlainCommandArgs::default(),
        harness: None,
        tests: SideTests::Required,
        confined: ConfinementChoice::AsUsual,
    };
    let names = [base.short(), best.short()];
    let ground = sides::of_revisions(place, names, options, stop, say)?;
    let cases = u32::try_from(ground.cases.len()).unwrap_or(u32::MAX);
    let plan =
        BenchPlan { rule: BenchRule::default(), time: DUEL_TIME.saturating_mul(cases.max(1)) };
    say("duel: the best setting against the default");
    bench::run(&ground, plan, stop, &mut |_| {})
}
