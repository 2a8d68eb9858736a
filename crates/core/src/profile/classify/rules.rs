//! The classes and the healthy ranges of each rule set, as data.

use super::{Bottleneck, DiagnosisRuleSet};
use Bottleneck::{Balanced, Communication, Compute, Latency, Launch, Memory, Occupancy, Sync};

/// A class and when it holds.
#[derive(Debug)]
pub(super) struct ClassRule {
    pub(super) by: DiagnosisRuleSet,
    pub(super) is: Bottleneck,
    pub(super) when: &'static str,
    /// One sentence; `{counter}` stands for its value.
    pub(super) text: &'static str,
}

/// A counter that should be in a range.
#[derive(Debug)]
pub(super) struct HealthyRange {
    pub(super) by: DiagnosisRuleSet,
    pub(super) counter: &'static str,
    pub(super) want: &'static str,
    pub(super) hint: &'static str,
}

const fn class(
    by: DiagnosisRuleSet,
    is: Bottleneck,
    when: &'static str,
    says: &'static str,
) -> ClassRule {
    ClassRule { by, is, when, text: says }
}

const fn range(
    by: DiagnosisRuleSet,
    counter: &'static str,
    want: &'static str,
    hint: &'static str,
) -> HealthyRange {
    HealthyRange { by, counter, want, hint }
}

const MEMORY_TEXT: &str =
    "The busiest level of memory, {level}, is at {memory_pct}%, compute at {compute_pct}%.";
const COMPUTE_TEXT: &str = "Compute is at {compute_pct}%, memory at {memory_pct}%.";
const LATENCY_TEXT: &str =
    "Neither compute ({compute_pct}%) nor memory ({memory_pct}%) is busy: threads wait.";
const LAUNCH_TEXT: &str = "The kernel takes {duration_us} us, so launching it costs as much.";
const COMMUNICATION_TEXT: &str =
    "{communication_pct}% of the device's time is spent on communication.";
const IDLE_TEXT: &str = "The device waits for the host {gpu_idle_pct}% of the time.";

/// All classes, by set; the first that holds decides.
pub(super) const CLASSES: &[ClassRule] = &[
    class(DiagnosisRuleSet::Karve, Communication, "communication_pct > 20", COMMUNICATION_TEXT),
    class(
        DiagnosisRuleSet::Karve,
        Launch,
        "launch_api_pct > 10 && small_kernels_pct > 50",
        "{small_kernels_pct}% of the launches take less than 10 us, and launching takes \
         {launch_api_pct}% of the host's time.",
    ),
    class(DiagnosisRuleSet::Karve, Sync, "gpu_idle_pct > 30", IDLE_TEXT),
    class(DiagnosisRuleSet::Karve, Launch, "duration_us < 10 && blocks > 0", LAUNCH_TEXT),
    class(
        DiagnosisRuleSet::Karve,
        Memory,
        "memory_pct >= 60 && memory_pct >= compute_pct",
        MEMORY_TEXT,
    ),
    class(DiagnosisRuleSet::Karve, Compute, "compute_pct >= 60 || tensor_pct >= 60", COMPUTE_TEXT),
    class(
        DiagnosisRuleSet::Karve,
        Occupancy,
        "compute_pct < 60 && memory_pct < 60 && (occupancy_pct < 25 || waves < 1)",
        "Neither compute ({compute_pct}%) nor memory ({memory_pct}%) is busy, and too few warps \
         are active ({occupancy_pct}% of what fits).",
    ),
    class(DiagnosisRuleSet::Karve, Latency, "compute_pct < 40 && memory_pct < 40", LATENCY_TEXT),
    class(
        DiagnosisRuleSet::Karve,
        Balanced,
        "compute_pct < 60 && memory_pct < 60",
        "Compute ({compute_pct}%) and memory ({memory_pct}%) are both partly used.",
    ),
    // On a CPU the roofline shows what could limit the kernel, and the counters show why it is not
    // there yet.
    class(
        DiagnosisRuleSet::Karve,
        Memory,
        "intensity < ridge && ceiling_pct >= 60",
        "At {intensity} operations per byte the bandwidth is the limit (the ridge is at {ridge}), \
         and {ceiling_pct}% of it is reached.",
    ),
    class(
        DiagnosisRuleSet::Karve,
        Compute,
        "intensity >= ridge && ceiling_pct >= 60",
        "At {intensity} operations per byte compute is the limit (the ridge is at {ridge}), and \
         {ceiling_pct}% of it is reached.",
    ),
    class(
        DiagnosisRuleSet::Karve,
        Memory,
        "l1_miss_pct > 10 || llc_miss_pct > 20 && l1_miss_pct > 2",
        "{l1_miss_pct}% of the loads miss the first-level cache: the kernel waits for the \
         levels behind it.",
    ),
    // Below the ridge, bandwidth would limit a kernel that uses it. A kernel whose loads hit the
    // nearest cache does not.
    class(
        DiagnosisRuleSet::Karve,
        Compute,
        "l1_miss_pct < 2 && (vector_pct < 50 || ipc >= 2)",
        "Nearly all loads hit the first-level cache ({l1_miss_pct}% miss): the units are busy with \
         instructions that each do little work.",
    ),
    class(
        DiagnosisRuleSet::Karve,
        Compute,
        "l1_miss_pct < 2",
        "Nearly all loads hit the first-level cache ({l1_miss_pct}% miss), so the \
         instructions themselves take the time.",
    ),
    class(
        DiagnosisRuleSet::Karve,
        Memory,
        "intensity < ridge && ceiling_pct >= 30",
        "At {intensity} operations per byte the bandwidth is the ceiling (the ridge is at \
         {ridge}), and {ceiling_pct}% of it is reached.",
    ),
    class(
        DiagnosisRuleSet::Karve,
        Compute,
        "vector_pct < 50 || ipc >= 2",
        "The units are busy with instructions that each do little work.",
    ),
    class(
        DiagnosisRuleSet::Karve,
        Latency,
        "ceiling_pct < 60",
        "Only {ceiling_pct}% of the ceiling is reached and no unit is known to be busy: operations \
         wait for each other.",
    ),
    class(
        DiagnosisRuleSet::Karve,
        Latency,
        "ipc < 1",
        "Only {ipc} instructions retire per cycle and no unit is known to be busy: operations wait \
         for each other.",
    ),
    // hyper-mla: the matrix units from 60%, memory from 70%. One of the two is enough if the other
    // was not measured.
    class(
        DiagnosisRuleSet::HyperMla,
        Balanced,
        "tensor_pct > 60 && dram_pct > 70",
        "The matrix units ({tensor_pct}%) and device memory ({dram_pct}%) are both busy.",
    ),
    class(
        DiagnosisRuleSet::HyperMla,
        Memory,
        "dram_pct > 70",
        "Device memory is at {dram_pct}%, the matrix units at {tensor_pct}%.",
    ),
    class(
        DiagnosisRuleSet::HyperMla,
        Compute,
        "tensor_pct > 60",
        "The matrix units are at {tensor_pct}%, device memory at {dram_pct}%.",
    ),
    class(
        DiagnosisRuleSet::HyperMla,
        Latency,
        "tensor_pct <= 60 && dram_pct <= 70",
        "Neither the matrix units ({tensor_pct}%) nor device memory ({dram_pct}%) are busy.",
    ),
    // trtllm: more than 60% of one and less than 40% of the other.
    class(DiagnosisRuleSet::Trtllm, Communication, "communication_pct > 20", COMMUNICATION_TEXT),
    class(DiagnosisRuleSet::Trtllm, Sync, "gpu_idle_pct > 30", IDLE_TEXT),
    class(
        DiagnosisRuleSet::Trtllm,
        Launch,
        "launch_api_pct > 10",
        "Launching takes {launch_api_pct}% of the host's time.",
    ),
    class(DiagnosisRuleSet::Trtllm, Launch, "duration_us < 10", LAUNCH_TEXT),
    class(DiagnosisRuleSet::Trtllm, Compute, "compute_pct > 60 && memory_pct < 40", COMPUTE_TEXT),
    class(DiagnosisRuleSet::Trtllm, Memory, "compute_pct < 40 && memory_pct > 60", MEMORY_TEXT),
    class(DiagnosisRuleSet::Trtllm, Latency, "compute_pct < 40 && memory_pct < 40", LATENCY_TEXT),
    class(
        DiagnosisRuleSet::Trtllm,
        Balanced,
        "compute_pct > 60 && memory_pct > 60",
        "Compute ({compute_pct}%) and memory ({memory_pct}%) are both near their limits.",
    ),
    class(
        DiagnosisRuleSet::Trtllm,
        Balanced,
        "compute_pct >= 0 && memory_pct >= 0",
        "Compute ({compute_pct}%) and memory ({memory_pct}%) are both partly used.",
    ),
    // primus: what is too low is checked first.
    class(
        DiagnosisRuleSet::Primus,
        Launch,
        "gpu_busy_pct < 30",
        "The device works only {gpu_busy_pct}% of the time.",
    ),
    class(
        DiagnosisRuleSet::Primus,
        Occupancy,
        "spill_bytes > 0",
        "Registers are spilled to memory: {spill_bytes} bytes.",
    ),
    class(DiagnosisRuleSet::Primus, Memory, "dram_pct > 60 && tensor_pct < 40", MEMORY_TEXT),
    class(
        DiagnosisRuleSet::Primus,
        Compute,
        "tensor_pct > 50",
        "The matrix units are at {tensor_pct}%.",
    ),
    class(
        DiagnosisRuleSet::Primus,
        Occupancy,
        "occupancy_pct < 25",
        "Only {occupancy_pct}% of the waves that fit are active.",
    ),
    class(
        DiagnosisRuleSet::Primus,
        Latency,
        "tensor_pct < 40 && dram_pct < 30",
        "Neither the matrix units ({tensor_pct}%) nor device memory ({dram_pct}%) are busy.",
    ),
    class(
        DiagnosisRuleSet::Primus,
        Balanced,
        "tensor_pct >= 0 && dram_pct >= 0",
        "The matrix units ({tensor_pct}%) and device memory ({dram_pct}%) are partly used.",
    ),
    // tilegym: by utilization from 80%, and by intensity if that is all there is.
    class(DiagnosisRuleSet::Tilegym, Memory, "memory_pct > 80 && compute_pct < 50", MEMORY_TEXT),
    class(DiagnosisRuleSet::Tilegym, Compute, "compute_pct > 80", COMPUTE_TEXT),
    class(
        DiagnosisRuleSet::Tilegym,
        Latency,
        "occupancy_pct < 25",
        "Only {occupancy_pct}% of the warps that fit are active.",
    ),
    class(
        DiagnosisRuleSet::Tilegym,
        Memory,
        "intensity < 10",
        "The kernel does {intensity} operations per byte, fewer than 10.",
    ),
    class(
        DiagnosisRuleSet::Tilegym,
        Compute,
        "intensity > 50",
        "The kernel does {intensity} operations per byte, more than 50.",
    ),
    class(
        DiagnosisRuleSet::Tilegym,
        Balanced,
        "intensity >= 10 || memory_pct >= 0",
        "No threshold of the rules is exceeded.",
    ),
];

/// All healthy ranges.
pub(super) const HEALTHY: &[HealthyRange] = &[
    range(
        DiagnosisRuleSet::Karve,
        "spill_bytes",
        "spill_bytes == 0",
        "use fewer registers per thread",
    ),
    range(DiagnosisRuleSet::Karve, "waves", "waves >= 1", "launch more or smaller blocks"),
    range(
        DiagnosisRuleSet::Karve,
        "wasted_sectors_pct",
        "wasted_sectors_pct < 20",
        "let neighboring threads read neighboring addresses",
    ),
    range(
        DiagnosisRuleSet::Karve,
        "bank_conflict_pct",
        "bank_conflict_pct < 5",
        "pad or swizzle shared memory",
    ),
    range(DiagnosisRuleSet::Karve, "l1_miss_pct", "l1_miss_pct < 5", "block loops for the cache"),
    range(
        DiagnosisRuleSet::Karve,
        "branch_miss_pct",
        "branch_miss_pct < 5",
        "make branches predictable",
    ),
    range(DiagnosisRuleSet::Karve, "tlb_miss_pct", "tlb_miss_pct < 1", "use huge pages"),
    range(
        DiagnosisRuleSet::HyperMla,
        "tensor_pct",
        "tensor_pct > 60",
        "feed the matrix units: larger tiles, deeper pipelines",
    ),
    range(DiagnosisRuleSet::HyperMla, "dram_pct", "dram_pct > 70", "more bytes in flight"),
    range(
        DiagnosisRuleSet::HyperMla,
        "occupancy_pct",
        "occupancy_pct > 25",
        "fewer registers or less shared memory per block",
    ),
    range(DiagnosisRuleSet::HyperMla, "l2_hit_pct", "l2_hit_pct > 80", "order blocks for locality"),
    range(DiagnosisRuleSet::HyperMla, "spill_bytes", "spill_bytes == 0", "use fewer registers"),
    range(DiagnosisRuleSet::HyperMla, "waves", "waves > 1", "launch more blocks"),
    range(
        DiagnosisRuleSet::Trtllm,
        "compute_pct",
        "compute_pct > 60",
        "the kernel is far from peak",
    ),
    range(DiagnosisRuleSet::Trtllm, "memory_pct", "memory_pct > 60", "the kernel is far from peak"),
    range(
        DiagnosisRuleSet::Trtllm,
        "gpu_busy_pct",
        "gpu_busy_pct > 80",
        "capture launches in a graph, or overlap the host's work",
    ),
    range(
        DiagnosisRuleSet::Primus,
        "tensor_pct",
        "tensor_pct > 40",
        "below 25% the matrix units starve: pipeline loads",
    ),
    range(
        DiagnosisRuleSet::Primus,
        "dram_pct",
        "dram_pct > 60",
        "below 30% too few bytes are in flight",
    ),
    range(
        DiagnosisRuleSet::Primus,
        "occupancy_pct",
        "occupancy_pct > 50",
        "below 25% registers or shared memory limit the waves",
    ),
    range(
        DiagnosisRuleSet::Primus,
        "bank_conflict_pct",
        "bank_conflict_pct < 5",
        "above 20% the layout in shared memory is wrong",
    ),
    range(DiagnosisRuleSet::Primus, "registers", "registers <= 128", "128 more cost a wave"),
    range(DiagnosisRuleSet::Primus, "spill_bytes", "spill_bytes == 0", "shrink the tile"),
    range(
        DiagnosisRuleSet::Tilegym,
        "occupancy_pct",
        "occupancy_pct >= 25",
        "try the occupancy hint, 1 to 32",
    ),
    range(DiagnosisRuleSet::Tilegym, "memory_pct", "memory_pct > 80", "larger or fewer transfers"),
];
