//! The arguments of a Python function, from calls that were observed.

use super::PlannedArg;
use karve_numerics::tensor::Dtype;
use serde::Deserialize;

/// Names for extents, in the order in which they appear.
const SYMBOLS: [&str; 12] = ["M", "N", "K", "L", "P", "Q", "R", "S", "T", "U", "V", "W"];

/// One call, as `observe.py` reports it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct ObservedCall {
    /// The arguments, in order.
    pub args: Vec<ObservedValue>,
    /// The results, in order.
    pub results: Vec<ObservedValue>,
}

/// An argument or a result.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct ObservedValue {
    /// Its name.
    pub name: String,
    /// The type of a tensor's elements, or of a number.
    pub dtype: String,
    /// The extents of a tensor.
    pub shape: Option<Vec<u64>>,
    /// The value of a number.
    pub value: Option<f64>,
    /// The smallest and the largest element of an integer tensor.
    pub range: Option<(i64, i64)>,
    /// The call changed it.
    pub changed: bool,
}

/// The arguments that explain the calls, and the calls as cases. Extents that are equal in every
/// call are one parameter.
pub fn plan_python(calls: &[ObservedCall]) -> Result<(Vec<PlannedArg>, Vec<String>), String> {
    let first = calls.first().ok_or("the function was not called")?;
    let is_alike = |call: &&ObservedCall| layout(call) == layout(first);
    let alike: Vec<&ObservedCall> = calls.iter().filter(is_alike).collect();
    let mut sizes = CallSizes::default();
    let mut args = Vec::new();
    for at in 0..first.args.len() + first.results.len() {
        let values: Vec<&ObservedValue> = alike.iter().map(|call| value_at(call, at)).collect();
        args.push(planned(&values, at < first.args.len(), &mut sizes)?);
    }
    // Numbers come last, so that an integer gets the name of the extent that it is.
    for (at, arg) in args.iter_mut().enumerate().filter(|(_, arg)| arg.kind == "scalar") {
        let values: Vec<&ObservedValue> = alike.iter().map(|call| value_at(call, at)).collect();
        arg.value = Some(scalar(&values, &mut sizes));
    }
    if !args.iter().any(|arg| matches!(arg.kind, "output" | "inout")) {
        return Err("the function returned no array and changed no argument".into());
    }
    Ok((args, sizes.cases(alike.len())))
}

/// What must be equal in two calls to be the same function of sizes.
fn layout(call: &ObservedCall) -> Vec<(&str, Option<usize>)> {
    let values = call.args.iter().chain(&call.results);
    values.map(|one| (one.dtype.as_str(), one.shape.as_ref().map(Vec::len))).collect()
}

fn value_at(call: &ObservedCall, at: usize) -> &ObservedValue {
    call.args.get(at).unwrap_or_else(|| &call.results[at - call.args.len()])
}

fn planned(
    values: &[&ObservedValue],
    is_arg: bool,
    sizes: &mut CallSizes,
) -> Result<PlannedArg, String> {
    let [first, ..] = values else {
        return Err("the function was not called".into());
    };
    let name = first.name.clone();
    let unknown = || format!("{name} is a {}, which a contract does not have", first.dtype);
    let dtype = Dtype::parse(&first.dtype).ok_or_else(unknown)?.name();
    let Some(shape) = &first.shape else {
        return match is_arg {
            true => Ok(PlannedArg { name, kind: "scalar", dtype, ..PlannedArg::default() }),
            false => Err("the function returns a number: let it return an array".into()),
        };
    };
    let kind = match (is_arg, values.iter().any(|one| one.changed)) {
        (false, _) => "output",
        (true, true) => "inout",
        (true, false) => "input",
    };
    let extent = |axis: usize| {
        let of_call = |one: &&ObservedValue| one.shape.as_ref().map_or(1, |shape| shape[axis]);
        values.iter().map(of_call).collect::<Vec<u64>>()
    };
    let shape = (0..shape.len()).map(|axis| sizes.name(extent(axis))).collect();
    let low = values.iter().filter_map(|one| one.range).map(|range| range.0).min();
    let high = values.iter().filter_map(|one| one.range).map(|range| range.1).max();
    let range = low.zip(high).filter(|_| kind != "output");
    Ok(PlannedArg { name, kind, dtype, shape: Some(shape), range, ..PlannedArg::default() })
}

/// A number: the parameter with these values, the same literal in all calls, or that of the first.
fn scalar(values: &[&ObservedValue], sizes: &mut CallSizes) -> String {
    let numbers: Vec<f64> = values.iter().map(|one| one.value.unwrap_or(0.0)).collect();
    let as_size =
        |number: &f64| (number.fract() == 0.0 && *number >= 1.0).then_some(*number as u64);
    let column: Option<Vec<u64>> = numbers.iter().map(as_size).collect();
    if let Some(name) = column.and_then(|column| sizes.known(&column)) {
        return name;
    }
    let first = numbers.first().copied().unwrap_or(0.0);
    format!("{first}")
}

/// The parameters of the calls: for each name, its value in every call.
#[derive(Default)]
struct CallSizes(Vec<(String, Vec<u64>)>);

impl CallSizes {
    fn known(&self, column: &[u64]) -> Option<String> {
        self.0.iter().find(|(_, known)| known == column).map(|(name, _)| name.clone())
    }

    /// The name of an extent with these values; 1 everywhere is no parameter.
    fn name(&mut self, column: Vec<u64>) -> String {
        if column.iter().all(|extent| *extent == 1) {
            return "1".into();
        }
        if let Some(name) = self.known(&column) {
            return name;
        }
        let n = self.0.len();
        let name = SYMBOLS.get(n).map_or_else(|| format!("D{n}"), |name| (*name).to_owned());
        self.0.push((name.clone(), column));
        name
    }

    /// The calls as cases, each once.
    fn cases(&self, n: usize) -> Vec<String> {
        let mut cases: Vec<String> = Vec::new();
        for at in 0..n {
            let params = self.0.iter().map(|(name, values)| format!("{name}={}", values[at]));
            let case = params.collect::<Vec<_>>().join(",");
            if !case.is_empty() && !cases.contains(&case) {
                cases.push(case);
            }
        }
        cases
    }
}
