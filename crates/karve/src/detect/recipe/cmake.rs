//! A project with CMake, whose benchmark may use Google Benchmark.

use super::{ProjectRecipe, measured};
use crate::detect::kernel::KernelGuess;
use crate::detect::printed::MetricGuess;
use crate::detect::{FileListing, is_plain, name_of};
use karve_harness::commands::output::OutputFormat;

const LISTS: &str = "CMakeLists.txt";

/// How long each benchmark runs; the referee repeats it as often as it needs.
const GOOGLE_FLAGS: &str = "--benchmark_format=json --benchmark_min_time=0.05";

/// A program that the project builds.
struct CmakeProgram<'a> {
    /// Its path from the project's directory.
    path: String,
    name: &'a str,
    /// The words of its definition, its sources among them.
    definition: &'a str,
    folder: &'a str,
}

pub(super) fn recipe(files: &FileListing<'_>, _: &KernelGuess) -> Option<ProjectRecipe> {
    files.text(LISTS)?;
    let lists: Vec<(&str, &str)> =
        files.iter().filter(|(path, _)| name_of(path) == LISTS).collect();
    let programs: Vec<CmakeProgram<'_>> =
        lists.iter().flat_map(|(path, text)| programs_in(path, text, &lists)).collect();
    let says = |word: &str| lists.iter().any(|(_, text)| text.contains(word));
    let named =
        |word: &str| programs.iter().find(|program| program.name.to_lowercase().contains(word));
    let uses_ctest = ["add_test(", "enable_testing(", "_discover_tests(", "include(CTest)"];
    let test = match named("test") {
        Some(program) if !uses_ctest.iter().any(|word| says(word)) => {
            format!("./{} {{case}} {{seed}}", program.path)
        }
        Some(_) | None => "ctest --test-dir build --output-on-failure".to_owned(),
    };
    let google = programs.iter().find(|program| is_google(files, program));
    let bench = google.or_else(|| named("bench")).or_else(|| named("perf"));
    let path = bench.map_or("build/bench", |program| program.path.as_str());
    let configure = "cmake -S . -B build -DCMAKE_BUILD_TYPE=Release";
    let mut commands = ProjectRecipe {
        build: Some(format!("{configure} && cmake --build build -j")),
        test,
        bench: format!("./{path} {{case}} {{seed}}"),
        why: vec![format!("{LISTS} defines the build.")],
        ..ProjectRecipe::default()
    };
    let Some(google) = google else {
        return Some(measured(files, commands));
    };
    commands.bench = format!("./{} {GOOGLE_FLAGS}", google.path);
    commands.format = OutputFormat::GoogleBenchmark.name();
    commands.metric = MetricGuess::latency();
    commands.why.push(format!("{} uses Google Benchmark.", google.name));
    Some(commands)
}

/// Whether a program is linked with Google Benchmark, or includes its header.
fn is_google(files: &FileListing<'_>, program: &CmakeProgram<'_>) -> bool {
    let mut sources = program.definition.split_whitespace().skip(1);
    sources.any(|source| {
        let path = match program.folder {
            "" => source.to_owned(),
            folder => format!("{folder}/{source}"),
        };
        files.text(&path).is_some_and(|text| text.contains("<benchmark/benchmark.h>"))
    })
}

/// The programs of one list; those of a subdirectory are built in a directory of the same name.
fn programs_in<'a>(path: &'a str, text: &'a str, lists: &[(&str, &str)]) -> Vec<CmakeProgram<'a>> {
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let common = lists.iter().find_map(|(_, text)| runtime_folder(text));
    let built = match (&common, folder) {
        (Some(common), _) => format!("build/{common}"),
        (None, "") => "build".to_owned(),
        (None, folder) => format!("build/{folder}"),
    };
    let definitions = text.split("add_executable(").skip(1);
    let programs = definitions.filter_map(|rest| {
        let definition = rest.split(')').next()?;
        let name = definition.split_whitespace().next().filter(|name| is_plain(name))?;
        Some(CmakeProgram { path: format!("{built}/{name}"), name, definition, folder })
    });
    programs.collect()
}

/// Where all programs are put, if the project says so.
fn runtime_folder(text: &str) -> Option<String> {
    let rest = text.split("set(CMAKE_RUNTIME_OUTPUT_DIRECTORY").nth(1)?;
    let value = rest.split(')').next()?.trim().trim_matches('"');
    let folder = ["${CMAKE_BINARY_DIR}/", "${PROJECT_BINARY_DIR}/"]
        .iter()
        .find_map(|start| value.strip_prefix(start))?;
    is_plain(folder).then(|| folder.to_owned())
}
