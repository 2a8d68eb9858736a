//! The processes of a correctness check, started together.

use super::CorrectnessCheck;
use crate::outcome::{Failure, GateResult};
use crate::runner::buffers::KernelBuffers;
use crate::runner::hogging;
use crate::runner::setup::RunnerSetup;
use crate::runner::start::StartingArm;
use karve_core::measurement::Gate;
use karve_numerics::case::Case;
use std::path::Path;

impl<'a> CorrectnessCheck<'a> {
    /// Starts all participants of a check on these cases, with the calls of a batch on each.
    pub(super) fn start(
        terms: &'a RunnerSetup,
        tree: &Path,
        incumbent: Option<&'a Path>,
        sized: &[(&'a Case, u32)],
    ) -> GateResult<Option<Self>> {
        let Some((first, _)) = sized.first() else {
            return Ok(None);
        };
        let stage = KernelBuffers::new(terms, sized)?;
        // Not pinned to one CPU, as in a duel: a leftover thread would finish before the reply.
        let arm = terms.start_arm(tree, &stage)?;
        let beside = incumbent.map(|tree| terms.start_arm(tree, &stage)).transpose()?;
        let all: Vec<&Case> = sized.iter().map(|(case, _)| *case).collect();
        let reference = terms.start_reference(tree, &all)?;
        let (arm, beside) = (arm.ready()?, beside.map(StartingArm::ready).transpose()?);
        Ok(Some(Self {
            terms,
            reference,
            buffers: stage,
            arm,
            incumbent: beside,
            incumbent_tree: incumbent,
            usual_name: "the incumbent",
            case: first,
            nominal: Vec::new(),
            hostile: Vec::new(),
        }))
    }

    /// The failure of a check, in which the kernel may be why others failed.
    pub(super) fn blame(&mut self, failure: Failure<Gate>) -> Failure<Gate> {
        match failure {
            Failure::Outcome(_) => failure,
            Failure::Error(_) => {
                let arms = ([&mut self.arm], self.incumbent.as_mut());
                hogging::find(&self.buffers, arms.0, arms.1, &self.case.name)
                    .map_or(failure, Failure::Outcome)
            }
        }
    }
}
