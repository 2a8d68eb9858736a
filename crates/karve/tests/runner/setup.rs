//! Kernels with a setup that is not timed: it prepares from some of the inputs, before karve draws
//! the others.

use super::python::{project, python_terms, python_with};
use super::{RunnerSetup, built_with, case, check_kernel, terms};
use karve_core::campaign::ProcessAge;
use karve_core::charter::Metric;
use karve_core::measurement::Gate;
use karve_harness::outcome::split;
use karve_harness::runner::{DuelCase, KernelRunner};
use karve_numerics::contract::{ArgKind, CheckedShapes, PlacedArg, SetupCall};
use karve_numerics::draw::Draw;
use std::path::Path;

/// z = alpha * x * y, where x is prepared and y comes with every call.
const REFERENCE: &str = r"
#include <stdint.h>
void reference(int64_t n, double alpha, const double *x, const double *y, double *z) {
  for (int64_t i = 0; i < n; i++) z[i] = alpha * x[i] * y[i];
}
";

const HONEST: &str = r"
#include <stdint.h>
#include <stdlib.h>
void pack(float **state, int64_t n, float alpha, const float *x) {
  *state = realloc(*state, n * sizeof **state);
  for (int64_t i = 0; i < n; i++) (*state)[i] = alpha * x[i];
}
void kernel(const float *state, int64_t n, float alpha, const float *y, float *z) {
  (void)alpha;
  for (int64_t i = 0; i < n; i++) z[i] = state[i] * y[i];
}
";

fn with_setup(mut terms: RunnerSetup) -> RunnerSetup {
    let contract = &mut terms.contract;
    contract.setup = Some(SetupCall { entry: "pack".into(), inputs: vec!["x".into()] });
    let draw = Draw::Normal { mean: 0.0, sd: 1.0 };
    contract.args[3].kind = ArgKind::Input { shape: vec!["n".into()], draw };
    contract.shapes = CheckedShapes::Listed;
    terms
}

fn checked(kernel: &str) -> Result<(), Gate> {
    let dir = built_with(kernel, REFERENCE);
    let terms = with_setup(terms(dir.path()));
    let checked = check_kernel(&terms, dir.path(), None, &[case(1_000), case(77)]);
    checked.expect("a correctness check").map(drop)
}

fn faults(terms: &RunnerSetup, parent: &Path, candidate: &Path) -> Option<String> {
    let metric = Metric { name: "wall_time".into(), unit: "us".into(), ..Metric::default() };
    let case = |index, n| DuelCase { index, case: case(n), calls: 5, spin_ns: 0 };
    let trees = [parent.to_owned(), candidate.to_owned()];
    let duel = KernelRunner::start(terms, &metric, trees, vec![case(0, 1_000), case(1, 64)]);
    let mut duel = duel.expect("both start");
    let fault = (0..30).find_map(|_| split(duel.block(ProcessAge::Usual)).expect("a block").err());
    fault.map(|fault| format!("{fault:?}"))
}

#[test]
fn a_kernel_gets_what_its_setup_made_of_the_prepared_inputs() {
    assert_eq!(checked(HONEST), Ok(()));
    let dir = built_with(HONEST, REFERENCE);
    let terms = with_setup(terms(dir.path()));
    assert_eq!(faults(&terms, dir.path(), dir.path()), None);
    // The setup must be right on every set of inputs.
    let stale = HONEST.replace("*state = realloc(", "if (*state) return;\n  *state = realloc(");
    let gate = checked(&stale).expect_err("a wrong result");
    assert!(gate.describe().contains("z:"), "{gate:?}");
    let missing = HONEST.replace("void pack(", "void pack_them(");
    let gate = checked(&missing).expect_err("no setup");
    assert!(gate.describe().contains("pack"), "{gate:?}");
}

#[test]
fn a_setup_cannot_know_the_inputs_of_calls() {
    let dir = built_with(HONEST, REFERENCE);
    let terms = with_setup(terms(dir.path()));
    let layout = terms.contract.layout(&case(1_000)).expect("a layout");
    let offset = |index: usize| match layout.places[index] {
        PlacedArg::Input(region) => region.offset,
        _ => 0,
    };
    // It does all of the work with what is where the other input will be.
    let ahead = HONEST
        .replace("alpha * x[i];", "alpha * x[i] * x[i + GAP];")
        .replace("state[i] * y[i]", "state[i]")
        .replace("GAP", &((offset(3) - offset(2)) / 4).to_string());
    assert_ne!(ahead, HONEST);
    let cheat = built_with(&ahead, REFERENCE);
    let checked = check_kernel(&terms, cheat.path(), None, &[case(1_000)]);
    let gate = checked.expect("a correctness check").expect_err("a wrong result");
    assert!(gate.describe().contains("z:"), "{gate:?}");
    let fault = faults(&terms, dir.path(), cheat.path()).expect("it is caught");
    assert!(fault.contains("Candidate(WrongResult"), "{fault}");
}

#[test]
fn a_module_can_have_a_setup() {
    let Some(python) = python_with("numpy") else {
        return;
    };
    let reference = "
def reference_fn(n, alpha, x, y):
    return alpha * x * y
";
    // It may keep the arrays themselves.
    let honest = "
import numpy as np

def pack(n, alpha, x):
    assert type(n) is int and type(alpha) is float
    return x, np.float32(alpha)

def kernel_fn(state, n, alpha, y):
    x, scale = state
    return scale * x * y
";
    let checked = |kernel: &str| {
        let dir = project(kernel, reference);
        let terms = with_setup(python_terms(dir.path(), &python));
        let checked = check_kernel(&terms, dir.path(), None, &[case(1_000), case(77)]);
        checked.expect("a correctness check").map(|_| {
            assert_eq!(faults(&terms, dir.path(), dir.path()), None);
        })
    };
    assert_eq!(checked(honest), Ok(()));
    let first = honest.replace("return x, np", "global kept\n    kept = x\n    return x[:1], np");
    assert!(checked(&first).expect_err("a wrong result").describe().contains("z:"));
    let none = honest.replace("def pack", "def pack_them");
    assert!(checked(&none).expect_err("no setup").describe().contains("pack"));
}
