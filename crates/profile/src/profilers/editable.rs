//! Which functions belong to the kernel: those of the editable files.
//!
//! If the profiler reports the file of a function, the file decides. If it does not, because the
//! program was built without debug information, a function counts if its definition is in one of
//! the files.

use std::collections::BTreeSet;

/// How many bytes of editable files are searched.
const TEXT_BYTES_MAX: usize = 4 << 20;
/// How far to search for the end of a parameter list, and then for the body, in bytes.
const REACH: usize = 2_000;
/// Words before parentheses and a block that are not function names.
const KEYWORDS: [&str; 9] =
    ["if", "for", "while", "switch", "match", "catch", "return", "sizeof", "do"];
/// The name of an unknown file.
const UNKNOWN: &str = "???";

/// The files that a candidate may change, and the functions that are defined there.
#[derive(Clone, Debug, Default)]
pub struct EditableFiles {
    paths: Vec<String>,
    defined: BTreeSet<String>,
}

impl EditableFiles {
    /// Reads what is defined in files.
    pub fn of(files: &[(String, Vec<u8>)]) -> Self {
        let mut editable = Self::default();
        let mut left = TEXT_BYTES_MAX;
        for (path, bytes) in files {
            editable.paths.push(path.clone());
            let part = &bytes[..bytes.len().min(left)];
            left -= part.len();
            editable.defined.extend(definitions(&String::from_utf8_lossy(part)));
        }
        editable
    }

    /// The names of the functions that are defined there.
    pub fn defined(&self) -> impl Iterator<Item = &str> {
        self.defined.iter().map(String::as_str)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }

    /// Whether a function is one of theirs, by its file if that is known, else by its name.
    pub fn holds(&self, function: &str, file: &str) -> bool {
        if !file.is_empty() && file != UNKNOWN {
            let file = file.trim_start_matches("./");
            let below = |long: &str, short: &str| {
                long.strip_suffix(short)
                    .is_some_and(|before| before.is_empty() || before.ends_with('/'))
            };
            return self.paths.iter().any(|path| below(file, path) || below(path, file));
        }
        self.defined.contains(plain_name(function))
    }
}

/// The name alone in `void n::name<float>(int)`, `name.constprop.0`, `crate::name::h0123…` or
/// `_Z4nameIfEvPKf`.
pub(super) fn plain_name(function: &str) -> &str {
    if let Some(name) = mangled(function) {
        return name;
    }
    let head = function.split(['(', '<']).next().unwrap_or_default();
    let is_hash = |part: &&str| {
        let digits = part.strip_prefix('h');
        digits.is_some_and(|d| d.len() == 16 && d.bytes().all(|b| b.is_ascii_hexdigit()))
    };
    let mut parts = head.trim().rsplit("::");
    let last = parts.find(|part| !is_hash(part)).unwrap_or_default();
    let last = last.rsplit([' ', '*', '&']).next().unwrap_or_default();
    let end = last.find(['.', '\'', '@']).filter(|end| *end > 0);
    end.map_or(last, |end| &last[..end])
}

/// The last name in `_ZN2ns4nameIfE…` or `_Z4name…`.
fn mangled(function: &str) -> Option<&str> {
    let mut rest = function.strip_prefix("_Z")?;
    rest = rest.strip_prefix('N').unwrap_or(rest);
    let mut last = None;
    while rest.starts_with(|c: char| c.is_ascii_digit()) {
        let end = rest.find(|c: char| !c.is_ascii_digit())?;
        let length: usize = rest[..end].parse().ok()?;
        let name = rest.get(end..end.checked_add(length)?)?;
        rest = rest.get(end + length..)?;
        last = Some(name);
        if !function.starts_with("_ZN") {
            break;
        }
    }
    last.filter(|name| !name.is_empty())
}

/// Names that a text defines as functions: `name(…) … {`, `fn name` or `def name`.
fn definitions(text: &str) -> BTreeSet<String> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut found = BTreeSet::new();
    let mut before = "";
    let mut at = 0;
    while let Some(start) = text[at..].find(is_word).map(|start| at + start) {
        let length = text[start..].find(|c| !is_word(c));
        let end = length.map_or(text.len(), |length| start + length);
        let word = &text[start..end];
        let is_name = word.starts_with(|c: char| !c.is_ascii_digit()) && !KEYWORDS.contains(&word);
        if is_name && (matches!(before, "fn" | "def") || has_body(&text[end..])) {
            found.insert(word.to_owned());
        }
        before = word;
        at = end;
    }
    found
}

/// Whether a list of parameters and then a block follow.
fn has_body(rest: &str) -> bool {
    let rest = rest.trim_start();
    if !rest.starts_with('(') {
        return false;
    }
    let mut depth = 0_i32;
    let mut chars = rest.char_indices().take(REACH);
    let closes = chars.find(|(_, c)| {
        depth += match c {
            '(' => 1,
            ')' => -1,
            _ => 0,
        };
        depth == 0
    });
    let Some((end, _)) = closes else {
        return false;
    };
    let mut after = rest[end + 1..].chars().take(REACH);
    after.find(|c| "{;()=,\"}".contains(*c)) == Some('{')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_is_known_by_its_file_or_by_its_definition() {
        let kernel = "static float most(const float *x, int n) {\n  if (n > 1) {\n    \
                      return expf(x[0]);\n  }\n}\n\
                      __attribute__((noinline)) void\nsoftmax(const float *x,\n  float *y)\n\
                      { other(x); }\n";
        let rust = "pub fn scale<T: Copy>(x: &mut [T]) -> usize { x.len() }";
        let files = [("src/kernel.c", kernel), ("lib.rs", rust)];
        let files = files.map(|(path, text)| (path.to_owned(), text.as_bytes().to_vec()));
        let editable = EditableFiles::of(&files);
        let check = |function: &str, file: &str, want: bool| {
            assert_eq!(editable.holds(function, file), want, "{function} in {file}");
        };
        check("softmax", "???", true);
        check("most.constprop.0", "", true);
        check("void softmax<float>(float const*, float*)", "???", true);
        check("app::scale::h0123456789abcdef", "???", true);
        check("_Z7softmaxPKfPf", "???", true);
        check("_ZN2ns7softmaxIfEEvPT_", "???", true);
        check("_Z99softmax", "???", false);
        // Functions that are only called, and keywords before a block.
        for none in ["expf", "other", "if", "main", "soft", "__expf_fma", ""] {
            check(none, "???", false);
        }
        // The file decides if it is known.
        check("anything", "/tmp/tree/src/kernel.c", true);
        check("anything", "kernel.c", true);
        check("softmax", "/tmp/tree/src/other_kernel.c", false);
        check("softmax", "./src/bench.c", false);
        assert!(EditableFiles::default().is_empty());
    }
}
