//! Calls of which nobody promised anything: where the incumbent is right, a candidate must be right
//! too. On other values of the scalars, on wider inputs, on NaN, and on shapes that are not listed.

use super::{CheckedArm, CorrectnessCheck, aliasing};
use crate::outcome::{Failure, GateResult};
use crate::runner::arm::SlotAddresses;
use crate::runner::check;
use crate::runner::worker_failure::on_case;
use karve_numerics::contract::{ChosenPattern, Contract, ScalarChange, TensorEdge};
use karve_os::native::page_bytes;
use karve_os::random::secret;

/// Draws of other scalars, and of inputs with a pattern that nobody promised.
const SCALAR_DRAWS: usize = 2;
const PATTERN_DRAWS: u32 = 5;

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
    /// Checks the current case with other scalars, on wider inputs, at the ends of ranges, with
    /// arguments that are alike, and with inputs that are not all finite.
    pub(super) fn check_beside(&mut self, contract: &Contract) -> GateResult<()> {
        for change in ScalarChange::ALL.repeat(SCALAR_DRAWS) {
            if let Some(other) = contract.with_other_scalars(self.case, change, secret()?) {
                self.beside(&other, None, "with other values of the scalars")?;
            }
        }
        if contract.is_on_device() {
            return Ok(());
        }
        for _ in 0..SCALAR_DRAWS {
            let other = contract.with_other_integers(secret()?);
            if let Some(other) = other
                && self.stays_inside(&other)?
            {
                self.beside(&other, None, "with other values of constant integers")?;
            }
        }
        for (wider, what) in contract.wider_inputs() {
            if self.stays_inside(&wider)? {
                if self.beside(&wider, None, &what)? == BesideResult::Right {
                    self.check_speed(None, &format!("on {} {what}", self.case.name))?;
                }
                if let Some(ends) = wider.ends() {
                    self.beside(&wider, Some(ends), &ends.describe())?;
                }
            }
        }
        let chosen = [contract.non_finite(), contract.extreme(), contract.ends(), contract.alike()];
        for chosen in chosen.into_iter().flatten() {
            for _ in 0..PATTERN_DRAWS {
                if self.beside(contract, Some(chosen), &chosen.describe())? != BesideResult::Right {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Whether the incumbent stays inside its tensors on inputs that nobody promised: an integer
    /// may be an index, and what it then reads is not a result.
    fn stays_inside(&mut self, contract: &Contract) -> GateResult<bool> {
        let Some(tree) = self.incumbent_tree else {
            return Ok(false);
        };
        for edge in [TensorEdge::End, TensorEdge::Start] {
            self.buffers.set(contract, self.case)?;
            self.buffers.set_edge(edge)?;
            let fences = self.buffers.layout().fences(page_bytes());
            let calls = self.buffers.nominal_calls(1)?;
            self.buffers.fill(&calls)?;
            self.place(SlotAddresses::Kept);
            let fenced = match &mut self.incumbent {
                Some(arm) => on_case(arm.fence(fences), self.case),
                None => return Ok(false),
            };
            let ran = fenced
                .and_then(|()| self.set_up(CheckedArm::Incumbent))
                .and_then(|()| self.run_one(CheckedArm::Incumbent, &calls));
            self.place(SlotAddresses::Fresh);
            match ran {
                Ok(_) => {}
                Err(Failure::Outcome(_)) => {
                    self.incumbent = Some(self.terms.arm(tree, &self.buffers)?);
                    return Ok(false);
                }
                Err(failure) => return Err(failure),
            }
        }
        if let Some(arm) = &mut self.incumbent {
            on_case(arm.fence([Vec::new(), Vec::new()]), self.case)?;
        }
        Ok(true)
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
        // What overflows may overflow in another way, unless NaN itself is the question.
        if !pattern.is_some_and(|chosen| chosen.is_about_non_finite()) && !truth.is_finite() {
            return Ok(BesideResult::Unknown);
        }
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
