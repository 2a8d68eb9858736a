//! Inputs beyond those that a contract draws, where it declares no range, and harsher group sizes:
//! a kernel that is right only on what is drawn does not replace one that is right everywhere.

use super::{Arg, Contract};
use crate::draw::Draw;
use crate::tensor::Dtype;

/// Standard deviations of floating-point inputs that are drawn as `normal`.
const WIDER_SD: [f64; 2] = [16.0, 256.0];

impl Contract {
    /// The contract with wider inputs, each with a description; none if all ranges are declared.
    pub fn wider_inputs(&self) -> Vec<(Self, String)> {
        let floats = WIDER_SD.map(|sd| {
            let what = format!("with inputs of standard deviation {sd}");
            (self.with_draws(|arg| self.wider_normal(arg, sd)), what)
        });
        let any = "with any values of the integer type, since no draw is declared".to_owned();
        let root = "with integers up to the root of the largest, since no draw is declared";
        let integers = [
            (self.with_draws(|arg| self.wider_integers(arg, clamped)), any),
            (self.with_draws(|arg| self.wider_integers(arg, root_of)), root.to_owned()),
        ];
        let constant = "with other values of integer inputs that are constant".to_owned();
        let constants = [(self.with_draws(|arg| self.other_than_constant(arg)), constant)];
        let all = floats.into_iter().chain(integers).chain(constants);
        all.filter_map(|(contract, what)| Some((contract?, what))).collect()
    }

    /// The contract with harsher draws of its group sizes, each with a description of the change;
    /// none if no argument holds group sizes.
    pub fn harsher_groups(&self) -> Vec<(Self, String)> {
        let mut harsher = Vec::new();
        for (index, arg) in self.args.iter().enumerate() {
            let draws = arg.draw().map(Draw::harsher).unwrap_or_default();
            for (draw, what) in draws {
                let mut contract = self.clone();
                contract.args[index].set_draw(draw);
                harsher.push((contract, format!("{what} in `{}`", arg.name)));
            }
        }
        harsher
    }

    /// The contract with other draws of some arguments; none if that changes nothing.
    fn with_draws(&self, draw: impl Fn(&Arg) -> Option<Draw>) -> Option<Self> {
        let mut contract = self.clone();
        for arg in &mut contract.args {
            if let Some(draw) = draw(arg) {
                arg.set_draw(draw);
            }
        }
        (contract != *self).then_some(contract)
    }

    fn wider_normal(&self, arg: &Arg, sd: f64) -> Option<Draw> {
        match arg.draw()? {
            Draw::Normal { mean, .. } => Some(Draw::Normal { mean: *mean, sd }),
            _ => None,
        }
    }

    /// Values down to half of the only one that a module's input has: those of a length or a size
    /// are still valid.
    fn other_than_constant(&self, arg: &Arg) -> Option<Draw> {
        let value = match arg.draw()? {
            Draw::Integers { low, high } if low == high => *low,
            _ => return None,
        };
        let (low, high) = match value {
            0 | 1 => (0, 1),
            _ => (value.min(value / 2), value.max(value / 2)),
        };
        let is_asked = self.modules.asks && arg.dtype != Dtype::Bool;
        is_asked.then_some(Draw::Integers { low, high })
    }

    fn wider_integers(&self, arg: &Arg, limit: impl Fn(i128) -> i64) -> Option<Draw> {
        let is_drawn = arg.draw().is_some() && arg.dtype != Dtype::Bool;
        let undeclared = is_drawn && self.undeclared.contains(&arg.name);
        let (low, high) = arg.dtype.integer_range().filter(|_| undeclared)?;
        Some(Draw::Integers { low: limit(low), high: limit(high) })
    }
}

/// An end of a range, as far as draws reach.
fn clamped(limit: i128) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

/// Its root, with its sign.
fn root_of(limit: i128) -> i64 {
    clamped(limit).signum() * clamped(limit).unsigned_abs().isqrt() as i64
}

#[cfg(test)]
mod tests {
    use super::super::tests::product;
    use super::*;

    fn draws(contract: &Contract) -> Vec<Vec<Draw>> {
        let of = |(contract, _): (Contract, String)| {
            contract.args.iter().filter_map(|arg| arg.draw().cloned()).collect()
        };
        contract.wider_inputs().into_iter().map(of).collect()
    }

    #[test]
    fn only_inputs_without_a_declared_range_are_wider() {
        let mut contract = product();
        let index = contract.args.iter().position(|arg| arg.draw().is_some()).expect("an input");
        for arg in &mut contract.args {
            arg.set_draw(Draw::Uniform { low: 0.0, high: 1.0 });
        }
        assert_eq!(draws(&contract), Vec::<Vec<Draw>>::new());
        contract.args[index].set_draw(Draw::Normal { mean: 2.0, sd: 1.0 });
        let wide: Vec<Draw> = draws(&contract).into_iter().map(|all| all[0].clone()).collect();
        assert_eq!(wide, WIDER_SD.map(|sd| Draw::Normal { mean: 2.0, sd }));
    }

    #[test]
    fn integers_reach_the_ends_of_their_type_unless_their_draw_is_declared() {
        let mut contract = product();
        let index = contract.args.iter().position(|arg| arg.draw().is_some()).expect("an input");
        for arg in &mut contract.args {
            arg.set_draw(Draw::Uniform { low: 0.0, high: 1.0 });
        }
        contract.args[index].dtype = Dtype::I32;
        contract.args[index].set_draw(Draw::Integers { low: 0, high: 9 });
        assert_eq!(draws(&contract), Vec::<Vec<Draw>>::new());
        contract.undeclared.push(contract.args[index].name.clone());
        let wide: Vec<Draw> = draws(&contract).into_iter().map(|all| all[0].clone()).collect();
        let [low, high] = [i64::from(i32::MIN), i64::from(i32::MAX)];
        assert_eq!(
            wide,
            [Draw::Integers { low, high }, Draw::Integers { low: -46_340, high: 46_340 }]
        );
    }

    #[test]
    fn a_constant_of_a_module_has_other_values_too() {
        let mut contract = product();
        let index = contract.args.iter().position(|arg| arg.draw().is_some()).expect("an input");
        for arg in &mut contract.args {
            arg.set_draw(Draw::Uniform { low: 0.0, high: 1.0 });
        }
        contract.args[index].dtype = Dtype::I64;
        for (value, low, high) in [(512, 256, 512), (1, 0, 1), (0, 0, 1), (-8, -8, -4)] {
            contract.modules.asks = false;
            contract.args[index].set_draw(Draw::Integers { low: value, high: value });
            assert_eq!(draws(&contract), Vec::<Vec<Draw>>::new());
            contract.modules.asks = true;
            assert_eq!(draws(&contract)[0][0], Draw::Integers { low, high });
        }
        contract.args[index].set_draw(Draw::Integers { low: 0, high: 7 });
        assert_eq!(draws(&contract), Vec::<Vec<Draw>>::new());
    }
}
