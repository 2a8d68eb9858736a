//! Asks the reference's module for its arguments, as KernelBench's tasks define them: types and
//! extents come from `get_inputs`, and values only from karve.

use super::python::command_of;
use super::setup::RunnerSetup;
use karve_numerics::contract::{Arg, ArgKind, Kernel, PythonStyle, Reference};
use karve_numerics::draw::Draw;
use karve_numerics::tensor::Dtype;
use karve_os::error::{CommandError, Result};
use karve_os::process::{Exit, Program};
use karve_os::{process, sandbox};
use serde::Deserialize;
use std::path::Path;
use std::time::Duration;

/// The program that asks.
const ASKS: &str = include_str!("inputs.py");

/// How long the module may take to report its inputs.
const LIMIT: Duration = Duration::from_secs(120);

/// Maximum number of arguments, as in `args`.
const ARGS_MAX: usize = 24;

/// What the module reports.
#[derive(Debug, Deserialize)]
struct ModuleSignature {
    inputs: Vec<ModuleArg>,
    outputs: Vec<ModuleArg>,
}

#[derive(Debug, Deserialize)]
struct ModuleArg {
    name: String,
    dtype: String,
    /// Of a tensor.
    #[serde(default)]
    shape: Vec<u64>,
    /// Of a number.
    value: Option<String>,
    /// The smallest and the largest element.
    low: Option<f64>,
    high: Option<f64>,
}

/// The arguments that the reference of a tree names.
pub fn ask_inputs(terms: &RunnerSetup, tree: &Path) -> Result<Vec<Arg>> {
    let dir = terms.place(tree);
    let (Reference::Python { path, .. }, Kernel::Python { style, .. }) =
        (&terms.contract.reference, &terms.contract.kernel)
    else {
        return Err(cannot("only a Python module can report its arguments"));
    };
    let mut command = command_of(terms, &dir, "reference", "inputs.py", ASKS)?;
    let device = terms.contract.modules.device.as_deref().unwrap_or("cpu");
    let style = match style {
        PythonStyle::Functions => "functions",
        PythonStyle::Models => "models",
    };
    if let Program::Argv(args) = &mut command.program {
        let most = terms.contract.call_bytes_max().to_string();
        args.extend([dir.join(path).into(), style.into(), device.into(), most.into()]);
    }
    let limit = terms.limit.min(LIMIT);
    command.memory_bytes = sandbox::most_memory();
    let run = process::run(&command.limit(limit), &terms.stop)?;
    if run.exit == Exit::TimedOut {
        let seconds = limit.as_secs();
        return Err(cannot(&format!("it did not report them within {seconds} s")));
    }
    if !run.exit.success() {
        let said = karve_os::process::excerpt(&run);
        return Err(cannot(&said.replace(&format!("{}/", dir.display()), "")));
    }
    let text = run.stdout.text();
    let reported = parse_inputs(text.lines().last().unwrap_or_default());
    reported.and_then(|found| declared(found, &terms.contract.args)).map_err(|why| cannot(&why))
}

/// The arguments as the project declares them, which says what they are drawn from, and the
/// results as the module has them. The types and extents of both must be the same.
fn declared(found: Vec<Arg>, args: &[Arg]) -> std::result::Result<Vec<Arg>, String> {
    if args.is_empty() {
        return Ok(found);
    }
    let (outputs, inputs): (Vec<Arg>, Vec<Arg>) = found.into_iter().partition(Arg::is_written);
    if inputs.len() != args.len() {
        let (n, of) = (args.len(), inputs.len());
        return Err(format!("contract.args declares {n} arguments, and it has {of}"));
    }
    for (arg, other) in args.iter().zip(&inputs) {
        let fits = match (&arg.kind, &other.kind) {
            (ArgKind::Scalar { .. }, ArgKind::Scalar { .. }) => true,
            (ArgKind::Input { shape, .. }, ArgKind::Input { shape: of, .. }) => {
                shape == of && arg.dtype == other.dtype
            }
            _ => false,
        };
        if !fits {
            return Err(format!("its argument `{}` is not what contract.args declares", arg.name));
        }
    }
    Ok(args.iter().cloned().chain(outputs).collect())
}

/// The arguments in the line that a module reports.
pub fn parse_inputs(line: &str) -> std::result::Result<Vec<Arg>, String> {
    args_of(serde_json::from_str(line).map_err(|error| error.to_string())?)
}

fn args_of(reported: ModuleSignature) -> std::result::Result<Vec<Arg>, String> {
    let mut args: Vec<Arg> = Vec::new();
    let inputs = reported.inputs.into_iter().map(|one| (one, true));
    let outputs = reported.outputs.into_iter().map(|one| (one, false));
    for (one, is_input) in inputs.chain(outputs) {
        let known = Dtype::parse(&one.dtype);
        let dtype = known.ok_or_else(|| format!("the type {} is unknown", one.dtype))?;
        let draw = draw_of(dtype, &one);
        let shape = one.shape.iter().map(u64::to_string).collect();
        let kind = match (one.value, is_input) {
            (Some(value), true) => ArgKind::Scalar { value, fixed: false },
            (None, true) => ArgKind::Input { shape, draw },
            (None, false) => ArgKind::Output { shape },
            (Some(_), false) => return Err("a result is a number, not a tensor".into()),
        };
        let taken = args.iter().any(|arg| arg.name == one.name);
        let name = match taken {
            true => format!("{}_{}", one.name, args.len()),
            false => one.name,
        };
        args.push(Arg { name, dtype, kind });
    }
    if args.len() > ARGS_MAX {
        return Err(format!("there are more than {ARGS_MAX} inputs and results"));
    }
    match args.iter().any(Arg::is_written) {
        true => Ok(args),
        false => Err("it has no results".into()),
    }
}

/// The distribution of an input: integers within the observed range, numbers from 0 to 1 if only
/// such were observed, and otherwise normally distributed ones.
fn draw_of(dtype: Dtype, one: &ModuleArg) -> Draw {
    let (low, high) = (one.low.unwrap_or(-1.0), one.high.unwrap_or(1.0));
    if dtype == Dtype::Bool {
        return Draw::Integers { low: 0, high: 1 };
    }
    if !dtype.is_float() {
        let (low, high) = (low as i64, high as i64);
        return Draw::Integers { low, high };
    }
    match low >= 0.0 && high <= 1.0 {
        true => Draw::Uniform { low: 0.0, high: 1.0 },
        false => Draw::Normal { mean: 0.0, sd: 1.0 },
    }
}

fn cannot(why: &str) -> CommandError {
    CommandError::usage("the reference does not report its inputs")
        .cause(why)
        .hint("fix get_inputs in the file of contract.reference.python, or write contract.args")
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = r#"{"inputs": [{"name": "x", "dtype": "f32", "shape": [4, 2], "low": -1,
        "high": 2}], "outputs": [{"name": "out", "dtype": "f32", "shape": [4]}]}"#;

    fn input(dtype: Dtype, shape: [&str; 2]) -> Arg {
        let shape = shape.map(str::to_owned).to_vec();
        let kind = ArgKind::Input { shape, draw: Draw::Uniform { low: -1.0, high: 2.0 } };
        Arg { name: "values".into(), dtype, kind }
    }

    #[test]
    fn declared_arguments_say_how_they_are_drawn_and_must_fit() {
        let found = || parse_inputs(LINE).unwrap();
        assert_eq!(declared(found(), &[]), Ok(found()));
        let own = input(Dtype::F32, ["4", "2"]);
        let all = declared(found(), std::slice::from_ref(&own)).unwrap();
        assert_eq!(all, [own, found()[1].clone()]);
        for other in [input(Dtype::F16, ["4", "2"]), input(Dtype::F32, ["4", "3"])] {
            let why = declared(found(), &[other]).unwrap_err();
            assert_eq!(why, "its argument `values` is not what contract.args declares");
        }
        let two = [input(Dtype::F32, ["4", "2"]), input(Dtype::F32, ["4", "2"])];
        let why = declared(found(), &two).unwrap_err();
        assert_eq!(why, "contract.args declares 2 arguments, and it has 1");
    }
}
