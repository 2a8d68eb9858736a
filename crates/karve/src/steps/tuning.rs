//! What tuning and choosing share: the evaluator of settings, and the device that it measures on.

use super::context::{Context, secret_of};
use super::repeats::incumbent_settings;
use crate::tuner;
use crate::tuner::copies::IncrementalTrust;
use crate::tuner::evaluator::{Evaluator, EvaluatorParts, TuningDevice};
use karve_core::campaign::Campaign;
use karve_harness::commands::Harness;
use karve_harness::git::Oid;
use karve_harness::outcome::ReasonResult;
use karve_harness::worktrees::Worktrees;
use karve_numerics::case::CaseSet;
use karve_os::device::DeviceSession;
use karve_os::error::{CommandError, Result, WithContext};
use karve_os::sandbox::Sandbox;
use std::fs;
use std::path::PathBuf;

/// The evaluator for settings of a candidate, or why it cannot be tuned.
pub(super) fn new_evaluator(
    context: &Context,
    base: &Oid,
    campaign: &Campaign,
) -> ReasonResult<Evaluator> {
    let dir = context.dir.worktrees().join("tune");
    let campaigns = context.dir.path().parent().unwrap_or(context.dir.path());
    let place = EvaluatorPlace {
        worktrees: Worktrees::new(&context.repos.work, dir.clone())?.sharing_builds(campaigns),
        dir,
        harness: context.harness(),
        trust: IncrementalTrust::default(),
    };
    evaluator_in(context, base, campaign, place)
}

/// Where an evaluator works: its worktrees and their directory.
struct EvaluatorPlace {
    worktrees: Worktrees,
    dir: PathBuf,
    harness: Harness,
    trust: IncrementalTrust,
}

/// An evaluator that works beside the first one, with its own view of the same device.
pub(super) struct ExtraEvaluator {
    pub(super) evaluator: Evaluator,
    pub(super) session: DeviceSession,
}

/// Evaluators beside the first one: as many as the device allows, for a kernel on a device. Each
/// has a sandbox of its own, so that builds do not meet.
pub(super) fn extra_evaluators(
    context: &Context,
    first: &mut Evaluator,
    campaign: &Campaign,
) -> ReasonResult<Vec<ExtraEvaluator>> {
    let at_once = first.at_once()?;
    let campaigns = context.dir.path().parent().unwrap_or(context.dir.path());
    let checkout = context.repos.upstream.checkout();
    // The clocks of the device are locked once.
    let mut charter = context.charter.clone();
    charter.device.clocks = None;
    let mut extra: Vec<ExtraEvaluator> = Vec::new();
    for number in 1..at_once {
        let dir = context.dir.worktrees().join(format!("tune-{number}"));
        let below = dir.join("worktrees");
        // What is left of an earlier run goes before the sandbox keeps the directory open.
        let worktrees = Worktrees::new(&context.repos.work, below.clone())?;
        fs::create_dir_all(&below).context(|| format!("cannot create {}", below.display()))?;
        let sandbox = Sandbox::of(&checkout, campaigns, &dir, &charter)?;
        let place = EvaluatorPlace {
            worktrees,
            dir: below,
            harness: context.harness_in(&dir.join("tmp"), sandbox.as_ref()),
            trust: first.trust().clone(),
        };
        let evaluator = evaluator_in(context, first.base(), campaign, place)?;
        let mut session = DeviceSession::new(&charter, &dir, &dir, &context.device.notices)?;
        if let Some(preparation) = campaign.preparation() {
            session.knows(&preparation.environment);
        }
        extra.push(ExtraEvaluator { evaluator, session });
    }
    let cases = first.cases().to_vec();
    let prepared = tuner::at_once(&mut extra, &|_, one| one.evaluator.prepare_beside(&cases));
    prepared.into_iter().collect::<Result<()>>().map_err(|error| error_text(&error))?;
    Ok(extra)
}

fn evaluator_in(
    context: &Context,
    base: &Oid,
    campaign: &Campaign,
    place: EvaluatorPlace,
) -> ReasonResult<Evaluator> {
    let cases_of = |set| {
        let indices = campaign.cases_of(set).into_iter();
        indices.filter_map(|index| campaign.case(index)).collect()
    };
    let parts = EvaluatorParts {
        repo: context.repos.work.clone(),
        trees: place.worktrees.keeping_secret(secret_of(&context.charter)),
        harness: place.harness.with_cases(incumbent_settings(campaign)),
        copies: place.dir.join("copies"),
        trust: place.trust,
        cases: cases_of(CaseSet::Full),
        hidden: cases_of(CaseSet::Hidden),
    };
    Ok(Evaluator::new(parts, &context.charter, base).map_err(|error| error_text(&error))?)
}

/// The device, as the evaluator uses it.
pub(super) fn tuning_device(context: &mut Context) -> TuningDevice<'_> {
    TuningDevice {
        session: &mut context.device.session,
        notices: &context.device.notices,
        stop: &context.stop,
    }
}

/// The message and its causes, without hints.
pub(super) fn error_text(error: &CommandError) -> String {
    let causes = error.causes.iter().map(|cause| format!(": {cause}"));
    format!("{}{}", error.message, causes.collect::<String>())
}
