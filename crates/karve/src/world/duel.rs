//! One block of a duel: parent and candidate by turns, in an order that nobody can foresee.

use super::{World, bug};
use crate::error::{CommandError, Result};
use crate::harness::{Gated, Harness, Variant, fresh_seed};
use crate::trees::Built;
use karve_core::campaign::{Campaign, DuelName, Event, MeasureStep};
use karve_core::charter::{Case, CaseSet};
use karve_core::measurement::{Block, First, Gate, Pair, Sample};
use karve_core::sampling;

/// How often the incumbent may fail to be read before the host is held responsible.
const PARENT_TRIES: u32 = 3;

/// The two arms of a duel and what runs them.
struct Arms<'a> {
    harness: &'a Harness,
    parent: Built,
    candidate: Built,
    variant: Variant,
}

impl World {
    pub(super) fn measure(&mut self, step: &MeasureStep, campaign: &Campaign) -> Result<Event> {
        let cases: Option<Vec<Case>> = step.cases.iter().map(|c| campaign.case(*c)).collect();
        let cases = cases.ok_or_else(|| bug("a duel names a case that does not exist"))?;
        let ready = match step.duel {
            DuelName::Final => self.final_arms(step, &cases)?,
            DuelName::Round { .. } => self.round_arms(&step.parent, &step.candidate)?,
        };
        let (harness, parent, candidate) = match ready {
            Ok(ready) => ready,
            Err(gate) => {
                return Ok(Event::BlockFailed {
                    duel: step.duel,
                    gate,
                });
            }
        };
        let variant = match step.duel {
            DuelName::Round {
                set: CaseSet::Quick,
                ..
            } => Variant::Quick,
            DuelName::Round { .. } | DuelName::Final => Variant::Usual,
        };
        let arms = Arms {
            harness: &harness,
            parent,
            candidate,
            variant,
        };
        let seed = fresh_seed()?;
        Ok(match self.measure_block(&arms, &cases, seed)? {
            Ok(pairs) => {
                let pair = |(case, (first, parent, candidate)): (&usize, _)| Pair {
                    case: *case,
                    first,
                    parent,
                    candidate,
                };
                let pairs = step.cases.iter().zip(pairs).map(pair).collect();
                let discarded = sampling::discards(step.block);
                Event::BlockMeasured {
                    duel: step.duel,
                    block: Block {
                        seed,
                        pairs,
                        discarded,
                    },
                }
            }
            Err(gate) => Event::BlockFailed {
                duel: step.duel,
                gate,
            },
        })
    }

    /// Both arms of a round, built.
    #[allow(clippy::type_complexity)]
    fn round_arms(
        &mut self,
        parent: &str,
        candidate: &str,
    ) -> Result<Gated<(Harness, Built, Built)>> {
        let harness = self.harness();
        let parent_built = match self.trees.built(&self.repo, &harness, parent)? {
            Ok(built) => built,
            Err(gate) => {
                return Err(
                    CommandError::environment("the incumbent does not build any more")
                        .cause(gate.describe())
                        .hint("look at the host: \"karve doctor\"; then go on with \"karve run\""),
                );
            }
        };
        Ok(match self.trees.built(&self.repo, &harness, candidate)? {
            Ok(built) => Ok((harness, parent_built, built)),
            Err(gate) => Err(gate),
        })
    }

    #[allow(clippy::type_complexity)]
    fn final_arms(
        &mut self,
        step: &MeasureStep,
        cases: &[Case],
    ) -> Result<Gated<(Harness, Built, Built)>> {
        // The first block also tests.
        let tested = (step.block == 0).then_some(cases);
        match self.integration_arms(&step.candidate, tested)? {
            None => self.round_arms(&step.parent, &step.candidate),
            Some(Err(gate)) => Ok(Err(gate)),
            Some(Ok(arms)) => Ok(Ok(arms)),
        }
    }

    fn measure_block(
        &self,
        arms: &Arms<'_>,
        cases: &[Case],
        seed: u64,
    ) -> Result<Gated<Vec<(First, Sample, Sample)>>> {
        if arms.harness.benches_all_at_once(cases) {
            return self.measure_pair(arms, cases, seed);
        }
        let mut pairs = Vec::with_capacity(cases.len());
        for case in cases {
            match self.measure_pair(arms, std::slice::from_ref(case), seed)? {
                Ok(mut one) => pairs.append(&mut one),
                Err(gate) => return Ok(Err(gate)),
            }
        }
        Ok(Ok(pairs))
    }

    /// One run of each arm right after each other, on the same seed.
    fn measure_pair(
        &self,
        arms: &Arms<'_>,
        cases: &[Case],
        seed: u64,
    ) -> Result<Gated<Vec<(First, Sample, Sample)>>> {
        let how = (seed, arms.variant);
        let candidate = || arms.harness.bench(&arms.candidate.path, cases, how);
        let parent = || self.measure_parent(arms, cases, how);
        // The coin comes from the operating system, after everything else is fixed.
        let (first, parent, candidate) = if fresh_seed()? & 1 == 0 {
            let parent = parent()?;
            (First::Parent, parent, candidate()?)
        } else {
            let candidate = candidate()?;
            (First::Candidate, parent()?, candidate)
        };
        Ok(candidate.map(|samples| {
            parent
                .into_iter()
                .zip(samples)
                .map(|(p, c)| (first, p, c))
                .collect()
        }))
    }

    /// The incumbent passed its gate, so a failure now is the host's; it is tried again.
    fn measure_parent(
        &self,
        arms: &Arms<'_>,
        cases: &[Case],
        how: (u64, Variant),
    ) -> Result<Vec<Sample>> {
        let mut last = Gate::Passed;
        for _ in 0..PARENT_TRIES {
            match arms.harness.bench(&arms.parent.path, cases, how)? {
                Ok(samples) => return Ok(samples),
                Err(gate) => last = gate,
            }
            if self.stop.at_once() {
                break;
            }
        }
        Err(
            CommandError::environment("the incumbent cannot be measured any more")
                .cause(last.describe())
                .hint("look at the host: \"karve doctor\"; then go on with \"karve run\""),
        )
    }
}
