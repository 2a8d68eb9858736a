//! What tuning and choosing share: the evaluator of settings, and the device that it measures on.

use super::context::{Context, secret_of};
use super::repeats::settings_per_case;
use crate::tuner::copies::IncrementalTrust;
use crate::tuner::evaluator::{Evaluator, EvaluatorParts, TuningDevice};
use karve_core::campaign::Campaign;
use karve_harness::git::Oid;
use karve_harness::outcome::ReasonResult;
use karve_harness::worktrees::Worktrees;
use karve_numerics::case::CaseSet;
use karve_os::error::CommandError;

/// The evaluator for settings of a candidate, or why it cannot be tuned.
pub(super) fn new_evaluator(
    context: &Context,
    base: &Oid,
    campaign: &Campaign,
) -> ReasonResult<Evaluator> {
    let cases_of = |set| {
        let indices = campaign.cases_of(set).into_iter();
        indices.filter_map(|index| campaign.case(index)).collect()
    };
    let trees = Worktrees::new(&context.repos.work, context.dir.worktrees().join("tune"))?;
    let parts = EvaluatorParts {
        repo: context.repos.work.clone(),
        trees: trees.keeping_secret(secret_of(&context.charter)),
        harness: context.harness().with_cases(settings_per_case(campaign)),
        copies: context.dir.worktrees().join("tune").join("copies"),
        trust: IncrementalTrust::default(),
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
