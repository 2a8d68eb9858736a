//! Other values of the scalars, for the correctness check: a kernel that has the listed ones built
//! in would be wrong for the next user.

use super::{ArgKind, Contract, value_of};
use crate::case::Case;
use crate::stats::DrawRng;

/// Values are multiplied by a number of eighths between these: exact in every type.
const EIGHTHS: [usize; 2] = [4, 16];

/// Values very near to a listed one differ from it by one of these powers of two, relatively.
const NEAR: [u32; 3] = [9, 12, 15];

/// How much larger values are than the listed ones where they are much larger.
const LARGER: u32 = 16;

/// How a floating-point scalar differs from the listed value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScalarChange {
    /// By up to a factor of two.
    Factor,
    /// So little that a table made for the listed value looks as if it fits.
    Near,
    /// In its sign.
    Sign,
    /// Much larger.
    Larger,
}

impl ScalarChange {
    /// All of them, what is near first: a table for the listed value is still there then.
    pub const ALL: [ScalarChange; 4] =
        [ScalarChange::Near, ScalarChange::Factor, ScalarChange::Sign, ScalarChange::Larger];

    /// Another value, as an expression.
    fn of(self, listed: &str, is_zero: bool, draws: &mut DrawRng) -> String {
        let [least, most] = EIGHTHS;
        let eighths = least + draws.below(most - least);
        let eighths = if eighths >= 8 { eighths + 1 } else { eighths };
        let near = 1_u64 << NEAR[draws.below(NEAR.len())];
        match (self, is_zero) {
            (Self::Factor, false) => format!("({listed})*{eighths}/8"),
            (Self::Factor, true) => format!("{eighths}/8"),
            (Self::Near, false) => format!("({listed})*{}/{near}", near + 1),
            (Self::Near, true) => format!("1/{near}"),
            (Self::Sign, false) => format!("0-({listed})*{eighths}/8"),
            (Self::Sign, true) => format!("0-{eighths}/8"),
            (Self::Larger, false) => format!("({listed})*{LARGER}"),
            (Self::Larger, true) => LARGER.to_string(),
        }
    }
}

/// What is added to integers, of which one is drawn.
const STEPS: [i64; 4] = [1, -1, 2, 3];

impl Contract {
    /// The contract with other values of its constant integers, unless they are fixed or are an
    /// extent of a tensor; nothing if there are none. What is derived from the sizes of a case is a
    /// size.
    pub fn with_other_integers(&self, secret: u64) -> Option<Self> {
        let mut contract = self.clone();
        let mut draws = DrawRng::new(secret);
        let mut changed = false;
        let extents: Vec<&str> = self
            .args
            .iter()
            .flat_map(|arg| arg.shape().unwrap_or_default())
            .map(|s| s.trim())
            .collect();
        for arg in contract.args.iter_mut().filter(|arg| !arg.dtype.is_float()) {
            let ArgKind::Scalar { value, fixed: false } = &mut arg.kind else {
                continue;
            };
            let Ok(number) = value.trim().parse::<i64>() else {
                continue;
            };
            if extents.contains(&value.trim()) {
                continue;
            }
            let step = STEPS[draws.below(STEPS.len())];
            let (low, high) = arg.dtype.integer_range().unwrap_or((0, 1));
            let other = number.saturating_add(if number + step < 0 { 1 } else { step });
            if (low..=high).contains(&i128::from(other)) {
                *value = other.to_string();
                changed = true;
            }
        }
        changed.then_some(contract)
    }

    /// The contract with other values of its floating-point scalars, unless they are fixed; nothing
    /// if there are none.
    pub fn with_other_scalars(
        &self,
        case: &Case,
        change: ScalarChange,
        secret: u64,
    ) -> Option<Self> {
        let mut contract = self.clone();
        let mut draws = DrawRng::new(secret);
        let mut changed = false;
        for arg in contract.args.iter_mut().filter(|arg| arg.dtype.is_float()) {
            let ArgKind::Scalar { value, fixed: false } = &mut arg.kind else {
                continue;
            };
            let is_zero = value_of(value, case).ok()? == 0.0;
            *value = change.of(value, is_zero, &mut draws);
            changed = true;
        }
        changed.then_some(contract)
    }
}

#[cfg(test)]
mod tests {
    use super::super::PlacedArg;
    use super::super::tests::{case, product};
    use super::*;
    use crate::tensor::Dtype;

    #[test]
    fn constant_integers_vary_unless_they_are_fixed_or_an_extent() {
        let mut contract = product();
        contract.args[1].dtype = Dtype::I32;
        let mut set = |value: &str, fixed| {
            contract.args[1].kind = ArgKind::Scalar { value: value.into(), fixed };
            (0..50).map(|secret| contract.with_other_integers(secret)).collect::<Vec<_>>()
        };
        let value = |contract: &Contract| match &contract.args[1].kind {
            ArgKind::Scalar { value, .. } => value.clone(),
            other => panic!("{other:?}"),
        };
        let others: std::collections::BTreeSet<String> =
            set("1", false).iter().flatten().map(value).collect();
        assert_eq!(others, ["0", "2", "3", "4"].map(String::from).into());
        assert!(set("0", false).iter().flatten().map(value).all(|value| value != "-1"));
        for (size, fixed) in [("M", false), ("K", false), ("3", true)] {
            assert!(set(size, fixed).iter().all(Option::is_none), "{size}");
        }
    }

    #[test]
    fn floating_point_scalars_vary_unless_they_are_fixed() {
        let case = case(&[("M", 4), ("K", 8)]);
        let mut contract = product();
        let mut scalar = contract.args[1].clone();
        assert_eq!(scalar.dtype, Dtype::F32);
        for (text, value) in [("1/K", 0.125), ("0-3", -3.0), ("0", 0.0)] {
            scalar.kind = ArgKind::Scalar { value: text.into(), fixed: false };
            contract.args[1] = scalar.clone();
            for (change, secret) in
                ScalarChange::ALL.into_iter().flat_map(|c| (0..50).map(move |s| (c, s)))
            {
                let other = contract.with_other_scalars(&case, change, secret);
                let other = other.expect("another value");
                let PlacedArg::Float(found) = other.layout(&case).expect("a layout").places[1]
                else {
                    panic!("a number");
                };
                let factor = if value == 0.0 { found } else { found / value };
                let is_right = match (change, value == 0.0) {
                    (ScalarChange::Factor, _) => (0.5..=2.0).contains(&factor) && factor != 1.0,
                    (ScalarChange::Near, true) => (1e-5..3e-3).contains(&factor),
                    (ScalarChange::Near, false) => (1e-5..3e-3).contains(&(factor - 1.0)),
                    (ScalarChange::Sign, _) => (-2.0..=-0.5).contains(&factor),
                    (ScalarChange::Larger, _) => factor == 16.0,
                };
                assert!(is_right, "{change:?} {text}: {found}");
            }
        }
        scalar.kind = ArgKind::Scalar { value: "1/K".into(), fixed: true };
        contract.args[1] = scalar;
        assert_eq!(contract.with_other_scalars(&case, ScalarChange::Near, 1), None);
    }
}
