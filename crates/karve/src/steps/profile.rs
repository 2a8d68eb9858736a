//! Profiles the incumbent before a round.

use super::context::Context;
use super::profiling;
use karve_core::campaign::{Campaign, Event};
use karve_core::profile::ProfileDepth;
use karve_os::error::Result;

pub(crate) fn perform(
    context: &mut Context,
    round: u32,
    commit: &str,
    depth: ProfileDepth,
    campaign: &Campaign,
) -> Result<Event> {
    // The last round may already have profiled its candidate, to see what changed.
    let known = context.carried.profiled.take();
    let known = known.filter(|profile| profile.commit == commit && profile.depth == depth);
    let profile = profiling::known_or_new_profile(context, known, commit, depth, campaign)?;
    Ok(Event::Profiled { round, profile })
}
