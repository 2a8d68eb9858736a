//! What a round taught: in numbers by karve, in words by the agent.

use super::agent_turn::TurnOutcome;
use super::context::Context;
use super::{ablation, agent_turn, bug, far, knowledge, profiling, tips};
use crate::library::learn;
use crate::library::situation::scope_of;
use crate::remote::wire::{Outcome, Work};
use karve_agents::{LessonAnswer, LessonQuestion};
use karve_core::campaign::{Campaign, Event, RoundPhase, RoundSummary, strategy};
use karve_core::hypothesis::PartShare;
use karve_core::knowledge::{Learning, PredictedCounter};
use karve_core::profile::Profile;
use karve_core::spending::AgentUsage;
use karve_os::clock;
use karve_os::error::{CommandError, ErrorKind, Result};

/// Characters of the reason why an agent gave no lesson.
const NO_LESSON_CHARS: usize = 300;
/// Tools whose version a piece of evidence names, by language.
const TOOLCHAINS: &[(&str, &[&str])] = &[
    ("rust", &["rustc"]),
    ("cuda", &["nvcc"]),
    ("hip", &["hipcc"]),
    ("triton", &["python3"]),
    ("python", &["python3"]),
];

pub(crate) fn perform(context: &mut Context, round: u32, campaign: &Campaign) -> Result<Event> {
    let (after, shares) = match has_study(campaign) {
        false => (None, Vec::new()),
        true => match far::ask(context, Some(campaign), &Work::Learn, &[])? {
            None => study(context, campaign)?,
            Some(Outcome::Learned { after, shares }) => {
                context.carried.profiled = after.as_deref().cloned();
                (after.map(|profile| *profile), shares)
            }
            Some(_) => return Err(bug("the worker learned nothing")),
        },
    };
    let mut lesson = strategy::lesson(campaign, after.as_ref());
    lesson.add_shares(shares);
    let mut usage = AgentUsage::default();
    let mut session_log = None;
    if let Some(learning) = &mut lesson.learning {
        learning.evidence.toolchain = toolchain(context, campaign);
        let (answer, artifact) =
            ask_lesson(context, campaign, &lesson.text, &lesson.predicted, learning)?;
        learning.words = answer.words;
        learning.unsaid = answer.failed.chars().take(NO_LESSON_CHARS).collect();
        usage = answer.usage;
        session_log = artifact;
        learning.became = learn::take_in(
            &knowledge::library_layers(context),
            learning,
            &scope_of(&context.charter.target),
        )?;
    }
    if let Some(mut summary) = settled(campaign) {
        summary.lesson = lesson.clone();
        tips::append_tip(context, campaign, &summary)?;
    }
    Ok(Event::Learned { round, lesson, usage, session_log })
}

/// Whether something must be built to learn from the round.
fn has_study(campaign: &Campaign) -> bool {
    strategy::to_compare(campaign).is_some() || strategy::to_ablate(campaign).is_some()
}

/// The profile of the candidate, and the shares of the parts of its change.
pub(crate) fn study(
    context: &mut Context,
    campaign: &Campaign,
) -> Result<(Option<Profile>, Vec<PartShare>)> {
    let after = profiling::profile_candidate(context, campaign)?;
    Ok((after, ablation::shares(context, campaign)?))
}

/// The round as it ends now.
fn settled(campaign: &Campaign) -> Option<RoundSummary> {
    let round = campaign.current_round()?;
    let RoundPhase::Learning { verdict } = &round.phase else {
        return None;
    };
    Some(RoundSummary { at_ms: clock::now_ms(), ..round.preview(verdict.clone()) })
}

/// The agent's lesson from a round, if it is asked for one; with the artifact of its session
/// log.
fn ask_lesson(
    context: &mut Context,
    campaign: &Campaign,
    lesson: &str,
    predicted: &[PredictedCounter],
    learning: &Learning,
) -> Result<(LessonAnswer, Option<String>)> {
    let Some(round) = campaign.current_round() else {
        return Ok(Default::default());
    };
    let route = round.route.as_ref();
    let role = route.map(|route| route.implements.as_str());
    let hypothesis = round.hypothesis.as_ref();
    let Some(hypothesis) = hypothesis.filter(|_| context.acting.agent.learns(role)) else {
        return Ok(Default::default());
    };
    let question =
        LessonQuestion { round: round.number, role, hypothesis, lesson, predicted, learning };
    let setup = agent_turn::setup(context, campaign);
    let answered =
        agent_turn::turn_at_commit(context, &round.parent, &setup, |agent, workspace| {
            agent.learn(&question, workspace)
        });
    answered.or_else(without_lesson)
}

/// What the kernel was built with.
fn toolchain(context: &Context, campaign: &Campaign) -> String {
    let target = &context.charter.target;
    let words = [target.language.to_lowercase(), target.backend.to_lowercase()];
    let tools = TOOLCHAINS
        .iter()
        .find(|(language, _)| words.iter().any(|word| word == language))
        .map_or(&["gcc", "cc", "clang"][..], |(_, tools)| tools);
    let facts = campaign.preparation().map(|p| &p.environment.facts);
    let named = tools.iter().find_map(|tool| facts?.get(*tool));
    named.cloned().unwrap_or_else(|| "not reported by the host".to_owned())
}

/// An agent that cannot be asked gives no lesson; the round is settled anyway.
fn without_lesson(error: CommandError) -> Result<TurnOutcome<LessonAnswer>> {
    match error.kind {
        ErrorKind::Interrupted | ErrorKind::Bug => Err(error),
        ErrorKind::Negative | ErrorKind::Usage | ErrorKind::Environment | ErrorKind::Busy => {
            let answer = LessonAnswer { failed: error.message, ..LessonAnswer::default() };
            Ok((answer, None))
        }
    }
}
