//! Comparisons: what is counted, what is excused, and what is not.

use super::*;
use crate::draw::{Draw, fill, nudge};
use proptest::prelude::*;

fn compared(out: &[f64], reference: &[f64], dtype: Dtype) -> ErrorStats {
    measure(out, reference, &AccuracyRuleSet::Default.tolerance(dtype))
}

fn drawn(draw: &Draw, dtype: Dtype, stream: u64, count: usize) -> Vec<f64> {
    let (mut bytes, mut values) = (vec![0; count * dtype.bytes()], Vec::new());
    fill(draw, dtype, 77, stream, &mut bytes);
    tensor::to_f64(dtype, &bytes, &mut values);
    values
}

fn bytes_of(dtype: Dtype, values: &[f64]) -> Vec<u8> {
    let mut bytes = vec![0; values.len() * dtype.bytes()];
    tensor::from_f64(dtype, values, &mut bytes);
    bytes
}

fn normal(count: usize) -> Vec<f64> {
    drawn(&Draw::Normal { mean: 0.0, sd: 1.0 }, Dtype::F64, 0, count)
}

/// An elementwise kernel, as the project declares it.
fn elementwise(dtype: Dtype) -> OutputInfo {
    OutputInfo { reduction: Some(1), ..dtype.into() }
}

#[test]
fn figures_of_a_small_comparison_are_right() {
    let stats = compared(&[1.0, 2.5, -4.0], &[1.0, 2.0, -4.0], Dtype::F32);
    assert_eq!((stats.n, stats.max_abs, stats.max_rel), (3, 0.5, 0.25));
    assert!((stats.rms - (0.25_f64 / 3.0).sqrt()).abs() < 1e-15);
    assert!((stats.scale - 7.0_f64.sqrt()).abs() < 1e-15);
    assert!((stats.snr_db - 10.0 * 84.0_f64.log10()).abs() < 1e-12);
    assert!((stats.cosine - 22.0 / (23.25_f64 * 21.0).sqrt()).abs() < 1e-12);
    assert_eq!((stats.mismatched, stats.first_bad), (1, Some(1)));
    // Neighbors at 2 are 2^-22 apart.
    assert_eq!(stats.max_ulp, 0.5 / tensor::power_of_two(-22));
}

#[test]
fn what_is_not_a_number_or_infinite_must_be_so_on_both_sides() {
    const NAN: f64 = f64::NAN;
    const INF: f64 = f64::INFINITY;
    let check = |out: f64, reference: f64, want: (usize, usize, usize)| {
        let stats = compared(&[1.0, out], &[1.0, reference], Dtype::F32);
        let got = (stats.nan_extra, stats.nan_missing, stats.inf_mismatch);
        assert_eq!(got, want, "{out} for {reference}");
        let bad = want != (0, 0, 0);
        assert_eq!(stats.mismatched, usize::from(bad));
        assert_eq!(judge(&stats, None, &AccuracyRuleSet::Default, Dtype::F32).is_err(), bad);
        assert!(serde_json::to_string(&stats).is_ok_and(|text| !text.contains("null")));
    };
    check(NAN, NAN, (0, 0, 0));
    check(NAN, 1.0, (1, 0, 0));
    check(NAN, INF, (1, 0, 0));
    check(1.0, NAN, (0, 1, 0));
    check(INF, INF, (0, 0, 0));
    check(INF, -INF, (0, 0, 1));
    check(1.0, INF, (0, 0, 1));
    check(INF, 1.0, (0, 0, 1));
    // What float32 cannot represent becomes infinite.
    check(INF, 1e39, (0, 0, 0));
    check(f64::from(f32::MAX), 1e39, (0, 0, 1));
}

#[test]
fn a_type_without_infinity_ends_at_its_largest_number() {
    let stats = compared(&[448.0, -448.0], &[1e9, -500.0], Dtype::F8E4m3);
    assert_eq!((stats.mismatched, stats.inf_mismatch), (0, 0));
}

#[test]
fn stats_survive_a_file_and_leave_out_what_is_zero() {
    let stats = compared(&[1.0, 2.0], &[1.0, 2.0], Dtype::F32);
    assert_eq!(stats.snr_db, SNR_DB_MAX);
    let text = serde_json::to_string(&stats).unwrap();
    assert!(!text.contains("nan_extra") && !text.contains("first_bad"), "{text}");
    assert_eq!(serde_json::from_str::<ErrorStats>(&text).unwrap(), stats);
    let rules: AccuracyRuleSet =
        serde_json::from_str(r#"{"kind":"custom","relative":0.1}"#).unwrap();
    assert_eq!(rules.tolerance(Dtype::F32).relative, 0.1);
    assert_eq!(rules.error_ratio_max(), 4.0);
    assert_eq!(serde_json::to_string(&AccuracyRuleSet::Primus).unwrap(), r#"{"kind":"primus"}"#);
}

#[test]
fn the_rule_sets_have_the_published_figures() {
    let check = |rules: AccuracyRuleSet, dtype: Dtype, absolute: f64, relative: f64| {
        let got = rules.tolerance(dtype);
        assert_eq!((got.absolute, got.relative), (absolute, relative), "{rules:?} {dtype:?}");
    };
    check(AccuracyRuleSet::Primus, Dtype::F32, 1e-4, 1e-4);
    check(AccuracyRuleSet::Primus, Dtype::F16, 1e-2, 1e-2);
    check(AccuracyRuleSet::Primus, Dtype::Bf16, 1e-2, 1e-2);
    check(AccuracyRuleSet::Torch, Dtype::F64, 1e-7, 1e-7);
    check(AccuracyRuleSet::Torch, Dtype::F32, 1e-5, 1.3e-6);
    check(AccuracyRuleSet::Torch, Dtype::F16, 1e-5, 1e-3);
    check(AccuracyRuleSet::Torch, Dtype::Bf16, 1e-5, 1.6e-2);
    check(AccuracyRuleSet::Torch, Dtype::I32, 0.0, 0.0);
    check(AccuracyRuleSet::Bitwise, Dtype::F32, 0.0, 0.0);
    assert_eq!(AccuracyRuleSet::Primus.snr_db_min(Dtype::F8E4m3), Some(25.0));
    assert_eq!(AccuracyRuleSet::Primus.snr_db_min(Dtype::F8E5m2), Some(20.0));
    let by_words = |words, want| assert_eq!(primus_snr_db_min(words), want, "{words}");
    by_words("gemm_fp8_blockwise", Some(25.0));
    by_words("grouped_gemm E5M2", Some(20.0));
    by_words("gemm_mxfp4", Some(10.0));
    by_words("attention bf16", None);
    assert_eq!(AccuracyRuleSet::Torch.snr_db_min(Dtype::F8E5m2), None);
}

#[test]
fn eight_bits_are_judged_by_the_ratio_of_signal_to_noise() {
    let reference = normal(4_000);
    let noise = drawn(&Draw::Normal { mean: 0.0, sd: 1.0 }, Dtype::F64, 5, 4_000);
    for (dtype, snr_db_min) in [(Dtype::F8E4m3, 25.0), (Dtype::F8E5m2, 20.0)] {
        let honest = compared(&rounded(dtype, &reference), &reference, dtype);
        assert_eq!(judge(&honest, None, &AccuracyRuleSet::Primus, dtype), Ok(()), "{honest:?}");
        for (apart_db, good) in [(1.0, true), (-1.0, false)] {
            let size = 10.0_f64.powf(-(snr_db_min + apart_db) / 20.0);
            let out = reference.iter().zip(&noise).map(|(r, z)| r + size * z);
            let tolerance = AccuracyRuleSet::Primus.tolerance(dtype);
            let stats = measure(&out.collect::<Vec<f64>>(), &reference, &tolerance);
            let said = judge(&stats, None, &AccuracyRuleSet::Primus, dtype);
            let noisy = matches!(said, Err(Inaccuracy::Noisy { .. }));
            assert_eq!((said.is_ok(), noisy), (good, !good), "{dtype:?} {stats:?}");
        }
    }
}

#[test]
fn bitwise_means_the_reference_as_its_type_rounds_it() {
    let reference = normal(1_000);
    let tolerance = AccuracyRuleSet::Bitwise.tolerance(Dtype::F32);
    let mut out = rounded(Dtype::F32, &reference);
    let stats = measure(&out, &reference, &tolerance);
    assert_eq!(judge(&stats, None, &AccuracyRuleSet::Bitwise, Dtype::F32), Ok(()));
    out[7] = f64::from((out[7] as f32).next_up());
    let stats = measure(&out, &reference, &tolerance);
    let said = judge(&stats, None, &AccuracyRuleSet::Bitwise, Dtype::F32);
    assert!(matches!(said, Err(Inaccuracy::Mismatched { count: 1, first: 7, .. })));
}

#[test]
fn integers_are_exact_beyond_53_bits_too() {
    let bytes = |values: &[i64]| {
        let mut bytes = vec![0; values.len() * 8];
        tensor::from_i64(Dtype::I64, values, &mut bytes);
        bytes
    };
    let (a, b) = (bytes(&[1 << 60, 5]), bytes(&[(1 << 60) + 1, 5]));
    let stats = measure_bytes(&a, &b, Dtype::I64);
    assert_eq!((stats.mismatched, stats.first_bad), (1, Some(0)));
    assert!(judge(&stats, None, &AccuracyRuleSet::Default, Dtype::I64).is_err());
    let same = measure_bytes(&a, &a, Dtype::I64);
    assert_eq!(judge(&same, Some(&same), &AccuracyRuleSet::Default, Dtype::I64), Ok(()));
    assert_eq!(measure_bytes(&[1, 0], &[255, 0], Dtype::Bool).mismatched, 0);
    assert_eq!(measure_bytes(&[1, 0], &[0, 0], Dtype::Bool).mismatched, 1);
}

#[test]
fn a_shorter_output_is_wrong_however_good_its_elements_are() {
    let reference = normal(100);
    let stats = compared(&reference[..99], &reference, Dtype::F64);
    assert_eq!((stats.unpaired, stats.first_bad), (1, Some(99)));
    assert!(judge(&stats, None, &AccuracyRuleSet::Default, Dtype::F64).is_err());
    let bytes = bytes_of(Dtype::F32, &reference);
    let bound = CrossBound::from(&stats, &stats, Dtype::F32);
    assert!(!agree(&bytes[..396], &bytes, Dtype::F32, &bound).agrees);
}

#[test]
fn one_wrong_element_among_a_million_is_noticed() {
    let reference = normal(1_000_000);
    for dtype in [Dtype::F32, Dtype::Bf16] {
        let honest = rounded(dtype, &reference);
        let incumbent = compared(&honest, &reference, dtype);
        let bound = CrossBound::from(&incumbent, &incumbent, dtype);
        let mut wrong = honest.clone();
        wrong[654_321] += 0.25;
        let stats = compared(&wrong, &reference, dtype);
        let said = judge(&stats, Some(&incumbent), &AccuracyRuleSet::Default, dtype);
        assert!(said.is_err(), "{dtype:?}");
        let (a, b) = (bytes_of(dtype, &wrong), bytes_of(dtype, &honest));
        let found = agree(&a, &b, dtype, &bound);
        assert_eq!((found.beyond, found.first), (1, Some(654_321)), "{dtype:?}");
        assert!(!found.agrees && agree(&b, &b, dtype, &bound).agrees);
    }
}

#[test]
fn flushing_subnormal_numbers_to_zero_is_noticed() {
    for dtype in [Dtype::F32, Dtype::F64, Dtype::F16] {
        let reference = drawn(&Draw::Denormals, dtype, 0, 5_000);
        let honest = compared(&reference, &reference, dtype);
        let flushed = vec![0.0; reference.len()];
        let stats = compared(&flushed, &reference, dtype);
        for output in [dtype.into(), elementwise(dtype)] {
            let said = judge(&stats, Some(&honest), &AccuracyRuleSet::Default, output);
            assert!(said.is_err(), "{dtype:?}: {stats:?}");
            let bound = CrossBound::from(&honest, &honest, output);
            let (a, b) = (bytes_of(dtype, &flushed), bytes_of(dtype, &reference));
            assert!(!agree(&a, &b, dtype, &bound).agrees, "{dtype:?}");
        }
    }
}

#[test]
fn a_constant_is_noticed_where_a_loose_tolerance_would_let_it_pass() {
    // Means of many numbers: all are near a half.
    let reference: Vec<f64> = normal(2_000).iter().map(|v| 0.5 + v * 1e-3).collect();
    let constant = vec![0.5; reference.len()];
    let loose = AccuracyRuleSet::Custom {
        absolute: 0.1,
        relative: 0.1,
        scaled: 0.0,
        snr_db_min: None,
        error_ratio_max: None,
    };
    let stats = measure(&constant, &reference, &loose.tolerance(Dtype::F32));
    assert_eq!(stats.mismatched, 0);
    let said = judge(&stats, None, &loose, Dtype::F32);
    assert!(matches!(said, Err(Inaccuracy::Constant { .. })), "{said:?}");
    // In bf16 the reference itself is a constant.
    let stats = measure(&constant, &reference, &loose.tolerance(Dtype::Bf16));
    assert_eq!(judge(&stats, None, &loose, Dtype::Bf16), Ok(()));
}

#[test]
fn where_nothing_is_summed_small_elements_must_be_right_too() {
    let reference = drawn(&Draw::Mixed, Dtype::F32, 0, 4_000);
    let honest = compared(&reference, &reference, Dtype::F32);
    let mut wrong = reference.clone();
    let small = wrong.iter_mut().find(|v| v.abs() < 1e-20).unwrap();
    *small *= 1.01;
    let stats = compared(&wrong, &reference, Dtype::F32);
    let said = judge(&stats, Some(&honest), &AccuracyRuleSet::Default, elementwise(Dtype::F32));
    assert!(matches!(said, Err(Inaccuracy::LessAccurate { .. })), "{said:?}");
}

#[test]
fn the_incumbents_own_error_sets_the_measure() {
    let reference = normal(2_000);
    let with_error = |size: f64| {
        let noise = drawn(&Draw::Normal { mean: 0.0, sd: 1.0 }, Dtype::F64, 5, 2_000);
        let out = reference.iter().zip(noise).map(|(r, z)| r + size * z);
        compared(&out.collect::<Vec<f64>>(), &reference, Dtype::F32)
    };
    let (coarse, coarser, fine) = (with_error(1e-5), with_error(3e-5), with_error(1e-6));
    let said =
        |candidate, incumbent| judge(candidate, incumbent, &AccuracyRuleSet::Default, Dtype::F32);
    assert_eq!(said(&coarser, Some(&coarse)), Ok(()));
    assert_eq!(said(&coarse, None), Ok(()));
    let why = said(&coarse, Some(&fine)).unwrap_err().to_string();
    assert!(why.starts_with("the rms error is 1.0"), "{why}");
}

#[test]
fn a_bound_of_more_calls_is_the_wider_one() {
    let reference = normal(500);
    let exact = compared(&reference, &reference, Dtype::F32);
    let narrow = CrossBound::from(&exact, &exact, Dtype::F32);
    let coarse = compared(&rounded(Dtype::Bf16, &reference), &reference, Dtype::F32);
    let wide = CrossBound::from(&coarse, &exact, Dtype::F32);
    assert_eq!(narrow.or(wide).scaled, wide.scaled);
    assert!(wide.scaled > narrow.scaled && wide.rms_max > narrow.rms_max);
}

#[test]
fn a_nudge_moves_every_float_by_about_an_epsilon() {
    for dtype in [Dtype::F64, Dtype::F32, Dtype::Bf16] {
        let before = drawn(&Draw::Normal { mean: 0.0, sd: 1.0 }, dtype, 0, 1_000);
        let mut bytes = bytes_of(dtype, &before);
        nudge(dtype, 1, 2, &mut bytes);
        let mut after = Vec::new();
        tensor::to_f64(dtype, &bytes, &mut after);
        for (before, after) in before.iter().zip(&after) {
            let moved = (after - before).abs() / before.abs() / dtype.epsilon();
            assert!((0.4..=2.1).contains(&moved), "{dtype:?} {before} {after}");
        }
    }
    let mut bytes = vec![1, 2, 3, 4];
    nudge(Dtype::I32, 1, 2, &mut bytes);
    assert_eq!(bytes, [1, 2, 3, 4]);
}

fn element() -> impl Strategy<Value = f64> {
    prop_oneof![
        8 => -10.0_f64..10.0,
        1 => any::<f32>().prop_map(f64::from),
        1 => Just(f64::NAN),
        1 => Just(f64::INFINITY),
        1 => Just(0.0),
    ]
}

proptest! {
    #[test]
    fn whatever_is_compared_the_figures_are_finite(
        pairs in prop::collection::vec((element(), element()), 0..50),
        scale in prop_oneof![Just(1.0), Just(1e-300), Just(1e300)],
    ) {
        let (out, reference): (Vec<f64>, Vec<f64>) =
            pairs.iter().map(|(a, b)| (a * scale, b * scale)).unzip();
        for dtype in [Dtype::F64, Dtype::F32, Dtype::F8E4m3] {
            let stats = compared(&out, &reference, dtype);
            let text = serde_json::to_string(&stats).unwrap();
            prop_assert!(!text.contains("null"), "{}", text);
            prop_assert!(stats.mismatched <= stats.n);
            prop_assert_eq!(stats.first_bad.is_some(), stats.mismatched > 0);
            let bound = CrossBound::from(&stats, &stats, dtype);
            let text = serde_json::to_string(&bound).unwrap();
            prop_assert!(!text.contains("null"), "{}", text);
        }
    }

    #[test]
    fn an_output_compared_with_itself_has_no_error(out in prop::collection::vec(element(), 1..50)) {
        let out = rounded(Dtype::F32, &out);
        for rules in [AccuracyRuleSet::Default, AccuracyRuleSet::Torch, AccuracyRuleSet::Bitwise] {
            let stats = measure(&out, &out, &rules.tolerance(Dtype::F32));
            prop_assert_eq!((stats.mismatched, stats.max_abs), (0, 0.0));
            prop_assert_eq!(judge(&stats, Some(&stats), &rules, Dtype::F32), Ok(()));
        }
    }

    #[test]
    fn scaling_both_by_a_power_of_two_changes_no_judgement(
        pairs in prop::collection::vec((-10.0_f64..10.0, -1e-4_f64..1e-4), 2..50),
        exponent in -60_i32..60,
    ) {
        let factor = tensor::power_of_two(exponent);
        let said = |factor: f64| {
            let reference: Vec<f64> = pairs.iter().map(|(r, _)| r * factor).collect();
            let out: Vec<f64> = pairs.iter().map(|(r, e)| (r + e) * factor).collect();
            let exact = compared(&reference, &reference, Dtype::F32);
            let stats = compared(&out, &reference, Dtype::F32);
            judge(&stats, Some(&exact), &AccuracyRuleSet::Default, Dtype::F32).is_ok()
        };
        prop_assert_eq!(said(1.0), said(factor));
    }

    #[test]
    fn the_fast_check_counts_what_a_plain_one_counts(
        pairs in prop::collection::vec((element(), element(), any::<bool>()), 1..1_300),
        scaled in prop_oneof![Just(0.0), Just(0.1), Just(1.0)],
    ) {
        let b: Vec<f64> = rounded(Dtype::F32, &pairs.iter().map(|p| p.0).collect::<Vec<_>>());
        let a = pairs.iter().zip(&b).map(|((_, other, same), b)| if *same { *b } else { *other });
        let a = rounded(Dtype::F32, &a.collect::<Vec<_>>());
        let bound = CrossBound { scale: 4.0, scaled, relative: 0.1, rms_max: 1e9, smallest: 0.0 };
        let (a_bytes, b_bytes) = (bytes_of(Dtype::F32, &a), bytes_of(Dtype::F32, &b));
        let found = agree(&a_bytes, &b_bytes, Dtype::F32, &bound);
        let finite = b.iter().filter(|v| v.is_finite());
        let squares: f64 = finite.map(|v| v * v).sum();
        let limit = scaled * (squares / b.len() as f64).sqrt().max(4.0);
        // Differences next to the limit may fall on either side of it.
        let beyond = |slack: f64| {
            let bad = |(a, b): (&f64, &f64)| {
                let same = a == b || a.is_nan() && b.is_nan();
                let within = (a - b).abs() <= (limit + 0.1 * b.abs()) * slack;
                !(same || within && a.is_finite() && b.is_finite())
            };
            a.iter().zip(&b).filter(|p| bad(*p)).count()
        };
        let (fewest, most) = (beyond(1.0 + 1e-5), beyond(1.0 - 1e-5));
        prop_assert!((fewest..=most).contains(&found.beyond), "{} {} {:?}", fewest, most, found);
    }
}
