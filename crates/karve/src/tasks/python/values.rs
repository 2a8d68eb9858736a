//! Values of simple Python expressions, and tensors that are drawn from a distribution.

use karve_numerics::draw::Draw;
use karve_numerics::tensor::Dtype;

/// The value of an expression.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::tasks) enum PyValue {
    /// `None`.
    None,
    /// A truth value.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A number.
    Float(f64),
    /// A text.
    Str(String),
    /// The name of an element type.
    Type(Dtype),
    /// A list or a tuple.
    List(Vec<PyValue>),
    /// A dictionary with texts as keys.
    Dict(Vec<(String, PyValue)>),
    /// A tensor that is drawn from a distribution.
    Tensor(DrawnTensor),
    /// A tensor that is drawn from a distribution with sizes or limits that are unknown: why.
    Vague(String),
    /// Something else: the source of it, or why it is unknown.
    Unknown(String),
}

/// A tensor that is drawn from a distribution.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::tasks) struct DrawnTensor {
    /// The type of its elements.
    pub(in crate::tasks) dtype: Dtype,
    /// Its extents.
    pub(in crate::tasks) shape: Vec<u64>,
    /// What it is drawn from.
    pub(in crate::tasks) draw: Draw,
}

impl PyValue {
    /// Why a value cannot be used.
    pub(in crate::tasks) fn reason(&self) -> String {
        match self {
            Self::Unknown(why) | Self::Vague(why) => why.clone(),
            other => format!("`{other:?}`"),
        }
    }

    /// As a number.
    pub(super) fn number(&self) -> Option<f64> {
        match self {
            Self::Int(value) => Some(*value as f64),
            Self::Float(value) => Some(*value),
            Self::Bool(value) => Some(f64::from(u8::from(*value))),
            _ => None,
        }
    }
}

/// The value of the digits of an integer.
pub(super) fn integer(text: &str) -> PyValue {
    let digits = text.replace('_', "").to_ascii_lowercase();
    let parsed = match digits.split_at_checked(2) {
        Some(("0x", rest)) => i64::from_str_radix(rest, 16),
        Some(("0b", rest)) => i64::from_str_radix(rest, 2),
        Some(("0o", rest)) => i64::from_str_radix(rest, 8),
        _ => digits.parse(),
    };
    parsed.map_or_else(|_| PyValue::Unknown(format!("`{text}`")), PyValue::Int)
}

/// The result of an operator; `None` if it is not known.
pub(super) fn arithmetic(sign: &str, left: PyValue, right: PyValue) -> Option<PyValue> {
    use PyValue as V;
    match (left, right) {
        (V::Int(a), V::Int(b)) => of_integers(sign, a, b),
        (V::List(mut a), V::List(b)) if sign == "+" => {
            a.extend(b);
            Some(V::List(a))
        }
        (V::List(a), V::Int(n)) | (V::Int(n), V::List(a)) if sign == "*" => {
            let n = usize::try_from(n).ok().filter(|n| n.saturating_mul(a.len()) <= 64)?;
            Some(V::List(std::iter::repeat_n(a, n).flatten().collect()))
        }
        (V::Tensor(tensor), number) => {
            let number = number.number()?;
            let of = match sign {
                "+" => (1.0, number),
                "-" => (1.0, -number),
                "*" => (number, 0.0),
                "/" if number != 0.0 => (1.0 / number, 0.0),
                _ => return None,
            };
            scaled(tensor, of).map(V::Tensor)
        }
        (number, V::Tensor(tensor)) => {
            let number = number.number()?;
            let of = match sign {
                "+" => (1.0, number),
                "-" => (-1.0, number),
                "*" => (number, 0.0),
                _ => return None,
            };
            scaled(tensor, of).map(V::Tensor)
        }
        (V::Vague(why), other) | (other, V::Vague(why)) => other.number().map(|_| V::Vague(why)),
        (a, b) => of_numbers(sign, a.number()?, b.number()?).map(V::Float),
    }
}

fn of_integers(sign: &str, a: i64, b: i64) -> Option<PyValue> {
    Some(PyValue::Int(match sign {
        "+" => a.checked_add(b)?,
        "-" => a.checked_sub(b)?,
        "*" => a.checked_mul(b)?,
        "//" => a.checked_div_euclid(b).filter(|_| b > 0)?,
        "%" => a.checked_rem_euclid(b).filter(|_| b > 0)?,
        "**" => a.checked_pow(u32::try_from(b).ok()?)?,
        "<<" => a.checked_mul(1_i64.checked_shl(u32::try_from(b).ok()?)?)?,
        "/" if b != 0 => return Some(PyValue::Float(a as f64 / b as f64)),
        _ => return None,
    }))
}

fn of_numbers(sign: &str, a: f64, b: f64) -> Option<f64> {
    Some(match sign {
        "+" => a + b,
        "-" => a - b,
        "*" => a * b,
        "/" if b != 0.0 => a / b,
        "//" if b != 0.0 => (a / b).floor(),
        "**" => a.powf(b),
        _ => return None,
    })
}

/// The same tensor, times a number and plus another.
fn scaled(tensor: DrawnTensor, (by, plus): (f64, f64)) -> Option<DrawnTensor> {
    let DrawnTensor { dtype, shape, draw } = tensor;
    let is_whole = by.fract() == 0.0 && plus.fract() == 0.0;
    let draw = match draw {
        Draw::Uniform { low, high } => {
            let (a, b) = (by * low + plus, by * high + plus);
            Draw::Uniform { low: a.min(b), high: a.max(b) }
        }
        Draw::Normal { mean, sd } => Draw::Normal { mean: by * mean + plus, sd: by.abs() * sd },
        // Integers times two are not all integers of a range.
        Draw::Integers { low, high } if is_whole && by == 1.0 => {
            Draw::Integers { low: low + plus as i64, high: high + plus as i64 }
        }
        Draw::Zeros => Draw::Constant { value: plus },
        Draw::Constant { value } => Draw::Constant { value: by * value + plus },
        _ => return None,
    };
    Some(DrawnTensor { dtype, shape, draw })
}

/// The element type with a name of PyTorch or NumPy.
pub(in crate::tasks) fn dtype_named(name: &str) -> Option<Dtype> {
    Some(match name {
        "float32" | "float" => Dtype::F32,
        "float64" | "double" => Dtype::F64,
        "float16" | "half" => Dtype::F16,
        "bfloat16" => Dtype::Bf16,
        "float8_e4m3fn" => Dtype::F8E4m3,
        "float8_e5m2" => Dtype::F8E5m2,
        "int64" | "long" => Dtype::I64,
        "int32" | "int" => Dtype::I32,
        "int16" | "short" => Dtype::I16,
        "int8" => Dtype::I8,
        "uint64" => Dtype::U64,
        "uint32" => Dtype::U32,
        "uint16" => Dtype::U16,
        "uint8" => Dtype::U8,
        "bool" | "bool_" => Dtype::Bool,
        _ => return None,
    })
}
