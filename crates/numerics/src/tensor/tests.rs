//! Conversions, against references that search for the nearest number.

use super::*;
use proptest::prelude::*;
use std::sync::OnceLock;

fn widened(dtype: Dtype, bytes: &[u8]) -> Vec<f64> {
    let mut out = Vec::new();
    to_f64(dtype, bytes, &mut out);
    out
}

fn narrowed(dtype: Dtype, values: &[f64]) -> Vec<u8> {
    let mut out = vec![0; values.len() * dtype.bytes()];
    from_f64(dtype, values, &mut out);
    out
}

/// A number rounded to its type.
fn through(dtype: Dtype, value: f64) -> f64 {
    widened(dtype, &narrowed(dtype, &[value]))[0]
}

/// Every number of a type of at most 16 bits, by its bytes.
fn all_codes(dtype: Dtype) -> Vec<u8> {
    match dtype.bytes() {
        1 => (0..=u8::MAX).collect(),
        _ => (0..=u16::MAX).flat_map(u16::to_ne_bytes).collect(),
    }
}

const SMALL: [Dtype; 4] = [Dtype::F16, Dtype::Bf16, Dtype::F8E4m3, Dtype::F8E5m2];

/// A number of a type by the definition of its fields.
fn by_fields(code: u32, fraction_bits: u32, bias: i32, negative: bool) -> f64 {
    let exponent = (code >> fraction_bits) as i32;
    let fraction = f64::from(code & ((1 << fraction_bits) - 1));
    let unit = power_of_two(-(fraction_bits as i32));
    let magnitude = match exponent {
        0 => fraction * unit * power_of_two(1 - bias),
        _ => (1.0 + fraction * unit) * power_of_two(exponent - bias),
    };
    if negative { -magnitude } else { magnitude }
}

#[test]
fn names_are_read_as_they_are_written_in_files_too() {
    for dtype in Dtype::ALL {
        assert_eq!(Dtype::parse(dtype.name()), Some(dtype));
        let json = serde_json::to_string(&dtype).unwrap();
        assert_eq!(json, format!("\"{}\"", dtype.name()));
        assert_eq!(dtype.is_float(), dtype.integer_range().is_none());
    }
    assert_eq!(Dtype::parse("float"), None);
}

#[test]
fn every_small_number_is_what_its_fields_say() {
    for (dtype, fraction_bits, bias) in
        [(Dtype::F16, 10, 15), (Dtype::Bf16, 7, 127), (Dtype::F8E4m3, 3, 7), (Dtype::F8E5m2, 2, 15)]
    {
        let sign = 1_u32 << (dtype.bytes() * 8 - 1);
        for (code, value) in widened(dtype, &all_codes(dtype)).into_iter().enumerate() {
            let code = code as u32;
            let want = by_fields(code & (sign - 1), fraction_bits, bias, code & sign != 0);
            let finite = want.abs() <= dtype.float_range().unwrap().largest;
            if finite {
                assert_eq!(value.to_bits(), want.to_bits(), "{dtype:?} {code:#x}");
            } else {
                assert!(!value.is_finite(), "{dtype:?} {code:#x} is {value}");
            }
        }
    }
}

#[test]
fn every_small_number_survives_the_way_there_and_back() {
    for dtype in SMALL {
        let codes = all_codes(dtype);
        let values = widened(dtype, &codes);
        let again = widened(dtype, &narrowed(dtype, &values));
        for (value, again) in values.iter().zip(&again) {
            assert!(value.to_bits() == again.to_bits() || value.is_nan() && again.is_nan());
        }
    }
}

#[test]
fn what_is_too_large_ends_as_its_type_says() {
    for sign in [1.0, -1.0] {
        assert_eq!(through(Dtype::F16, sign * 65_519.9), sign * 65_504.0);
        assert_eq!(through(Dtype::F16, sign * 65_520.0), sign * f64::INFINITY);
        assert_eq!(through(Dtype::Bf16, sign * f64::MAX), sign * f64::INFINITY);
        assert_eq!(through(Dtype::F8E5m2, sign * 1e300), sign * f64::INFINITY);
        assert_eq!(through(Dtype::F8E4m3, sign * 1e300), sign * 448.0);
        assert_eq!(through(Dtype::F8E4m3, sign * f64::INFINITY), sign * 448.0);
        assert_eq!(through(Dtype::F32, sign * 1e300), sign * f64::INFINITY);
    }
    assert_eq!(through(Dtype::I8, 1e9), 127.0);
    assert_eq!(through(Dtype::U16, -3.0), 0.0);
    assert_eq!(through(Dtype::I32, f64::NAN), 0.0);
    assert_eq!(through(Dtype::Bool, -0.5), 1.0);
    for dtype in SMALL {
        assert!(through(dtype, f64::NAN).is_nan(), "{dtype:?}");
    }
}

#[test]
fn ties_go_to_even_and_a_hair_above_does_not() {
    assert_eq!(through(Dtype::F16, 1.0 + power_of_two(-11)), 1.0);
    let above = 1.0 + power_of_two(-11) + power_of_two(-50);
    assert_eq!(through(Dtype::F16, above), 1.0 + power_of_two(-10));
    assert_eq!(through(Dtype::I16, 2.5), 2.0);
    assert_eq!(through(Dtype::I16, 3.5), 4.0);
}

#[test]
fn wide_integers_keep_every_bit() {
    let values = [i64::MAX, i64::MIN, (1 << 60) + 1];
    let mut bytes = vec![0; 24];
    from_i64(Dtype::I64, &values, &mut bytes);
    let want: Vec<i128> = values.iter().map(|v| i128::from(*v)).collect();
    assert_eq!(to_integers(Dtype::I64, &bytes), Some(want));
    assert_eq!(to_integers(Dtype::F32, &bytes), None);
    from_i64(Dtype::U32, &[-1, 5, i64::MAX], &mut bytes[..12]);
    let want = vec![0, 5, u32::MAX.into()];
    assert_eq!(to_integers(Dtype::U32, &bytes[..12]), Some(want));
}

#[test]
fn powers_of_two_are_exact_down_to_the_smallest() {
    for exponent in [-1074, -1022, -1, 0, 10, 1023] {
        assert_eq!(power_of_two(exponent), f64::from(exponent).exp2(), "{exponent}");
    }
    assert_eq!(Dtype::F64.float_range().unwrap().smallest(), f64::from_bits(1));
    assert_eq!(Dtype::F16.epsilon(), through(Dtype::F16, 1.0009) - 1.0);
}

#[test]
fn one_element_is_read_by_its_place() {
    let bytes = narrowed(Dtype::F16, &[1.0, -2.5]);
    assert_eq!(read(Dtype::F16, &bytes, 1), Some(-2.5));
    assert_eq!(read(Dtype::F16, &bytes, 2), None);
    assert_eq!(read(Dtype::F16, &bytes, usize::MAX), None);
}

/// Numbers of every magnitude that a small type has, and somewhat beyond.
fn any_magnitude() -> impl Strategy<Value = f64> {
    let near_ties = (any::<u16>(), -2_i8..=2).prop_map(|(code, step)| {
        let low = f64::from(of_f16(code & 0x7bff));
        let high = f64::from(of_f16((code & 0x7bff) + 1));
        let middle = if high.is_finite() { low / 2.0 + high / 2.0 } else { low };
        f64::from_bits(middle.to_bits().saturating_add_signed(step.into()))
    });
    let wide = (any::<bool>(), -160_i32..140, 1.0_f64..2.0)
        .prop_map(|(sign, e, m)| if sign { -m } else { m } * power_of_two(e));
    prop_oneof![near_ties, wide]
}

/// The finite numbers of a small type in order.
fn finite_numbers(dtype: Dtype) -> &'static [f64] {
    static ALL: OnceLock<Vec<Vec<f64>>> = OnceLock::new();
    let sorted = |dtype: Dtype| {
        let mut all = widened(dtype, &all_codes(dtype));
        all.retain(|v| v.is_finite());
        all.sort_by(f64::total_cmp);
        all
    };
    let all = ALL.get_or_init(|| SMALL.into_iter().map(sorted).collect());
    &all[SMALL.iter().position(|small| *small == dtype).unwrap()]
}

proptest! {
    #[test]
    fn a_rounded_number_has_no_closer_neighbour(value in any_magnitude()) {
        for dtype in SMALL {
            let got = through(dtype, value);
            let range = dtype.float_range().unwrap();
            if value.abs() > range.largest {
                continue;
            }
            let finite = finite_numbers(dtype);
            let above = finite.partition_point(|v| *v < value);
            let best = finite[above.saturating_sub(1)..(above + 1).min(finite.len())]
                .iter()
                .map(|v| (v - value).abs())
                .fold(f64::INFINITY, f64::min);
            prop_assert_eq!((got - value).abs(), best, "{:?} {:e} -> {:e}", dtype, value, got);
        }
    }

    #[test]
    fn the_way_by_float32_gives_the_same_where_it_is_exact(value in any::<f32>()) {
        for dtype in SMALL {
            let mut short = vec![0; dtype.bytes()];
            from_f32(dtype, &[value], &mut short);
            let long = narrowed(dtype, &[f64::from(value)]);
            let nan = value.is_nan();
            prop_assert!(nan || short == long, "{:?} {:e}", dtype, value);
        }
    }
}
