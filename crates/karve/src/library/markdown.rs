//! Entries as Markdown with front matter: what a person reads and a pull request shows.
//!
//! ```text
//! ---
//! id: block-for-cache        the record, in YAML
//! ---
//! # One line                 the title
//! ## Mechanism               sections
//! ```

use karve_core::knowledge::{Entry, EntrySection};
use karve_core::markdown::{MarkdownSection, sections, split_front_matter};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::LazyLock;

/// Most characters shown of a line.
const SHOWN_CHARS: usize = 60;
/// Most bytes of an entry.
pub const ENTRY_BYTES_MAX: usize = 256 << 10;

/// Reads an entry.
pub fn parse_entry(text: &str) -> Result<Entry, String> {
    if text.len() > ENTRY_BYTES_MAX {
        return Err(format!("it is larger than {ENTRY_BYTES_MAX} bytes"));
    }
    let (head, body) = split_front_matter(text)?;
    let mut entry: Entry =
        serde_saphyr::from_str(head).map_err(|error| front_matter_error(head, &error))?;
    let (title, sections) = parse_sections(body);
    if entry.title.is_empty() {
        entry.title = title;
    }
    entry.sections = sections;
    Ok(entry)
}

/// Describes an error in a front matter: the line of the file, what it says, and what should be
/// there. The parser's internal state would not help the reader.
pub fn front_matter_error(head: &str, error: &serde_saphyr::Error) -> String {
    let at = error.without_snippet().location();
    let at = at.map(|at| (usize::try_from(at.line()), usize::try_from(at.column())));
    let Some((Ok(line), Ok(column))) = at.filter(|(line, _)| !matches!(line, Ok(0))) else {
        return "its front matter is not valid YAML".to_owned();
    };
    // The parser reports something missing at the end of a line for the next line.
    let lines: Vec<&str> = head.lines().collect();
    let at = line.min(lines.len()).max(1);
    let text = lines.get(at - 1).map_or("", |text| text.trim_end());
    let keys = lines[..at.min(lines.len())].iter().rev();
    let key = key_before(text, column)
        .or_else(|| keys.skip(1).find_map(|line| key_before(line, usize::MAX)));
    let says: String = text.trim().chars().take(SHOWN_CHARS).collect();
    // The line --- comes before it.
    let line = at + 1;
    match key.and_then(|key| Some((key, expected(key)?))) {
        Some((key, want)) => format!("line {line} says {says:?}; {key} must be {want}"),
        None => format!(
            "line {line} says {says:?}, which is not YAML for an entry: a key, a colon, a space, \
            a value"
        ),
    }
}

/// The key of the value at a column, counted from 1.
fn key_before(line: &str, column: usize) -> Option<&str> {
    let end = line.char_indices().nth(column).map_or(line.len(), |(at, _)| at);
    let is_key = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let colon = line[..end].rfind(':').or_else(|| line.find(':'))?;
    let key = line[..colon].trim_end().rsplit(|c| !is_key(c)).next()?;
    Some(key).filter(|key| !key.is_empty())
}

/// What values must be, and the keys of such values.
static KEYS: LazyLock<BTreeMap<String, Vec<String>>> = LazyLock::new(|| {
    toml::from_str(include_str!("../../data/entry-keys.toml")).unwrap_or_default()
});

/// What the value of a key should be.
fn expected(key: &str) -> Option<&'static str> {
    let rule = KEYS.iter().find(|(_, keys)| keys.iter().any(|known| known == key));
    rule.map(|(must_be, _)| must_be.as_str())
}

/// The title and the sections of a text. Headings inside fenced code do not count.
pub fn parse_sections(body: &str) -> (String, Vec<EntrySection>) {
    let (before, parts) = sections(body, |line| line.strip_prefix("## "));
    let title = before.iter().find_map(|(_, line)| line.strip_prefix("# "));
    let section = |part: &MarkdownSection<'_>| EntrySection {
        heading: part.heading.to_owned(),
        text: part.text().trim().to_owned(),
    };
    (title.unwrap_or_default().trim().to_owned(), parts.iter().map(section).collect())
}

/// An entry as Markdown; reading it gives the same entry.
pub fn render_entry(entry: &Entry) -> Result<String, String> {
    let head = serde_saphyr::to_string(entry).map_err(|error| error.to_string())?;
    let mut text = format!("---\n{}\n---\n\n# {}\n", head.trim_end(), entry.title);
    for section in &entry.sections {
        let _ = write!(text, "\n## {}\n\n{}\n", section.heading, section.text.trim());
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use karve_core::knowledge::{Action, EntryKind, EntryStatus, Evidence};

    const SAMPLE: &str = "---\n\
        id: unroll-inner-loop\n\
        kind: optimization\n\
        status: verified\n\
        basis: measured\n\
        risk: lossless\n\
        scope:\n  device: [cpu]\n  op: [gemm, reduction]\n\
        triggers:\n  - ipc < 2 && ceiling_pct < 60\n\
        direction: pipeline\n\
        impact: {low: 1.05, high: 1.6}\n\
        apply:\n  - do: before-inner-loops\n    line: '#pragma GCC unroll 8'\n    files: ['*.c']\n\
        evidence:\n  - metric: time_ms\n    before: 2.0\n    after: 1.0\n    ratio: 2.0\n    \
        low: 1.9\n    high: 2.1\n    device: x\n    workload: y\n    run: z\n    \
        date: 2026-11\n    toolchain: gcc\n    n: 40\n\
        interactions:\n  depends-on: [loop-order]\n\
        date: 2026-11\n\
        ---\n\n# Unroll the inner loop\n\n## Mechanism\n\nFewer branches.\n\n\
        ```c\n## no heading\n```\n\n## Pitfalls\n\nCode size.\n";

    #[test]
    fn an_entry_is_read_with_its_record_and_its_sections() {
        let entry = parse_entry(SAMPLE).unwrap();
        assert_eq!(entry.id, "unroll-inner-loop");
        assert_eq!(entry.title, "Unroll the inner loop");
        assert_eq!((entry.kind, entry.status), (EntryKind::Optimization, EntryStatus::Verified));
        assert_eq!(entry.scope.op, ["gemm", "reduction"]);
        assert_eq!(entry.interactions.depends_on, ["loop-order"]);
        assert!(matches!(&entry.apply[0], Action::BeforeInnerLoops { line, .. }
            if line == "#pragma GCC unroll 8"));
        assert_eq!(entry.sections.len(), 2);
        assert!(entry.section("mechanism").unwrap().contains("## no heading"));
    }

    #[test]
    fn what_is_written_is_read_as_it_was() {
        let mut entry = parse_entry(SAMPLE).unwrap();
        // Words that YAML could read as something else.
        entry.title = "yes: no # \"null\" 'x' [1, 2] {a} | > ~".into();
        entry.evidence[0].note = "first\nsecond: - #".into();
        entry.evidence.push(Evidence {
            ratio: 1e-300,
            before: f64::MAX,
            date: "2026-11-15".into(),
            run: "0x1F".into(),
            toolchain: "1e5".into(),
            device: "on".into(),
            ..Evidence::default()
        });
        let text = render_entry(&entry).unwrap();
        assert_eq!(parse_entry(&text).unwrap(), entry, "{text}");
    }

    #[test]
    fn what_is_no_entry_is_refused_in_words() {
        let check = |text: &str, want: &str| {
            let error = parse_entry(text).unwrap_err();
            assert!(error.contains(want), "{error}");
            // None of the parser's own wording is shown.
            for word in ["saphyr", "column", "serde", "untagged", "scalar", "deserial"] {
                assert!(!error.contains(word), "{error}");
            }
        };
        check("# no front matter", "does not start with a line ---");
        check("---\nid: x\n", "does not end with a line ---");
        check("---\nid: [\n---\n", "line 2 says \"id: [\"");
        check(
            "---\nid: x\nkind: wonder\n---\n",
            "line 3 says \"kind: wonder\"; kind must be one of optimization, anti-pattern",
        );
        check("---\nid: x\ntriggers: 5\n---\n", "triggers must be a list of conditions");
        check("---\nimpact: {l\u{fc}w: 1, high: 2}\n---\n", "line 2 says");
        check("---\nimpact: {low: much, high: 2}\n---\n", "low must be a number");
        check("---\nscope:\n  op: gemm\n---\n", "line 3 says \"op: gemm\"; op must be a list");
        check(
            "---\nevidence:\n  - {metric: t, n: many}\n---\n",
            "line 3 says \"- {metric: t, n: many}\"; n must be a whole number",
        );
        check("---\napply:\n  - do: wonder\n---\n", "do must be one of knob, top");
        check("---\nid: x\nid: y\n---\n", "line 3");
        check("---\ntitle: a: b\n---\n", "line 2");
        check(&format!("---\n{}---\n", "a".repeat(ENTRY_BYTES_MAX)), "larger than");
        let bomb = "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\n\
                    c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c]\n\
                    e: &e [*d,*d,*d,*d,*d,*d,*d,*d]\nid: x\n";
        let _ = parse_entry(&format!("---\n{bomb}---\n"));
        let deep = format!("---\nid: {}x{}\n---\n", "[".repeat(50_000), "]".repeat(50_000));
        assert!(parse_entry(&deep).is_err());
    }
}
