//! The sections and tables of a report of the hyper-mla contract, each line with its number, and
//! the errors found in them.

use super::{CELL_CHARS, ERRORS_MAX, NONE, QUOTE_CHARS, ROWS_MAX, SECTIONS};
use karve_core::markdown::{self, MarkdownSection, NumberedLine, cells, is_closed, is_rule};

/// A bounded list of errors.
#[derive(Default)]
pub(super) struct ReportErrors {
    pub(super) list: Vec<String>,
    more: usize,
}

impl ReportErrors {
    pub(super) fn add(&mut self, line: usize, what: impl AsRef<str>) {
        if self.list.len() < ERRORS_MAX {
            self.list.push(format!("line {line}: {}", what.as_ref()));
        } else {
            self.more += 1;
        }
    }

    pub(super) fn missing(&mut self, what: &str) {
        self.list.push(format!("{what} is missing"));
    }

    pub(super) fn into_lines(mut self) -> Vec<String> {
        if self.more > 0 {
            self.list.push(format!("{} more", self.more));
        }
        self.list
    }
}

/// Whether a section has this name; headings may end with a remark in parentheses.
pub(super) fn is_called(part: &MarkdownSection<'_>, name: &str) -> bool {
    match part.heading.strip_prefix(name) {
        Some(rest) if name.ends_with(':') => !rest.trim().is_empty(),
        Some(rest) => rest.is_empty() || rest.starts_with(" (") && rest.ends_with(')'),
        None => false,
    }
}

/// The title, and the sections below it: only known ones, each once, and in order.
pub(super) fn sections<'a>(
    text: &'a str,
    faults: &mut ReportErrors,
) -> (Option<NumberedLine<'a>>, Vec<MarkdownSection<'a>>) {
    let is_heading = |line: &&str| line.starts_with("## ") || line.starts_with("### ");
    let (before, all) = markdown::sections(text, |line| Some(line).filter(is_heading));
    let mut title = None;
    let mut parts: Vec<MarkdownSection<'a>> = Vec::new();
    let mut last = 0;
    add_outside(&before, faults);
    for mut part in all {
        if let Some(heading) = part.heading.strip_prefix("## ") {
            match title {
                None if parts.is_empty() => title = Some((part.line, heading)),
                _ => faults.add(part.line, "there is more than one report"),
            }
            add_outside(&part.body, faults);
            continue;
        }
        part.heading = part.heading.trim_start_matches("###").trim_start();
        let (number, heading) = (part.line, quoted(part.heading));
        let place = SECTIONS.iter().position(|name| is_called(&part, name));
        match place {
            None => faults.add(number, format!("unknown section {heading}")),
            Some(place) if parts.iter().any(|part| is_called(part, SECTIONS[place])) => {
                faults.add(number, format!("{heading} appears twice"));
            }
            Some(place) if place < last => {
                faults.add(number, format!("{heading} is out of order"));
            }
            Some(place) => last = place,
        }
        parts.push(part);
    }
    if title.is_none() {
        faults.missing("the heading \"## Profile: <kernel> <version>\"");
    }
    (title, parts)
}

fn add_outside(lines: &[NumberedLine<'_>], faults: &mut ReportErrors) {
    for (number, line) in lines.iter().filter(|(_, line)| !line.trim().is_empty()) {
        faults.add(*number, format!("{} is outside of any section", quoted(line)));
    }
}

/// A row of a table, with its line.
pub(super) type TableRow = (usize, Vec<String>);

/// The header and the rows of the only table of a section.
pub(super) fn table(
    part: &MarkdownSection<'_>,
    faults: &mut ReportErrors,
) -> Option<(TableRow, Vec<TableRow>)> {
    let mut rows = Vec::new();
    for (place, (number, line)) in part.filled().into_iter().enumerate() {
        match cells(line).filter(|_| is_closed(line)) {
            None => faults.add(number, format!("{} is not a row from | to |", quoted(line))),
            Some(row) if place == 1 && is_rule(&row) => {}
            Some(_) if rows.len() > ROWS_MAX => {
                faults.add(number, format!("there are more than {ROWS_MAX} rows"));
                break;
            }
            Some(row) => rows.push((number, row)),
        }
    }
    if rows.len() < 2 {
        let heading = quoted(part.heading);
        faults.add(part.line, format!("the table of {heading} has no rows"));
        return None;
    }
    let heading = rows.remove(0);
    for (number, row) in &rows {
        check_cells(*number, row, &heading.1, faults);
    }
    Some((heading, rows))
}

/// The rows of a table that must have these columns, in one of the accepted spellings.
pub(super) fn rows<const N: usize>(
    part: &MarkdownSection<'_>,
    spellings: &[[&str; N]],
    faults: &mut ReportErrors,
) -> (usize, Vec<(usize, [String; N])>) {
    let Some(((number, heading), rows)) = table(part, faults) else {
        return (0, Vec::new());
    };
    let is = |columns: &[&str; N]| {
        let same = |(own, want): (&String, &&str)| own.eq_ignore_ascii_case(want);
        heading.len() == N && heading.iter().zip(columns).all(same)
    };
    let Some(spelling) = spellings.iter().position(is) else {
        let want = spellings.first().map(|columns| columns.join(" | "));
        faults.add(number, format!("the columns must be {}", want.unwrap_or_default()));
        return (0, Vec::new());
    };
    let whole = |(number, row): TableRow| Some((number, <[String; N]>::try_from(row).ok()?));
    (spelling, rows.into_iter().filter_map(whole).collect())
}

fn check_cells(number: usize, row: &[String], columns: &[String], faults: &mut ReportErrors) {
    let (n, want) = (row.len(), columns.len());
    if n != want {
        faults.add(number, format!("the row has {n} cells, not {want}"));
        return;
    }
    for (cell, column) in row.iter().zip(columns) {
        if cell.is_empty() {
            let what = format!("the cell of {column} is empty; write {NONE} if there is no value");
            faults.add(number, what);
        } else if cell.chars().count() > CELL_CHARS {
            let what = format!("the cell of {column} has more than {CELL_CHARS} characters");
            faults.add(number, what);
        }
    }
}

pub(super) fn quoted(text: &str) -> String {
    let shown: String = text.trim().chars().take(QUOTE_CHARS).collect();
    format!("{shown:?}")
}
