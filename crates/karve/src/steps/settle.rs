//! Carries out a verdict in the repository.

use super::bug;
use super::context::Context;
use crate::refs::refs_of;
use crate::reports;
use karve_core::campaign::{Campaign, Event};
use karve_core::charter::Branch;
use karve_core::hypothesis::Candidate;
use karve_core::verdict::Verdict;
use karve_harness::git::{ExpectedRef, Oid};
use karve_os::error::Result;

pub(crate) fn perform(
    context: &mut Context,
    round: u32,
    verdict: &Verdict,
    candidate: Option<&Candidate>,
    campaign: &Campaign,
) -> Result<Event> {
    let settled = |commit| Event::Settled { round, verdict: verdict.clone(), commit };
    let (Some(candidate), true) = (candidate, verdict.keeps()) else {
        context.repos.keep_only(&[campaign.incumbent()])?;
        return Ok(settled(None));
    };
    let Some(state) = campaign.current_round() else {
        return Err(bug("settle was called outside a round"));
    };
    // The message has the result, which was not known when the candidate was committed.
    let message = reports::render_commit_message(campaign, &state.preview(verdict.clone()))?;
    let new = context.repos.work.recommit(&Oid::named(&candidate.commit)?, &message)?;
    if let Branch::Named { name } = &context.charter.branch {
        let old = Oid::named(campaign.incumbent())?;
        context.repos.work.update_ref(
            &format!("refs/heads/{name}"),
            &new,
            ExpectedRef::At(&old),
        )?;
    }
    for name in [format!("round-{round}"), "best".to_owned()] {
        let name = format!("{}/{name}", refs_of(&context.charter.name));
        context.repos.work.update_ref(&name, &new, ExpectedRef::Any)?;
    }
    context.repos.keep_only(&[new.as_str()])?;
    Ok(settled(Some(new.to_string())))
}
