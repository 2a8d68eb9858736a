//! What the metric says of baseline and incumbent: aggregates, rates, the share of the peak.

use super::Campaign;
use crate::charter::{Better, Charter};
use karve_numerics::expr::parse_expr;
use karve_numerics::stats;
use std::collections::BTreeMap;

/// Median baseline reading of each visible case.
pub(super) fn baseline_medians(campaign: &Campaign) -> BTreeMap<usize, f64> {
    let Some(baseline) = campaign.baseline() else {
        return BTreeMap::new();
    };
    let mut values: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for reading in &baseline.readings {
        values.entry(reading.case).or_default().push(reading.sample.value);
    }
    values.into_iter().filter_map(|(case, v)| Some((case, stats::median(&v)?))).collect()
}

impl Campaign {
    /// The metric's geometric mean over the visible cases at the baseline.
    pub fn baseline_aggregate(&self) -> Option<f64> {
        let visible = self.charter()?.visible_cases();
        let medians = baseline_medians(self);
        let values: Option<Vec<f64>> = visible.iter().map(|c| medians.get(c).copied()).collect();
        stats::geometric_mean(&values?)
    }

    /// The same for the incumbent: the baseline times the speedup so far.
    pub fn aggregate(&self) -> Option<f64> {
        self.aggregate_at(self.lineage().cumulative_ratio())
    }

    /// The aggregate that a speedup over the baseline amounts to.
    pub fn aggregate_at(&self, ratio: f64) -> Option<f64> {
        let base = self.baseline_aggregate()?;
        Some(match self.charter()?.metric.better {
            Better::Lower => base / ratio,
            Better::Higher => base * ratio,
        })
    }

    /// Share of the measured peak that the incumbent reaches, 0 to 1.
    pub fn peak_share(&self) -> Option<f64> {
        self.peak_share_at(self.lineage().cumulative_ratio())
    }

    /// Share of the measured peak at a speedup over the baseline.
    pub fn peak_share_at(&self, ratio: f64) -> Option<f64> {
        let peak = self.baseline()?.peak.get("peak_gflops")? * 1e9;
        // A peak of zero would be reached at once.
        if !(peak.is_finite() && peak > 0.0) {
            return None;
        }
        Some(self.baseline_rate()? * ratio / peak)
    }

    /// Operations per second at the baseline, geometric mean over the visible cases.
    pub fn baseline_rate(&self) -> Option<f64> {
        let charter = self.charter()?;
        let medians = baseline_medians(self);
        let rates: Option<Vec<f64>> = charter
            .visible_cases()
            .into_iter()
            .map(|case| self.rate(charter, case, *medians.get(&case)?))
            .collect();
        stats::geometric_mean(&rates?)
    }

    fn rate(&self, charter: &Charter, case: usize, value: f64) -> Option<f64> {
        if let Some(per_unit) = charter.metric.rate_per_unit() {
            return Some(value * per_unit);
        }
        let seconds = value * charter.metric.seconds_per_unit()?;
        let work = parse_expr(charter.metric.work.as_deref()?).ok()?;
        Some(work.evaluate_params(&self.case(case)?.params).ok()? / seconds)
    }
}
