//! From a candidate to its duel: the gate, and the tuning ladder where it declares knobs.

use super::out_of_order::{EventResult, not_due};
use super::reviewing::ReviewTime;
use super::round::{RoundPhase, RoundState, RunningDuel};
use super::{Campaign, Event};
use crate::hypothesis::{Candidate, Hypothesis};
use crate::ladder::{LadderResult, LadderRule, Rung};
use crate::verdict::{self, DropReason, Verdict};
use karve_numerics::case::CaseSet;

/// One rung of the tuning ladder.
#[derive(Clone, Debug, PartialEq)]
pub struct TuneStep {
    /// The round.
    pub round: u32,
    /// The incumbent.
    pub parent: String,
    /// What is implemented.
    pub hypothesis: Box<Hypothesis>,
    /// Whose knobs are tuned.
    pub candidate: Candidate,
    /// What the ladder showed so far.
    pub seen: Box<LadderResult>,
    /// The rung.
    pub rung: Rung,
    /// Settings of this candidate, including those of the rungs below.
    pub settings: u32,
    /// Milliseconds that the rungs below took.
    pub spent_ms: u64,
    /// Milliseconds that are left for it.
    pub time_ms: u64,
}

/// The gate's verdict for source that already failed it in this round: retrying would let a
/// kernel pass that is right only some of the time.
fn unchanged_failure(round: &RoundState, candidate: &Candidate) -> Option<Verdict> {
    if !round.failed_trees.contains(&candidate.tree) {
        return None;
    }
    verdict::judge_gate(round.gate.as_ref()?, false)
}

/// A candidate is kept only if it was right on every case, however few were timed, and right again
/// on other seeds after it was timed.
pub(super) fn gate_again(
    round: &RoundState,
    measuring: &RunningDuel,
    proven: Option<Verdict>,
) -> RoundPhase {
    RoundPhase::Gating {
        hypothesis: measuring.hypothesis.clone(),
        retry: round.retries,
        candidate: measuring.candidate.clone(),
        set: CaseSet::Full,
        proven,
    }
}

impl Campaign {
    pub(super) fn take_candidate(
        &mut self,
        round: &mut RoundState,
        retry: u32,
        hypothesis: Box<Hypothesis>,
        candidate: &Candidate,
    ) {
        let stands = candidate.tree == self.incumbent_tree();
        if hypothesis.sweep && stands && self.may_tune(round) {
            round.candidate = Some(candidate.clone());
            round.phase = RoundPhase::Tuning {
                hypothesis,
                retry,
                candidate: candidate.clone(),
                set: None,
                rung: Rung::HandPicked,
            };
            return;
        }
        self.ask_gate(round, retry, hypothesis, candidate);
    }

    /// A candidate that is new goes to the gate.
    pub(super) fn ask_gate(
        &mut self,
        round: &mut RoundState,
        retry: u32,
        hypothesis: Box<Hypothesis>,
        candidate: &Candidate,
    ) {
        let open = self.open_duel(&round.parent, &candidate.tree).map(|open| open.set);
        let tried = self.judged_in(&round.parent, &candidate.tree);
        let not_repaired = unchanged_failure(round, candidate);
        round.candidate = Some(candidate.clone());
        round.retries = retry;
        // The results of an earlier candidate of this round say nothing about this one.
        round.quick = None;
        round.comparison = None;
        let judged = verdict::judge_source(&candidate.tree, self.incumbent_tree(), tried);
        round.phase = match judged.or(not_repaired) {
            Some(verdict) => RoundPhase::Settling { verdict },
            None => {
                let set = open.unwrap_or_else(|| self.first_set());
                let candidate = candidate.clone();
                match self.needs_review(round, &candidate, ReviewTime::BeforeGate) {
                    true => {
                        RoundPhase::Reviewing { hypothesis, retry, candidate, set, proven: None }
                    }
                    false => RoundPhase::Gating { hypothesis, retry, candidate, set, proven: None },
                }
            }
        };
    }

    /// The round in which this source was judged, unless its duel against this parent may continue.
    pub(super) fn judged_in(&self, parent: &str, tree: &str) -> Option<u32> {
        let of_tree = |c: &Candidate| c.tree == tree;
        let mut rounds = self.rounds.iter();
        let judged = rounds.find(|summary| {
            summary.verdict.is_of_source() && summary.candidate.as_ref().is_some_and(of_tree)
        });
        judged.map(|summary| summary.number).filter(|_| self.open_duel(parent, tree).is_none())
    }

    /// Whether an earlier karve gave this verdict instead of running the gate: it considered every
    /// submitted source judged. Its logs are accepted unchanged.
    pub(super) fn was_once_tried(&self, round: &RoundState, verdict: &Verdict) -> bool {
        let asks = matches!(round.phase, RoundPhase::Gating { .. } | RoundPhase::Reviewing { .. });
        let Verdict::Drop { reason: DropReason::AlreadyTried { round: tried } } = verdict else {
            return false;
        };
        let earlier = self.rounds.iter().find(|summary| summary.number == *tried);
        let tree = |candidate: &Option<Candidate>| candidate.as_ref().map(|c| c.tree.clone());
        asks && earlier.is_some_and(|earlier| {
            !earlier.verdict.is_of_source() && tree(&earlier.candidate) == tree(&round.candidate)
        })
    }

    fn first_set(&self) -> CaseSet {
        if self.facts.quick == self.cases_of(CaseSet::Full) {
            CaseSet::Full
        } else {
            CaseSet::Quick
        }
    }

    pub(super) fn take_gate(&mut self, round: &mut RoundState, event: &Event) -> EventResult {
        let (
            Event::Gated {
                round: of,
                retry,
                set,
                gate,
                same_artifact,
                errors,
                findings,
                knobs,
                stale_memory,
                work,
                mutants,
            },
            RoundPhase::Gating { hypothesis, retry: due, candidate, set: due_set, proven },
        ) = (event, &round.phase)
        else {
            return not_due();
        };
        if *of != round.number || retry != due || set != due_set {
            return not_due();
        }
        let Some(retries) = self.charter().map(|c| c.policy.debug_retries) else {
            return not_due();
        };
        round.gate = Some(gate.clone());
        round.findings.clone_from(findings);
        round.errors.clone_from(errors);
        round.stale_memory.clone_from(stale_memory);
        round.work.clone_from(work);
        round.mutants = *mutants;
        if !gate.passed() && gate.is_of_source() {
            round.failed_trees.push(candidate.tree.clone());
        }
        round.phase = if gate.repairable() && *retry < retries {
            RoundPhase::Implementing {
                hypothesis: hypothesis.clone(),
                retry: retry + 1,
                variant: round.chosen.unwrap_or(0),
                repair: Some((candidate.clone(), gate.clone())),
                review: None,
            }
        } else if let Some(verdict) = verdict::judge_gate(gate, *same_artifact) {
            RoundPhase::Settling { verdict }
        } else if let Some(verdict) = proven {
            let verdict = self.proven(round, candidate, verdict.clone());
            self.closing_review(round, *retry, candidate, verdict)
        } else {
            let (hypothesis, candidate) = (hypothesis.clone(), candidate.clone());
            let is_open = self.open_duel(&round.parent, &candidate.tree).is_some();
            let fits = *knobs > 0 && hypothesis.config.is_empty() && !is_open;
            if fits && self.may_tune(round) {
                RoundPhase::Tuning {
                    hypothesis,
                    retry: *retry,
                    candidate,
                    set: Some(*set),
                    rung: Rung::HandPicked,
                }
            } else {
                self.measuring(&round.parent, hypothesis, candidate, *set)
            }
        };
        Ok(())
    }

    /// The duel of a candidate that passed its gate.
    fn measuring(
        &self,
        parent: &str,
        hypothesis: Box<Hypothesis>,
        candidate: Candidate,
        set: CaseSet,
    ) -> RoundPhase {
        let Some(charter) = self.charter() else {
            // Every round has one.
            return RoundPhase::Profiling;
        };
        let duel = match self.open_duel(parent, &candidate.tree) {
            Some(open) if open.set == set => self.continued(charter, open),
            _ => self.duel_on(charter, set, hypothesis.high_risk),
        };
        RoundPhase::Measuring(RunningDuel {
            hypothesis,
            candidate,
            set,
            duel: Box::new(duel),
            blocks: 0,
            spent_ms: 0,
            layouts: None,
        })
    }

    fn ladder(&self) -> LadderRule {
        let charter = self.charter();
        charter.map(|charter| charter.policy.tune).unwrap_or_default()
    }

    /// Milliseconds that tuning may still take, given those spent on this candidate.
    fn tuning_left_ms(&self, on_this: u64) -> u64 {
        let wall_s = self.charter().and_then(|charter| charter.limits.wall_s);
        self.ladder().left_ms(on_this, self.tuned_ms, wall_s)
    }

    /// A round climbs the ladder once.
    fn may_tune(&self, round: &RoundState) -> bool {
        round.tuned.is_none() && self.tuning_left_ms(round.tuned_ms) > 0
    }

    /// Whether a sweep of all knobs may be the next hypothesis: not twice from the same kernel.
    pub fn sweep_due(&self) -> bool {
        let incumbent = self.incumbent();
        let swept = self.rounds.iter().any(|round| {
            let sweep = round.hypothesis.as_ref().is_some_and(|h| h.sweep);
            let made = round.candidate.as_ref().is_some_and(|c| c.commit == incumbent);
            sweep && (made || round.parent == incumbent)
        });
        !swept && self.tuning_left_ms(0) > 0
    }

    /// The rung that is due.
    pub(super) fn tune_step(
        &self,
        round: &RoundState,
        hypothesis: &Hypothesis,
        candidate: &Candidate,
        rung: Rung,
    ) -> TuneStep {
        TuneStep {
            round: round.number,
            parent: round.parent.clone(),
            hypothesis: Box::new(hypothesis.clone()),
            candidate: candidate.clone(),
            seen: round.tuned.clone().unwrap_or_default(),
            rung,
            settings: self.ladder().settings(rung),
            spent_ms: round.tuned_ms,
            time_ms: self.tuning_left_ms(round.tuned_ms),
        }
    }

    pub(super) fn take_tuned(
        &mut self,
        round: &mut RoundState,
        of: u32,
        tuned: &LadderResult,
        spent_ms: u64,
    ) -> EventResult {
        let RoundPhase::Tuning { hypothesis, retry, candidate, set, rung } = &round.phase else {
            return not_due();
        };
        if of != round.number || tuned.rung != *rung {
            return not_due();
        }
        let (hypothesis, candidate) = (hypothesis.clone(), candidate.clone());
        let (retry, set) = (*retry, *set);
        self.tuned_ms = self.tuned_ms.saturating_add(spent_ms);
        round.tuned_ms = round.tuned_ms.saturating_add(spent_ms);
        round.tuned = Some(Box::new(tuned.clone()));
        let left = self.tuning_left_ms(round.tuned_ms) > 0;
        if let Some(rung) = self.ladder().next(tuned).filter(|_| left) {
            round.phase = RoundPhase::Tuning { hypothesis, retry, candidate, set, rung };
            return Ok(());
        }
        let chosen = tuned.candidate.clone().unwrap_or_else(|| candidate.clone());
        match set {
            Some(set) if chosen.tree == candidate.tree => {
                round.phase = self.measuring(&round.parent, hypothesis, candidate, set);
            }
            // Another setting is different source, and goes through the gate like any other.
            _ => self.ask_gate(round, retry, hypothesis, &chosen),
        }
        Ok(())
    }
}
