//! One block of a duel: finds or builds the two arms, and lets them meet.

use super::{World, bug};
use crate::arena::{Arena, Arm, Fault, NumberedCase};
use crate::error::{CommandError, Result};
use crate::harness::{Gated, Harness, Variant};
use crate::trees::Built;
use karve_core::campaign::{Campaign, DuelName, Event, MeasureStep};
use karve_core::charter::{Case, CaseSet};
use karve_core::measurement::Gate;
use karve_core::sampling;

impl World {
    pub(super) fn measure(&mut self, step: &MeasureStep, campaign: &Campaign) -> Result<Event> {
        let numbered = |index: &usize| Some((*index, campaign.case(*index)?));
        let cases: Option<Vec<NumberedCase>> = step.cases.iter().map(numbered).collect();
        let cases = cases.ok_or_else(|| bug("a duel names a case that does not exist"))?;
        let arena = match self.arena(step, &cases)? {
            Ok(arena) => arena,
            Err(gate) => {
                return Ok(Event::BlockFailed {
                    duel: step.duel,
                    gate,
                });
            }
        };
        Ok(match arena.block(&cases, sampling::discards(step.block))? {
            Ok(block) => Event::BlockMeasured {
                duel: step.duel,
                block,
            },
            Err(Fault::Candidate(gate)) => Event::BlockFailed {
                duel: step.duel,
                gate,
            },
            // The incumbent passed its gate, so a failure now is the host's.
            Err(Fault::Parent(gate)) => {
                return Err(incumbent_fails("cannot be measured any more", &gate));
            }
        })
    }

    /// Where the two arms of a step meet.
    fn arena(&mut self, step: &MeasureStep, cases: &[NumberedCase]) -> Result<Gated<Arena>> {
        match step.duel {
            DuelName::Final => {
                // The first block also tests.
                let tested: Vec<Case> = cases.iter().map(|(_, case)| case.clone()).collect();
                let tested = (step.block == 0).then_some(&tested[..]);
                match self.integration_arena(&step.candidate, tested)? {
                    Some(arena) => Ok(arena),
                    None => self.round_arena(step, Variant::Usual),
                }
            }
            DuelName::Round {
                set: CaseSet::Quick,
                ..
            } => self.round_arena(step, Variant::Quick),
            DuelName::Round { .. } => self.round_arena(step, Variant::Usual),
        }
    }

    /// Both arms of a round, built.
    fn round_arena(&mut self, step: &MeasureStep, variant: Variant) -> Result<Gated<Arena>> {
        let harness = self.harness();
        let parent = match self.trees.built(&self.repo, &harness, &step.parent)? {
            Ok(built) => built,
            Err(gate) => return Err(incumbent_fails("does not build any more", &gate)),
        };
        let candidate = self.trees.built(&self.repo, &harness, &step.candidate)?;
        Ok(candidate.map(|candidate| arena_of(harness, parent, candidate, variant)))
    }
}

/// Two built trees under one harness.
pub(super) fn arena_of(
    harness: Harness,
    parent: Built,
    candidate: Built,
    variant: Variant,
) -> Arena {
    let arm = |built: Built| Arm {
        harness: harness.clone(),
        tree: built.path,
    };
    Arena {
        parent: arm(parent),
        candidate: arm(candidate),
        variant,
    }
}

fn incumbent_fails(how: &str, gate: &Gate) -> CommandError {
    CommandError::environment(format!("the incumbent {how}"))
        .cause(gate.describe())
        .hint("look at the host: \"karve doctor\"; then go on with \"karve run\"")
}
