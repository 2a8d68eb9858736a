//! C and C++: shapes come from calls on watched memory.

use super::{ADDED, AddedFiles, ContractTarget};
use crate::detect::contract::{
    self as plan, ContractPlan, PROBE_SIZES, TensorUse, entry_of_c, plan_native,
};
use karve_audit::{Param, ParamType};
use karve_harness::placeholders::quote;
use karve_harness::runner::{ProbeArg, ProbeRequest, ProbedTensor, probe};
use karve_numerics::contract::{TouchedExtent, fit_shape};
use karve_os::error::{CommandError, ErrorKind, Result, WithContext};
use karve_os::process::{self, ReadableTree};
use std::fs;
use std::path::Path;
use std::time::Duration;

/// How long the compiler may take.
const BUILD_LIMIT: Duration = Duration::from_secs(300);

/// The contract of a C or C++ function.
pub(super) fn of_c(
    target: &ContractTarget,
    flags: &str,
    is_cpp: bool,
) -> Result<(ContractPlan, AddedFiles)> {
    let (entry, result) = entry_of_c(&target.function, &target.signature, is_cpp);
    let end = if is_cpp { "cpp" } else { "c" };
    let compiler = if is_cpp { "c++" } else { "cc" };
    let name = crate::detect::name_of(&target.file);
    let folder = target.file.rsplit_once('/').map_or(".", |(folder, _)| folder);
    let copy = format!("{ADDED}/reference/{name}");
    let line = |file: &str, into: &str, entry: &str| {
        format!("{compiler} {flags} -I{folder} -shared -fPIC -o {into} {file} {entry} -lm")
    };
    let added_entry = format!("{ADDED}/entry.{end}");
    let build = format!(
        "mkdir -p build/karve && {} && {}",
        line(&target.file, "build/karve/kernel.so", &added_entry),
        line(&copy, "build/karve/reference.so", &added_entry),
    );
    let trial = target.out().join(format!("entry.{end}"));
    let library = target.out().join("kernel.so");
    fs::write(&trial, &entry).context(|| format!("cannot write {}", trial.display()))?;
    let try_build =
        line(&target.file, &quote(&library.to_string_lossy()), &quote(&trial.to_string_lossy()));
    compile(target, &try_build)?;
    let uses = uses(target, &library)?;
    let mut args = plan_native(&target.signature, &target.given, &uses);
    args.extend(result);
    let plan = ContractPlan {
        op: target.function.clone(),
        backend: if is_cpp { "cpp" } else { "c" }.into(),
        editable: target.file.clone(),
        build: Some(build),
        reduction: plan::reduction_of(&args),
        args,
        ..ContractPlan::default()
    };
    Ok((plan, vec![(added_entry, entry), (copy, target.source.clone())]))
}

fn compile(target: &ContractTarget, line: &str) -> Result<()> {
    let run = process::run(&target.command(line)?.limit(BUILD_LIMIT), &target.stop)?;
    if run.exit.success() {
        return Ok(());
    }
    Err(CommandError::new(ErrorKind::Negative, "the kernel does not compile on its own")
        .cause(format!("{line}\n{}", process::excerpt(&run)))
        .hint("give include directories and libraries with --flags \"-O3 -Iinclude\""))
}

/// How the function uses its tensors, from the user or from calls.
fn uses(target: &ContractTarget, library: &Path) -> Result<Vec<TensorUse>> {
    let sizes = plan::sizes_of(&target.signature, &target.given);
    if sizes.len() > PROBE_SIZES[0].len() {
        return Err(CommandError::usage("the function has too many sizes")
            .hint("give the value of some with --value NAME=EXPRESSION"));
    }
    let mut reports = Vec::new();
    for values in &PROBE_SIZES {
        let request = ProbeRequest {
            library: library.to_owned(),
            entry: plan::ENTRY.into(),
            args: probe_args(target, &sizes, values)?,
            tree: ReadableTree {
                root: target.dir.clone(),
                more: vec![library.to_owned()],
                ..ReadableTree::default()
            },
        };
        let own = std::env::current_exe().context(|| "cannot find karve itself".into())?;
        reports.push((&values[..sizes.len()], probe(&own, &request, &target.stop)?));
    }
    let tensors = target.signature.params.iter().filter_map(|param| match param.kind {
        ParamType::Tensor { dtype, .. } => Some((&param.name, dtype.bytes() as u64)),
        ParamType::Scalar(_) | ParamType::Unknown => None,
    });
    let seen = tensors.enumerate().map(|(at, (name, element_bytes))| {
        let calls = reports.iter().map(|(values, report)| {
            (values.to_vec(), report.tensors.get(at).copied().unwrap_or_default())
        });
        SeenTensor { name, element_bytes, calls: calls.collect() }
    });
    seen.map(|tensor| tensor.tensor_use(target, &sizes)).collect()
}

/// A tensor, and how each call used it, with the sizes of the call.
struct SeenTensor<'a> {
    name: &'a String,
    element_bytes: u64,
    calls: Vec<(Vec<u64>, ProbedTensor)>,
}

impl SeenTensor<'_> {
    fn tensor_use(&self, target: &ContractTarget, sizes: &[String]) -> Result<TensorUse> {
        let of_call = |(sizes, seen): &(Vec<u64>, ProbedTensor)| {
            let (above, most) = (seen.bytes_above, seen.bytes_max);
            let elements = above / self.element_bytes + 1..=most / self.element_bytes;
            TouchedExtent { sizes: sizes.clone(), elements }
        };
        let calls: Vec<TouchedExtent> = self.calls.iter().map(of_call).collect();
        let fitted = || {
            let shape = fit_shape(&calls)?;
            let names: Vec<String> = shape.iter().map(|size| sizes[*size].clone()).collect();
            Some(if names.is_empty() { vec!["1".to_owned()] } else { names })
        };
        let given = target.given.shapes.get(self.name).cloned();
        let shape = given.or_else(fitted).ok_or_else(|| unknown_shape(self.name, &calls, sizes))?;
        let kind = match self.calls.last().map(|(_, seen)| *seen).unwrap_or_default() {
            _ if target.given.inout.contains(self.name) => "inout",
            ProbedTensor { is_written: false, .. } => "input",
            ProbedTensor { is_state: true, .. } => "inout",
            _ => "output",
        };
        Ok(TensorUse { shape, kind })
    }
}

fn unknown_shape(name: &str, calls: &[TouchedExtent], sizes: &[String]) -> CommandError {
    let seen = calls.iter().map(|call| {
        let sizes = sizes.iter().zip(&call.sizes).map(|(name, size)| format!("{name}={size}"));
        let sizes = sizes.collect::<Vec<_>>().join(",");
        match call.elements.is_empty() {
            true => format!("with {sizes} it is not touched"),
            false => format!("with {sizes} it reaches {} elements", call.elements.end()),
        }
    });
    CommandError::new(ErrorKind::Negative, format!("the shape of {name} is not a product of sizes"))
        .cause(seen.collect::<Vec<_>>().join("; "))
        .hint(format!("give it with --shape {name}=n,m, or sizes such as strides with --value"))
}

fn probe_args(target: &ContractTarget, sizes: &[String], values: &[u64]) -> Result<Vec<ProbeArg>> {
    let size = |name: &str| sizes.iter().position(|size| size == name).map(|at| values[at] as f64);
    let scalar = |param: &Param| match target.given.values.get(&param.name) {
        None => Ok(size(&param.name).unwrap_or_else(|| plan::probe_value(&param.name))),
        Some(text) => {
            let wrong = |why: String| {
                CommandError::usage(format!("--value {}={text} is not a number", param.name))
                    .cause(why)
                    .hint(format!("use the sizes of the function: {}", sizes.join(", ")))
            };
            let parsed = karve_numerics::expr::parse_expr(text);
            let parsed = parsed.map_err(|error| wrong(error.to_string()))?;
            parsed.evaluate(&size).map_err(wrong)
        }
    };
    let mut args = Vec::new();
    for param in &target.signature.params {
        args.push(match param.kind {
            ParamType::Tensor { dtype, is_mut } => ProbeArg::Tensor { dtype, is_mut },
            ParamType::Scalar(dtype) if dtype.is_float() => {
                let single = dtype.bytes() == 4;
                ProbeArg::Float { value: scalar(param)?, single }
            }
            ParamType::Scalar(_) => ProbeArg::Integer(scalar(param)? as i64),
            ParamType::Unknown => ProbeArg::Integer(0),
        });
    }
    if let Some((ParamType::Scalar(dtype), _)) = target.signature.result {
        args.push(ProbeArg::Tensor { dtype, is_mut: true });
    }
    Ok(args)
}
