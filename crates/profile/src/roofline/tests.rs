//! From the output of the program to figures, and back from a file.

use super::*;

fn level(name: &'static str, holds: Option<u64>, over: u64) -> CacheLevel {
    CacheLevel {
        name,
        holds_one: holds,
        holds_all: holds.map(|n| n * 2),
        goes_over_one: over,
        goes_over_all: over * 2,
    }
}

fn host() -> HostInfo {
    HostInfo { fingerprint: "f".into(), cpu: "a CPU".into(), cores: 2 }
}

const OUTPUT: &str = "flops 1 1e11\nflops 1 9e10\nflops 1 8e10\nflops 2 1.9e11\nlanes 16\n\
    read 100 1 4e11\ncopy 100 1 3e11\ntriad 100 1 2e11\n\
    read 200 2 8e11\ncopy 200 2 1e10\ntriad 200 2 4e11\n\
    read 1000 1 1e10\ncopy 1000 1 2e10\ntriad 1000 1 3e10\n\
    read 2000 2 2e10\ncopy 2000 2 3e10\ntriad 2000 2 4e10\n";

fn measured() -> HostRoofline {
    let levels = [level("L1", Some(200), 100), level("memory", None, 1_000)];
    put_together(&parse_readings(OUTPUT), &levels, host()).expect("figures")
}

#[test]
fn the_best_run_counts_and_the_usual_one_tells_the_spread() {
    let found = measured();
    assert_eq!((found.flops.one.best, found.flops.one.runs), (1e11, 3));
    assert!((found.flops.one.spread - 0.1).abs() < 1e-12);
    assert_eq!((found.flops.all.best, found.lanes), (1.9e11, 16));
    assert_eq!(found.levels[0].best(Cores::One), 4e11);
    // Two cores are not slower than one: that run was disturbed.
    assert_eq!(found.levels[0].copy.all.best, 3e11);
}

#[test]
fn a_call_stands_under_the_level_that_holds_its_bytes() {
    let found = measured();
    let demand = |bytes: f64| CallDemand { work: Some(1.0), bytes: Some(bytes) };
    assert_eq!(found.peaks(demand(150.0), Cores::One).bytes, Some(4e11));
    assert_eq!(found.peaks(demand(300.0), Cores::One).bytes, Some(3e10));
    assert_eq!(found.peaks(demand(300.0), Cores::All).bytes, Some(8e11));
    assert_eq!(found.peaks(demand(1e9), Cores::All).flops, Some(1.9e11));
}

#[test]
fn the_roof_of_a_campaign_takes_a_rate_only_for_more_than_the_caches_hold() {
    let roof = measured().roof();
    assert_eq!(roof.flops, Some(1.9e11));
    let rates: Vec<(u64, f64)> = roof.rates.iter().map(|r| (r.bytes, r.per_s)).collect();
    assert_eq!(rates, [(0, 8e11), (400, 4e10)]);
}

#[test]
fn a_busy_host_lowers_no_peak() {
    let (mut found, mut better) = (measured(), measured());
    better.flops.one.best = 2e11;
    better.levels[1].copy.all.best = 9e10;
    found.raised_by(&better);
    assert_eq!((found.flops.one.best, found.flops.all.best), (2e11, 2e11));
    assert_eq!(found.levels[1].copy.all.best, 9e10);
    assert_eq!(found.levels[1].read.all.best, 2e10);
    // Other levels belong to another host.
    better.levels.pop();
    better.flops.one.best = 9e11;
    found.raised_by(&better);
    assert_eq!(found.flops.one.best, 2e11);
}

#[test]
fn what_makes_no_sense_gives_no_figure() {
    let text =
        "flops 1 nan\nflops 1 -3\nflops 1 1e300\nflops x 1e9\nread 1 1\nread a b 1e9\n\u{0}\n";
    assert_eq!(parse_readings(text), RooflineReadings::default());
    let levels = [level("L1", Some(200), 100)];
    assert!(put_together(&parse_readings(""), &levels, host()).is_none());
    let half = "flops 1 1e11\nread 100 1 4e11\n";
    assert!(put_together(&parse_readings(half), &levels, host()).is_none());
}

#[test]
fn what_was_kept_is_read_back_unless_it_cannot_be() {
    let found = measured();
    let text = serde_json::to_string(&found).expect("text");
    assert_eq!(parse_cached(&text), Some(found));
    assert_eq!(parse_cached(&text.replace("\"version\":1", "\"version\":2")), None);
    assert_eq!(parse_cached(&text.replace("100000000000.0", "-1.0")), None);
    assert_eq!(parse_cached("{"), None);
}
