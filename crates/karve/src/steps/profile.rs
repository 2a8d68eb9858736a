//! Profiles the incumbent before a round, and asks the profiler for its report if there is one.

use super::agent_turn;
use super::context::Context;
use super::{bug, far, profiling};
use crate::remote::wire::{Outcome, Work};
use karve_agents::{AgentQuestion, AgentReply, QuestionKind, render_profile};
use karve_core::campaign::{Campaign, Event, strategy};
use karve_core::profile::{AgentProfile, Profile, ProfileDepth};
use karve_core::spending::{AnswerTurns, TurnAnswer};
use karve_os::error::Result;
use karve_profile::profilers::contract;

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
    let mut profile = match known {
        Some(profile) => profile,
        None => {
            let work = Work::Profile { commit: commit.to_owned(), depth };
            match far::ask(context, Some(campaign), &work, &[])? {
                None => profile_commit(context, commit, depth, campaign)?,
                Some(Outcome::Profiled { profile }) => *profile,
                Some(_) => return Err(bug("the worker profiled nothing")),
            }
        }
    };
    profile.report = ask_profiler(context, round, &profile, campaign)?.map(Box::new);
    Ok(Event::Profiled { round, profile })
}

/// The profile of a commit.
pub(crate) fn profile_commit(
    context: &mut Context,
    commit: &str,
    depth: ProfileDepth,
    campaign: &Campaign,
) -> Result<Profile> {
    profiling::known_or_new_profile(context, None, commit, depth, campaign)
}

/// What the role that profiles reports, if an agent has it.
fn ask_profiler(
    context: &mut Context,
    round: u32,
    profile: &Profile,
    campaign: &Campaign,
) -> Result<Option<AgentProfile>> {
    let Some(role) = context.charter.asks.profiler().map(|role| role.name.clone()) else {
        return Ok(None);
    };
    let mut told = strategy::brief(campaign, &[]);
    told.profile.clone_from(&profile.digest);
    let mut setup = agent_turn::setup(context, campaign);
    let before = setup.spent;
    let mut turns = AnswerTurns::default();
    while turns.is_due() {
        setup.spent = before.plus(turns.usage());
        let brief = render_profile(&told, turns.errors())?;
        let kind = QuestionKind::Profile;
        let question = AgentQuestion { kind, round, retry: 0, role: &role, brief: &brief };
        let (answered, session_log) =
            agent_turn::turn_at_commit(context, &profile.commit, &setup, |agent, workspace| {
                agent.ask(&question, workspace)
            })?;
        let (reply, usage) = match answered {
            AgentReply::Replied { text, usage } => {
                let read = contract::claims_of(&text);
                (read.map_or_else(TurnAnswer::Unreadable, TurnAnswer::Read), usage)
            }
            AgentReply::Failed { why, usage } => (TurnAnswer::Missing(why), usage),
        };
        turns.add(reply, usage, session_log);
    }
    Ok(Some(AgentProfile::of(&role, turns.end(), profile)))
}
