//! Group sizes that add up to a total: how many rows each expert or each sequence gets.

use super::lanes::StreamLanes;
use serde::{Deserialize, Serialize};

/// How much more than its even share a group may hold, where there is a capacity.
const CAPACITY_FACTOR: f64 = 1.25;

/// How unequal the groups are; which of them is large is redrawn for every call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Skew {
    /// Every row picks any group: sizes differ by chance.
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
    /// As `Top2`, with one group that has every row. For karve's own use only; not in files.
    #[serde(skip)]
    Top2Dominant,
    /// As `Top2`, with some empty groups.
    #[serde(skip)]
    Top2Empty,
    /// As `Top1Capacity`, with as many empty groups as the capacity leaves room for.
    #[serde(skip)]
    CapacityEmpty,
}

impl Skew {
    /// Harsher sizes that a kernel must handle as well: they keep what this skew promises, which is
    /// how much one group may hold at most.
    pub fn harsher(self) -> &'static [Skew] {
        match self {
            Skew::Uniform => &[Skew::Dominant, Skew::Empty],
            Skew::Dominant => &[Skew::Empty, Skew::Uniform],
            Skew::Empty => &[Skew::Dominant, Skew::Uniform],
            Skew::Top2 => &[Skew::Top2Dominant, Skew::Top2Empty],
            Skew::Top1Capacity => &[Skew::CapacityEmpty],
            Skew::Top2Dominant | Skew::Top2Empty | Skew::CapacityEmpty => &[],
        }
    }

    /// In words.
    pub fn describe(self) -> &'static str {
        match self {
            Skew::Uniform => "groups of about the same size",
            Skew::Top2 => "groups where every row picks two",
            Skew::Top1Capacity => "groups of unequal size with a capacity",
            Skew::Dominant | Skew::Top2Dominant => "one group with at least half of all rows",
            Skew::Empty | Skew::Top2Empty | Skew::CapacityEmpty => "empty groups",
        }
    }

    /// What one group may hold at most.
    fn most(self, total: u64, count: usize) -> u64 {
        let even = total as f64 / count.max(1) as f64;
        match self {
            Skew::Top2 | Skew::Top2Dominant | Skew::Top2Empty if count > 1 => total.div_ceil(2),
            Skew::Top1Capacity | Skew::CapacityEmpty => (even * CAPACITY_FACTOR).ceil() as u64,
            Skew::Top2 | Skew::Top2Dominant | Skew::Top2Empty => total,
            Skew::Uniform | Skew::Dominant | Skew::Empty => total,
        }
    }
}

/// The sizes of `count` groups, which add up to `total`.
pub(super) fn sizes(total: u64, skew: Skew, count: usize, lanes: &mut StreamLanes) -> Vec<i64> {
    if count == 0 {
        return Vec::new();
    }
    let even = total as f64 / count as f64;
    let by_chance = |lanes: &mut StreamLanes| (even + even.sqrt() * lanes.normal()).max(0.0);
    let mut weights: Vec<f64> = match skew {
        Skew::Uniform | Skew::Dominant => (0..count).map(|_| by_chance(lanes)).collect(),
        Skew::Top2 | Skew::Top2Dominant | Skew::Top2Empty => {
            (0..count).map(|_| (lanes.normal() * 0.5).exp()).collect()
        }
        Skew::Top1Capacity | Skew::Empty | Skew::CapacityEmpty => {
            (0..count).map(|_| lanes.normal().exp()).collect()
        }
    };
    let at_most = skew.most(total, count);
    let mut most = vec![at_most; count];
    match skew {
        Skew::Uniform | Skew::Top2 | Skew::Top1Capacity => {}
        Skew::Dominant | Skew::Top2Dominant => {
            let share = 0.5 + 0.4 * lanes.unit();
            let chosen = lanes.below(count as u64) as usize;
            let large = if count == 1 {
                total
            } else {
                let half = total.div_ceil(2);
                ((total as f64 * share).ceil() as u64).clamp(half, at_most.max(half))
            };
            most[chosen] = 0;
            let mut sizes = apportion(total - large, &weights, &most, lanes);
            sizes[chosen] = large as i64;
            return sizes;
        }
        Skew::Empty | Skew::Top2Empty | Skew::CapacityEmpty => {
            let wanted = (count as f64 * (0.25 + 0.25 * lanes.unit())).ceil() as usize;
            // The other groups must be able to hold everything.
            let needed = total.div_ceil(at_most.max(1)).max(1) as usize;
            let n_empty = wanted.min(count.saturating_sub(needed));
            let mut order: Vec<usize> = (0..count).collect();
            for place in 0..n_empty {
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
fn apportion(total: u64, weights: &[f64], most: &[u64], lanes: &mut StreamLanes) -> Vec<i64> {
    let sum: f64 = weights.iter().sum();
    let ideal = |weight: f64| (total as f64 * (weight / sum.max(f64::MIN_POSITIVE))) as u64;
    let mut sizes: Vec<u64> =
        weights.iter().zip(most).map(|(weight, most)| ideal(*weight).min(*most)).collect();
    // Products of floats may add up to more; then the largest group shrinks.
    let mut given: u64 = sizes.iter().fold(0, |sum, size| sum.saturating_add(*size));
    while given > total {
        let Some(largest) = sizes.iter_mut().max() else {
            break;
        };
        let less = (given - total).min(*largest);
        *largest -= less;
        given -= less;
    }
    // The rest goes to groups with room, in turn, starting at a random one.
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
