//! The contract of a file: which function karve calls, with which arguments, and what is correct.

use super::contract_file::{
    ArgKindName, ArgTable, ContractTable, DeviceName, DrawValue, OutputsName, SetupTable,
};
use super::file::ConfigFile;
use super::source::ConfigSource;
use super::values::Scalar;
use karve_core::charter::Metric;
use karve_numerics::case::Case;
use karve_numerics::contract::{
    Arg, ArgKind, CallWork, Contract, DeviceTiming, Kernel, Precision, PythonRuntime, PythonStyle,
    Reference, SetupCall,
};
use karve_numerics::draw::{Draw, InputPattern};
use karve_numerics::tensor::Dtype;
use karve_os::error::{CommandError, Result};
use karve_os::text::{shown, suggestion};

/// Without a contract the project itself must test, measure and print its results.
pub(super) fn check_presence(source: &ConfigSource<'_>, file: &ConfigFile) -> Result<()> {
    if file.contract.is_some() {
        return Ok(());
    }
    let commands = &file.commands;
    let nothing = commands.test.is_none() && commands.bench.is_none() && commands.build.is_none();
    let tables = [
        (nothing, "commands", " with test, bench"),
        (file.output.is_none(), "output", " with format"),
        (file.metric.is_none(), "metric", " with name"),
    ];
    for (missing, table, keys) in tables {
        if missing {
            let message = format!("the table [{table}] is missing");
            let hint = format!(
                "add [{table}]{keys} to {}, or run \"karve init\"; not needed with a [contract]",
                source.name
            );
            return Err(source.error(source.last_line(), message).hint(hint));
        }
    }
    for (key, missing) in [("test", commands.test.is_none()), ("bench", commands.bench.is_none())] {
        if missing {
            let message = format!("the key `{key}` is missing in [commands]");
            return Err(source
                .error_at("commands", message)
                .hint(format!("add {key} = \"…\" in [commands]")));
        }
    }
    Ok(())
}

/// The contract of a file, checked on every case.
pub(super) fn contract_of(
    source: &ConfigSource<'_>,
    file: &ConfigFile,
    cases: &[Case],
    metric: &Metric,
) -> Result<Option<Box<Contract>>> {
    let Some(table) = &file.contract else {
        return Ok(None);
    };
    refuse_commands(source, file, metric)?;
    check_inputs(source, table, cases)?;
    let mut args = Vec::new();
    for (index, arg) in table.args.iter().enumerate() {
        args.push(arg_of(source, arg, source.item_line("contract.args", index))?);
    }
    let mut hostile = Vec::new();
    for value in &table.hostile {
        let line = source.line("contract.hostile");
        hostile.push(draw_of(source, value, line, "contract.hostile")?);
    }
    let contract = Contract {
        kernel: kernel_of(source, table)?,
        args,
        reference: reference_of(source, table)?,
        accuracy: table.accuracy_rules(),
        reduction: table.reduction.as_ref().map(|Scalar(text)| text.clone()),
        deterministic: table.deterministic.unwrap_or(true),
        threads: table.threads.unwrap_or(1),
        hostile,
        mixture: table.mixture.clone().unwrap_or_else(|| InputPattern::ALL.to_vec()),
        shapes: table.shapes.unwrap_or_default(),
        modules: modules_of(source, table)?,
        work: CallWork {
            flops: table.flops.as_ref().map(|Scalar(text)| text.clone()),
            bytes: table.bytes.as_ref().map(|Scalar(text)| text.clone()),
        },
        setup: setup_of(source, table)?,
        timing: timing_of(source, table)?,
        undeclared: undeclared_in(table),
    };
    check(source, &contract, cases)?;
    Ok(Some(Box::new(contract)))
}

/// The inputs whose draw the file leaves to karve.
fn undeclared_in(table: &ContractTable) -> Vec<String> {
    let drawn = |arg: &&ArgTable| matches!(arg.kind, ArgKindName::Input | ArgKindName::Inout);
    let left = table.args.iter().filter(drawn).filter(|arg| arg.draw.is_none());
    left.map(|arg| arg.name.clone()).collect()
}

/// Arguments are either declared, or requested from a Python reference.
fn check_inputs(source: &ConfigSource<'_>, table: &ContractTable, cases: &[Case]) -> Result<()> {
    let asks = table.inputs.is_some();
    if asks && cases.len() > 1 {
        let message = format!(
            "there are {} cases, but `inputs = \"from-module\"` has no parameters: all would be \
            the same",
            cases.len()
        );
        return Err(source.error_at("cases", message).hint(
            "name one case, as in cases.list = [\"as given\"], or write contract.args with \
             shapes over the parameters",
        ));
    }
    if asks && (table.python.is_none() || table.reference.python.is_none()) {
        return Err(source
            .error_at("contract.inputs", "only a Python file can provide inputs")
            .hint(
                "name python in [contract] and in [contract.reference], or write contract.args",
            ));
    }
    let is_written = |arg: &ArgTable| matches!(arg.kind, ArgKindName::Output | ArgKindName::Inout);
    if let Some(at) = table.args.iter().position(|arg| asks && is_written(arg)) {
        let line = source.item_line("contract.args", at);
        let message = "the results of a module are not declared in `args`";
        let hint = "leave only scalars and inputs in contract.args, or remove contract.inputs";
        return Err(source.error(line, message).hint(hint));
    }
    if table.tolerance.is_some() && table.accuracy.is_some() {
        return Err(source
            .error_at("contract.tolerance", "`tolerance` and `accuracy` exclude each other")
            .hint("remove contract.accuracy or contract.tolerance"));
    }
    if !asks && table.args.is_empty() {
        return Err(source
            .error_at("contract", "the key `args` is missing in [contract]")
            .hint("list the arguments in contract.args; see docs/contract.md"));
    }
    Ok(())
}

/// Commands that a contract replaces would be misleading.
fn refuse_commands(source: &ConfigSource<'_>, file: &ConfigFile, metric: &Metric) -> Result<()> {
    let commands = &file.commands;
    let idle = [
        ("commands.test", commands.test.is_some()),
        ("commands.bench", commands.bench.is_some()),
        ("commands.quick.test", commands.quick.test.is_some()),
        ("commands.quick.bench", commands.quick.bench.is_some()),
        ("output", file.output.is_some()),
        ("workspace", file.workspace.is_some()),
    ];
    if let Some((key, _)) = idle.iter().find(|(_, there)| *there) {
        return Err(source.error_at(key, format!("`{key}` is not used with [contract]")).hint(
            format!(
                "under a contract karve tests and measures itself: remove {key}, or [contract]"
            ),
        ));
    }
    if metric.own_clock().is_none() {
        return Err(source
            .error_at("metric", "under a contract karve's own clock is the metric")
            .hint(
                "write name = \"wall_time\" or \"cpu_time\" in [metric], or leave [metric] out",
            ));
    }
    Ok(())
}

fn kernel_of(source: &ConfigSource<'_>, table: &ContractTable) -> Result<Kernel> {
    match (&table.library, &table.python) {
        (Some(path), None) => Ok(Kernel::Library {
            path: inside(source, "contract.library", path)?,
            entry: entry_of(source, "contract", table.entry.as_ref())?,
        }),
        (None, Some(path)) => Ok(Kernel::Python {
            path: inside(source, "contract.python", path)?,
            style: table.style.unwrap_or_default(),
        }),
        (None, None) | (Some(_), Some(_)) => Err(source
            .error_at("contract", "[contract] must name one kernel")
            .hint("write library = \"build/kernel.so\" with its entry, or python = \"kernel.py\"")),
    }
}

/// What prepares for calls. Some inputs must be left for these, or it could do all of the work.
fn setup_of(source: &ConfigSource<'_>, table: &ContractTable) -> Result<Option<SetupCall>> {
    let Some(SetupTable { entry, inputs }) = &table.setup else {
        return Ok(None);
    };
    let refused = |what: String, hint: &str| {
        let hint = format!("{hint}; see \"Setup\" in docs/contract.md");
        Err(source.error_at("contract.setup", what).hint(hint))
    };
    if table.style == Some(PythonStyle::Models) || table.inputs.is_some() {
        let what = "a setup needs `args` and a function".to_owned();
        return refused(what, "a model is prepared by its constructor: remove [contract.setup]");
    }
    let tensors: Vec<&str> = table
        .args
        .iter()
        .filter(|arg| arg.kind == ArgKindName::Input)
        .map(|arg| arg.name.as_str())
        .collect();
    if let Some(name) = inputs.iter().find(|name| !tensors.contains(&name.as_str())) {
        let what = format!("`{}` is not an argument of kind \"input\"", shown(name));
        return refused(what, &format!("those are: {}", tensors.join(", ")));
    }
    let is_left = |arg: &&ArgTable| {
        matches!(arg.kind, ArgKindName::Input | ArgKindName::Inout) && !inputs.contains(&arg.name)
    };
    if !table.args.iter().any(|arg| is_left(&arg)) {
        let what = "the setup gets all inputs, so it could do all of the work".to_owned();
        return refused(what, "leave those out of `inputs` that change from call to call");
    }
    Ok(Some(SetupCall { entry: entry.clone(), inputs: inputs.clone() }))
}

/// What runs Python files, if there are any.
fn modules_of(source: &ConfigSource<'_>, table: &ContractTable) -> Result<PythonRuntime> {
    let has_modules = table.python.is_some() || table.reference.python.is_some();
    let keys = [
        ("style", table.style.is_some()),
        ("interpreter", table.interpreter.is_some()),
        ("outputs", table.outputs.is_some()),
    ];
    for (key, there) in keys {
        if there && !has_modules {
            return Err(source
                .error_at(&format!("contract.{key}"), format!("`{key}` is for Python files"))
                .hint(format!("remove {key} from [contract], or name a python file there")));
        }
    }
    Ok(PythonRuntime {
        interpreter: table.interpreter.clone(),
        device: match table.device {
            None | Some(DeviceName::Cpu) => None,
            Some(DeviceName::Cuda) => Some("cuda".into()),
            Some(DeviceName::Hip) => return Err(no_hip_worker(source)),
        },
        asks: table.inputs.is_some(),
        passes_outputs: table.outputs == Some(OutputsName::Arguments),
    })
}

/// There is no process that calls kernels on AMD devices.
fn no_hip_worker(source: &ConfigSource<'_>) -> CommandError {
    let message = "karve cannot call kernels on an AMD GPU yet: `device = \"hip\"` is reserved";
    source.error_at("contract.device", message).hint(
        "replace [contract] by a test and a benchmark of your own in [commands], which run on any \
        device; docs/karve-toml.md describes them",
    )
}

/// How calls on a device are timed.
fn timing_of(source: &ConfigSource<'_>, table: &ContractTable) -> Result<DeviceTiming> {
    let on_device = table.device == Some(DeviceName::Cuda);
    for (key, there) in [("cache", table.cache.is_some()), ("launch", table.launch.is_some())] {
        if there && !on_device {
            return Err(source
                .error_at(&format!("contract.{key}"), format!("`{key}` is for kernels on a GPU"))
                .hint(format!("remove {key} from [contract], or write device = \"cuda\" there")));
        }
    }
    Ok(DeviceTiming {
        cache: table.cache.unwrap_or_default(),
        launch: table.launch.unwrap_or_default(),
    })
}

fn reference_of(source: &ConfigSource<'_>, table: &ContractTable) -> Result<Reference> {
    let reference = &table.reference;
    let precision = reference.precision.unwrap_or_default();
    let place = "contract.reference";
    match (&reference.library, &reference.command, &reference.python) {
        (Some(path), None, None) => Ok(Reference::Library {
            path: inside(source, "contract.reference.library", path)?,
            entry: entry_of(source, place, reference.entry.as_ref())?,
            precision,
        }),
        (None, Some(line), None) => Ok(Reference::Command { line: line.clone(), precision }),
        (None, None, Some(path)) => Ok(Reference::Python {
            path: inside(source, "contract.reference.python", path)?,
            precision,
        }),
        _ => Err(source
            .error_at(place, "[contract.reference] must name one reference")
            .hint("write library with its entry, command, or python in [contract.reference]")),
    }
}

pub(super) fn entry_of(
    source: &ConfigSource<'_>,
    place: &str,
    entry: Option<&String>,
) -> Result<String> {
    entry.cloned().ok_or_else(|| {
        source
            .error_at(place, format!("the key `entry` is missing in [{place}]"))
            .hint(format!("add entry = \"the name of the function\" in [{place}]"))
    })
}

/// A path that stays in the project.
pub(super) fn inside(source: &ConfigSource<'_>, key: &str, path: &str) -> Result<String> {
    let leaves = path.split('/').any(|part| part == "..");
    if path.starts_with('/') || leaves || path.contains('\0') {
        let message = format!("`{}` is not inside the project", shown(path));
        return Err(source
            .error_at(key, message)
            .hint(format!("write {key} relative to the directory of karve.toml")));
    }
    Ok(path.to_owned())
}

fn arg_of(source: &ConfigSource<'_>, table: &ArgTable, line: usize) -> Result<Arg> {
    let name = shown(&table.name);
    let wrong = |message: String, hint: &str| Err(source.error(line, message).hint(hint));
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if !table.name.chars().all(plain) {
        return wrong(
            format!("`{name}` is not a valid argument name"),
            "use letters, digits and _ in the names of contract.args",
        );
    }
    let dtype = table.dtype;
    let is_scalar = table.kind == ArgKindName::Scalar;
    let is_drawn = matches!(table.kind, ArgKindName::Input | ArgKindName::Inout);
    if is_scalar && table.shape.is_some() {
        return wrong(
            format!("the scalar `{name}` has a shape"),
            "remove its shape in contract.args, or make it an input",
        );
    }
    let shape = table.shape.as_deref().unwrap_or_default();
    if is_scalar != table.value.is_some() || is_scalar != shape.is_empty() {
        return wrong(
            format!("`{name}` is neither a scalar nor a tensor"),
            "give a scalar a value, and a tensor a shape, in contract.args",
        );
    }
    if table.fixed.is_some() && !is_scalar {
        return wrong(
            format!("`{name}` cannot be fixed"),
            "only arguments of kind scalar have `fixed` in contract.args",
        );
    }
    if table.draw.is_some() && !is_drawn {
        return wrong(
            format!("`{name}` cannot have a draw"),
            "only arguments of kind input and inout have a draw in contract.args",
        );
    }
    let shape: Vec<String> = shape.iter().map(|Scalar(text)| text.clone()).collect();
    let draw = match &table.draw {
        Some(value) => draw_of(source, value, line, "contract.args.draw")?,
        None if dtype.is_float() => Draw::Normal { mean: 0.0, sd: 1.0 },
        None if dtype == Dtype::Bool => Draw::Integers { low: 0, high: 1 },
        None => Draw::Integers { low: 0, high: 9 },
    };
    if let Some(complaint) = draw.complaint(dtype).filter(|_| is_drawn) {
        return wrong(
            format!("`{name}` cannot be drawn: {complaint}"),
            "fix its draw in contract.args",
        );
    }
    let kind = match table.kind {
        ArgKindName::Scalar => {
            let value = table.value.as_ref().map(|v| v.0.clone()).unwrap_or_default();
            ArgKind::Scalar { value, fixed: table.fixed.unwrap_or_default() }
        }
        ArgKindName::Input => ArgKind::Input { shape, draw },
        ArgKindName::Output => ArgKind::Output { shape },
        ArgKindName::Inout => ArgKind::InOut { shape, draw },
    };
    Ok(Arg { name: table.name.clone(), dtype, kind })
}

/// Every draw, with its parameters.
const DRAWS: [(&str, &str); 14] = [
    ("normal", "mean and sd"),
    ("uniform", "low and high"),
    ("integers", "low and high"),
    ("permutation", ""),
    ("sparse", "density and of"),
    ("groups", "total and skew"),
    ("constant", "value"),
    ("sorted", "of"),
    ("denormals", ""),
    ("large", "full"),
    ("mixed", ""),
    ("cancelling", ""),
    ("nans", "share and of"),
    ("zeros", ""),
];

/// A draw by its name or with its parameters.
fn draw_of(source: &ConfigSource<'_>, value: &DrawValue, line: usize, key: &str) -> Result<Draw> {
    let of_name = |name: &str| {
        Some(match name {
            "uniform" => Draw::Uniform { low: -1.0, high: 1.0 },
            "normal" => Draw::Normal { mean: 0.0, sd: 1.0 },
            "large" => Draw::Large { full: false },
            _ => return None,
        })
    };
    let named = value.0.as_str().and_then(of_name);
    let read = || {
        let table = match value.0.as_str() {
            Some(name) => serde_json::json!({ "kind": name }),
            None => value.0.clone(),
        };
        serde_json::from_value::<Draw>(table)
    };
    match named {
        Some(draw) => Ok(draw),
        None => read().map_err(|_| {
            let message = format!("`{key}` is not a known draw: {}", shown_draw(&value.0));
            let kind = value.0.get("kind").unwrap_or(&value.0);
            let kind = kind.as_str().unwrap_or_default();
            let names = DRAWS.map(|(name, _)| name);
            let error = source.error(line, message);
            match DRAWS.iter().find(|(name, _)| *name == kind) {
                Some((_, "")) => error.hint(format!("{kind} takes no parameters in karve.toml")),
                Some((_, figures)) => error.hint(format!(
                    "write it as a table in karve.toml, with kind = \"{kind}\" and its {figures}"
                )),
                None => error.hint(suggestion(kind, names, "a draw in karve.toml is one of")),
            }
        }),
    }
}

/// A draw as written, shortened.
fn shown_draw(value: &serde_json::Value) -> String {
    shown(&value.to_string())
}

fn check(source: &ConfigSource<'_>, contract: &Contract, cases: &[Case]) -> Result<()> {
    let line_of = |arg: usize| source.item_line("contract.args", arg);
    let wrong = |line: usize, message: String, hint: &str| -> Result<()> {
        let error: CommandError = source.error(line, message);
        Err(error.hint(hint))
    };
    if contract.written().next().is_none() && !contract.modules.asks {
        return wrong(
            source.line("contract.args"),
            "the kernel writes nothing".into(),
            "name what it writes in contract.args, of kind output or inout",
        );
    }
    for (index, arg) in contract.args.iter().enumerate() {
        if contract.args[..index].iter().any(|other| other.name == arg.name) {
            return wrong(
                line_of(index),
                format!("the argument `{}` is declared twice", arg.name),
                "name each argument once in contract.args",
            );
        }
    }
    for case in cases {
        for precision in [Precision::Native, contract.reference.precision()] {
            if let Err(why) = contract.layout_in(case, precision) {
                let fault = first_unfit(contract, case, precision);
                return wrong(
                    fault.map_or_else(|| source.line("contract"), line_of),
                    format!("the contract does not fit the case `{}`: {why}", case.name),
                    "fix the expressions in contract.args, or the parameters in [cases]",
                );
            }
        }
        if let Err(why) = contract.demand(case) {
            let key = match &contract.work.flops {
                Some(text) if why.contains(&format!("`{text}`")) => "contract.flops",
                _ => "contract.bytes",
            };
            let message = format!("the work of the case `{}` cannot be computed: {why}", case.name);
            let hint = format!("fix {key}, or the parameters in [cases]");
            return Err(source.error_at(key, message).hint(hint));
        }
    }
    Ok(())
}

/// The first argument that does not fit a case.
fn first_unfit(contract: &Contract, case: &Case, precision: Precision) -> Option<usize> {
    (0..contract.args.len()).find(|last| {
        let mut shorter = contract.clone();
        shorter.args.truncate(last + 1);
        shorter.layout_in(case, precision).is_err()
    })
}
