//! Reads the repository as text: which files there are, and what in a Rust file is code, a string
//! or a test. Enough of a lexer for style, no more.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Directories that hold nothing of ours.
const NOT_OURS: [&str; 3] = [".git", "target", ".karve"];

/// The top of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every file of the repository, relative to its top, sorted.
pub(crate) fn files() -> Vec<String> {
    let mut found = Vec::new();
    let mut dirs = vec![String::new()];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(root().join(&dir)).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            let path = if dir.is_empty() { name.clone() } else { format!("{dir}/{name}") };
            let kind = entry.file_type().unwrap();
            if kind.is_dir() && !NOT_OURS.contains(&name.as_str()) {
                dirs.push(path);
            } else if kind.is_file() {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// A file of the repository as text; what is not UTF-8 is replaced.
pub(crate) fn read(path: &str) -> String {
    let bytes = fs::read(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A Rust file, taken apart.
pub(crate) struct Source {
    /// Relative to the top of the repository.
    pub(crate) path: String,
    /// All of it.
    pub(crate) text: String,
    /// The same without comments and without what stands in strings: as long, with spaces instead.
    pub(crate) code: String,
    /// Where each string stands, quotes excluded.
    pub(crate) literals: Vec<Range<usize>>,
    /// Where the parts stand that are only compiled for tests.
    pub(crate) tests: Vec<Range<usize>>,
}

impl Source {
    pub(crate) fn open(path: &str) -> Self {
        Self::of(path, read(path))
    }

    pub(crate) fn of(path: &str, text: String) -> Self {
        let (code, literals) = lex(&text);
        let whole_file = path.contains("/tests/") || path.ends_with("/tests.rs");
        let tests =
            if whole_file { std::iter::once(0..text.len()).collect() } else { test_parts(&code) };
        Self { path: path.to_owned(), text, code, literals, tests }
    }

    /// The line of a place, from 1.
    pub(crate) fn line(&self, at: usize) -> usize {
        self.text[..at].matches('\n').count() + 1
    }

    /// `path:line`, as compilers say it.
    pub(crate) fn place(&self, at: usize) -> String {
        format!("{}:{}", self.path, self.line(at))
    }

    pub(crate) fn is_test(&self, at: usize) -> bool {
        self.tests.iter().any(|part| part.contains(&at))
    }

    pub(crate) fn is_in_string(&self, at: usize) -> bool {
        self.literals.iter().any(|range| range.contains(&at))
    }

    /// Lines that are not in a test.
    pub(crate) fn n_lines(&self) -> usize {
        let in_tests: usize =
            self.tests.iter().map(|part| self.text[part.clone()].lines().count()).sum();
        self.text.lines().count() - in_tests
    }

    /// Where a word stands in the code, tests aside.
    pub(crate) fn uses(&self, word: &str) -> Vec<usize> {
        places(&self.code, word).into_iter().filter(|at| !self.is_test(*at)).collect()
    }

    /// The strings that are not in a test, with their places.
    pub(crate) fn strings(&self) -> impl Iterator<Item = (usize, &str)> {
        self.literals
            .iter()
            .filter(|range| !self.is_test(range.start))
            .map(|range| (range.start, &self.text[range.clone()]))
    }

    /// What stands between the bracket at `open` and the one that closes it.
    pub(crate) fn bracketed(&self, open: usize) -> Range<usize> {
        open + 1..closing(&self.code, open).unwrap_or(self.code.len())
    }
}

/// Where a word stands, not as a part of a longer one. A path such as `a::b` counts as a word.
pub(crate) fn places(text: &str, word: &str) -> Vec<usize> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word)
        .map(|(at, _)| at)
        .filter(|at| {
            let before = text[..*at].chars().next_back();
            let after = text[at + word.len()..].chars().next();
            let first = word.starts_with(is_word) && before.is_some_and(is_word);
            let last = word.ends_with(is_word) && after.is_some_and(is_word);
            !first && !last
        })
        .collect()
}

/// Where the bracket closes that opens at a place.
pub(crate) fn closing(code: &str, open: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (n, byte) in code.bytes().enumerate().skip(open) {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => {
                depth -= 1;
                if depth == 0 {
                    return Some(n);
                }
            }
            _ => {}
        }
    }
    None
}

/// The items behind `#[cfg(test)]`: to the closing brace, or to the semicolon.
fn test_parts(code: &str) -> Vec<Range<usize>> {
    let mut parts: Vec<Range<usize>> = Vec::new();
    for (start, mark) in code.match_indices("#[cfg(test)]") {
        let after = start + mark.len();
        let end = match code[after..].find(['{', ';']) {
            Some(at) if code[after + at..].starts_with('{') => closing(code, after + at),
            at => at.map(|at| after + at),
        };
        let end = end.map_or(code.len(), |end| end + 1);
        if parts.last().is_none_or(|last| last.end <= start) {
            parts.push(start..end);
        }
    }
    parts
}

/// Takes comments and the insides of strings out, and says where the strings are.
fn lex(text: &str) -> (String, Vec<Range<usize>>) {
    let mut code = text.as_bytes().to_vec();
    let mut literals = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        let blank = if rest.starts_with("//") {
            at..at + rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            at..at + comment_len(rest)
        } else if let Some((start, end)) = string_at(text, at) {
            literals.push(at + start..at + end);
            at + start..at + end
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
            continue;
        };
        let inside_string = literals.last().is_some_and(|last| *last == blank);
        for byte in &mut code[blank.clone()] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
        // A string ends with its quote and the marks of a raw one, which are passed over.
        let marks = if inside_string {
            // What is no Rust may end within what looks like a string.
            let tail = text.get(blank.end + 1..).unwrap_or_default();
            1 + tail.bytes().take_while(|byte| *byte == b'#').count()
        } else {
            0
        };
        at = blank.end + marks;
    }
    (String::from_utf8(code).unwrap(), literals)
}

/// The length of a block comment, those inside it included.
fn comment_len(rest: &str) -> usize {
    let mut depth = 0_usize;
    let bytes = rest.as_bytes();
    let mut at = 0;
    while at + 1 < bytes.len() {
        match &bytes[at..at + 2] {
            b"/*" => {
                depth += 1;
                at += 2;
            }
            b"*/" => {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    return at;
                }
            }
            _ => at += 1,
        }
    }
    rest.len()
}

/// A string or a character that begins at a place: where its inside starts and ends from there.
fn string_at(text: &str, at: usize) -> Option<(usize, usize)> {
    let rest = &text[at..];
    if let Some(inside) = rest.strip_prefix('"') {
        return Some((1, 1 + escaped_len(inside, b'"')));
    }
    if let Some(inside) = rest.strip_prefix('\'') {
        // A lifetime has no quote at its end.
        let mut chars = inside.char_indices();
        let (_, first) = chars.next()?;
        let (next, second) = chars.next()?;
        return match (first, second) {
            ('\\', _) => Some((1, 1 + escaped_len(inside, b'\''))),
            (_, '\'') => Some((1, 1 + next)),
            _ => None,
        };
    }
    let before = text[..at].chars().next_back();
    let in_word = before.is_some_and(|c| (c.is_alphanumeric() && c != 'b') || c == '_');
    let raw = rest.strip_prefix('r').filter(|_| !in_word)?;
    let marks = raw.bytes().take_while(|byte| *byte == b'#').count();
    let inside = raw[marks..].strip_prefix('"')?;
    let end = inside.find(&format!("\"{}", "#".repeat(marks)))?;
    let start = 1 + marks + 1;
    Some((start, start + end))
}

/// How far it is to a quote that is not escaped.
fn escaped_len(inside: &str, quote: u8) -> usize {
    let bytes = inside.as_bytes();
    let mut at = 0;
    while at < bytes.len() && bytes[at] != quote {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    at.min(bytes.len())
}
