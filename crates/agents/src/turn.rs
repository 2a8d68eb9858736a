//! A turn of an agent that answers in text: its task, and how its result becomes an answer.
//!
//! Every kind of agent ends a turn with a reply or with the reason why there is none. For all of
//! them, the reply is parsed here as a proposal, a change, a review or a lesson.

use super::answer::ProposalAnswer;
use super::{
    Agent, AgentQuestion, AgentReply, Implementation, LessonAnswer, LessonQuestion, Proposal,
    Workspace, answer, prompt,
};
use karve_core::campaign::strategy::Brief;
use karve_core::campaign::{ImplementStep, ProposalRefusal};
use karve_core::spending::AgentUsage;
use karve_os::error::Result;
use std::fmt::Debug;

/// How long an agent may take to say what a round taught, in seconds.
const LEARN_S: u64 = 300;

/// The task of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TurnTask {
    Propose,
    Implement,
    Repair,
    Review,
    Learn,
    Profile,
    Trial,
}

impl TurnTask {
    /// The task of a step.
    pub(super) fn of(step: &ImplementStep) -> Self {
        match step.repair {
            Some(_) => Self::Repair,
            None => Self::Implement,
        }
    }

    /// Its time limit, given the limit for any turn. A lesson is short, and the round waits for it.
    pub(super) fn limit_s(self, any_s: u64) -> u64 {
        match self {
            Self::Learn => any_s.min(LEARN_S),
            Self::Propose
            | Self::Implement
            | Self::Repair
            | Self::Review
            | Self::Profile
            | Self::Trial => any_s,
        }
    }

    /// Whether it is done by changing files.
    pub(super) fn changes_files(self) -> bool {
        match self {
            Self::Implement | Self::Repair => true,
            Self::Propose | Self::Review | Self::Learn | Self::Profile | Self::Trial => false,
        }
    }

    /// Its name for programs and in session logs.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Propose => "propose",
            Self::Implement => "implement",
            Self::Repair => "repair",
            Self::Review => "review",
            Self::Learn => "learn",
            Self::Profile => "profile",
            Self::Trial => "trial",
        }
    }
}

/// The request of a turn.
#[derive(Clone, Copy, Debug)]
pub(super) struct TurnRequest<'a> {
    pub(super) task: TurnTask,
    pub(super) round: u32,
    /// Which of several implementations, from 0.
    pub(super) variant: u32,
    /// The text that the agent reads.
    pub(super) brief: &'a str,
    /// The files that it may change.
    pub(super) editable: &'a [String],
}

/// An agent that gets a brief as text and replies in text. This is what its kinds differ in.
pub(super) trait TextAgent: Debug {
    /// Where it answers, as a brief says it.
    const ANSWER_TO: &'static str;

    /// Runs one turn.
    fn run_turn(
        &mut self,
        request: TurnRequest<'_>,
        workspace: &Workspace<'_>,
    ) -> Result<FinishedTurn>;

    /// The end of a brief that does not say itself where the answer goes.
    fn answer_line() -> String {
        format!("\nAnswer {}.\n", Self::ANSWER_TO)
    }

    /// Prepares the directories for an implementation.
    fn prepare(&self, _: &ImplementStep, _: &Workspace<'_>) -> Result<()> {
        Ok(())
    }

    /// Whether it is asked what a round taught.
    fn is_asked_for_lessons(&self) -> bool;

    /// Why it is not asked for a lesson now, because its budget is spent.
    fn over_budget(&self, _: AgentUsage) -> Option<String> {
        None
    }

    /// The environment variable that holds its key, if there is one.
    fn key_variable(&self) -> Option<&str> {
        None
    }

    /// Whether some bytes contain its key.
    fn has_key_in(&self, _: &[u8]) -> bool {
        false
    }
}

impl<T: TextAgent> Agent for T {
    fn propose(&mut self, brief: &Brief, workspace: &Workspace<'_>) -> Result<Proposal> {
        let text = prompt::render_propose(brief, T::ANSWER_TO)?;
        let request = TurnRequest {
            task: TurnTask::Propose,
            round: brief.round,
            variant: 0,
            brief: &text,
            editable: &brief.editable,
        };
        Ok(self.run_turn(request, workspace)?.proposal())
    }

    fn implement(
        &mut self,
        step: &ImplementStep,
        workspace: &Workspace<'_>,
    ) -> Result<Implementation> {
        self.prepare(step, workspace)?;
        let text = prompt::render_implement(step)? + &T::answer_line();
        let request = TurnRequest {
            task: TurnTask::of(step),
            round: step.round,
            variant: step.variant,
            brief: &text,
            editable: &step.brief.editable,
        };
        Ok(self.run_turn(request, workspace)?.implementation())
    }

    fn ask(
        &mut self,
        question: &AgentQuestion<'_>,
        workspace: &Workspace<'_>,
    ) -> Result<AgentReply> {
        let text = format!("{}\nAnswer {}.\n", question.brief, T::ANSWER_TO);
        let request = reading(question.kind.task(), question.round, &text);
        Ok(self.run_turn(request, workspace)?.answered())
    }

    fn reads_worktree(&self) -> bool {
        true
    }

    fn key_variables(&self) -> Vec<String> {
        self.key_variable().map(str::to_owned).into_iter().collect()
    }

    fn knows_key_in(&self, bytes: &[u8]) -> bool {
        self.has_key_in(bytes)
    }

    fn learns(&self, _: Option<&str>) -> bool {
        self.is_asked_for_lessons()
    }

    fn learn(
        &mut self,
        taught: &LessonQuestion<'_>,
        workspace: &Workspace<'_>,
    ) -> Result<LessonAnswer> {
        if let Some(why) = self.over_budget(workspace.spent) {
            let used = UsageReport::Counted(AgentUsage::default());
            return Ok(FinishedTurn { ended: TurnEnd::Spent(why), used }.lesson_answer());
        }
        let text = prompt::render_learn(taught)? + &T::answer_line();
        let request = reading(TurnTask::Learn, taught.round, &text);
        Ok(self.run_turn(request, workspace)?.lesson_answer())
    }
}

/// A request in which no file may change.
fn reading(task: TurnTask, round: u32, brief: &str) -> TurnRequest<'_> {
    TurnRequest { task, round, variant: 0, brief, editable: &[] }
}

/// How a turn ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TurnEnd {
    /// With this reply.
    Replied(String),
    /// Without a reply, and why.
    Failed(String),
    /// Without a reply, and asking again would not help.
    Spent(String),
}

/// Where the usage of a turn comes from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum UsageReport {
    /// The adapter counted it.
    Counted(AgentUsage),
    /// It was not counted, so the answer's own claim is used.
    Claimed,
}

impl UsageReport {
    fn or(self, claimed: AgentUsage) -> AgentUsage {
        match self {
            Self::Counted(usage) => usage,
            Self::Claimed => claimed,
        }
    }
}

/// A finished turn.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct FinishedTurn {
    pub(super) ended: TurnEnd,
    pub(super) used: UsageReport,
}

impl FinishedTurn {
    /// As the answer to a request for a hypothesis.
    pub(super) fn proposal(self) -> Proposal {
        let used = self.used;
        let refused = |refusal| Proposal::Refused(refusal, used.or(AgentUsage::default()));
        let text = match self.ended {
            TurnEnd::Replied(text) => text,
            TurnEnd::Failed(why) => return refused(ProposalRefusal::AgentFailed { why }),
            TurnEnd::Spent(why) => return refused(ProposalRefusal::LimitReached { why }),
        };
        // Its usage counts, even if the answer is useless.
        let refused = |refusal| Proposal::Refused(refusal, used.or(answer::parse_usage(&text)));
        match answer::parse_proposal(&text) {
            Ok(ProposalAnswer::Stated(hypothesis, claimed)) => {
                Proposal::Stated(hypothesis, used.or(claimed))
            }
            Ok(ProposalAnswer::Exhausted(why)) => refused(ProposalRefusal::Exhausted { why }),
            Err(errors) => refused(ProposalRefusal::Unreadable { errors }),
        }
    }

    /// As the answer to a request for a change.
    pub(super) fn implementation(self) -> Implementation {
        let not_done = |why, claimed| Implementation::NotDone { why, usage: self.used.or(claimed) };
        let text = match self.ended {
            TurnEnd::Replied(text) => text,
            TurnEnd::Failed(why) | TurnEnd::Spent(why) => {
                return not_done(why, AgentUsage::default());
            }
        };
        match answer::parse_implementation(&text) {
            Ok((summary, claimed)) => {
                Implementation::Done { summary, usage: self.used.or(claimed) }
            }
            Err(why) => not_done(why, answer::parse_usage(&text)),
        }
    }

    /// As an answer in text.
    pub(super) fn answered(self) -> AgentReply {
        match self.ended {
            TurnEnd::Replied(text) => {
                AgentReply::Replied { usage: self.used.or(answer::parse_usage(&text)), text }
            }
            TurnEnd::Failed(why) | TurnEnd::Spent(why) => {
                AgentReply::Failed { why, usage: self.used.or(AgentUsage::default()) }
            }
        }
    }

    /// As the answer to a request for a lesson.
    pub(super) fn lesson_answer(self) -> LessonAnswer {
        let read = match self.ended {
            TurnEnd::Replied(text) => answer::parse_words(&text),
            TurnEnd::Failed(why) | TurnEnd::Spent(why) => Err((why, AgentUsage::default())),
        };
        match read {
            Ok((words, claimed)) => {
                LessonAnswer { words, usage: self.used.or(claimed), ..LessonAnswer::default() }
            }
            Err((failed, claimed)) => {
                LessonAnswer { failed, usage: self.used.or(claimed), ..LessonAnswer::default() }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUNTED: AgentUsage = AgentUsage { tokens: 7, usd: 0.5, estimated: false };

    fn turned(ended: TurnEnd, used: UsageReport) -> FinishedTurn {
        FinishedTurn { ended, used }
    }

    #[test]
    fn a_failure_is_asked_again_unless_that_cannot_help() {
        let failed = turned(TurnEnd::Failed("api error".into()), UsageReport::Counted(COUNTED));
        let why = "api error".to_owned();
        assert_eq!(
            failed.proposal(),
            Proposal::Refused(ProposalRefusal::AgentFailed { why }, COUNTED)
        );
        let spent = turned(TurnEnd::Spent("budget".into()), UsageReport::Counted(COUNTED));
        let why = "budget".to_owned();
        assert_eq!(
            spent.proposal(),
            Proposal::Refused(ProposalRefusal::LimitReached { why }, COUNTED)
        );
    }

    #[test]
    fn what_an_answer_claims_to_have_used_counts_only_where_nobody_counted() {
        let text = r#"{"summary": "unrolled", "tokens": 1000, "usd": 9.0}"#;
        for (used, tokens) in [(UsageReport::Counted(COUNTED), 7), (UsageReport::Claimed, 1_000)] {
            let done = turned(TurnEnd::Replied(text.into()), used).implementation();
            let Implementation::Done { summary, usage } = done else {
                panic!("{done:?}");
            };
            assert_eq!((summary.as_str(), usage.tokens), ("unrolled", tokens));
        }
    }

    #[test]
    fn a_turn_without_words_teaches_nothing_and_says_why() {
        let failed =
            turned(TurnEnd::Failed("killed".into()), UsageReport::Counted(COUNTED)).lesson_answer();
        assert!(failed.words.is_empty());
        assert_eq!((failed.failed.as_str(), failed.usage), ("killed", COUNTED));
        let answered = turned(TurnEnd::Failed("killed".into()), UsageReport::Claimed).answered();
        let why = "killed".to_owned();
        let usage = AgentUsage::default();
        assert_eq!(answered, AgentReply::Failed { why, usage });
    }
}
