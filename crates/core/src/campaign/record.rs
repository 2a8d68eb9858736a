//! How an event changes a campaign. An event that was not due is refused.

use super::out_of_order::{EventResult, OutOfOrder, not_due};
use super::round::{RoundPhase, RoundState};
use super::{
    Baseline, Campaign, CampaignPhase, DuelName, Event, HostTally, Record, StatedFigures,
    StopReason,
};
use crate::charter::Limits;
use crate::duel::{Duel, DuelRule};
use crate::knowledge::KnownEntry;
use crate::measurement::{Block, Gate};
use crate::policy::{BLOCKS_MAX, ProfileWhen};
use crate::profile::Profile;
use crate::sampling;

/// Agents that are remembered.
const AGENTS_MAX: usize = 16;

impl Campaign {
    /// Takes in an event. After an error the campaign is unchanged.
    pub fn record(&mut self, record: &Record) -> Result<(), OutOfOrder> {
        // The time of a step counts before the step can end a round: limits look at it.
        let before_ms = self.spent_ms;
        self.spent_ms = before_ms.saturating_add(record.spent_ms);
        let taken = if record.seq == self.n_events {
            self.take(record)
        } else {
            Err(format!("its sequence number should be {}", self.n_events))
        };
        if let Err(detail) = taken {
            self.spent_ms = before_ms;
            let due = self.next_step().map_or("nothing", |step| step.name());
            return Err(OutOfOrder { seq: record.seq, event: record.event.name(), due, detail });
        }
        self.n_events += 1;
        self.know(record);
        self.take_conditions(&record.event);
        self.interrupt_duel();
        Ok(())
    }

    /// Remembers an agent that proposed or implemented.
    fn know(&mut self, record: &Record) {
        let made = matches!(record.event, Event::Proposed { .. } | Event::Implemented { .. });
        if let (true, Some(by)) = (made, &record.by)
            && self.agents.len() < AGENTS_MAX
            && !self.agents.contains(by)
        {
            self.agents.push(by.clone());
        }
    }

    /// The agents that proposed or implemented: the charter's agent, if the log does not say.
    pub fn agents(&self) -> Vec<&str> {
        let named = self.agents.iter().map(String::as_str);
        let named: Vec<&str> = named.collect();
        match (named.is_empty(), self.charter()) {
            (true, Some(charter)) => vec![&charter.agent],
            _ => named,
        }
    }

    /// Time of work so far; pauses do not count.
    pub fn spent_ms(&self) -> u64 {
        self.spent_ms
    }

    /// What the host did to the readings so far.
    pub fn host(&self) -> HostTally {
        self.host
    }

    fn take_conditions(&mut self, event: &Event) {
        let limit = self.charter().map_or(f64::INFINITY, |charter| charter.device.pressure_max);
        if matches!(event, Event::BlockMeasured { .. }) {
            self.devices.measured();
        }
        self.host.take(event, limit);
        if let CampaignPhase::Round(round) = &mut self.phase {
            round.host.take(event, limit);
        }
    }

    fn take(&mut self, record: &Record) -> EventResult {
        match &record.event {
            Event::Unknown => {
                self.unknown_events += 1;
                Ok(())
            }
            Event::DeviceAcquired { device, replaces } => {
                let is_measured = self.baseline().is_some();
                self.devices.acquired(device, is_measured);
                self.devices.interrupts |= *replaces && self.devices.control_due;
                Ok(())
            }
            Event::DeviceReleased { held_ms, busy_ms } => {
                self.devices.released(*held_ms, *busy_ms);
                Ok(())
            }
            Event::DeviceHelped { device, held_ms, busy_ms } => {
                self.devices.helped(device, *held_ms, *busy_ms);
                Ok(())
            }
            Event::Extended { limits } => self.take_limits(*limits),
            Event::Answered { round, text } => {
                self.answered_in = self.answered_in.max(*round);
                self.answers.push(text.clone());
                Ok(())
            }
            Event::KnowledgeRead { known, gone } => {
                self.take_knowledge(known, gone);
                Ok(())
            }
            Event::CasesAdded { .. } => self.take_cases(&record.event),
            Event::TargetDefined { .. }
            | Event::Prepared(_)
            | Event::MutationChecked { .. }
            | Event::TipsRead { .. }
            | Event::BaselineMeasured(_) => self.take_opening(&record.event),
            Event::BlockMeasured { duel: DuelName::Control(control), block, .. } => {
                self.take_control_block(*control, block, record.spent_ms)
            }
            Event::BlockMeasured { duel: DuelName::Final, block, .. } => {
                self.take_final_block(block, record.spent_ms)
            }
            Event::BlockMeasured { duel: DuelName::Baseline { .. }, .. }
            | Event::BlockFailed { duel: DuelName::Baseline { .. }, .. } => {
                self.take_baseline_block(&record.event, record.spent_ms)
            }
            Event::BlockFailed { duel: DuelName::Final, gate, .. } => self.take_final_failure(gate),
            Event::FinalProfiled { profile } => self.take_last_look(profile),
            Event::Finished { reason, headline, baselines } => {
                let stated = StatedFigures { headline: *headline, baselines: baselines.clone() };
                self.take_end(reason, &stated)
            }
            Event::Profiled { .. }
            | Event::Proposed { .. }
            | Event::ProposalRefused { .. }
            | Event::Implemented { .. }
            | Event::NotImplemented { .. }
            | Event::Chosen { .. }
            | Event::Reviewed { .. }
            | Event::Gated { .. }
            | Event::Tuned { .. }
            | Event::BlockMeasured { .. }
            | Event::BlockFailed { .. }
            | Event::Settled { .. }
            | Event::Learned { .. } => self.take_in_round(record),
        }
    }

    fn take_knowledge(&mut self, known: &[KnownEntry], gone: &[String]) {
        let other = |id: &String| known.iter().any(|new| new.id == *id);
        let all = &mut self.facts.known;
        all.retain(|old| !other(&old.id) && !gone.contains(&old.id));
        all.extend(known.iter().cloned());
        all.sort_by(|a, b| a.id.cmp(&b.id));
    }

    fn take_opening(&mut self, event: &Event) -> EventResult {
        match (event, &self.phase) {
            (Event::TargetDefined { charter }, CampaignPhase::Undefined) => {
                self.facts.charter = Some(charter.clone());
                self.facts.items = charter.agenda.as_ref().and_then(|agenda| agenda.items());
                self.phase = CampaignPhase::Defined;
            }
            (Event::Prepared(preparation), CampaignPhase::Defined) => {
                self.facts.preparation = Some(preparation.clone());
                let charter = self.facts.charter.as_deref_mut();
                if let Some(contract) = charter.and_then(|c| c.contract.as_deref_mut())
                    && contract.modules.asks
                {
                    contract.args.clone_from(&preparation.args);
                }
                self.phase = CampaignPhase::Prepared;
            }
            (
                Event::MutationChecked {
                    mutation_check_passed: check_passed,
                    planted_bugs: faults,
                    strength,
                },
                CampaignPhase::Prepared,
            ) => {
                self.facts.planted_bugs.clone_from(faults);
                self.facts.strength.clone_from(strength);
                self.phase = if *check_passed {
                    CampaignPhase::MutationChecked
                } else {
                    CampaignPhase::Closing(StopReason::MutationCheckFailed)
                };
            }
            (Event::TipsRead { tips, known }, CampaignPhase::MutationChecked) => {
                self.facts.tips.clone_from(tips);
                self.facts.known.clone_from(known);
                self.phase = CampaignPhase::TipsKnown;
            }
            (Event::BaselineMeasured(baseline), CampaignPhase::TipsKnown) => {
                self.take_baseline(baseline)
            }
            _ => return not_due(),
        }
        Ok(())
    }

    fn take_baseline(&mut self, baseline: &Baseline) {
        self.facts.baseline = Some(baseline.clone());
        if !baseline.gate.passed() {
            let gate = baseline.gate.clone();
            self.phase = CampaignPhase::Closing(StopReason::BaselineFailed { gate });
            return;
        }
        let Some(charter) = self.charter() else {
            return;
        };
        let named = charter.quick_cases();
        self.facts.quick = if named.is_empty() {
            let metric = &charter.metric;
            sampling::representative(&charter.visible_cases(), &baseline.readings, metric)
        } else {
            named
        };
        match self.baseline_due(None) {
            Some(phase) => self.phase = phase,
            None => self.advance(),
        }
    }

    /// Starts the next round, or the end.
    pub(super) fn advance(&mut self) {
        if !self.profile_due() {
            self.find_items();
        }
        self.phase = match self.stop_due() {
            Some(_) if let Some(control) = self.control_owed() => control,
            Some(reason) => self.closing(reason),
            None if let Some(control) = self.control_due() => control,
            None => {
                self.open_round();
                return;
            }
        };
    }

    fn open_round(&mut self) {
        let first = self.charter().map_or(1, |charter| charter.policy.first_round);
        let number = u32::try_from(self.rounds.len()).unwrap_or(u32::MAX).saturating_add(first);
        let parent = self.incumbent().to_owned();
        let mut round = RoundState::new(number, parent, RoundPhase::Profiling);
        self.phase = CampaignPhase::Undefined;
        if !self.profile_due() {
            self.begin_proposing(&mut round);
        }
        // If no item of the agenda is due, the end is already set.
        if matches!(self.phase, CampaignPhase::Undefined) {
            self.phase = CampaignPhase::Round(Box::new(round));
        }
    }

    /// The end: if something was kept, the final duel measures the original against the final
    /// kernel. Its result stands as long as nothing else is kept; it is not measured again.
    pub(super) fn closing(&self, reason: StopReason) -> CampaignPhase {
        let open = self.lineage.best().is_some() && self.final_comparison.is_none();
        match self.charter() {
            Some(charter) if open => {
                let mut rule =
                    DuelRule::of(charter, self.keep_evidence()).with_second(self.second_clock());
                rule.blocks_min = rule.blocks_min.max(1);
                rule.blocks_max = charter.limits.final_blocks.min(BLOCKS_MAX);
                rule.blocks_max = rule.blocks_max.max(rule.blocks_min);
                let duel = Duel::new(charter, &charter.all_cases(), rule);
                CampaignPhase::Confirming { reason, duel: Box::new(duel), blocks: 0, spent_ms: 0 }
            }
            _ => self.ending(reason),
        }
    }

    /// What comes after the final duel: that with each baseline, then a last profile.
    pub(super) fn ending(&self, reason: StopReason) -> CampaignPhase {
        if let Some(phase) = self.baseline_due(Some(&reason)) {
            return phase;
        }
        match self.last_look_due() {
            true => CampaignPhase::LookingBack(reason),
            false => CampaignPhase::Closing(reason),
        }
    }

    /// Whether the final kernel must be profiled before the end: something was kept, it has no
    /// profile yet, and the policy wants profiles of changes.
    fn last_look_due(&self) -> bool {
        let Some(charter) = self.charter() else {
            return false;
        };
        let is_wanted = match charter.policy.profile_when {
            ProfileWhen::EveryRound | ProfileWhen::OnChange => charter.commands.profile.is_some(),
            ProfileWhen::OnEscalation => false,
        };
        let unseen = |profile: &Profile| profile.commit != self.incumbent();
        is_wanted && self.lineage.best().is_some() && self.profile().is_none_or(unseen)
    }

    fn take_last_look(&mut self, profile: &Profile) -> EventResult {
        let CampaignPhase::LookingBack(reason) = &self.phase else {
            return not_due();
        };
        if profile.commit != self.incumbent() {
            return Err("this is not the final kernel".into());
        }
        self.phase = CampaignPhase::Closing(reason.clone());
        self.facts.profile = Some(profile.clone());
        Ok(())
    }

    fn take_limits(&mut self, limits: Limits) -> EventResult {
        let Some(charter) = self.facts.charter.as_mut() else {
            return not_due();
        };
        if charter.policy.accept.keep_evidence(limits.rounds, 0) > charter.keep_evidence() + 0.5 {
            return Err("more rounds would weaken the charter's error bound".into());
        }
        charter.limits = limits;
        match self.stop_reason() {
            // No limit fixes a base that cannot be judged.
            None | Some(StopReason::MutationCheckFailed | StopReason::BaselineFailed { .. }) => {}
            Some(reason) => {
                if matches!(reason, StopReason::MeasurementInvalid { .. }) {
                    // What made it invalid may be gone: it is checked again first.
                    self.controlled_at = None;
                }
                self.resumed_at = self.rounds.len();
                if self.stop_due().is_none() {
                    self.advance();
                }
            }
        }
        Ok(())
    }

    pub(super) fn duel_limit_ms(&self) -> u64 {
        let limit_s = self.charter().map_or(0, |charter| charter.limits.duel_s);
        limit_s.saturating_mul(1_000)
    }

    fn take_final_block(&mut self, block: &Block, spent: u64) -> EventResult {
        let limit_ms = self.duel_limit_ms();
        let CampaignPhase::Confirming { reason, duel, blocks, spent_ms } = &mut self.phase else {
            return not_due();
        };
        duel.check_discard(block).map_err(|bad| bad.0)?;
        duel.take(block).map_err(|bad| bad.0)?;
        *blocks += 1;
        *spent_ms = spent_ms.saturating_add(spent);
        let enough = duel.n_blocks() >= duel.rule.blocks_max;
        if enough || (*spent_ms >= limit_ms && duel.n_blocks() >= duel.rule.blocks_min) {
            let comparison = duel.comparison();
            let reason = reason.clone();
            self.final_comparison = Some(comparison);
            self.phase = self.ending(reason);
        }
        Ok(())
    }

    fn take_final_failure(&mut self, gate: &Gate) -> EventResult {
        let CampaignPhase::Confirming { reason, .. } = &self.phase else {
            return not_due();
        };
        if gate.passed() {
            return Err("a failed block needs a failed gate".into());
        }
        self.phase = self.ending(reason.clone());
        Ok(())
    }
}
