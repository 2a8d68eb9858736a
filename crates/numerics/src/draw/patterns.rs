//! Patterns in otherwise nominal inputs: what data look like in use, and what a sample misses.
//!
//! A tensor is drawn as its argument declares, then a pattern changes some of it. Patterns that
//! only rearrange values (ties, sorted rows) stay in the range that was declared. Those that bring
//! in other values take them from the hostile draws of the contract, on which the kernel must be
//! right anyway.

use super::lanes::{BLOCK, StreamKey, StreamLanes};
use super::{Draw, ends, fill_part, sort};
use crate::tensor::{self, Dtype, power_of_two};
use serde::{Deserialize, Serialize};

/// The parts of a stream that are reserved for patterns; no part of a draw has these numbers.
pub(super) const CHOICE_PART: u32 = 15;
const HOSTILE_PART: u32 = 16;

/// Hostile elements of a tensor at most, where they are few.
pub(super) const OUTLIERS_MAX: u64 = 8;

/// Distances between the elements of a lane.
pub(super) const LANE_WIDTHS: [usize; 4] = [4, 8, 16, 32];

/// Different values of a row with ties, or clusters of it, at most.
pub(super) const VALUES_MAX: u64 = 6;

/// Different rows, where rows are repeated, at most.
pub(super) const ROWS_MAX: u64 = 4;

/// How the inputs of one call differ from what their arguments declare.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InputPattern {
    /// A few hostile elements, at random places.
    Outliers,
    /// A nominal start and a hostile rest.
    Prefix,
    /// Nominal numbers, scaled toward the magnitude of hostile ones.
    Scaled,
    /// Hostile elements in one lane.
    Lane,
    /// A few different values in every row.
    Ties,
    /// A few clusters of nearly equal values in every row.
    Clusters,
    /// Large terms of both signs in every row, with a small sum.
    Cancellation,
    /// A few different rows.
    Repeated,
    /// Sorted rows, all in one direction.
    Sorted,
    /// Masks and zeros in runs of different lengths.
    Masks,
    /// Exact zeros: rows of them, at both ends of rows, and among other numbers.
    Zeros,
    /// One or two NaNs. Not in any mixture: only where the incumbent is right. Infinities are left
    /// out: a compensated sum makes a NaN of one, which is no mistake.
    #[serde(skip)]
    NonFinite,
    /// Infinities and a negative zero, under the same condition, and only where nothing is summed.
    #[serde(skip)]
    Extreme,
    /// The ends of declared ranges, under the same condition.
    #[serde(skip)]
    Ends,
    /// Arguments that are drawn alike have the same elements, under the same condition.
    #[serde(skip)]
    Alike,
}

impl InputPattern {
    /// All that a mixture may have.
    pub const ALL: [InputPattern; 11] = [
        InputPattern::Outliers,
        InputPattern::Prefix,
        InputPattern::Scaled,
        InputPattern::Lane,
        InputPattern::Ties,
        InputPattern::Clusters,
        InputPattern::Cancellation,
        InputPattern::Repeated,
        InputPattern::Sorted,
        InputPattern::Masks,
        InputPattern::Zeros,
    ];

    /// Whether it takes elements from hostile draws.
    pub fn needs_hostile(self) -> bool {
        match self {
            InputPattern::Outliers | InputPattern::Prefix => true,
            InputPattern::Scaled | InputPattern::Lane => true,
            InputPattern::Ties | InputPattern::Clusters | InputPattern::Cancellation => false,
            InputPattern::Repeated | InputPattern::Sorted => false,
            InputPattern::Masks | InputPattern::Zeros => false,
            InputPattern::NonFinite | InputPattern::Extreme => false,
            InputPattern::Ends | InputPattern::Alike => false,
        }
    }

    /// Whether only a few elements become hostile.
    pub fn is_sparse(self) -> bool {
        self == InputPattern::Outliers || !self.needs_hostile()
    }

    /// Whether it can change an argument of that type with that draw.
    pub fn applies_to(self, draw: &Draw, dtype: Dtype) -> bool {
        let is_mask = match draw {
            Draw::Integers { low: 0, high: 1 } | Draw::Sparse { .. } => true,
            _ => dtype == Dtype::Bool,
        };
        match self {
            InputPattern::Masks => is_mask,
            _ if is_mask => false,
            InputPattern::Ties | InputPattern::Repeated | InputPattern::Sorted => {
                matches!(draw, Draw::Uniform { .. } | Draw::Normal { .. } | Draw::Integers { .. })
            }
            InputPattern::Zeros => match draw {
                Draw::Normal { .. } => true,
                Draw::Uniform { low, high } => *low <= 0.0 && *high >= 0.0,
                Draw::Integers { low, high } => *low <= 0 && *high >= 0,
                _ => false,
            },
            InputPattern::Clusters => {
                dtype.is_float() && matches!(draw, Draw::Uniform { .. } | Draw::Normal { .. })
            }
            InputPattern::Cancellation => dtype.is_float() && is_symmetric(draw),
            InputPattern::Ends => {
                matches!(draw, Draw::Uniform { .. } | Draw::Integers { .. })
            }
            InputPattern::Alike => {
                matches!(draw, Draw::Uniform { .. } | Draw::Normal { .. } | Draw::Integers { .. })
            }
            // A range says nothing about NaN.
            InputPattern::NonFinite => {
                let is_plain = matches!(draw, Draw::Normal { .. } | Draw::Uniform { .. });
                dtype.is_float() && dtype.bytes() > 1 && is_plain
            }
            InputPattern::Extreme => {
                dtype.is_float() && dtype.bytes() > 1 && matches!(draw, Draw::Normal { .. })
            }
            // A range that was declared holds.
            InputPattern::Outliers | InputPattern::Prefix => {
                dtype.is_float() && matches!(draw, Draw::Normal { .. })
            }
            InputPattern::Scaled | InputPattern::Lane => {
                dtype.is_float() && matches!(draw, Draw::Normal { .. })
            }
        }
    }

    /// In words.
    pub fn describe(self) -> &'static str {
        match self {
            InputPattern::Outliers => "a few hostile elements",
            InputPattern::Prefix => "a nominal start and a hostile rest",
            InputPattern::Scaled => "numbers scaled toward hostile ones",
            InputPattern::Lane => "hostile elements in one lane",
            InputPattern::Ties => "ties in every row",
            InputPattern::Clusters => "clusters of nearly equal values",
            InputPattern::Cancellation => "large terms that cancel each other",
            InputPattern::Repeated => "repeated rows",
            InputPattern::Sorted => "sorted rows",
            InputPattern::Masks => "masks in runs of different lengths",
            InputPattern::Zeros => "exact zeros",
            InputPattern::NonFinite => "a NaN",
            InputPattern::Extreme => "infinities and a negative zero",
            InputPattern::Ends => "values at the ends of their range",
            InputPattern::Alike => "the same elements in several arguments",
        }
    }
}

fn is_symmetric(draw: &Draw) -> bool {
    match draw {
        Draw::Normal { mean, .. } => *mean == 0.0,
        Draw::Uniform { low, high } => *low == -*high,
        _ => false,
    }
}

/// The tensor that a pattern changes.
#[derive(Debug, Clone, Copy)]
pub struct PatternTarget<'a> {
    /// The pattern.
    pub pattern: InputPattern,
    /// Where it takes hostile elements from, if it needs any; the draw itself, for its ends.
    pub hostile: Option<&'a Draw>,
    /// The type of the elements.
    pub dtype: Dtype,
    /// Elements of a row.
    pub row: usize,
}

/// Changes a nominal tensor: a pure function of its arguments.
pub fn apply(target: &PatternTarget<'_>, seed: u64, stream: u64, out: &mut [u8]) {
    let key = StreamKey { seed, stream, part: CHOICE_PART };
    let mut lanes = StreamLanes::of(key);
    let width = target.dtype.bytes();
    let count = out.len() / width;
    if count == 0 {
        return;
    }
    let row = target.row.clamp(1, count);
    match (target.pattern, target.hostile) {
        (InputPattern::Ties, _) => ties(row * width, width, &mut lanes, out),
        (InputPattern::Repeated, _) => repeated(row, width, &mut lanes, out),
        (InputPattern::Masks, _) => masks(row * width, width, &mut lanes, out),
        (InputPattern::Zeros, _) => zeros(row * width, width, &mut lanes, out),
        (InputPattern::NonFinite, _) => non_finite(target.dtype, &mut lanes, out),
        (InputPattern::Extreme, _) => extreme(target.dtype, &mut lanes, out),
        (InputPattern::Clusters, _) => clusters(target.dtype, row, &mut lanes, out),
        (InputPattern::Cancellation, _) => cancellation(target.dtype, row, &mut lanes, out),
        (InputPattern::Sorted, _) => sorted(target.dtype, row, &mut lanes, out),
        (InputPattern::Ends, Some(nominal)) => {
            ends::ends(nominal, target.dtype, row, &mut lanes, out);
        }
        (InputPattern::Alike, _) => {}
        (InputPattern::Scaled, Some(hostile)) => {
            scaled(hostile, target.dtype, &mut lanes, out);
        }
        (InputPattern::Outliers | InputPattern::Prefix | InputPattern::Lane, Some(hostile)) => {
            let key = StreamKey { part: HOSTILE_PART, ..key };
            blend(target, Hostile { draw: hostile, key }, &mut lanes, out);
        }
        (_, None) => {}
    }
}

/// Where hostile elements come from.
struct Hostile<'a> {
    draw: &'a Draw,
    key: StreamKey,
}

/// Replaces some of the elements by hostile ones.
fn blend(target: &PatternTarget<'_>, from: Hostile<'_>, lanes: &mut StreamLanes, out: &mut [u8]) {
    let (dtype, width) = (target.dtype, target.dtype.bytes());
    let count = out.len() / width;
    let draw = |n: usize| {
        let mut drawn = vec![0; n * width];
        fill_part(from.draw, dtype, from.key, &mut drawn);
        drawn
    };
    match target.pattern {
        InputPattern::Prefix => {
            // At least a quarter is nominal, and at least one element is not.
            let quarter = count as u64 / 4;
            let start = (quarter + lanes.below(count as u64 - quarter)) as usize * width;
            fill_part(from.draw, dtype, from.key, &mut out[start..]);
        }
        InputPattern::Lane => {
            let step = LANE_WIDTHS[lanes.below(LANE_WIDTHS.len() as u64) as usize].min(count);
            let first = lanes.below(step as u64) as usize;
            let drawn = draw(count.div_ceil(step));
            let places = out.chunks_exact_mut(width).skip(first).step_by(step);
            for (place, element) in places.zip(drawn.chunks_exact(width)) {
                place.copy_from_slice(element);
            }
        }
        _ => {
            let n = 1 + lanes.below(OUTLIERS_MAX) as usize;
            let drawn = draw(n);
            for element in drawn.chunks_exact(width) {
                let at = lanes.below(count as u64) as usize * width;
                out[at..at + width].copy_from_slice(element);
            }
        }
    }
}

/// Puts one or two NaNs at random places.
fn non_finite(dtype: Dtype, lanes: &mut StreamLanes, out: &mut [u8]) {
    let width = dtype.bytes();
    for _ in 0..=lanes.below(2) {
        let at = lanes.below((out.len() / width) as u64) as usize * width;
        tensor::from_f64(dtype, &[f64::NAN], &mut out[at..at + width]);
    }
}

/// Puts infinities and a negative zero at random places.
fn extreme(dtype: Dtype, lanes: &mut StreamLanes, out: &mut [u8]) {
    let width = dtype.bytes();
    for value in [f64::INFINITY, f64::NEG_INFINITY, -0.0] {
        let at = lanes.below((out.len() / width) as u64) as usize * width;
        tensor::from_f64(dtype, &[value], &mut out[at..at + width]);
    }
}

/// Multiplies all elements by one factor.
fn scaled(hostile: &Draw, dtype: Dtype, lanes: &mut StreamLanes, out: &mut [u8]) {
    if let Some(factor) = scale_factor(hostile, dtype, lanes) {
        map(dtype, out, |v| v * factor);
    }
}

/// A factor between 1 and what makes elements as large as hostile ones.
pub(super) fn scale_factor(hostile: &Draw, dtype: Dtype, lanes: &mut StreamLanes) -> Option<f64> {
    let mut sample = vec![0; BLOCK * dtype.bytes()];
    let key = StreamKey { seed: lanes.below(1 << 53), stream: 0, part: HOSTILE_PART };
    fill_part(hostile, dtype, key, &mut sample);
    let mut values = Vec::with_capacity(BLOCK);
    tensor::to_f64(dtype, &sample, &mut values);
    let magnitudes = values.iter().map(|v| v.abs()).filter(|v| v.is_finite() && *v > 0.0);
    let magnitude = magnitudes.reduce(f64::max)?;
    Some(magnitude.powf(lanes.unit()))
}

/// Every row has only a few different values, those that it starts with.
fn ties(row_bytes: usize, width: usize, lanes: &mut StreamLanes, out: &mut [u8]) {
    for row in out.chunks_mut(row_bytes) {
        let n = row.len() / width;
        let k = (1 + lanes.below(VALUES_MAX) as usize).min(n);
        let (values, rest) = row.split_at_mut(k * width);
        let mut at = lanes.word() as usize;
        for element in rest.chunks_exact_mut(width) {
            // Which value comes next looks random, and costs little.
            at = at.wrapping_mul(0x915f_77f5).wrapping_add(0x9e37_79b9);
            let from = (at >> 16) % k * width;
            element.copy_from_slice(&values[from..from + width]);
        }
    }
}

/// All rows are copies of a few; a tensor of one row repeats a part of it.
fn repeated(row: usize, width: usize, lanes: &mut StreamLanes, out: &mut [u8]) {
    let count = out.len() / width;
    let row = if row == count { count.div_ceil(4) } else { row };
    let k = (1 + lanes.below(ROWS_MAX) as usize) * row * width;
    if k < out.len() {
        let (rows, rest) = out.split_at_mut(k);
        for chunk in rest.chunks_mut(row * width) {
            let from = lanes.below((k / (row * width)) as u64) as usize * row * width;
            chunk.copy_from_slice(&rows[from..from + chunk.len()]);
        }
    }
}

/// Some rows are a run of zeros next to a run of what was drawn, at least one element each. In
/// masks the other run is all ones.
fn masks(row_bytes: usize, width: usize, lanes: &mut StreamLanes, out: &mut [u8]) {
    for row in out.chunks_mut(row_bytes) {
        let n = row.len() / width;
        if n < 2 || lanes.below(4) == 0 {
            continue;
        }
        let cut = (1 + lanes.below(n as u64 - 1)) as usize * width;
        let (start, end) = row.split_at_mut(cut);
        let (zeros, rest) = if lanes.below(2) == 0 { (start, end) } else { (end, start) };
        zeros.fill(0);
        let is_set = |element: &&[u8]| element.iter().any(|byte| *byte != 0);
        let Some(set) = rest.chunks_exact(width).find(is_set).map(<[u8]>::to_vec) else {
            continue;
        };
        if rest.chunks_exact(width).filter(is_set).all(|element| element == set) {
            rest.chunks_exact_mut(width).for_each(|element| element.copy_from_slice(&set));
        }
    }
}

/// Of every four rows, one is all zeros, one has them at both ends, and one at every third place
/// or so.
fn zeros(row_bytes: usize, width: usize, lanes: &mut StreamLanes, out: &mut [u8]) {
    for row in out.chunks_mut(row_bytes) {
        match lanes.below(4) {
            0 => row.fill(0),
            1 => {
                let end =
                    (1 + lanes.below(row.len() as u64 / width as u64 / 4 + 1)) as usize * width;
                let end = end.min(row.len());
                row[..end].fill(0);
                let start = row.len() - end;
                row[start..].fill(0);
            }
            2 => {
                let mut at = lanes.word();
                for element in row.chunks_exact_mut(width) {
                    at = at.wrapping_mul(0x915f_77f5).wrapping_add(0x9e37_79b9);
                    if (at >> 16).is_multiple_of(3) {
                        element.fill(0);
                    }
                }
            }
            _ => {}
        }
    }
}

/// Every element is within a few epsilons of one of a few values of its row.
fn clusters(dtype: Dtype, row: usize, lanes: &mut StreamLanes, out: &mut [u8]) {
    ties(row * dtype.bytes(), dtype.bytes(), lanes, out);
    // Toward zero, so that no element leaves its range.
    let mut word = lanes.word();
    let epsilon = dtype.epsilon();
    map(dtype, out, |v| {
        word = word.wrapping_mul(0x915f_77f5).wrapping_add(0x9e37_79b9);
        v - v * epsilon * f64::from(word >> 28)
    });
}

/// The second half of every row is nearly the negative of its first half, so that no order of the
/// terms keeps partial sums small.
fn cancellation(dtype: Dtype, row: usize, lanes: &mut StreamLanes, out: &mut [u8]) {
    // One of up to all bits of the fraction survives.
    let bits = (-dtype.epsilon().log2()) as u64;
    let left = power_of_two(-((bits / 4 + lanes.below(bits / 2 + 1)) as i32));
    let mut other = Vec::new();
    for row in out.chunks_mut(row * dtype.bytes()) {
        let half = row.len() / dtype.bytes() / 2 * dtype.bytes();
        let (first, second) = row.split_at_mut(half);
        other.clear();
        other.extend_from_slice(first);
        map(dtype, &mut other, |v| v * left - v);
        second[..half].copy_from_slice(&other);
    }
}

/// The first row is sorted, and every other one is between its neighboring values.
fn sorted(dtype: Dtype, row: usize, lanes: &mut StreamLanes, out: &mut [u8]) {
    let width = dtype.bytes();
    let descending = lanes.below(2) == 0;
    let (first, rest) = out.split_at_mut(row * width);
    sort(dtype, first);
    let mut values = Vec::with_capacity(row);
    tensor::to_f64(dtype, first, &mut values);
    if descending {
        values.reverse();
        tensor::from_f64(dtype, &values, first);
    }
    let mut between = vec![0.0; row];
    for chunk in rest.chunks_mut(row * width) {
        let part = lanes.unit();
        for (v, pair) in between.iter_mut().zip(values.windows(2)) {
            *v = pair[0] + part * (pair[1] - pair[0]);
        }
        if let (Some(last), Some(value)) = (between.last_mut(), values.last()) {
            *last = *value;
        }
        if dtype.is_float() {
            tensor::from_f64(dtype, &between[..chunk.len() / width], chunk);
        } else {
            between.iter_mut().for_each(|v| *v = v.floor());
            tensor::from_f64(dtype, &between[..chunk.len() / width], chunk);
        }
    }
}

/// Changes every element.
fn map(dtype: Dtype, out: &mut [u8], mut of: impl FnMut(f64) -> f64) {
    if dtype == Dtype::F32 {
        for bytes in out.as_chunks_mut::<4>().0 {
            *bytes = (of(f64::from(f32::from_ne_bytes(*bytes))) as f32).to_ne_bytes();
        }
        return;
    }
    let mut values = Vec::with_capacity(BLOCK);
    for chunk in out.chunks_mut(BLOCK * dtype.bytes()) {
        tensor::to_f64(dtype, chunk, &mut values);
        values.iter_mut().for_each(|v| *v = of(*v));
        tensor::from_f64(dtype, &values, chunk);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draw;

    const ROW: usize = 64;

    fn drawn(pattern: InputPattern, hostile: Option<&Draw>, dtype: Dtype, seed: u64) -> Vec<f64> {
        let nominal = match (pattern, dtype) {
            (InputPattern::Masks, _) => Draw::Integers { low: 0, high: 1 },
            (_, Dtype::I32) => Draw::Integers { low: -5, high: 900 },
            _ => Draw::Normal { mean: 0.0, sd: 1.0 },
        };
        assert!(pattern.applies_to(&nominal, dtype), "{pattern:?} {dtype:?}");
        let mut out = vec![0; 50 * ROW * dtype.bytes()];
        draw::fill(&nominal, dtype, seed, 3, &mut out);
        let nominal = out.clone();
        apply(&PatternTarget { pattern, hostile, dtype, row: ROW }, seed, 3, &mut out);
        assert_ne!(nominal, out, "{pattern:?} changes something");
        let mut values = Vec::new();
        tensor::to_f64(dtype, &out, &mut values);
        values
    }

    #[test]
    fn a_few_hostile_elements_are_where_a_sample_misses_them() {
        let mut places = Vec::new();
        for seed in 0..50 {
            let large = Draw::Large { full: false };
            let values = drawn(InputPattern::Outliers, Some(&large), Dtype::F32, seed);
            let found: Vec<usize> = (0..values.len()).filter(|i| values[*i].abs() > 1e10).collect();
            assert!((1..=OUTLIERS_MAX as usize).contains(&found.len()), "{found:?}");
            places.extend(found);
        }
        places.sort_unstable();
        places.dedup();
        assert!(places.len() > 100, "{places:?}");
    }

    #[test]
    fn a_prefix_stays_nominal_and_a_lane_is_one_lane() {
        let large = Draw::Large { full: false };
        for seed in 0..50 {
            let values = drawn(InputPattern::Prefix, Some(&large), Dtype::F32, seed);
            let start = values.iter().position(|v| v.abs() > 1e10).expect("a rest");
            assert!(start >= values.len() / 4);
            assert!(values[start..].iter().all(|v| v.abs() > 1e10));
            let values = drawn(InputPattern::Lane, Some(&large), Dtype::F32, seed);
            let found: Vec<usize> = (0..values.len()).filter(|i| values[*i].abs() > 1e10).collect();
            let step = found[1] - found[0];
            assert!(LANE_WIDTHS.contains(&step) && found.windows(2).all(|w| w[1] - w[0] == step));
        }
    }

    #[test]
    fn scales_lie_between_nominal_and_hostile() {
        let large = Draw::Large { full: false };
        let mut sizes: Vec<f64> = (0..40)
            .map(|seed| drawn(InputPattern::Scaled, Some(&large), Dtype::F32, seed)[0].abs())
            .collect();
        sizes.sort_unstable_by(f64::total_cmp);
        assert!(sizes[5] < 1e5 && sizes[20] > 1e5 && sizes[39] < 1e19, "{sizes:?}");
    }

    #[test]
    fn rows_have_ties_or_clusters_or_repeat() {
        for seed in 0..20 {
            for (pattern, dtype) in [
                (InputPattern::Ties, Dtype::F32),
                (InputPattern::Ties, Dtype::I32),
                (InputPattern::Clusters, Dtype::F32),
                (InputPattern::Clusters, Dtype::F16),
            ] {
                let values = drawn(pattern, None, dtype, seed);
                for row in values.chunks(ROW) {
                    let mut row = row.to_vec();
                    row.sort_unstable_by(f64::total_cmp);
                    row.dedup_by(|a, b| (*a - *b).abs() <= b.abs() * 0.05);
                    assert!(row.len() <= VALUES_MAX as usize, "{pattern:?} {row:?}");
                }
            }
            let values = drawn(InputPattern::Repeated, None, Dtype::F32, seed);
            let mut rows: Vec<&[f64]> = values.chunks(ROW).collect();
            rows.sort_unstable_by(|a, b| a[0].total_cmp(&b[0]));
            rows.dedup();
            assert!(rows.len() <= ROWS_MAX as usize);
        }
    }

    #[test]
    fn rows_are_sorted_in_one_direction_and_within_range() {
        let mut ascending = 0;
        for seed in 0..20 {
            for dtype in [Dtype::F32, Dtype::F64, Dtype::I32] {
                let values = drawn(InputPattern::Sorted, None, dtype, seed);
                let up = values.chunks(ROW).all(|row| row.is_sorted());
                let down = values.chunks(ROW).all(|row| row.is_sorted_by(|a, b| a >= b));
                assert!(up || down, "{dtype:?}");
                ascending += u32::from(up);
                if dtype == Dtype::I32 {
                    assert!(values.iter().all(|v| (-5.0..=900.0).contains(v)));
                }
            }
        }
        assert!((10..50).contains(&ascending), "{ascending}");
    }

    #[test]
    fn canceling_rows_have_small_sums_of_large_terms() {
        for dtype in [Dtype::F32, Dtype::F64] {
            for seed in 0..20 {
                let values = drawn(InputPattern::Cancellation, None, dtype, seed);
                for row in values.chunks(ROW) {
                    let sum: f64 = row.iter().sum();
                    let size: f64 = row.iter().map(|v| v.abs()).sum();
                    assert!(sum.abs() < 0.05 * size && sum != 0.0, "{sum} {size}");
                }
            }
        }
    }

    #[test]
    fn masks_have_both_values_and_runs() {
        for (seed, dtype) in [(1, Dtype::Bool), (2, Dtype::I32), (3, Dtype::F32)] {
            let values = drawn(InputPattern::Masks, None, dtype, seed);
            let changes = |row: &[f64]| row.windows(2).filter(|w| w[0] != w[1]).count();
            let runs = values.chunks(ROW).filter(|row| changes(row) == 1).count();
            assert!((20..50).contains(&runs), "{runs}");
            assert!(values.iter().all(|v| *v == 0.0 || *v == 1.0));
        }
    }

    #[test]
    fn zeros_fill_rows_and_ends_of_rows_and_are_among_others() {
        for dtype in [Dtype::F32, Dtype::F16, Dtype::I32] {
            let values = drawn(InputPattern::Zeros, None, dtype, 4);
            let rows = || values.chunks(ROW);
            let is_zero = |v: &f64| *v == 0.0;
            let all = rows().filter(|row| row.iter().all(is_zero)).count();
            let ends = rows().filter(|row| is_zero(&row[0]) && is_zero(&row[ROW - 1])).count();
            let none = rows().filter(|row| row.iter().filter(|v| is_zero(v)).count() < 3).count();
            assert!(all >= 5 && ends >= all + 5 && none >= 5, "{all} {ends} {none}");
        }
        let above = Draw::Uniform { low: 0.5, high: 1.0 };
        assert!(!InputPattern::Zeros.applies_to(&above, Dtype::F32));
    }

    #[test]
    fn declared_ranges_and_indices_are_respected() {
        let unit = Draw::Uniform { low: 0.0, high: 1.0 };
        for pattern in InputPattern::ALL {
            assert!(!pattern.needs_hostile() || !pattern.applies_to(&unit, Dtype::F32));
            assert!(!pattern.applies_to(&Draw::Permutation, Dtype::I32), "{pattern:?}");
            assert!(!pattern.applies_to(&Draw::Zeros, Dtype::F32), "{pattern:?}");
        }
        assert!(!InputPattern::Cancellation.applies_to(&unit, Dtype::F32));
        for pattern in [InputPattern::Ties, InputPattern::Clusters, InputPattern::Sorted] {
            let dtype = Dtype::F32;
            let mut out = vec![0; 50 * ROW * 4];
            draw::fill(&unit, dtype, 9, 0, &mut out);
            apply(&PatternTarget { pattern, hostile: None, dtype, row: ROW }, 9, 0, &mut out);
            let mut values = Vec::new();
            tensor::to_f64(dtype, &out, &mut values);
            assert!(values.iter().all(|v| (0.0..=1.0).contains(v)), "{pattern:?}");
        }
    }
}
