//! Near-copies: new text of a change that is, token by token, that of another file of the project.
//!
//! Comments and layout do not matter, nor do the names of variables and the values of numbers. Of
//! all hashes of `TOKENS` tokens in a row, the least of every `WINDOW` is kept, so that a copy of
//! more than `TOKENS + WINDOW` tokens shares at least one. The fingerprints of known libraries are
//! not built in: that would take their text.

use super::tree::AuditLanguage;
use super::{FileChange, finding};
use karve_core::integrity::{AuditFinding, AuditRule};
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};

/// Tokens of one hash, and hashes of which the least is kept.
const TOKENS: usize = 16;
const WINDOW: usize = 6;
/// Fingerprints that a copy shares with its source at least: some 80 tokens.
const SHARED_MIN: usize = 24;
/// Their share of all new fingerprints of the file, in percent.
const SHARED_PERCENT: usize = 50;
/// Larger files are not compared.
const BYTES_MAX: usize = 256 << 10;
/// Maximum number of other files that are compared.
pub const OTHERS_MAX: usize = 200;

/// Whether a file can be compared.
pub fn is_compared(path: &str) -> bool {
    AuditLanguage::of(path).is_some()
}

/// Reports the changed files whose new text is mostly that of another file.
pub fn copies(
    changes: &[FileChange],
    others: &[(String, Vec<u8>)],
    rule: &AuditRule,
) -> Vec<AuditFinding> {
    let others = others.iter().filter(|(path, _)| is_compared(path)).take(OTHERS_MAX);
    let known: Vec<(&String, BTreeSet<u64>)> =
        others.map(|(path, bytes)| (path, prints(bytes).into_keys().collect())).collect();
    let mut found = Vec::new();
    for change in changes.iter().filter(|change| is_compared(&change.path)) {
        let mut new = prints(change.after.as_deref().unwrap_or_default());
        let before = prints(change.before.as_deref().unwrap_or_default());
        new.retain(|print, _| !before.contains_key(print));
        let shared = |of: &BTreeSet<u64>| new.keys().filter(|print| of.contains(print)).count();
        let most = known.iter().map(|(path, of)| (shared(of), *path, of)).max_by_key(|most| most.0);
        let Some((n, path, of)) = most.filter(|(n, ..)| *n >= SHARED_MIN) else {
            continue;
        };
        let percent = n * 100 / new.len();
        if percent < SHARED_PERCENT {
            continue;
        }
        let lines = new.iter().filter(|(print, _)| of.contains(print)).map(|(_, line)| *line);
        let what = format!("{percent}% of the new text is also in {path}");
        found.extend(finding("near-copy", &change.path, lines.min().unwrap_or(0), what));
    }
    found.into_iter().filter_map(|found| rule.weigh(found)).collect()
}

/// The fingerprints of a text, and the line of each.
fn prints(bytes: &[u8]) -> BTreeMap<u64, u32> {
    if bytes.len() > BYTES_MAX {
        return BTreeMap::new();
    }
    let text = String::from_utf8_lossy(bytes);
    let tokens = tokens(&text);
    let hashes: Vec<(u64, u32)> = tokens
        .windows(TOKENS)
        .map(|row| {
            let mut hasher = DefaultHasher::new();
            row.iter().for_each(|(token, _)| token.hash(&mut hasher));
            (hasher.finish(), row.first().map_or(0, |(_, line)| *line))
        })
        .collect();
    hashes.windows(WINDOW).filter_map(|window| window.iter().min().copied()).collect()
}

/// Words that say what a program does; all others are names.
const WORDS: [&str; 30] = [
    "for", "while", "if", "else", "elif", "return", "switch", "case", "match", "do", "break", "in",
    "continue", "def", "fn", "let", "class", "struct", "float", "double", "int", "size_t", "void",
    "const", "f32", "f64", "usize", "not", "and", "or",
];

/// The tokens of a text and their lines, without comments and strings; a name is any name, and a
/// number is any number.
fn tokens(text: &str) -> Vec<(&str, u32)> {
    let (mut tokens, mut rest, mut line) = (Vec::new(), text, 1);
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |at| at + 2),
            '#' => rest.find('\n').unwrap_or(rest.len()),
            '"' => rest[1..].find(['"', '\n']).map_or(rest.len(), |at| at + 2),
            c if c.is_alphanumeric() || c == '_' => {
                let end = |c: char| !(c.is_alphanumeric() || c == '_' || c == '.');
                rest.find(end).unwrap_or(rest.len())
            }
            c => c.len_utf8(),
        };
        let (token, after) = rest.split_at(length);
        let is_word = |c: char| c.is_alphabetic() || c == '_';
        match first {
            '/' if length > 1 => {}
            '#' | '"' => {}
            c if c.is_whitespace() => {}
            c if c.is_ascii_digit() => tokens.push(("0", line)),
            c if is_word(c) && !WORDS.contains(&token) => tokens.push(("name", line)),
            _ => tokens.push((token, line)),
        }
        line += u32::try_from(token.matches('\n').count()).unwrap_or_default();
        rest = after;
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write;

    /// A function of some length; each number gives another one.
    fn kernel(names: [&str; 2], shape: usize) -> String {
        let [x, y] = names;
        let mut body = String::new();
        for at in 0..14 {
            let op = ["+", "-", "*", "/"][(at * (shape + 1) + shape) % 4];
            let by = ["[i]", "[i + 1]", "[j]"][(at + shape * at) % 3];
            let _ = writeln!(body, "    {x} {op}= {y}{by} {op} {at}.5f;");
            let _ = writeln!(body, "    if ({x} > {at}) {{ {y}[i] = {x}; }}");
        }
        let head = format!("void k(float *{y}, int n) {{\n  float {x} = 0;\n");
        format!("{head}  for (int i = 0; i < n; i++) {{\n{body}  }}\n}}\n")
    }

    fn found(before: &str, after: &str, other: &str) -> Vec<String> {
        let change = FileChange {
            path: "kernel.c".into(),
            before: Some(before.as_bytes().to_vec()),
            after: Some(after.as_bytes().to_vec()),
        };
        let others = [("vendor/lib.c".to_owned(), other.as_bytes().to_vec())];
        let found = copies(&[change], &others, &AuditRule::default());
        found.into_iter().map(|finding| format!("{} {}", finding.rule, finding.what)).collect()
    }

    #[test]
    fn a_copy_with_other_names_and_numbers_is_reported() {
        let library = kernel(["sum", "data"], 1);
        let copy = kernel(["acc", "v"], 1).replace(".5f", ".25f").replace("  ", "\t");
        let copy = format!("/* my own */\n{copy}");
        let said = found("int a;\n", &copy, &library);
        assert_eq!(said, ["near-copy 100% of the new text is also in vendor/lib.c"]);
    }

    #[test]
    fn other_code_short_code_and_what_was_there_are_not_copies() {
        let library = kernel(["sum", "data"], 1);
        assert_eq!(found("int a;\n", &kernel(["sum", "data"], 2), &library), [""; 0]);
        let short = "void k(float *y, int n) { for (int i = 0; i < n; i++) y[i] *= 2; }\n";
        assert_eq!(found("int a;\n", short, short), [""; 0]);
        assert_eq!(found(&library, &format!("{library}int a;\n"), &library), [""; 0]);
    }

    #[test]
    fn odd_text_does_no_harm() {
        for odd in ["", "\"", "/*", "\\\"", "é\"é", "#", "1.", "\u{0}\u{1}", "//"] {
            let _ = prints(odd.as_bytes());
        }
    }
}
