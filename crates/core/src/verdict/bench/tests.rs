//! The findings of a bench: what is proven either way, and what changes nothing.

use super::*;
use crate::bench::SecondClockRule;
use crate::charter::{ClockRule, Metric};
use crate::comparison::Estimate;
use crate::measurement::{Block, DiscardReason, FirstArm, Pair, Sample};
use crate::testing::{charter, fixed};
use karve_numerics::stats::DrawRng;
use proptest::prelude::*;

fn metric() -> Metric {
    Metric { clocks: ClockRule::Both, ..charter().metric }
}

/// One reading: by the metric and by CPU time.
fn sample(value: f64, cpu: f64) -> Sample {
    Sample { value, wall_us: 1_000_000, cpu_us: (cpu * 1e6) as u64, passes: None, snr_db: None }
}

/// A block from pairs of readings of A and B; the CPU clock says the same.
fn block(readings: &[(f64, f64)]) -> Block {
    let pair = |(case, (a, b)): (usize, &(f64, f64))| Pair {
        case,
        first: FirstArm::Parent,
        parent: sample(*a, *a),
        candidate: sample(*b, *b),
        turns: None,
    };
    Block {
        seed: 1,
        pad: 0,
        pairs: readings.iter().enumerate().map(pair).collect(),
        discarded: None,
        conditions: None,
        aged: 0,
    }
}

fn bench_of(blocks: &[Block], rule: BenchRule) -> Bench {
    let cases: Vec<usize> = (0..blocks.first().map_or(1, |block| block.pairs.len())).collect();
    let mut bench = Bench::new(&metric(), &cases, rule);
    for block in blocks {
        bench.take(block).unwrap();
    }
    bench
}

/// Blocks of one case in which B takes `b` where A takes 1, give or take `noise`.
fn blocks(n: usize, b: f64, noise: f64) -> Vec<Block> {
    let mut draws = DrawRng::new(11);
    let mut wobble = || 1.0 + (draws.next_f64() - 0.5) * noise;
    (0..n).map(|_| block(&[(10.0 * wobble(), 10.0 * b * wobble())])).collect()
}

fn check(blocks: &[Block], want: &str) {
    let bench = bench_of(blocks, BenchRule::default());
    assert_eq!(find(&bench).word(), want, "{:?}", bench.main().overall);
}

#[test]
fn a_clear_difference_is_found_either_way() {
    check(&blocks(20, 0.9, 0.02), "faster");
    check(&blocks(20, 1.1, 0.02), "slower");
    check(&blocks(20, 1.0, 0.02), "no difference");
    check(&blocks(20, 1.0, 0.5), "could not tell");
}

#[test]
fn few_blocks_find_nothing() {
    check(&blocks(7, 0.5, 0.0), "could not tell");
    check(&blocks(13, 0.5, 0.0), "could not tell");
    check(&blocks(14, 0.5, 0.0), "faster");
    check(&blocks(8, 1.0, 0.0), "no difference");
}

#[test]
fn a_difference_below_the_smallest_that_counts_is_none() {
    check(&blocks(60, 1.0 / 1.015, 0.001), "no difference");
    check(&blocks(60, 1.015, 0.001), "no difference");
    check(&blocks(60, 1.0 / 1.03, 0.001), "faster");
}

#[test]
fn discarded_blocks_do_not_count_and_bad_ones_are_refused() {
    let mut all = blocks(20, 0.5, 0.0);
    all.iter_mut().for_each(|block| block.discarded = Some(DiscardReason::WarmUp));
    check(&all, "could not tell");
    let mut bench = bench_of(&[], BenchRule::default());
    for bad in [f64::NAN, 0.0, -1.0, f64::INFINITY] {
        assert!(bench.take(&block(&[(1.0, bad)])).is_err(), "{bad}");
    }
    assert!(bench.take(&block(&[(1.0, 1.0), (1.0, 1.0)])).is_err());
    assert_eq!(bench.n_blocks(), 0);
}

fn two_clocks() -> BenchRule {
    BenchRule { second: Some(Clock::Cpu), admits: SecondClockRule::Always, ..BenchRule::default() }
}

/// B as the metric and as the CPU clock see it, with noise on the metric alone.
fn by_two_clocks(metric: f64, cpu: f64, noise: f64) -> Vec<Block> {
    let mut draws = DrawRng::new(5);
    let mut wobble = || 1.0 + (draws.next_f64() - 0.5) * noise;
    let one = |a: f64, b: f64| Block {
        pairs: vec![Pair {
            case: 0,
            first: FirstArm::Parent,
            parent: sample(a, 1.0),
            candidate: sample(b, cpu),
            turns: None,
        }],
        ..block(&[])
    };
    (0..60).map(|_| one(wobble(), metric * wobble())).collect()
}

#[test]
fn either_clock_may_have_the_proof_and_clocks_that_differ_are_a_finding() {
    let found = |blocks: &[Block]| find(&bench_of(blocks, two_clocks()));
    let by = Clock::Cpu;
    assert_eq!(found(&by_two_clocks(0.97, 0.97, 0.9)), BenchFinding::Faster { by });
    assert_eq!(found(&by_two_clocks(1.03, 1.03, 0.9)), BenchFinding::Slower { by });
    assert_eq!(found(&by_two_clocks(1.0, 1.0, 0.9)).by(), Some(by));
    let apart = found(&by_two_clocks(0.5, 1.0, 0.01));
    assert_eq!(apart.word(), "clocks disagree");
    assert_eq!(found(&by_two_clocks(1.0, 0.5, 0.01)).word(), "clocks disagree");
}

#[test]
fn clocks_that_differ_in_size_alone_do_not_disagree() {
    let found = |metric, cpu| {
        let blocks = by_two_clocks(metric, cpu, 0.01);
        let mut bench = bench_of(&[], two_clocks());
        let mut findings = blocks.iter().filter_map(|block| {
            bench.take(block).unwrap();
            judge_bench(&bench, DuelDeadline::Left)
        });
        findings.next().map(|finding| finding.word())
    };
    assert_eq!(found(0.1, 0.12), Some("faster"));
    assert_eq!(found(9.0, 8.0), Some("slower"));
    assert_eq!(found(0.5, 1.001), Some("clocks disagree"));
    assert_eq!(found(0.5, 1.5), Some("clocks disagree"));
}

#[test]
fn the_second_clock_counts_once_both_sides_were_busy_in_one_thread() {
    let rule = BenchRule { admits: SecondClockRule::BusyThreads, ..two_clocks() };
    let mut blocks = by_two_clocks(0.97, 0.97, 0.9);
    let walls = |blocks: &mut [Block], wall_us: [u64; 2]| {
        for pair in blocks.iter_mut().flat_map(|block| &mut block.pairs) {
            (pair.parent.wall_us, pair.candidate.wall_us) = wall_us.into();
        }
    };
    let found = |blocks: &[Block]| find(&bench_of(blocks, rule)).word();
    // Held up or waiting: there is no way to know.
    walls(&mut blocks, [9_000_000; 2]);
    assert_eq!(found(&blocks), "could not tell");
    // One calm run of each side is enough, and it may come late; of one side alone it is not.
    walls(&mut blocks[59..], [1_100_000, 9_000_000]);
    assert_eq!(found(&blocks), "could not tell");
    walls(&mut blocks[59..], [1_100_000; 2]);
    assert_eq!(found(&blocks), "faster");
    // More CPU time than wall time: threads.
    walls(&mut blocks[58..59], [400_000; 2]);
    assert_eq!(found(&blocks), "could not tell");
}

#[test]
fn two_clocks_need_more_evidence_than_one() {
    let one = BenchRule::default();
    assert_eq!(one.differs_evidence(), 2_000.0);
    assert_eq!(two_clocks().differs_evidence(), 4_000.0);
    assert_eq!(two_clocks().guard_evidence(), 40.0);
}

#[test]
fn a_bench_ends_with_its_finding_its_blocks_or_its_time() {
    let judged =
        |blocks: &[Block], time| judge_bench(&bench_of(blocks, BenchRule::default()), time);
    assert_eq!(judged(&blocks(10, 0.5, 0.0), DuelDeadline::Left), None);
    assert_eq!(judged(&blocks(10, 0.5, 0.0), DuelDeadline::Up), Some(BenchFinding::CouldNotTell));
    assert!(judged(&blocks(14, 0.5, 0.0), DuelDeadline::Left).is_some());
    let noisy = blocks(400, 1.0, 0.8);
    assert_eq!(judged(&noisy[..399], DuelDeadline::Left), None);
    assert_eq!(judged(&noisy, DuelDeadline::Left), Some(BenchFinding::CouldNotTell));
}

#[test]
fn a_watched_slowdown_is_beyond_within_or_not_proven() {
    let limited = BenchRule { limit_ln: Some(1.05_f64.ln()), ..BenchRule::default() };
    let limit = |b, n| judge_limit(&bench_of(&blocks(n, b, 0.002), limited));
    assert_eq!(limit(1.1, 20), Some(LimitVerdict::Beyond));
    assert_eq!(limit(1.03, 20), Some(LimitVerdict::Within));
    assert_eq!(limit(1.1, 9), Some(LimitVerdict::NotProven));
    assert_eq!(judge_limit(&bench_of(&blocks(20, 1.1, 0.0), BenchRule::default())), None);
    // The finding comes first; the bench continues until the limit is settled too.
    let close = bench_of(&blocks(14, 1.049, 0.01), limited);
    assert_eq!(find(&close).word(), "slower");
    assert_eq!(judge_limit(&close), Some(LimitVerdict::NotProven));
    assert_eq!(judge_bench(&close, DuelDeadline::Left), None);
    assert!(judge_bench(&close, DuelDeadline::Up).is_some());
}

#[test]
fn every_case_may_be_waited_for() {
    let mut draws = DrawRng::new(2);
    let all: Vec<Block> =
        (0..60).map(|_| block(&[(1.0, 0.5), (1.0, 0.97 + draws.next_f64() * 0.06)])).collect();
    let overall = bench_of(&all[..14], BenchRule::default());
    assert!(judge_bench(&overall, DuelDeadline::Left).is_some());
    assert_eq!(find_case(&overall, 1), BenchFinding::CouldNotTell);
    let rule = BenchRule { until: BenchGoal::EveryCase, ..BenchRule::default() };
    assert_eq!(judge_bench(&bench_of(&all[..14], rule), DuelDeadline::Left), None);
    let more = bench_of(&all, rule);
    assert_eq!(find_case(&more, 0).word(), "faster");
    assert_eq!(find_case(&more, 2), BenchFinding::CouldNotTell);
}

#[test]
fn equal_sides_are_not_told_apart() {
    // Fair signs of any size: a thousand benches, each looked at after every block.
    let mut draws = DrawRng::new(17);
    let reported = (0..1_000)
        .filter(|_| {
            let mut bench = Bench::new(&metric(), &[0], BenchRule::default());
            (0..60).any(|_| {
                let b = (0.1 * (draws.next_f64() - 0.5)).exp();
                bench.take(&block(&[(1.0, b)])).unwrap();
                matches!(find(&bench), BenchFinding::Faster { .. } | BenchFinding::Slower { .. })
            })
        })
        .count();
    assert_eq!(reported, 0);
}

fn mirrored(finding: BenchFinding) -> BenchFinding {
    match finding {
        BenchFinding::Faster { by } => BenchFinding::Slower { by },
        BenchFinding::Slower { by } => BenchFinding::Faster { by },
        other => other,
    }
}

/// Readings of two cases, anything from equal to clearly different, with ties.
fn readings() -> impl Strategy<Value = Vec<Vec<(f64, f64)>>> {
    let shift = prop::sample::select(vec![0.8, 0.95, 0.983, 1.0, 1.017, 1.05, 1.25]);
    let noise = prop::sample::select(vec![0.0, 0.005, 0.03, 0.2]);
    let raw = prop::collection::vec(prop::collection::vec(0.0..1.0_f64, 4), 1..70);
    (shift, noise, raw).prop_map(|(shift, noise, raw)| {
        let value = |unit: f64| 1.0 + noise * (unit - 0.5);
        raw.into_iter()
            .map(|u| {
                vec![
                    (value(u[0]), shift * value(u[1])),
                    (3.0 * value(u[2]), 3.0 * shift * value(u[3])),
                ]
            })
            .collect()
    })
}

fn all_blocks(readings: &[Vec<(f64, f64)>]) -> Vec<Block> {
    readings.iter().map(|pairs| block(pairs)).collect()
}

proptest! {
    #![proptest_config(fixed(128))]

    #[test]
    fn swapping_the_sides_mirrors_the_finding(readings in readings()) {
        let swapped: Vec<Vec<(f64, f64)>> = readings
            .iter()
            .map(|pairs| pairs.iter().map(|(a, b)| (*b, *a)).collect())
            .collect();
        let (one, other) = (
            bench_of(&all_blocks(&readings), BenchRule::default()),
            bench_of(&all_blocks(&swapped), BenchRule::default()),
        );
        prop_assert_eq!(find(&one), mirrored(find(&other)));
        prop_assert_eq!(find_case(&one, 0), mirrored(find_case(&other, 0)));
    }

    #[test]
    fn scaling_all_times_changes_nothing(readings in readings(), power in -8_i32..8) {
        // By a power of two, so that no rounding differs.
        let scale = 2_f64.powi(power);
        let scaled: Vec<Vec<(f64, f64)>> = readings
            .iter()
            .map(|pairs| pairs.iter().map(|(a, b)| (a * scale, b * scale)).collect())
            .collect();
        let found = |readings: &[Vec<(f64, f64)>]| {
            find(&bench_of(&all_blocks(readings), BenchRule::default()))
        };
        prop_assert_eq!(found(&readings), found(&scaled));
    }

    #[test]
    fn the_order_of_the_cases_changes_nothing(readings in readings()) {
        let turned: Vec<Vec<(f64, f64)>> = readings
            .iter()
            .map(|pairs| pairs.iter().rev().copied().collect())
            .collect();
        let one = bench_of(&all_blocks(&readings), BenchRule::default());
        let other = bench_of(&all_blocks(&turned), BenchRule::default());
        prop_assert_eq!(find(&one), find(&other));
        prop_assert_eq!(find_case(&one, 0), find_case(&other, 1));
    }

    #[test]
    fn looking_changes_nothing(readings in readings(), looks in any::<u64>()) {
        let blocks = all_blocks(&readings);
        let mut bench = Bench::new(&metric(), &[0, 1], two_clocks());
        let mut draws = DrawRng::new(looks);
        let mut first = None;
        for block in &blocks {
            bench.take(block).unwrap();
            if first.is_none() && draws.next_f64() < 0.5 {
                first = judge_bench(&bench, DuelDeadline::Left);
            }
        }
        prop_assert_eq!(find(&bench), find(&bench_of(&blocks, two_clocks())));
    }
}

#[test]
fn the_word_beside_an_interval_does_not_contradict_it() {
    let estimate = |low, high| Estimate { ratio: 1.0, low, high };
    for (low, high, want) in [
        (Some(1.1), Some(1.2), "likely faster"),
        (Some(0.8), Some(0.9), "likely slower"),
        (Some(0.9), Some(1.1), "could not tell"),
        (None, None, "could not tell"),
    ] {
        let word = BenchFinding::CouldNotTell.word_beside(&estimate(low, high));
        assert_eq!(word, want);
    }
    let known = BenchFinding::Faster { by: Clock::Metric };
    assert_eq!(known.word_beside(&estimate(Some(0.9), Some(1.1))), "faster");
}
