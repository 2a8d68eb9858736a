//! Python: types and shapes come from the calls that a command of the project makes.

use super::{ADDED, AddedFiles, ContractTarget};
use crate::detect::contract::{
    self as plan, ContractPlan, ObservedCall, entry_of_python, plan_python,
};
use karve_os::error::{CommandError, ErrorKind, Result, WithContext};
use karve_os::files;
use karve_os::process;
use std::fs;
use std::time::Duration;

/// The program that observes calls; Python imports it by its name.
const OBSERVE: &str = include_str!("../../detect/contract/observe.py");
const OBSERVE_NAME: &str = "sitecustomize.py";

/// How long the command may take, and how much it may report.
const LIMIT: Duration = Duration::from_secs(300);
const REPORT_BYTES_MAX: u64 = 1 << 20;

/// The most cases that are taken from calls.
const CASES_MAX: usize = 4;

/// The contract of a Python function.
pub(super) fn of_python(
    target: &ContractTarget,
    run: Option<&str>,
    earlier: &toml::Table,
) -> Result<(ContractPlan, AddedFiles)> {
    let of_config = earlier.get("commands").and_then(|commands| commands.get("bench")?.as_str());
    let line = run.or(of_config.filter(|line| !line.contains('{'))).ok_or_else(|| {
        CommandError::usage("the types and shapes of a Python function are seen when it is called")
            .hint("name a command that calls it: --run \"python3 bench.py\"")
    })?;
    let calls = observe(target, line)?;
    let (mut args, cases) = plan_python(&calls).map_err(|why| {
        CommandError::new(ErrorKind::Negative, format!("{} cannot be a contract", target.function))
            .cause(why)
            .hint("let --run call it with arrays and numbers, as a contract does")
    })?;
    for arg in &mut args {
        let shape = target.given.shapes.get(&arg.name).cloned();
        arg.shape = shape.or(arg.shape.take());
        arg.value = target.given.values.get(&arg.name).cloned().or(arg.value.take());
    }
    let module = target.file.trim_end_matches(".py").replace('/', ".");
    let added = vec![
        (format!("{ADDED}/entry.py"), entry_of_python(&module, &target.function)),
        (
            format!("{ADDED}/reference.py"),
            format!("{}\n\nreference_fn = {}\n", target.source.trim_end(), target.function),
        ),
    ];
    let interpreter = line.split_whitespace().next().filter(|word| word.contains("python"));
    let plan = ContractPlan {
        op: target.function.clone(),
        backend: if target.source.contains("torch") { "pytorch" } else { "numpy" }.into(),
        editable: target.file.clone(),
        interpreter: Some(interpreter.unwrap_or("python3").to_owned()),
        reduction: plan::reduction_of(&args),
        args,
        cases: cases.into_iter().take(CASES_MAX).collect(),
        ..ContractPlan::default()
    };
    Ok((plan, added))
}

/// Runs the command, and returns the calls that it made.
fn observe(target: &ContractTarget, line: &str) -> Result<Vec<ObservedCall>> {
    let out = target.out();
    let report = out.join("calls");
    fs::write(out.join(OBSERVE_NAME), OBSERVE)
        .context(|| "cannot write to the scratch directory".into())?;
    let text = |path: &std::path::Path| path.to_string_lossy().into_owned();
    let mut path = text(&out);
    if let Ok(earlier) = std::env::var("PYTHONPATH") {
        path = format!("{path}:{earlier}");
    }
    let command = target
        .command(line)?
        .env("PYTHONPATH", path)
        .env("KARVE_OBSERVE_FILE", text(&files::settled(&target.dir.join(&target.file))))
        .env("KARVE_OBSERVE_NAME", target.function.as_str())
        .env("KARVE_OBSERVE_OUT", text(&report))
        .limit(LIMIT);
    let run = process::run(&command, &target.stop)?;
    let calls = files::read_text(&report, REPORT_BYTES_MAX).unwrap_or_default();
    let calls: Vec<ObservedCall> =
        calls.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    if !calls.is_empty() {
        return Ok(calls);
    }
    let why = match run.exit.success() {
        true => format!("\"{line}\" ended without a call of {}", target.function),
        false => process::excerpt(&run),
    };
    Err(CommandError::new(ErrorKind::Negative, "no call of the function was seen")
        .cause(why)
        .hint("name a command that calls it: --run \"python3 bench.py\""))
}
