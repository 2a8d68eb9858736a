//! Lines and cells of a profiler's output, each with its position, within bounds.

use super::ProfileParseError;
use super::gather::ProfileNotes;
use karve_harness::csv::CsvRecords;

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

/// The lines of a text, and the notes on it so far.
pub(super) fn noted_lines(
    text: &str,
) -> Result<(Vec<NumberedLine<'_>>, ProfileNotes), ProfileParseError> {
    let lines = Lines::of(text)?;
    let mut notes = ProfileNotes::default();
    if lines.cut {
        notes.add(ENDS_EARLY);
    }
    Ok((lines.whole, notes))
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

/// The cells of a row of CSV. A row is one line.
pub(super) fn cells((number, line): NumberedLine<'_>) -> Result<Vec<String>, ProfileParseError> {
    let record = CsvRecords { rest: line, line: number }.next_record();
    let record = record.map_err(|error| ProfileParseError::at(number, error.reason))?;
    let cells = record.map_or_else(|| vec![String::new()], |record| record.cells);
    if cells.len() > CELLS_MAX {
        let reason = format!("the row has more than {CELLS_MAX} cells");
        return Err(ProfileParseError::at(number, reason));
    }
    if cells.iter().any(|cell| cell.len() > CELL_BYTES_MAX) {
        let reason = format!("a cell is longer than {CELL_BYTES_MAX} bytes");
        return Err(ProfileParseError::at(number, reason));
    }
    Ok(cells)
}

/// The cells of a row that has one for each column.
pub(super) fn full_row(
    line: NumberedLine<'_>,
    columns: &[String],
) -> Result<Vec<String>, ProfileParseError> {
    let row = cells(line)?;
    let (has, wants) = (row.len(), columns.len());
    if has != wants {
        let reason = format!("the row has {has} cells, but the header has {wants}");
        return Err(ProfileParseError::at(line.0, reason));
    }
    Ok(row)
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
