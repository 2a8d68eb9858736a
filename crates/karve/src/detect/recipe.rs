//! How the project is built, tested and measured: one recipe per kind of project.

use super::kernel::{KernelGuess, KernelLanguage};
use super::{FileListing, is_plain, name_of, stem_of};
use karve_core::charter::Better;

/// Commands, and the format of their output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ProjectRecipe {
    pub(super) build: Option<String>,
    pub(super) test: String,
    pub(super) bench: String,
    /// What the benchmark writes in the worktree.
    pub(super) write: Vec<String>,
    pub(super) format: &'static str,
    pub(super) metric: MetricGuess,
    pub(super) why: Vec<String>,
}

/// What is measured, as far as the sources show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MetricGuess {
    pub(super) name: String,
    pub(super) unit: String,
    pub(super) better: Better,
}

impl MetricGuess {
    /// What the timing records of pytest report.
    pub(super) fn of_records() -> Self {
        Self { name: "forward.mean".to_owned(), unit: "ms".to_owned(), better: Better::Lower }
    }
}

/// The first recipe that fits; for a Python kernel, the Python recipes come first.
pub(super) fn choose(files: &FileListing<'_>, kernel: &KernelGuess) -> ProjectRecipe {
    let compiled = [make, cmake, cargo, nvcc];
    let interpreted = [pytest, python];
    let recipe = if kernel.kind.is_python() {
        first(files, kernel, &interpreted).or_else(|| first(files, kernel, &compiled))
    } else {
        first(files, kernel, &compiled).or_else(|| first(files, kernel, &interpreted))
    };
    recipe.unwrap_or_else(scripts)
}

type RecipeDetector = fn(&FileListing<'_>, &KernelGuess) -> Option<ProjectRecipe>;

fn first(
    files: &FileListing<'_>,
    kernel: &KernelGuess,
    attempts: &[RecipeDetector],
) -> Option<ProjectRecipe> {
    attempts.iter().find_map(|attempt| attempt(files, kernel))
}

fn make(files: &FileListing<'_>, _: &KernelGuess) -> Option<ProjectRecipe> {
    let name = ["Makefile", "makefile", "GNUmakefile"]
        .into_iter()
        .find(|name| files.text(name).is_some())?;
    let text = files.text(name)?;
    let has = |target: &str| text.lines().any(|line| line.starts_with(&format!("{target}:")));
    let takes_case = text.contains("$(CASE)") || text.contains("${CASE}");
    let case = if takes_case { " CASE={case}" } else { "" };
    let command = |program: &str, targets: &[&str]| {
        if has(&format!("build/{program}")) {
            return Some(format!("./build/{program} {{case}} {{seed}}"));
        }
        let target = targets.iter().find(|target| has(target))?;
        // A target that depends on the sources is a program, not a task.
        let line = text.lines().find(|line| line.starts_with(&format!("{target}:")))?;
        if line.contains(".o") || line.contains(&format!("{target}.c")) {
            return Some(format!("./{target} {{case}} {{seed}}"));
        }
        Some(format!("make -s {target}{case}"))
    };
    let test = command("test", &["test", "check"]);
    let bench = command("bench", &["bench", "benchmark", "perf"]);
    if test.is_none() && bench.is_none() {
        return None;
    }
    let why = format!("{name} has test and bench targets.");
    let why = match (&test, &bench) {
        (Some(_), Some(_)) => why,
        (None, _) => format!("{name} has no target called test or check; check the test command."),
        (_, None) => format!("{name} has no target called bench; check the bench command."),
    };
    let test = test.unwrap_or_else(|| "./build/test {case} {seed}".to_owned());
    let bench = bench.unwrap_or_else(|| "./build/bench {case} {seed}".to_owned());
    Some(measured(files, Some("make -s".to_owned()), test, bench, why))
}

fn cmake(files: &FileListing<'_>, _: &KernelGuess) -> Option<ProjectRecipe> {
    let text = files.text("CMakeLists.txt")?;
    let configure = "cmake -S . -B build -DCMAKE_BUILD_TYPE=Release";
    let build = format!("{configure} && cmake --build build -j");
    let program = |word: &str| {
        text.split("add_executable(")
            .skip(1)
            .filter_map(|rest| rest.split([' ', '\n', ')', '\t']).find(|name| !name.is_empty()))
            .find(|name| name.to_lowercase().contains(word) && is_plain(name))
    };
    let uses_ctest = text.contains("add_test(") || text.contains("enable_testing(");
    let test = match program("test") {
        Some(name) if !uses_ctest => format!("./build/{name} {{case}} {{seed}}"),
        Some(_) | None => "ctest --test-dir build --output-on-failure".to_owned(),
    };
    let bench = format!("./build/{} {{case}} {{seed}}", program("bench").unwrap_or("bench"));
    let why = "CMakeLists.txt defines the build.".to_owned();
    Some(measured(files, Some(build), test, bench, why))
}

fn cargo(files: &FileListing<'_>, _: &KernelGuess) -> Option<ProjectRecipe> {
    files.text("Cargo.toml")?;
    let build = "cargo build --release && cargo bench -q --no-run".to_owned();
    let test = "cargo test --release -q".to_owned();
    let bench = "cargo bench -q".to_owned();
    let why = "Cargo.toml defines the build.".to_owned();
    let mut recipe = measured(files, Some(build), test, bench, why);
    // It locks the directory, even if everything is already built.
    recipe.write.push("target".to_owned());
    let why = "\"cargo bench\" writes to target, so sandbox.write lists it.";
    recipe.why.push(why.to_owned());
    Some(recipe)
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
    let test = "./build/test {case} {seed}".to_owned();
    let bench = "./build/bench {case} {seed}".to_owned();
    let why = format!("There is no build system, so {compiler} is called directly.");
    Some(measured(files, Some(build), test, bench, why))
}

fn pytest(files: &FileListing<'_>, _: &KernelGuess) -> Option<ProjectRecipe> {
    let is_test =
        |name: &str| name == "conftest.py" || (name.starts_with("test_") && name.ends_with(".py"));
    let sign = files.first(is_test).or_else(|| {
        let configured = files.text("pytest.ini").map(|_| "pytest.ini");
        let in_project = files.text("pyproject.toml").filter(|text| text.contains("pytest"));
        configured.or(in_project.map(|_| "pyproject.toml"))
    })?;
    let measures = files
        .iter()
        .any(|(_, text)| text.contains("def test_perf") || text.contains("--print-record"));
    let why = format!("{sign} shows that it is tested with pytest.");
    let test = "python3 -m pytest -q".to_owned();
    if !measures && let Some(script) = files.first(is_python_bench) {
        let bench = format!("python3 {script} {{case}} {{seed}}");
        return Some(measured(files, None, test, bench, why));
    }
    Some(ProjectRecipe {
        build: None,
        test,
        bench: "python3 -m pytest -q -k test_perf --print-record".to_owned(),
        write: Vec::new(),
        format: "pytest",
        metric: MetricGuess::of_records(),
        why: vec![why, "Its test_perf tests print timing records.".to_owned()],
    })
}

fn is_python_bench(name: &str) -> bool {
    name.contains("bench") && name.ends_with(".py")
}

fn python(files: &FileListing<'_>, kernel: &KernelGuess) -> Option<ProjectRecipe> {
    if !kernel.kind.is_python() {
        return None;
    }
    let is_test = |name: &str| name.contains("test") && name.ends_with(".py");
    let script = kernel.file.as_str();
    let test = match files.first(is_test) {
        Some(test) => format!("python3 {test} {{case}} {{seed}}"),
        None => format!("python3 {script} --check {{case}} {{seed}}"),
    };
    let bench = match files.first(is_python_bench) {
        Some(bench) => format!("python3 {bench} {{case}} {{seed}}"),
        None => format!("python3 {script} --bench {{case}} {{seed}}"),
    };
    let why = format!("{} is run by python3; nothing is built.", name_of(script));
    Some(measured(files, None, test, bench, why))
}

/// Two scripts that the user has to write: nothing is known about the project.
fn scripts() -> ProjectRecipe {
    ProjectRecipe {
        build: None,
        test: "sh test.sh {case} {seed}".to_owned(),
        bench: "sh bench.sh {case} {seed}".to_owned(),
        write: Vec::new(),
        format: "metric",
        metric: time_ms(),
        why: vec![
            "No build system was recognized: test.sh must exit with 0 if the kernel is correct, \
            and bench.sh must print METRIC time_ms=<number> case=<name>."
                .to_owned(),
        ],
    }
}

/// A recipe whose benchmark prints METRIC lines, with the metric that the sources print.
fn measured(
    files: &FileListing<'_>,
    build: Option<String>,
    test: String,
    bench: String,
    why: String,
) -> ProjectRecipe {
    let printed = files.iter().find_map(|(path, text)| {
        let is_bench = stem_of(path).to_lowercase().contains("bench");
        Some((path, printed_metric(text).filter(|_| is_bench)?))
    });
    let (metric, reason) = match printed {
        Some((path, metric)) => {
            let reason = format!("{path} prints METRIC {}.", metric.name);
            (metric, reason)
        }
        None => {
            let wish =
                "The benchmark must print METRIC time_ms=<number> case=<name> for each case.";
            (time_ms(), wish.to_owned())
        }
    };
    ProjectRecipe {
        build,
        test,
        bench,
        write: Vec::new(),
        format: "metric",
        metric,
        why: vec![why, reason],
    }
}

fn time_ms() -> MetricGuess {
    MetricGuess { name: "time_ms".to_owned(), unit: "ms".to_owned(), better: Better::Lower }
}

/// The name in the first `METRIC name=` of a source text.
fn printed_metric(text: &str) -> Option<MetricGuess> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
    text.split("METRIC ").skip(1).find_map(|rest| {
        let name = &rest[..rest.find(|c: char| !plain(c))?];
        if name.is_empty() || !rest[name.len()..].starts_with('=') {
            return None;
        }
        let unit = name.rsplit('_').next().filter(|unit| *unit != name)?;
        let better = match unit.to_ascii_lowercase().as_str() {
            "s" | "ms" | "us" | "ns" => Better::Lower,
            "mflops" | "gflops" | "tflops" | "gbs" => Better::Higher,
            _ => return None,
        };
        Some(MetricGuess { name: name.to_owned(), unit: unit.to_owned(), better })
    })
}
