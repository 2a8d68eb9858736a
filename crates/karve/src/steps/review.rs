//! Another agent reviews a candidate. Whatever the review says, the gate is next, or the policy
//! decides.

use super::agent_turn;
use super::context::Context;
use karve_agents::{AgentQuestion, AgentReply, QuestionKind, messages, render_review};
use karve_core::campaign::{Campaign, Event, ReviewStep};
use karve_core::spending::{AnswerTurns, TurnAnswer};
use karve_harness::store;
use karve_os::error::Result;

pub(crate) fn perform(
    context: &mut Context,
    step: &ReviewStep,
    campaign: &Campaign,
) -> Result<Event> {
    let patch = store::get_artifact(&context.dir, &step.candidate.patch)?;
    let patch = String::from_utf8_lossy(&patch).into_owned();
    let mut setup = agent_turn::setup(context, campaign);
    let before = setup.spent;
    let mut turns = AnswerTurns::default();
    while turns.is_due() {
        setup.spent = before.plus(turns.usage());
        let brief = render_review(step, &patch, turns.errors())?;
        let question = AgentQuestion {
            kind: QuestionKind::Review,
            round: step.round,
            retry: step.retry,
            role: &step.role,
            brief: &brief,
        };
        let commit = &step.candidate.commit;
        let (answered, session_log) =
            agent_turn::turn_at_commit(context, commit, &setup, |agent, workspace| {
                agent.ask(&question, workspace)
            })?;
        let (reply, usage) = match answered {
            AgentReply::Replied { text, usage } => {
                let read = messages::review_of(&step.candidate.tree, &text);
                (read.map_or_else(TurnAnswer::Unreadable, TurnAnswer::Read), usage)
            }
            AgentReply::Failed { why, usage } => (TurnAnswer::Missing(why), usage),
        };
        turns.add(reply, usage, session_log);
    }
    Ok(turns.into_event(step))
}
