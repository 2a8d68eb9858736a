//! Shapes that are not listed: where the incumbent is right, a candidate must be right too, and not
//! much slower.

use super::{CheckedArm, CorrectnessCheck, aliasing, dishonest};
use crate::outcome::{Failure, GateResult};
use crate::runner::check;
use crate::runner::worker_failure::on_case;
use karve_numerics::contract::Contract;
use std::path::Path;
use std::time::Duration;

/// How much longer than the incumbent a candidate may take: as a factor, and in addition.
const SLOWER_MAX: u32 = 3;
const LONGER_MAX: Duration = Duration::from_micros(50);

/// Calls of each, the quickest of which counts.
const TIMED_CALLS: u32 = 5;

/// Whether there is anything left to say about other shapes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OtherShapes {
    /// Go on with the next one.
    Next,
    /// The reference cannot be called on them.
    End,
}

impl CorrectnessCheck<'_> {
    /// Checks the current case, which is not listed, next to the incumbent of this tree.
    pub(super) fn check_other_shape(
        &mut self,
        contract: &Contract,
        incumbent: &Path,
    ) -> GateResult<OtherShapes> {
        self.renew_limits();
        self.buffers.set(contract, self.case)?;
        // The reference may refuse what nobody promised.
        if self.reference.set(contract, self.case).is_err() {
            return Ok(OtherShapes::End);
        }
        let calls = self.buffers.nominal_calls(1)?;
        self.buffers.fill(&calls)?;
        let usual = self
            .set_up(CheckedArm::Incumbent)
            .and_then(|()| self.run_one(CheckedArm::Incumbent, &calls));
        let usual = match usual {
            Ok(usual) => usual,
            Err(Failure::Outcome(_)) => {
                self.incumbent = Some(self.terms.arm(incumbent, &self.buffers)?);
                return Ok(OtherShapes::Next);
            }
            Err(failure) => return Err(failure),
        };
        let Ok(truth) = self.reference.truth(&self.buffers, &calls[0]) else {
            return Ok(OtherShapes::End);
        };
        let usual = check::errors(&self.buffers, &usual[0], &truth)?;
        if check::judge(contract, &usual, None).is_err() {
            return Ok(OtherShapes::Next);
        }
        let not_listed = |failure| aliasing::on(failure, "a shape that is not listed");
        let own = self
            .set_up(CheckedArm::Own)
            .and_then(|()| self.run_one(CheckedArm::Own, &calls))
            .map_err(not_listed)?;
        let own = check::errors(&self.buffers, &own[0], &truth)?;
        check::judge(contract, &own, Some(&usual))
            .map_err(|why| not_listed(check::wrong(&self.case.name, why).into()))?;
        self.check_speed()?;
        Ok(OtherShapes::Next)
    }

    fn check_speed(&mut self) -> GateResult<()> {
        let mut least = [Duration::MAX; 2];
        for _ in 0..TIMED_CALLS {
            let calls = self.buffers.nominal_calls(1)?;
            self.buffers.fill(&calls)?;
            let slots = [calls[0].slot()];
            let arms = [Some(&mut self.arm), self.incumbent.as_mut()];
            for (arm, least) in arms.into_iter().zip(&mut least) {
                let Some(arm) = arm else {
                    return Ok(());
                };
                self.buffers.poison_outputs(&calls)?;
                let turn = on_case(arm.run_batch(&slots, 0), self.case)?;
                *least = (*least).min(turn.work());
            }
        }
        let [own, usual] = least;
        if own <= usual * SLOWER_MAX + LONGER_MAX {
            return Ok(());
        }
        let times = own.as_secs_f64() / usual.as_secs_f64().max(1e-9);
        Err(dishonest(&format!(
            "it is {times:.1} times slower than the incumbent on a shape that is not listed, {}; a \
             kernel only for the listed ones needs shapes = \"listed\" in [contract]",
            self.case.name
        )))
    }
}
