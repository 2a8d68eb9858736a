//! How the events of a round change it.

use super::gating::gate_again;
use super::out_of_order::{EventResult, not_due};
use super::round::{RoundPhase, RoundState, RunningDuel};
use super::{
    Campaign, CampaignPhase, Event, Lesson, PhaseCost, ProposalRefusal, Record, RoundSummary,
    StopReason,
};
use crate::campaign::strategy;
use crate::hypothesis::{Candidate, Hypothesis, HypothesisDigest};
use crate::integrity::{Transfer, allowed_round};
use crate::lineage::KeptCommit;
use crate::measurement::{Block, Gate};
use crate::policy::StopRule;
use crate::spending::{AgentUsage, TurnPurpose, last_usage};
use crate::variants::ImplementedVariant;
use crate::verdict::{self, DropReason, DuelDeadline, DuelRuling, Verdict};
use karve_numerics::case::CaseSet;

/// The outcome of one of several implementations.
fn implemented_variant(variant: u32, came: Result<&Candidate, &String>) -> ImplementedVariant {
    ImplementedVariant {
        variant,
        candidate: came.ok().cloned(),
        why: came.err().cloned().unwrap_or_default(),
    }
}

impl Campaign {
    pub(super) fn take_in_round(&mut self, record: &Record) -> EventResult {
        let mut round = match std::mem::take(&mut self.phase) {
            CampaignPhase::Round(round) => round,
            other => {
                self.phase = other;
                return not_due();
            }
        };
        let before = round.usage;
        let taken = self.take_round_event(&mut round, record);
        if taken.is_ok() {
            PhaseCost::of(record, round.usage.minus(before)).add_to(&mut round.phases);
            round.spent_ms = round.spent_ms.saturating_add(record.spent_ms);
            self.check_round_time(&mut round);
        }
        // A handler that ended the round has already set the next phase.
        if matches!(self.phase, CampaignPhase::Undefined) {
            self.phase = CampaignPhase::Round(round);
        }
        taken
    }

    /// The events of a round. A handler that ends the round sets the next phase itself.
    fn take_round_event(&mut self, round: &mut RoundState, record: &Record) -> EventResult {
        match &record.event {
            Event::Profiled { round: of, profile } => {
                if *of != round.number || !matches!(round.phase, RoundPhase::Profiling) {
                    return not_due();
                }
                for turn in record.event.unread() {
                    self.count(round, TurnPurpose::Profile, turn.usage);
                }
                if let Some(report) = &profile.report {
                    let last = last_usage(report.usage, &report.earlier);
                    self.count(round, TurnPurpose::Profile, last);
                }
                self.facts.profile = Some(profile.clone());
                let is_original = profile.commit == self.base_commit();
                let first = &mut self.facts.first_profile;
                if first.is_none() && is_original {
                    *first = Some(profile.clone());
                }
                self.begin_proposing(round);
                Ok(())
            }
            Event::Proposed { .. } | Event::ProposalRefused { .. } => {
                self.take_proposal(round, &record.event)
            }
            Event::Implemented { .. } | Event::NotImplemented { .. } => {
                self.take_implementation(round, &record.event)
            }
            Event::Chosen { .. } => self.take_choice(round, &record.event),
            Event::Reviewed { .. } => self.take_review(round, &record.event),
            Event::Gated { .. } => self.take_gate(round, &record.event),
            Event::Tuned { round: of, tuned } => {
                self.take_tuned(round, *of, tuned, record.spent_ms)
            }
            Event::BlockMeasured { .. } | Event::BlockFailed { .. } => {
                self.take_duel_event(round, record)
            }
            Event::Settled { .. } | Event::Learned { .. } => self.take_ending(round, record),
            Event::TargetDefined { .. }
            | Event::Prepared(_)
            | Event::MutationChecked { .. }
            | Event::TipsRead { .. }
            | Event::KnowledgeRead { .. }
            | Event::CasesAdded { .. }
            | Event::BaselineMeasured(_)
            | Event::FinalProfiled { .. }
            | Event::DeviceAcquired { .. }
            | Event::DeviceReleased { .. }
            | Event::DeviceHelped { .. }
            | Event::Extended { .. }
            | Event::Answered { .. }
            | Event::Finished { .. }
            | Event::Unknown => not_due(),
        }
    }

    fn take_proposal(&mut self, round: &mut RoundState, event: &Event) -> EventResult {
        let RoundPhase::Proposing { try_no: due, .. } = round.phase else {
            return not_due();
        };
        match event {
            Event::Proposed { round: of, try_no, hypothesis, usage, route, .. }
                if (*of, *try_no) == (round.number, due) =>
            {
                self.count(round, TurnPurpose::Propose, *usage);
                round.route.clone_from(route);
                self.take_hypothesis(round, due, hypothesis);
                Ok(())
            }
            Event::ProposalRefused { round: of, try_no, refusal, usage, route, .. }
                if (*of, *try_no) == (round.number, due) =>
            {
                self.count(round, TurnPurpose::Propose, *usage);
                round.route.clone_from(route);
                self.take_refusal(round, due, refusal);
                Ok(())
            }
            _ => not_due(),
        }
    }

    fn take_implementation(&mut self, round: &mut RoundState, event: &Event) -> EventResult {
        let RoundPhase::Implementing {
            hypothesis,
            retry: due,
            variant: due_variant,
            repair: fix,
            ..
        } = &round.phase
        else {
            return not_due();
        };
        let (hypothesis, due) = (hypothesis.clone(), (*due, *due_variant));
        let one_of_several = fix.is_none() && self.variants_of(&hypothesis) > 1;
        match event {
            Event::Implemented { round: of, retry, variant, candidate, usage, .. }
                if (*of, (*retry, *variant)) == (round.number, due) =>
            {
                self.count(round, purpose_of_retry(*retry), *usage);
                if one_of_several {
                    let made = implemented_variant(*variant, Ok(candidate));
                    self.take_variant(round, hypothesis, made);
                } else {
                    self.take_candidate(round, *retry, hypothesis, candidate);
                }
                Ok(())
            }
            Event::NotImplemented { round: of, retry, variant, why, usage, .. }
                if (*of, (*retry, *variant)) == (round.number, due) =>
            {
                if one_of_several {
                    self.count(round, purpose_of_retry(*retry), *usage);
                    self.take_variant(round, hypothesis, implemented_variant(*variant, Err(why)));
                    return Ok(());
                }
                if let Some((candidate, Gate::Passed)) = fix {
                    // Only a reviewer doubts it, so it goes to the gate unchanged.
                    let candidate = candidate.clone();
                    self.count(round, purpose_of_retry(*retry), *usage);
                    self.ask_gate(round, *retry, hypothesis, &candidate);
                    return Ok(());
                }
                // What could not be fixed is judged as is.
                let failed = fix.as_ref().and_then(|(_, gate)| verdict::judge_gate(gate, false));
                let given_up = failed.as_ref().map(|_| why.clone());
                let verdict = failed.unwrap_or_else(|| verdict::judge_absent(why));
                self.count(round, purpose_of_retry(*retry), *usage);
                round.given_up = given_up;
                round.phase = RoundPhase::Settling { verdict };
                Ok(())
            }
            _ => not_due(),
        }
    }

    fn take_duel_event(&mut self, round: &mut RoundState, record: &Record) -> EventResult {
        let RoundPhase::Measuring(measuring) = &round.phase else {
            return self.take_check(round, record);
        };
        let due = measuring.name(round.number);
        match &record.event {
            Event::BlockMeasured { duel, block, .. } if *duel == due => {
                self.take_block(round, block, record.spent_ms)
            }
            Event::BlockFailed { duel, gate, .. } if *duel == due => round.fail_block(gate),
            _ => not_due(),
        }
    }

    fn take_ending(&mut self, round: &mut RoundState, record: &Record) -> EventResult {
        if let Event::Settled { verdict, .. } = &record.event
            && (self.was_once_tried(round, verdict) || self.was_kept_unchecked(round, verdict))
        {
            round.phase = RoundPhase::Settling { verdict: verdict.clone() };
        }
        match (&record.event, &round.phase) {
            (
                Event::Settled { round: of, verdict, commit },
                RoundPhase::Settling { verdict: due },
            ) if *of == round.number => {
                // An earlier karve kept without a proof; its logs are accepted unchanged.
                let once_kept = verdict.keeps() && super::plausible::is_unproven(due);
                if verdict != due && !once_kept {
                    return Err("the verdict does not match the readings".into());
                }
                if let (Some(candidate), Some(commit)) = (&mut round.candidate, commit) {
                    candidate.commit.clone_from(commit);
                }
                round.phase = RoundPhase::Learning { verdict: verdict.clone() };
                Ok(())
            }
            (
                Event::Learned { round: of, lesson, usage, session_log: _ },
                RoundPhase::Learning { verdict },
            ) if *of == round.number => {
                let verdict = verdict.clone();
                self.count(round, TurnPurpose::Learn, *usage);
                self.close_round(round.clone(), verdict, lesson.clone(), record);
                Ok(())
            }
            _ => not_due(),
        }
    }

    pub(super) fn count(&mut self, round: &mut RoundState, asked: TurnPurpose, usage: AgentUsage) {
        self.spending.count(asked, usage);
        for total in [&mut self.cost, &mut round.usage] {
            total.tokens = total.tokens.saturating_add(usage.tokens);
            // `max` also turns NaN into 0.
            total.usd += usage.usd.max(0.0);
            total.estimated |= usage.estimated;
        }
    }

    fn take_hypothesis(&mut self, round: &mut RoundState, try_no: u32, new: &Hypothesis) {
        if let Some(refused) = self.misses_task(round, new) {
            self.refuse(round, try_no, vec![refused]);
            return;
        }
        let limit = self.charter().map_or(1.0, |charter| charter.policy.duplicate_similarity);
        // Knob settings and sweeps are tried again when the kernel around them changed, and an
        // undecided duel may be continued.
        let comparable = |summary: &RoundSummary| {
            let same_parent = summary.parent == round.parent;
            let undecided = matches!(summary.verdict, Verdict::Undecided { .. });
            let of_code = new.config.is_empty() && !new.sweep;
            // What a person allowed is submitted again.
            let is_allowed =
                self.answers().iter().any(|answer| allowed_round(answer) == Some(summary.number));
            (of_code || same_parent) && !(same_parent && undecided) && !is_allowed
        };
        let gist = HypothesisDigest::of(new);
        // Another try at an item of the agenda applies the same entry in another way.
        let another_try = |summary: &RoundSummary, old: &HypothesisDigest| {
            let same_task = round.task.is_some() && summary.task == round.task;
            same_task && old.similarity_of_words(&gist) < limit
        };
        let alike = |summary: &RoundSummary, old: &Option<HypothesisDigest>| {
            old.as_ref()
                .is_some_and(|old| old.similarity(&gist) >= limit && !another_try(summary, old))
        };
        let twin = self
            .rounds
            .iter()
            .zip(&self.gists)
            .filter(|(summary, _)| !summary.verdict.keeps() && comparable(summary))
            .find(|(summary, old)| alike(summary, old));
        if let Some((twin, _)) = twin {
            let refused = format!("\"{}\" is a duplicate of round {}", new.title, twin.number);
            self.refuse(round, try_no, vec![refused]);
            return;
        }
        if let Some(refused) = strategy::misrouted(self, round.route.as_deref(), new) {
            self.refuse(round, try_no, vec![refused]);
            return;
        }
        if let Some(bucket) = new.bucket.filter(|of| of.transfer() == Transfer::Overfit) {
            let (name, what) = (bucket.name(), bucket.describe());
            let refused = format!("{name} ({what}) gains nothing in real use: state another idea");
            self.refuse(round, try_no, vec![refused]);
            return;
        }
        let refused = self.names_too_few(new).or_else(|| strategy::outside_playbook(self, new));
        if let Some(refused) = refused {
            self.refuse(round, try_no, vec![refused]);
            return;
        }
        if let Some(refused) = strategy::repeats_refuted(self, new) {
            self.refuse(round, try_no, vec![refused]);
            return;
        }
        round.hypothesis = Some(Box::new(new.clone()));
        round.phase = RoundPhase::Implementing {
            hypothesis: Box::new(new.clone()),
            retry: 0,
            variant: 0,
            repair: None,
            review: None,
        };
    }

    fn take_refusal(&mut self, round: &mut RoundState, try_no: u32, refusal: &ProposalRefusal) {
        match refusal {
            ProposalRefusal::Unreadable { errors } => self.refuse(round, try_no, errors.clone()),
            ProposalRefusal::AgentFailed { why } => self.refuse(round, try_no, vec![why.clone()]),
            ProposalRefusal::Exhausted { why } if round.task.is_some() => {
                round.gave_up = true;
                round.refused.push(why.clone());
                round.phase = RoundPhase::Settling { verdict: verdict::judge_absent(why) };
            }
            ProposalRefusal::Exhausted { why } if !self.may_run_out() => {
                let refused = format!(
                    "this campaign does not end because ideas run out ({why}): name a hypothesis \
                     in a direction that was not tried"
                );
                self.refuse(round, try_no, vec![refused]);
            }
            ProposalRefusal::Exhausted { why } => {
                // The round never had a hypothesis, so it does not count.
                self.phase = self.closing(StopReason::Exhausted { why: why.clone(), limit: false });
            }
            // The agent cannot be asked again, for this item or any other.
            ProposalRefusal::LimitReached { why } => {
                self.phase = self.closing(StopReason::Exhausted { why: why.clone(), limit: true });
            }
        }
    }

    /// Whether an agent that has nothing left ends the campaign.
    fn may_run_out(&self) -> bool {
        self.charter().is_none_or(|charter| {
            let rule = StopRule::ProposalsExhausted;
            charter.has_fixed_agent() || charter.policy.stop.contains(&rule)
        })
    }

    /// Why a hypothesis names too few directions, if the rounds before it stagnate and none of
    /// them has named enough. Knobs alone need no direction.
    fn names_too_few(&self, new: &Hypothesis) -> Option<String> {
        let wanted = self.charter().map_or(1, |charter| charter.policy.stagnation_directions);
        let enough = |of: &Hypothesis| of.alternatives.len() + 1 >= wanted as usize;
        let since = self.rounds.iter().rev().take_while(|round| !round.verdict.keeps());
        let named = since.filter_map(|round| round.hypothesis.as_deref()).any(enough);
        let is_knobs = new.sweep || !new.config.is_empty();
        let stagnates = !strategy::directive(self).triggers.is_empty();
        (stagnates && !is_knobs && !named && !enough(new)).then(|| {
            format!(
                "the last rounds gained nothing: name {wanted} fundamentally different directions, \
                 this one and {} in \"alternatives\"",
                wanted - 1
            )
        })
    }

    fn refuse(&self, round: &mut RoundState, try_no: u32, errors: Vec<String>) {
        round.refused.extend(errors.iter().cloned());
        let tries = self.charter().map_or(1, |charter| charter.policy.proposal_tries);
        round.phase = if try_no < tries {
            RoundPhase::Proposing { try_no: try_no + 1, errors }
        } else {
            RoundPhase::Settling { verdict: verdict::judge_absent(&errors.join("; ")) }
        };
    }

    fn take_block(&mut self, round: &mut RoundState, block: &Block, spent: u64) -> EventResult {
        let limit_ms = self.duel_limit_ms();
        let RoundPhase::Measuring(measuring) = &mut round.phase else {
            return not_due();
        };
        measuring.duel.check_discard(block).map_err(|bad| bad.0)?;
        let is_aged = block.aged > 0;
        let is_allowed = match measuring.layouts {
            Some(_) => !is_aged,
            None => verdict::aging_allowed(&measuring.duel, is_aged),
        };
        if !is_allowed {
            return Err("exactly the blocks that were due may be aged".into());
        }
        measuring.duel.take(block).map_err(|bad| bad.0)?;
        measuring.blocks += 1;
        measuring.spent_ms = measuring.spent_ms.saturating_add(spent);
        let time =
            if measuring.spent_ms >= limit_ms { DuelDeadline::Up } else { DuelDeadline::Left };
        if measuring.layouts.is_some() {
            if measuring.duel.n_blocks() >= measuring.duel.rule.blocks_max
                || time == DuelDeadline::Up
            {
                let measuring = measuring.clone();
                self.take_layout(round, measuring);
            }
            return Ok(());
        }
        let DuelRuling::Decided(verdict) = verdict::judge_duel(&measuring.duel, time) else {
            return Ok(());
        };
        let measuring = measuring.clone();
        self.take_ruling(round, measuring, verdict);
        Ok(())
    }

    fn take_ruling(&mut self, round: &mut RoundState, measuring: RunningDuel, verdict: Verdict) {
        let comparison = measuring.duel.comparison();
        round.claims = measuring.duel.claims().clone();
        let on_quick = measuring.set == CaseSet::Quick;
        let high_risk = measuring.hypothesis.high_risk;
        let again = on_quick && self.full_needed(comparison.overall.ratio, high_risk);
        let verdict = self.believed(verdict, &round.parent, &comparison);
        if let Verdict::Drop { reason: DropReason::Gate { gate } } = &verdict {
            round.gate = Some(gate.clone());
        }
        // Time can be up after the warm-up alone, which shows nothing.
        let shown = (comparison.blocks > 0).then_some(comparison);
        if on_quick {
            round.quick = shown;
        } else {
            round.comparison = shown;
        }
        round.missing = match &verdict {
            Verdict::Undecided { .. } => verdict::missing_proof(&measuring.duel),
            _ => None,
        };
        self.remember_duel(&round.parent, &measuring, &verdict);
        let verdict = verdict.gated_by(measuring.hypothesis.gate.as_ref());
        let layouts = self.charter().is_some_and(|c| c.commands.has_layouts());
        round.phase = if !verdict.keeps() {
            RoundPhase::Settling { verdict }
        } else if again || !layouts {
            gate_again(round, &measuring, (!again).then_some(verdict))
        } else {
            self.layout_trial(measuring, verdict)
        };
    }

    /// A policy may limit a round's time; a round that is not settled by then is dropped.
    fn check_round_time(&self, round: &mut RoundState) {
        let minutes = self.charter().and_then(|charter| charter.policy.round_minutes);
        let over = minutes.is_some_and(|m| round.spent_ms > u64::from(m) * 60_000);
        let open =
            !matches!(round.phase, RoundPhase::Settling { .. } | RoundPhase::Learning { .. });
        if over && open {
            round.phase = RoundPhase::Settling { verdict: verdict::judge_overtime() };
        }
    }

    fn close_round(
        &mut self,
        round: RoundState,
        verdict: Verdict,
        lesson: Lesson,
        record: &Record,
    ) {
        let mut summary = round.close(verdict, lesson, record.at_ms);
        summary.spent_ms = summary.spent_ms.saturating_add(record.spent_ms);
        let counted = summary.phases.iter().fold(AgentUsage::default(), |sum, p| sum.plus(p.usage));
        PhaseCost::of(record, summary.usage.minus(counted)).add_to(&mut summary.phases);
        if let (true, Some(candidate)) = (summary.verdict.keeps(), &summary.candidate) {
            self.lineage.push(KeptCommit {
                round: summary.number,
                commit: candidate.commit.clone(),
                tree: candidate.tree.clone(),
                parent: summary.parent.clone(),
                ratio: summary.ratio().unwrap_or(1.0),
                checked: summary.checked_ratio(self.base_commit()),
            });
            // An earlier headline was for another kernel.
            self.final_comparison = None;
        }
        summary.cumulative_ratio = self.lineage.cumulative_ratio();
        summary.unchecked_keeps = self.lineage.n_unchecked();
        self.gists.push(summary.hypothesis.as_deref().map(HypothesisDigest::of));
        self.rounds.push(summary);
        self.advance();
    }
}

/// The purpose of a retry's turn.
fn purpose_of_retry(retry: u32) -> TurnPurpose {
    match retry {
        0 => TurnPurpose::Implement,
        _ => TurnPurpose::Repair,
    }
}
