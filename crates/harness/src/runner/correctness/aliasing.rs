//! The aliasing check: what a kernel keeps between calls must follow its inputs.

use super::{CorrectnessCheck, CorrectnessResult};
use crate::runner::buffers::{KernelCall, PoisonKind};
use karve_core::measurement::Gate;
use karve_numerics::contract::{ALIASING_STEPS, Contract};
use karve_os::error::Result;
use karve_os::random::secret;

impl CorrectnessCheck<'_> {
    /// Calls at the same addresses, between which inputs are rewritten there, some only in part.
    /// Each must be right.
    pub(super) fn check_aliasing(&mut self, contract: &Contract) -> Result<CorrectnessResult<()>> {
        let steps = contract.aliasing_steps(self.buffers.layout(), secret()?);
        let slot = self.buffers.fresh_calls(1)?[0].slot;
        for (step, number) in steps.iter().zip(1..) {
            self.buffers.set(&step.contract, self.case)?;
            let seed = secret()?;
            let poison = match seed % 2 {
                0 => PoisonKind::Nan,
                _ => PoisonKind::Pattern,
            };
            let call = KernelCall { slot, seed, poison };
            let right = match self.call(&[call])? {
                Ok(outcome) => self.check(contract, &call, &outcome[0])?,
                Err(gate) => Err(gate),
            };
            if let Err(gate) = right {
                let what = &step.what;
                let place =
                    format!("aliasing check, step {number} of {ALIASING_STEPS}, {what} in place");
                return Ok(Err(on(gate, &place)));
            }
        }
        self.buffers.set(contract, self.case)?;
        Ok(Ok(()))
    }
}

/// The same failure, with what was special about the call.
pub(super) fn on(gate: Gate, what: &str) -> Gate {
    match gate {
        Gate::WrongResult { case, category, excerpt } => {
            Gate::WrongResult { case, category, excerpt: format!("{what}: {excerpt}") }
        }
        other => other,
    }
}
