//! A bench that is decided many times: how often each finding comes, and how long it takes.

use super::view::BenchView;
use karve_core::verdict::BenchFinding;
use karve_numerics::stats;
use serde::Serialize;

/// What many benches of the same sides found.
#[derive(Clone, Debug, Default, Serialize)]
pub struct RepeatedBench {
    /// Benches that found B faster.
    pub faster: u32,
    /// Benches that found B slower.
    pub slower: u32,
    /// Benches that found no difference.
    pub no_difference: u32,
    /// Benches that found nothing, or clocks that disagree.
    pub undecided: u32,
    /// How long each took.
    pub seconds: Vec<f64>,
    /// The pairs of each.
    pub pairs: Vec<u32>,
    /// The speedup that each estimated.
    pub speedups: Vec<f64>,
    /// The share of the time of each in which a side ran.
    pub busy_shares: Vec<f64>,
}

impl RepeatedBench {
    /// Adds one.
    pub fn add(&mut self, view: &BenchView) {
        *match view.finding {
            BenchFinding::Faster { .. } => &mut self.faster,
            BenchFinding::Slower { .. } => &mut self.slower,
            BenchFinding::NoDifference { .. } => &mut self.no_difference,
            _ => &mut self.undecided,
        } += 1;
        self.seconds.push(view.seconds);
        self.pairs.push(view.pairs);
        self.busy_shares.push(1.0 - view.own_share);
        self.speedups.extend(view.clocks.first().map(|clock| clock.estimate.ratio));
    }

    /// As text.
    pub fn describe(&self) -> String {
        let pairs: Vec<f64> = self.pairs.iter().copied().map(f64::from).collect();
        let of = |values: &[f64]| {
            let most = values.iter().copied().fold(0.0, f64::max);
            (stats::median(values).unwrap_or_default(), most)
        };
        let ((usual_s, longest_s), (usual, most)) = (of(&self.seconds), of(&pairs));
        let of_pair = |(seconds, pairs): (&f64, &f64)| 1e3 * seconds / pairs.max(1.0);
        let pair_ms: Vec<f64> = self.seconds.iter().zip(&pairs).map(of_pair).collect();
        let (pair_ms, _) = of(&pair_ms);
        let busy_percent = 100.0 * of(&self.busy_shares).0;
        let (speedup, largest) = of(&self.speedups);
        let least = self.speedups.iter().copied().fold(largest, f64::min);
        format!(
            "decided   {} times: {} faster, {} slower, {} no difference, {} undecided\n\
             time      {usual_s:.1} s (median), {longest_s:.1} s (longest)\n\
             pairs     {usual:.0} (median), {most:.0} (most)\n\
             pair      {pair_ms:.1} ms with its share of the start, {busy_percent:.0}% in a side\n\
             speedup   {speedup:.4} (median), {least:.4} to {largest:.4}\n",
            self.seconds.len(),
            self.faster,
            self.slower,
            self.no_difference,
            self.undecided,
        )
    }
}
