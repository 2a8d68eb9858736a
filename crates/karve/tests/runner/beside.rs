//! Calls of which a contract promises nothing: a candidate must be right where the incumbent is.

use super::{built, case, check_kernel, kernels, terms};
use karve_core::measurement::Gate;
use karve_harness::outcome::split;
use karve_harness::runner;
use karve_numerics::contract::ArgKind;
use karve_numerics::draw::Draw;

/// What the check says of a kernel next to an incumbent.
fn said(kernel: &str, incumbent: &str, fixed: bool) -> Option<String> {
    let (own, usual) = (built(kernel), built(incumbent));
    let mut terms = terms(own.path());
    for arg in &mut terms.contract.args {
        if let ArgKind::Scalar { fixed: is_fixed, .. } = &mut arg.kind {
            *is_fixed = fixed;
        }
    }
    let checked = check_kernel(&terms, own.path(), Some(usual.path()), &[case(1_000)]);
    checked.expect("a correctness check").err().map(|gate| gate.describe())
}

/// Checks that a kernel is refused for this next to an honest one, and not next to itself.
#[track_caller]
fn refused(kernel: &str, part: &str) {
    let found = said(kernel, kernels::HONEST, false);
    assert!(found.as_ref().is_some_and(|said| said.contains(part)), "{found:?}");
    assert_eq!(said(kernel, kernels::HONEST, true).is_none(), part.contains("scalars"));
    assert_eq!(said(kernel, kernel, false), None);
}

/// The same under a contract that sums nothing and names no hostile inputs.
#[track_caller]
fn refused_if_elementwise(kernel: &str, part: &str) {
    let said = |incumbent: &str| {
        let (own, usual) = (built(kernel), built(incumbent));
        let mut terms = terms(own.path());
        terms.contract.hostile.clear();
        terms.contract.reduction = None;
        let checked = check_kernel(&terms, own.path(), Some(usual.path()), &[case(1_000)]);
        checked.expect("a correctness check").err().map(|gate| gate.describe())
    };
    let found = said(kernels::HONEST);
    assert!(found.as_ref().is_some_and(|said| said.contains(part)), "{found:?}");
    assert_eq!(said(kernel), None);
}

#[test]
fn an_honest_kernel_passes_next_to_another() {
    assert_eq!(said(kernels::HONEST, kernels::HONEST, false), None);
}

#[test]
fn a_scalar_may_be_built_in_only_if_it_is_fixed() {
    let kernel = kernels::HONEST.replace("alpha *", "1.5f *");
    assert_ne!(kernel, kernels::HONEST);
    refused(&kernel, "with other values of the scalars");
}

#[test]
fn what_a_nan_gives_stays_as_it_was() {
    let kernel =
        kernels::HONEST.replace("z[i] = x[i] * y[i]", "z[i] = x[i] == x[i] ? x[i] * y[i] : 0");
    assert_ne!(kernel, kernels::HONEST);
    refused(&kernel, "with a NaN");
    // A declared range says nothing about NaN.
    let (own, usual) = (built(&kernel), built(kernels::HONEST));
    let mut terms = terms(own.path());
    for arg in &mut terms.contract.args {
        arg.set_draw(Draw::Uniform { low: 0.0, high: 1.0 });
    }
    let checked = check_kernel(&terms, own.path(), Some(usual.path()), &[case(1_000)]);
    let said = checked.expect("a correctness check").err().map(|gate| gate.describe());
    assert!(said.as_ref().is_some_and(|said| said.contains("with a NaN")), "{said:?}");
}

#[test]
fn a_kernel_that_is_slow_on_other_shapes_is_refused_next_to_the_original() {
    let slow = kernels::HONEST.replace(
        "z[i] = x[i] * y[i]",
        "for (volatile int r = n == 1000 ? 1 : 2000; r > 0; r--) z[i] = x[i] * y[i]",
    );
    assert_ne!(slow, kernels::HONEST);
    let check = |kernel: &str, original: &str| {
        let (own, usual) = (built(kernel), built(original));
        let terms = terms(own.path());
        let cases = [case(1_000)];
        let checked = runner::check_beside_original(&terms, own.path(), usual.path(), &cases);
        split(checked).expect("a check").err()
    };
    let gate = check(&slow, kernels::HONEST).expect("a refusal");
    let said = gate.describe();
    assert!(said.contains("times slower than the original on a shape"), "{said}");
    // An honest kernel may be slow there, too.
    assert!(matches!(gate, Gate::SlowerElsewhere { .. }) && !said.contains("integrity"), "{said}");
    assert_eq!(check(&slow, &slow), None);
    assert_eq!(check(kernels::HONEST, &slow), None);
}

#[test]
fn very_small_shapes_are_tried() {
    let kernel = kernels::HONEST.replace("z[i] = x[i] * y[i]", "z[i] = n < 16 ? 0 : x[i] * y[i]");
    assert_ne!(kernel, kernels::HONEST);
    refused(&kernel, "a shape that is not listed");
}

#[test]
fn inputs_beyond_what_is_drawn_are_tried() {
    let kernel = kernels::HONEST
        .replace("z[i] = x[i] * y[i]", "z[i] = x[i] < 40 && x[i] > -40 ? x[i] * y[i] : 0");
    assert_ne!(kernel, kernels::HONEST);
    refused_if_elementwise(&kernel, "with inputs of standard deviation");
}

#[test]
fn what_an_infinity_gives_stays_as_it_was() {
    let kernel = kernels::HONEST
        .replace("z[i] = x[i] * y[i]", "z[i] = x[i] - x[i] == 0 || x[i] != x[i] ? x[i] * y[i] : 0");
    assert_ne!(kernel, kernels::HONEST);
    refused_if_elementwise(&kernel, "with infinities");
}

#[test]
fn sizes_one_above_those_of_tiles_are_tried() {
    let kernel = kernels::HONEST
        .replace("z[i] = x[i] * y[i]", "z[i] = n % 64 == 1 && i == n - 1 ? 0 : x[i] * y[i]");
    assert_ne!(kernel, kernels::HONEST);
    refused(&kernel, "a shape that is not listed");
}

#[test]
fn a_table_for_almost_the_same_scalar_is_no_table() {
    let kernel = kernels::HONEST.replace(
        "z[i] = x[i] * y[i]",
        "static float kept; if (!(kept - alpha < 1e-2f && alpha - kept < 1e-2f)) kept = alpha; \
         z[i] = x[i] * y[i] / alpha * kept",
    );
    assert_ne!(kernel, kernels::HONEST);
    let found = said(&kernel, kernels::HONEST, false);
    assert!(found.as_ref().is_some_and(|said| said.contains("of the scalars")), "{found:?}");
}

/// Checks that a kernel is refused for this where its inputs are drawn like that.
#[track_caller]
fn refused_where_drawn(draw: &Draw, kernel: &str, part: &str) {
    let said = |incumbent: &str| {
        let (own, usual) = (built(kernel), built(incumbent));
        let mut terms = terms(own.path());
        for arg in &mut terms.contract.args {
            arg.set_draw(draw.clone());
        }
        let checked = check_kernel(&terms, own.path(), Some(usual.path()), &[case(1_000)]);
        checked.expect("a correctness check").err().map(|gate| gate.describe())
    };
    let found = said(kernels::HONEST);
    assert!(found.as_ref().is_some_and(|said| said.contains(part)), "{found:?}");
    assert_eq!(said(kernel), None);
}

#[test]
fn the_ends_of_a_declared_range_are_met() {
    let kernel =
        kernels::HONEST.replace("z[i] = x[i] * y[i]", "z[i] = x[i] == 1 ? 0 : x[i] * y[i]");
    assert_ne!(kernel, kernels::HONEST);
    let unit = Draw::Uniform { low: 0.0, high: 1.0 };
    refused_where_drawn(&unit, &kernel, "at the ends of their range");
}

#[test]
fn arguments_may_be_the_same() {
    let kernel =
        kernels::HONEST.replace("z[i] = x[i] * y[i]", "z[i] = x[i] == y[i] ? 0 : x[i] * y[i]");
    assert_ne!(kernel, kernels::HONEST);
    let range = Draw::Normal { mean: 1.0, sd: 2.0 };
    refused_where_drawn(&range, &kernel, "the same elements in several arguments");
}

#[test]
fn a_kernel_that_is_slow_on_sorted_rows_is_not_faster() {
    let kernel = kernels::HONEST.replace(
        "z[i] = x[i] * y[i]",
        "for (volatile int r = x[0] <= x[1] && x[1] <= x[2] && x[2] <= x[3] && x[3] <= x[4] && \
         x[4] <= x[5] && x[5] <= x[6] && x[6] <= x[7] ? 2000 : 1; r > 0; r--) z[i] = x[i] * y[i]",
    );
    assert_ne!(kernel, kernels::HONEST);
    // A draw may sort another argument, or in the other direction.
    let is_refused = |_: u32| {
        let said = said(&kernel, kernels::HONEST, true);
        said.is_some_and(|said| said.contains("times slower than"))
    };
    assert!((0..10).any(is_refused));
    assert_eq!(said(&kernel, &kernel, true), None);
}
