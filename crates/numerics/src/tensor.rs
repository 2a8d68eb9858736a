//! Element types of tensors, and their bytes as numbers.
//!
//! Bytes are those of this machine: tensors live in shared memory and are never sent elsewhere.
//! A conversion to float64 is exact except for integers beyond 53 bits; one from float64 rounds to
//! nearest, ties to even. Every loop is plain enough for the compiler to use vector instructions
//! that any machine has.

use serde::{Deserialize, Serialize};

/// The type of a tensor's elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dtype {
    /// IEEE binary64.
    F64,
    /// IEEE binary32.
    F32,
    /// IEEE binary16.
    F16,
    /// The upper half of binary32.
    Bf16,
    /// Eight bits, four of them exponent; as the Open Compute Project defines it: no infinity.
    F8E4m3,
    /// Eight bits, five of them exponent: the upper half of binary16.
    F8E5m2,
    /// Signed, 64 bits.
    I64,
    /// Signed, 32 bits.
    I32,
    /// Signed, 16 bits.
    I16,
    /// Signed, 8 bits.
    I8,
    /// Unsigned, 64 bits.
    U64,
    /// Unsigned, 32 bits.
    U32,
    /// Unsigned, 16 bits.
    U16,
    /// Unsigned, 8 bits.
    U8,
    /// One byte: 0 is false, anything else is true.
    Bool,
}

/// What a floating-point type can hold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FloatRange {
    /// Bits of the fraction, without the implied one.
    pub fraction_bits: i32,
    /// The exponent of the smallest normal number, to the base 2.
    pub exponent_min: i32,
    /// The exponent of the largest number, to the base 2.
    pub exponent_max: i32,
    /// The largest finite number.
    pub largest: f64,
}

impl FloatRange {
    /// The smallest number above zero.
    pub fn smallest(&self) -> f64 {
        power_of_two(self.exponent_min - self.fraction_bits)
    }
}

/// `2^exponent`, exact from the smallest subnormal to the largest power that float64 has.
pub fn power_of_two(exponent: i32) -> f64 {
    let normal = exponent.clamp(-1022, 1023);
    let rest = (exponent - normal).clamp(-60, 1);
    f64::from_bits(((normal + 1023) as u64) << 52) * f64::from_bits(((rest + 1023) as u64) << 52)
}

impl Dtype {
    /// Every type there is.
    pub const ALL: [Dtype; 15] = [
        Dtype::F64,
        Dtype::F32,
        Dtype::F16,
        Dtype::Bf16,
        Dtype::F8E4m3,
        Dtype::F8E5m2,
        Dtype::I64,
        Dtype::I32,
        Dtype::I16,
        Dtype::I8,
        Dtype::U64,
        Dtype::U32,
        Dtype::U16,
        Dtype::U8,
        Dtype::Bool,
    ];

    /// Bytes of one element.
    pub fn bytes(self) -> usize {
        match self {
            Dtype::F64 | Dtype::I64 | Dtype::U64 => 8,
            Dtype::F32 | Dtype::I32 | Dtype::U32 => 4,
            Dtype::F16 | Dtype::Bf16 | Dtype::I16 | Dtype::U16 => 2,
            Dtype::F8E4m3 | Dtype::F8E5m2 | Dtype::I8 | Dtype::U8 | Dtype::Bool => 1,
        }
    }

    /// Whether it is a floating-point type.
    pub fn is_float(self) -> bool {
        self.float_range().is_some()
    }

    /// Its name in files.
    pub fn name(self) -> &'static str {
        match self {
            Dtype::F64 => "f64",
            Dtype::F32 => "f32",
            Dtype::F16 => "f16",
            Dtype::Bf16 => "bf16",
            Dtype::F8E4m3 => "f8e4m3",
            Dtype::F8E5m2 => "f8e5m2",
            Dtype::I64 => "i64",
            Dtype::I32 => "i32",
            Dtype::I16 => "i16",
            Dtype::I8 => "i8",
            Dtype::U64 => "u64",
            Dtype::U32 => "u32",
            Dtype::U16 => "u16",
            Dtype::U8 => "u8",
            Dtype::Bool => "bool",
        }
    }

    /// The type of that name.
    pub fn parse(name: &str) -> Option<Dtype> {
        Dtype::ALL.into_iter().find(|dtype| dtype.name() == name)
    }

    /// The distance from 1 to the next larger number; 0 for integers.
    pub fn epsilon(self) -> f64 {
        self.float_range().map_or(0.0, |range| power_of_two(-range.fraction_bits))
    }

    /// What a floating-point type can hold; `None` for integers.
    pub fn float_range(self) -> Option<FloatRange> {
        let range = |fraction_bits, exponent_min, exponent_max, largest| {
            Some(FloatRange { fraction_bits, exponent_min, exponent_max, largest })
        };
        match self {
            Dtype::F64 => range(52, -1022, 1023, f64::MAX),
            Dtype::F32 => range(23, -126, 127, f64::from(f32::MAX)),
            Dtype::F16 => range(10, -14, 15, 65_504.0),
            Dtype::Bf16 => range(7, -126, 127, 255.0 * power_of_two(120)),
            Dtype::F8E4m3 => range(3, -6, 8, 448.0),
            Dtype::F8E5m2 => range(2, -14, 15, 57_344.0),
            Dtype::I64 | Dtype::I32 | Dtype::I16 | Dtype::I8 => None,
            Dtype::U64 | Dtype::U32 | Dtype::U16 | Dtype::U8 | Dtype::Bool => None,
        }
    }

    /// The smallest and the largest integer of an integer type; `None` for floats.
    pub fn integer_range(self) -> Option<(i128, i128)> {
        match self {
            Dtype::I64 => Some((i64::MIN.into(), i64::MAX.into())),
            Dtype::I32 => Some((i32::MIN.into(), i32::MAX.into())),
            Dtype::I16 => Some((i16::MIN.into(), i16::MAX.into())),
            Dtype::I8 => Some((i8::MIN.into(), i8::MAX.into())),
            Dtype::U64 => Some((0, u64::MAX.into())),
            Dtype::U32 => Some((0, u32::MAX.into())),
            Dtype::U16 => Some((0, u16::MAX.into())),
            Dtype::U8 => Some((0, u8::MAX.into())),
            Dtype::Bool => Some((0, 1)),
            Dtype::F64 | Dtype::F32 | Dtype::F16 | Dtype::Bf16 => None,
            Dtype::F8E4m3 | Dtype::F8E5m2 => None,
        }
    }
}

/// Replaces the contents of `out` by the elements in `bytes` as float64.
///
/// Exact, except for integers beyond 53 bits, which are rounded.
pub fn to_f64(dtype: Dtype, bytes: &[u8], out: &mut Vec<f64>) {
    out.clear();
    match dtype {
        Dtype::F64 => widen(bytes, out, f64::from_ne_bytes),
        Dtype::F32 => widen(bytes, out, |b| f64::from(f32::from_ne_bytes(b))),
        Dtype::F16 => widen(bytes, out, |b| f64::from(of_f16(u16::from_ne_bytes(b)))),
        Dtype::Bf16 => widen(bytes, out, |b| f64::from(of_bf16(u16::from_ne_bytes(b)))),
        Dtype::F8E4m3 => widen(bytes, out, |[b]| f64::from(of_e4m3(b))),
        Dtype::F8E5m2 => widen(bytes, out, |[b]| f64::from(of_f16(u16::from(b) << 8))),
        Dtype::I64 => widen(bytes, out, |b| i64::from_ne_bytes(b) as f64),
        Dtype::I32 => widen(bytes, out, |b| f64::from(i32::from_ne_bytes(b))),
        Dtype::I16 => widen(bytes, out, |b| f64::from(i16::from_ne_bytes(b))),
        Dtype::I8 => widen(bytes, out, |b| f64::from(i8::from_ne_bytes(b))),
        Dtype::U64 => widen(bytes, out, |b| u64::from_ne_bytes(b) as f64),
        Dtype::U32 => widen(bytes, out, |b| f64::from(u32::from_ne_bytes(b))),
        Dtype::U16 => widen(bytes, out, |b| f64::from(u16::from_ne_bytes(b))),
        Dtype::U8 => widen(bytes, out, |[b]| f64::from(b)),
        Dtype::Bool => widen(bytes, out, |[b]| f64::from(u8::from(b != 0))),
    }
}

fn widen<const N: usize>(bytes: &[u8], out: &mut Vec<f64>, of: impl Fn([u8; N]) -> f64) {
    out.extend(bytes.as_chunks::<N>().0.iter().map(|b| of(*b)));
}

/// One element as float64; `None` if it does not exist.
pub fn read(dtype: Dtype, bytes: &[u8], index: usize) -> Option<f64> {
    let start = index.checked_mul(dtype.bytes())?;
    let element = bytes.get(start..start.checked_add(dtype.bytes())?)?;
    let mut one = Vec::with_capacity(1);
    to_f64(dtype, element, &mut one);
    one.first().copied()
}

/// Writes numbers as elements: to nearest, ties to even.
///
/// What is too large becomes infinite where the type has infinities, and the largest number of
/// its sign where it has none. NaN becomes 0 in integers.
pub fn from_f64(dtype: Dtype, values: &[f64], out: &mut [u8]) {
    match dtype {
        Dtype::F64 => narrow(values, out, f64::to_ne_bytes),
        Dtype::F32 => narrow(values, out, |v| (v as f32).to_ne_bytes()),
        Dtype::F16 => narrow(values, out, |v| to_f16(odd_f32(v)).to_ne_bytes()),
        Dtype::Bf16 => narrow(values, out, |v| to_bf16(odd_f32(v)).to_ne_bytes()),
        Dtype::F8E4m3 => narrow(values, out, |v| [to_e4m3(odd_f32(v))]),
        Dtype::F8E5m2 => narrow(values, out, |v| [to_e5m2(odd_f32(v))]),
        Dtype::I64 => narrow(values, out, |v| (whole(v) as i64).to_ne_bytes()),
        Dtype::I32 => narrow(values, out, |v| (whole(v) as i32).to_ne_bytes()),
        Dtype::I16 => narrow(values, out, |v| (whole(v) as i16).to_ne_bytes()),
        Dtype::I8 => narrow(values, out, |v| (whole(v) as i8).to_ne_bytes()),
        Dtype::U64 => narrow(values, out, |v| (whole(v) as u64).to_ne_bytes()),
        Dtype::U32 => narrow(values, out, |v| (whole(v) as u32).to_ne_bytes()),
        Dtype::U16 => narrow(values, out, |v| (whole(v) as u16).to_ne_bytes()),
        Dtype::U8 => narrow(values, out, |v| [whole(v) as u8]),
        Dtype::Bool => narrow(values, out, |v| [u8::from(v != 0.0)]),
    }
}

/// The nearest integer, ties to even, without the call that older processors need for it.
fn whole(value: f64) -> f64 {
    let anchor = (1_u64 << 52) as f64;
    let signed = anchor.copysign(value);
    let rounded = (value + signed) - signed;
    if value.abs() < anchor { rounded } else { value }
}

/// The same from float32, which is faster for the types that are no wider.
pub fn from_f32(dtype: Dtype, values: &[f32], out: &mut [u8]) {
    match dtype {
        Dtype::F32 => narrow(values, out, f32::to_ne_bytes),
        Dtype::F16 => narrow(values, out, |v| to_f16(v).to_ne_bytes()),
        Dtype::Bf16 => narrow(values, out, |v| to_bf16(v).to_ne_bytes()),
        Dtype::F8E4m3 => narrow(values, out, |v| [to_e4m3(v)]),
        Dtype::F8E5m2 => narrow(values, out, |v| [to_e5m2(v)]),
        Dtype::F64 => narrow(values, out, |v| f64::from(v).to_ne_bytes()),
        Dtype::I64
        | Dtype::I32
        | Dtype::I16
        | Dtype::I8
        | Dtype::Bool
        | Dtype::U64
        | Dtype::U32
        | Dtype::U16
        | Dtype::U8 => {
            by_f64(dtype, values, out, f64::from);
        }
    }
}

/// Writes integers as elements; what an integer type cannot hold becomes the nearest that it can.
pub fn from_i64(dtype: Dtype, values: &[i64], out: &mut [u8]) {
    match dtype {
        Dtype::I64 => narrow(values, out, i64::to_ne_bytes),
        Dtype::I32 => narrow(values, out, |v| {
            (v.clamp(i32::MIN.into(), i32::MAX.into()) as i32).to_ne_bytes()
        }),
        Dtype::U64 => narrow(values, out, |v| (v.max(0) as u64).to_ne_bytes()),
        Dtype::U32 => narrow(values, out, |v| (v.clamp(0, u32::MAX.into()) as u32).to_ne_bytes()),
        Dtype::F64
        | Dtype::F32
        | Dtype::F16
        | Dtype::Bf16
        | Dtype::F8E4m3
        | Dtype::F8E5m2
        | Dtype::I16
        | Dtype::I8
        | Dtype::U16
        | Dtype::U8
        | Dtype::Bool => {
            by_f64(dtype, values, out, |v| v as f64);
        }
    }
}

fn narrow<const N: usize, T: Copy>(values: &[T], out: &mut [u8], of: impl Fn(T) -> [u8; N]) {
    for (bytes, value) in out.as_chunks_mut::<N>().0.iter_mut().zip(values) {
        *bytes = of(*value);
    }
}

/// Via float64, a few at a time.
fn by_f64<T: Copy>(dtype: Dtype, values: &[T], out: &mut [u8], of: impl Fn(T) -> f64) {
    const FEW: usize = 64;
    let mut wide = [0.0; FEW];
    for (values, out) in values.chunks(FEW).zip(out.chunks_mut(FEW * dtype.bytes())) {
        for (wide, value) in wide.iter_mut().zip(values) {
            *wide = of(*value);
        }
        from_f64(dtype, &wide[..values.len()], out);
    }
}

/// The elements of an integer type, without loss; `None` for floats.
pub fn to_integers(dtype: Dtype, bytes: &[u8]) -> Option<Vec<i128>> {
    fn all<const N: usize>(bytes: &[u8], of: impl Fn([u8; N]) -> i128) -> Option<Vec<i128>> {
        Some(bytes.as_chunks::<N>().0.iter().map(|b| of(*b)).collect())
    }
    match dtype {
        Dtype::I64 => all(bytes, |b| i64::from_ne_bytes(b).into()),
        Dtype::U64 => all(bytes, |b| u64::from_ne_bytes(b).into()),
        Dtype::F64 | Dtype::F32 | Dtype::F16 | Dtype::Bf16 | Dtype::F8E4m3 | Dtype::F8E5m2 => None,
        Dtype::I32 | Dtype::I16 | Dtype::I8 | Dtype::Bool | Dtype::U32 | Dtype::U16 | Dtype::U8 => {
            let mut exact = Vec::new();
            to_f64(dtype, bytes, &mut exact);
            Some(exact.into_iter().map(|v| v as i128).collect())
        }
    }
}

fn of_f16(half: u16) -> f32 {
    let sign = u32::from(half & 0x8000) << 16;
    let rest = u32::from(half & 0x7fff);
    // A multiplication corrects the exponent's bias and also gets subnormals right.
    let finite = f32::from_bits(rest << 13) * f32::from_bits((127 + 112) << 23);
    let special = 0x7f80_0000 | (rest << 13);
    let magnitude = if rest >= 0x7c00 { special } else { finite.to_bits() };
    f32::from_bits(sign | magnitude)
}

fn of_bf16(upper: u16) -> f32 {
    f32::from_bits(u32::from(upper) << 16)
}

fn of_e4m3(byte: u8) -> f32 {
    let sign = u32::from(byte & 0x80) << 24;
    let rest = u32::from(byte & 0x7f);
    let finite = f32::from_bits(rest << 20) * f32::from_bits((127 + 120) << 23);
    let magnitude = if rest == 0x7f { 0x7fc0_0000 } else { finite.to_bits() };
    f32::from_bits(sign | magnitude)
}

/// The float32 next to `value` towards zero, with its last bit set where that is not exact.
///
/// So a second rounding, to a narrower type, gives what one rounding would have given.
fn odd_f32(value: f64) -> f32 {
    let near = value as f32;
    let back = f64::from(near);
    let beyond = u32::from(back.abs() > value.abs());
    let inexact = u32::from(back != value && !value.is_nan());
    f32::from_bits((near.to_bits() - beyond) | inexact)
}

/// The code of a float32's magnitude in a type with `BITS` of fraction, as if its exponent had no
/// upper end except for one step beyond `EXPONENT_MAX`.
fn code_of<const BITS: i32, const EXPONENT_MIN: i32, const EXPONENT_MAX: i32>(value: f32) -> i32 {
    let magnitude = (value.to_bits() & 0x7fff_ffff) as i32;
    let magnitude = magnitude.min((EXPONENT_MAX + 1 + 127) << 23);
    let lowest = EXPONENT_MIN + 127;
    let exponent = (magnitude >> 23).max(lowest);
    // Adding a number whose last place is the wanted one lets the hardware round.
    let anchor = (exponent - BITS + 23) << 23;
    let sum = f32::from_bits(magnitude as u32) + f32::from_bits(anchor as u32);
    ((exponent - lowest) << BITS) + (sum.to_bits() as i32 - anchor)
}

fn sign_of(value: f32) -> i32 {
    (value.to_bits() >> 31) as i32
}

fn to_f16(value: f32) -> u16 {
    let code = code_of::<10, -14, 15>(value).min(0x7c00);
    let code = if value.is_nan() { 0x7e00 } else { code };
    (code | (sign_of(value) << 15)) as u16
}

fn to_bf16(value: f32) -> u16 {
    let bits = value.to_bits();
    let rounded = bits.wrapping_add(0x7fff + ((bits >> 16) & 1)) >> 16;
    let quiet = (bits >> 16) | 0x40;
    (if value.is_nan() { quiet } else { rounded }) as u16
}

fn to_e4m3(value: f32) -> u8 {
    let code = code_of::<3, -6, 8>(value).min(0x7e);
    let code = if value.is_nan() { 0x7f } else { code };
    (code | (sign_of(value) << 7)) as u8
}

fn to_e5m2(value: f32) -> u8 {
    let code = code_of::<2, -14, 15>(value).min(0x7c);
    let code = if value.is_nan() { 0x7e } else { code };
    (code | (sign_of(value) << 7)) as u8
}

#[cfg(test)]
mod tests;
