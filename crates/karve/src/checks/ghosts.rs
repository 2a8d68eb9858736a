//! Ghosts: functions that a change adds or modifies, and that have no part in its results.
//!
//! A fast path that is never taken, or whose result is thrown away, explains no gain. So before a
//! keep karve disables such functions in a scratch worktree and checks the results: in Python a
//! function returns nothing, in C, C++ and Rust it ends the process. If the results are still right
//! on every case, the functions are ghosts.
//!
//! A variant for another processor never runs here and is honest, so all functions are disabled at
//! once: plain ones are reported only if none of them has a part in the results. A compiled kernel
//! of Python is also tried and reported alone.

use karve_core::charter::Charter;
use karve_core::hypothesis::Candidate;
use karve_core::integrity::AuditFinding;
use karve_harness::commands::Harness;
use karve_harness::git::{Oid, Repo};
use karve_harness::outcome::split;
use karve_harness::worktrees::Worktrees;
use karve_numerics::case::Case;
use karve_numerics::contract::Kernel;
use karve_os::error::{Result, WithContext};
use std::fs;
use std::path::Path;

/// Most functions that are tried alone, and most that are reported.
const TRIED_MAX: usize = 4;
/// What stands before parentheses in a header of C and is not the name of the function.
const ATTRIBUTES: [&str; 5] =
    ["__attribute__", "__launch_bounds__", "__declspec", "alignas", "_Alignas"];
/// Decorators that compile a function of Python.
const COMPILED: [&str; 8] =
    [".jit", "njit", "@jit", ".kernel", ".vectorize", ".guvectorize", ".autotune", "prim_func"];
/// Functions that karve itself calls.
const CALLED: [&str; 4] = ["kernel_fn", "get_inputs", "get_init_inputs", "main"];

/// A function of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
struct SourceFunction {
    file: String,
    name: String,
    /// The line of its header, counted from 0, and of the end of its header.
    line: usize,
    opened: usize,
    /// Its lines, with decorators.
    text: String,
    compiled: bool,
}

/// How a language disables a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Disabling {
    Python,
    C,
    Rust,
}

impl Disabling {
    fn of(path: &str) -> Option<Self> {
        match path.rsplit('.').next()? {
            "py" => Some(Self::Python),
            "c" | "h" | "cc" | "cpp" | "hpp" => Some(Self::C),
            "rs" => Some(Self::Rust),
            _ => None,
        }
    }

    /// The name of the function whose header begins with this line, if one does.
    fn name(self, line: &str) -> Option<&str> {
        let before = match self {
            Self::Python => line.strip_prefix("def ")?.split('(').next()?,
            Self::Rust => {
                let at = line.find("fn ").filter(|at| !line[..*at].contains(['/', '"', '!']))?;
                line[at + 3..].split(['(', '<']).next()?
            }
            Self::C => {
                let line = line.split_once("]] ").map_or(line, |(_, rest)| rest);
                let starts = line.starts_with(|c: char| c.is_alphabetic() || c == '_');
                let header = starts && !line.trim_end().ends_with(';');
                header.then(|| before_arguments(line)).flatten()?
            }
        };
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let name = before.trim().rsplit(|c| !is_word(c)).next()?;
        let outer = !line.starts_with(char::is_whitespace);
        (outer && !name.is_empty()).then_some(name)
    }

    /// Whether a header ends with this line.
    fn ends_header(self, line: &str) -> bool {
        match self {
            Self::Python => line.split(" #").next().unwrap_or_default().trim_end().ends_with(':'),
            Self::C | Self::Rust => line.trim_end().ends_with('{'),
        }
    }

    fn disabled(self, line: &str) -> String {
        match self {
            Self::Python => format!("{line}\n    return"),
            Self::C => format!("{line} __builtin_trap();"),
            Self::Rust => format!("{line} std::process::abort();"),
        }
    }
}

/// What a header of C has before the arguments, attributes aside: a type and the name.
fn before_arguments(line: &str) -> Option<&str> {
    let mut depth = 0;
    for (at, c) in line.char_indices() {
        let before = line[..at].trim_end();
        match c {
            '(' if depth == 0 && !ATTRIBUTES.iter().any(|word| before.ends_with(word)) => {
                return before.contains(' ').then_some(before);
            }
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// The outermost functions of a file.
fn functions(file: &str, text: &str) -> Vec<SourceFunction> {
    let Some(language) = Disabling::of(file) else {
        return Vec::new();
    };
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (line, header) in lines.iter().enumerate() {
        let Some(name) = language.name(header) else {
            continue;
        };
        let mut ends = (line..lines.len()).take(20);
        let Some(opened) = ends.find(|at| language.ends_header(lines[*at])) else {
            continue;
        };
        let outer = |at: &usize| {
            let line = lines[*at];
            !line.trim().is_empty() && !line.starts_with([' ', '\t', '}', ')'])
        };
        let end = (opened + 1..lines.len()).find(outer).unwrap_or(lines.len());
        let decorated = |at: &usize| lines[*at].starts_with('@');
        let start = (0..line).rev().take_while(decorated).last().unwrap_or(line);
        let decorators = lines[start..line].join("\n");
        found.push(SourceFunction {
            file: file.to_owned(),
            name: name.to_owned(),
            line,
            opened,
            text: lines[start..end].join("\n").trim_end().to_owned(),
            compiled: COMPILED.iter().any(|mark| decorators.contains(mark)),
        });
    }
    found
}

/// The functions that a change adds or modifies: compiled kernels first, then the longest.
fn to_try(changed: &[(String, String, String)], entry: &str) -> Vec<SourceFunction> {
    let mut all = Vec::new();
    for (file, before, after) in changed {
        let known = functions(file, before);
        let is_new = |f: &SourceFunction| known.iter().all(|old| old.text != f.text);
        let is_called = |f: &SourceFunction| f.name == entry || CALLED.contains(&f.name.as_str());
        all.extend(functions(file, after).into_iter().filter(|f| is_new(f) && !is_called(f)));
    }
    all.sort_by_key(|f| (!f.compiled, std::cmp::Reverse(f.text.len())));
    all
}

/// What the ghosts of a candidate are tried with.
pub(crate) struct GhostCheck<'a> {
    pub(crate) repo: &'a Repo,
    pub(crate) trees: &'a Worktrees,
    pub(crate) harness: &'a Harness,
    pub(crate) charter: &'a Charter,
    pub(crate) cases: &'a [Case],
}

impl GhostCheck<'_> {
    /// The ghosts of a candidate that is right on all cases, as findings.
    pub(crate) fn run(&self, parent: &Oid, candidate: &Candidate) -> Result<Vec<AuditFinding>> {
        let commit = Oid::named(&candidate.commit)?;
        let text = |commit: &Oid, file: &str| -> Result<String> {
            let bytes = self.repo.read_file(commit, file)?.unwrap_or_default();
            Ok(String::from_utf8(bytes).unwrap_or_default())
        };
        let mut changed = Vec::new();
        for file in candidate.files.iter().filter(|file| Disabling::of(file).is_some()) {
            changed.push((file.clone(), text(parent, file)?, text(&commit, file)?));
        }
        let Some(contract) = &self.charter.contract else {
            return Ok(Vec::new());
        };
        let entry = match &contract.kernel {
            Kernel::Library { entry, .. } => entry.as_str(),
            Kernel::Python { .. } => "",
        };
        let tried = to_try(&changed, entry);
        if tried.is_empty() {
            return Ok(Vec::new());
        }
        let tree = self.trees.fresh(self.repo, "ghosts", &candidate.commit)?;
        let mut ghosts: Vec<&SourceFunction> = tried.iter().take(TRIED_MAX).collect();
        if !self.is_right_without(&tree, &tried.iter().collect::<Vec<_>>())? {
            ghosts.retain(|function| function.compiled);
            for function in std::mem::take(&mut ghosts) {
                if self.is_right_without(&tree, &[function])? {
                    ghosts.push(function);
                }
            }
        }
        self.trees.remove(self.repo, &tree)?;
        Ok(ghosts.into_iter().filter_map(|function| self.finding(function)).collect())
    }

    /// Whether the results are right without some functions.
    fn is_right_without(&self, tree: &Path, functions: &[&SourceFunction]) -> Result<bool> {
        let mut before = Vec::new();
        // The last one first, for what is added moves the lines below it.
        let mut functions = functions.to_vec();
        functions.sort_by_key(|function| std::cmp::Reverse(function.opened));
        for function in functions {
            let path = tree.join(&function.file);
            let cannot = || format!("cannot change {}", path.display());
            let text = fs::read_to_string(&path).context(cannot)?;
            fs::write(&path, without(&text, function)).context(cannot)?;
            before.push((path, text));
        }
        let checked = self.harness.build(tree).and_then(|()| {
            self.harness.check_kernel(tree, self.cases).map(|errors| errors.is_some())
        });
        let checked = split(checked)?;
        for (path, text) in before.into_iter().rev() {
            fs::write(&path, text).context(|| format!("cannot change {}", path.display()))?;
        }
        Ok(checked == Ok(true))
    }

    fn finding(&self, function: &SourceFunction) -> Option<AuditFinding> {
        let line = u32::try_from(function.line + 1).unwrap_or(u32::MAX);
        let what = format!("without `{}` all results are the same", function.name);
        karve_audit::ghost(&self.charter.audit, &function.file, line, what)
    }
}

/// A text in which a function is disabled.
fn without(text: &str, function: &SourceFunction) -> String {
    let Some(language) = Disabling::of(&function.file) else {
        return text.to_owned();
    };
    let changed = text.lines().enumerate().map(|(at, line)| match at == function.opened {
        true => language.disabled(line),
        false => line.to_owned(),
    });
    changed.map(|line| line + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(file: &str, before: &str, after: &str, want: &[&str]) {
        let tried = to_try(&[(file.into(), before.into(), after.into())], "product");
        let found: Vec<String> = tried.iter().map(|f| without(after, f)).collect();
        assert_eq!(found, want, "{after}");
    }

    #[test]
    fn a_function_of_python_returns_nothing_and_the_entry_is_left_alone() {
        check(
            "k.py",
            "def old(x):\n    return x\n",
            "def old(x):\n    return x\n\n@njit\ndef fast(\n    x,\n):\n    return x\n\n\
             def kernel_fn(x):\n    return fast(x)\n",
            &["def old(x):\n    return x\n\n@njit\ndef fast(\n    x,\n):\n    return\n    \
               return x\n\ndef kernel_fn(x):\n    return fast(x)\n"],
        );
        check("k.py", "", "def one(x): return x\n", &[]);
    }

    #[test]
    fn every_function_of_a_change_is_tried() {
        let text: String = (0..9).map(|n| format!("int variant_{n}(int n) {{\n}}\n")).collect();
        assert_eq!(to_try(&[("k.c".into(), String::new(), text)], "product").len(), 9);
    }

    #[test]
    fn a_function_of_c_or_rust_ends_the_process() {
        let product = "int product(int n) {\n  return fast(n);\n}\n";
        check(
            "k.c",
            "",
            &format!("static int fast(int n) {{\n  return n;\n}}\n{product}"),
            &[&format!("static int fast(int n) {{ __builtin_trap();\n  return n;\n}}\n{product}")],
        );
        check("k.c", "", "int declared(int n);\n#define F(x) {\n", &[]);
        for header in [
            "__attribute__((target(\"avx2,fma\"))) static int fast(int n)",
            "static __attribute__((noinline)) int fast(int n)",
            "[[gnu::target(\"avx2\")]] static int fast(int n)",
            "__global__ void __launch_bounds__(256) fast(int n)",
        ] {
            check(
                "k.c",
                "",
                &format!("{header} {{\n}}\n"),
                &[&format!("{header} {{ __builtin_trap();\n}}\n")],
            );
        }
        check(
            "k.rs",
            "",
            "pub fn fast(n: u32) -> u32 {\n    n\n}\n",
            &["pub fn fast(n: u32) -> u32 { std::process::abort();\n    n\n}\n"],
        );
    }
}
