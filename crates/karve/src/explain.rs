//! The generated code of a kernel: its functions as the build left them, the loops in them, and
//! which instructions they are made of. `karve explain` and the MCP server use this.

use crate::config::Overrides;
use crate::project::ProjectArgs;
use karve_core::charter::Charter;
use karve_core::profile::{DisassembledFunction, functions_of};
use karve_harness::commands::Harness;
use karve_harness::git::{CommitNote, Oid, Repo};
use karve_harness::outcome::split;
use karve_harness::project_file;
use karve_harness::scratch::{ScratchDir, ScratchKind};
use karve_harness::worktrees::Worktrees;
use karve_os::clock;
use karve_os::error::{CommandError, Result};
use karve_os::process::{CommandOutcome, StopFlag};
use karve_os::sandbox::Sandbox;
use karve_profile::profilers::editable::EditableFiles;
use serde::Serialize;
use std::path::Path;

/// Functions whose code is shown.
const SHOWN_MAX: usize = 4;
/// Lines of one function.
const LINES_MAX: usize = 400;
/// Names that an error lists.
const NAMES_MAX: usize = 12;

/// The generated code of one version of a kernel.
#[derive(Clone, Debug, Serialize)]
pub struct ExplainedCode {
    /// The version: a revision, or the worktree.
    pub version: String,
    /// Its functions, the longest first.
    pub functions: Vec<DisassembledFunction>,
}

/// Builds a revision or the worktree, and reads the code of a function, or of those that the
/// editable files define.
pub fn explain(
    place: &ProjectArgs,
    revision: Option<&str>,
    function: Option<&str>,
    stop: &StopFlag,
) -> Result<ExplainedCode> {
    let repo = Repo::discover(&place.here()?)?;
    let loaded = place.load_in(&repo, &Overrides::default())?;
    let charter = loaded.charter;
    let scratch = ScratchDir::new(ScratchKind::Check, &[&repo])?;
    let harness = Harness::new(&charter, &scratch.path().join("tmp"), &scratch.tag(), stop);
    let mut trees = Worktrees::new(&repo, scratch.path().join("worktrees"))?;
    let sandbox = Sandbox::of(&repo.checkout(), &loaded.root, scratch.path(), &charter)?;
    let harness = harness.in_sandbox(sandbox.as_ref());
    let (version, commit) = version_of(&repo, &charter, revision)?;
    let globs = project_file::glob_set(&charter.editable)?;
    let editable = EditableFiles::of(&repo.read_matching(&commit, &globs)?);
    let code = match split(trees.built(&repo, &harness, commit.as_str()))? {
        Err(gate) => Err(CommandError::usage("it does not build")
            .cause(gate.describe())
            .hint("fix it; \"karve check\" shows more")),
        Ok(built) => searched(&harness, &built.path, &editable, function),
    };
    trees.clear(&repo)?;
    let Some(run) = code? else {
        return Err(CommandError::usage("the build left no compiled code")
            .hint("name its output in commands.artifacts of karve.toml")
            .hint("for a kernel in Python, \"karve profile\" shows what it waits for"));
    };
    let functions = chosen(functions_of(&run.stdout.text()), &editable, function)?;
    Ok(ExplainedCode { version, functions })
}

/// The code of the functions that are searched for, or else of all.
fn searched(
    harness: &Harness,
    tree: &Path,
    editable: &EditableFiles,
    function: Option<&str>,
) -> Result<Option<CommandOutcome>> {
    let names: Vec<&str> = match function {
        Some(name) => vec![name],
        None => editable.defined().collect(),
    };
    let found = harness.assembly(tree, &names)?;
    match found {
        Some(run) if functions_of(&run.stdout.text()).is_empty() => harness.assembly(tree, &[]),
        found => Ok(found),
    }
}

/// The commit of a revision, or of the worktree with its changes, and a description of it.
pub(crate) fn version_of(
    repo: &Repo,
    charter: &Charter,
    revision: Option<&str>,
) -> Result<(String, Oid)> {
    if let Some(revision) = revision {
        return Ok((revision.to_owned(), repo.rev_parse(revision)?));
    }
    let head = repo.head()?.oid().clone();
    let globs = project_file::glob_set(&charter.editable)?;
    let note = CommitNote { message: "karve\n", date: clock::now_s() };
    let made = repo.commit_candidate(repo.root(), &head, &globs, &note)?;
    Ok(("the worktree".to_owned(), made.oid))
}

/// The functions to show.
fn chosen(
    all: Vec<DisassembledFunction>,
    editable: &EditableFiles,
    function: Option<&str>,
) -> Result<Vec<DisassembledFunction>> {
    let is_meant = |found: &&DisassembledFunction| match function {
        Some(name) => found.name.contains(name),
        None => editable.holds(&found.name, ""),
    };
    let mut found: Vec<DisassembledFunction> = all.iter().filter(is_meant).cloned().collect();
    if found.is_empty() {
        let names: Vec<&str> = all.iter().take(NAMES_MAX).map(|one| one.name.as_str()).collect();
        let what = match function {
            Some(name) => format!("no function of the build is named like {name:?}"),
            None => "no function of the editable files is in the build: it may be inlined".into(),
        };
        return Err(CommandError::usage(what)
            .cause(format!("functions there: {}", names.join(", ")))
            .hint("name one: karve explain --function NAME"));
    }
    found.sort_by_key(|one| std::cmp::Reverse(one.code.len()));
    found.truncate(SHOWN_MAX);
    for one in &mut found {
        let lines: Vec<&str> = one.code.lines().collect();
        if lines.len() > LINES_MAX {
            let rest = lines.len() - LINES_MAX;
            one.code = format!("{}\n… and {rest} more lines\n", lines[..LINES_MAX].join("\n"));
        }
    }
    Ok(found)
}

impl ExplainedCode {
    /// For a terminal: each function with its mix, and a bar beside its innermost loops.
    pub fn render(&self) -> String {
        let mut text = String::new();
        for one in &self.functions {
            let loops = match one.loops.len() {
                1 => "1 innermost loop, marked".to_owned(),
                n => format!("{n} innermost loops, marked"),
            };
            let head = format!("{} in {}: {}; {loops}\n\n", one.name, self.version, one.mix);
            text.push_str(&head);
            for (number, line) in (1..).zip(one.code.lines()) {
                let inside =
                    one.loops.iter().any(|(first, last)| (*first..=*last).contains(&number));
                text.push_str(if inside { "| " } else { "  " });
                text.push_str(line);
                text.push('\n');
            }
            text.push('\n');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(name: &str, lines: usize) -> DisassembledFunction {
        let code = "  10:\tret\n".repeat(lines);
        DisassembledFunction {
            name: name.into(),
            code,
            mix: "1 instruction".into(),
            loops: vec![(1, 1)],
        }
    }

    #[test]
    fn the_functions_of_the_editable_files_are_shown_or_the_named_one() {
        let editable = EditableFiles::of(&[("k.c".into(), b"void product(int n) { }".to_vec())]);
        let all = vec![function("main", 3), function("product", 1), function("_Z7productv", 900)];
        let found = chosen(all.clone(), &editable, None).unwrap();
        let names: Vec<&str> = found.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["_Z7productv", "product"]);
        assert_eq!(found[0].code.lines().count(), LINES_MAX + 1);
        assert_eq!(chosen(all.clone(), &editable, Some("mai")).unwrap()[0].name, "main");
        let error = chosen(all, &editable, Some("gone")).unwrap_err();
        assert!(error.to_string().contains("functions there: main, product"), "{error}");
        let shown = ExplainedCode { version: "main".into(), functions: vec![function("f", 2)] };
        let want =
            "f in main: 1 instruction; 1 innermost loop, marked\n\n|   10:\tret\n    10:\tret\n\n";
        assert_eq!(shown.render(), want);
    }
}
