//! The counters that karve knows by name. Every profiler's own names are translated into these, so
//! that a rule or a trigger holds for all of them.

/// Whether more of it is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CounterPreference {
    /// More is better.
    Higher,
    /// Less is better.
    Lower,
    /// It describes the kernel, not how good it is.
    Neither,
}

/// A counter and its meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownCounter {
    /// Its name, as triggers write it.
    pub name: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// Which way is good.
    pub better: CounterPreference,
    /// What it is.
    pub meaning: &'static str,
}

/// Counters with this prefix give the reasons for stalls, in percent of all stalls.
pub const STALL: &str = "stall.";

/// The counter of that name.
pub fn known(name: &str) -> Option<KnownCounter> {
    if let Some(reason) = name.strip_prefix(STALL) {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        return (!reason.is_empty() && reason.chars().all(plain)).then_some(KnownCounter {
            name: "stall.*",
            unit: "%",
            better: CounterPreference::Lower,
            meaning: "share of thread stalls with this reason",
        });
    }
    COUNTERS.iter().find(|counter| counter.name == name).copied()
}

/// Common names of counters that differ from their own.
const SPOKEN: &[(&str, &str)] = &[
    ("instructions per cycle", "ipc"),
    ("instructions per clock", "ipc"),
    ("instructions in a cycle", "ipc"),
    ("retired instructions", "instructions"),
    ("bank conflicts", "bank_conflict_pct"),
    ("branch misses", "branch_miss_pct"),
    ("branch mispredictions", "branch_miss_pct"),
    ("tlb misses", "tlb_miss_pct"),
    ("l1 misses", "l1_miss_pct"),
    ("llc misses", "llc_miss_pct"),
    ("l1 hits", "l1_hit_pct"),
    ("l2 hits", "l2_hit_pct"),
    ("llc hits", "llc_hit_pct"),
    ("occupancy", "occupancy_pct"),
    ("operations per second", "flops_per_s"),
    ("arithmetic intensity", "intensity"),
];

/// Words that join the two quantities of a rate.
const PER: &str = "per";

/// The counter that some lower-case words name: by its name, by that in words (`dram bytes`,
/// `l2 hit rate`), or by a common name. The longest match wins. Words next to `per` are part of a
/// rate, which is a different quantity than its parts.
pub fn named_in<'a>(words: &[&'a str]) -> Option<&'a str> {
    let is_part = |from: usize, to: usize| {
        let before = from.checked_sub(1).and_then(|at| words.get(at));
        [before, words.get(to)].contains(&Some(&PER))
    };
    let mut found: Option<(usize, &'a str)> = None;
    for from in 0..words.len() {
        for to in from + 1..=words.len().min(from + PHRASE_MAX) {
            let longer = found.is_none_or(|(length, _)| to - from > length);
            if longer
                && !is_part(from, to)
                && let Some(name) = called(&words[from..to])
            {
                found = Some((to - from, name));
            }
        }
    }
    found.map(|(_, name)| name)
}

/// Maximum number of words in a counter's name.
const PHRASE_MAX: usize = 5;

/// The counter that all of these words name.
fn called<'a>(words: &[&'a str]) -> Option<&'a str> {
    if let [word] = words
        && known(word).is_some()
    {
        return Some(word);
    }
    let phrase = words.join(" ");
    if let Some((_, name)) = SPOKEN.iter().find(|(spoken, _)| *spoken == phrase) {
        return Some(name);
    }
    // A name of one word must match exactly.
    let joined = words.join("_");
    let share = joined.strip_suffix("_rate").or(joined.strip_suffix("_ratio"));
    let share = share.map(|share| format!("{share}_pct"));
    let is_it =
        |counter: &&KnownCounter| counter.name == joined || Some(counter.name) == share.as_deref();
    COUNTERS.iter().find(is_it).map(|counter| counter.name)
}

/// Shares that may exceed 100%: of a measured ceiling, and of several processors.
const ABOVE_WHOLE: [&str; 2] = ["ceiling_pct", "cpu_busy_pct"];
/// Tolerance above 100% for shares whose parts were read at different times, in percent.
const PERCENT_MAX: f64 = 105.0;

/// Whether a counter can have a value: it is a number, and a share is at most 100%.
pub fn can_be(name: &str, value: f64) -> bool {
    let is_share = known(name).is_some_and(|known| known.unit == "%");
    let bounded = is_share && !ABOVE_WHOLE.contains(&name);
    value.is_finite() && (!bounded || (0.0..=PERCENT_MAX).contains(&value))
}

const fn row(
    name: &'static str,
    unit: &'static str,
    better: CounterPreference,
    meaning: &'static str,
) -> KnownCounter {
    KnownCounter { name, unit, better, meaning }
}

use CounterPreference::{Higher, Lower, Neither};

/// All counters except stall reasons, in the order of the tables that show them.
pub const COUNTERS: &[KnownCounter] = &[
    row("duration_us", "us", Lower, "time of the kernel"),
    row("launches", "", Neither, "how often the kernel was launched"),
    row("share_pct", "%", Neither, "share of the whole time that is spent in this kernel"),
    // How much of the device's capacity is used.
    row("compute_pct", "%", Higher, "use of the busiest compute unit"),
    row("memory_pct", "%", Higher, "use of the busiest level of memory"),
    row("dram_pct", "%", Higher, "use of the bandwidth of main or device memory"),
    row("l1_pct", "%", Neither, "use of the first-level cache"),
    row("l2_pct", "%", Neither, "use of the second-level cache"),
    row("shared_pct", "%", Neither, "use of the memory that a block shares"),
    row("tensor_pct", "%", Higher, "use of the matrix units"),
    row("fma_pct", "%", Higher, "use of the multiply-add units"),
    row("issue_pct", "%", Higher, "issue slots that are used"),
    row("ceiling_pct", "%", Higher, "share of the roofline's ceiling that is reached"),
    row("intensity", "flop/byte", Neither, "operations per byte that must be moved"),
    row("ridge", "flop/byte", Neither, "intensity at which the compute and bandwidth limits meet"),
    row("flops_per_s", "flop/s", Higher, "operations per second"),
    row("dram_bytes_per_s", "byte/s", Neither, "bytes per second from and to memory"),
    row("dram_bytes", "byte", Lower, "bytes from and to memory"),
    // Where accesses are served.
    row("l1_hit_pct", "%", Higher, "accesses that the first-level cache serves"),
    row("l2_hit_pct", "%", Higher, "accesses that the second-level cache serves"),
    row("llc_hit_pct", "%", Higher, "accesses that the last-level cache serves"),
    row("sectors_per_request", "", Lower, "sectors that one request of a warp touches"),
    row("wasted_sectors_pct", "%", Lower, "sectors that were moved and not needed"),
    row("bank_conflict_pct", "%", Lower, "accesses to shared memory that waited for a bank"),
    row("spill_bytes", "byte", Lower, "bytes of registers that were spilled to memory"),
    row("spill_requests", "", Lower, "accesses to registers that were spilled to memory"),
    row("stack_bytes", "byte", Lower, "bytes of stack that a thread uses"),
    // How the device is filled.
    row("occupancy_pct", "%", Neither, "warps that were active, of those that fit"),
    row("occupancy_limit_pct", "%", Neither, "warps that could be active at most"),
    row("registers", "", Lower, "registers of a thread"),
    row("shared_bytes", "byte", Neither, "shared memory of a block"),
    row("waves", "", Neither, "how many times the blocks fill the device"),
    row("blocks", "", Neither, "blocks of the launch"),
    row("threads_per_block", "", Neither, "threads of a block"),
    row("units", "", Neither, "multiprocessors, compute units or cores"),
    row("eligible_warps", "", Higher, "warps that could issue, per scheduler"),
    row("active_threads", "", Higher, "threads of a warp that are active"),
    row(
        "branch_efficiency_pct",
        "%",
        Higher,
        "branches that all threads of a warp take the same way",
    ),
    // CPU counters.
    row("ipc", "inst/cycle", Higher, "instructions per cycle"),
    row("instructions", "inst", Lower, "instructions"),
    row("inst_share_pct", "%", Neither, "share of all instructions that this kernel executes"),
    row("cycles", "cycle", Lower, "cycles"),
    row("clock_hz", "hz", Neither, "clock of the compute units"),
    row("cpu_busy_pct", "%", Neither, "CPU time over wall time"),
    row("vector_pct", "%", Higher, "floating-point operations that are in vectors"),
    row("frontend_bound_pct", "%", Lower, "slots lost to fetching instructions"),
    row("backend_bound_pct", "%", Lower, "slots lost to waiting for units or memory"),
    row("bad_speculation_pct", "%", Lower, "slots lost to mispredictions"),
    row("l1_miss_pct", "%", Lower, "loads that the first-level cache does not serve"),
    row("llc_miss_pct", "%", Lower, "last-level accesses that go to memory"),
    row("tlb_miss_pct", "%", Lower, "accesses whose page is not in the TLB"),
    row("branch_miss_pct", "%", Lower, "mispredicted branches"),
    row("page_faults", "", Lower, "page faults"),
    row("context_switches", "", Lower, "context switches"),
    row("migrations", "", Lower, "moves from one CPU to another"),
    // Timeline counters.
    row("gpu_busy_pct", "%", Higher, "time in which the device worked"),
    row("gpu_idle_pct", "%", Lower, "time in which the device waited for the host"),
    row("launch_api_pct", "%", Lower, "time of the host that is spent launching"),
    row("communication_pct", "%", Lower, "time of the device that is spent communicating"),
    row("copy_pct", "%", Lower, "time of the device that is spent copying from and to the host"),
    row("sync_pct", "%", Lower, "time of the host that is spent waiting for the device"),
    row("small_kernels_pct", "%", Lower, "launches that take less than 10 us"),
    row("data_pct", "%", Lower, "time of an iteration that is spent loading data"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_call_counters_leads_to_them() {
        for (spoken, name) in SPOKEN {
            assert!(known(name).is_some(), "{name}");
            assert!(spoken.split(' ').count() <= PHRASE_MAX, "{spoken}");
            let words: Vec<&str> = spoken.split(' ').collect();
            assert_eq!(named_in(&words), Some(*name));
        }
        for counter in COUNTERS {
            assert_eq!(named_in(&[counter.name]), Some(counter.name));
            let words: Vec<&str> = counter.name.split('_').collect();
            assert!(words.len() <= PHRASE_MAX, "{}", counter.name);
            assert_eq!(named_in(&words), Some(counter.name));
        }
    }

    #[test]
    fn every_counter_has_one_name_that_an_expression_can_hold() {
        for (index, counter) in COUNTERS.iter().enumerate() {
            let again = COUNTERS[index + 1..].iter().any(|c| c.name == counter.name);
            assert!(!again, "{} appears twice", counter.name);
            let parsed = karve_numerics::expr::parse_expr(counter.name);
            assert_eq!(parsed.ok(), Some(karve_numerics::expr::Expr::Name(counter.name.into())));
        }
        assert!(known("stall.long_scoreboard").is_some());
        assert!(known("stall.").is_none() && known("stall.A b").is_none());
        assert!(known("no_such_counter").is_none());
    }
}
