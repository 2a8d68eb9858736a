//! Build files: flags that change what is computed, what is linked, or what the harness sees.

use super::AuditContext;
use super::reading::FileFacts;

/// Flags that let a compiler change results.
const LOOSE: [&str; 24] = [
    "-ffast-math",
    "-Ofast",
    "-funsafe-math-optimizations",
    "-fassociative-math",
    "-freciprocal-math",
    "-ffinite-math-only",
    "-fno-math-errno",
    "-fno-signed-zeros",
    "-fno-trapping-math",
    "-fno-rounding-math",
    "-fno-honor-nans",
    "-fno-honor-infinities",
    "-fsingle-precision-constant",
    "-fcx-limited-range",
    "-mdaz-ftz",
    "-mrecip",
    "-use_fast_math",
    "--use_fast_math",
    "-ftz=true",
    "-prec-div=false",
    "-prec-sqrt=false",
    "-cl-fast-relaxed-math",
    "-cl-unsafe-math-optimizations",
    "/fp:fast",
];
/// Flags that replace the harness's own code.
const TRICKS: [&str; 20] = [
    "--wrap",
    "--defsym",
    "LD_PRELOAD",
    "LD_AUDIT",
    "LD_LIBRARY_PATH",
    "-fplugin",
    "-specs",
    "-include",
    "-imacros",
    "-wrapper",
    "--dynamic-linker",
    "-dynamic-linker",
    "-Wl,-init",
    "-Wl,-fini",
    "-z,execstack",
    "--allow-multiple-definition",
    "-z,muldefs",
    "RULE_LAUNCH_COMPILE",
    "RUSTC_WRAPPER",
    "rustc-wrapper",
];
/// Programs that fetch things.
const FETCHING: [&str; 7] = [
    "curl",
    "wget",
    "FetchContent_Declare",
    "ExternalProject_Add",
    "urlopen",
    "git+https",
    "git+ssh",
];

/// Whether a file is a build file.
pub fn is_build_file(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    const NAMES: [&str; 15] = [
        "CMakeLists.txt",
        "Makefile",
        "makefile",
        "GNUmakefile",
        "meson.build",
        "meson_options.txt",
        "build.rs",
        "setup.py",
        "setup.cfg",
        "pyproject.toml",
        "Cargo.toml",
        "config.toml",
        "BUILD",
        "BUILD.bazel",
        "compile_flags.txt",
    ];
    const ENDS: [&str; 6] = [".cmake", ".mk", ".mak", ".bzl", ".ninja", ".sh"];
    NAMES.contains(&name) || ENDS.iter().any(|end| name.ends_with(end))
}

/// Scans a build file, line by line.
pub(super) fn read(text: &str, scene: &AuditContext<'_>, reading: &mut FileFacts) {
    for (line, number) in text.lines().zip(1..) {
        let code = line.split(" #").next().unwrap_or(line);
        if code.trim_start().starts_with('#') || code.trim_start().starts_with("//") {
            continue;
        }
        let splits = |c: char| c.is_whitespace() || "\"'`,;()[]{}".contains(c);
        for word in code.split(splits).filter(|word| !word.is_empty()) {
            flag(word, number, reading);
            define(word, scene, (number, reading));
        }
        // Linker flags are joined by commas.
        for trick in TRICKS.iter().filter(|trick| trick.contains(',')) {
            if code.contains(trick) {
                note_trick(trick, number, reading);
            }
        }
        constant(code, number, reading);
    }
}

fn note_trick(flag: &str, line: u32, reading: &mut FileFacts) {
    reading.note("linker-trick", flag, line, format!("`{flag}`"));
}

fn flag(word: &str, line: u32, reading: &mut FileFacts) {
    // A word may follow `CFLAGS=` or `-C link-arg=`.
    let last = word.rsplit_once("=-").map_or(word, |(_, flag)| flag);
    let forms = [word, last, &format!("-{last}")].map(str::to_owned);
    for form in &forms {
        if let Some(loose) = LOOSE.iter().find(|flag| *flag == form) {
            reading.note("fast-math", loose, line, format!("`{loose}`"));
            return;
        }
    }
    let is = |trick: &&&str| {
        let with_value = |word: &str| {
            word.strip_prefix(**trick).is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
        };
        forms.iter().any(|form| with_value(form)) || word.split('=').any(with_value)
    };
    if let Some(trick) = TRICKS.iter().find(is) {
        note_trick(trick, line, reading);
    }
    if FETCHING.iter().any(|name| word == *name || word.starts_with(&format!("{name}:"))) {
        reading.note("network", word, line, format!("`{word}` in a build"));
    }
}

/// `-DNAME`, `-DNAME=1`, `-UNAME`, and names in a list of definitions.
fn define(word: &str, scene: &AuditContext<'_>, (line, reading): (u32, &mut FileFacts)) {
    let flagged = ["-D", "-U", "/D"].iter().find_map(|flag| word.strip_prefix(flag));
    let named = flagged.unwrap_or(word);
    let name = named.split('=').next().unwrap_or(named);
    if scene.reads.contains(name) {
        let what = format!("the build defines {name}, which the harness reads");
        reading.note("harness-define", name, line, what);
    }
    if let (Some(_), Some((name, value))) = (flagged, named.split_once('=')) {
        reading.note_constant(name, value, line);
    }
}

/// `NAME = number` and `set(NAME number)`.
fn constant(code: &str, line: u32, reading: &mut FileFacts) {
    if let Some((name, value)) = code.split_once('=') {
        let name = name.trim().trim_end_matches([':', '?', '+']).trim();
        reading.note_tolerance(name, value.trim_matches([' ', '"', '\'']), line);
    }
    if let Some(set) = code.trim().strip_prefix("set(") {
        let mut words = set.trim_end_matches(')').split_whitespace();
        if let (Some(name), Some(value)) = (words.next(), words.next()) {
            reading.note_tolerance(name, value, line);
        }
    }
}
