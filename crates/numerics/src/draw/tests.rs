//! Draws: their distributions, their ends, and that no stream repeats another.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

fn drawn(draw: &Draw, dtype: Dtype, seed: u64, stream: u64, count: usize) -> Vec<u8> {
    let mut out = vec![0; count * dtype.bytes()];
    fill(draw, dtype, seed, stream, &mut out);
    out
}

fn numbers(draw: &Draw, dtype: Dtype, count: usize) -> Vec<f64> {
    let mut out = Vec::new();
    tensor::to_f64(dtype, &drawn(draw, dtype, 11, 3, count), &mut out);
    out
}

fn uniform_draw() -> Draw {
    Draw::Uniform { low: -1.0, high: 1.0 }
}

fn normal_draw() -> Draw {
    Draw::Normal { mean: 0.0, sd: 1.0 }
}

const FLOATS: [Dtype; 6] =
    [Dtype::F64, Dtype::F32, Dtype::F16, Dtype::Bf16, Dtype::F8E4m3, Dtype::F8E5m2];

fn moment(values: &[f64], power: i32) -> f64 {
    values.iter().map(|v| v.powi(power)).sum::<f64>() / values.len() as f64
}

#[test]
fn a_draw_reads_as_it_is_written_in_files() {
    let text = r#"{"kind":"sparse","density":0.1,"of":{"kind":"large"}}"#;
    let draw: Draw = serde_json::from_str(text).unwrap();
    let of = Box::new(Draw::Large { full: false });
    assert_eq!(draw, Draw::Sparse { density: 0.1, of });
    let text = r#"{"kind":"groups","total":64,"skew":"top1_capacity"}"#;
    let draw: Draw = serde_json::from_str(text).unwrap();
    let skew = Skew::Top1Capacity;
    assert_eq!(draw, Draw::Groups { total: 64, skew, only: false });
    assert!(serde_json::from_str::<Draw>(r#"{"kind":"constant","value":1,"x":1}"#).is_err());
}

#[test]
fn the_same_arguments_give_the_same_bytes_and_others_give_others() {
    for draw in [uniform_draw(), normal_draw(), Draw::Mixed, Draw::Cancelling] {
        let mut seen = BTreeSet::new();
        for seed in 0..40 {
            for stream in 0..40 {
                let bytes = drawn(&draw, Dtype::F32, seed, stream, 16);
                assert_eq!(bytes, drawn(&draw, Dtype::F32, seed, stream, 16));
                assert!(seen.insert(bytes), "{draw:?}: {seed}, {stream}");
            }
        }
    }
}

#[test]
fn a_stream_is_a_prefix_of_the_longer_one() {
    for dtype in FLOATS {
        let long = drawn(&normal_draw(), dtype, 5, 9, 1_000);
        let short = drawn(&normal_draw(), dtype, 5, 9, 77);
        assert_eq!(short, long[..short.len()]);
    }
}

#[test]
fn uniform_numbers_are_spread_evenly_in_every_type() {
    for dtype in FLOATS {
        let values = numbers(&uniform_draw(), dtype, 200_000);
        assert!(values.iter().all(|v| (-1.0..=1.0).contains(v)), "{dtype:?}");
        assert!(moment(&values, 1).abs() < 0.01, "{dtype:?}");
        assert!((moment(&values, 2) - 1.0 / 3.0).abs() < 0.01, "{dtype:?}");
        let mut cells = [0_u32; 16];
        for v in &values {
            cells[(((v + 1.0) * 8.0) as usize).min(15)] += 1;
        }
        if dtype.bytes() > 1 {
            assert!(cells.iter().all(|n| (12_000..13_000).contains(n)), "{cells:?}");
        }
    }
}

#[test]
fn wide_floats_use_their_last_bits() {
    // Otherwise rounding the inputs to a narrower type would cost a kernel no accuracy.
    for draw in [uniform_draw(), normal_draw()] {
        let values = numbers(&draw, Dtype::F64, 10_000);
        let lost = values.iter().filter(|v| f64::from(**v as f32) != **v);
        assert!(lost.count() > 9_990, "{draw:?}");
    }
}

#[test]
fn normal_numbers_have_the_moments_and_tails_of_the_normal_distribution() {
    for dtype in [Dtype::F32, Dtype::F64] {
        let n = 2_000_000;
        let values = numbers(&normal_draw(), dtype, n);
        for (power, want, within) in
            [(1, 0.0, 0.004), (2, 1.0, 0.005), (3, 0.0, 0.015), (4, 3.0, 0.04), (6, 15.0, 0.6)]
        {
            let got = moment(&values, power);
            assert!((got - want).abs() < within, "moment {power} is {got}");
        }
        // Two-sided tails beyond 1, 2, 3, 4 and 5 deviations.
        for (beyond, share) in [
            (1.0, 0.317_310_5),
            (2.0, 0.045_500_3),
            (3.0, 0.002_699_8),
            (4.0, 6.334e-5),
            (5.0, 5.733e-7),
        ] {
            let want = share * n as f64;
            let got = values.iter().filter(|v| v.abs() > beyond).count() as f64;
            let within = 5.0 * want.sqrt() + 3.0;
            assert!((got - want).abs() < within, "{got} beyond {beyond}, not {want}");
        }
        let neighbours: f64 = values.windows(2).map(|w| w[0] * w[1]).sum();
        assert!((neighbours / n as f64).abs() < 0.004, "neighbors are correlated");
        let pairs = values.chunks_exact(32).flat_map(|c| (0..16).map(|i| c[i] * c[i + 16]));
        let (mut sum, mut squares) = (0.0, 0.0);
        for product in pairs {
            sum += product;
            squares += product * product;
        }
        let half = n as f64 / 2.0;
        assert!((sum / half).abs() < 0.005 && (squares / half - 1.0).abs() < 0.03);
    }
}

#[test]
fn lanes_and_streams_do_not_depend_on_each_other() {
    let a = numbers(&uniform_draw(), Dtype::F64, 100_000);
    let mut b = Vec::new();
    tensor::to_f64(Dtype::F64, &drawn(&uniform_draw(), Dtype::F64, 11, 4, 100_000), &mut b);
    for shift in [0, 1, 16, 64] {
        let of = |x: &[f64], y: &[f64]| {
            let n = x.len() - shift;
            x[..n].iter().zip(&y[shift..]).map(|(x, y)| x * y).sum::<f64>() / n as f64
        };
        assert!(of(&a, &b).abs() < 0.006, "streams at {shift}");
        assert!(shift == 0 || of(&a, &a).abs() < 0.006, "lanes at {shift}");
    }
}

#[test]
fn integers_reach_both_ends_evenly() {
    let draw = Draw::Integers { low: -2, high: 2 };
    for dtype in [Dtype::I64, Dtype::I32, Dtype::I8, Dtype::F16] {
        let values = numbers(&draw, dtype, 50_000);
        for want in -2..=2 {
            let n = values.iter().filter(|v| **v == f64::from(want)).count();
            assert!((9_400..10_600).contains(&n), "{dtype:?} {want}: {n}");
        }
    }
    let all = Draw::Integers { low: i64::MIN, high: i64::MAX };
    let values = numbers(&all, Dtype::I64, 10_000);
    let n_negative = values.iter().filter(|v| **v < 0.0).count();
    assert!((4_700..5_300).contains(&n_negative));
}

#[test]
fn a_permutation_has_everything_once_and_nearly_nothing_in_place() {
    let mut values = numbers(&Draw::Permutation, Dtype::I32, 5_000);
    let n_in_place = values.iter().enumerate().filter(|(i, v)| *i as f64 == **v);
    assert!(n_in_place.count() < 10);
    values.sort_by(f64::total_cmp);
    assert!(values.iter().enumerate().all(|(i, v)| i as f64 == *v));
}

#[test]
fn sparse_and_nan_carrying_draws_have_their_share() {
    for dtype in FLOATS {
        let of = Box::new(uniform_draw());
        let values = numbers(&Draw::Sparse { density: 0.1, of }, dtype, 50_000);
        let n = values.iter().filter(|v| **v != 0.0).count();
        let least = if dtype.bytes() == 1 { 4_000 } else { 4_700 };
        assert!((least..5_300).contains(&n), "{dtype:?}: {n}");
        let of = Box::new(uniform_draw());
        let values = numbers(&Draw::Nans { share: 0.02, of }, dtype, 50_000);
        let n = values.iter().filter(|v| v.is_nan()).count();
        assert!((850..1_150).contains(&n), "{dtype:?}: {n}");
    }
}

#[test]
fn sorted_draws_ascend_in_every_type() {
    for dtype in Dtype::ALL {
        let of = Box::new(Draw::Integers { low: -90, high: 90 });
        let values = numbers(&Draw::Sorted { of }, dtype, 1_000);
        assert!(values.is_sorted(), "{dtype:?}");
    }
    let of = Box::new(Draw::Integers { low: i64::MIN, high: i64::MAX });
    let bytes = drawn(&Draw::Sorted { of }, Dtype::I64, 1, 2, 500);
    assert!(tensor::to_integers(Dtype::I64, &bytes).unwrap().is_sorted());
}

#[test]
fn hostile_values_are_what_their_name_says_in_every_type() {
    for dtype in FLOATS {
        let range = dtype.float_range().unwrap();
        let least = tensor::power_of_two(range.exponent_min);
        let all = |draw: Draw, good: &dyn Fn(f64) -> bool| {
            let values = numbers(&draw, dtype, 5_000);
            let bad = values.iter().find(|v| !good(**v));
            assert_eq!(bad, None, "{dtype:?} {draw:?}");
            assert!(values.iter().any(|v| *v < 0.0) && values.iter().any(|v| *v > 0.0));
        };
        all(Draw::Denormals, &|v| v != 0.0 && v.abs() < least);
        all(Draw::Large { full: true }, &|v| v.abs() >= range.largest * 0.49 && v.is_finite());
        let root = range.largest.sqrt();
        all(Draw::Large { full: false }, &|v| v.abs() < root * 0.55 && v.abs() > root / 130.0);
        all(Draw::Mixed, &|v| v.abs() >= least && v.abs() <= root);
        let values = numbers(&Draw::Cancelling, dtype, 5_000);
        for pair in values.chunks_exact(2) {
            let rest = (pair[0] + pair[1]).abs();
            assert!(rest <= 8.0 * dtype.epsilon() * pair[0].abs(), "{pair:?}");
        }
    }
}

#[test]
fn mixed_magnitudes_reach_over_the_whole_range() {
    let values = numbers(&Draw::Mixed, Dtype::F32, 10_000);
    assert!(values.iter().any(|v| v.abs() < 1e-35));
    assert!(values.iter().any(|v| v.abs() > 1e15));
}

#[test]
fn constants_and_zeros_are_the_same_for_every_seed() {
    let two = numbers(&Draw::Constant { value: 2.0 }, Dtype::Bf16, 5);
    assert_eq!(two, [2.0; 5]);
    assert_eq!(drawn(&Draw::Zeros, Dtype::F32, 1, 1, 4), [0; 16]);
}

fn group_sizes(skew: Skew, total: u64, count: usize, stream: u64) -> Vec<i64> {
    let only = false;
    let draw = Draw::Groups { total, skew, only };
    let bytes = drawn(&draw, Dtype::I64, 3, stream, count);
    let sizes = tensor::to_integers(Dtype::I64, &bytes).unwrap();
    sizes.into_iter().map(|v| v as i64).collect()
}

#[test]
fn group_sizes_are_as_unequal_as_asked() {
    for stream in 0..200 {
        let dominant = group_sizes(Skew::Dominant, 4_096, 16, stream);
        assert!(dominant.iter().any(|n| *n >= 2_048), "{dominant:?}");
        let capped = group_sizes(Skew::Top1Capacity, 4_096, 16, stream);
        assert!(capped.iter().all(|n| *n <= 320), "{capped:?}");
        let empty = group_sizes(Skew::Empty, 4_096, 16, stream);
        assert!(empty.iter().filter(|n| **n == 0).count() >= 4, "{empty:?}");
        let even = group_sizes(Skew::Uniform, 4_096, 16, stream);
        assert!(even.iter().all(|n| (150..370).contains(n)), "{even:?}");
        let top2 = group_sizes(Skew::Top2, 4_096, 16, stream);
        assert!(top2.iter().all(|n| *n <= 2_048), "{top2:?}");
    }
    let skew = Skew::Dominant;
    assert_ne!(group_sizes(skew, 100, 8, 0), group_sizes(skew, 100, 8, 1));
}

#[test]
fn figures_that_make_no_sense_are_complained_about() {
    let bad = |draw: Draw| draw.complaint(Dtype::F32).is_some();
    assert!(bad(Draw::Uniform { low: 1.0, high: 0.0 }));
    assert!(bad(Draw::Normal { mean: 0.0, sd: f64::NAN }));
    assert!(bad(Draw::Integers { low: 1, high: 0 }));
    let of = Box::new(Draw::Zeros);
    assert!(bad(Draw::Sparse { density: 1.5, of }));
    let of = Box::new(Draw::Integers { low: 1, high: 0 });
    assert!(bad(Draw::Sorted { of }));
    let of = Box::new(Draw::Zeros);
    let nans = Draw::Nans { share: 0.1, of };
    assert_eq!(nans.complaint(Dtype::F16), None);
    assert_eq!(nans.complaint(Dtype::I8), Some("i8 has no NaN".to_owned()));
}

#[test]
fn poison_is_not_what_a_kernel_would_write() {
    let mut out = vec![0; 400];
    poison(Poison::Nan, 1, Dtype::F32, &mut out);
    let mut values = Vec::new();
    tensor::to_f64(Dtype::F32, &out, &mut values);
    assert!(values.iter().all(|v| v.is_nan()));
    let mut patterns = BTreeSet::new();
    for seed in 0..100 {
        poison(Poison::Pattern, seed, Dtype::I32, &mut out);
        assert!(patterns.insert(out.clone()));
    }
    let draw = uniform_draw();
    poison(Poison::Plausible { of: &draw }, 1, Dtype::F32, &mut out);
    tensor::to_f64(Dtype::F32, &out, &mut values);
    assert!(values.iter().all(|v| v.abs() <= 1.0));
    assert_ne!(out, drawn(&draw, Dtype::F32, 1, 0, 100), "it must not be an input");
}

#[test]
fn a_checksum_notices_every_flipped_bit_and_every_other_key() {
    let mut bytes = drawn(&uniform_draw(), Dtype::F32, 1, 1, 70);
    let want = hash64(5, &bytes);
    let mut seen = BTreeSet::from([want]);
    for bit in 0..bytes.len() * 8 {
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert!(seen.insert(hash64(5, &bytes)), "bit {bit}");
        bytes[bit / 8] ^= 1 << (bit % 8);
    }
    for seed in 6..1_000 {
        assert!(seen.insert(hash64(seed, &bytes)), "seed {seed}");
    }
    for zeros in 0..300 {
        assert!(seen.insert(hash64(5, &vec![0; zeros])), "{zeros} zeros");
    }
}

#[test]
fn a_checksum_spreads_its_bits() {
    let mut ones = [0_u32; 64];
    for n in 0..4_000_u64 {
        let sum = hash64(9, &n.to_ne_bytes());
        for (bit, n_ones) in ones.iter_mut().enumerate() {
            *n_ones += (sum >> bit & 1) as u32;
        }
    }
    assert!(ones.iter().all(|n| (1_800..2_200).contains(n)), "{ones:?}");
}

proptest! {
    #[test]
    fn group_sizes_add_up(
        total in prop_oneof![0_u64..5, 0_u64..100_000, Just(1 << 40)],
        count in 1_usize..70,
        stream in any::<u64>(),
    ) {
        for skew in [Skew::Uniform, Skew::Top2, Skew::Top1Capacity, Skew::Dominant, Skew::Empty] {
            let sizes = group_sizes(skew, total, count, stream);
            prop_assert!(sizes.iter().all(|n| *n >= 0));
            prop_assert_eq!(sizes.iter().sum::<i64>(), total as i64, "{:?}", skew);
            let dominant = sizes.iter().any(|n| 2 * n >= total as i64);
            prop_assert!(skew != Skew::Dominant || dominant, "{:?}", sizes);
        }
    }

    #[test]
    fn any_length_can_be_filled(count in 0_usize..300, extra in 0_usize..8) {
        let of = || Box::new(uniform_draw());
        for dtype in Dtype::ALL {
            for draw in [
                uniform_draw(),
                Draw::Permutation,
                Draw::Sorted { of: of() },
                Draw::Sparse { density: 0.5, of: of() },
                Draw::Denormals,
                Draw::Cancelling,
                Draw::Mixed,
            ] {
                let mut out = vec![0; count * dtype.bytes() + extra % dtype.bytes()];
                fill(&draw, dtype, 1, 2, &mut out);
            }
        }
    }
}

#[test]
fn harsher_groups_keep_what_was_promised() {
    for (skew, count) in [
        (Skew::Uniform, 8_usize),
        (Skew::Top2, 8),
        (Skew::Top1Capacity, 16),
        (Skew::Dominant, 3),
        (Skew::Empty, 5),
    ] {
        let (total, only) = (4_096, false);
        let harsher = Draw::Groups { total, skew, only }.harsher();
        assert!(!harsher.is_empty());
        for (draw, what) in harsher {
            assert!(draw.harsher().is_empty());
            for seed in 0..40 {
                let bytes = drawn(&draw, Dtype::I64, seed, 1, count);
                let sizes = tensor::to_integers(Dtype::I64, &bytes).unwrap();
                assert_eq!(sizes.iter().sum::<i128>(), 4_096, "{draw:?}");
                let most = *sizes.iter().max().unwrap();
                let may = match skew {
                    Skew::Top2 => 2_048,
                    Skew::Top1Capacity => 320,
                    _ => 4_096,
                };
                assert!(most <= may, "{draw:?}: {sizes:?}");
                assert!(!what.contains("half") || most >= 2_048, "{sizes:?}");
                assert!(!what.contains("empty") || sizes.contains(&0), "{sizes:?}");
            }
        }
    }
}

#[test]
fn groups_that_are_never_harsher_are_left_alone() {
    let (total, skew, only) = (64, Skew::Uniform, true);
    assert_eq!(Draw::Groups { total, skew, only }.harsher(), []);
    assert_eq!(normal_draw().harsher(), []);
}
