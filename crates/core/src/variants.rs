//! Best of several: one hypothesis is implemented more than once, and one implementation
//! continues.
//!
//! Each variant is made without knowledge of the others. They are built, tested and timed
//! interleaved, and the fastest one continues to the gate and the duel. The readings that chose
//! it do not judge it: the duel takes its own.

use crate::hypothesis::Candidate;
use crate::measurement::Gate;
use karve_numerics::stats;
use serde::{Deserialize, Serialize};

/// Variants of one hypothesis at most.
pub const BEST_OF_MAX: u32 = 8;
/// How often each variant is timed, interleaved.
pub const TURNS: u32 = 3;

/// A variant as the agent made it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImplementedVariant {
    /// Its number, from 0.
    pub variant: u32,
    /// The candidate, if there is one.
    pub candidate: Option<Candidate>,
    /// Why there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
}

/// The results of a variant before one was chosen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VariantTrial {
    /// Its number, from 0.
    pub variant: u32,
    /// The result of build and tests.
    pub gate: Gate,
    /// Its readings, the geometric mean of all visible cases each; less is better.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<f64>,
}

impl VariantTrial {
    /// The reading that counts: the middle one.
    pub fn value(&self) -> Option<f64> {
        stats::median(&self.values).filter(|value| value.is_finite() && *value > 0.0)
    }
}

/// The variants that are worth a look: each source once, and none that was judged before.
pub fn contenders(
    made: &[ImplementedVariant],
    is_new: impl Fn(&Candidate) -> bool,
) -> Vec<(u32, Candidate)> {
    let mut found: Vec<(u32, Candidate)> = Vec::new();
    for of in made {
        let Some(candidate) = &of.candidate else {
            continue;
        };
        let there = found.iter().any(|(_, other)| other.tree == candidate.tree);
        if !there && is_new(candidate) {
            found.push((of.variant, candidate.clone()));
        }
    }
    found
}

/// Which variant continues: the fastest of those that passed; if none has readings, the first
/// that passed; if none did, the first, which may be fixed.
pub fn first(tryouts: &[VariantTrial]) -> Option<u32> {
    let passed = || tryouts.iter().filter(|tryout| tryout.gate.passed());
    let read = passed().filter_map(|tryout| Some((tryout.value()?, tryout.variant)));
    let best = read.min_by(|a, b| a.0.total_cmp(&b.0).then_with(|| a.1.cmp(&b.1)));
    best.map(|(_, variant)| variant)
        .or_else(|| passed().next().map(|tryout| tryout.variant))
        .or_else(|| tryouts.first().map(|tryout| tryout.variant))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::script::wrong_result;

    fn tryout(variant: u32, gate: Gate, values: &[f64]) -> VariantTrial {
        VariantTrial { variant, gate, values: values.to_vec() }
    }

    #[test]
    fn the_fastest_that_is_right_goes_first() {
        let check = |tryouts: &[VariantTrial], want: Option<u32>| assert_eq!(first(tryouts), want);
        let right = |variant, values: &[f64]| tryout(variant, Gate::Passed, values);
        let wrong = |variant| tryout(variant, wrong_result("small"), &[]);
        check(&[], None);
        check(&[wrong(0), right(1, &[5.0]), right(2, &[3.0])], Some(2));
        // The middle reading counts, not the luckiest one.
        check(&[right(0, &[1.0, 9.0, 9.0]), right(1, &[8.0, 8.0, 8.0])], Some(1));
        check(&[right(0, &[4.0]), right(1, &[4.0])], Some(0));
        // A variant without readings is not chosen while there is another.
        check(&[right(0, &[]), right(1, &[f64::NAN]), right(2, &[7.0])], Some(2));
        check(&[wrong(0), right(1, &[])], Some(1));
        check(&[wrong(1), wrong(2)], Some(1));
    }

    #[test]
    fn each_source_is_looked_at_once() {
        let made = |variant: u32, tree: &str| ImplementedVariant {
            variant,
            candidate: (!tree.is_empty()).then(|| Candidate {
                commit: format!("c{variant}"),
                tree: tree.into(),
                files: Vec::new(),
                patch: String::new(),
                out_of_scope: Vec::new(),
                whole: None,
                summary: String::new(),
                parts: Vec::new(),
            }),
            why: String::new(),
        };
        let all = [made(0, ""), made(1, "old"), made(2, "a"), made(3, "b"), made(4, "a")];
        let found = contenders(&all, |candidate| candidate.tree != "old");
        let numbers: Vec<u32> = found.iter().map(|(number, _)| *number).collect();
        assert_eq!(numbers, [2, 3]);
    }
}
