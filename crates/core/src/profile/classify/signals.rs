//! Signs of a cause in the counters, with their estimated cost and what to do about them.

use super::Bottleneck;

/// A sign of a cause.
#[derive(Debug)]
pub(super) struct CauseSignal {
    /// When it is there.
    pub(super) when: &'static str,
    /// How much of the time it may cost, in percent, over the counters.
    pub(super) gain: &'static str,
    /// One sentence; `{counter}` stands for its value.
    pub(super) text: &'static str,
    /// What to do.
    pub(super) advice: &'static str,
    /// The bottlenecks that it explains.
    of: &'static [Bottleneck],
}

impl CauseSignal {
    /// Whether it explains a bottleneck.
    pub(super) fn explains(&self, bottleneck: Bottleneck) -> bool {
        self.of.contains(&bottleneck)
    }
}

use Bottleneck::{Balanced, Communication, Compute, Latency, Launch, Memory, Occupancy, Sync};

const ANY: &[Bottleneck] = &[Memory, Compute, Latency, Occupancy, Balanced];

/// All signals.
pub(super) const SIGNALS: &[CauseSignal] = &[
    CauseSignal {
        when: "wasted_sectors_pct > 20",
        gain: "wasted_sectors_pct",
        text: "{wasted_sectors_pct}% of the sectors that were moved were not needed: neighboring \
               threads do not read neighboring addresses.",
        advice: "coalesce global accesses",
        of: &[Memory, Latency, Balanced],
    },
    CauseSignal {
        // The widest loads of neighboring threads touch 16.
        when: "sectors_per_request > 16 && memory_pct > 40",
        gain: "100 * (1 - 16 / sectors_per_request)",
        text: "One request touches {sectors_per_request} sectors where at most 16 would do.",
        advice: "coalesce or vectorize global accesses",
        of: &[Memory, Latency, Balanced],
    },
    CauseSignal {
        when: "dram_pct < 10 && l1_pct > 80",
        gain: "0.5 * (l1_pct - 40)",
        text: "Operands are fetched again and again from the first-level cache or shared memory \
               ({l1_pct}% used) instead of staying in registers, while device memory is idle \
               ({dram_pct}%).",
        advice: "keep a block of the result in registers (register tiling)",
        of: &[Memory, Compute],
    },
    CauseSignal {
        when: "tensor_pct < 1 && fma_pct > 20 && compute_pct > 50",
        gain: "50",
        text: "The matrix units are idle while multiply-adds run on the ordinary units.",
        advice: "use the matrix units, where the type and its tolerance allow them",
        of: &[Compute, Balanced],
    },
    CauseSignal {
        when: "dram_pct > 80",
        gain: "100 - dram_pct",
        text: "Device memory is at {dram_pct}% of its bandwidth: only moving fewer bytes helps.",
        advice: "move fewer bytes: fuse, use a narrower type, or keep data on chip",
        of: &[Memory],
    },
    CauseSignal {
        when: "l2_hit_pct < 50 && dram_pct > 40 && dram_pct < 80",
        gain: "0.3 * (100 - l2_hit_pct)",
        text: "Only {l2_hit_pct}% of the accesses are served by the second-level cache.",
        advice: "order blocks so that neighbors share data in the second-level cache",
        of: &[Memory, Balanced],
    },
    CauseSignal {
        when: "spill_bytes > 0",
        gain: "15",
        text: "Registers are spilled to memory ({spill_bytes} bytes).",
        advice: "use fewer registers: smaller tiles, less unrolling",
        of: ANY,
    },
    CauseSignal {
        when: "spill_requests > 0",
        gain: "15",
        text: "Registers are spilled to memory ({spill_requests} requests).",
        advice: "use fewer registers: smaller tiles, less unrolling",
        of: ANY,
    },
    CauseSignal {
        when: "bank_conflict_pct > 5",
        gain: "0.7 * bank_conflict_pct",
        text: "{bank_conflict_pct}% of the accesses to shared memory wait for a bank.",
        advice: "pad or swizzle the layout in shared memory",
        of: ANY,
    },
    CauseSignal {
        when: "occupancy_pct < 25 && compute_pct < 60 && memory_pct < 60",
        gain: "0.5 * (60 - max(compute_pct, memory_pct))",
        text: "Only {occupancy_pct}% of the warps that fit are active, too few to hide latency.",
        advice: "raise occupancy: fewer registers, less shared memory, or a deeper pipeline",
        of: &[Latency, Occupancy, Balanced],
    },
    CauseSignal {
        when: "waves < 1",
        gain: "100 * (1 - waves)",
        text: "The launch fills the device only {waves} times, so units stay idle.",
        advice: "launch more blocks: split the work along a further dimension",
        of: ANY,
    },
    CauseSignal {
        when: "waves > 1 && waves < 3 && compute_pct < 80 && memory_pct < 80",
        gain: "8",
        text: "The device is filled {waves} times, so the last wave leaves units idle.",
        advice: "make the number of blocks fit the device, or use a persistent kernel",
        of: ANY,
    },
    CauseSignal {
        when: "branch_efficiency_pct > 0 && branch_efficiency_pct < 80",
        gain: "0.5 * (100 - branch_efficiency_pct)",
        text: "Only {branch_efficiency_pct}% of the branches are uniform within a warp.",
        advice: "remove divergence: sort the work, or compute both sides",
        of: ANY,
    },
    CauseSignal {
        when: "eligible_warps < 1 && compute_pct < 60 && dram_pct < 60",
        gain: "0.4 * (60 - max(compute_pct, dram_pct))",
        text: "Schedulers find {eligible_warps} warps that can issue.",
        advice: "more independent work per thread, and earlier loads",
        of: &[Latency, Occupancy, Balanced],
    },
    CauseSignal {
        when: "duration_us < 10 && blocks > 0",
        gain: "30",
        text: "A launch costs a few microseconds, and the kernel takes {duration_us}.",
        advice: "fuse small kernels or capture them in a graph",
        of: &[Launch, Latency, Occupancy],
    },
    CauseSignal {
        when: "small_kernels_pct > 50 && gpu_idle_pct > 10",
        gain: "min(30, gpu_idle_pct)",
        text: "{small_kernels_pct}% of the launches take less than 10 us.",
        advice: "fuse small kernels or capture them in a graph",
        of: &[Launch, Sync],
    },
    CauseSignal {
        when: "copy_pct > 20",
        gain: "0.7 * copy_pct",
        text: "{copy_pct}% of the device's time is spent on copies from and to the host.",
        advice: "keep data on the device, or overlap copies with compute",
        of: &[Sync, Communication, Memory],
    },
    CauseSignal {
        when: "communication_pct > 20",
        gain: "0.5 * communication_pct",
        text: "Communication is not hidden behind compute.",
        advice: "overlap communication with compute, or send less",
        of: &[Communication],
    },
    CauseSignal {
        when: "sync_pct > 30",
        gain: "0.5 * sync_pct",
        text: "The host waits for the device {sync_pct}% of its time.",
        advice: "remove synchronizing calls from the loop",
        of: &[Sync, Launch],
    },
    // On a CPU.
    CauseSignal {
        when: "vector_pct < 50",
        gain: "0.75 * (100 - vector_pct)",
        text: "Only {vector_pct}% of the operations are in vectors.",
        advice: "let the inner loop be vectorized",
        of: &[Compute, Latency, Memory],
    },
    CauseSignal {
        when: "l1_miss_pct > 5",
        gain: "min(60, 3 * l1_miss_pct)",
        text: "{l1_miss_pct}% of the loads miss the first-level cache.",
        advice: "block the loops for the cache, or change their order",
        of: &[Memory, Latency],
    },
    CauseSignal {
        when: "llc_miss_pct > 20 && l1_miss_pct > 2",
        gain: "min(50, llc_miss_pct)",
        text: "{llc_miss_pct}% of what reaches the last-level cache goes to memory.",
        advice: "use each line of memory more often: tile, pack, or stream",
        of: &[Memory],
    },
    CauseSignal {
        when: "branch_miss_pct > 3",
        gain: "min(40, 3 * branch_miss_pct)",
        text: "{branch_miss_pct}% of the branches are mispredicted.",
        advice: "make branches predictable or remove them",
        of: &[Compute, Latency, Memory],
    },
    CauseSignal {
        when: "tlb_miss_pct > 1",
        gain: "min(30, 5 * tlb_miss_pct)",
        text: "{tlb_miss_pct}% of the accesses miss the TLB.",
        advice: "use huge pages, or touch memory in order",
        of: &[Memory, Latency],
    },
    CauseSignal {
        when: "ceiling_pct < 60 && intensity >= ridge",
        gain: "0.6 * (100 - ceiling_pct)",
        text: "Only {ceiling_pct}% of what the units can do is reached.",
        advice: "more independent multiply-adds in registers: tile, unroll, vectorize",
        of: &[Compute, Latency],
    },
    CauseSignal {
        when: "intensity < ridge && ceiling_pct < 60 && (ceiling_pct >= 30 || l1_miss_pct > 2)",
        gain: "0.6 * (100 - ceiling_pct)",
        text: "Only {ceiling_pct}% of the bandwidth's ceiling is reached.",
        advice: "read memory in order, in wide loads, from several streams",
        of: &[Memory, Latency],
    },
    CauseSignal {
        when: "intensity < ridge && ceiling_pct < 30 && l1_miss_pct < 2",
        gain: "0.6 * (100 - ceiling_pct)",
        text: "Only {ceiling_pct}% of the ceiling is reached although the loads hit.",
        advice: "fewer and wider instructions: vectorize, unroll, or replace costly calls",
        of: &[Compute, Latency],
    },
    CauseSignal {
        when: "page_faults > 1000 && cpu_busy_pct > 0",
        gain: "5",
        text: "There were {page_faults} page faults.",
        advice: "reuse buffers, touch them first, or use huge pages",
        of: &[Memory, Latency, Sync],
    },
    CauseSignal {
        when: "cpu_busy_pct < 80",
        gain: "0.5 * (100 - cpu_busy_pct)",
        text: "The CPU was busy only {cpu_busy_pct}% of the time.",
        advice: "find what the program waits for",
        of: &[Sync, Latency],
    },
];

#[cfg(test)]
mod tests {
    use super::super::super::counters::known;
    use super::super::super::predicate::Predicate;
    use super::super::rules::{CLASSES, HEALTHY};
    use super::*;
    use karve_numerics::expr::parse_expr;

    /// Names between braces.
    fn marks(text: &str) -> Vec<&str> {
        let parts = text.split('{').skip(1);
        parts.filter_map(|part| part.split('}').next()).collect()
    }

    #[test]
    fn every_rule_can_be_read_and_asks_for_known_counters() {
        let check = |text: &str| {
            let predicate = Predicate::parse(text).unwrap_or_else(|e| panic!("{text}: {e}"));
            for name in predicate.names() {
                assert!(known(name).is_some(), "{name} in {text}");
            }
        };
        let words = |text: &str| {
            for name in marks(text) {
                assert!(name == "level" || known(name).is_some(), "{name} in {text}");
            }
        };
        for signal in SIGNALS {
            check(signal.when);
            words(signal.text);
            let gain = parse_expr(signal.gain).unwrap();
            assert!(gain.names().iter().all(|name| known(name).is_some()));
        }
        for class in CLASSES {
            check(class.when);
            words(class.text);
        }
        for range in HEALTHY {
            check(range.want);
            assert!(range.want.starts_with(range.counter));
        }
    }
}
