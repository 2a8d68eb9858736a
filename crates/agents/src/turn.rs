//! A turn of an agent that answers in text: its task, and how its result becomes an answer.
//!
//! Every kind of agent ends a turn with a reply or with the reason why there is none. For all of
//! them, the reply is parsed here as a proposal, a change, a review or a lesson.

use super::answer::{self, ProposalAnswer};
use super::{Answered, Implementation, Proposal, Said};
use karve_core::campaign::{ImplementStep, Refusal};
use karve_core::spending::Usage;

/// How long an agent may take to say what a round taught, in seconds.
const LEARN_S: u64 = 300;

/// The task of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Task {
    Propose,
    Implement,
    Mend,
    Review,
    Learn,
    Trial,
}

impl Task {
    /// The task of a step.
    pub(super) fn of(step: &ImplementStep) -> Self {
        match step.mend {
            Some(_) => Self::Mend,
            None => Self::Implement,
        }
    }

    /// Its time limit, given the limit for any turn. A lesson is short, and the round waits for it.
    pub(super) fn limit_s(self, any_s: u64) -> u64 {
        match self {
            Self::Learn => any_s.min(LEARN_S),
            Self::Propose | Self::Implement | Self::Mend | Self::Review | Self::Trial => any_s,
        }
    }

    /// Its name for programs and in session logs.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Propose => "propose",
            Self::Implement => "implement",
            Self::Mend => "mend",
            Self::Review => "review",
            Self::Learn => "learn",
            Self::Trial => "trial",
        }
    }
}

/// How a turn ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// With this reply.
    Said(String),
    /// Without a reply, and why.
    Failed(String),
    /// Without a reply, and asking again would not help.
    Spent(String),
}

/// Where the usage of a turn comes from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Used {
    /// The adapter counted it.
    Counted(Usage),
    /// It was not counted, so the answer's own claim is used.
    Claimed,
}

impl Used {
    fn or(self, claimed: Usage) -> Usage {
        match self {
            Self::Counted(usage) => usage,
            Self::Claimed => claimed,
        }
    }
}

/// A finished turn.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Turned {
    pub(super) ended: Ended,
    pub(super) used: Used,
}

impl Turned {
    /// As the answer to a request for a hypothesis.
    pub(super) fn proposal(self) -> Proposal {
        let used = self.used;
        let refused = |refusal| Proposal::Refused(refusal, used.or(Usage::default()));
        let text = match self.ended {
            Ended::Said(text) => text,
            Ended::Failed(why) => return refused(Refusal::AgentFailed { why }),
            Ended::Spent(why) => return refused(Refusal::LimitReached { why }),
        };
        // Its usage counts, even if the answer is useless.
        let refused = |refusal| Proposal::Refused(refusal, used.or(answer::parse_usage(&text)));
        match answer::parse_proposal(&text) {
            Ok(ProposalAnswer::Stated(hypothesis, claimed)) => {
                Proposal::Stated(hypothesis, used.or(claimed))
            }
            Ok(ProposalAnswer::Exhausted(why)) => refused(Refusal::Exhausted { why }),
            Err(errors) => refused(Refusal::Unreadable { errors }),
        }
    }

    /// As the answer to a request for a change.
    pub(super) fn implementation(self) -> Implementation {
        let not_done = |why, claimed| Implementation::NotDone {
            why,
            usage: self.used.or(claimed),
        };
        let text = match self.ended {
            Ended::Said(text) => text,
            Ended::Failed(why) | Ended::Spent(why) => return not_done(why, Usage::default()),
        };
        match answer::parse_implementation(&text) {
            Ok((summary, claimed)) => Implementation::Done {
                summary,
                usage: self.used.or(claimed),
            },
            Err(why) => not_done(why, answer::parse_usage(&text)),
        }
    }

    /// As an answer in text.
    pub(super) fn answered(self) -> Answered {
        match self.ended {
            Ended::Said(text) => Answered::Said {
                usage: self.used.or(answer::parse_usage(&text)),
                text,
            },
            Ended::Failed(why) | Ended::Spent(why) => Answered::Failed {
                why,
                usage: self.used.or(Usage::default()),
            },
        }
    }

    /// As the answer to a request for a lesson.
    pub(super) fn said(self) -> Said {
        let read = match self.ended {
            Ended::Said(text) => answer::parse_words(&text),
            Ended::Failed(why) | Ended::Spent(why) => Err((why, Usage::default())),
        };
        match read {
            Ok((words, claimed)) => Said {
                words,
                usage: self.used.or(claimed),
                ..Said::default()
            },
            Err((failed, claimed)) => Said {
                failed,
                usage: self.used.or(claimed),
                ..Said::default()
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUNTED: Usage = Usage {
        tokens: 7,
        usd: 0.5,
        estimated: false,
    };

    fn turned(ended: Ended, used: Used) -> Turned {
        Turned { ended, used }
    }

    #[test]
    fn a_failure_is_asked_again_unless_that_cannot_help() {
        let failed = turned(Ended::Failed("api error".into()), Used::Counted(COUNTED));
        let why = "api error".to_owned();
        assert_eq!(
            failed.proposal(),
            Proposal::Refused(Refusal::AgentFailed { why }, COUNTED)
        );
        let spent = turned(Ended::Spent("budget".into()), Used::Counted(COUNTED));
        let why = "budget".to_owned();
        assert_eq!(
            spent.proposal(),
            Proposal::Refused(Refusal::LimitReached { why }, COUNTED)
        );
    }

    #[test]
    fn what_an_answer_claims_to_have_used_counts_only_where_nobody_counted() {
        let text = r#"{"summary": "unrolled", "tokens": 1000, "usd": 9.0}"#;
        for (used, tokens) in [(Used::Counted(COUNTED), 7), (Used::Claimed, 1_000)] {
            let done = turned(Ended::Said(text.into()), used).implementation();
            let Implementation::Done { summary, usage } = done else {
                panic!("{done:?}");
            };
            assert_eq!((summary.as_str(), usage.tokens), ("unrolled", tokens));
        }
    }

    #[test]
    fn a_turn_without_words_teaches_nothing_and_says_why() {
        let failed = turned(Ended::Failed("killed".into()), Used::Counted(COUNTED)).said();
        assert!(failed.words.is_empty());
        assert_eq!((failed.failed.as_str(), failed.usage), ("killed", COUNTED));
        let answered = turned(Ended::Failed("killed".into()), Used::Claimed).answered();
        let why = "killed".to_owned();
        let usage = Usage::default();
        assert_eq!(answered, Answered::Failed { why, usage });
    }
}
