//! Audits a candidate before it is built, with what the harness files reveal.

use globset::{Glob, GlobSet, GlobSetBuilder};
use karve_audit;
use karve_audit::{AuditContext, FileChange};
use karve_core::charter::Charter;
use karve_core::integrity::{AuditFinding, forbid_threads, in_order};
use karve_harness::git::{Oid, Repo};
use karve_harness::project_file;
use karve_numerics::case::Case;
use karve_os::error::{CommandError, Result};
use std::collections::{BTreeMap, BTreeSet};

/// Most harness files that are scanned for the macro names they are compiled with.
const HARNESS_FILES_MAX: usize = 64;
/// Words in the names of files that judge a kernel.
const JUDGING: [&str; 14] = [
    "reference",
    "ref",
    "check",
    "checker",
    "test",
    "tests",
    "harness",
    "oracle",
    "golden",
    "expected",
    "verify",
    "evaluate",
    "grader",
    "bench",
];

/// What `candidate` adds to `parent` in these files.
pub fn audit_commits(
    repo: &Repo,
    charter: &Charter,
    parent: &Oid,
    candidate: &Oid,
    files: &[String],
) -> Result<Vec<AuditFinding>> {
    if files.is_empty() {
        return Ok(Vec::new());
    }
    let changes = read_changes(repo, parent, candidate, files)?;
    let harness = HarnessFiles::of(repo, charter, parent, files)?;
    let cases: Vec<Case> = visible(charter);
    let mut findings = karve_audit::audit(
        &changes,
        &AuditContext {
            cases: &cases,
            rule: &charter.audit,
            harness: &harness.files,
            reads: &harness.reads,
        },
    );
    let others = repo.read_matching(parent, &exact_globs(&harness.others)?)?;
    findings.extend(karve_audit::copies(&changes, &others, &charter.audit));
    // On a GPU the host's threads are not what is measured.
    if let Some(contract) = charter.contract.as_deref().filter(|of| !of.is_on_device()) {
        forbid_threads(&mut findings, contract.threads);
    }
    Ok(in_order(findings))
}

/// Whether only comments and white space of these files differ.
pub(crate) fn is_same_code(
    repo: &Repo,
    parent: &Oid,
    candidate: &Oid,
    files: &[String],
) -> Result<bool> {
    Ok(karve_audit::is_same_code(&read_changes(repo, parent, candidate, files)?))
}

fn read_changes(
    repo: &Repo,
    parent: &Oid,
    candidate: &Oid,
    files: &[String],
) -> Result<Vec<FileChange>> {
    let exact = exact_globs(files)?;
    let mut before: BTreeMap<_, _> = repo.read_matching(parent, &exact)?.into_iter().collect();
    let mut after: BTreeMap<_, _> = repo.read_matching(candidate, &exact)?.into_iter().collect();
    let change = |path: &String| FileChange {
        path: path.clone(),
        before: before.remove(path),
        after: after.remove(path),
    };
    Ok(files.iter().map(change).collect())
}

/// A finding must not reveal a hidden case to an agent.
fn visible(charter: &Charter) -> Vec<Case> {
    let indices = charter.visible_cases().into_iter();
    indices.map(|index| charter.cases[index].clone()).collect()
}

/// Globs that match exactly these files.
pub(crate) fn exact_globs(files: &[String]) -> Result<GlobSet> {
    let error = |error: globset::Error| {
        CommandError::environment("cannot name the changed files").cause(error.to_string())
    };
    let mut globs = GlobSetBuilder::new();
    for file in files {
        globs.add(Glob::new(&globset::escape(file)).map_err(error)?);
    }
    globs.build().map_err(error)
}

/// What an audit needs to know about the read-only files.
struct HarnessFiles {
    /// Names of files that judge, without directories and extensions.
    files: Vec<String>,
    /// Macro names that they depend on when they are compiled.
    reads: BTreeSet<String>,
    /// Files that the change may be a copy of.
    others: Vec<String>,
}

impl HarnessFiles {
    fn of(repo: &Repo, charter: &Charter, commit: &Oid, changed: &[String]) -> Result<Self> {
        let editable = project_file::glob_set(&charter.editable)?;
        let entries = repo.entries_outside(commit, &editable)?;
        let paths: Vec<String> = entries.into_iter().map(|entry| entry.path).collect();
        let compared = paths.iter().filter(|path| karve_audit::is_compared(path));
        let others = compared.take(karve_audit::OTHERS_MAX).cloned().collect();
        let judging: Vec<String> = paths.into_iter().filter(|path| judges(path)).collect();
        let mut reads = BTreeSet::new();
        // Only a build can define a name.
        if changed.iter().any(|path| karve_audit::is_build_file(path)) {
            let in_c = |path: &&String| {
                [".c", ".cc", ".cpp", ".cu", ".h", ".hpp"].iter().any(|end| path.ends_with(end))
            };
            let files: Vec<String> =
                judging.iter().filter(in_c).take(HARNESS_FILES_MAX).cloned().collect();
            for (_, bytes) in repo.read_matching(commit, &exact_globs(&files)?)? {
                reads.extend(defines_read(&String::from_utf8_lossy(&bytes)));
            }
        }
        Ok(Self { files: judging.iter().filter_map(|path| stem(path)).collect(), reads, others })
    }
}

fn stem(path: &str) -> Option<String> {
    let name = path.rsplit('/').next()?;
    Some(name.split('.').next()?.to_owned()).filter(|stem| !stem.is_empty())
}

fn judges(path: &str) -> bool {
    stem(path).is_some_and(|stem| {
        let mut words = stem.split(|c: char| !c.is_ascii_alphanumeric());
        words.any(|word| JUDGING.contains(&word.to_ascii_lowercase().as_str()))
    })
}

/// Macro names that decide which parts of a file are compiled.
fn defines_read(text: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for line in text.lines() {
        let Some(directive) = line.trim_start().strip_prefix('#') else {
            continue;
        };
        let directive = directive.trim_start();
        if !directive.starts_with("if") && !directive.starts_with("elif") {
            continue;
        }
        let words = directive.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        let own = |word: &&str| {
            let directives = ["if", "ifdef", "ifndef", "elif", "defined", ""];
            let number = word.starts_with(|c: char| c.is_ascii_digit());
            !directives.contains(word) && !number && !word.ends_with("_H")
        };
        names.extend(words.filter(own).map(str::to_owned));
    }
    if text.contains("assert(") {
        names.insert("NDEBUG".to_owned());
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_harness_tells_which_names_it_reads() {
        let text = "#ifndef CHECK_H\n#ifdef REPEATS\n#  if defined(QUICK) && SIZE > 3\nassert(x);";
        let names: Vec<String> = defines_read(text).into_iter().collect();
        assert_eq!(names, ["NDEBUG", "QUICK", "REPEATS", "SIZE"]);
    }

    #[test]
    fn files_that_judge_are_known_by_their_words() {
        assert!(judges("harness/check_matmul.py") && judges("reference.c"));
        assert!(!judges("src/kernel.h") && !judges("prefetch.c"));
    }
}
