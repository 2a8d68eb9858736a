//! The one reader of Markdown: sections and list items with the numbers of their lines, front
//! matter, fenced blocks, and the rows of tables.
//!
//! It works line by line, because what it reads are forms: a heading or a row counts only where the
//! form says so, a row keeps the cells it was written with, and every error names its line.
//! docs/decisions/0031-one-markdown-reader.md says why it is not a CommonMark parser.

/// A line with its number, from 1.
pub type NumberedLine<'a> = (usize, &'a str);

/// A heading with the lines below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MarkdownSection<'a> {
    /// The line of the heading.
    pub line: usize,
    /// The heading.
    pub heading: &'a str,
    /// The lines up to the next heading.
    pub body: Vec<NumberedLine<'a>>,
}

impl<'a> MarkdownSection<'a> {
    /// The lines that are not blank.
    pub fn filled(&self) -> Vec<NumberedLine<'a>> {
        let lines = self.body.iter().copied();
        lines.filter(|(_, line)| !line.trim().is_empty()).collect()
    }

    /// The text of the body.
    pub fn text(&self) -> String {
        let lines: Vec<&str> = self.body.iter().map(|(_, line)| *line).collect();
        lines.join("\n")
    }
}

/// The lines before the first heading, and the sections. `heading` says which lines are headings;
/// lines inside fenced blocks are not.
pub fn sections<'a>(
    text: &'a str,
    heading: impl Fn(&'a str) -> Option<&'a str>,
) -> (Vec<NumberedLine<'a>>, Vec<MarkdownSection<'a>>) {
    let fenced = fenced_lines(text);
    let mut before = Vec::new();
    let mut sections: Vec<MarkdownSection<'a>> = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let opened = if fenced[at] { None } else { heading(line) };
        match (opened, sections.last_mut()) {
            (Some(heading), _) => {
                let heading = heading.trim();
                sections.push(MarkdownSection { line: at + 1, heading, body: Vec::new() });
            }
            (None, Some(section)) => section.body.push((at + 1, line)),
            (None, None) => before.push((at + 1, line)),
        }
    }
    (before, sections)
}

/// For each line, whether it belongs to a fenced block. One that is never closed is not a block.
fn fenced_lines(text: &str) -> Vec<bool> {
    let mut fenced = vec![false; text.lines().count()];
    let mut opened = None;
    for (at, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            match opened.take() {
                Some(from) => fenced[from..=at].fill(true),
                None => opened = Some(at),
            }
        }
    }
    fenced
}

/// The text of the last fenced block of a language. Fences begin lines, since a text inside the
/// block may quote one; only an answer without such a fence may have it anywhere.
pub fn last_block<'a>(text: &'a str, language: &str) -> Option<&'a str> {
    let fence = format!("```{language}");
    let opens = text.rmatch_indices(&fence).find(|(at, _)| begins_line(text, *at));
    let start = opens.map(|(at, _)| at).or_else(|| text.rfind(&fence))? + fence.len();
    let rest = &text[start..];
    let closes = rest.match_indices("```").find(|(at, _)| begins_line(rest, *at));
    let end = closes.map(|(at, _)| at).or_else(|| rest.find("```"))?;
    Some(rest[..end].trim())
}

/// Whether only blanks are before this place in its line.
fn begins_line(text: &str, at: usize) -> bool {
    let before = text[..at].trim_end_matches([' ', '\t']);
    before.is_empty() || before.ends_with('\n')
}

/// The message in an answer that begins with such a line, without the text before it and the fence
/// that it may stand in.
pub fn message_from(answer: &str, title: &str) -> Option<String> {
    let start = match answer.starts_with(title) {
        true => 0,
        false => answer.find(&format!("\n{title}"))? + 1,
    };
    let lines = answer[start..].lines().take_while(|line| !line.starts_with("```"));
    Some(format!("{}\n", lines.collect::<Vec<_>>().join("\n").trim_end()))
}

/// The front matter of a text, and what follows it.
pub fn split_front_matter(text: &str) -> Result<(&str, &str), String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let rest = text
        .strip_prefix("---")
        .and_then(|rest| rest.strip_prefix("\r\n").or_else(|| rest.strip_prefix('\n')))
        .ok_or("it does not start with a line ---")?;
    let mut at = 0;
    for line in rest.split_inclusive('\n') {
        if line.trim_end() == "---" {
            return Ok((&rest[..at], &rest[at + line.len()..]));
        }
        at += line.len();
    }
    Err("its front matter does not end with a line ---".to_owned())
}

/// The number and the text of a list item such as `1. text` or `1) text`.
pub fn numbered_item(line: &str) -> Option<(&str, &str)> {
    let (number, rest) = line.split_at(line.find(|c: char| !c.is_ascii_digit())?);
    let rest = rest.strip_prefix(". ").or_else(|| rest.strip_prefix(") "))?;
    (1..=4).contains(&number.len()).then(|| (number, rest.trim()))
}

/// The cells of a row, from bar to bar; nothing if the line does not start with a bar. A bar or
/// any other character after a backslash is literal.
pub fn cells(line: &str) -> Option<Vec<String>> {
    let inner = line.trim().strip_prefix('|')?;
    let mut cells = Vec::new();
    let mut cell = String::new();
    let mut chars = inner.chars().peekable();
    while let Some(c) = chars.next() {
        let escaped = chars.next_if(|next| c == '\\' && next.is_ascii_punctuation());
        match (c, escaped) {
            ('|', None) => cells.push(std::mem::take(&mut cell)),
            (c, escaped) => cell.push(escaped.unwrap_or(c)),
        }
    }
    // There is no cell after the last bar.
    if !is_closed(line) {
        cells.push(cell);
    }
    Some(cells.iter().map(|cell| cell.trim().to_owned()).collect())
}

/// Whether a row ends with an unescaped bar; a truncated row does not.
pub fn is_closed(line: &str) -> bool {
    let line = line.trim();
    let Some(before) = line.strip_suffix('|').filter(|before| !before.is_empty()) else {
        return false;
    };
    let escapes = before.chars().rev().take_while(|c| *c == '\\').count();
    escapes % 2 == 0
}

/// Whether cells are the separator below a header, such as `|---|:-:|`.
pub fn is_rule(cells: &[String]) -> bool {
    let plain = |cell: &String| cell.contains('-') && cell.chars().all(|c| "-: ".contains(c));
    !cells.is_empty() && cells.iter().all(plain)
}

/// Text as one line of at most this many characters that fits into a cell.
pub fn cell(text: &str, max: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let line: String = line.chars().take(max).collect();
    line.replace('\\', "\\\\").replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_have_the_lines_of_their_text_and_headings_in_blocks_do_not_count() {
        let text = "a\n\n## One \nb\n```c\n## no\n```\n\n## Two\n```\n## Three\n";
        let (before, sections) = sections(text, |line| line.strip_prefix("## "));
        assert_eq!(before, [(1, "a"), (2, "")]);
        let headings: Vec<_> = sections.iter().map(|s| (s.line, s.heading)).collect();
        // The last fence is never closed.
        assert_eq!(headings, [(3, "One"), (9, "Two"), (11, "Three")]);
        assert_eq!(sections[0].text(), "b\n```c\n## no\n```\n");
        assert_eq!(sections[0].filled().last(), Some(&(7, "```")));
    }

    #[test]
    fn items_and_blocks_are_read() {
        assert_eq!(numbered_item("12) do it "), Some(("12", "do it")));
        for line in [" 1. x", "1.x", "x", "12345. x", ". x"] {
            assert_eq!(numbered_item(line), None, "{line}");
        }
        let text = "```json\n1\n```\nno\n```json\n2\n```\n";
        assert_eq!(last_block(text, "json"), Some("2"));
        assert_eq!(last_block("```json", "json"), None);
        assert_eq!(last_block("so: ```json {} ```", "json"), Some("{}"));
        let quoting = "```json\n{\"a\": \"```json x ``` y\"}\n  ```\nend ``` ";
        assert_eq!(last_block(quoting, "json"), Some("{\"a\": \"```json x ``` y\"}"));
    }

    #[test]
    fn front_matter_is_between_two_lines() {
        assert_eq!(split_front_matter("---\na: 1\n---\nb"), Ok(("a: 1\n", "b")));
        assert!(split_front_matter("a: 1").unwrap_err().contains("start"));
        assert!(split_front_matter("---\na: 1\n").unwrap_err().contains("end"));
    }

    #[test]
    fn cells_are_split_at_bars_that_are_not_escaped() {
        let check = |line: &str, want: &[&str]| {
            assert_eq!(cells(line).unwrap(), want, "{line}");
        };
        check("| a | b |", &["a", "b"]);
        check("  |a|b", &["a", "b"]);
        check("| a \\| b | c |", &["a | b", "c"]);
        check("| a\\\\| b |", &["a\\", "b"]);
        check("| \\*p | c:\\dir |", &["*p", "c:\\dir"]);
        check("||", &[""]);
        check("|", &[""]);
        check("| a | b\\|", &["a", "b|"]);
        assert_eq!(cells("a | b"), None);
    }

    #[test]
    fn what_is_written_is_read_again() {
        for text in ["plain", "a | b", "c:\\x|y\\", "\\|", "x \\* y", "-"] {
            let line = format!("| {} | 1 |", cell(text, 100));
            assert!(is_closed(&line));
            assert_eq!(cells(&line).unwrap(), [text, "1"], "{line}");
        }
    }

    #[test]
    fn a_rule_is_no_row_and_a_cut_row_is_known() {
        let rule = |line: &str| is_rule(&cells(line).unwrap());
        assert!(rule("|---|:-:|") && rule("| - |"));
        assert!(!rule("| - | a |") && !rule("| |"));
        assert!(!is_closed("| a | b") && !is_closed("|") && !is_closed("| a \\|"));
    }
}
