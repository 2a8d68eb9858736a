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
    /// Where several devices read the variants: readings of the incumbent between its own, on the
    /// same device.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub incumbent: Vec<f64>,
    /// That device's host.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub host: String,
}

impl VariantTrial {
    /// One without readings.
    pub fn new(variant: u32, gate: Gate) -> Self {
        Self { variant, gate, values: Vec::new(), incumbent: Vec::new(), host: String::new() }
    }

    /// The reading that counts: the middle one.
    pub fn value(&self) -> Option<f64> {
        middle(&self.values)
    }

    /// The same, over that of the incumbent on the same device.
    fn relative(&self) -> Option<f64> {
        Some(self.value()? / middle(&self.incumbent)?)
    }
}

fn middle(values: &[f64]) -> Option<f64> {
    stats::median(values).filter(|value| value.is_finite() && *value > 0.0)
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
/// that passed; if none did, the first, which may be fixed. Times of different devices are not
/// compared: there each variant is compared with the incumbent beside it.
pub fn first(tryouts: &[VariantTrial]) -> Option<u32> {
    let passed = || tryouts.iter().filter(|tryout| tryout.gate.passed());
    let has_several = tryouts.iter().any(|tryout| !tryout.host.is_empty());
    let value = |of: &VariantTrial| if has_several { of.relative() } else { of.value() };
    let read = passed().filter_map(|tryout| Some((value(tryout)?, tryout.variant)));
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
        VariantTrial { values: values.to_vec(), ..VariantTrial::new(variant, gate) }
    }

    #[test]
    fn times_of_several_devices_are_compared_through_the_incumbent() {
        let on = |host: &str, variant, values: &[f64], incumbent: &[f64]| VariantTrial {
            incumbent: incumbent.to_vec(),
            host: host.to_owned(),
            ..tryout(variant, Gate::Passed, values)
        };
        let check = |tryouts: &[VariantTrial], want: u32| {
            assert_eq!(first(tryouts), Some(want));
            // The devices that read them, and their order, do not matter.
            let other: Vec<VariantTrial> = tryouts.iter().rev().cloned().collect();
            assert_eq!(first(&other), Some(want));
        };
        // The second one gained more, on a device that is half as fast.
        let fast = on("n1", 0, &[9.0, 9.0, 9.0], &[10.0, 10.0, 10.0]);
        let slow = on("n2", 1, &[16.0, 15.0, 17.0], &[20.0, 20.0, 20.0]);
        check(&[fast.clone(), slow.clone()], 1);
        // One whose incumbent could not be read has nothing to be compared with.
        let alone = on("n3", 2, &[1.0, 1.0, 1.0], &[]);
        check(&[fast, alone], 0);
        // A device that is twice as fast throughout changes nothing.
        let half = |values: &[f64]| values.iter().map(|value| value / 2.0).collect();
        let faster = VariantTrial {
            values: half(&slow.values),
            incumbent: half(&slow.incumbent),
            ..slow.clone()
        };
        check(&[on("n1", 0, &[7.9; 3], &[10.0; 3]), faster], 0);
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
