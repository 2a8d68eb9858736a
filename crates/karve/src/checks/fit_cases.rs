//! Tests the unchanged kernel on each case, and shrinks cases that do not fit into memory.

use karve_core::measurement::{FailureCategory, Gate};
use karve_harness::commands::{CommandVariant, Harness};
use karve_harness::outcome::{GateResult, split};
use karve_numerics::case::Case;
use std::path::Path;

/// How often a parameter may be halved.
const HALVINGS_MAX: u32 = 20;

/// Tests the unchanged kernel on each case, and shrinks those that do not fit into the device's
/// memory. Returns the indices of those.
pub fn fit_cases(harness: &Harness, tree: &Path, cases: &mut [Case]) -> GateResult<Vec<usize>> {
    let mut halved = Vec::new();
    for (index, case) in cases.iter_mut().enumerate() {
        if fit(harness, tree, case)? {
            halved.push(index);
        }
        if !harness.tests_each_case(std::slice::from_ref(case)) {
            break;
        }
    }
    Ok(halved)
}

/// Tests a case, and shrinks it while the device is out of memory. Returns whether it did.
fn fit(harness: &Harness, tree: &Path, case: &mut Case) -> GateResult<bool> {
    let mut halved = false;
    for _ in 0..HALVINGS_MAX {
        let tested = harness.test(tree, std::slice::from_ref(case), CommandVariant::Usual);
        let Err(gate) = split(tested)? else {
            return Ok(halved);
        };
        let out_of_memory =
            matches!(gate, Gate::WrongResult { category: FailureCategory::RuntimeOom, .. });
        if !(out_of_memory && case.halve()) {
            return Err(gate.into());
        }
        halved = true;
    }
    Ok(halved)
}
