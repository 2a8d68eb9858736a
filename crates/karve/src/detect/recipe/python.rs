//! Kernels in Python: pytest with pytest-benchmark or timing records, scripts, and files that test
//! and measure themselves.

use super::{ProjectRecipe, measured, measured_by};
use crate::detect::kernel::{KernelGuess, KernelLanguage};
use crate::detect::printed::MetricGuess;
use crate::detect::{FileListing, name_of};
use karve_core::charter::Better;
use karve_harness::commands::output::OutputFormat;
use std::collections::BTreeMap;

/// What a file does if it is run, not imported.
const MAIN: &str = "__name__ == ";

/// Short runs; the referee repeats them as often as it needs.
const PYTEST_BENCHMARK: &str = "python3 -m pytest -q --benchmark-only --benchmark-json={out} \
    --benchmark-max-time=0.05 --benchmark-min-rounds=3 --benchmark-warmup=off";

/// Where modules are found: a worktree must not import the checkout that is installed.
fn search_path(files: &FileListing<'_>) -> BTreeMap<String, String> {
    let is_package = |path: &str, depth: usize| {
        path.ends_with("/__init__.py") && path.matches('/').count() == depth
    };
    let in_src = files.iter().any(|(path, _)| path.starts_with("src/") && is_package(path, 2));
    let on_top = files.iter().any(|(path, _)| is_package(path, 1));
    let path = match (in_src, on_top) {
        (true, _) => Some("src"),
        (false, true) => Some("."),
        (false, false) => None,
    };
    path.map(|path| ("PYTHONPATH".to_owned(), path.to_owned())).into_iter().collect()
}

fn is_test(name: &str) -> bool {
    (name.starts_with("test_") && name.ends_with(".py")) || name.ends_with("_test.py")
}

fn is_bench(name: &str) -> bool {
    name.contains("bench") && name.ends_with(".py")
}

/// The tests of a project: by pytest, or by unittest if only that is used.
fn tests(files: &FileListing<'_>) -> Option<(String, String)> {
    let sign = files.first(|name| name == "conftest.py" || is_test(name)).or_else(|| {
        let configured = files.text("pytest.ini").map(|_| "pytest.ini");
        let in_project = files.text("pyproject.toml").filter(|text| text.contains("pytest"));
        configured.or(in_project.map(|_| "pyproject.toml"))
    })?;
    let says = |word: &str| files.iter().any(|(_, text)| text.contains(word));
    let of_tests =
        |word: &str| files.iter().any(|(path, text)| is_test(name_of(path)) && text.contains(word));
    if of_tests("unittest") && !says("pytest") {
        let folder = sign.rsplit_once('/').map_or(".", |(folder, _)| folder);
        let why = format!("{sign} is tested with unittest.");
        return Some((format!("python3 -m unittest discover -s {folder} -t ."), why));
    }
    let why = format!("{sign} shows that it is tested with pytest.");
    Some(("python3 -m pytest -q".to_owned(), why))
}

pub(super) fn pytest(files: &FileListing<'_>, _: &KernelGuess) -> Option<ProjectRecipe> {
    let (test, why) = tests(files)?;
    let env = search_path(files);
    let commands = ProjectRecipe { test, env, why: vec![why], ..ProjectRecipe::default() };
    let uses_fixture = |text: &str| {
        text.contains("(benchmark")
            || text.contains(", benchmark,")
            || text.contains(", benchmark)")
    };
    let fixture = files.iter().find(|(path, text)| {
        path.ends_with(".py") && text.contains("def test_") && uses_fixture(text)
    });
    if let Some((path, _)) = fixture {
        let mut why = commands.why;
        why.push(format!("{path} measures with pytest-benchmark."));
        return Some(ProjectRecipe {
            test: format!("{} --benchmark-disable", commands.test),
            bench: format!("{PYTEST_BENCHMARK} {path}"),
            format: OutputFormat::PytestBenchmark.name(),
            metric: MetricGuess::latency(),
            why,
            ..commands
        });
    }
    let measures = files
        .iter()
        .any(|(_, text)| text.contains("def test_perf") || text.contains("--print-record"));
    if !measures && let Some(script) = files.first(is_bench) {
        let bench = format!("python3 {script} {{case}} {{seed}}");
        return Some(measured(files, ProjectRecipe { bench, ..commands }));
    }
    if !measures {
        return None;
    }
    let mut why = commands.why;
    why.push("Its test_perf tests print timing records.".to_owned());
    Some(ProjectRecipe {
        bench: "python3 -m pytest -q -k test_perf --print-record".to_owned(),
        format: OutputFormat::PytestRecord.name(),
        metric: MetricGuess::of_records(),
        why,
        ..commands
    })
}

/// A benchmark of primus, which writes a table with one row for each shape.
pub(super) fn primus(files: &FileListing<'_>, kernel: &KernelGuess) -> Option<ProjectRecipe> {
    let writes_table = |path: &str, text: &str| {
        is_bench(name_of(path)) && text.contains("\"--output\"") && text.contains("to_csv")
    };
    let fits = |path: &str| name_of(path).contains(kernel.op.as_str());
    let mut benches: Vec<(&str, &str)> =
        files.iter().filter(|(path, text)| writes_table(path, text)).collect();
    benches.sort_by_key(|(path, _)| !fits(path));
    let (path, text) = *benches.first()?;
    let is_of_op = |name: &str| is_test(name) && name.contains(kernel.op.as_str());
    let test = match files.first(is_of_op) {
        Some(test) => format!("python3 -m pytest -q {test}"),
        None => tests(files)?.0,
    };
    let (metric, preset) = match (text.contains("Forward TFLOPS"), text.contains("Backward TFLOPS"))
    {
        (_, true) => ("Combined Step TFLOPS", "primus"),
        (true, false) => ("Forward TFLOPS", "primus"),
        (false, false) => return None,
    };
    let metric = MetricGuess { name: metric.into(), unit: "TFLOPS".into(), better: Better::Higher };
    let mut why = vec![
        format!("{path} writes a table with one row for each shape."),
        format!("Its column is {}.", metric.name),
    ];
    let cases = triples_in(text);
    if !cases.is_empty() {
        why.push(format!("{path} lists shapes of M, N and K."));
    }
    Some(ProjectRecipe {
        test,
        bench: format!("python3 {path} --output {{out}}"),
        env: search_path(files),
        format: OutputFormat::Csv.name(),
        metric,
        cases,
        preset: Some(preset),
        why,
        ..ProjectRecipe::default()
    })
}

/// Shapes that a source lists as three numbers in parentheses.
fn triples_in(text: &str) -> Vec<String> {
    let inner = text.split('(').skip(1).filter_map(|rest| rest.split(')').next());
    let numbers = inner.filter_map(|inner| {
        let parts = inner.split(',').map(|part| part.trim().parse::<u64>());
        parts.collect::<Result<Vec<u64>, _>>().ok()
    });
    let shapes = numbers.filter_map(|numbers| match numbers[..] {
        [m, n, k] if m > 1 && n > 1 && k > 1 => Some(format!("M={m},N={n},K={k}")),
        _ => None,
    });
    let mut shapes: Vec<String> = shapes.collect();
    shapes.dedup();
    shapes.truncate(super::SOURCE_CASES_MAX);
    shapes
}

/// A file that tests and measures itself if it is run.
pub(super) fn main(files: &FileListing<'_>, kernel: &KernelGuess) -> Option<ProjectRecipe> {
    let script = kernel.file.as_str();
    let text = files.text(script).filter(|text| text.contains(MAIN))?;
    let is_device = kernel.kind.device() == "gpu";
    let measures = ["perf_report", "do_bench", "elapsed_time", "perf_counter", "Timer("];
    if !is_device || !measures.iter().any(|word| text.contains(word)) {
        return None;
    }
    let (args, cases) = arguments_in(text);
    let flag = ["--benchmark", "--bench"]
        .into_iter()
        .find(|flag| text.contains(&format!("\"{flag}\"")) || text.contains(&format!("'{flag}'")));
    let run = format!("python3 {script}{args}");
    let checks = ["assert", "allclose", "raise "].iter().any(|word| text.contains(word));
    let mut why = vec![format!("{} measures itself if it is run.", name_of(script))];
    let test = match files.first(is_test) {
        Some(_) => tests(files)?.0,
        None => {
            why.push(match checks {
                true => "The same run checks its results.".to_owned(),
                false => "Nothing in it checks results: write a test, and name it in \
                          commands.test."
                    .to_owned(),
            });
            run.clone()
        }
    };
    why.push(
        "A candidate may change this file, and its benchmark with it: put the kernel in a file \
         of its own, or declare a contract."
            .to_owned(),
    );
    let commands = ProjectRecipe {
        test,
        bench: flag.map_or_else(|| run.clone(), |flag| format!("{run} {flag}")),
        env: search_path(files),
        why,
        ..ProjectRecipe::default()
    };
    Some(match text.contains("perf_report") {
        true => table_of(text, commands),
        false => {
            let found = measured_by(&[(script, text)], commands);
            ProjectRecipe { cases, ..found }
        }
    })
}

/// The table that `triton.testing.perf_report` prints.
fn table_of(text: &str, recipe: ProjectRecipe) -> ProjectRecipe {
    let value = |key: &str| {
        let rest = text.split(&format!("{key}=")).nth(1)?;
        Some(rest.trim_start())
    };
    let quoted = |rest: &str| -> Vec<String> {
        rest.split(['"', '\'']).skip(1).step_by(2).map(str::to_owned).collect()
    };
    let in_list = |key: &str| {
        let list = value(key).and_then(|rest| rest.split(']').next()).map(quoted);
        list.unwrap_or_default()
    };
    let first = |key: &str| value(key).and_then(|rest| quoted(rest).into_iter().next());
    let lines = in_list("line_names");
    let own = lines.iter().find(|name| name.to_lowercase().contains("triton"));
    let column = own.or(lines.first()).cloned().unwrap_or_else(|| "Triton".to_owned());
    let unit = first("ylabel").unwrap_or_else(|| "GB/s".to_owned());
    let is_time = ["s", "ms", "us", "ns"].contains(&unit.as_str());
    let better = if is_time { Better::Lower } else { Better::Higher };
    let names = in_list("x_names");
    let sizes = value("x_vals").map(sizes_in).unwrap_or_default();
    let case = |size: &u64| {
        let params = names.iter().map(|name| format!("{name}={size}"));
        params.collect::<Vec<_>>().join(",")
    };
    let mut why = recipe.why;
    why.push(format!("perf_report prints the column {column} ({unit})."));
    ProjectRecipe {
        format: OutputFormat::Triton.name(),
        label: first("plot_name"),
        metric: MetricGuess { name: column, unit, better },
        cases: if names.is_empty() { Vec::new() } else { sizes.iter().map(case).collect() },
        why,
        ..recipe
    }
}

/// A few sizes of a list, or of `[128 * i for i in range(2, 33)]` and `[2**i for …]`.
fn sizes_in(rest: &str) -> Vec<u64> {
    let list = rest.strip_prefix('[').and_then(|rest| rest.split(']').next()).unwrap_or_default();
    let numbers = list.split(',').map(|part| part.trim().parse::<u64>());
    let mut sizes: Vec<u64> = numbers.flatten().collect();
    if let Some((term, range)) = list.split_once(" for i in range(") {
        let ends: Vec<u64> = range
            .trim_end_matches(')')
            .split(',')
            .filter_map(|part| part.trim().parse().ok())
            .collect();
        let (from, to) = match ends[..] {
            [to] => (0, to),
            [from, to, ..] => (from, to),
            [] => (0, 0),
        };
        let step = ends.get(2).copied().unwrap_or(1).max(1) as usize;
        let factor = |text: &str| text.trim().parse::<u64>().ok();
        let size = |i: u64| match term.split_once("**") {
            Some((base, _)) => factor(base)?.checked_pow(u32::try_from(i).ok()?),
            None => {
                let (one, other) = term.split_once('*')?;
                factor(one).or_else(|| factor(other))?.checked_mul(i)
            }
        };
        sizes = (from..to.min(from + 1_000)).step_by(step).filter_map(size).collect();
    }
    sizes.retain(|size| *size > 0);
    let n = sizes.len();
    let mut few: Vec<u64> = [0, n / 2, n.saturating_sub(1)]
        .into_iter()
        .filter_map(|at| sizes.get(at).copied())
        .collect();
    few.dedup();
    few
}

/// The sizes that a script takes as options, and the case of their defaults.
fn arguments_in(text: &str) -> (String, Vec<String>) {
    let mut options = String::new();
    let mut params = Vec::new();
    for rest in text.split("add_argument(").skip(1) {
        let call = rest.split('\n').next().unwrap_or_default();
        let name = call.trim_start_matches(['"', '\'']).split(['"', '\'']).next();
        let name = name.and_then(|name| name.strip_prefix("--")).unwrap_or_default();
        let default = call.split("default=").nth(1).unwrap_or_default();
        let digits = default.find(|c: char| !c.is_ascii_digit()).unwrap_or(default.len());
        let is_size = name.len() == 1 && name.chars().all(|c| c.is_ascii_alphabetic());
        if is_size && digits > 0 {
            options.push_str(&format!(" --{name} {{{name}}}"));
            params.push(format!("{name}={}", &default[..digits]));
        }
    }
    let cases = if params.is_empty() { Vec::new() } else { vec![params.join(",")] };
    (options, cases)
}

pub(super) fn scripts(files: &FileListing<'_>, kernel: &KernelGuess) -> Option<ProjectRecipe> {
    if !kernel.kind.is_python() {
        return None;
    }
    let script = kernel.file.as_str();
    let test_script = files.first(|name| name.contains("test") && name.ends_with(".py"));
    let bench_script = files.first(is_bench);
    let is_alone = test_script.is_none() && bench_script.is_none();
    let test = match test_script {
        Some(test) => format!("python3 {test} {{case}} {{seed}}"),
        None => format!("python3 {script} --check {{case}} {{seed}}"),
    };
    let bench = match bench_script {
        Some(bench) => format!("python3 {bench} {{case}} {{seed}}"),
        None => format!("python3 {script} --bench {{case}} {{seed}}"),
    };
    let commands = ProjectRecipe {
        test,
        bench,
        env: search_path(files),
        why: vec![format!("{} is run by python3; nothing is built.", name_of(script))],
        ..ProjectRecipe::default()
    };
    let mut recipe = measured(files, commands);
    recipe.is_placeholder =
        is_alone && matches!(kernel.kind, KernelLanguage::Numpy | KernelLanguage::Python);
    Some(recipe)
}
