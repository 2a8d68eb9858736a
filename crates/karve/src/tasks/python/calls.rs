//! Calls and attributes that tasks use to make their inputs: `torch.rand`, `numpy.random.randn`,
//! `x.shape`, `.to(torch.float16)`.

use super::values::dtype_named;
use super::{DrawnTensor, PyValue, StaticReader};
use karve_numerics::draw::Draw;
use karve_numerics::tensor::Dtype;
use tree_sitter::Node;

/// The arguments of a call.
struct PyCallArgs {
    positional: Vec<PyValue>,
    named: Vec<(String, PyValue)>,
}

impl PyCallArgs {
    /// An argument by name, or else by position.
    fn get(&self, name: &str, position: usize) -> Option<&PyValue> {
        self.named(name).or_else(|| self.positional.get(position))
    }

    fn named(&self, name: &str) -> Option<&PyValue> {
        self.named.iter().find(|(own, _)| own == name).map(|(_, value)| value)
    }

    /// The type that the call asks for.
    fn dtype(&self, usual: Dtype) -> Option<Dtype> {
        match self.named("dtype") {
            None | Some(PyValue::None) => Some(usual),
            Some(PyValue::Type(dtype)) => Some(*dtype),
            Some(_) => None,
        }
    }

    /// The extents that the call asks for, from one argument on.
    fn sizes(&self, from: usize) -> impl Iterator<Item = &PyValue> {
        self.named("size").into_iter().chain(self.positional.iter().skip(from))
    }
}

impl<'t> StaticReader<'t> {
    pub(super) fn attribute(&mut self, node: Node<'t>) -> PyValue {
        let text = self.source.slice(node);
        if let Some((_, name)) = text.rsplit_once('.').filter(|(of, _)| is_library(of))
            && let Some(dtype) = dtype_named(name)
        {
            return PyValue::Type(dtype);
        }
        if ["math.pi", "np.pi", "numpy.pi", "torch.pi"].contains(&text) {
            return PyValue::Float(std::f64::consts::PI);
        }
        let (Some(of), Some(name)) =
            (node.child_by_field_name("object"), node.child_by_field_name("attribute"))
        else {
            return self.unknown(node);
        };
        match (self.value(of), self.source.slice(name)) {
            (PyValue::Tensor(tensor), "shape") => shape_value(&tensor),
            (PyValue::Tensor(tensor), "dtype") => PyValue::Type(tensor.dtype),
            (PyValue::Vague(why), "shape") => PyValue::Unknown(why),
            _ => self.unknown(node),
        }
    }

    pub(super) fn call(&mut self, node: Node<'t>) -> PyValue {
        let part = |name| node.child_by_field_name(name);
        let (Some(function), Some(list)) = (part("function"), part("arguments")) else {
            return self.unknown(node);
        };
        if list.kind() != "argument_list" {
            return self.unknown(node);
        }
        let args = self.arguments(list);
        let name = self.source.slice(function).to_owned();
        let made = match name.rsplit_once('.') {
            Some((of, name)) if is_library(of) => made_by(of, name, &args),
            Some((_, method)) => {
                let of = function.child_by_field_name("object");
                let of = of.map(|of| self.value(of));
                of.and_then(|of| method_of(of, method, &args))
            }
            None => plain_call(&name, &args),
        };
        made.unwrap_or_else(|| self.unknown(node))
    }

    fn arguments(&mut self, list: Node<'t>) -> PyCallArgs {
        let positional = self.elements(list);
        let mut named = Vec::new();
        let mut cursor = list.walk();
        for one in list.named_children(&mut cursor).filter(|one| one.kind() == "keyword_argument") {
            let parts = (one.child_by_field_name("name"), one.child_by_field_name("value"));
            if let (Some(name), Some(value)) = parts {
                let value = self.value(value);
                named.push((self.source.slice(name).to_owned(), value));
            }
        }
        PyCallArgs { positional, named }
    }
}

/// Whether functions of this name make tensors.
fn is_library(name: &str) -> bool {
    ["torch", "np", "numpy", "math", "np.random", "numpy.random"].contains(&name)
}

fn shape_value(tensor: &DrawnTensor) -> PyValue {
    PyValue::List(tensor.shape.iter().map(|n| PyValue::Int(*n as i64)).collect())
}

/// A tensor that a function of a library makes.
fn made_by(library: &str, name: &str, args: &PyCallArgs) -> Option<PyValue> {
    let first = args.positional.first();
    let usual = if library.starts_with('n') { Dtype::F64 } else { Dtype::F32 };
    let of = |draw: Draw| drawn(draw, args.dtype(usual)?, args.sizes(0));
    match name {
        "rand" | "random" => of(Draw::Uniform { low: 0.0, high: 1.0 }),
        "randn" | "standard_normal" => of(Draw::Normal { mean: 0.0, sd: 1.0 }),
        "zeros" | "empty" => of(Draw::Zeros),
        "ones" => of(Draw::Constant { value: 1.0 }),
        "full" => {
            let draw = Draw::Constant { value: args.get("fill_value", 1)?.number()? };
            drawn(draw, args.dtype(usual)?, first)
        }
        "randint" => integers(args),
        "rand_like" | "randn_like" | "zeros_like" | "ones_like" => {
            let PyValue::Tensor(like) = first? else {
                return first.map(|other| PyValue::Vague(other.reason()));
            };
            let draw = match name {
                "rand_like" => Draw::Uniform { low: 0.0, high: 1.0 },
                "randn_like" => Draw::Normal { mean: 0.0, sd: 1.0 },
                "zeros_like" => Draw::Zeros,
                _ => Draw::Constant { value: 1.0 },
            };
            let dtype = args.dtype(like.dtype)?;
            Some(PyValue::Tensor(DrawnTensor { dtype, shape: like.shape.clone(), draw }))
        }
        "Size" => first.cloned(),
        "sqrt" => Some(PyValue::Float(first?.number()?.sqrt())),
        "prod" => plain_call("prod", args),
        _ => None,
    }
}

/// `randint(high, size)`, or `randint(low, high, size)`.
fn integers(args: &PyCallArgs) -> Option<PyValue> {
    let has_two = !matches!(args.positional.get(1), None | Some(PyValue::List(_)));
    let (low, high) = match has_two {
        true => (args.get("low", 0)?.clone(), args.get("high", 1)?.clone()),
        false => (PyValue::Int(0), args.get("high", 0)?.clone()),
    };
    match (low, high) {
        (PyValue::Int(low), PyValue::Int(high)) => {
            let draw = Draw::Integers { low, high: high.checked_sub(1)? };
            drawn(draw, args.dtype(Dtype::I64)?, args.sizes(1 + usize::from(has_two)))
        }
        (low, high) => {
            let why = if low.number().is_some() { high } else { low };
            Some(PyValue::Vague(why.reason()))
        }
    }
}

/// A tensor of some extents, given one by one or as a list.
fn drawn<'v>(
    draw: Draw,
    dtype: Dtype,
    sizes: impl IntoIterator<Item = &'v PyValue>,
) -> Option<PyValue> {
    let mut shape = Vec::new();
    for size in sizes {
        let parts = match size {
            PyValue::List(parts) => parts.as_slice(),
            one => std::slice::from_ref(one),
        };
        for part in parts {
            match part {
                PyValue::Int(n) => shape.push(u64::try_from(*n).ok()?),
                PyValue::Unknown(why) | PyValue::Vague(why) => {
                    return Some(PyValue::Vague(why.clone()));
                }
                _ => return None,
            }
        }
    }
    Some(PyValue::Tensor(DrawnTensor { dtype, shape, draw }))
}

/// Methods that convert a tensor to the type of their name.
const CASTS: [&str; 7] = ["float", "double", "half", "bfloat16", "long", "int", "bool"];

/// The tensor in another type. Integers stay what they are; a fraction in an integer does not.
fn cast(tensor: DrawnTensor, dtype: Dtype) -> Option<PyValue> {
    let is_integral = matches!(tensor.draw, Draw::Integers { .. } | Draw::Zeros);
    let is_binary = matches!(tensor.draw, Draw::Integers { low: 0, high: 1 });
    let fits = if dtype == Dtype::Bool { is_binary } else { dtype.is_float() || is_integral };
    fits.then_some(PyValue::Tensor(DrawnTensor { dtype, ..tensor }))
}

/// What a method of a value returns.
fn method_of(of: PyValue, method: &str, args: &PyCallArgs) -> Option<PyValue> {
    let first = args.positional.first();
    match (of, method) {
        (of, "cuda" | "cpu" | "contiguous" | "clone" | "detach" | "requires_grad_") => Some(of),
        (PyValue::Vague(why), "to" | "type" | "astype") => Some(PyValue::Vague(why)),
        (PyValue::Vague(why), name) if CASTS.contains(&name) => Some(PyValue::Vague(why)),
        (PyValue::Tensor(tensor), "to" | "type" | "astype") => match args.get("dtype", 0) {
            Some(PyValue::Type(dtype)) => cast(tensor, *dtype),
            // A device.
            Some(PyValue::Str(_)) => Some(PyValue::Tensor(tensor)),
            _ => None,
        },
        (PyValue::Tensor(tensor), "size") => match first {
            None => Some(shape_value(&tensor)),
            Some(PyValue::Int(at)) => {
                let n = tensor.shape.get(usize::try_from(*at).ok()?)?;
                Some(PyValue::Int(*n as i64))
            }
            Some(_) => None,
        },
        (PyValue::Tensor(tensor), name) => {
            let name = CASTS.contains(&name).then_some(name)?;
            cast(tensor, dtype_named(name)?)
        }
        (PyValue::Dict(pairs), "get") => match first? {
            PyValue::Str(key) => {
                let found = pairs.into_iter().find(|(own, _)| own == key);
                found.map(|(_, value)| value).or_else(|| args.positional.get(1).cloned())
            }
            _ => None,
        },
        _ => None,
    }
}

/// What a function without a module returns.
fn plain_call(name: &str, args: &PyCallArgs) -> Option<PyValue> {
    let integer = |one: &PyValue| match one {
        PyValue::Int(n) => Some(*n),
        _ => None,
    };
    match (name, args.positional.first()) {
        ("tuple" | "list", Some(PyValue::List(values))) => Some(PyValue::List(values.clone())),
        ("int", Some(value)) => Some(PyValue::Int(value.number()? as i64)),
        ("float", Some(value)) => Some(PyValue::Float(value.number()?)),
        ("len", Some(PyValue::List(values))) => Some(PyValue::Int(values.len() as i64)),
        ("prod", Some(PyValue::List(values))) => {
            let mut integers = values.iter().map(integer);
            let product = integers.try_fold(1_i64, |product, n| product.checked_mul(n?));
            product.map(PyValue::Int)
        }
        ("dict", None) => Some(PyValue::Dict(args.named.clone())),
        ("max" | "min", Some(_)) => {
            let integers: Vec<i64> = args.positional.iter().map(integer).collect::<Option<_>>()?;
            let found = if name == "max" { integers.iter().max() } else { integers.iter().min() };
            found.copied().map(PyValue::Int)
        }
        _ => None,
    }
}
