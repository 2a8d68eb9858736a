//! Profiles the final kernel, after the final duel.

use super::context::Context;
use super::profiling;
use karve_core::campaign::{Campaign, Event};
use karve_core::profile::ProfileDepth;
use karve_os::error::Result;

pub(crate) fn perform(
    context: &mut Context,
    commit: &str,
    depth: ProfileDepth,
    campaign: &Campaign,
) -> Result<Event> {
    // An existing profile of the same commit is reused.
    let known = context.carried.profiled.take();
    let known = known.filter(|profile| profile.commit == commit);
    let profile = profiling::known_or_new_profile(context, known, commit, depth, campaign)?;
    Ok(Event::FinalProfiled { profile })
}
