//! Plants bugs in the kernel, and sees whether the tests catch one.

use super::context::Context;
use crate::checks::{MutationCheck, SharedCheck};
use karve_core::campaign::{Campaign, Event};
use karve_os::error::Result;
use std::time::Duration;

/// How long mutants are planted before the first round.
const STRENGTH_TIME_MAX: Duration = Duration::from_secs(10);

pub(crate) fn perform(context: &Context, campaign: &Campaign) -> Result<Event> {
    let check = MutationCheck {
        repo: &context.repos.work,
        trees: &context.repos.trees,
        harness: &context.harness(),
        charter: &context.charter,
        time_max: None,
        strength_max: STRENGTH_TIME_MAX,
    };
    let shared = SharedCheck::of(&context.repos.upstream, campaign.base_commit(), &context.charter);
    let result = match shared.get() {
        Some(known) => known,
        None => check.run(campaign.base_commit())?,
    };
    Ok(Event::MutationChecked {
        mutation_check_passed: result.caught,
        planted_bugs: result.bugs,
        strength: result.strength,
    })
}
