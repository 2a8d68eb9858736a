//! One rung of the tuning ladder: the knobs of a candidate are varied, and the best setting becomes
//! a separate candidate.

use super::candidate::{CandidateChange, commit_candidate};
use super::context::Context;
use super::tuning::error_text;
use super::{bug, tuning};
use crate::refs::refs_of;
use crate::remote::wire::{RepoRole, TunerSource};
use crate::tuner::evaluator::{Evaluator, SettingResult, TuningDevice};
use crate::tuner::far::FarTuner;
use crate::tuner::journal::{FreshStart, Journal};
use crate::tuner::quiet::{BuildPolicy, QuietLock};
use crate::tuner::session::grid;
use crate::tuner::sweep::{
    SettingTrier, Sweep, SweepEnd, SweepRule, SweepWorker, TrialObserver, TrialProgress,
};
use crate::tuner::worker::TuningWorker;
use crate::tuner::{earlier, sweep};
use karve_agents::builtin::write_config;
use karve_core::campaign::{Campaign, Event, TuneStep};
use karve_core::charter::WorkMode;
use karve_core::hypothesis::Candidate;
use karve_core::ladder::{INCUMBENT_READINGS, LadderResult, Rung};
use karve_harness::git::Oid;
use karve_harness::outcome::{ReasonResult, split};
use karve_numerics::grid::{Grid, GridPoint};
use karve_numerics::search::budget::TuneBudget;
use karve_numerics::search::{Search, StrategyKind};
use karve_numerics::space::KnobSetting;
use karve_numerics::stats;
use karve_os::device::DeviceSession;
use karve_os::error::{CommandError, ErrorKind, Result};
use karve_os::host;
use std::sync::Arc;
use std::time::Duration;

/// Characters of the reason why a rung was skipped.
const SKIPPED_CHARS: usize = 500;

/// The result of a rung: what is recorded, and the values of the best setting.
type RungResult = (LadderResult, Option<KnobSetting>);

pub(crate) fn perform(
    context: &mut Context,
    step: &TuneStep,
    campaign: &Campaign,
) -> Result<Event> {
    let tuned = match split(tune(context, step, campaign))? {
        Ok(tuned) => tuned,
        Err(why) => LadderResult {
            rung: step.rung,
            skipped: Some(why.chars().take(SKIPPED_CHARS).collect()),
            ..(*step.seen).clone()
        },
    };
    Ok(Event::Tuned { round: step.round, tuned: Box::new(tuned) })
}

fn tune(context: &mut Context, step: &TuneStep, campaign: &Campaign) -> ReasonResult<LadderResult> {
    let base = Oid::named(&step.candidate.commit)?;
    let mut evaluator = tuning::new_evaluator(context, &base, campaign)?;
    let known = step.seen.incumbent.map(|known| (Some(known), step.seen.noise));
    let mut far = far_tuners(context, step, known.is_none());
    let (incumbent, noise) = match (known, far.first_mut()) {
        (Some(known), _) => known,
        (None, Some(first)) => spread(&first.open()?),
        (None, None) => spread(&read_incumbent(context, &evaluator, campaign, INCUMBENT_READINGS)?),
    };
    let ran = run_rung(context, step, &mut evaluator, &mut far, campaign);
    context.return_hosts(far.into_iter().map(FarTuner::into_host));
    let (mut tuned, best) = ran?;
    (tuned.incumbent, tuned.noise) = (incumbent, noise);
    // What was submitted is judged, unless tuning shows more than luck.
    if tuned.is_within_noise() && !step.hypothesis.sweep {
        tuned = tuned.with_first();
    } else if let Some(best) = best {
        tuned.candidate = Some(commit_setting(context, step, &evaluator, &best)?);
        tuned.config = best;
    }
    evaluator.close()?;
    Ok(tuned)
}

/// The machines that try the settings, if they are not tried here.
fn far_tuners(context: &mut Context, step: &TuneStep, reads_incumbent: bool) -> Vec<FarTuner> {
    let is_extracted = matches!(context.charter.mode, WorkMode::Workspace { .. });
    let role = if is_extracted { RepoRole::Workspace } else { RepoRole::Upstream };
    let hosts = context.take_hosts().into_iter().enumerate();
    hosts
        .map(|(number, host)| {
            let reads = reads_incumbent && number == 0;
            let source = TunerSource::Candidate {
                base: step.candidate.commit.clone(),
                incumbent_readings: if reads { INCUMBENT_READINGS } else { 0 },
            };
            let refs = refs_of(&context.charter.name);
            FarTuner::of_campaign(host, (role, &context.repos.work), (&context.dir, refs), source)
        })
        .collect()
}

/// Gets ready to try the settings of a candidate here for a search on another machine; with
/// readings of the incumbent.
pub(crate) fn open_tuner(
    context: &mut Context,
    base: &Oid,
    incumbent_readings: usize,
    campaign: &Campaign,
) -> Result<(TuningWorker, Vec<f64>)> {
    let evaluator = match split(tuning::new_evaluator(context, base, campaign))? {
        Ok(evaluator) => evaluator,
        Err(why) => return Err(CommandError::environment(why)),
    };
    let read = match incumbent_readings {
        0 => Vec::new(),
        n => read_incumbent(context, &evaluator, campaign, n)?,
    };
    let workdir = context.repos.upstream.root().join(&context.charter.workdir);
    let notices = &context.device.notices;
    let mut session = DeviceSession::new(&context.charter, context.dir.path(), &workdir, notices)?;
    if let Some(preparation) = campaign.preparation() {
        session.knows(&preparation.environment);
    }
    Ok((TuningWorker::alone(evaluator, session), read))
}

/// The median of readings, and the slowest over the fastest.
fn spread(values: &[f64]) -> (Option<f64>, Option<f64>) {
    let least = values.iter().copied().reduce(f64::min);
    let most = values.iter().copied().reduce(f64::max);
    (stats::median(values), least.zip(most).map(|(least, most)| most / least))
}

/// Readings of the incumbent.
fn read_incumbent(
    context: &mut Context,
    evaluator: &Evaluator,
    campaign: &Campaign,
    readings: usize,
) -> Result<Vec<f64>> {
    let harness = context.harness();
    let Ok(built) = split(context.repos.built(&harness, campaign.incumbent()))? else {
        return Ok(Vec::new());
    };
    let mut values = Vec::with_capacity(readings);
    let mut kernel = evaluator.solo(&built)?;
    for _ in 0..readings {
        let device = &mut tuning::tuning_device(context);
        if let SettingResult::Read { value, .. } =
            evaluator.read_tree(&built, kernel.as_mut(), device)?
        {
            values.push(value);
        }
    }
    Ok(values)
}

/// Tries settings up to the rung's number.
fn run_rung(
    context: &mut Context,
    step: &TuneStep,
    evaluator: &mut Evaluator,
    far: &mut [FarTuner],
    campaign: &Campaign,
) -> ReasonResult<RungResult> {
    let grid = grid(evaluator.knobs(), evaluator.restrictions());
    let grid = Arc::new(grid.map_err(|error| error_text(&error))?);
    let default = grid.default_point();
    let default = default.ok_or_else(|| "a restriction forbids the current setting".to_owned())?;
    let environment = campaign.preparation().map(|p| host::fingerprint(&p.environment));
    let host = environment.unwrap_or_default();
    let dir = context.dir.join("tune");
    let (journal, lines) = Journal::open(&dir, evaluator, &host, FreshStart::No)?;
    let given = earlier::best_of(&grid, &earlier::journals(&dir, journal.path()));
    let rule = &context.charter.tune;
    let kind = rule.strategy.as_deref().and_then(StrategyKind::by_name).unwrap_or_default();
    let search = Search::new(Arc::clone(&grid), kind, context.charter.seed, &given);
    let mut sweep = Sweep::new(search, journal, &lines);
    let budget = TuneBudget {
        settings: usize::try_from(step.settings).unwrap_or(usize::MAX),
        time: Duration::from_millis(step.spent_ms.saturating_add(step.time_ms)),
    };
    let rule = SweepRule::new(&context.charter, budget, &context.stop);
    let notices = context.device.notices.clone();
    let mut watch = |seen: &TrialProgress<'_>| notices.mention(&progress(step, seen));
    let ended = match far.is_empty() {
        true => sweep_here(context, evaluator, campaign, (&mut sweep, &rule), &mut watch)?,
        false => {
            let mut triers: Vec<&mut dyn SettingTrier> =
                far.iter_mut().map(|one| one as &mut dyn SettingTrier).collect();
            sweep::run_sweep(&mut sweep, &mut triers, &rule, &mut watch)?
        }
    };
    if ended == SweepEnd::Stopped {
        let error = CommandError::new(ErrorKind::Interrupted, "stopped between two settings");
        return Err(error.hint("resume with \"karve run\": no setting is tried twice").into());
    }
    // The gate tests what is tuned. Only the last rung, which takes longest, tests it before that.
    let best = match (evaluator.screens() && step.rung != Rung::Fine, far.first_mut()) {
        (true, _) => sweep.record().best().map(|(point, _)| point),
        (false, Some(far)) => sweep.chosen(far)?.0,
        (false, None) => sweep.chosen(evaluator)?.0,
    };
    let record = sweep.record();
    let best = best.and_then(|point| Some((point, record.value(point)?)));
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    let failed = record.entries().iter().filter(|entry| entry.failed).count();
    let is_default = best.is_none_or(|(point, _)| point == default);
    let tuned = LadderResult {
        rung: step.rung,
        settings: count(record.len()),
        failed: count(failed),
        first: record.value(default),
        best: best.map(|(_, value)| value),
        expected_gain: sweep.expected_gain(),
        exhausted: record.len() >= grid.len(),
        ..LadderResult::default()
    };
    let config =
        best.filter(|_| !is_default).map(|(point, _)| changed_values(&grid, default, point));
    Ok((tuned, config))
}

/// Tries settings on this machine.
fn sweep_here(
    context: &mut Context,
    evaluator: &mut Evaluator,
    campaign: &Campaign,
    (sweep, rule): (&mut Sweep, &SweepRule),
    watch: TrialObserver<'_>,
) -> ReasonResult<SweepEnd> {
    evaluator.prepare().map_err(|error| error_text(&error))?;
    let mut extra = tuning::extra_evaluators(context, evaluator, campaign)?;
    let notices = context.device.notices.clone();
    let stop = context.stop.clone();
    let builds = if extra.is_empty() { BuildPolicy::Wait } else { BuildPolicy::WithTests };
    let quiet = Arc::new(QuietLock::new(builds));
    let mut workers = vec![SweepWorker {
        evaluator: &mut *evaluator,
        device: tuning::tuning_device(context),
        quiet: Arc::clone(&quiet),
    }];
    workers.extend(extra.iter_mut().map(|one| SweepWorker {
        evaluator: &mut one.evaluator,
        device: TuningDevice { session: &mut one.session, notices: &notices, stop: &stop },
        quiet: Arc::clone(&quiet),
    }));
    let mut triers: Vec<&mut dyn SettingTrier> =
        workers.iter_mut().map(|worker| worker as &mut dyn SettingTrier).collect();
    Ok(sweep::run_sweep(sweep, &mut triers, rule, watch)?)
}

/// The candidate with other values of its knobs, as a commit on the incumbent.
fn commit_setting(
    context: &Context,
    step: &TuneStep,
    evaluator: &Evaluator,
    config: &KnobSetting,
) -> ReasonResult<Candidate> {
    let tree = context.repos.fresh("tuned", &step.candidate.commit)?;
    let set = write_config(&tree, evaluator.knobs(), config)?;
    if set.is_empty() {
        return Err(bug("the best setting changes nothing").into());
    }
    let summary = match step.candidate.summary.is_empty() {
        true => format!("set {}", set.join(", ")),
        false => format!("{}; set {}", step.candidate.summary, set.join(", ")),
    };
    let change = CandidateChange {
        worktree: &tree,
        writes: None,
        round: step.round,
        parent: &step.parent,
        hypothesis: &step.hypothesis,
        summary,
    };
    let made = split(commit_candidate(context, change))?;
    context.repos.remove(&tree)?;
    let (candidate, _) = made?;
    Ok(Candidate { out_of_scope: step.candidate.out_of_scope.clone(), ..candidate })
}

/// The values of a setting that differ from the current ones.
fn changed_values(grid: &Grid, default: GridPoint, point: GridPoint) -> KnobSetting {
    let current = grid.config(default);
    let mut config = grid.config(point);
    config.retain(|name, value| current.get(name) != Some(value));
    config
}

fn progress(step: &TuneStep, seen: &TrialProgress<'_>) -> String {
    let best = match (step.rung, seen.default, seen.best) {
        (Rung::HandPicked, ..) | (_, None, _) | (_, _, None) => String::new(),
        (_, Some(default), Some(best)) => format!(", the best {:.2}x the first", default / best),
    };
    let (round, rung) = (step.round, step.rung.name());
    format!("round {round}: tune, {rung}, setting {} of {}{best}", seen.settings, step.settings)
}
