//! Calls of which nobody promised anything: where the incumbent is right, a candidate must be right
//! too. On other values of the scalars, on NaN, and on shapes that are not listed.

use super::{CheckedArm, CorrectnessCheck, aliasing};
use crate::outcome::{Failure, GateResult};
use crate::runner::check;
use karve_numerics::contract::{ChosenPattern, Contract};
use karve_os::random::secret;

/// Draws of other scalars, and of inputs that are not all finite.
const SCALAR_DRAWS: u32 = 2;
const NON_FINITE_DRAWS: u32 = 5;

/// What a call next to the incumbent showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BesideResult {
    /// Both kernels are right.
    Right,
    /// The incumbent is wrong or has died, so nothing is demanded.
    Unknown,
    /// The reference cannot be called like that.
    NoReference,
}

impl CorrectnessCheck<'_> {
    /// Checks the current case with other scalars, and with inputs that are not all finite.
    pub(super) fn check_beside(&mut self, contract: &Contract) -> GateResult<()> {
        for _ in 0..SCALAR_DRAWS {
            if let Some(other) = contract.with_other_scalars(self.case, secret()?) {
                self.beside(&other, None, "with other values of the scalars")?;
            }
        }
        let Some(chosen) = contract.non_finite().filter(|_| !contract.is_on_device()) else {
            return Ok(());
        };
        for _ in 0..NON_FINITE_DRAWS {
            if self.beside(contract, Some(chosen), &chosen.describe())? != BesideResult::Right {
                break;
            }
        }
        Ok(())
    }

    /// One call of both kernels on the current case, drawn as this contract says.
    pub(super) fn beside(
        &mut self,
        contract: &Contract,
        pattern: Option<ChosenPattern>,
        what: &str,
    ) -> GateResult<BesideResult> {
        let Some(tree) = self.incumbent_tree else {
            return Ok(BesideResult::Unknown);
        };
        self.buffers.set(contract, self.case)?;
        // The reference may refuse what nobody promised.
        if self.reference.set(contract, self.case).is_err() {
            return Ok(BesideResult::NoReference);
        }
        let mut calls = self.buffers.nominal_calls(1)?;
        calls[0].pattern = pattern;
        self.buffers.fill(&calls)?;
        let usual = self
            .set_up(CheckedArm::Incumbent)
            .and_then(|()| self.run_one(CheckedArm::Incumbent, &calls));
        let usual = match usual {
            Ok(usual) => usual,
            Err(Failure::Outcome(_)) => {
                self.incumbent = Some(self.terms.arm(tree, &self.buffers)?);
                return Ok(BesideResult::Unknown);
            }
            Err(failure) => return Err(failure),
        };
        let Ok(truth) = self.reference.truth(&self.buffers, &calls[0]) else {
            return Ok(BesideResult::NoReference);
        };
        let usual = check::errors(&self.buffers, &usual[0], &truth)?;
        if check::judge(contract, &usual, None).is_err() {
            return Ok(BesideResult::Unknown);
        }
        let special = |failure| aliasing::on(failure, what);
        let own = self
            .set_up(CheckedArm::Own)
            .and_then(|()| self.run_one(CheckedArm::Own, &calls))
            .map_err(special)?;
        let own = check::errors(&self.buffers, &own[0], &truth)?;
        check::judge(contract, &own, Some(&usual))
            .map_err(|why| special(check::wrong(&self.case.name, why).into()))?;
        Ok(BesideResult::Right)
    }
}
