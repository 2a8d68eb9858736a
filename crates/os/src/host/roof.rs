//! The roof of this host: how fast it can move bytes, and how many operations it can compute.
//!
//! A figure that is too low would make an honest kernel look like a cheat, so each is the best of
//! many readings, and is then raised. The clock of a core is measured; its peak per cycle is
//! derived from the instruction sets that the CPU lists.

use karve_numerics::contract::Contract;
use karve_numerics::roof::{ByteRate, Roof};
use std::collections::BTreeMap;
use std::fs;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Bytes that are copied over and over, from a first-level cache to a last-level one. Memory is
/// left out: its bandwidth depends on what others do.
const AMOUNTS: [usize; 4] = [8 << 10, 64 << 10, 512 << 10, 4 << 20];

/// How long each size is copied.
const COPYING: Duration = Duration::from_millis(10);

/// Only reading may be faster than copying.
const READING_FACTOR: f64 = 1.5;

/// Runs and iterations of the loop that measures the clock, and its dependent instructions.
const CLOCK_RUNS: u32 = 60;
const CLOCK_TURNS: u32 = 40_000;
const CLOCK_STEPS: f64 = 6.0;

/// A core may briefly be faster than measured.
const CLOCK_FACTOR: f64 = 1.25;

/// The smallest size that a declared rate applies to: less may fit in a device's caches.
const DECLARED_BYTES: u64 = 64 << 20;

/// The roof for a campaign: what its `peak` command printed, or, under a contract on this host,
/// what was measured here, whichever is higher.
pub fn roof_of(peak: &BTreeMap<String, f64>, contract: Option<&Contract>) -> Option<Roof> {
    let declared = |name: &str| {
        let value = peak.get(name).map(|giga| giga * 1e9);
        value.filter(|value| value.is_finite() && *value > 0.0)
    };
    let own = contract.filter(|contract| !contract.is_on_device());
    let mut roof = own.map(measured).unwrap_or_default();
    if let Some(flops) = declared("peak_gflops") {
        roof.flops = Some(roof.flops.map_or(flops, |own| own.max(flops)));
    }
    if let (Some(per_s), None) = (declared("peak_gbs"), own) {
        let bytes = DECLARED_BYTES;
        roof.rates = vec![ByteRate { bytes, per_s }];
    }
    (roof != Roof::default()).then_some(roof)
}

fn measured(contract: &Contract) -> Roof {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = (contract.threads.max(1) as usize).min(cores) as f64;
    let narrow = contract.args.iter().any(|arg| arg.dtype.bytes() < 4);
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let per_tick = ops_per_tick(&cpu, narrow);
    Roof {
        flops: per_tick.map(|ops| ops * clock_hz(&cpu) * CLOCK_FACTOR * threads),
        rates: rates(threads),
        ..Roof::default()
    }
}

/// The peak operations of a core per cycle, from the instruction sets that it supports.
fn ops_per_tick(cpu: &str, narrow: bool) -> Option<f64> {
    let line =
        cpu.lines().find(|line| line.starts_with("flags") || line.starts_with("Features"))?;
    let knows = |name: &str| line.split_whitespace().any(|word| word == name);
    // Two multiply-adds and two additions per cycle, for as many numbers as a register holds.
    let lanes = if knows("avx512f") || knows("sve") {
        16.0
    } else if knows("avx") {
        8.0
    } else if knows("sse2") || knows("asimd") {
        // Some cores have four of the narrow units.
        8.0
    } else {
        return None;
    };
    let of_f32 = 6.0 * lanes;
    if knows("sme") || (narrow && knows("amx_tile")) {
        return Some(4_096.0);
    }
    Some(if narrow { 8.0 * of_f32 } else { of_f32 })
}

/// The clock of a core: measured, or as reported by the host, whichever is higher.
fn clock_hz(cpu: &str) -> f64 {
    let mut best = 0.0_f64;
    for _ in 0..CLOCK_RUNS {
        let mut x = black_box(0x9e37_79b9_7f4a_7c15_u64);
        let start = Instant::now();
        for _ in 0..CLOCK_TURNS {
            // Each step depends on the previous one and takes one cycle.
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
        }
        black_box(x);
        let seconds = start.elapsed().as_secs_f64().max(1e-9);
        best = best.max(f64::from(CLOCK_TURNS) * CLOCK_STEPS / seconds);
    }
    let of_line = |line: &str| {
        let (name, value) = line.split_once(':')?;
        let mhz = name.trim() == "cpu MHz";
        mhz.then(|| value.trim().parse::<f64>().ok()).flatten()
    };
    let said = cpu.lines().filter_map(of_line).fold(0.0, f64::max) * 1e6;
    let most = fs::read_to_string("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq");
    let most = most.ok().and_then(|text| text.trim().parse::<f64>().ok());
    best.max(said).max(most.unwrap_or(0.0) * 1e3)
}

/// How fast bytes are copied, for each size, with this many threads.
fn rates(threads: f64) -> Vec<ByteRate> {
    let most = AMOUNTS.iter().copied().max().unwrap_or(0);
    let (from, mut to) = (vec![1_u8; most / 2], vec![0_u8; most / 2]);
    let mut rates: Vec<ByteRate> = Vec::new();
    for amount in AMOUNTS {
        let half = amount / 2;
        let turns = (1 << 20) / amount + 1;
        let (start, mut best) = (Instant::now(), 0.0_f64);
        while start.elapsed() < COPYING {
            let run = Instant::now();
            for _ in 0..turns {
                to[..half].copy_from_slice(black_box(&from[..half]));
                black_box(&mut to);
            }
            let seconds = run.elapsed().as_secs_f64().max(1e-9);
            best = best.max((amount * turns) as f64 / seconds);
        }
        let per_s = best * READING_FACTOR * threads;
        // The smallest size gives the peak for any smaller number of bytes.
        let bytes = if rates.is_empty() { 0 } else { amount as u64 };
        rates.push(ByteRate { bytes, per_s });
    }
    // More bytes are never faster; if they seemed to be, the smaller size was disturbed.
    for index in (1..rates.len()).rev() {
        rates[index - 1].per_s = rates[index - 1].per_s.max(rates[index].per_s);
    }
    rates
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_tick_can_do_is_told_by_the_names_of_instructions() {
        let of = |text: &str, narrow| ops_per_tick(text, narrow);
        assert_eq!(of("flags\t\t: fpu sse2 avx avx512f", false), Some(96.0));
        assert_eq!(of("flags : sse2 avx", false), Some(48.0));
        assert_eq!(of("flags : sse2 avx", true), Some(384.0));
        assert_eq!(of("flags : sse2 avx512f amx_tile", true), Some(4_096.0));
        assert_eq!(of("flags : sse2 avx512f amx_tile", false), Some(96.0));
        assert_eq!(of("Features : fp asimd", false), Some(48.0));
        assert_eq!(of("isa : rv64gc", false), None);
        assert_eq!(of("", false), None);
    }

    #[test]
    fn a_declared_peak_is_a_roof_without_a_contract() {
        let peak = |name: &str| BTreeMap::from([(name.to_owned(), 100.0)]);
        let roof = roof_of(&peak("peak_gflops"), None).expect("a roof");
        assert_eq!(roof.flops, Some(1e11));
        assert!(roof.rates.is_empty());
        let roof = roof_of(&peak("peak_gbs"), None).expect("a roof");
        assert_eq!(roof.rates[0].per_s, 1e11);
        assert_eq!(roof_of(&BTreeMap::new(), None), None);
        assert_eq!(roof_of(&peak("peak_flips"), None), None);
    }

    #[test]
    fn this_host_moves_few_bytes_at_least_as_fast_as_many() {
        let rates = rates(1.0);
        assert_eq!(rates[0].bytes, 0);
        assert!(rates.windows(2).all(|two| two[0].per_s >= two[1].per_s));
        assert!(rates.iter().all(|rate| rate.per_s > 1e8));
    }
}
