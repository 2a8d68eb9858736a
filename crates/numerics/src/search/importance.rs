//! How much each knob matters, from the trials so far.

use super::{SearchRecord, TriedSetting};
use crate::grid::Grid;

/// How much a knob matters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Importance {
    /// The knob, by its index among the axes.
    pub axis: usize,
    /// The share of the variance of the logarithm of the values that it alone accounts for.
    pub share: f64,
}

/// The knobs, the most important first.
///
/// The part explained by chance is subtracted: with few readings, many values explain a lot.
pub fn importance(grid: &Grid, record: &SearchRecord) -> Vec<Importance> {
    let logs = |entry: &TriedSetting| Some((entry.point, entry.value()?.ln()));
    let all: Vec<_> = record.entries().iter().filter_map(logs).collect();
    let count = all.len() as f64;
    let mean = all.iter().map(|(_, log)| log).sum::<f64>() / count.max(1.0);
    let whole: f64 = all.iter().map(|(_, log)| (log - mean).powi(2)).sum();
    let mut found = Vec::with_capacity(grid.axes().len());
    for axis in 0..grid.axes().len() {
        let mut groups = vec![(0.0, 0.0); grid.axes()[axis].values().len()];
        for (point, log) in &all {
            let group = &mut groups[usize::from(grid.ranks(*point)[axis])];
            *group = (group.0 + log, group.1 + 1.0);
        }
        let seen: Vec<(f64, f64)> = groups.into_iter().filter(|(_, n)| *n > 0.0).collect();
        let between: f64 = seen.iter().map(|(sum, n)| n * (sum / n - mean).powi(2)).sum();
        let (free, left) = (seen.len() as f64 - 1.0, count - seen.len() as f64);
        let chance = if left > 0.0 { free * (whole - between) / left } else { between };
        let share = if whole > 0.0 { ((between - chance) / whole).clamp(0.0, 1.0) } else { 0.0 };
        found.push(Importance { axis, share });
    }
    found.sort_by(|a, b| b.share.total_cmp(&a.share).then(a.axis.cmp(&b.axis)));
    found
}
