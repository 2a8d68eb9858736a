//! A TileGym tree: the parts of a cuTile kernel, its tests, and the commands of the tilegym
//! workflow.

use super::kernel::KernelGuess;
use super::printed::MetricGuess;
use super::recipe::ProjectRecipe;
use super::{FileListing, name_of, stem_of};

/// Where TileGym keeps its kernels.
const SOURCES: &str = "src/tilegym/";
/// The word that names the backend in paths and test ids.
const BACKEND: &str = "cutile";
/// The label of the records that belong to the backend.
const LABEL: &str = "Cutile";
/// Names that are listed at most.
const NAMED_MAX: usize = 6;

/// A kernel of a TileGym tree.
pub(super) struct TilegymKernel {
    pub(super) op: String,
    pub(super) recipe: ProjectRecipe,
    /// The command that lists the ids of the benchmark's cases.
    pub(super) collect: String,
}

/// The parts that the workflow wants identified.
#[derive(Debug, Default, PartialEq, Eq)]
struct KernelParts {
    /// Functions under `@ct.kernel`.
    kernels: Vec<String>,
    /// How and in which lines they are launched.
    launches: Vec<String>,
    /// Names under which they are registered.
    registered: Vec<String>,
    /// Lines with autotune configurations.
    configs: Vec<usize>,
}

/// The kernel that was guessed, if it is one of a TileGym tree.
pub(super) fn find(files: &FileListing<'_>, guess: &KernelGuess) -> Option<TilegymKernel> {
    let is_of_tree = |path: &str| path.starts_with(SOURCES) && path.contains("/cutile/");
    let (path, text) = files.iter().find(|(path, _)| *path == guess.file)?;
    if !is_of_tree(path) {
        return None;
    }
    let parts = KernelParts::of(text);
    let stem = stem_of(path);
    let test = test_of(files, path, stem);
    let run = format!("python3 -m pytest {test} -k");
    let op = parts.registered.first().cloned().unwrap_or_else(|| stem.to_owned());
    let mut why = parts.describe();
    why.push(format!("{test} has its tests."));
    let others = files
        .iter()
        .filter(|(other, text)| is_of_tree(other) && *other != path && text.contains("@ct.kernel"));
    let others: Vec<&str> = others.map(|(other, _)| stem_of(other)).collect();
    if !others.is_empty() {
        why.push(format!("Other kernels can be named, as in \"karve init {}\".", others[0]));
    }
    Some(TilegymKernel {
        op,
        collect: format!("{run} \"test_perf and {BACKEND}\" --collect-only -q"),
        recipe: ProjectRecipe {
            build: None,
            test: format!("{run} \"test_ and {BACKEND} and not test_perf\" -v"),
            bench: format!("{run} \"test_perf and {BACKEND}\" --print-record -v"),
            env: [("PYTHONPATH".to_owned(), "src".to_owned())].into(),
            format: "pytest",
            label: Some(LABEL.to_owned()),
            metric: MetricGuess::of_records(),
            preset: Some("tilegym"),
            why,
            ..ProjectRecipe::default()
        },
    })
}

/// The test file of a kernel: the one with its name, of the same suite if there are several.
fn test_of(files: &FileListing<'_>, path: &str, stem: &str) -> String {
    let wanted = format!("test_{stem}.py");
    let suite = path.strip_prefix("src/tilegym/suites/").and_then(|rest| rest.split('/').next());
    let fits = |test: &&str| suite.is_none_or(|suite| test.contains(&format!("/{suite}/")));
    let found = files.iter().map(|(path, _)| path).filter(|path| name_of(path) == wanted);
    let mut found: Vec<&str> = found.collect();
    found.sort_by_key(|test| (!fits(test), test.len()));
    let guessed = || match suite {
        Some(suite) => format!("tests/suites/{suite}/{wanted}"),
        None => format!("tests/ops/{wanted}"),
    };
    found.first().map_or_else(guessed, |test| (*test).to_owned())
}

impl KernelParts {
    fn of(text: &str) -> Self {
        let mut parts = Self::default();
        let mut decorated = false;
        for (number, line) in (1..).zip(text.lines()) {
            let code = line.trim_start();
            decorated |= code.starts_with("@ct.kernel");
            if let Some(name) = code.strip_prefix("def ").filter(|_| decorated) {
                let end = name.find(|c: char| !(c.is_alphanumeric() || c == '_'));
                parts.kernels.push(name[..end.unwrap_or(name.len())].to_owned());
                decorated = false;
            }
            for call in ["ct.launch(", "autotune_launch("] {
                if code.contains(call) {
                    parts.launches.push(format!("{} in line {number}", call.trim_end_matches('(')));
                }
            }
            if let Some((_, rest)) = code.split_once("@register_impl(") {
                let name = rest.trim_start_matches(['"', '\'']).split(['"', '\'']).next();
                parts.registered.extend(name.map(str::to_owned));
            }
            let is_config = code.contains("autotune_config") || code.contains("SimpleNamespace(");
            if is_config && !code.starts_with(['#', '@']) && !code.starts_with("import ") {
                parts.configs.push(number);
            }
        }
        parts
    }

    fn describe(&self) -> Vec<String> {
        let named = |names: &[String], none: &str| match names.len() {
            0 => none.to_owned(),
            n if n <= NAMED_MAX => names.join(", "),
            n => format!("{} and {} more", names[..NAMED_MAX].join(", "), n - NAMED_MAX),
        };
        let configs: Vec<String> = self.configs.iter().map(usize::to_string).collect();
        vec![
            format!("@ct.kernel: {}.", named(&self.kernels, "none")),
            format!("Launched by {}.", named(&self.launches, "nothing in this file")),
            format!("@register_impl: {}.", named(&self.registered, "none")),
            format!("Lines with autotune configurations: {}.", named(&configs, "none")),
        ]
    }
}

/// The ids in brackets that pytest lists, in order.
pub(super) fn ids_in(listing: &str) -> Vec<String> {
    let mut ids: Vec<String> = Vec::new();
    for line in listing.lines() {
        let Some((test, id)) = line.trim().split_once('[') else {
            continue;
        };
        let id = id.strip_suffix(']').unwrap_or(id).to_owned();
        if test.contains("::test_perf") && !ids.contains(&id) {
            ids.push(id);
        }
    }
    ids
}
