//! The names that the audit knows: `names.txt` lists those of rules, `words.txt` all others.

use karve_core::word_lists::WordLists;
use std::collections::HashMap;
use std::sync::{LazyLock, OnceLock};

/// The context in which a name counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NameContext {
    Name,
    Call,
    Text,
    Asm,
}

/// Whose names they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LanguageFamily {
    C,
    Python,
    Rust,
}

#[derive(Debug)]
struct RuleNames {
    rule: &'static str,
    family: Option<LanguageFamily>,
    context: NameContext,
    names: Vec<&'static str>,
}

/// A name in a file, with its parts joined by dots.
#[derive(Clone, Copy, Debug)]
pub(super) struct NameUse<'a> {
    pub(super) path: &'a str,
    pub(super) called: bool,
}

fn rows() -> &'static [RuleNames] {
    static ROWS: OnceLock<Vec<RuleNames>> = OnceLock::new();
    ROWS.get_or_init(|| include_str!("names.txt").lines().filter_map(row).collect())
}

fn row(line: &'static str) -> Option<RuleNames> {
    let mut words = line.split_whitespace();
    let rule = words.next().filter(|word| !word.starts_with('#'))?;
    let family = match words.next()? {
        "c" => Some(LanguageFamily::C),
        "python" => Some(LanguageFamily::Python),
        "rust" => Some(LanguageFamily::Rust),
        _ => None,
    };
    let context = match words.next()? {
        "name" => NameContext::Name,
        "call" => NameContext::Call,
        "string" => NameContext::Text,
        _ => NameContext::Asm,
    };
    Some(RuleNames { rule, family, context, names: words.collect() })
}

fn rows_for(
    family: LanguageFamily,
    context: NameContext,
) -> impl Iterator<Item = &'static RuleNames> {
    let applies =
        move |row: &&RuleNames| row.context == context && row.family.is_none_or(|of| of == family);
    rows().iter().filter(applies)
}

/// A name of the list, with its rule.
#[derive(Clone, Copy, Debug)]
struct SuspectName {
    rule: &'static str,
    context: NameContext,
    name: &'static str,
}

/// The names of one language by their first part; names with an open start are under "".
type NameIndex = HashMap<&'static str, Vec<SuspectName>>;

fn index(family: LanguageFamily) -> &'static NameIndex {
    static INDICES: OnceLock<[NameIndex; 3]> = OnceLock::new();
    let make = |family| {
        let mut index = NameIndex::new();
        for row in rows_for(family, NameContext::Name).chain(rows_for(family, NameContext::Call)) {
            for name in &row.names {
                let first = name.split('.').next().unwrap_or_default();
                let first = if first.ends_with('*') { "" } else { first };
                let (rule, context) = (row.rule, row.context);
                index.entry(first).or_default().push(SuspectName { rule, context, name });
            }
        }
        index
    };
    let [c, python, rust] = INDICES.get_or_init(|| {
        [make(LanguageFamily::C), make(LanguageFamily::Python), make(LanguageFamily::Rust)]
    });
    match family {
        LanguageFamily::C => c,
        LanguageFamily::Python => python,
        LanguageFamily::Rust => rust,
    }
}

/// The rules that know a name, each with the name it knows.
pub(super) fn known(
    family: LanguageFamily,
    found: NameUse<'_>,
) -> Vec<(&'static str, &'static str)> {
    let index = index(family);
    let mut hits: Vec<(&str, &str)> = Vec::new();
    for first in std::iter::once("").chain(found.path.split('.')) {
        for known in index.get(first).into_iter().flatten() {
            let in_context = known.context == NameContext::Name || found.called;
            let is_new = !hits.iter().any(|(rule, _)| *rule == known.rule);
            if in_context && is_new && matches_name(family, found.path, known.name) {
                hits.push((known.rule, known.name));
            }
        }
    }
    hits
}

/// The rules that a string or a piece of assembly breaks.
pub(super) fn in_text(
    family: LanguageFamily,
    context: NameContext,
    text: &str,
) -> Vec<(&'static str, &'static str)> {
    let text = text.to_ascii_lowercase();
    let contains_name = |name: &&&'static str| match context {
        NameContext::Asm => has_word(&text, name),
        NameContext::Text | NameContext::Name | NameContext::Call => {
            text.contains(&name.to_ascii_lowercase())
        }
    };
    let hits = rows_for(family, context).filter_map(|row| {
        let name = row.names.iter().find(contains_name)?;
        Some((row.rule, *name))
    });
    hits.collect()
}

fn has_word(text: &str, word: &str) -> bool {
    let part_of_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.match_indices(word).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        !before.is_some_and(part_of_word) && !after.is_some_and(part_of_word)
    })
}

/// Whether a name in the list is a path.
fn matches_name(family: LanguageFamily, path: &str, name: &str) -> bool {
    if let Some(method) = name.strip_prefix('.') {
        return path.contains('.') && path.rsplit('.').next() == Some(method);
    }
    let begins = |path: &str| {
        let mut parts = path.split('.');
        name.split('.').all(|wanted| {
            let Some(part) = parts.next() else {
                return false;
            };
            match wanted.strip_suffix('*') {
                Some(start) => part.starts_with(start),
                None => part == wanted,
            }
        })
    };
    match family {
        // Namespaces may be left out.
        LanguageFamily::C => {
            let starts = path.match_indices('.').map(|(at, _)| at + 1);
            std::iter::once(0).chain(starts).any(|at| begins(&path[at..]))
        }
        LanguageFamily::Python | LanguageFamily::Rust => begins(path),
    }
}

/// The words of a list in `words.txt`.
pub(super) fn word_list(name: &str) -> &'static [&'static str] {
    static LISTS: LazyLock<WordLists> =
        LazyLock::new(|| WordLists::parse(include_str!("words.txt")));
    LISTS.list(name)
}

/// Whether a list contains a word.
pub(super) fn is_listed(list: &str, word: &str) -> bool {
    word_list(list).contains(&word)
}

/// Whether a list contains one of the words of a name.
pub(super) fn suggests(list: &str, name: &str) -> bool {
    words(name).iter().any(|word| is_listed(list, word))
}

/// The words of a name: `lastInput_ptr2` is last, input, ptr, 2.
pub(super) fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut before = '_';
    for c in name.chars() {
        let starts = (c.is_ascii_uppercase() && !before.is_ascii_uppercase())
            || (c.is_ascii_digit() && !before.is_ascii_digit())
            || !before.is_alphanumeric();
        before = c;
        if !c.is_alphanumeric() {
            continue;
        }
        if starts || words.is_empty() {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut() {
            word.push(c.to_ascii_lowercase());
        }
    }
    words
}

/// Whether a name suggests a hash.
pub(super) fn is_hash(name: &str) -> bool {
    suggests("hash-words", name)
}

/// Whether a name suggests a version.
pub(super) fn is_version(name: &str) -> bool {
    suggests("version-words", name)
}

/// Whether a name suggests weights.
pub(super) fn is_weight(name: &str, declared: &[String]) -> bool {
    declared.iter().any(|weight| weight == name) || suggests("weight-words", name)
}

/// Whether a name suggests the reference.
pub(super) fn is_reference(name: &str) -> bool {
    if is_listed("not-references", name) || suggests("counting-words", name) {
        return false;
    }
    let words = words(name);
    let outer = |word: Option<&String>| {
        let known = ["ref", "reference", "oracle", "golden"];
        word.is_some_and(|word| known.contains(&word.as_str()))
    };
    let last = words.last().map(String::as_str);
    let named = ["fn", "impl", "kernel", "forward"].map(Some).contains(&last);
    let inner = words.iter().rev().nth(1).filter(|_| named);
    outer(words.first()) || outer(words.last()) || outer(inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::rule;

    #[test]
    fn every_name_belongs_to_a_rule() {
        for row in rows() {
            let inner = ["memo", "hash"].contains(&row.rule);
            assert!(inner || rule(row.rule).is_some(), "{}", row.rule);
            assert!(!row.names.is_empty(), "{}", row.rule);
        }
    }

    #[test]
    fn names_are_meant_part_by_part() {
        let meant = |family, path, name| matches_name(family, path, name);
        assert!(meant(LanguageFamily::C, "std.chrono.steady_clock.now", "steady_clock"));
        assert!(meant(LanguageFamily::C, "cblas_sgemm", "cblas_*"));
        assert!(!meant(LanguageFamily::C, "my_clock_gettime", "clock_gettime"));
        assert!(meant(LanguageFamily::Python, "time.sleep", "time.sleep"));
        assert!(!meant(LanguageFamily::Python, "self.time.sleep", "time.sleep"));
        assert!(meant(LanguageFamily::Python, "x.data.tofile", ".tofile"));
        assert!(!meant(LanguageFamily::Python, "tofile", ".tofile"));
    }

    #[test]
    fn names_are_taken_apart() {
        assert_eq!(words("lastInput_ptr2"), ["last", "input", "ptr", "2"]);
        assert_eq!(words("__FNV_hash"), ["fnv", "hash"]);
        assert!(is_reference("reference_fn") && is_reference("matmul_ref"));
        assert!(!is_reference("as_ref") && !is_reference("prefer") && !is_reference("x_reflect"));
    }
}
