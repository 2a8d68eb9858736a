//! One block of a duel: finds or builds the two arms, and measures them as a pair.

use super::{World, bug};
use karve_core::campaign::{
    CONTROL_SLOWDOWN, Campaign, Control, ControlKind, DuelName, Event, MeasureStep, Repeats,
};
use karve_core::measurement::Gate;
use karve_harness::commands::{CaseRunSettings, CommandVariant, Harness};
use karve_harness::outcome::GateResult;
use karve_harness::outcome::{BlockFailure, NumberedCase};
use karve_harness::pair_runner::{BuiltArm, PairRunner};
use karve_harness::worktrees::{BuildVariant, BuiltTree};
use karve_numerics::case::{Case, CaseSet};
use karve_numerics::stats;
use karve_os::error::{CommandError, Result};
use std::collections::BTreeMap;

impl World {
    pub(super) fn measure(&mut self, step: &MeasureStep, campaign: &Campaign) -> Result<Event> {
        let numbered = |index: &usize| Some((*index, campaign.case(*index)?));
        let cases: Option<Vec<NumberedCase>> = step.cases.iter().map(numbered).collect();
        let cases = cases.ok_or_else(|| bug("a duel names a case that does not exist"))?;
        let held = self.meeting.take().filter(|(duel, _)| *duel == step.duel);
        let arena = match (held, step.block) {
            (Some((_, arena)), 1..) => arena,
            (_, _) => match self.pair_runner(step, &cases, campaign)? {
                Ok(arena) => arena,
                Err(gate) => {
                    return Ok(Event::BlockFailed {
                        duel: step.duel,
                        gate,
                        raw: None,
                    });
                }
            },
        };
        if step.block == 0 {
            self.device.begin_duel();
            arena.fresh_pages()?;
        }
        let conditions = self.device.before_block(&self.stop, &self.notices)?;
        let measured = arena.block(&cases);
        self.device.after_block();
        if arena.parent.harness.is_under_contract() {
            // The kernel runners stay alive, so that a block has no startup cost.
            self.meeting = Some((step.duel, arena));
        }
        Ok(match measured? {
            Ok(mut block) => {
                block.conditions = Some(Box::new(conditions));
                block.discarded = campaign.discards(&block.pairs);
                Event::BlockMeasured {
                    duel: step.duel,
                    block,
                }
            }
            Err(BlockFailure::Candidate(gate)) if matches!(step.duel, DuelName::Control(_)) => {
                return Err(incumbent_fails("can no longer be measured", &gate));
            }
            Err(BlockFailure::Candidate(gate)) => Event::BlockFailed {
                duel: step.duel,
                gate,
                raw: None,
            },
            // The incumbent passed its gate, so a failure now comes from the host.
            Err(BlockFailure::Parent(gate)) => {
                return Err(incumbent_fails("can no longer be measured", &gate));
            }
        })
    }

    /// The pair runner for the two arms of a step.
    fn pair_runner(
        &mut self,
        step: &MeasureStep,
        cases: &[NumberedCase],
        campaign: &Campaign,
    ) -> Result<GateResult<PairRunner>> {
        let harness = self.harness().with_cases(per_case(campaign));
        match step.duel {
            DuelName::Final => {
                // The first block also tests.
                let tested: Vec<Case> = cases.iter().map(|(_, case)| case.clone()).collect();
                let tested = (step.block == 0).then_some(&tested[..]);
                match self.integration_runner(&step.candidate, &harness, tested)? {
                    Some(arena) => Ok(arena),
                    None => self.round_runner(step, harness, BuildVariant::Usual),
                }
            }
            DuelName::Round { .. } => self.round_runner(step, harness, BuildVariant::Usual),
            DuelName::Layout { variant, .. } => {
                self.round_runner(step, harness, BuildVariant::Layout(variant))
            }
            DuelName::Control(control) => self.control_runner(step, harness, (control, campaign)),
        }
    }

    /// Both arms of a round, built.
    fn round_runner(
        &mut self,
        step: &MeasureStep,
        harness: Harness,
        build: BuildVariant,
    ) -> Result<GateResult<PairRunner>> {
        let variant = match step.duel {
            DuelName::Round { set, .. } | DuelName::Layout { set, .. } if set == CaseSet::Quick => {
                CommandVariant::Quick
            }
            _ => CommandVariant::Usual,
        };
        let parent = match self.trees.built(&self.repo, &harness, &step.parent)? {
            Ok(built) => built,
            Err(gate) => return Err(incumbent_fails("no longer builds", &gate)),
        };
        let candidate = (step.candidate.as_str(), build);
        let candidate = self.trees.built_as(&self.repo, &harness, candidate)?;
        Ok(candidate.map(|candidate| runner_of(harness, parent, candidate, variant)))
    }

    /// A control duel: the incumbent against its own second build (A/A test), or against itself
    /// with a little more work.
    fn control_runner(
        &mut self,
        step: &MeasureStep,
        harness: Harness,
        (control, campaign): (Control, &Campaign),
    ) -> Result<GateResult<PairRunner>> {
        if control.kind == ControlKind::Same {
            return match self.round_runner(step, harness, BuildVariant::Copy)? {
                Ok(arena) => Ok(Ok(arena)),
                Err(gate) => Err(incumbent_fails("no longer builds", &gate)),
            };
        }
        Ok(self
            .round_runner(step, harness, BuildVariant::Usual)?
            .map(|mut arena| {
                // Both arms start the same programs; only the amount of work differs.
                let spinning = |arm: &BuiltArm, share: f64| {
                    arm.harness.clone().with_cases(spins(campaign, share))
                };
                arena.parent.harness = spinning(&arena.parent, 0.0);
                arena.candidate.harness = spinning(&arena.candidate, CONTROL_SLOWDOWN - 1.0);
                arena
            }))
    }
}

/// How often each case is repeated in one run, by name.
pub(super) fn per_case(campaign: &Campaign) -> BTreeMap<String, CaseRunSettings> {
    let Some(baseline) = campaign.baseline() else {
        return BTreeMap::new();
    };
    let named = |of: &Repeats| {
        let name = campaign.case(of.case)?.name;
        let of_case = CaseRunSettings {
            repeats: of.calls,
            spin_us: None,
        };
        Some((name, of_case))
    };
    baseline.repeats.iter().filter_map(named).collect()
}

/// The same for every case, with work of a share of what the baseline took.
fn spins(campaign: &Campaign, share: f64) -> BTreeMap<String, CaseRunSettings> {
    let known = per_case(campaign);
    let readings = campaign.baseline().map_or(&[][..], |b| &b.readings);
    let cases = campaign.charter().map_or(0, |charter| charter.cases.len());
    let of_case = |case: usize| {
        let name = campaign.case(case)?.name;
        let times = readings.iter().filter(|reading| reading.case == case);
        let times: Vec<f64> = times.map(|r| r.sample.cpu_us as f64).collect();
        let spin_us = stats::median(&times)? * share;
        let repeats = known.get(&name).map_or(1, |one| one.repeats);
        let of_case = CaseRunSettings {
            repeats,
            spin_us: Some(spin_us as u64),
        };
        Some((name, of_case))
    };
    (0..cases).filter_map(of_case).collect()
}

/// Two built trees under one harness.
pub(super) fn runner_of(
    harness: Harness,
    parent: BuiltTree,
    candidate: BuiltTree,
    variant: CommandVariant,
) -> PairRunner {
    let arm = |built: BuiltTree| BuiltArm {
        harness: harness.clone(),
        tree: built.path,
    };
    PairRunner::new(arm(parent), arm(candidate), variant)
}

fn incumbent_fails(how: &str, gate: &Gate) -> CommandError {
    CommandError::environment(format!("the incumbent {how}"))
        .cause(gate.describe())
        .hint("check the host with \"karve doctor\"; then resume with \"karve run\"")
}
