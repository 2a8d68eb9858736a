//! Group sizes that add up to a total: how many rows each expert or each sequence gets.

use super::lanes::Lanes;
use serde::{Deserialize, Serialize};

/// How much more than its even share a group may hold, where there is a capacity.
const CAPACITY_FACTOR: f64 = 1.25;

/// How unequal the groups are; which of them is large is drawn anew for every call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Skew {
    /// Every row picks any group: sizes differ as chance has it.
    Uniform,
    /// Every row is in two groups, and some are more popular; none has more than half.
    Top2,
    /// Every row is in one group, some are much more popular, and none has more than 1.25 times
    /// its even share.
    Top1Capacity,
    /// One group has at least half of all rows.
    Dominant,
    /// Some groups are empty.
    Empty,
}

/// The sizes of `count` groups, which add up to `total`.
pub(super) fn sizes(total: u64, skew: Skew, count: usize, lanes: &mut Lanes) -> Vec<i64> {
    if count == 0 {
        return Vec::new();
    }
    let even = total as f64 / count as f64;
    let by_chance = |lanes: &mut Lanes| (even + even.sqrt() * lanes.normal()).max(0.0);
    let mut weights: Vec<f64> = match skew {
        Skew::Uniform | Skew::Dominant => (0..count).map(|_| by_chance(lanes)).collect(),
        Skew::Top2 => (0..count).map(|_| (lanes.normal() * 0.5).exp()).collect(),
        Skew::Top1Capacity | Skew::Empty => (0..count).map(|_| lanes.normal().exp()).collect(),
    };
    let mut most = vec![total; count];
    match skew {
        Skew::Uniform => {}
        Skew::Top2 if count > 1 => most.fill(total.div_ceil(2)),
        Skew::Top2 => {}
        Skew::Top1Capacity => most.fill((even * CAPACITY_FACTOR).ceil() as u64),
        Skew::Dominant => {
            let share = 0.5 + 0.4 * lanes.unit();
            let chosen = lanes.below(count as u64) as usize;
            let large = if count == 1 {
                total
            } else {
                ((total as f64 * share).ceil() as u64).clamp(total.div_ceil(2), total)
            };
            most[chosen] = 0;
            let mut sizes = apportion(total - large, &weights, &most, lanes);
            sizes[chosen] = large as i64;
            return sizes;
        }
        Skew::Empty => {
            let n_empty = (count as f64 * (0.25 + 0.25 * lanes.unit())).ceil() as usize;
            let mut order: Vec<usize> = (0..count).collect();
            for place in 0..n_empty.min(count - 1) {
                let other = place + lanes.below((count - place) as u64) as usize;
                order.swap(place, other);
                weights[order[place]] = 0.0;
                most[order[place]] = 0;
            }
        }
    }
    apportion(total, &weights, &most, lanes)
}

/// Whole numbers near the weights that add up to `total`, none above its most.
fn apportion(total: u64, weights: &[f64], most: &[u64], lanes: &mut Lanes) -> Vec<i64> {
    let sum: f64 = weights.iter().sum();
    let ideal = |weight: f64| (total as f64 * (weight / sum.max(f64::MIN_POSITIVE))) as u64;
    let mut sizes: Vec<u64> = weights
        .iter()
        .zip(most)
        .map(|(weight, most)| ideal(*weight).min(*most))
        .collect();
    // Products of floats may add up to more; then the largest gives.
    let mut given: u64 = sizes.iter().fold(0, |sum, size| sum.saturating_add(*size));
    while given > total {
        let Some(largest) = sizes.iter_mut().max() else {
            break;
        };
        let less = (given - total).min(*largest);
        *largest -= less;
        given -= less;
    }
    // What is left goes to groups with room, in turn from one that is drawn.
    let mut left = total - given;
    let start = lanes.below(sizes.len() as u64) as usize;
    while left > 0 {
        let n_open = sizes.iter().zip(most).filter(|(s, m)| s < m).count() as u64;
        if n_open == 0 {
            break;
        }
        let part = left.div_ceil(n_open);
        for step in 0..sizes.len() {
            let at = (start + step) % sizes.len();
            let more = part.min(most[at] - sizes[at]).min(left);
            sizes[at] += more;
            left -= more;
        }
    }
    sizes.into_iter().map(|size| size as i64).collect()
}
