//! Another agent reviews a candidate. Whatever the review says, the gate is next, or the policy
//! decides.

use super::agent_turn;
use super::context::Context;
use karve_agents::{AgentQuestion, AgentReply, messages, render_review};
use karve_core::campaign::{Campaign, Event, ReviewStep, UnreadableReview};
use karve_core::roles::Review;
use karve_core::spending::AgentUsage;
use karve_harness::store;
use karve_os::error::Result;

/// How often a reviewer is asked: again with every error listed, if its answer cannot be parsed.
const REVIEW_TRIES: u32 = 2;

pub(crate) fn perform(
    context: &mut Context,
    step: &ReviewStep,
    campaign: &Campaign,
) -> Result<Event> {
    let patch = store::get_artifact(&context.dir, &step.candidate.patch)?;
    let patch = String::from_utf8_lossy(&patch).into_owned();
    let (mut usage, mut errors) = (AgentUsage::default(), Vec::new());
    let (mut review, mut earlier) = (None, Vec::new());
    let mut last: Option<UnreadableReview> = None;
    let mut setup = agent_turn::setup(context, campaign);
    let before = setup.spent;
    for _ in 0..REVIEW_TRIES {
        setup.spent = sum(before, usage);
        let brief = render_review(step, &patch, &errors)?;
        let question =
            AgentQuestion { round: step.round, retry: step.retry, role: &step.role, brief: &brief };
        let commit = &step.candidate.commit;
        let (answered, session_log) =
            agent_turn::turn_at(context, commit, &setup, |agent, workspace| {
                agent.ask(&question, workspace)
            })?;
        earlier.extend(last.take());
        let (said, used) = match answered {
            AgentReply::Replied { text, usage } => (Ok(text), usage),
            AgentReply::Failed { why, usage } => (Err(why), usage),
        };
        usage = sum(usage, used);
        let is_answered = said.is_ok();
        let read = match said {
            Ok(text) => messages::review_of(&step.candidate.tree, &text),
            Err(why) => Err(vec![why]),
        };
        last = Some(UnreadableReview {
            errors: read.as_ref().err().cloned().unwrap_or_default(),
            usage: used,
            session_log,
        });
        match read {
            Ok(said) => review = Some(said),
            Err(unreadable) => errors = unreadable,
        }
        if review.is_some() || !is_answered {
            break;
        }
    }
    let tree = &step.candidate.tree;
    let failed = || Review::failed(tree, &errors.join("; "));
    Ok(Event::Reviewed {
        round: step.round,
        retry: step.retry,
        review: Box::new(review.unwrap_or_else(failed)),
        usage,
        session_log: last.and_then(|turn| turn.session_log),
        earlier,
    })
}

fn sum(a: AgentUsage, b: AgentUsage) -> AgentUsage {
    AgentUsage {
        tokens: a.tokens.saturating_add(b.tokens),
        usd: a.usd + b.usd,
        estimated: a.estimated || b.estimated,
    }
}
