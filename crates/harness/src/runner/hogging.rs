//! Whether a candidate has used up the memory of a device.
//!
//! A kernel may take as much as it needs. But if karve, the reference or the incumbent then fails,
//! and the candidate's processes hold much more than the incumbent's, it is the candidate that
//! failed, and the campaign goes on.

use super::arm::KernelWorker;
use super::arms::ProcessPair;
use super::buffers::KernelBuffers;
use crate::outcome::{BlockFailure, Failure};
use karve_core::measurement::{FailureCategory, Gate};

/// Bytes that a candidate may hold beyond twice the incumbent's: a context and a workspace.
const BEYOND_MAX: u64 = 1 << 30;

/// Others can fail for want of memory where less than this part of it is free.
const FREE_PART: u64 = 8;

/// Whether others may have failed because so little of all memory was free.
fn is_scarce(free: u64, total: u64) -> bool {
    free < total / FREE_PART
}

/// Whether a candidate holds too much, next to what the incumbent holds.
fn is_too_much(candidate: u64, incumbent: u64) -> bool {
    candidate > incumbent.saturating_mul(2).saturating_add(BEYOND_MAX)
}

/// Whether the candidate's processes held too much. Ends all of them if memory is scarce.
pub(super) fn find<'a>(
    buffers: &KernelBuffers,
    candidates: impl IntoIterator<Item = &'a mut KernelWorker>,
    incumbents: impl IntoIterator<Item = &'a mut KernelWorker>,
    case: &str,
) -> Option<Gate> {
    let stage = buffers.stage()?;
    let free = || stage.here().and_then(|opened| opened.gpu().memory()).ok();
    let (before, total) = free()?;
    if !is_scarce(before, total) {
        return None;
    }
    candidates.into_iter().for_each(KernelWorker::end);
    let (between, _) = free()?;
    incumbents.into_iter().for_each(KernelWorker::end);
    let (after, _) = free()?;
    is_too_much(between.saturating_sub(before), after.saturating_sub(between)).then(|| {
        Gate::WrongResult {
            case: case.to_owned(),
            category: FailureCategory::RuntimeOom,
            excerpt: "it left too little of the GPU's memory for the other kernels".to_owned(),
        }
    })
}

/// The failure of a block, in which the candidate may be why others failed.
pub(super) fn blame<'a>(
    buffers: &KernelBuffers,
    pairs: impl IntoIterator<Item = &'a mut ProcessPair>,
    failure: Failure<BlockFailure>,
    case: &str,
) -> Failure<BlockFailure> {
    if matches!(failure, Failure::Outcome(BlockFailure::Candidate(_))) {
        return failure;
    }
    let (mut candidates, mut incumbents) = (Vec::new(), Vec::new());
    for pair in pairs {
        let [incumbent, candidate] = &mut pair.arms;
        incumbents.push(incumbent);
        candidates.push(candidate);
    }
    match find(buffers, candidates, incumbents, case) {
        Some(gate) => BlockFailure::Candidate(gate).into(),
        None => failure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    #[test]
    fn where_memory_is_free_something_else_failed() {
        assert!(is_scarce(0, 139 * GIB));
        assert!(is_scarce(17 * GIB, 139 * GIB));
        assert!(!is_scarce(18 * GIB, 139 * GIB));
    }

    #[test]
    fn only_a_candidate_with_much_more_is_the_reason() {
        assert!(is_too_much(130 * GIB, GIB));
        assert!(!is_too_much(0, 0));
        // A workspace, and an incumbent with a large one itself.
        assert!(!is_too_much(GIB, 0));
        assert!(!is_too_much(60 * GIB, 30 * GIB));
        assert!(!is_too_much(u64::MAX, u64::MAX));
    }
}
