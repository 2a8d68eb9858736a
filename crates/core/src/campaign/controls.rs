//! Controls: the measurement is checked on kernels that are known to be equal, or to differ.
//!
//! At the baseline, or after the first round, and every few rounds an A/A test measures the
//! incumbent against its own second build. A difference between equals, found twice in a row, ends
//! the campaign: its readings cannot be trusted. The first time, if karve's own clock is the
//! metric, the incumbent is also measured against itself with a little more work, to see whether
//! this host shows a 3% slowdown. When another device takes over in the middle of a duel, the A/A
//! test comes before the next block.

use super::left::{DuelLeft, left};
use super::out_of_order::{EventResult, not_due};
use super::round::RoundState;
use super::{Campaign, CampaignPhase, DuelName, MeasureStep, ProcessAge, Step, StopReason};
use crate::comparison::{Clock, Comparison};
use crate::duel::{Duel, DuelRule};
use crate::measurement::{Block, DiscardReason};
use crate::verdict::FalsePositive;
use crate::{power, verdict};
use karve_numerics::case::CaseSet;
use karve_numerics::stats;
use serde::{Deserialize, Serialize};
use std::sync::OnceLock;

/// How much more work the slower arm of a positive control has.
pub const CONTROL_SLOWDOWN: f64 = 1.03;

/// What the candidate of a control is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ControlKind {
    /// A second build of the same commit.
    Same,
    /// The same build, followed by 3% of its own time in plain work.
    Slower,
}

/// Which control.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Control {
    /// Rounds settled before it.
    pub after: u32,
    /// What its candidate is.
    pub kind: ControlKind,
    /// 1, or 2 when the first found a difference.
    pub attempt: u32,
    /// The device that it tests in the middle of a duel, counted from 1; 0 between rounds.
    #[serde(default, skip_serializing_if = "is_between_rounds")]
    pub device: u32,
}

impl Control {
    /// One between two rounds.
    fn between(after: u32, kind: ControlKind) -> Self {
        Self { after, kind, attempt: 1, device: 0 }
    }
}

fn is_between_rounds(device: &u32) -> bool {
    *device == 0
}

/// A control under way.
#[derive(Clone, Debug)]
pub(super) struct RunningControl {
    control: Control,
    duel: Box<Duel>,
    blocks: u32,
    spent_ms: u64,
    /// What the first attempt found.
    suspicion: Option<FalsePositive>,
    /// What goes on after it, if it came in the middle of a duel.
    interrupted: Option<Box<CampaignPhase>>,
}

/// What a control showed.
#[derive(Clone, Debug)]
pub struct ControlResult {
    /// Which control.
    pub control: Control,
    /// What its duel showed.
    pub comparison: Comparison,
    /// The difference that it found, if any.
    pub suspicion: Option<FalsePositive>,
    /// Log speedups by each clock that counts, one per block.
    tracks: Vec<(Clock, Vec<f64>)>,
    /// Simulated on demand, once.
    detectable: OnceLock<Option<DetectableEffect>>,
}

/// The smallest speedup that a duel on this host would detect four times out of five.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct DetectableEffect {
    /// The speedup.
    pub ratio: f64,
    /// By this clock.
    pub clock: Clock,
}

impl RunningControl {
    pub(super) fn discards(&self, block: &Block) -> Option<DiscardReason> {
        self.duel.discards(block)
    }

    pub(super) fn duel(&self) -> &Duel {
        &self.duel
    }

    /// The round in which it came, if it came in the middle of a duel.
    pub(super) fn round(&self) -> Option<&RoundState> {
        match self.interrupted.as_deref() {
            Some(CampaignPhase::Round(round)) => Some(round),
            _ => None,
        }
    }

    pub(super) fn left(&self, limit_ms: u64) -> DuelLeft {
        left(&self.duel, self.blocks, self.spent_ms, limit_ms)
    }

    pub(super) fn step(&self, incumbent: &str) -> Step {
        Step::Measure(MeasureStep {
            duel: DuelName::Control(self.control),
            parent: incumbent.to_owned(),
            candidate: incumbent.to_owned(),
            cases: self.duel.cases(),
            block: self.blocks,
            age: ProcessAge::Usual,
        })
    }
}

impl Campaign {
    /// How much plain work follows a case in an arm of a positive control, in microseconds: a share
    /// of the CPU time that the case took at the baseline.
    pub fn spin_us(&self, case: usize, share: f64) -> Option<u64> {
        let readings = self.baseline().map_or(&[][..], |baseline| &baseline.readings);
        let times = readings.iter().filter(|reading| reading.case == case);
        let times: Vec<f64> = times.map(|reading| reading.sample.cpu_us as f64).collect();
        Some((stats::median(&times)? * share) as u64)
    }

    /// What the controls showed, in order.
    pub fn controls(&self) -> &[ControlResult] {
        &self.controls
    }

    /// What the last A/A test shows about the host.
    pub fn host_noise(&self) -> Option<&ControlResult> {
        let equal = |result: &&ControlResult| result.control.kind == ControlKind::Same;
        self.controls.iter().rev().find(equal)
    }

    /// The smallest speedup that a round would have detected, by the last control.
    pub fn detectable(&self) -> Option<DetectableEffect> {
        let (charter, last) = (self.charter()?, self.host_noise()?);
        let rule = DuelRule::of(charter, self.keep_evidence());
        *last.detectable.get_or_init(|| {
            let by_clock = last.tracks.iter().filter_map(|(clock, ln_speedups)| {
                let noise = power::residuals(ln_speedups);
                let ratio = power::smallest_detectable(&noise, &rule, charter.seed)?;
                Some(DetectableEffect { ratio, clock: *clock })
            });
            by_clock.min_by(|a, b| a.ratio.total_cmp(&b.ratio))
        })
    }

    /// The control that is due before the next round.
    pub(super) fn control_due(&self) -> Option<CampaignPhase> {
        let every = self.charter()?.policy.controls.every;
        let after = u32::try_from(self.rounds.len()).unwrap_or(u32::MAX);
        let is_next = after == self.first_control() || after > 0 && after.is_multiple_of(every);
        let is_next = is_next && self.controlled_at != Some(after);
        // After the device changed, whether it still measures well must be seen again.
        let due = every > 0 && (is_next || self.devices.control_due);
        due.then(|| self.controlling(Control::between(after, ControlKind::Same)))?
    }

    /// A device that took the place of another in the middle of a duel is tested on equals before
    /// the next block; then the duel goes on.
    pub(super) fn interrupt_duel(&mut self) {
        let is_control = matches!(self.phase, CampaignPhase::Controlling(_));
        if !self.devices.interrupts || is_control || self.running_duel().is_none() {
            return;
        }
        self.devices.interrupts = false;
        let is_wanted = self.charter().is_some_and(|charter| charter.policy.controls.every > 0);
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let (after, device) = (count(self.rounds.len()), count(self.devices.uses.len()));
        let control = Control { device, ..Control::between(after, ControlKind::Same) };
        if let Some(CampaignPhase::Controlling(mut control)) =
            is_wanted.then(|| self.controlling(control)).flatten()
        {
            control.interrupted = Some(Box::new(std::mem::take(&mut self.phase)));
            self.phase = CampaignPhase::Controlling(control);
        }
    }

    /// Settled rounds before the first control.
    fn first_control(&self) -> u32 {
        u32::from(self.settles_first())
    }

    /// The control that is due before anything else: a campaign that keeps something does not end
    /// without one.
    pub(super) fn control_owed(&self) -> Option<CampaignPhase> {
        let is_owed = self.lineage.best().is_some() && self.controls.is_empty();
        (is_owed && self.settles_first()).then(|| self.control_due())?
    }

    fn controlling(&self, control: Control) -> Option<CampaignPhase> {
        let charter = self.charter()?;
        let mut rule = DuelRule::of(charter, verdict::NOISE_EVIDENCE)
            .for_equals()
            .with_second(self.second_clock());
        rule.blocks_max = charter.policy.controls.blocks;
        let cases = self.cases_of(CaseSet::Quick);
        Some(CampaignPhase::Controlling(Box::new(RunningControl {
            control,
            duel: Box::new(Duel::new(charter, &cases, rule)),
            blocks: 0,
            spent_ms: 0,
            suspicion: None,
            interrupted: None,
        })))
    }

    pub(super) fn take_control_block(
        &mut self,
        control: Control,
        block: &Block,
        spent: u64,
    ) -> EventResult {
        let limit_ms = self.duel_limit_ms();
        let CampaignPhase::Controlling(state) = &mut self.phase else {
            return not_due();
        };
        if state.control != control {
            return not_due();
        }
        state.duel.check_discard(block).map_err(|bad| bad.0)?;
        state.duel.take(block).map_err(|bad| bad.0)?;
        state.blocks += 1;
        state.spent_ms = state.spent_ms.saturating_add(spent);
        let suspicion = verdict::judge_control(&state.duel);
        let done = state.duel.n_blocks() >= state.duel.rule.blocks_max
            || suspicion.is_some()
            || state.spent_ms >= limit_ms;
        if done {
            let state = state.clone();
            self.close_control(&state, suspicion);
        }
        Ok(())
    }

    fn close_control(&mut self, state: &RunningControl, suspicion: Option<FalsePositive>) {
        let tracks = state.duel.tracks.iter();
        self.controls.push(ControlResult {
            control: state.control,
            comparison: state.duel.comparison(),
            suspicion,
            tracks: tracks.map(|t| (t.clock, t.ln_speedups.clone())).collect(),
            detectable: OnceLock::new(),
        });
        self.controlled_at = Some(state.control.after);
        (self.devices.control_due, self.devices.interrupts) = (false, false);
        let Control { after, attempt, device, .. } = state.control;
        let is_first = device == 0 && after == self.first_control();
        match (state.control.kind, suspicion) {
            (ControlKind::Same, Some(found)) if attempt == 1 => {
                let again = Control { attempt: 2, ..state.control };
                if let Some(CampaignPhase::Controlling(mut next)) = self.controlling(again) {
                    next.suspicion = Some(found);
                    next.interrupted.clone_from(&state.interrupted);
                    self.phase = CampaignPhase::Controlling(next);
                }
            }
            (ControlKind::Same, Some(found)) if state.suspicion == Some(found) => {
                self.phase = CampaignPhase::Closing(StopReason::MeasurementInvalid { found });
            }
            (ControlKind::Same, _) if is_first && self.has_own_clock() => {
                let slower = Control::between(after, ControlKind::Slower);
                if let Some(phase) = self.controlling(slower) {
                    self.phase = phase;
                }
            }
            (ControlKind::Same | ControlKind::Slower, _) => match &state.interrupted {
                Some(phase) => self.phase = (**phase).clone(),
                None => self.advance(),
            },
        }
    }

    /// Whether the metric is karve's own clock, so that work can be added to what it times.
    fn has_own_clock(&self) -> bool {
        self.charter().is_some_and(|c| c.metric.own_clock().is_some())
    }
}

impl ControlResult {
    /// Whether it showed that the candidate is slower, as one with more work is.
    pub fn shows_slowdown(&self) -> bool {
        let favors = self.suspicion.map(|found| found.favors);
        favors == Some(verdict::Arm::Parent)
    }

    /// The higher evidence for a difference, by the metric.
    pub fn evidence(&self) -> f64 {
        let shown = &self.comparison;
        shown.evidence_faster.max(shown.evidence_not_faster)
    }
}
