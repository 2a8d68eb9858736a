//! The tables that Triton's `perf_report` prints, and the CSV that it saves.
//!
//! ```text
//! matmul-performance:
//!         M       N  Triton (TFLOPS)
//! 0   256.0   256.0         4.123456
//! ```
//!
//! A table does not mark where its axes end. The first columns with whole numbers in every row
//! name the case, as in `M=256,N=256`; but a case is found by any column that its parameters name.
//! A value is found by its full column name or without the unit in parentheses. What a provider
//! cannot run is NaN there and left out.

use std::collections::BTreeSet;

use super::csv::{CsvRecords, miscounted};
use super::fields::OutputRows;
use super::{CaseCheck, OutputParseError, OutputRow, ParseSpec, check_label, fields};

/// One table with its cells as written.
struct TritonTable<'a> {
    title: &'a str,
    columns: Vec<String>,
    rows: Vec<(usize, Vec<String>)>,
}

/// Reads one row for each row of the selected table.
pub(super) fn parse(text: &str, spec: &ParseSpec) -> Result<Vec<OutputRow>, OutputParseError> {
    let mut tables = printed(text)?;
    if tables.is_empty() && text.trim().contains(',') {
        tables.extend(saved(text)?);
    }
    let titles: BTreeSet<&str> = tables.iter().map(|table| table.title).collect();
    let refuse = |reason: String| OutputParseError::at(text, 1, reason);
    check_label(&titles, spec.label, "table").map_err(refuse)?;
    tables.retain(|table| spec.label.is_none_or(|label| label == table.title));
    if tables.len() > 1 {
        let titles: Vec<&str> = titles.into_iter().collect();
        return Err(refuse(format!(
            "there are several tables; name one as the label: {}",
            titles.join(", ")
        )));
    }
    let mut rows = OutputRows::default();
    for table in &tables {
        let n_axes = table.n_axes();
        for (line, cells) in &table.rows {
            table
                .row(cells, n_axes, *line, spec)
                .and_then(|row| rows.push(row))
                .map_err(|reason| OutputParseError::at(text, *line, reason))?;
        }
    }
    Ok(rows.finish())
}

/// All tables in printed text; log lines may surround them.
fn printed(text: &str) -> Result<Vec<TritonTable<'_>>, OutputParseError> {
    let lines: Vec<&str> = text.lines().collect();
    let mut tables = Vec::new();
    let mut at = 0;
    while let Some(header) = lines.get(at) {
        let is_header = header.starts_with(' ')
            && lines
                .get(at + 1)
                .is_some_and(|next| cells(next).first().is_some_and(|cell| cell == "0"));
        if !is_header {
            at += 1;
            continue;
        }
        let title = lines[..at].last().and_then(|line| line.trim().strip_suffix(':'));
        let mut table = TritonTable {
            title: title.unwrap_or_default(),
            columns: cells(header),
            rows: Vec::new(),
        };
        at += 1;
        while let Some(line) = lines.get(at).filter(|line| !line.trim().is_empty()) {
            let refuse = |reason: String| OutputParseError::at(text, at + 1, reason);
            if !table.take(line, at + 1).map_err(refuse)? {
                break;
            }
            at += 1;
        }
        tables.push(table);
    }
    let is_open = !text.ends_with('\n') && lines.last().is_some_and(|line| is_row(line));
    if is_open {
        return Err(OutputParseError::at_end(text, "the output ends inside this row"));
    }
    Ok(tables)
}

/// The table of a saved file.
fn saved(text: &str) -> Result<Option<TritonTable<'_>>, OutputParseError> {
    let mut records = CsvRecords { rest: text, line: 1 };
    let Some(header) = records.next_record().map_err(|e| e.unreadable(text))? else {
        return Ok(None);
    };
    let mut table = TritonTable { title: "", columns: header.cells, rows: Vec::new() };
    while let Some(record) = records.next_record().map_err(|e| e.unreadable(text))? {
        if record.cells.len() != table.columns.len() {
            let reason = miscounted(record.cells.len(), table.columns.len(), records.rest);
            return Err(OutputParseError::at(text, record.line, reason));
        }
        table.rows.push((record.line, record.cells));
    }
    if !text.ends_with('\n') && !table.rows.is_empty() {
        return Err(OutputParseError::at_end(text, "the output ends inside this row"));
    }
    Ok(Some(table))
}

/// Cells are at least two spaces apart; a name may have single spaces in it.
fn cells(line: &str) -> Vec<String> {
    line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).map(str::to_owned).collect()
}

/// Whether the line starts with a row number.
fn is_row(line: &str) -> bool {
    let first = cells(line).into_iter().next().unwrap_or_default();
    first.bytes().all(|byte| byte.is_ascii_digit()) && !first.is_empty()
}

impl TritonTable<'_> {
    /// Takes a line as the next row; returns whether it was one.
    fn take(&mut self, line: &str, at: usize) -> Result<bool, String> {
        if line.trim_start().starts_with("..") {
            return Err("the table omits rows; print it with to_string()".into());
        }
        if !is_row(line) {
            return Ok(false);
        }
        let mut found = cells(line);
        let number = found.remove(0);
        if number != self.rows.len().to_string() {
            let want = self.rows.len();
            return Err(format!("this is row {number}, but row {want} was expected"));
        }
        if found.len() != self.columns.len() {
            return Err(format!(
                "this line has {} cells, but the header has {} columns",
                found.len(),
                self.columns.len()
            ));
        }
        self.rows.push((at, found));
        Ok(true)
    }

    /// How many of the first columns have whole numbers or words in every row; never all.
    fn n_axes(&self) -> usize {
        let is_axis = |column: usize| {
            let is_name = |cell: &String| match cell.parse::<f64>() {
                Ok(number) => number.is_finite() && number.fract() == 0.0,
                Err(_) => true,
            };
            self.rows.iter().all(|(_, cells)| is_name(&cells[column]))
        };
        let most = self.columns.len().saturating_sub(1);
        let n_axes = (0..most).take_while(|column| is_axis(*column)).count();
        n_axes.max(1).min(most.max(1))
    }

    fn row(
        &self,
        cells: &[String],
        n_axes: usize,
        line: usize,
        spec: &ParseSpec,
    ) -> Result<OutputRow, String> {
        let mut row = OutputRow::new(None, CaseCheck::NotStated, line);
        let mut parts = Vec::new();
        for (index, (name, cell)) in self.columns.iter().zip(cells).enumerate() {
            let number = cell.parse::<f64>().ok();
            let text = number.map_or_else(|| cell.clone(), |number| number.to_string());
            if index < n_axes {
                parts.push(format!("{name}={text}"));
            }
            row.params.insert(name.clone(), text);
            let Some(number) = number.filter(|number| !number.is_nan()) else {
                continue;
            };
            fields::add_value(&mut row, name, number)?;
            let short = name.split_once(" (").map(|(short, _)| short.to_owned());
            if let Some(short) = short.filter(|short| !self.columns.contains(short)) {
                fields::add_value(&mut row, &short, number)?;
            }
        }
        row.case = match spec.case_column {
            None => Some(parts.join(",")),
            Some(column) => {
                let named = row.params.get(column).cloned();
                let missing = || format!("there is no column \"{column}\", the case column");
                Some(named.ok_or_else(missing)?)
            }
        };
        Ok(row)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{render, spec};
    use super::super::{OutputFormat, parse};
    use super::*;

    const PRINTED: &str = include_str!("../../../../../testdata/formats/triton.txt");
    const SAVED: &str = include_str!("../../../../../testdata/formats/triton.csv");

    fn read(text: &str, label: Option<&str>) -> Result<Vec<OutputRow>, OutputParseError> {
        let spec = ParseSpec { label, ..spec(OutputFormat::Triton) };
        parse(text, &spec)
    }

    #[test]
    fn a_line_of_the_table_is_a_row_found_by_its_axes() {
        let rows = read(PRINTED, Some("matmul-performance-fp16")).unwrap();
        let names: Vec<_> = rows.iter().filter_map(|row| row.case.as_deref()).collect();
        assert_eq!(names, ["M=256,N=256,K=256", "M=4096,N=4096,K=4096"]);
        assert_eq!(rows[1].params["M"], "4096");
        assert_eq!(rows[1].values["Triton (TFLOPS)"], 512.125);
        assert_eq!(rows[1].values["Triton"], 512.125);
        assert_eq!(rows[1].line, 5);
    }

    #[test]
    fn a_provider_that_cannot_run_a_case_is_left_out() {
        let rows = read(PRINTED, Some("fused-attention-batch4")).unwrap();
        assert_eq!(rows[1].case.as_deref(), Some("N_CTX=16384"));
        assert_eq!(rows[1].values["Triton [FP16]"], 1234.5);
        assert!(!rows[1].values.contains_key("Flash 2"));
        assert_eq!(rows[0].values["Flash 2"], 99.0);
    }

    #[test]
    fn several_tables_need_a_label() {
        let got = render(&read(PRINTED, None));
        let want = "name one as the label: fused-attention-batch4, matmul-performance-fp16";
        assert!(got.contains(want), "{got}");
        let got = render(&read(PRINTED, Some("x")));
        assert!(got.contains("there is no table \"x\"; there are fused"), "{got}");
    }

    #[test]
    fn the_saved_file_is_read_too() {
        let rows = read(SAVED, None).unwrap();
        assert_eq!(rows[0].case.as_deref(), Some("M=256,N=256,K=256"));
        assert_eq!(rows[0].values["Triton"], 4.1);
        let spec = ParseSpec { case_column: Some("M"), ..spec(OutputFormat::Triton) };
        let rows = parse(SAVED, &spec).unwrap();
        assert_eq!(rows[1].case.as_deref(), Some("4096"));
    }

    #[test]
    fn a_table_that_is_not_whole_is_refused() {
        let check = |text: &str, want: &str| {
            let got = render(&read(text, None));
            assert!(got.contains(want), "{got}");
        };
        let head = "t:\n      N  Triton\n0   1.0     2.5\n";
        check(&format!("{head}2   4.0     2.5\n"), "line 4: this is row 2, but row 1 was expected");
        check(&format!("{head}1   4.0\n"), "line 4: this line has 1 cells");
        check(&format!("{head}..  ...     ...\n"), "the table omits rows");
        check(&format!("{head}1   4.0     2."), "the output ends inside this row");
        check(&format!("{head}1   1.0     2.5\n"), "the case \"N=1\" is already on line 3");
        check(&format!("{head}1   4.0     inf\n"), "line 4: \"Triton\" is inf");
        check("N,Triton\n1,2\n3\n", "line 3: this line has 1 cells");
        check("N,Triton\n1,2\n3,4", "the output ends inside this row");
        check("nothing here\n", "no rows");
    }
}
