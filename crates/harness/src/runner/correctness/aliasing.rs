//! The aliasing check: what a kernel keeps between calls must follow its inputs.

use super::CorrectnessCheck;
use crate::outcome::{Failure, GateResult};
use crate::runner::buffers::{KernelCall, PoisonKind};
use karve_core::measurement::Gate;
use karve_numerics::contract::{ALIASING_STEPS, Contract};
use karve_os::random::secret;

impl CorrectnessCheck<'_> {
    /// Calls at the same addresses, between which inputs are rewritten there, some only in part.
    /// Each must be right.
    pub(super) fn check_aliasing(&mut self, contract: &Contract) -> GateResult<()> {
        let steps = contract.aliasing_steps(self.buffers.layout(), secret()?);
        let slot = self.buffers.fresh_calls(1)?[0].slot;
        for (step, number) in steps.iter().zip(1..) {
            self.buffers.set(&step.contract, self.case)?;
            let seed = secret()?;
            let poison = match seed % 2 {
                0 => PoisonKind::Nan,
                _ => PoisonKind::Pattern,
            };
            let call = KernelCall { slot, seed, pattern: None, poison };
            let outcome = self.call(&[call]);
            let right = outcome.and_then(|outcome| self.check(contract, &call, &outcome[0]));
            right.map_err(|failure| {
                let what = &step.what;
                let place =
                    format!("aliasing check, step {number} of {ALIASING_STEPS}, {what} in place");
                on(failure, &place)
            })?;
        }
        self.buffers.set(contract, self.case)?;
        Ok(())
    }
}

/// The same failure, with what was special about the call.
pub(super) fn on(failure: Failure<Gate>, what: &str) -> Failure<Gate> {
    failure.map(|gate| match gate {
        Gate::WrongResult { case, category, excerpt } => {
            Gate::WrongResult { case, category, excerpt: format!("{what}: {excerpt}") }
        }
        other => other,
    })
}
