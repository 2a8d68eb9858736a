//! Plants bugs in the kernel, and sees whether the tests catch one.

use super::context::Context;
use crate::checks::run_mutation_check;
use karve_core::campaign::{Campaign, Event};
use karve_os::error::Result;

pub(crate) fn perform(context: &Context, campaign: &Campaign) -> Result<Event> {
    let (repos, charter) = (&context.repos, &context.charter);
    let base = campaign.base_commit();
    let (mutation_check_passed, planted_bugs) =
        run_mutation_check(&repos.work, &repos.trees, &context.harness(), charter, base)?;
    Ok(Event::MutationChecked { mutation_check_passed, planted_bugs })
}
