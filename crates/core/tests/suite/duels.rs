//! What must hold for every duel, whatever the readings, and the evidence against exact fractions.
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "the charter comes from a stored log, and a test fails loudly"
)]

use karve_core::campaign::{Event, Record};
use karve_core::charter::Charter;
use karve_core::comparison::Clock;
use karve_core::duel::{Duel, DuelRule};
use karve_core::measurement::{Block, Conditions, FirstArm, Pair, Sample};
use karve_core::verdict::{DuelDeadline, DuelRuling, judge_duel, judge_noise};
use karve_numerics::stats::{DrawRng, SignEvidence, ln_evidence};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed};
use std::fs;
use std::path::Path;
use std::sync::OnceLock;

/// Blocks of a duel here.
const BLOCKS: usize = 80;

fn fixed(cases: u32) -> Config {
    Config { cases, rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..Config::default() }
}

/// A charter of two visible cases under the strict policy.
fn charter() -> &'static Charter {
    static CHARTER: OnceLock<Charter> = OnceLock::new();
    CHARTER.get_or_init(|| {
        let log = "../../testdata/logs/v3-small.jsonl";
        let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(log)).unwrap();
        let first: Record = serde_json::from_str(text.lines().next().unwrap()).unwrap();
        let Event::TargetDefined { charter, .. } = first.event else {
            unreachable!("a log begins with its charter");
        };
        *charter
    })
}

/// Blocks of two cases around a gain, with noise.
fn readings(seed: u64, gain: f64, noise: f64) -> Vec<[(f64, f64); 2]> {
    let mut draws = DrawRng::new(seed);
    let mut noisy = |v: f64| v * (1.0 + noise * (draws.next_f64() - 0.5));
    (0..BLOCKS)
        .map(|_| [(noisy(8.0), noisy(8.0 / gain)), (noisy(3.0), noisy(3.0 / gain))])
        .collect()
}

fn block(values: &[(f64, f64)]) -> Block {
    // The CPU clock reads the same work, in whole units.
    let sample = |value: f64| Sample {
        value,
        wall_us: 1,
        cpu_us: (value * 1e12) as u64,
        passes: None,
        snr_db: None,
    };
    let pair = |(case, (parent, candidate)): (usize, &(f64, f64))| Pair {
        case,
        first: FirstArm::Parent,
        parent: sample(*parent),
        candidate: sample(*candidate),
        turns: None,
    };
    Block {
        seed: 0,
        pad: 0,
        pairs: values.iter().enumerate().map(pair).collect(),
        discarded: None,
        conditions: None,
        aged: 0,
    }
}

fn start() -> Duel {
    let rule = DuelRule::of(charter(), 2_400.0).with_second(Some(Clock::Cpu));
    Duel::new(charter(), &[0, 1], rule)
}

fn played(readings: &[[(f64, f64); 2]]) -> Duel {
    let mut duel = start();
    for values in readings {
        duel.take(&block(values)).unwrap();
    }
    duel
}

/// The same readings, some of them on other devices: each has a host and takes times of its own.
fn played_on(readings: &[[(f64, f64); 2]], hosts: &[(&str, f64)]) -> Duel {
    let mut duel = start();
    for (values, (host, slowness)) in readings.iter().zip(hosts) {
        let values = values.map(|(parent, candidate)| (parent * slowness, candidate * slowness));
        let mut block = block(&values);
        let host = Some((*host).to_owned());
        block.conditions = Some(Box::new(Conditions { host, ..Conditions::default() }));
        duel.take(&block).unwrap();
    }
    duel
}

#[test]
fn a_gain_on_one_device_only_is_reported_and_a_loss_on_one_prevents_a_keep() {
    let played = |gains: [f64; 2]| {
        let [a, b] = gains.map(|gain| readings(5, gain, 0.02));
        let mixed: Vec<_> = a.into_iter().zip(b).flat_map(|(a, b)| [a, b]).take(BLOCKS).collect();
        let hosts: Vec<_> = [("n1", 1.0), ("n2", 3.0)].into_iter().cycle().take(BLOCKS).collect();
        played_on(&mixed, &hosts)
    };
    let word = |duel: &Duel| match judge_duel(duel, DuelDeadline::Left) {
        DuelRuling::Decided(verdict) => format!("{verdict:?}"),
        DuelRuling::Continue => "open".to_owned(),
    };
    let same = played([1.3, 1.3]);
    assert!(same.comparison().devices.iter().all(|one| one.blocks == 40 && !one.differs));
    assert!(word(&same).starts_with("Keep") && !word(&same).contains("DeviceEffect"));
    let unequal = played([1.1, 1.5]);
    let shown = unequal.comparison();
    assert!(shown.devices.iter().all(|one| one.differs), "{shown:?}");
    let [low, high] = [0, 1].map(|at: usize| shown.devices[at].overall);
    assert!(shown.overall.low <= low.low && shown.overall.high >= high.high);
    assert!(word(&unequal).contains("DeviceEffect"), "{}", word(&unequal));
    let mut lost = readings(5, 1.5, 0.02)[..60].to_vec();
    lost.extend_from_slice(&readings(6, 0.97, 0.02)[..20]);
    let place = |at: usize| if at < 60 { ("n1", 1.0) } else { ("n2", 1.0) };
    let hosts: Vec<_> = (0..BLOCKS).map(place).collect();
    assert!(word(&self::played(&lost)).starts_with("Keep"), "as if it were one device");
    assert!(!word(&played_on(&lost, &hosts)).starts_with("Keep"));
}

/// The block at which a duel was decided, and the word for it.
fn decided(readings: &[[(f64, f64); 2]]) -> (usize, &'static str) {
    let mut duel = start();
    for (at, values) in readings.iter().enumerate() {
        duel.take(&block(values)).unwrap();
        if let DuelRuling::Decided(verdict) = judge_duel(&duel, DuelDeadline::Left) {
            return (at, verdict.word());
        }
    }
    (readings.len(), "open")
}

/// `E = Σ_{j≤S} C(n+1, j) / ((n+1)·C(n, S))` as a fraction of whole numbers.
fn exact_evidence(successes: usize, failures: usize) -> f64 {
    let n = successes + failures;
    let choose = |n: usize| -> Vec<u128> {
        (0..n).fold(vec![1], |row, _| {
            let sums = row.windows(2).map(|pair| pair[0] + pair[1]);
            std::iter::once(1).chain(sums).chain([1]).collect()
        })
    };
    let sum: u128 = choose(n + 1)[..=successes].iter().sum();
    sum as f64 / ((n as u128 + 1) * choose(n)[successes]) as f64
}

#[test]
fn the_evidence_is_the_exact_fraction() {
    for n in 0..=100 {
        for successes in 0..=n {
            let want = exact_evidence(successes, n - successes);
            let got = ln_evidence(successes as u32, (n - successes) as u32).exp();
            assert!((got / want - 1.0).abs() < 1e-10, "{successes} of {n}");
        }
    }
}

#[test]
fn the_evidence_has_the_values_that_were_worked_out_by_hand() {
    // (S, F, numerator, denominator)
    let table = [
        (0, 0, 1, 1),
        (1, 0, 3, 2),
        (0, 1, 1, 2),
        (1, 1, 4, 6),
        (2, 0, 7, 3),
        (0, 2, 1, 3),
        (2, 1, 11, 12),
        (3, 0, 15, 4),
        (2, 2, 16, 30),
        (3, 1, 26, 20),
    ];
    for (successes, failures, numerator, denominator) in table {
        let want = f64::from(numerator) / f64::from(denominator);
        let got = ln_evidence(successes, failures).exp();
        assert!((got / want - 1.0).abs() < 1e-12, "{successes}, {failures}");
    }
}

#[test]
fn the_evidence_is_the_mixture_it_claims_to_be() {
    // 2·∫ (2p)^S (2(1−p))^F dp over p in (½, 1), by Simpson's rule.
    const STEPS: u32 = 2_000;
    for (successes, failures) in [(0, 0), (5, 2), (15, 0), (30, 25), (60, 20), (3, 40)] {
        let at = |p: f64| (2.0 * p).powi(successes) * (2.0 * (1.0 - p)).powi(failures);
        let width = 0.5 / f64::from(STEPS);
        let sum: f64 = (0..=STEPS)
            .map(|i| {
                let weight = match i {
                    0 | STEPS => 1.0,
                    _ if i % 2 == 1 => 4.0,
                    _ => 2.0,
                };
                weight * at(0.5 + width * f64::from(i))
            })
            .sum();
        let want = 2.0 * sum * width / 3.0;
        let got = ln_evidence(successes as u32, failures as u32).exp();
        assert!((got / want - 1.0).abs() < 1e-6, "{successes}, {failures}");
    }
}

proptest! {
    #![proptest_config(fixed(64))]

    /// How fast a device is says nothing about the candidate: not one figure of a verdict changes.
    /// Nor does it matter which device comes first, or whether one device has a name.
    #[test]
    fn the_speed_of_a_device_changes_nothing(
        seed in 0_u64..1_000, gain in 0.9..1.4_f64, slowness in 0.1..10.0_f64, turn in 3_usize..7,
    ) {
        let readings = readings(seed, gain, 0.1);
        let hosts = |slowness: f64| -> Vec<(&str, f64)> {
            let place = |n: usize| match n.is_multiple_of(turn) {
                true => ("n2", slowness),
                false => ("n1", 1.0),
            };
            (0..BLOCKS).map(place).collect()
        };
        let one = played_on(&readings, &vec![("n1", 1.0); BLOCKS]);
        let (unnamed, alone) = (played(&readings), one.comparison());
        prop_assert_eq!(&alone, &unnamed.comparison());
        prop_assert_eq!(
            judge_duel(&one, DuelDeadline::Left), judge_duel(&unnamed, DuelDeadline::Left)
        );
        let (a, b) = (played_on(&readings, &hosts(1.0)), played_on(&readings, &hosts(slowness)));
        prop_assert_eq!(
            judge_duel(&a, DuelDeadline::Left), judge_duel(&b, DuelDeadline::Left)
        );
        let near = |a: f64, b: f64| (a / b - 1.0).abs() < 1e-9;
        prop_assert!(near(a.tail_ratio(a.main()), b.tail_ratio(b.main())));
        let (a, b) = (a.comparison(), b.comparison());
        prop_assert!(near(a.overall.ratio, b.overall.ratio));
        prop_assert_eq!(a.devices.len(), 2);
        for (one, other) in a.cases.iter().zip(&b.cases) {
            prop_assert!(near(one.parent_median, other.parent_median), "of the larger stratum");
        }
    }

    #[test]
    fn scaling_all_times_changes_neither_verdict_nor_its_block(
        seed in any::<u64>(), gain in 0.9..1.2_f64, power in -20_i32..20,
    ) {
        // A power of two scales without rounding, so even ties stay ties.
        let scale = 2_f64.powi(power);
        let before = readings(seed, gain, 0.1);
        let after: Vec<_> = before
            .iter()
            .map(|cases| cases.map(|(a, b)| (a * scale, b * scale)))
            .collect();
        prop_assert_eq!(decided(&before), decided(&after));
    }

    #[test]
    fn the_order_of_the_cases_changes_neither_verdict_nor_its_block(
        seed in any::<u64>(), gain in 0.9..1.2_f64, noise in 0.0..0.3_f64,
    ) {
        let before = readings(seed, gain, noise);
        let after: Vec<_> = before.iter().map(|cases| [cases[1], cases[0]]).collect();
        prop_assert_eq!(decided(&before), decided(&after));
    }

    #[test]
    fn swapping_the_labels_mirrors_the_evidence(
        seed in any::<u64>(), gain in 0.9..1.2_f64, noise in 0.01..0.3_f64,
    ) {
        let rule = DuelRule::of(charter(), 2_400.0).with_second(Some(Clock::Cpu)).for_equals();
        let mut duel = Duel::new(charter(), &[0, 1], rule.clone());
        let mut mirror = Duel::new(charter(), &[0, 1], rule);
        for cases in readings(seed, gain, noise) {
            duel.take(&block(&cases)).unwrap();
            mirror.take(&block(&cases.map(|(a, b)| (b, a)))).unwrap();
            let (here, there) = (duel.comparison().overall, mirror.comparison().overall);
            prop_assert!((here.ratio * there.ratio - 1.0).abs() < 1e-9);
        }
        for (here, there) in duel.tracks.iter().zip(&mirror.tracks) {
            prop_assert_eq!(here.faster, there.not_faster);
            prop_assert_eq!(here.not_faster, there.faster);
            prop_assert_eq!(here.slower, here.not_faster);
        }
        prop_assert_eq!(duel.ahead, mirror.behind);
        prop_assert_eq!(judge_noise(&duel), judge_noise(&mirror));
    }

    #[test]
    fn looking_at_any_time_changes_nothing(
        seed in any::<u64>(), gain in 0.9..1.2_f64, noise in 0.0..0.3_f64, looks in any::<u128>(),
    ) {
        let readings = readings(seed, gain, noise);
        let mut watched = start();
        for (at, values) in readings.iter().enumerate() {
            if looks >> at & 1 == 1 {
                let _ = judge_duel(&watched, DuelDeadline::Left);
                let _ = judge_duel(&watched, DuelDeadline::Up);
                let _ = (watched.comparison(), judge_noise(&watched));
                let _ = watched.tail_ratio(watched.main());
            }
            watched.take(&block(values)).unwrap();
            if at % 16 == 15 {
                let unwatched = played(&readings[..=at]);
                let up = DuelDeadline::Up;
                prop_assert_eq!(judge_duel(&watched, up), judge_duel(&unwatched, up));
            }
        }
        prop_assert_eq!(watched.comparison(), played(&readings).comparison());
    }

    #[test]
    fn the_highest_evidence_is_that_of_the_best_prefix(signs in any::<u64>()) {
        let mut evidence = SignEvidence::default();
        let mut highest = 0.0_f64;
        for at in 0..64 {
            evidence.see(signs >> at & 1 == 1);
            highest = highest.max(ln_evidence(evidence.successes, evidence.failures));
            prop_assert_eq!(evidence.ln_max, highest);
        }
    }
}
