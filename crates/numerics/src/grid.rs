//! All settings of some knobs that their restrictions allow.
//!
//! A setting is identified by its point, a number from 0. Points are in the order of the values,
//! the last knob fastest, so that a setting is found by a binary search for its code: the number
//! that its values form with one digit per knob. Settings that the restrictions forbid are never
//! generated: `walk` descends the tree of partial settings and backtracks early.

mod restriction;
mod walk;

pub use restriction::{Restriction, RestrictionNames};
pub use walk::{GridError, VALID_MAX};

use crate::space::KnobSetting;
use std::collections::BTreeMap;

/// Maximum number of values of one axis.
pub const VALUES_MAX: usize = 4_096;

/// A setting, by its index in the grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GridPoint(pub u32);

/// One knob with its values, as the search sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    name: String,
    values: Vec<String>,
    numbers: Option<Vec<f64>>,
    default: usize,
}

impl Axis {
    /// A knob and the values it may take; the default is the current value.
    ///
    /// Numbers are sorted, words keep their order. Duplicate values count once.
    pub fn new(name: &str, values: &[String], default: Option<&str>) -> Result<Self, String> {
        let mut distinct: Vec<String> = Vec::with_capacity(values.len());
        for value in values {
            if !distinct.contains(value) {
                distinct.push(value.clone());
            }
            if distinct.len() > VALUES_MAX {
                return Err(format!("the knob {name} has more than {VALUES_MAX} values"));
            }
        }
        if distinct.is_empty() {
            return Err(format!("the knob {name} has no values"));
        }
        let first = distinct[0].clone();
        let number = |value: &String| value.parse::<f64>().ok().filter(|n| n.is_finite());
        let numbers: Option<Vec<f64>> = distinct.iter().map(number).collect();
        let numbers = numbers.map(|numbers| {
            let mut order: Vec<usize> = (0..numbers.len()).collect();
            order.sort_by(|a, b| numbers[*a].total_cmp(&numbers[*b]));
            distinct = order.iter().map(|i| distinct[*i].clone()).collect();
            order.iter().map(|i| numbers[*i]).collect()
        });
        let wanted = default.unwrap_or(&first);
        let Some(default) = distinct.iter().position(|value| value == wanted) else {
            return Err(format!("the default {wanted} of {name} is not one of its values"));
        };
        Ok(Self { name: name.to_owned(), values: distinct, numbers, default })
    }

    /// The knob's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its values: sorted if they are numbers, else in the given order.
    pub fn values(&self) -> &[String] {
        &self.values
    }

    /// Its values as numbers, if all are.
    pub fn numbers(&self) -> Option<&[f64]> {
        self.numbers.as_deref()
    }

    /// Whether its values are sizes: more than two positive numbers.
    pub fn is_size(&self) -> bool {
        let sizes = |numbers: &Vec<f64>| numbers.len() > 2 && numbers[0] > 0.0;
        self.numbers.as_ref().is_some_and(sizes)
    }
}

/// All valid settings.
#[derive(Clone, Debug)]
pub struct Grid {
    axes: Vec<Axis>,
    /// The ranks of every point's values, one point after another.
    ranks: Vec<u16>,
    /// The code of every point, ascending.
    codes: Vec<u64>,
    /// Notes for the user: a restriction that divides by zero, settings left out.
    notes: Vec<String>,
    whole: bool,
}

impl Grid {
    /// The settings of the axes that satisfy all restrictions.
    pub fn new(axes: Vec<Axis>, restrictions: &[Restriction]) -> Result<Self, GridError> {
        walk::walk(axes, restrictions)
    }

    /// The settings in a list, each by its ranks; for recorded spaces.
    pub fn of_list(axes: Vec<Axis>, mut settings: Vec<Vec<u16>>) -> Result<Self, GridError> {
        walk::combinations(&axes)?;
        settings.sort_unstable();
        settings.dedup();
        let codes = settings.iter().map(|ranks| code(&axes, ranks)).collect();
        Ok(Self { ranks: settings.concat(), axes, codes, notes: Vec::new(), whole: true })
    }

    /// The knobs.
    pub fn axes(&self) -> &[Axis] {
        &self.axes
    }

    /// The number of settings.
    pub fn len(&self) -> usize {
        self.codes.len()
    }

    /// Whether there are no settings.
    pub fn is_empty(&self) -> bool {
        self.codes.is_empty()
    }

    /// Whether it contains all valid settings, not just a sample.
    pub fn is_whole(&self) -> bool {
        self.whole
    }

    /// Notes for the user about the space.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// All points.
    pub fn points(&self) -> impl Iterator<Item = GridPoint> + use<> {
        (0..self.len() as u32).map(GridPoint)
    }

    /// The value index of each knob in a setting.
    pub fn ranks(&self, point: GridPoint) -> &[u16] {
        let width = self.axes.len();
        let at = point.0 as usize * width;
        self.ranks.get(at..at + width).unwrap_or_default()
    }

    /// The point with these values, if it is valid.
    pub fn find(&self, ranks: &[u16]) -> Option<GridPoint> {
        let code = code(&self.axes, ranks);
        let at = self.codes.binary_search(&code).ok()?;
        u32::try_from(at).ok().map(GridPoint)
    }

    /// The setting of a point, by knob name.
    pub fn config(&self, point: GridPoint) -> KnobSetting {
        let named = |(axis, rank): (&Axis, &u16)| {
            let value = axis.values.get(usize::from(*rank));
            value.map(|value| (axis.name.clone(), value.clone()))
        };
        let ranks = self.ranks(point);
        self.axes.iter().zip(ranks).filter_map(named).collect()
    }

    /// The point of a setting; knobs that it does not name have their defaults.
    pub fn point(&self, config: &BTreeMap<String, String>) -> Option<GridPoint> {
        let mut ranks = Vec::with_capacity(self.axes.len());
        for axis in &self.axes {
            let rank = match config.get(&axis.name) {
                None => axis.default,
                Some(value) => axis.values.iter().position(|known| known == value)?,
            };
            ranks.push(u16::try_from(rank).ok()?);
        }
        self.find(&ranks)
    }

    /// The default setting, if it is valid.
    pub fn default_point(&self) -> Option<GridPoint> {
        self.point(&BTreeMap::new())
    }

    /// The valid settings that differ from a point in one knob.
    pub fn neighbours(&self, point: GridPoint) -> Vec<GridPoint> {
        let mut ranks = self.ranks(point).to_vec();
        let mut found = Vec::new();
        for (index, axis) in self.axes.iter().enumerate() {
            let own = ranks[index];
            for other in (0..axis.values.len() as u16).filter(|rank| *rank != own) {
                ranks[index] = other;
                found.extend(self.find(&ranks));
            }
            ranks[index] = own;
        }
        found
    }
}

/// The number that the values of a setting form, one digit per knob.
fn code(axes: &[Axis], ranks: &[u16]) -> u64 {
    let digits = axes.iter().zip(ranks);
    digits.fold(0, |code, (axis, rank)| code * axis.values.len() as u64 + u64::from(*rank))
}

#[cfg(test)]
mod tests;
