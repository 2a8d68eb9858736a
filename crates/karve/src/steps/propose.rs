//! Asks the agent for a hypothesis.

use super::agent_turn;
use super::context::Context;
use karve_agents::Proposal;
use karve_core::campaign::strategy::Brief;
use karve_core::campaign::{Campaign, Event};
use karve_os::error::Result;

pub(crate) fn perform(
    context: &mut Context,
    round: u32,
    try_no: u32,
    brief: &Brief,
    campaign: &Campaign,
) -> Result<Event> {
    let setup = agent_turn::setup(context, campaign);
    let route = brief.roles.as_ref().map(|roles| Box::new(roles.route.clone()));
    let (proposal, session_log) =
        agent_turn::turn_at_commit(context, &brief.parent, &setup, |agent, workspace| {
            agent.propose(brief, workspace)
        })?;
    Ok(match proposal {
        Proposal::Stated(hypothesis, usage) => {
            Event::Proposed { round, try_no, hypothesis, usage, session_log, route }
        }
        Proposal::Refused(refusal, usage) => {
            Event::ProposalRefused { round, try_no, refusal, usage, session_log, route }
        }
    })
}
