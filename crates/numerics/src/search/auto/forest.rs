//! An ensemble of random trees over settings.
//!
//! Every tree splits all settings until each is alone, at the best of some random thresholds: one
//! for each knob, one for how often two divides a size, and as many as there are knobs for products
//! and ratios of two sizes, on which the resources of a device depend. A leaf names its setting, so
//! that values may change without new trees. A new setting splits the leaf that it falls into; a
//! few trees are regrown each time.

use crate::grid::{Axis, Grid, GridPoint};
use crate::stats::DrawRng;

/// Draws for the split of a leaf.
const SPLIT_DRAWS: usize = 40;

/// The features of settings: the logarithm of sizes, the rank of other values, and how often two
/// divides a size.
#[derive(Debug)]
pub(super) struct ForestFeatures {
    tables: Vec<Vec<f32>>,
    /// Knobs with how often two divides each of their values.
    twos: Vec<(usize, Vec<u16>)>,
    /// The knobs whose values are sizes.
    sizes: Vec<usize>,
}

impl ForestFeatures {
    pub(super) fn new(grid: &Grid) -> Self {
        let table = |axis: &Axis| match axis.numbers().filter(|_| axis.is_size()) {
            Some(numbers) => numbers.iter().map(|number| number.log2() as f32).collect(),
            None => (0..axis.values().len()).map(|rank| rank as f32).collect(),
        };
        let twos = |(index, axis): (usize, &Axis)| Some((index, super::twos(axis)?));
        let is_size = |index: &usize| grid.axes()[*index].is_size();
        Self {
            tables: grid.axes().iter().map(table).collect(),
            twos: grid.axes().iter().enumerate().filter_map(twos).collect(),
            sizes: (0..grid.axes().len()).filter(is_size).collect(),
        }
    }

    pub(super) fn of(&self, grid: &Grid, point: GridPoint) -> Vec<f32> {
        let ranks = grid.ranks(point);
        let knobs = self.tables.iter().zip(ranks);
        let knobs = knobs.map(|(table, rank)| table[usize::from(*rank)]);
        let twos = self.twos.iter();
        let twos = twos.map(|(knob, counts)| f32::from(counts[usize::from(ranks[*knob])]));
        knobs.chain(twos).collect()
    }

    /// The number of features.
    fn columns(&self) -> usize {
        self.tables.len() + self.twos.len()
    }

    /// The number of split directions: the columns, and as many pairs of sizes as there are knobs.
    fn directions(&self) -> usize {
        if self.sizes.len() < 2 { self.columns() } else { self.columns() + self.tables.len() }
    }

    fn direction(&self, index: usize, draws: &mut DrawRng) -> SplitFeature {
        if index < self.columns() {
            return SplitFeature { first: index, second: None };
        }
        let first = draws.below(self.sizes.len());
        let other = draws.below(self.sizes.len() - 1);
        let second = other + usize::from(other >= first);
        // A product with probability 3/4, else a ratio.
        let sign = if draws.below(4) == 0 { -1.0 } else { 1.0 };
        SplitFeature { first: self.sizes[first], second: Some((self.sizes[second], sign)) }
    }
}

/// What a split tests: one column, or the product or ratio of two sizes.
#[derive(Clone, Copy, Debug)]
struct SplitFeature {
    first: usize,
    second: Option<(usize, f32)>,
}

impl SplitFeature {
    fn of(self, x: &[f32]) -> f32 {
        match self.second {
            None => x[self.first],
            Some((second, sign)) => x[self.first] + sign * x[second],
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum TreeNode {
    Leaf(u32),
    Split { direction: SplitFeature, threshold: f32, below: u32, above: u32 },
}

/// The ensemble.
#[derive(Debug)]
pub(super) struct Forest {
    trees: Vec<Vec<TreeNode>>,
    rebuilt: usize,
    next: usize,
    settings: Vec<(GridPoint, Vec<f32>)>,
    values: Vec<f64>,
}

impl Forest {
    /// A forest of this many trees, some of which are regrown each time.
    pub(super) fn new((trees, anew): (usize, usize)) -> Self {
        Self {
            trees: vec![Vec::new(); trees],
            rebuilt: anew,
            next: 0,
            settings: Vec::new(),
            values: Vec::new(),
        }
    }

    /// Whether it has learned nothing yet.
    pub(super) fn is_empty(&self) -> bool {
        self.settings.is_empty()
    }

    /// Learns values. Settings that it already knows must come first, in the same order.
    pub(super) fn learn(
        &mut self,
        features: &ForestFeatures,
        grid: &Grid,
        readings: &[(GridPoint, f64)],
        draws: &mut DrawRng,
    ) {
        let known = self.settings.iter().map(|(point, _)| point);
        if !readings.iter().map(|(point, _)| point).take(self.settings.len()).eq(known) {
            self.settings.clear();
        }
        let known = self.settings.len();
        let new = readings[known..].iter();
        self.settings.extend(new.map(|(point, _)| (*point, features.of(grid, *point))));
        self.values = readings.iter().map(|(_, value)| *value).collect();
        let count = self.trees.len();
        for index in 0..count {
            let turn = (index + count - self.next) % count < self.rebuilt;
            let mut tree = std::mem::take(&mut self.trees[index]);
            if turn || known == 0 {
                tree.clear();
                self.grow(&mut tree, features, draws);
            } else {
                for setting in known..self.settings.len() {
                    self.insert(&mut tree, setting, features, draws);
                }
            }
            self.trees[index] = tree;
        }
        self.next = (self.next + self.rebuilt) % count.max(1);
    }

    /// The mean and the variance of the trees' predictions.
    pub(super) fn predict(&self, x: &[f32]) -> (f64, f64) {
        let (mut sum, mut squares) = (0.0, 0.0);
        for tree in &self.trees {
            let (_, setting) = leaf(tree, x);
            let value = self.values[setting];
            sum += value;
            squares += value * value;
        }
        let count = self.trees.len().max(1) as f64;
        let mean = sum / count;
        (mean, (squares / count - mean * mean).max(0.0))
    }

    fn grow(&self, tree: &mut Vec<TreeNode>, features: &ForestFeatures, draws: &mut DrawRng) {
        let mut all: Vec<u32> = (0..self.settings.len() as u32).collect();
        let mut along = Vec::with_capacity(all.len());
        // Parts that are not split yet: their range, and their node.
        tree.push(TreeNode::Leaf(0));
        let mut open = vec![(0, all.len(), 0_usize)];
        while let Some((from, to, at)) = open.pop() {
            let part = &mut all[from..to];
            tree[at] = TreeNode::Leaf(part.first().copied().unwrap_or_default());
            if part.len() < 2 {
                continue;
            }
            let Some((direction, threshold)) = self.split(part, &mut along, features, draws) else {
                continue;
            };
            let mut middle = 0;
            for index in 0..part.len() {
                let x = &self.settings[part[index] as usize].1;
                if direction.of(x) <= threshold {
                    part.swap(index, middle);
                    middle += 1;
                }
            }
            let (below, above) = (tree.len(), tree.len() + 1);
            tree.extend([TreeNode::Leaf(0), TreeNode::Leaf(0)]);
            tree[at] =
                TreeNode::Split { direction, threshold, below: below as u32, above: above as u32 };
            open.push((from, from + middle, below));
            open.push((from + middle, to, above));
        }
    }

    /// The best of one random threshold for each direction.
    fn split(
        &self,
        part: &[u32],
        along: &mut Vec<f32>,
        features: &ForestFeatures,
        draws: &mut DrawRng,
    ) -> Option<(SplitFeature, f32)> {
        let whole: f64 = part.iter().map(|at| self.values[*at as usize]).sum();
        let mut best: Option<(f64, SplitFeature, f32)> = None;
        for index in 0..features.directions() {
            let direction = features.direction(index, draws);
            along.clear();
            along.extend(part.iter().map(|at| direction.of(&self.settings[*at as usize].1)));
            let Some(threshold) = between(along, draws) else {
                continue;
            };
            let (mut sum, mut count) = (0.0, 0.0);
            for (value, at) in along.iter().zip(part) {
                let inside = f64::from(u8::from(*value <= threshold));
                sum += inside * self.values[*at as usize];
                count += inside;
            }
            let others = part.len() as f64 - count;
            let apart = sum * sum / count + (whole - sum).powi(2) / others;
            if best.as_ref().is_none_or(|(most, ..)| apart > *most) {
                best = Some((apart, direction, threshold));
            }
        }
        best.map(|(_, direction, threshold)| (direction, threshold))
    }

    /// Splits the leaf that a setting falls into.
    fn insert(
        &self,
        tree: &mut Vec<TreeNode>,
        setting: usize,
        features: &ForestFeatures,
        draws: &mut DrawRng,
    ) {
        let x = &self.settings[setting].1;
        let (at, old) = leaf(tree, x);
        for _ in 0..SPLIT_DRAWS {
            let index = draws.below(features.directions());
            let direction = features.direction(index, draws);
            let (new, other) = (direction.of(x), direction.of(&self.settings[old].1));
            let Some(threshold) = between(&[new, other], draws) else {
                continue;
            };
            let (below, above) = if new <= threshold { (setting, old) } else { (old, setting) };
            let end = tree.len() as u32;
            tree.extend([TreeNode::Leaf(below as u32), TreeNode::Leaf(above as u32)]);
            tree[at] = TreeNode::Split { direction, threshold, below: end, above: end + 1 };
            return;
        }
    }
}

/// A random threshold that separates some values; `None` if they are all equal.
fn between(values: &[f32], draws: &mut DrawRng) -> Option<f32> {
    let low = values.iter().copied().fold(f32::INFINITY, f32::min);
    let high = values.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let threshold = low + (high - low) * draws.next_f64() as f32;
    (low < high).then_some(if threshold < high { threshold } else { low })
}

/// The leaf of a setting: its node, and the setting that it names.
fn leaf(tree: &[TreeNode], x: &[f32]) -> (usize, usize) {
    let mut at = 0;
    loop {
        match tree[at] {
            TreeNode::Leaf(setting) => return (at, setting as usize),
            TreeNode::Split { direction, threshold, below, above } => {
                let down = direction.of(x) <= threshold;
                at = if down { below } else { above } as usize;
            }
        }
    }
}
