//! Style as a test: the budgets of STYLE.md and the invariants of ARCHITECTURE.md.
//!
//! Each check gives a list of complaints, one a line, and passes if there are none. In `notices`
//! each check is shown something broken.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    unreachable_pub,
    reason = "a test says so when it breaks"
)]

#[path = "tidy/book.rs"]
mod book;
#[path = "tidy/coverage.rs"]
mod coverage;
#[path = "tidy/cycles.rs"]
mod cycles;
#[path = "tidy/house.rs"]
mod house;
#[path = "tidy/notices.rs"]
mod notices;
#[path = "tidy/source.rs"]
mod source;

use source::{Source, closing, files, places, read, root};
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::OnceLock;

const FUNCTION_LINES_MAX: usize = 70;
const FILE_LINES_MAX: usize = 500;
const DRIVE_LINES_MAX: usize = 150;
const PARAMETERS_MAX: usize = 5;
const COLUMNS_MAX: usize = 100;

/// Vendors and their tools, which core must not know.
const VENDORS: [&str; 22] = [
    "amd",
    "anthropic",
    "claude",
    "codex",
    "cublas",
    "cuda",
    "cutlass",
    "gemini",
    "git",
    "hip",
    "intel",
    "ncu",
    "nsight",
    "nvcc",
    "nvidia",
    "openai",
    "ptxas",
    "rocm",
    "rocprof",
    "slurm",
    "triton",
    "valgrind",
];

/// What core must not touch.
const WORLD: [&str; 11] = [
    "std::fs",
    "std::process",
    "std::env",
    "std::net",
    "std::thread",
    "std::io",
    "Instant",
    "SystemTime",
    "libc",
    "rand",
    "unsafe",
];

/// What starts a process.
const STARTERS: [&str; 10] = [
    "std::process::Command",
    "process::Command::new",
    "fork",
    "vfork",
    "execve",
    "execvp",
    "posix_spawn",
    "posix_spawnp",
    "SYS_clone3",
    "SYS_clone",
];

/// The directories of a developer's machine.
const MACHINES: [&str; 4] =
    [concat!("/wo", "rk/"), concat!("/ho", "me/"), concat!("/ro", "ot/"), concat!("/fa", "rm/")];

/// Marks of what is not done.
const UNDONE: [&str; 3] = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("X", "XX")];

fn assert_none(complaints: Vec<String>) {
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}

/// All Rust files, read once for all tests.
fn sources() -> &'static [Source] {
    static SOURCES: OnceLock<Vec<Source>> = OnceLock::new();
    SOURCES.get_or_init(|| {
        let paths = files().into_iter().filter(|path| path.ends_with(".rs"));
        paths.map(|path| Source::open(&path)).collect()
    })
}

/// The Rust files of the two crates, without tests and benchmarks.
fn modules() -> impl Iterator<Item = &'static Source> {
    let all = sources().iter();
    all.filter(|source| source.path.starts_with("crates/") && source.path.contains("/src/"))
}

/// Whether a file belongs to the crates that decide and compute, and perform no I/O.
fn is_pure(source: &Source) -> bool {
    ["crates/core/", "crates/numerics/"].iter().any(|pure| source.path.starts_with(pure))
}

/// Whether a file is a module or lies below it: `git` means `git.rs` and `git/`.
fn is_part_of(source: &Source, module: &str) -> bool {
    let path = &source.path;
    path.ends_with(&format!("/src/{module}.rs")) || path.contains(&format!("/src/{module}/"))
}

#[test]
fn functions_are_short_and_take_few_parameters() {
    assert_none(sources().iter().flat_map(oversized_functions).collect());
}

fn oversized_functions(source: &Source) -> Vec<String> {
    let mut complaints = Vec::new();
    for (start, parameters, end) in functions(&source.code) {
        let n_lines = source.code[start..end].lines().count();
        if n_lines > FUNCTION_LINES_MAX {
            let place = source.place(start);
            complaints.push(format!("{place}: {n_lines} lines > {FUNCTION_LINES_MAX}"));
        }
        let n = count_parameters(&source.code[parameters]);
        if n > PARAMETERS_MAX {
            let place = source.place(start);
            complaints.push(format!("{place}: {n} parameters > {PARAMETERS_MAX}"));
        }
    }
    complaints
}

/// Every function that has a name: where it starts, its parameters, and where it ends.
fn functions(code: &str) -> Vec<(usize, Range<usize>, usize)> {
    let mut found = Vec::new();
    for start in places(code, "fn") {
        // The type of a function has no name.
        let Some(open) = code[start..].find('(').map(|at| start + at) else {
            continue;
        };
        if code[start + 2..open].trim().is_empty() {
            continue;
        }
        let Some(close) = closing(code, open) else {
            continue;
        };
        let Some(body) = code[close..].find(['{', ';']).map(|at| close + at) else {
            continue;
        };
        let end = if code[body..].starts_with('{') {
            closing(code, body).unwrap_or(code.len() - 1) + 1
        } else {
            body + 1
        };
        found.push((start, open + 1..close, end));
    }
    found
}

/// Parameters between two parentheses; `self` is one.
fn count_parameters(list: &str) -> usize {
    let mut depth = 0_i32;
    let mut n = 0;
    let mut any = false;
    let mut before = ' ';
    for c in list.chars() {
        match c {
            '(' | '[' | '{' | '<' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            // An arrow is no bracket.
            '>' if before != '-' => depth -= 1,
            ',' if depth == 0 => {
                n += usize::from(any);
                any = false;
            }
            _ => any |= !c.is_whitespace(),
        }
        before = c;
    }
    n + usize::from(any)
}

#[test]
fn files_are_short_and_lines_are_narrow() {
    assert_none(sources().iter().flat_map(oversized_file).collect());
}

fn oversized_file(source: &Source) -> Vec<String> {
    let path = &source.path;
    let most = if path.ends_with("/src/drive.rs") { DRIVE_LINES_MAX } else { FILE_LINES_MAX };
    let n_lines = source.n_lines();
    let mut complaints = Vec::new();
    if n_lines > most {
        complaints.push(format!("{path}: {n_lines} lines without tests > {most}"));
    }
    for (n, line) in source.text.lines().enumerate() {
        let n_columns = line.chars().count();
        if n_columns > COLUMNS_MAX {
            let n = n + 1;
            complaints.push(format!("{path}:{n}: {n_columns} columns > {COLUMNS_MAX}"));
        }
    }
    complaints
}

#[test]
fn modules_begin_with_their_role() {
    let mute = |source: &&Source| !source.text.starts_with("//! ");
    let paths = modules().filter(mute);
    assert_none(paths.map(|s| format!("{}: no //! at the top", s.path)).collect());
}

#[test]
fn every_file_that_the_architecture_names_exists() {
    assert_none(missing_files(&read("ARCHITECTURE.md"), &files()));
}

fn missing_files(text: &str, files: &[String]) -> Vec<String> {
    let exists = |name: &String| {
        let name = name.trim_end_matches('/');
        let below = format!("/{name}/");
        let is_dir = |path: &String| format!("/{path}").contains(&below);
        files.iter().any(|path| ends_with_path(path, name) || is_dir(path))
    };
    let named = named_paths(text);
    let missing = named.iter().filter(|name| !exists(name));
    missing.map(|name| format!("ARCHITECTURE.md names {name}, which does not exist")).collect()
}

/// Whether a path is a name, or ends with it as with whole parts.
fn ends_with_path(path: &str, name: &str) -> bool {
    format!("/{path}").ends_with(&format!("/{name}"))
}

/// The paths in a text: words that end like a file or a directory, `{a,b}` written out.
fn named_paths(text: &str) -> BTreeSet<String> {
    const ENDS: [&str; 6] = [".rs", ".md", ".toml", ".json", ".sh", "/"];
    let is_path = |c: char| c.is_alphanumeric() || "/._-{,}".contains(c);
    text.split(|c: char| !is_path(c))
        .map(|word| word.trim_matches([',', '.']))
        .flat_map(written_out)
        .map(|word| word.trim_start_matches("./").to_owned())
        .filter(|word| word.len() > 1 && ENDS.iter().any(|end| word.ends_with(end)))
        .filter(|word| !word.starts_with(['/', '-']) && !word.contains("//"))
        .collect()
}

/// `a/{b,c}.rs` as `a/b.rs` and `a/c.rs`.
fn written_out(word: &str) -> Vec<String> {
    let parts =
        word.split_once('{').and_then(|(before, rest)| Some((before, rest.split_once('}')?)));
    let Some((before, (inside, after))) = parts else {
        return vec![word.to_owned()];
    };
    inside.split(',').flat_map(|part| written_out(&format!("{before}{part}{after}"))).collect()
}

#[test]
fn core_touches_nothing_and_knows_no_vendor() {
    let core = modules().filter(|source| is_pure(source));
    assert_none(core.flat_map(impurities).collect());
}

fn impurities(source: &Source) -> Vec<String> {
    let mut complaints = Vec::new();
    for word in WORLD {
        for at in source.uses(word) {
            complaints.push(format!("{}: core uses {word}", source.place(at)));
        }
    }
    let lower = source.code.to_lowercase();
    for vendor in VENDORS {
        // An underscore ends a word here: `ncu_path` names it too.
        let split = lower.replace('_', " ");
        let in_code = places(&split, vendor).into_iter();
        for at in in_code.filter(|at| !source.is_test(*at)) {
            complaints.push(format!("{}: core knows {vendor}", source.place(at)));
        }
        for (at, string) in source.strings() {
            if !places(&string.to_lowercase(), vendor).is_empty() {
                complaints.push(format!("{}: core knows {vendor}", source.place(at)));
            }
        }
    }
    complaints
}

#[test]
fn pure_crates_depend_on_serde_alone() {
    let of = |name| strange_dependencies(&read(&format!("crates/{name}/Cargo.toml")));
    assert_none([of("core"), of("numerics")].concat());
}

fn strange_dependencies(manifest: &str) -> Vec<String> {
    let mut section = "";
    let mut complaints = Vec::new();
    for line in manifest.lines().map(str::trim) {
        if line.starts_with('[') {
            section = line;
            let of_target = line.contains("dependencies.") || line.contains("build-dep");
            if of_target || line == "[features]" {
                complaints.push(format!("a pure manifest has {line}"));
            }
        } else if section.ends_with("dependencies]") && section != "[dev-dependencies]" {
            let name = line.split(['.', ' ', '=']).next().unwrap_or_default();
            if !name.is_empty()
                && !name.starts_with('#')
                && !["serde", "karve-numerics"].contains(&name)
            {
                complaints.push(format!("a pure crate depends on {name}"));
            }
        }
    }
    complaints
}

#[test]
fn one_module_starts_processes_one_knows_git_one_writes_the_log() {
    assert_none(modules().flat_map(trespasses).collect());
}

fn trespasses(source: &Source) -> Vec<String> {
    let mut complaints = Vec::new();
    if !is_part_of(source, "process") {
        for word in STARTERS {
            for at in source.uses(word) {
                complaints.push(format!("{}: only process.rs uses {word}", source.place(at)));
            }
        }
    }
    if !is_part_of(source, "git") {
        for at in ["Command::argv", "Command::shell"].map(|call| source.uses(call)).concat() {
            let call = source.bracketed(at + source.code[at..].find('(').unwrap_or(0));
            let in_call = |(at, _): &(usize, &str)| call.contains(at);
            if source.strings().filter(in_call).any(|(_, s)| s.starts_with("git")) {
                complaints.push(format!("{}: only git.rs starts git", source.place(at)));
            }
        }
        for (at, _) in source.strings().filter(|(_, string)| string.starts_with("git ")) {
            complaints.push(format!("{}: a command for git outside git.rs", source.place(at)));
        }
    }
    if !is_part_of(source, "store") {
        for (at, _) in source.strings().filter(|(_, string)| *string == "events.jsonl") {
            complaints.push(format!("{}: only store.rs opens the log", source.place(at)));
        }
    }
    complaints
}

#[test]
fn only_screens_write_to_the_terminal() {
    assert_none(modules().flat_map(orphan_output).collect());
}

fn orphan_output(source: &Source) -> Vec<String> {
    if is_part_of(source, "ui") {
        return Vec::new();
    }
    let words = ["println!", "eprintln!", "print!", "eprint!", "dbg!", "stdout()", "stderr()"];
    let mut complaints = Vec::new();
    for word in words {
        for at in source.uses(word) {
            complaints.push(format!("{}: only ui.rs and ui/ use {word}", source.place(at)));
        }
    }
    complaints
}

#[test]
fn every_hint_names_a_command_a_flag_or_a_file() {
    assert_none(modules().flat_map(vague_hints).collect());
}

/// Whether a word is `-x` or `--long`.
fn is_flag(word: &str) -> bool {
    let name = word.trim_start_matches('-');
    name.len() < word.len() && name.starts_with(|c: char| c.is_ascii_alphabetic())
}

/// A hint names a quoted command, a flag, a variable, a path, a key such as `git.branch`, or
/// something that is filled in.
fn vague_hints(source: &Source) -> Vec<String> {
    let mut complaints = Vec::new();
    for at in source.uses(".hint(") {
        let call = source.bracketed(at + ".hint".len());
        let literals = source.strings().filter(|(at, _)| call.contains(at));
        let text: String = literals.map(|(_, string)| string).collect();
        let names_something = |word: &str| {
            let dotted = word.trim_end_matches(|c: char| !c.is_alphanumeric());
            let is_variable = word.len() > 3 && word.chars().all(|c| c.is_ascii_uppercase());
            is_flag(word) || is_variable || word.contains('/') || dotted.contains('.')
        };
        let telling = text.contains(['"', '`', '{', '[']) || text.split(' ').any(names_something);
        // A hint without a literal comes from elsewhere, where it is looked at.
        if !text.is_empty() && !telling {
            complaints.push(format!("{}: a vague hint: {text}", source.place(at)));
        }
    }
    complaints
}

#[test]
fn nothing_is_undone_and_no_machine_is_named() {
    // The bytes of a picture, or of an archive, may be any words.
    let is_packed = |path: &String| path.ends_with(".png") || path.ends_with(".bundle");
    let all = files().into_iter().filter(|path| !is_packed(path));
    assert_none(all.flat_map(|path| leftovers(&path, &read(&path))).collect());
}

fn leftovers(path: &str, text: &str) -> Vec<String> {
    let source = Source::of(path, text.to_owned());
    let is_rust = path.ends_with(".rs");
    let mut complaints = Vec::new();
    for word in UNDONE {
        // A string that says so is data, such as that of a test.
        let in_string = |at: &usize| is_rust && source.is_in_string(*at);
        for at in places(text, word).into_iter().filter(|at| !in_string(at)) {
            complaints.push(format!("{}: {word}", source.place(at)));
        }
    }
    for (n, line) in text.lines().enumerate() {
        let n = n + 1;
        for name in MACHINES.iter().filter(|name| names_directory(line, name)) {
            complaints.push(format!("{path}:{n}: {name} is a directory of one machine"));
        }
    }
    if is_rust {
        for word in ["todo!", "unimplemented!"] {
            for at in places(&source.code, word) {
                complaints.push(format!("{}: {word}", source.place(at)));
            }
        }
    }
    complaints
}

/// Whether a line names a directory at the root: what stands before it is no part of a path.
fn names_directory(line: &str, name: &str) -> bool {
    line.match_indices(name).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        before.is_none_or(|c| !(c.is_alphanumeric() || "._-}>*~$".contains(c)))
    })
}

#[test]
fn every_word_of_the_glossary_is_used() {
    let code: String = modules().map(|source| source.code.as_str()).collect();
    assert_none(unused_words(&read("GLOSSARY.md"), &code));
}

fn unused_words(glossary: &str, code: &str) -> Vec<String> {
    let words = glossary_words(glossary);
    if words.is_empty() {
        return vec!["GLOSSARY.md has no table of words".into()];
    }
    // A word of the glossary is a type, or a part of one: `Case` in `CaseSet`.
    let is_used = |word: &str| {
        let camel: String = word.split([' ', '-']).map(capitalized).collect();
        let snake = word.to_lowercase().replace([' ', '-'], "_");
        code.contains(&camel) || !places(code, &snake).is_empty()
    };
    let unused = words.iter().filter(|word| !is_used(word));
    unused.map(|word| format!("GLOSSARY.md: {word} is used nowhere")).collect()
}

/// The first column of every table; `Step / Event` and `Entry, Evidence` are two words.
fn glossary_words(text: &str) -> Vec<String> {
    let rows = text.lines().filter_map(|line| line.strip_prefix('|'));
    let first = rows.filter_map(|row| row.split('|').next().map(str::trim));
    first
        .filter(|cell| !cell.starts_with('-') && !cell.starts_with(':') && *cell != "word")
        .flat_map(|cell| cell.split(['/', ',']))
        .map(|word| word.trim().trim_matches(['`', '*']).to_owned())
        .filter(|word| !word.is_empty())
        .collect()
}

fn capitalized(word: &str) -> String {
    let mut chars = word.chars();
    let first = chars.next().map(|c| c.to_uppercase().to_string());
    first.unwrap_or_default() + chars.as_str()
}

#[test]
fn the_readme_names_the_two_commands_and_the_changelog_what_is_new() {
    let readme = read("README.md");
    for command in ["cargo run --release -- demo", "./test.sh"] {
        assert!(readme.contains(command), "README.md does not name {command}");
    }
    let version = env!("CARGO_PKG_VERSION");
    let is_heading = |line: &str| {
        line.starts_with("## ") && (line.contains("Unreleased") || line.contains(version))
    };
    let changelog = read("CHANGELOG.md");
    assert!(changelog.lines().any(is_heading), "CHANGELOG.md: no heading of this version");
    assert!(read(".ci/run").contains("./test.sh"), ".ci/run does not call ./test.sh");
    assert!(root().join("LICENSE").is_file());
}

#[test]
fn the_schema_is_the_one_of_the_code() {
    assert!(
        read("karve.schema.json") == karve::config::schema_json(),
        "karve.schema.json is stale"
    );
}
