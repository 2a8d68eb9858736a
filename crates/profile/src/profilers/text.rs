//! Lines and cells of a profiler's output, each with its position, within bounds.

use super::ProfileParseError;

/// The longest text that is read, in bytes.
pub(super) const TEXT_BYTES_MAX: usize = 256 * 1024 * 1024;
/// The most cells of a row.
const CELLS_MAX: usize = 20_000;
/// The most bytes of a cell; names of kernels from templates are long.
const CELL_BYTES_MAX: usize = 64 * 1024;

/// A line and its number, from 1.
pub(super) type NumberedLine<'a> = (usize, &'a str);

/// The complete lines of a text, and whether it ends in the middle of one.
pub(super) struct Lines<'a> {
    /// Lines that end with a newline.
    pub(super) whole: Vec<NumberedLine<'a>>,
    /// Whether there is text after the last of them.
    pub(super) cut: bool,
}

/// The note on an output whose last line has no newline.
pub(super) const ENDS_EARLY: &str =
    "the output ends in the middle of a line, so its last line was not read";

impl<'a> Lines<'a> {
    /// The lines of a text that is not too long.
    pub(super) fn of(text: &'a str) -> Result<Self, ProfileParseError> {
        if text.len() > TEXT_BYTES_MAX {
            let mib = TEXT_BYTES_MAX / 1024 / 1024;
            return Err(ProfileParseError::at(1, format!("it is longer than {mib} MiB")));
        }
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut whole = Vec::new();
        let mut cut = false;
        for (index, line) in text.split_inclusive('\n').enumerate() {
            match line.strip_suffix('\n') {
                Some(line) => whole.push((index + 1, line.strip_suffix('\r').unwrap_or(line))),
                None => cut = true,
            }
        }
        Ok(Self { whole, cut })
    }
}

/// The cells of a row of CSV: quoted or not, `""` is a quote within quotes. A row is one line.
pub(super) fn cells((number, line): NumberedLine<'_>) -> Result<Vec<String>, ProfileParseError> {
    let mut cells = Vec::new();
    let mut rest = line;
    loop {
        let (cell, after) = cell(rest).map_err(|reason| ProfileParseError::at(number, reason))?;
        cells.push(cell);
        if cells.len() > CELLS_MAX {
            let reason = format!("the row has more than {CELLS_MAX} cells");
            return Err(ProfileParseError::at(number, reason));
        }
        match after {
            Some(after) => rest = after,
            None => return Ok(cells),
        }
    }
}

/// One cell, and what follows its comma, if there is one.
fn cell(text: &str) -> Result<(String, Option<&str>), String> {
    let Some(mut rest) = text.strip_prefix('"') else {
        let (cell, after) = match text.split_once(',') {
            Some((cell, after)) => (cell, Some(after)),
            None => (text, None),
        };
        return bounded(cell.trim().to_owned()).map(|cell| (cell, after));
    };
    let mut cell = String::new();
    loop {
        let Some((part, after)) = rest.split_once('"') else {
            return Err("a quote is not closed".to_owned());
        };
        cell.push_str(part);
        match after.strip_prefix('"') {
            Some(after) => {
                cell.push('"');
                rest = after;
            }
            None if after.is_empty() => return bounded(cell).map(|cell| (cell, None)),
            None => match after.strip_prefix(',') {
                Some(after) => return bounded(cell).map(|cell| (cell, Some(after))),
                None => return Err("something follows a closing quote".to_owned()),
            },
        }
    }
}

fn bounded(cell: String) -> Result<String, String> {
    if cell.len() > CELL_BYTES_MAX {
        return Err(format!("a cell is longer than {CELL_BYTES_MAX} bytes"));
    }
    Ok(cell)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_split_as_they_are_quoted() {
        let check = |line: &str, want: &[&str]| assert_eq!(cells((1, line)).unwrap(), want);
        check(r#""a","b, c",d,"#, &["a", "b, c", "d", ""]);
        check(r#""say ""x""",1"#, &["say \"x\"", "1"]);
        check("", &[""]);
        assert!(cells((3, "\"a")).is_err_and(|e| e.line == 3));
        assert!(cells((3, "\"a\"b")).is_err());
        assert!(cells((1, &"x".repeat(CELL_BYTES_MAX + 1))).is_err());
        assert!(cells((1, &",".repeat(CELLS_MAX + 1))).is_err());
    }

    #[test]
    fn a_line_without_an_end_is_not_whole() {
        let lines = Lines::of("\u{feff}a\r\nb\nc").unwrap();
        assert_eq!(lines.whole, [(1, "a"), (2, "b")]);
        assert!(lines.cut);
        assert!(!Lines::of("a\n").unwrap().cut);
    }
}
