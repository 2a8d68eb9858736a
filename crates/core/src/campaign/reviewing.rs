//! A review of a candidate by another agent, before its gate or after its duel.
//!
//! A review is advice. It may trigger one repair attempt, or, if the policy says so, drop the
//! round; it can never spare a candidate its gate or its duel, nor turn a drop into a keep.

use super::out_of_order::{EventResult, not_due};
use super::round::{RoundPhase, RoundState};
use super::{Campaign, Event};
use crate::campaign::strategy::Brief;
use crate::hypothesis::{Candidate, Hypothesis};
use crate::measurement::Gate;
use crate::policy::ReviewRule;
use crate::roles::{Review, SignalAssessment};
use crate::spending::{AnswerTurns, TurnPurpose, last_usage};
use crate::verdict::{self, Verdict};
use karve_numerics::case::CaseSet;

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

impl AnswerTurns<Review> {
    /// The event of the last turn. Without a review, the step has failed for the last reason.
    pub fn into_event(self, step: &ReviewStep) -> Event {
        let turns = self.end();
        let failed = || Review::failed(&step.candidate.tree, &turns.why);
        Event::Reviewed {
            round: step.round,
            retry: step.retry,
            review: Box::new(turns.answer.unwrap_or_else(failed)),
            usage: turns.usage,
            session_log: turns.session_log,
            earlier: turns.earlier,
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

    /// Whether a candidate is reviewed now: once, if there is a reviewer. The policy's repair
    /// attempts bound how many candidates a round has.
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
        reviews && !seen
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
