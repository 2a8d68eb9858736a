//! A review of a candidate by another agent, before its gate or after its duel.
//!
//! A review is advice. It may trigger one repair attempt, or, if the policy says so, drop the
//! round; it can never spare a candidate its gate or its duel, nor turn a drop into a keep.

use super::record::{EventResult, not_due};
use super::round::{RoundPhase, RoundState};
use super::{Campaign, Event};
use crate::campaign::strategy::Brief;
use crate::hypothesis::{Candidate, Hypothesis};
use crate::measurement::Gate;
use crate::policy::ReviewRule;
use crate::roles::{Review, SignalAssessment};
use crate::spending::{AgentUsage, TurnPurpose};
use crate::verdict::{self, Verdict};
use karve_numerics::case::CaseSet;
use serde::{Deserialize, Serialize};

/// Reviews of one round at most.
const REVIEWS_MAX: usize = 4;

/// How often a reviewer is asked: again with every error listed, if its reply cannot be read.
const TURNS_MAX: usize = 2;

/// A review of a candidate by another agent, before its gate.
#[derive(Clone, Debug, PartialEq)]
pub struct ReviewStep {
    /// The round.
    pub round: u32,
    /// The number of the attempt.
    pub retry: u32,
    /// The role that reviews.
    pub role: String,
    /// The incumbent.
    pub parent: String,
    /// What was claimed.
    pub hypothesis: Box<Hypothesis>,
    /// Its implementation.
    pub candidate: Candidate,
    /// The same brief that the proposal had.
    pub brief: Box<Brief>,
    /// What the figures of the duel say, if it was measured.
    pub figures: Vec<SignalAssessment>,
}

/// When a candidate is reviewed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReviewTime {
    /// Before it is built.
    BeforeGate,
    /// When it is about to be kept.
    AfterDuel,
}

/// A turn of a reviewer whose reply could not be read, so that it was asked again.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct UnreadableReview {
    /// What was wrong with it.
    pub errors: Vec<String>,
    /// What it used.
    pub usage: AgentUsage,
    /// The artifact with the session log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_log: Option<String>,
}

/// What the last turn of a reviewer used: the total minus the earlier turns.
pub fn last_usage(all: AgentUsage, earlier: &[UnreadableReview]) -> AgentUsage {
    earlier.iter().fold(all, |left, turn| left.minus(turn.usage))
}

/// What came of one turn of a reviewer.
#[derive(Clone, Debug, PartialEq)]
pub enum ReviewReply {
    /// A review.
    Read(Review),
    /// A reply that cannot be read, and everything that is wrong with it.
    Unreadable(Vec<String>),
    /// No reply, and why. The reviewer is not asked again.
    Missing(String),
}

/// The turns of a reviewer about one candidate.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReviewTurns {
    review: Option<Review>,
    is_missing: bool,
    turns: Vec<UnreadableReview>,
}

impl ReviewTurns {
    /// Whether the reviewer is asked, for the first time or again.
    pub fn is_due(&self) -> bool {
        self.review.is_none() && !self.is_missing && self.turns.len() < TURNS_MAX
    }

    /// What was wrong with the last reply.
    pub fn errors(&self) -> &[String] {
        self.turns.last().map_or(&[], |turn| &turn.errors)
    }

    /// What all turns used.
    pub fn usage(&self) -> AgentUsage {
        self.turns.iter().fold(AgentUsage::default(), |sum, turn| sum.plus(turn.usage))
    }

    /// Adds a turn.
    pub fn add(&mut self, reply: ReviewReply, usage: AgentUsage, session_log: Option<String>) {
        let errors = match reply {
            ReviewReply::Read(review) => {
                self.review = Some(review);
                Vec::new()
            }
            ReviewReply::Unreadable(errors) => errors,
            ReviewReply::Missing(why) => {
                self.is_missing = true;
                vec![why]
            }
        };
        self.turns.push(UnreadableReview { errors, usage, session_log });
    }

    /// The event of the last turn. Without a review, the step has failed for the last reason.
    pub fn into_event(mut self, step: &ReviewStep) -> Event {
        let (usage, why) = (self.usage(), self.errors().join("; "));
        let last = self.turns.pop();
        let failed = || Review::failed(&step.candidate.tree, &why);
        Event::Reviewed {
            round: step.round,
            retry: step.retry,
            review: Box::new(self.review.unwrap_or_else(failed)),
            usage,
            session_log: last.and_then(|turn| turn.session_log),
            earlier: self.turns,
        }
    }
}

impl Campaign {
    pub(super) fn review_step(
        &self,
        round: u32,
        retry: u32,
        hypothesis: &Hypothesis,
        candidate: &Candidate,
    ) -> ReviewStep {
        let reviewer = self.charter().and_then(|charter| charter.asks.reviewer());
        ReviewStep {
            round,
            retry,
            role: reviewer.map_or_else(String::new, |role| role.name.clone()),
            parent: self.incumbent().to_owned(),
            hypothesis: Box::new(hypothesis.clone()),
            candidate: candidate.clone(),
            brief: Box::new(self.brief(&[])),
            figures: Vec::new(),
        }
    }

    /// Whether a candidate is reviewed now: once, if there is a reviewer.
    pub(super) fn needs_review(
        &self,
        round: &RoundState,
        candidate: &Candidate,
        at: ReviewTime,
    ) -> bool {
        let seen = round.reviews.iter().any(|r| r.tree == candidate.tree);
        let reviews = self.charter().is_some_and(|charter| {
            let due = match charter.policy.review {
                ReviewRule::Downgrade => ReviewTime::AfterDuel,
                ReviewRule::Record | ReviewRule::Repair | ReviewRule::Skip => {
                    ReviewTime::BeforeGate
                }
            };
            due == at && charter.asks.reviewer().is_some()
        });
        reviews && !seen && round.reviews.len() < REVIEWS_MAX
    }

    /// What comes after the last gate of a candidate with this verdict: a review, if it is due.
    pub(super) fn closing_review(
        &self,
        round: &RoundState,
        retry: u32,
        candidate: &Candidate,
        verdict: Verdict,
    ) -> RoundPhase {
        let is_due = verdict.keeps() && self.needs_review(round, candidate, ReviewTime::AfterDuel);
        match round.hypothesis.clone().filter(|_| is_due) {
            Some(hypothesis) => RoundPhase::Reviewing {
                hypothesis,
                retry,
                candidate: candidate.clone(),
                set: CaseSet::Full,
                proven: Some(verdict),
            },
            None => self.settling(round, candidate, verdict),
        }
    }

    pub(super) fn take_review(&mut self, round: &mut RoundState, event: &Event) -> EventResult {
        let (
            Event::Reviewed { round: of, retry, review, usage, earlier, .. },
            RoundPhase::Reviewing { hypothesis, retry: due, candidate, set, proven },
        ) = (event, &round.phase)
        else {
            return not_due();
        };
        if *of != round.number || retry != due || review.tree != candidate.tree {
            return not_due();
        }
        let Some(policy) = self.charter().map(|charter| &charter.policy) else {
            return not_due();
        };
        let (rule, retries) = (policy.review, policy.debug_retries);
        let (hypothesis, candidate) = (hypothesis.clone(), candidate.clone());
        let (retry, set, proven) = (*retry, *set, proven.clone());
        let repaired = round.reviews.iter().any(Review::doubts);
        for turn in earlier {
            self.count(round, TurnPurpose::Review, turn.usage);
        }
        self.count(round, TurnPurpose::Review, last_usage(*usage, earlier));
        round.reviews.push(review.as_ref().clone());
        if let Some(verdict) = proven {
            let verdict = verdict::judge_review(verdict, review);
            round.phase = self.settling(round, &candidate, verdict);
            return Ok(());
        }
        round.phase = match rule {
            ReviewRule::Skip if review.doubts() => RoundPhase::Settling {
                verdict: verdict::judge_absent(&format!("the reviewer: {}", review.describe())),
            },
            ReviewRule::Repair if review.doubts() && !repaired && retry < retries => {
                RoundPhase::Implementing {
                    hypothesis,
                    retry: retry + 1,
                    variant: round.chosen.unwrap_or(0),
                    repair: Some((candidate, Gate::Passed)),
                    review: Some(review.clone()),
                }
            }
            ReviewRule::Record | ReviewRule::Repair | ReviewRule::Skip | ReviewRule::Downgrade => {
                RoundPhase::Gating { hypothesis, retry, candidate, set, proven: None }
            }
        };
        Ok(())
    }
}
