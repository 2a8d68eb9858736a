//! A patch as lines for a page: numbers, what changed, and words in color.

use karve_audit::{TokenKind, highlight};
use karve_os::text;
use minijinja::Value;
use serde::Serialize;
use std::ops::Range;

/// Characters of a line that are shown.
const LINE_CHARS: usize = 300;

/// Words of a line that have a color; a line with more has none.
const WORDS_MAX: usize = 40;

/// A file of a patch.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct DiffFile {
    /// Its path.
    pub path: String,
    /// Its lines.
    pub lines: Vec<DiffLine>,
}

/// A line of a patch.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct DiffLine {
    /// `add`, `del`, `same` or `hunk`.
    pub kind: &'static str,
    /// Its number before the change.
    pub old: Option<u32>,
    /// Its number after the change.
    pub new: Option<u32>,
    /// Its text as HTML.
    pub html: Value,
}

/// The files of a patch, at most so many lines of it; and how many lines are left out.
pub(super) fn read(patch: &str, lines_max: usize) -> (Vec<DiffFile>, usize) {
    let mut files: Vec<DiffFile> = Vec::new();
    let (mut old, mut new) = (0, 0);
    let mut in_hunk = false;
    let total = patch.lines().count();
    for line in patch.lines().take(lines_max) {
        if let Some(rest) = line.strip_prefix("diff --git ") {
            let path = rest.rsplit_once(" b/").map_or(rest, |(_, path)| path);
            files.push(DiffFile { path: text::safe(path, LINE_CHARS), lines: Vec::new() });
            in_hunk = false;
            continue;
        }
        let Some(file) = files.last_mut() else {
            continue;
        };
        if line.starts_with("@@") {
            (old, new) = starts(line);
            in_hunk = true;
            file.lines.push(plain("hunk", line));
        } else if in_hunk {
            let (kind, has_old, has_new) = match line.as_bytes().first() {
                Some(b'+') => ("add", false, true),
                Some(b'-') => ("del", true, false),
                Some(b'\\') => continue,
                _ => ("same", true, true),
            };
            let content = line.get(1..).unwrap_or_default();
            let shown = DiffLine {
                old: has_old.then_some(old),
                new: has_new.then_some(new),
                ..plain(kind, content)
            };
            old += u32::from(has_old);
            new += u32::from(has_new);
            file.lines.push(shown);
        }
    }
    for file in &mut files {
        color(file);
    }
    (files, total.saturating_sub(lines_max))
}

fn plain(kind: &'static str, content: &str) -> DiffLine {
    let short: String = content.chars().take(LINE_CHARS).collect();
    let shown: String = text::visible(&short.replace('\t', "    "));
    DiffLine { kind, old: None, new: None, html: Value::from(shown) }
}

/// The numbers of the first lines of a hunk.
fn starts(line: &str) -> (u32, u32) {
    let number = |sign: char| {
        let part = line.split(' ').find_map(|part| part.strip_prefix(sign))?;
        part.split(',').next()?.parse().ok()
    };
    (number('-').unwrap_or(1), number('+').unwrap_or(1))
}

/// Colors the words of each side of a file. A hunk alone may not parse; then fewer words are.
fn color(file: &mut DiffFile) {
    for sides in [["same", "add"], ["del", "del"]] {
        let rows: Vec<usize> =
            (0..file.lines.len()).filter(|row| sides.contains(&file.lines[*row].kind)).collect();
        let mut source = String::new();
        let mut places: Vec<(usize, Range<usize>)> = Vec::new();
        for row in rows {
            let start = source.len();
            source.push_str(file.lines[row].html.as_str().unwrap_or_default());
            places.push((row, start..source.len()));
            source.push('\n');
        }
        let words = highlight(&file.path, &source);
        for (row, place) in places {
            file.lines[row].html = Value::from_safe_string(painted(&source, &place, &words));
        }
    }
    for line in file.lines.iter_mut().filter(|line| line.kind == "hunk") {
        let shown = escaped(line.html.as_str().unwrap_or_default());
        line.html = Value::from_safe_string(shown);
    }
}

/// A stretch of the source as HTML.
fn painted(source: &str, place: &Range<usize>, words: &[(Range<usize>, TokenKind)]) -> String {
    let mut html = String::new();
    let mut at = place.start;
    let first = words.partition_point(|(bytes, _)| bytes.end <= place.start);
    let last = words.partition_point(|(bytes, _)| bytes.start < place.end);
    // A long table of numbers is not easier to read in color.
    let words = if last - first > WORDS_MAX { &[][..] } else { words };
    let first = first.min(words.len());
    for (bytes, kind) in words[first..].iter().take_while(|(bytes, _)| bytes.start < place.end) {
        let (start, end) = (bytes.start.max(at), bytes.end.min(place.end));
        html.push_str(&escaped(source.get(at..start).unwrap_or_default()));
        let word = escaped(source.get(start..end).unwrap_or_default());
        html.push_str(&format!("<span class=\"{}\">{word}</span>", class(*kind)));
        at = end;
    }
    html.push_str(&escaped(source.get(at..place.end).unwrap_or_default()));
    html
}

fn class(kind: TokenKind) -> &'static str {
    match kind {
        TokenKind::Comment => "t-c",
        TokenKind::Text => "t-s",
        TokenKind::Number => "t-n",
        TokenKind::Keyword => "t-k",
        TokenKind::Type => "t-t",
        TokenKind::Directive => "t-d",
    }
}

/// Text for HTML.
pub(super) fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    text.replace('"', "&quot;").replace('\'', "&#39;")
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATCH: &str = "diff --git a/k.c b/k.c\nindex 1..2 100644\n--- a/k.c\n+++ b/k.c\n\
                         @@ -3,3 +3,3 @@ f\n int f(void) {\n-    return 1;\n+    return 22;\n }\n";

    fn html(line: &DiffLine) -> String {
        line.html.to_string()
    }

    #[test]
    fn lines_have_their_numbers_and_colors() {
        let (files, left) = read(PATCH, 100);
        assert_eq!((files.len(), left), (1, 0));
        let lines = &files[0].lines;
        let kinds: Vec<_> = lines.iter().map(|line| (line.kind, line.old, line.new)).collect();
        let want = [
            ("hunk", None, None),
            ("same", Some(3), Some(3)),
            ("del", Some(4), None),
            ("add", None, Some(4)),
            ("same", Some(5), Some(5)),
        ];
        assert_eq!(kinds, want);
        assert!(html(&lines[3]).contains("<span class=\"t-n\">22</span>"), "{}", html(&lines[3]));
        assert!(html(&lines[3]).starts_with("    "), "{}", html(&lines[3]));
    }

    #[test]
    fn what_a_patch_says_is_text() {
        let evil = "diff --git a/x b/<script>alert(1)</script>\n@@ -1 +1 @@\n\
                    +<img src=x onerror=alert(1)>\u{1b}[31m\n";
        let (files, _) = read(evil, 10);
        let line = html(&files[0].lines[1]);
        assert!(line.contains("&lt;img"), "{line}");
        assert!(!line.contains('\u{1b}') && !line.contains("<img"), "{line}");
        let long = format!("diff --git a/x b/x\n@@ -1 +1 @@\n+{}", "x".repeat(10_000_000));
        assert_eq!(html(&read(&long, 10).0[0].lines[1]).len(), LINE_CHARS);
    }

    #[test]
    fn a_long_patch_says_how_much_is_left_out() {
        assert_eq!(read(PATCH, 6).1, 3);
    }
}
