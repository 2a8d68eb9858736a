//! Nsight Compute's names for our counters; `metrics.txt` lists them.

use super::super::number::Quantity;
use std::sync::LazyLock;

/// A metric and its counter. If a counter has several metrics, the first one present counts.
#[derive(Debug)]
pub(super) struct NcuMetric {
    pub(super) metric: &'static str,
    pub(super) kind: Quantity,
    pub(super) counter: &'static str,
    /// A second metric that the counter needs, and how both form it.
    pub(super) with: Option<(MetricCombination, &'static str)>,
}

/// How two metrics form a counter.
#[derive(Clone, Copy, Debug)]
pub(super) enum MetricCombination {
    Sum,
    Ratio,
    Percentage,
}

impl MetricCombination {
    /// The counter, if there is one.
    pub(super) fn combine(self, first: f64, second: f64) -> Option<f64> {
        match self {
            Self::Sum => Some(first + second),
            Self::Ratio => (second > 0.0).then(|| first / second),
            Self::Percentage => (second > 0.0).then(|| 100.0 * first / second),
        }
    }
}

/// Appended to the name of a metric of the page `details` whose unit is per second: another
/// metric has the same name in percent.
pub(super) const RATE: &str = " per second";

/// The page `details`.
pub(super) static DETAILS: LazyLock<Vec<NcuMetric>> = LazyLock::new(|| metrics_of("[details]"));
/// The page `raw`.
pub(super) static RAW: LazyLock<Vec<NcuMetric>> = LazyLock::new(|| metrics_of("[raw]"));

/// The metrics of a page.
fn metrics_of(page: &str) -> Vec<NcuMetric> {
    let lines = include_str!("metrics.txt").lines().skip_while(|line| *line != page).skip(1);
    lines.take_while(|line| !line.starts_with('[')).filter_map(parse_metric).collect()
}

/// `shared_bytes  bytes  first metric + second metric`.
fn parse_metric(line: &'static str) -> Option<NcuMetric> {
    let (counter, rest) = line.split_once(' ')?;
    let (kind, metric) = rest.trim_start().split_once(' ')?;
    let kind = match kind {
        "time" => Quantity::Time,
        "percent" => Quantity::Percent,
        "bytes" => Quantity::Bytes,
        "bytes/s" => Quantity::BytesPerSecond,
        "hertz" => Quantity::Hertz,
        _ => Quantity::Count,
    };
    let combinations = [
        (" + ", MetricCombination::Sum),
        (" / ", MetricCombination::Ratio),
        (" % ", MetricCombination::Percentage),
    ];
    let metric = metric.trim_start();
    let two = combinations.iter().find_map(|(sign, combination)| {
        let (first, second) = metric.split_once(sign)?;
        Some((first, (*combination, second)))
    });
    let (metric, with) = two.map_or((metric, None), |(first, with)| (first, Some(with)));
    Some(NcuMetric { metric, kind, counter, with })
}

/// The reason for which warps wait, if a metric of the page `raw` is about one.
pub(super) fn stall_of(metric: &str) -> Option<&str> {
    let reason = metric
        .strip_prefix("smsp__average_warps_issue_stalled_")?
        .strip_suffix("_per_issue_active.ratio")?;
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    (!reason.is_empty() && reason.chars().all(plain)).then_some(reason)
}

/// Whether a metric is used.
pub(super) fn is_wanted(names: &[NcuMetric], metric: &str) -> bool {
    let is = |name: &NcuMetric| {
        name.metric == metric || name.with.is_some_and(|(_, second)| second == metric)
    };
    stall_of(metric).is_some() || names.iter().any(is)
}

/// Why warps wait, by words in the text of a rule.
pub(super) const STALL_WORDS: &[(&str, &str)] = &[
    ("queue for local and global (LG)", "stall.lg_throttle"),
    ("scoreboard dependency on a L1TEX", "stall.long_scoreboard"),
    ("MIO (memory input/output) instruction queue", "stall.mio_throttle"),
    ("scoreboard dependency on an MIO", "stall.short_scoreboard"),
    ("CTA barrier", "stall.barrier"),
    ("fixed latency execution dependency", "stall.wait"),
    ("execution pipe to be available", "stall.math_pipe_throttle"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use karve_core::profile::counters::known;

    #[test]
    fn every_metric_is_a_known_counter() {
        assert_eq!((DETAILS.len(), RAW.len()), (26, 41));
        for name in DETAILS.iter().chain(RAW.iter()) {
            assert!(known(name.counter).is_some(), "{}", name.counter);
        }
        for (_, counter) in STALL_WORDS {
            assert!(known(counter).is_some(), "{counter}");
        }
        assert!(DETAILS.iter().any(|name| name.metric.ends_with(RATE)));
    }
}
