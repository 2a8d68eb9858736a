//! What the metric says of baseline and incumbent: aggregates, rates, the share of the peak.

use super::Campaign;
use crate::charter::{Better, Charter};
use crate::comparison::Comparison;
use karve_numerics::expr::parse_expr;
use karve_numerics::stats;
use std::collections::BTreeMap;

impl Campaign {
    /// The median reading of each case at the baseline.
    pub fn baseline_values(&self) -> BTreeMap<usize, f64> {
        let mut values: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
        for reading in self.baseline().iter().flat_map(|baseline| &baseline.readings) {
            values.entry(reading.case).or_default().push(reading.sample.value);
        }
        values.into_iter().filter_map(|(case, v)| Some((case, stats::median(&v)?))).collect()
    }

    /// The same for the best kernel so far: from the final duel, or else from the duel that kept
    /// it.
    pub fn incumbent_values(&self) -> BTreeMap<usize, f64> {
        let last = self.lineage().kept().last().map(|kept| kept.round);
        let kept = self.rounds().iter().find(|round| Some(round.number) == last);
        let kept = kept.and_then(|round| round.shown());
        // An extended campaign that runs again has only the duel of its previous end.
        let ended = self.final_comparison().filter(|_| self.stop_reason().is_some());
        ended.or(kept).map_or_else(|| self.baseline_values(), Comparison::candidate_values)
    }

    /// The metric's geometric mean over the visible cases at the baseline.
    pub fn baseline_aggregate(&self) -> Option<f64> {
        let visible = self.charter()?.visible_cases();
        let medians = self.baseline_values();
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
        let medians = self.baseline_values();
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
