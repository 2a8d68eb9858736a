//! Nsight Compute's names for our counters.

use super::super::number::Quantity::{self, Bytes, BytesPerSecond, Count, Hertz, Percent, Time};

/// A metric and its counter. If a counter has several metrics, the first one present counts.
#[derive(Debug)]
pub(super) struct NcuMetric {
    pub(super) metric: &'static str,
    pub(super) kind: Quantity,
    pub(super) counter: &'static str,
    /// A second metric that the counter needs.
    pub(super) with: Option<MetricCombination>,
}

/// How two metrics form a counter.
#[derive(Clone, Copy, Debug)]
pub(super) enum MetricCombination {
    /// The sum of both.
    Plus(&'static str),
    /// The first divided by the second.
    Per(&'static str),
    /// The first as a percentage of the second.
    PercentOf(&'static str),
}

impl MetricCombination {
    /// The second metric.
    pub(super) fn metric(self) -> &'static str {
        match self {
            Self::Plus(metric) | Self::Per(metric) | Self::PercentOf(metric) => metric,
        }
    }

    /// The counter, if there is one.
    pub(super) fn combine(self, first: f64, second: f64) -> Option<f64> {
        match self {
            Self::Plus(_) => Some(first + second),
            Self::Per(_) => (second > 0.0).then(|| first / second),
            Self::PercentOf(_) => (second > 0.0).then(|| 100.0 * first / second),
        }
    }
}

const fn one(metric: &'static str, kind: Quantity, counter: &'static str) -> NcuMetric {
    NcuMetric { metric, kind, counter, with: None }
}

const fn two(
    metric: &'static str,
    with: MetricCombination,
    kind: Quantity,
    counter: &'static str,
) -> NcuMetric {
    NcuMetric { metric, kind, counter, with: Some(with) }
}

/// Appended to the name of a metric of the page `details` whose unit is per second: another
/// metric has the same name in percent.
pub(super) const RATE: &str = " per second";

/// The page `details`.
pub(super) const DETAILS: &[NcuMetric] = &[
    one("Duration", Time, "duration_us"),
    one("Compute (SM) Throughput", Percent, "compute_pct"),
    one("Memory Throughput", Percent, "memory_pct"),
    one("DRAM Throughput", Percent, "dram_pct"),
    one("L1/TEX Cache Throughput", Percent, "l1_pct"),
    one("L2 Cache Throughput", Percent, "l2_pct"),
    one("Issue Slots Busy", Percent, "issue_pct"),
    one("Memory Throughput per second", BytesPerSecond, "dram_bytes_per_s"),
    one("L1/TEX Hit Rate", Percent, "l1_hit_pct"),
    one("L2 Hit Rate", Percent, "l2_hit_pct"),
    one("Local Memory Spilling Requests", Count, "spill_requests"),
    one("Achieved Occupancy", Percent, "occupancy_pct"),
    one("Theoretical Occupancy", Percent, "occupancy_limit_pct"),
    one("Registers Per Thread", Count, "registers"),
    two(
        "Static Shared Memory Per Block",
        MetricCombination::Plus("Dynamic Shared Memory Per Block"),
        Bytes,
        "shared_bytes",
    ),
    one("Waves Per SM", Count, "waves"),
    one("Grid Size", Count, "blocks"),
    one("Block Size", Count, "threads_per_block"),
    one("# SMs", Count, "units"),
    one("Eligible Warps Per Scheduler", Count, "eligible_warps"),
    one("Avg. Active Threads Per Warp", Count, "active_threads"),
    one("Branch Efficiency", Percent, "branch_efficiency_pct"),
    one("Executed Ipc Active", Count, "ipc"),
    one("Executed Instructions", Count, "instructions"),
    one("Elapsed Cycles", Count, "cycles"),
    one("SM Frequency", Hertz, "clock_hz"),
];

/// The page `raw`.
pub(super) const RAW: &[NcuMetric] = &[
    one("gpu__time_duration.sum", Time, "duration_us"),
    one("gpu__time_duration.avg", Time, "duration_us"),
    one("sm__throughput.avg.pct_of_peak_sustained_elapsed", Percent, "compute_pct"),
    one("gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed", Percent, "memory_pct"),
    one("gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed", Percent, "dram_pct"),
    one("dram__throughput.avg.pct_of_peak_sustained_elapsed", Percent, "dram_pct"),
    one("l1tex__throughput.avg.pct_of_peak_sustained_active", Percent, "l1_pct"),
    one("lts__throughput.avg.pct_of_peak_sustained_elapsed", Percent, "l2_pct"),
    one(
        "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum.pct_of_peak_sustained_elapsed",
        Percent,
        "shared_pct",
    ),
    one("sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed", Percent, "tensor_pct"),
    one("sm__inst_executed_pipe_tensor.avg.pct_of_peak_sustained_elapsed", Percent, "tensor_pct"),
    one("sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_elapsed", Percent, "fma_pct"),
    one("sm__inst_executed_pipe_fma.avg.pct_of_peak_sustained_elapsed", Percent, "fma_pct"),
    one("sm__inst_issued.avg.pct_of_peak_sustained_active", Percent, "issue_pct"),
    one("sm__inst_issued.avg.pct_of_peak_sustained_elapsed", Percent, "issue_pct"),
    one("dram__bytes.sum.per_second", BytesPerSecond, "dram_bytes_per_s"),
    two(
        "dram__bytes_read.sum.per_second",
        MetricCombination::Plus("dram__bytes_write.sum.per_second"),
        BytesPerSecond,
        "dram_bytes_per_s",
    ),
    two(
        "dram__bytes_read.sum",
        MetricCombination::Plus("dram__bytes_write.sum"),
        Bytes,
        "dram_bytes",
    ),
    one("dram__bytes.sum", Bytes, "dram_bytes"),
    one("l1tex__t_sector_hit_rate.pct", Percent, "l1_hit_pct"),
    one("lts__t_sector_hit_rate.pct", Percent, "l2_hit_pct"),
    two(
        "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
        MetricCombination::Per("l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"),
        Count,
        "sectors_per_request",
    ),
    two(
        "derived__memory_l2_theoretical_sectors_global_excessive",
        MetricCombination::PercentOf("memory_l2_theoretical_sectors_global"),
        Count,
        "wasted_sectors_pct",
    ),
    two(
        "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum",
        MetricCombination::PercentOf("l1tex__data_pipe_lsu_wavefronts_mem_shared.sum"),
        Count,
        "bank_conflict_pct",
    ),
    one("derived__local_spilling_requests", Count, "spill_requests"),
    one("sm__warps_active.avg.pct_of_peak_sustained_active", Percent, "occupancy_pct"),
    one("sm__maximum_warps_per_active_cycle_pct", Percent, "occupancy_limit_pct"),
    one("launch__registers_per_thread", Count, "registers"),
    two(
        "launch__shared_mem_per_block_static",
        MetricCombination::Plus("launch__shared_mem_per_block_dynamic"),
        Bytes,
        "shared_bytes",
    ),
    one("launch__waves_per_multiprocessor", Count, "waves"),
    one("launch__grid_size", Count, "blocks"),
    one("launch__block_size", Count, "threads_per_block"),
    one("launch__sm_count", Count, "units"),
    one("smsp__warps_eligible.avg.per_cycle_active", Count, "eligible_warps"),
    one("smsp__thread_inst_executed_per_inst_executed.ratio", Count, "active_threads"),
    one("smsp__sass_average_branch_targets_threads_uniform.pct", Percent, "branch_efficiency_pct"),
    one("sm__inst_executed.avg.per_cycle_active", Count, "ipc"),
    one("smsp__inst_executed.sum", Count, "instructions"),
    one("gpc__cycles_elapsed.max", Count, "cycles"),
    one("gpc__cycles_elapsed.avg.per_second", Hertz, "clock_hz"),
    one("sm__cycles_elapsed.avg.per_second", Hertz, "clock_hz"),
];

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
        name.metric == metric || name.with.is_some_and(|with| with.metric() == metric)
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
        for name in DETAILS.iter().chain(RAW) {
            assert!(known(name.counter).is_some(), "{}", name.counter);
        }
        for (_, counter) in STALL_WORDS {
            assert!(known(counter).is_some(), "{counter}");
        }
        assert!(DETAILS.iter().any(|name| name.metric.ends_with(RATE)));
    }
}
