//! The caches of this host, and how many bytes each is measured with.

use std::fs;

/// Where the kernel lists the caches of the first core.
const CACHES: &str = "/sys/devices/system/cpu/cpu0/cache";
/// The most caches of one core.
const CACHES_MAX: usize = 16;
/// The default if the host does not report its caches: first, second and last level.
const USUAL: [u64; 3] = [32 << 10, 1 << 20, 32 << 20];
/// The fewest and the most bytes to measure memory with.
const MEMORY: (u64, u64) = (128 << 20, 1 << 30);

/// One level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheLevel {
    /// Its name.
    pub name: &'static str,
    /// The most bytes that one core can hold there; none for memory.
    pub holds_one: Option<u64>,
    /// All cores together.
    pub holds_all: Option<u64>,
    /// The working set of one thread.
    pub goes_over_one: u64,
    /// The working set of all threads together.
    pub goes_over_all: u64,
}

/// A cache as reported by the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CpuCache {
    level: u32,
    bytes: u64,
    cores: u64,
}

/// The levels of this host, the nearest first, and memory last.
pub fn levels(cores: usize) -> Vec<CacheLevel> {
    let caches = (0..CACHES_MAX).filter_map(|index| {
        let read = |name: &str| fs::read_to_string(format!("{CACHES}/index{index}/{name}")).ok();
        let kind = read("type")?;
        (kind.trim() != "Instruction").then_some(())?;
        Some(CpuCache {
            level: read("level")?.trim().parse().ok()?,
            bytes: parse_bytes(read("size")?.trim())?,
            cores: parse_cpus(read("shared_cpu_list")?.trim()),
        })
    });
    of_caches(&caches.collect::<Vec<_>>(), cores as u64)
}

fn of_caches(caches: &[CpuCache], cores: u64) -> Vec<CacheLevel> {
    let cores = cores.max(1);
    let of_level = |level: u32| {
        let found = caches.iter().find(|cache| cache.level == level);
        let usual = USUAL.get(level as usize - 1).copied().unwrap_or(1 << 20);
        let shared = if level >= 3 { cores } else { 1 };
        found.copied().unwrap_or(CpuCache { level, bytes: usual, cores: shared })
    };
    let (first, second, last) = (of_level(1), of_level(2), of_level(3));
    let groups = |cache: CpuCache| cores.div_ceil(cache.cores.clamp(1, cores));
    let mut levels: Vec<CacheLevel> = [("L1", first), ("L2", second)]
        .into_iter()
        .map(|(name, cache)| CacheLevel {
            name,
            holds_one: Some(cache.bytes),
            holds_all: Some(cache.bytes * groups(cache)),
            // Half, so that the rest of the program fits.
            goes_over_one: cache.bytes / 2,
            goes_over_all: cache.bytes / 2 * groups(cache),
        })
        .collect();
    let all = last.bytes * groups(last);
    let (near_one, near_all) = (second.bytes, second.bytes * groups(second));
    // Much more than the level before, and well inside; others may use it too. If all cores
    // together hold more in the level before, the last level takes the rest.
    let inside = |near: u64, most: u64| {
        if near < most / 2 { (near * 4).min(most / 2) } else { near + most / 2 }
    };
    if last.bytes > second.bytes {
        levels.push(CacheLevel {
            name: "LLC",
            holds_one: Some(last.bytes),
            holds_all: Some(all.max(near_all)),
            goes_over_one: inside(near_one, last.bytes),
            goes_over_all: inside(near_all, all),
        });
    }
    let beyond = (all.max(near_all).saturating_mul(5) / 2).clamp(MEMORY.0, MEMORY.1);
    levels.push(CacheLevel {
        name: "memory",
        holds_one: None,
        holds_all: None,
        goes_over_one: beyond,
        goes_over_all: beyond,
    });
    levels
}

/// `48K`, `2048K` or `32M`, bounded to plausible cache sizes.
fn parse_bytes(text: &str) -> Option<u64> {
    let (digits, factor) = match text.chars().last()? {
        'K' => (text.trim_end_matches('K'), 1 << 10),
        'M' => (text.trim_end_matches('M'), 1 << 20),
        _ => (text, 1),
    };
    let bytes = digits.parse::<u64>().ok()?.checked_mul(factor)?;
    (1 << 10..=4 << 30).contains(&bytes).then_some(bytes)
}

/// How many CPUs `0-3,8` names; at least one.
fn parse_cpus(list: &str) -> u64 {
    let part = |part: &str| match part.split_once('-') {
        Some((from, to)) => {
            let (from, to) = (from.trim().parse::<u64>().ok()?, to.trim().parse::<u64>().ok()?);
            to.checked_sub(from)?.checked_add(1).filter(|n| *n < 1 << 20)
        }
        None => part.trim().parse::<u64>().ok().map(|_| 1),
    };
    list.split(',').take(4_096).filter_map(part).sum::<u64>().max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_lists_are_read_as_the_kernel_writes_them() {
        assert_eq!(parse_bytes("48K"), Some(48 << 10));
        assert_eq!(parse_bytes("32M"), Some(32 << 20));
        assert_eq!(parse_bytes("0K"), None);
        assert_eq!(parse_bytes("99999999999999999999K"), None);
        assert_eq!(parse_bytes(""), None);
        assert_eq!(parse_cpus("0-3,8"), 5);
        assert_eq!(parse_cpus("7-2,x"), 1);
        assert_eq!(parse_cpus("0-99999999999999"), 1);
    }

    #[test]
    fn levels_lie_inside_of_one_another() {
        let check = |caches: &[CpuCache], cores, want: &[&str]| {
            let levels = of_caches(caches, cores);
            let names: Vec<&str> = levels.iter().map(|level| level.name).collect();
            assert_eq!(names, want);
            for two in levels.windows(2) {
                assert!(two[0].goes_over_all < two[1].goes_over_all, "{levels:?}");
                assert!(two[0].goes_over_one < two[1].goes_over_one, "{levels:?}");
                let holds = two[0].holds_one.expect("a cache");
                assert!(two[0].goes_over_one <= holds);
            }
        };
        let cache = |level, bytes, cores| CpuCache { level, bytes, cores };
        let server = [cache(1, 48 << 10, 1), cache(2, 2 << 20, 1), cache(3, 105 << 20, 56)];
        check(&server, 2, &["L1", "L2", "LLC", "memory"]);
        check(&server, 56, &["L1", "L2", "LLC", "memory"]);
        check(&[], 8, &["L1", "L2", "LLC", "memory"]);
        // Four cores share the second level, and there is no third.
        let no_third = [cache(1, 128 << 10, 1), cache(2, 64 << 20, 4)];
        check(&no_third, 8, &["L1", "L2", "memory"]);
    }

    #[test]
    fn this_host_has_levels() {
        let levels = levels(2);
        assert_eq!(levels.first().map(|level| level.name), Some("L1"));
        assert_eq!(levels.last().map(|level| level.name), Some("memory"));
    }
}
