//! How the project is built, tested and measured: one recipe per kind of project.

mod cargo;
mod cmake;
mod make;
mod python;

use super::kernel::{KernelGuess, KernelLanguage};
use super::printed::{self, MetricGuess};
use super::{FileListing, stem_of};
use karve_core::charter::Better;
use karve_harness::commands::output::OutputFormat;
use std::collections::BTreeMap;

/// Most cases that are taken from a source.
const SOURCE_CASES_MAX: usize = 4;

/// Commands, and the format of their output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ProjectRecipe {
    pub(super) build: Option<String>,
    pub(super) test: String,
    pub(super) bench: String,
    /// Added to the environment of all commands.
    pub(super) env: BTreeMap<String, String>,
    /// What the benchmark writes in the worktree.
    pub(super) write: Vec<String>,
    pub(super) format: &'static str,
    /// What a line of plain text looks like.
    pub(super) pattern: Option<String>,
    /// Which of several tables is meant.
    pub(super) label: Option<String>,
    pub(super) metric: MetricGuess,
    /// The cases, if the sources show them.
    pub(super) cases: Vec<String>,
    pub(super) preset: Option<&'static str>,
    /// Whether nothing was recognized, so that the commands are placeholders.
    pub(super) is_placeholder: bool,
    pub(super) why: Vec<String>,
}

/// The first recipe that fits; for a Python kernel, the Python recipes come first.
pub(super) fn choose(files: &FileListing<'_>, kernel: &KernelGuess) -> ProjectRecipe {
    let compiled = [make::recipe, cmake::recipe, cargo::recipe, nvcc];
    let interpreted = [python::primus, python::main, python::pytest, python::scripts];
    let recipe = if kernel.kind.is_python() {
        first(files, kernel, &interpreted).or_else(|| first(files, kernel, &compiled))
    } else {
        first(files, kernel, &compiled).or_else(|| first(files, kernel, &interpreted))
    };
    recipe.unwrap_or_else(placeholders)
}

type RecipeDetector = fn(&FileListing<'_>, &KernelGuess) -> Option<ProjectRecipe>;

fn first(
    files: &FileListing<'_>,
    kernel: &KernelGuess,
    attempts: &[RecipeDetector],
) -> Option<ProjectRecipe> {
    attempts.iter().find_map(|attempt| attempt(files, kernel))
}

fn nvcc(files: &FileListing<'_>, kernel: &KernelGuess) -> Option<ProjectRecipe> {
    if kernel.kind != KernelLanguage::Cuda && kernel.kind != KernelLanguage::Hip {
        return None;
    }
    let (compiler, end) = match kernel.kind {
        KernelLanguage::Hip => ("hipcc", ".hip"),
        _ => ("nvcc", ".cu"),
    };
    let host = |word: &str| {
        let wanted = |name: &str| {
            name.to_lowercase().contains(word) && (name.ends_with(end) || name.ends_with(".cpp"))
        };
        files.first(wanted)
    };
    let kernel_file = kernel.file.as_str();
    let compile = |program: &str, main: Option<&str>| {
        let main = main.filter(|main| *main != kernel_file).unwrap_or_default();
        let sources = format!("{main} {kernel_file}");
        format!("{compiler} -O3 -o build/{program} {}", sources.trim())
    };
    let (test, bench) = (compile("test", host("test")), compile("bench", host("bench")));
    let build = format!("mkdir -p build && {test} && {bench}");
    let commands = ProjectRecipe {
        build: Some(build),
        test: "./build/test {case} {seed}".to_owned(),
        bench: "./build/bench {case} {seed}".to_owned(),
        why: vec![format!("There is no build system, so {compiler} is called directly.")],
        ..ProjectRecipe::default()
    };
    Some(measured(files, commands))
}

/// Two scripts that the user has to write: nothing is known about the project.
fn placeholders() -> ProjectRecipe {
    ProjectRecipe {
        test: "sh test.sh {case} {seed}".to_owned(),
        bench: "sh bench.sh {case} {seed}".to_owned(),
        format: OutputFormat::MetricLines.name(),
        is_placeholder: true,
        why: vec![
            "No build system was recognized: test.sh must exit with 0 if the kernel is correct, \
            and bench.sh must print METRIC time_ms=<number> case=<name>."
                .to_owned(),
        ],
        ..ProjectRecipe::default()
    }
}

/// A recipe with the format, the metric and the cases that the sources of its benchmark show.
fn measured(files: &FileListing<'_>, recipe: ProjectRecipe) -> ProjectRecipe {
    let is_bench = |path: &str| {
        let stem = stem_of(path).to_lowercase();
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        stem.contains("bench") || folder.split('/').any(|part| part.starts_with("bench"))
    };
    let sources: Vec<(&str, &str)> = files.iter().filter(|(path, _)| is_bench(path)).collect();
    measured_by(&sources, recipe)
}

/// What is said as long as nothing is known about the output.
pub const METRIC_WISH: &str =
    "The benchmark must print METRIC time_ms=<number> case=<name> for each case.";

/// The same for these sources of the benchmark.
fn measured_by(sources: &[(&str, &str)], mut recipe: ProjectRecipe) -> ProjectRecipe {
    recipe.format = OutputFormat::MetricLines.name();
    let metric = sources.iter().find_map(|(path, text)| Some((path, printed_metric(text)?)));
    if let Some((path, metric)) = metric {
        recipe.why.push(format!("{path} prints METRIC {}.", metric.name));
        recipe.metric = metric;
        return recipe;
    }
    let lines = sources.iter().find_map(|(path, text)| {
        Some((*path, *text, printed::find(&printed::lines_of_source(text))?))
    });
    let Some((path, text, found)) = lines else {
        recipe.why.push(METRIC_WISH.to_owned());
        return recipe;
    };
    recipe.why.push(format!("{path} prints lines like \"{}\".", found.pattern));
    recipe.format = OutputFormat::Text.name();
    recipe.cases = match found.names_case {
        true => integers_in(text).iter().map(u64::to_string).collect(),
        false => Vec::new(),
    };
    if !recipe.cases.is_empty() {
        recipe.why.push(format!("{path} lists {}.", recipe.cases.join(", ")));
    }
    recipe.pattern = Some(found.pattern);
    recipe.metric = found.metric;
    recipe
}

/// The first list of several integers of a source, such as the sizes that it measures.
fn integers_in(text: &str) -> Vec<u64> {
    let after_brackets = text.split(['{', '[', '(']).skip(1);
    let lists = after_brackets.filter_map(|rest| {
        let inner = rest.split(['}', ']', ')']).next()?;
        let numbers = inner.split(',').map(|part| part.trim().parse::<u64>());
        numbers.collect::<Result<Vec<u64>, _>>().ok()
    });
    let mut lists = lists.filter(|list| list.len() > 1 && list.iter().all(|size| *size > 1));
    let mut list = lists.next().unwrap_or_default();
    list.truncate(SOURCE_CASES_MAX);
    list
}

/// The name in the first `METRIC name=` of a source text.
fn printed_metric(text: &str) -> Option<MetricGuess> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
    text.split("METRIC ").skip(1).find_map(|rest| {
        let name = &rest[..rest.find(|c: char| !plain(c))?];
        if name.is_empty() || !rest[name.len()..].starts_with('=') {
            return None;
        }
        metric_by_name(name)
    })
}

/// A metric whose name ends with its unit.
pub(super) fn metric_by_name(name: &str) -> Option<MetricGuess> {
    let unit = name.rsplit('_').next().filter(|unit| *unit != name)?;
    let better = match unit.to_ascii_lowercase().as_str() {
        "s" | "ms" | "us" | "ns" => Better::Lower,
        "mflops" | "gflops" | "tflops" | "gbs" => Better::Higher,
        _ => return None,
    };
    Some(MetricGuess { name: name.to_owned(), unit: unit.to_owned(), better })
}
