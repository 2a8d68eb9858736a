//! The house: which crate may use which, unsafe code in one crate, one name for one type, and the
//! words that karve no longer uses.

use super::source::{Source, files, places, read};
use super::{assert_none, modules};
use std::collections::{BTreeMap, BTreeSet};

/// The size of ARCHITECTURE.md, in bytes.
const ARCHITECTURE_BYTES_MAX: usize = 10 * 1024;

/// The crates, and those of ours that each may depend on.
pub(super) const CRATES: [(&str, &[&str]); 8] = [
    ("numerics", &[]),
    ("core", &["numerics"]),
    ("os", &["numerics", "core"]),
    ("harness", &["numerics", "core", "os"]),
    ("profile", &["numerics", "core", "os", "harness"]),
    ("agents", &["numerics", "core", "os", "harness"]),
    ("audit", &["numerics", "core", "os", "harness"]),
    ("karve", &["numerics", "core", "os", "harness", "profile", "agents", "audit"]),
];

/// A word of ours that serde uses for its own.
const SERDE: &str = concat!("visi", "tor");

/// Words that were replaced by the terms of the field. GLOSSARY.md has those.
const FORBIDDEN: [&str; 29] = [
    concat!("ar", "ena"),
    concat!("by tu", "rns"),
    concat!("ca", "ge"),
    concat!("compan", "ion"),
    concat!("de", "sk"),
    concat!("engage", "ment"),
    concat!("ex", "am"),
    concat!("fore", "told"),
    concat!("guard", "ian"),
    concat!("is no num", "ber"),
    concat!("lear", "nt"),
    concat!("me", "nd"),
    concat!("me", "nded"),
    concat!("me", "nding"),
    concat!("me", "nds"),
    concat!("ora", "cle"),
    concat!("planted fa", "ult"),
    concat!("pra", "ise"),
    concat!("reali", "zation"),
    concat!("shel", "f"),
    concat!("shel", "ves"),
    concat!("str", "ay"),
    concat!("str", "ays"),
    concat!("swee", "per"),
    concat!("the answer is ", "no"),
    concat!("un", "heard"),
    concat!("visi", "tor"),
    concat!("visi", "tors"),
    concat!("work", "shop"),
];

pub(super) fn crate_of(path: &str) -> Option<&str> {
    path.strip_prefix("crates/")?.split('/').next()
}

#[test]
fn crates_depend_in_one_direction() {
    let all: BTreeSet<String> =
        files().iter().filter_map(|path| crate_of(path).map(str::to_owned)).collect();
    let known: BTreeSet<String> = CRATES.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(all, known, "the crates of the workspace");
    let complaints = CRATES.iter().flat_map(|(name, allowed)| {
        let manifest = read(&format!("crates/{name}/Cargo.toml"));
        wrong_dependencies(name, &manifest, allowed)
    });
    assert_none(complaints.collect());
}

/// The dependencies of a manifest that point the wrong way, those of tests included.
pub(super) fn wrong_dependencies(name: &str, manifest: &str, allowed: &[&str]) -> Vec<String> {
    let ours = manifest.lines().filter_map(|line| {
        let of = line.trim().strip_prefix("karve-")?;
        of.split(['.', ' ', '=']).next()
    });
    ours.filter(|of| !allowed.contains(of))
        .map(|of| format!("crates/{name} must not depend on karve-{of}"))
        .collect()
}

#[test]
fn unsafe_code_is_in_one_crate() {
    let others = modules().filter(|source| crate_of(&source.path) != Some("os"));
    assert_none(others.flat_map(unsafe_places).collect());
}

pub(super) fn unsafe_places(source: &Source) -> Vec<String> {
    let found = source.uses("unsafe").into_iter();
    found.map(|at| format!("{}: only crates/os has unsafe code", source.place(at))).collect()
}

#[test]
fn one_name_is_one_type() {
    assert_none(double_names(modules()));
}

/// Types outside of tests that share a name.
pub(super) fn double_names<'a>(sources: impl Iterator<Item = &'a Source>) -> Vec<String> {
    let mut defined: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for source in sources {
        let is_tests = source.path.ends_with("tests.rs") || source.path.contains("/tests/");
        if is_tests {
            continue;
        }
        for word in ["struct", "enum", "trait", "union"] {
            for at in source.uses(word) {
                let rest = source.code[at + word.len()..].trim_start();
                let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_'));
                let name = &rest[..end.unwrap_or(0)];
                if name.starts_with(|c: char| c.is_ascii_uppercase()) {
                    let place = source.place(at);
                    defined.entry(name.to_owned()).or_default().push(place);
                }
            }
        }
    }
    let double = defined.into_iter().filter(|(_, places)| places.len() > 1);
    double
        .map(|(name, places)| format!("{name} names several types: {}", places.join(", ")))
        .collect()
}

#[test]
fn the_architecture_is_one_page() {
    let n = read("ARCHITECTURE.md").len();
    assert!(
        n <= ARCHITECTURE_BYTES_MAX,
        "ARCHITECTURE.md has {n} bytes, and {ARCHITECTURE_BYTES_MAX} are allowed"
    );
}

#[test]
fn nothing_uses_a_word_that_was_replaced() {
    let is_text = |path: &String| {
        let ends = [".rs", ".md", ".toml", ".py", ".sh", ".json"];
        ends.iter().any(|end| path.ends_with(end)) && !is_history(path)
    };
    let all = files().into_iter().filter(is_text);
    assert_none(all.flat_map(|path| old_words(&path, &read(&path))).collect());
}

/// Decision records and the changelog say what was called what; recorded data is what it is.
fn is_history(path: &str) -> bool {
    path.starts_with("docs/decisions/") || path.starts_with("testdata/") || path == "CHANGELOG.md"
}

pub(super) fn old_words(path: &str, text: &str) -> Vec<String> {
    // An underscore ends a word: a name that contains one of these words is found, too.
    let lower = text.to_lowercase().replace('_', " ");
    let source = Source::of(path, text.to_owned());
    let mut complaints = Vec::new();
    // A quoted word alone is data, such as a name that is looked for.
    let is_data = |at: usize, word: &str| {
        lower[..at].ends_with('"') && lower[at + word.len()..].starts_with('"')
    };
    for word in FORBIDDEN {
        if *word == *SERDE && text.contains("serde::de") {
            continue;
        }
        let found = places(&lower, word).into_iter();
        for at in found.filter(|at| !is_data(*at, word)) {
            complaints.push(format!("{}: \"{word}\"", source.place(at)));
        }
    }
    complaints
}
