//! Calls with every tensor next to memory that cannot be accessed: at its end, then at its start.
//!
//! A kernel that reads or writes beyond a tensor there is ended by the operating system, even if it
//! would have restored what it wrote, or used nothing of what it read.

use super::{CheckedArm, CorrectnessCheck, aliasing};
use crate::outcome::{Failure, GateResult};
use crate::runner::arm::SlotAddresses;
use crate::runner::check;
use crate::runner::worker_failure::{WorkerFailure, on_case};
use karve_core::measurement::{FailureCategory, Gate};
use karve_numerics::contract::{Contract, TensorEdge};
use karve_os::native::page_bytes;
use karve_os::process::Exit;

impl CorrectnessCheck<'_> {
    /// Checks that the kernel stays inside its tensors.
    pub(super) fn check_fences(&mut self, contract: &Contract) -> GateResult<()> {
        if contract.is_on_device() {
            return Ok(());
        }
        self.place(SlotAddresses::Kept);
        for edge in [TensorEdge::End, TensorEdge::Start] {
            self.check_edge(contract, edge)?;
        }
        on_case(self.arm.fence([Vec::new(), Vec::new()]), self.case)?;
        self.place(SlotAddresses::Fresh);
        self.set(contract)
    }

    fn check_edge(&mut self, contract: &Contract, edge: TensorEdge) -> GateResult<()> {
        self.buffers.set(contract, self.case)?;
        self.buffers.set_edge(edge)?;
        let fences = self.buffers.layout().fences(page_bytes());
        on_case(self.arm.fence(fences), self.case)?;
        self.set_up(CheckedArm::Own)?;
        let calls = self.buffers.nominal_calls(1)?;
        self.buffers.fill(&calls)?;
        self.buffers.poison_outputs(&calls)?;
        self.arm.run_batch(&[calls[0].slot()]).map_err(|failure| {
            failure.map(|broken| match broken {
                WorkerFailure::Ended { exit: Exit::Signal(7 | 11), .. } => outside(&self.case.name),
                broken => broken.gate(&self.case.name),
            })
        })?;
        if !self.buffers.holds(&calls)? {
            return Err(check::outside(&self.case.name).into());
        }
        let mut written = Vec::new();
        self.buffers.copy_written(&calls, &mut written)?;
        let truth = self.reference.truth(&self.buffers, &calls[0])?;
        let errors = check::errors(&self.buffers, &written[0], &truth)?;
        check::judge(contract, &errors, None).map_err(|why| {
            let wrong: Failure<Gate> = check::wrong(&self.case.name, why).into();
            aliasing::on(wrong, &format!("with the {} of every tensor at a page", edge.name()))
        })
    }
}

fn outside(case: &str) -> Gate {
    Gate::WrongResult {
        case: case.to_owned(),
        category: FailureCategory::Other,
        excerpt: "it reads or writes outside its tensors".into(),
    }
}
