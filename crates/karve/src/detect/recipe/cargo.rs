//! A crate of Cargo, whose benchmark may use criterion.

use super::{ProjectRecipe, measured};
use crate::detect::kernel::KernelGuess;
use crate::detect::printed::MetricGuess;
use crate::detect::{FileListing, is_plain, stem_of};
use karve_harness::commands::output::OutputFormat;

/// Short runs without plots and with few resamples, since karve reads the estimate and not its
/// interval; the referee repeats them as often as it needs.
const CRITERION_FLAGS: &str = "--noplot --sample-size 10 --warm-up-time 0.1 \
                               --measurement-time 0.2 --nresamples 1001";

/// What measures a crate.
enum CargoBench {
    /// A program under `benches`.
    Bench(String),
    /// A program under `examples` or `src/bin`, and the option that selects it.
    Program(&'static str, String),
    /// All benchmarks there are.
    All,
}

pub(super) fn recipe(files: &FileListing<'_>, _: &KernelGuess) -> Option<ProjectRecipe> {
    let manifest: toml::Table = files.text("Cargo.toml")?.parse().unwrap_or_default();
    let bench = bench_of(files, &manifest);
    let (build, run) = match &bench {
        CargoBench::Bench(name) => (
            format!("cargo bench -q --no-run --bench {name}"),
            format!("cargo bench -q --bench {name}"),
        ),
        CargoBench::Program(kind, name) => (
            format!("cargo build --release -q {kind} {name}"),
            format!("cargo run --release -q {kind} {name}"),
        ),
        CargoBench::All => ("cargo bench -q --no-run".into(), "cargo bench -q".into()),
    };
    let mut commands = ProjectRecipe {
        build: Some(format!("cargo build --release -q && {build}")),
        test: "cargo test --release -q".to_owned(),
        bench: run,
        // It locks the directory, even if everything is already built.
        write: vec!["target".to_owned()],
        why: vec![
            "Cargo.toml defines the build.".to_owned(),
            "\"cargo bench\" writes to target, so sandbox.write lists it.".to_owned(),
        ],
        ..ProjectRecipe::default()
    };
    commands.why.extend(missing_lock(files, &manifest));
    if let CargoBench::Bench(name) = &bench
        && bench_text(files, name).is_some_and(|text| text.contains("criterion"))
    {
        commands.bench = format!("{} -- {CRITERION_FLAGS}", commands.bench);
        commands.format = OutputFormat::Criterion.name();
        commands.metric = MetricGuess::latency();
        commands.why.push(format!("benches/{name}.rs uses criterion."));
        return Some(commands);
    }
    let is_libtest = files.iter().any(|(_, text)| text.contains("#![feature(test)]"));
    if is_libtest {
        commands.format = OutputFormat::Libtest.name();
        commands.metric = MetricGuess::latency();
        commands.why.push("It uses the benchmark harness of Rust.".to_owned());
        return Some(commands);
    }
    Some(measured(files, commands))
}

/// What is missing for a build without a network, if crates are needed whose versions no committed
/// file states.
fn missing_lock(files: &FileListing<'_>, manifest: &toml::Table) -> Option<String> {
    let tables = ["dependencies", "dev-dependencies", "build-dependencies"];
    let mut tables = tables.iter().filter_map(|name| manifest.get(*name)?.as_table());
    let needs_crates = tables.any(|table| !table.is_empty());
    (needs_crates && files.path_named("Cargo.lock").is_none()).then(|| {
        "Cargo.lock is not committed, and commands have no network: run \"cargo fetch\", commit \
         Cargo.lock, and run this again."
            .to_owned()
    })
}

fn bench_text<'a>(files: &FileListing<'a>, name: &str) -> Option<&'a str> {
    let paths = [format!("benches/{name}.rs"), format!("benches/{name}/main.rs")];
    paths.iter().find_map(|path| files.text(path))
}

/// The first benchmark of the manifest, or of the directory; otherwise a program that measures.
fn bench_of(files: &FileListing<'_>, manifest: &toml::Table) -> CargoBench {
    let listed = manifest.get("bench").and_then(toml::Value::as_array).into_iter().flatten();
    let named = listed.filter_map(|bench| bench.get("name")?.as_str()).map(str::to_owned);
    let in_folder = |folder: &str, word: &str| {
        let mut paths = files.iter().map(|(path, _)| path).filter(|path| {
            let inside = path.strip_prefix(folder).is_some_and(|name| !name.contains('/'));
            inside && path.ends_with(".rs") && stem_of(path).contains(word)
        });
        paths.next().map(|path| stem_of(path).to_owned())
    };
    let is_written = |name: &String| is_plain(name) && bench_text(files, name).is_some();
    let bench = named.into_iter().find(is_written).or_else(|| in_folder("benches/", ""));
    let program = || {
        let example = in_folder("examples/", "bench").map(|name| ("--example", name));
        example.or_else(|| in_folder("src/bin/", "bench").map(|name| ("--bin", name)))
    };
    match bench {
        Some(name) => CargoBench::Bench(name),
        None => match program() {
            Some((kind, name)) => CargoBench::Program(kind, name),
            None => CargoBench::All,
        },
    }
}
