//! Results that a kernel returns: its caller may keep many of them, and may write to each.

use super::{BATCH, CheckedArm, CorrectnessCheck};
use crate::outcome::{GateResult, split};
use crate::runner::buffers::KernelCall;
use crate::runner::check;
use crate::runner::protocol::{BatchExtra, FLAG_ALIAS};
use crate::runner::worker_failure::on_case;
use karve_numerics::contract::Kernel;

/// Calls whose results are all kept, and what these may take together.
const CALLS: u64 = 24;
const BYTES_MAX: u64 = 128 << 20;

impl CorrectnessCheck<'_> {
    /// Keeps the results of many calls: none may be in the memory of another. Where the incumbent
    /// returns arrays of its own, a candidate must, too, not its inputs or parts of them.
    pub(super) fn results(&mut self) -> GateResult<()> {
        let contract = &self.terms.contract;
        let is_module = matches!(contract.kernel, Kernel::Python { .. });
        let returns = is_module && !contract.modules.passes_outputs;
        let (Some(tree), true) = (self.incumbent_tree, returns && !contract.is_on_device()) else {
            return Ok(());
        };
        let usual = match split(self.keep_all(CheckedArm::Incumbent))? {
            Ok(usual) => usual,
            Err(_) => {
                // One that is itself like that says nothing.
                self.incumbent = Some(self.terms.arm(tree, &self.buffers)?);
                return self.set_up(CheckedArm::Incumbent);
            }
        };
        if self.keep_all(CheckedArm::Own)? & !usual & FLAG_ALIAS == 0 {
            return Ok(());
        }
        let why = "it returns an input, a part of one, or one array as several results, where the \
                   incumbent returns arrays of their own";
        Err(check::wrong(&self.case.name, why.into()).into())
    }

    /// What a worker noticed while the results of all calls were kept.
    fn keep_all(&mut self, whose: CheckedArm) -> GateResult<u32> {
        let most = BYTES_MAX / self.buffers.layout().output_bytes.max(1);
        let n = most.clamp(2, CALLS) as usize;
        let calls = self.buffers.nominal_calls(BATCH)?;
        self.buffers.fill(&calls)?;
        self.buffers.poison_outputs(&calls)?;
        let slots: Vec<_> = calls.iter().map(KernelCall::slot).cycle().take(n).collect();
        let extra = BatchExtra { alive: n as u64, ..BatchExtra::default() };
        let case = self.case;
        let Some(arm) = self.arm_of(whose) else {
            return Ok(0);
        };
        Ok(on_case(arm.run_batch_with(&slots, extra), case)?.worker_timing.flags)
    }
}
