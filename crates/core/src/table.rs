//! Rows of Markdown tables: reading them cell by cell, and text that fits into one cell.

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
