//! What `karve init` proposes for a project, from a listing of its files; touches nothing.
//!
//! ```text
//! Found ──▶ kernel (which file, language, operation) ──▶ recipe (build, test, bench) ──▶ Proposal
//! Proposal ──▶ questions ──▶ answers ──▶ render_karve_toml
//! ```
//!
//! A guess is cheap to correct, so karve always makes one and gives the reason in `why`.

pub mod contract;
mod kernel;
mod manifest;
mod models;
mod printed;
mod questions;
mod recipe;
mod render;
mod request;
#[cfg(test)]
mod tests;
mod tilegym;
mod trial;
mod words;

pub use manifest::propose_from_manifest;
pub use models::{ModelTask, find_model_task, model_as_kernel, render_model_task};
pub use questions::{SetupQuestion, apply_answer, questions};
pub use recipe::METRIC_WISH;
pub use render::render_karve_toml;
pub use request::{WordedTarget, read_words};
pub use trial::{BenchAttempt, attempts, read_output, without_case};
pub use words::{apply_words, recommended_mode, shapes_in};

use karve_core::charter::Better;
use std::collections::BTreeMap;

/// How many listed cases are proposed at most.
const CASES_MAX: usize = 20;

/// How much of a file is read, in bytes.
pub const TEXT_MAX: usize = 64 * 1024;

/// The files of a project, relative to its directory, each with the beginning of its text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProjectFiles {
    /// Path with `/`, and at most [`TEXT_MAX`] bytes of text.
    pub files: Vec<(String, String)>,
    /// The kernel that was asked for: its path, or its file name with or without extension.
    pub kernel: Option<String>,
}

/// The operation that a file name suggests.
pub fn operation_of(path: &str) -> String {
    kernel::operation(path, "")
}

/// What a `karve.toml` would say, and why.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct ConfigProposal {
    /// The operation.
    pub op: String,
    /// The backend.
    pub backend: String,
    /// The language of the kernel.
    pub language: String,
    /// The device.
    pub device: String,
    /// Globs of the files that a candidate may change.
    pub editable: Vec<String>,
    /// The build command, if there is anything to build.
    pub build: Option<String>,
    /// The test command.
    pub test: String,
    /// The benchmark command.
    pub bench: String,
    /// Added to the environment of all commands.
    pub env: BTreeMap<String, String>,
    /// What the benchmark writes in the worktree.
    pub write: Vec<String>,
    /// The format of its output.
    pub format: String,
    /// What its lines of plain text look like.
    pub pattern: Option<String>,
    /// The metric's name.
    pub metric_name: String,
    /// Its unit.
    pub metric_unit: String,
    /// Which direction is better.
    pub better: Better,
    /// The cases.
    pub cases: Vec<String>,
    /// The label of the records that count, if there are several.
    pub label: Option<String>,
    /// The preset.
    pub preset: String,
    /// The command that lists the benchmark's cases, if it can tell them.
    pub collect: Option<String>,
    /// The goal, if one was named.
    pub goal: Option<String>,
    /// The rounds, if they were named.
    pub rounds: Option<u32>,
    /// The hours, if they were named.
    pub hours: Option<f64>,
    /// Whether the cases are all that the benchmark prints.
    pub all_shapes: bool,
    /// Whether nothing was recognized, so that the commands are placeholders.
    pub is_placeholder: bool,
    /// What each guess is based on, in sentences.
    pub why: Vec<String>,
}

/// Guesses what there is to optimize and how it is built, tested and measured.
pub fn propose(found: &ProjectFiles) -> ConfigProposal {
    let files = FileListing(found);
    let mut guess = kernel::guess(&files);
    let tilegym = tilegym::find(&files, &guess);
    let is_tilegym = tilegym.is_some();
    let (recipe, collect) = match tilegym {
        Some(kernel) => {
            guess.op = kernel.op;
            (kernel.recipe, Some(kernel.collect))
        }
        None => (recipe::choose(&files, &guess), None),
    };
    let cases = cases_for(&guess.op, &recipe);
    let mut why = vec![guess.why];
    why.extend(recipe.why);
    why.extend(guess.template.filter(|_| !is_tilegym));
    if let Some(flags) = files.path_named("flags.mk") {
        why.push(format!("{flags} holds compiler flags, so it is editable too."));
    }
    let mut editable = vec![guess.file];
    editable.extend(files.path_named("flags.mk").map(str::to_owned));
    ConfigProposal {
        op: guess.op,
        backend: guess.kind.backend().to_owned(),
        language: guess.kind.language().to_owned(),
        device: guess.kind.device().to_owned(),
        editable,
        build: recipe.build,
        test: recipe.test,
        bench: recipe.bench,
        env: recipe.env,
        write: recipe.write,
        format: recipe.format.to_owned(),
        pattern: recipe.pattern,
        metric_name: recipe.metric.name,
        metric_unit: recipe.metric.unit,
        better: recipe.metric.better,
        cases,
        label: recipe.label,
        preset: recipe.preset.unwrap_or("strict").to_owned(),
        collect,
        goal: None,
        rounds: None,
        hours: None,
        all_shapes: false,
        is_placeholder: recipe.is_placeholder,
        why,
    }
}

/// Takes the cases from what the command of a proposal listed.
pub fn take_cases(proposal: &mut ConfigProposal, listing: &str) {
    let ids = tilegym::ids_in(listing);
    if ids.is_empty() {
        return;
    }
    proposal.why.push(format!("The cases are the {} ids of its test_perf.", ids.len()));
    proposal.cases = ids.into_iter().take(CASES_MAX).collect();
}

/// Shapes for a command that takes a case; otherwise one case for the whole run.
fn cases_for(op: &str, recipe: &recipe::ProjectRecipe) -> Vec<String> {
    if !recipe.cases.is_empty() {
        return recipe.cases.clone();
    }
    if !recipe.bench.contains("{case}") {
        return vec!["default".to_owned()];
    }
    let shapes: &[&str] = match op {
        "matmul" | "gemm" => &["M=256,N=256,K=256", "M=512,N=512,K=512", "M=129,N=200,K=77"],
        "attention" | "mla" => &["B=1,H=8,S=512,D=64", "B=4,H=8,S=1024,D=64"],
        "softmax" | "layernorm" | "rmsnorm" | "transpose" => &["M=1024,N=1024", "M=4096,N=1000"],
        _ => &["N=65536", "N=1048576"],
    };
    shapes.iter().map(|shape| (*shape).to_owned()).collect()
}

/// The listing, with a few queries on it.
#[derive(Clone, Copy, Debug)]
struct FileListing<'a>(&'a ProjectFiles);

impl<'a> FileListing<'a> {
    /// The files whose paths can be used unquoted in a command and in a glob.
    fn iter(self) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.0
            .files
            .iter()
            .map(|(path, text)| (path.as_str(), text.as_str()))
            .filter(|(path, _)| is_plain(path))
    }

    /// The text of a file in the project's directory.
    fn text(self, name: &str) -> Option<&'a str> {
        self.iter().find(|(path, _)| *path == name).map(|(_, text)| text)
    }

    /// The path, if the project's directory has a file with that name.
    fn path_named(self, name: &str) -> Option<&'a str> {
        self.iter().find(|(path, _)| *path == name).map(|(path, _)| path)
    }

    /// The first file whose name satisfies a condition; the shortest path first.
    fn first(self, is_wanted: impl Fn(&str) -> bool) -> Option<&'a str> {
        let wanted = self.iter().map(|(path, _)| path).filter(|path| is_wanted(name_of(path)));
        wanted.min_by_key(|path| (path.matches('/').count(), *path))
    }
}

/// Whether a path is literal to a shell and in a glob, and is not hidden.
pub(crate) fn is_plain(path: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-.+".contains(c);
    let is_visible = |part: &str| !part.is_empty() && !part.starts_with(['.', '-']);
    path.split('/').all(|part| is_visible(part) && part.chars().all(plain))
}

/// The name of a file without its directories.
pub(crate) fn name_of(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// The name without directories and extension.
fn stem_of(path: &str) -> &str {
    let name = name_of(path);
    name.split_once('.').map_or(name, |(stem, _)| stem)
}
