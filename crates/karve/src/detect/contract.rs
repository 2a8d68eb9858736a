//! What `karve contract` writes: a contract for a function that a project already has.
//!
//! ```text
//! C, C++   types from the source, shapes from calls on watched memory
//! Rust     types from the source, shapes from the user
//! Python   types and shapes from the calls that a command of the project makes
//! ```

mod entry;
mod observed;
mod render;

pub use entry::{ENTRY, entry_of_c, entry_of_python, entry_of_rust};
pub use observed::{ObservedCall, ObservedValue, plan_python};
pub use render::render_contract;

use karve_audit::{ParamType, Signature};
use karve_numerics::tensor::Dtype;
use std::collections::BTreeMap;

/// Sizes of the calls that show shapes: different primes, so that a product has one explanation.
pub const PROBE_SIZES: [[u64; 8]; 2] =
    [[53, 71, 97, 61, 83, 43, 67, 89], [211, 149, 307, 181, 263, 127, 229, 167]];

/// The value of a size in a case by the rank of the largest tensor, and in a hidden case.
const CASE_SIZES: [(u64, u64); 3] = [(262_144, 100_003), (256, 101), (64, 33)];

/// Names of the small number that keeps a division from failing.
const EPSILON_NAMES: [&str; 3] = ["eps", "epsilon", "tiny"];

/// A contract that is to be written.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct ContractPlan {
    /// The operation.
    pub op: String,
    /// The backend.
    pub backend: String,
    /// The file that a candidate may change.
    pub editable: String,
    /// The build command; none for Python.
    pub build: Option<String>,
    /// The interpreter of a Python file.
    pub interpreter: Option<String>,
    /// The arguments.
    pub args: Vec<PlannedArg>,
    /// Terms summed for one element.
    pub reduction: Option<String>,
    /// The cases.
    pub cases: Vec<String>,
    /// The hidden cases.
    pub hidden: Vec<String>,
}

/// One argument, as `karve.toml` has it.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct PlannedArg {
    /// Its name.
    pub name: String,
    /// `scalar`, `input`, `output` or `inout`.
    pub kind: &'static str,
    /// The type of its elements.
    pub dtype: &'static str,
    /// The extents of a tensor.
    pub shape: Option<Vec<String>>,
    /// The value of a scalar.
    pub value: Option<String>,
    /// The smallest and the largest integer of a tensor.
    pub range: Option<(i64, i64)>,
}

/// What the user said about arguments, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GivenArgs {
    /// Shapes.
    pub shapes: BTreeMap<String, Vec<String>>,
    /// Values of scalars.
    pub values: BTreeMap<String, String>,
    /// Tensors that are read and written.
    pub inout: Vec<String>,
}

impl GivenArgs {
    /// From the words of `--shape x=n,m` and `--value lda=n`.
    pub fn parse(shapes: &[String], values: &[String]) -> Result<Self, String> {
        let pair = |text: &String| {
            let (name, given) =
                text.split_once('=').ok_or_else(|| format!("{text} has no \"=\""))?;
            match name.trim().is_empty() || given.trim().is_empty() {
                true => Err(format!("{text} lacks a name or a value")),
                false => Ok((name.trim().to_owned(), given.trim().to_owned())),
            }
        };
        let parts = |text: String| text.split(',').map(|part| part.trim().to_owned()).collect();
        let mut given = Self::default();
        for text in shapes {
            let (name, shape) = pair(text)?;
            given.shapes.insert(name, parts(shape));
        }
        for text in values {
            let (name, value) = pair(text)?;
            given.values.insert(name, value);
        }
        Ok(given)
    }

    /// A name that is no argument of the function.
    pub fn unknown(&self, signature: &Signature) -> Option<&str> {
        let known = |name: &str| {
            name == entry::RESULT || signature.params.iter().any(|param| param.name == name)
        };
        let names = self.shapes.keys().chain(self.values.keys()).chain(&self.inout);
        names.map(String::as_str).find(|name| !known(name))
    }
}

/// The sizes of a function: its integers, except those that have a value.
pub fn sizes_of(signature: &Signature, given: &GivenArgs) -> Vec<String> {
    let is_size = |param: &&karve_audit::Param| {
        matches!(param.kind, ParamType::Scalar(dtype) if !dtype.is_float() && dtype != Dtype::Bool)
            && !given.values.contains_key(&param.name)
    };
    signature.params.iter().filter(is_size).map(|param| param.name.clone()).collect()
}

/// How a function of a shared object uses a tensor: its shape, and whether it writes to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorUse {
    /// The extents.
    pub shape: Vec<String>,
    /// `input`, `output` or `inout`.
    pub kind: &'static str,
}

/// The arguments of a native function, from its signature and the use of its tensors in order.
pub fn plan_native(
    signature: &Signature,
    given: &GivenArgs,
    uses: &[TensorUse],
) -> Vec<PlannedArg> {
    let mut uses = uses.iter();
    let planned = |param: &karve_audit::Param| {
        let name = param.name.clone();
        match param.kind {
            ParamType::Scalar(dtype) => {
                let value = given.values.get(&name).cloned();
                let value = value.unwrap_or_else(|| scalar_value(&name, dtype));
                let (kind, value) = ("scalar", Some(value));
                PlannedArg { name, kind, dtype: dtype.name(), value, ..PlannedArg::default() }
            }
            ParamType::Tensor { dtype, .. } => {
                let tensor = uses.next();
                let shape = tensor.map(|tensor| tensor.shape.clone());
                let kind = tensor.map_or("input", |tensor| tensor.kind);
                PlannedArg { name, kind, dtype: dtype.name(), shape, ..PlannedArg::default() }
            }
            ParamType::Unknown => PlannedArg::default(),
        }
    };
    signature.params.iter().map(planned).collect()
}

/// The value of a scalar that the user did not give: a size is a parameter of the case.
pub fn scalar_value(name: &str, dtype: Dtype) -> String {
    match dtype {
        Dtype::Bool => "1".into(),
        dtype if !dtype.is_float() => name.to_owned(),
        _ if EPSILON_NAMES.contains(&name) => "1/100000".into(),
        _ => "3/4".into(),
    }
}

/// The number of a scalar in the calls that show shapes.
pub fn probe_value(name: &str) -> f64 {
    if EPSILON_NAMES.contains(&name) { 1e-5 } else { 0.75 }
}

/// What is summed for one element: a parameter that is in an input and in no result, or else the
/// last extent of the first matrix; nothing if all are vectors of the same length.
pub fn reduction_of(args: &[PlannedArg]) -> Option<String> {
    let shapes = |kinds: [&'static str; 2]| {
        let kept = args.iter().filter(move |arg| kinds.contains(&arg.kind));
        kept.filter_map(|arg| arg.shape.as_ref())
    };
    let is_left_out =
        |name: &&String| !shapes(["output", "inout"]).flatten().any(|other| other == *name);
    let left_out = shapes(["input", "inout"]).flatten().find(is_left_out);
    let last = || shapes(["input", "inout"]).find(|shape| shape.len() > 1)?.last();
    left_out.or_else(last).cloned()
}

/// A case and a hidden one for these parameters.
pub fn cases_for(sizes: &[String], args: &[PlannedArg]) -> (String, String) {
    let ranks = args.iter().filter_map(|arg| arg.shape.as_ref()).map(Vec::len);
    let rank = ranks.max().unwrap_or(1).clamp(1, CASE_SIZES.len());
    let (usual, hidden) = CASE_SIZES[rank - 1];
    let case = |size: &dyn Fn(usize) -> u64| {
        let params = sizes.iter().enumerate().map(|(at, name)| format!("{name}={}", size(at)));
        params.collect::<Vec<_>>().join(",")
    };
    (case(&|_| usual), case(&|at| hidden - 2 * (at as u64).min(hidden / 4)))
}

/// The names in the shapes and values of arguments, in order: the parameters of a case.
pub fn params_of(args: &[PlannedArg]) -> Result<Vec<String>, String> {
    let mut names = Vec::new();
    for arg in args {
        for text in arg.shape.iter().flatten().chain(&arg.value) {
            let wrong = |error| format!("{} of {}: {error}", text, arg.name);
            let parsed =
                karve_numerics::expr::parse_expr(text).map_err(|error| wrong(error.to_string()))?;
            for name in parsed.names() {
                if !names.iter().any(|known| known == name) {
                    names.push(name.to_owned());
                }
            }
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests;
