//! CSV records, quoted as in RFC 4180: `""` is a quote within quotes.

/// One line of cells; quoted cells may hold line breaks.
#[derive(Debug)]
pub struct CsvRecord {
    /// The line on which it starts, from 1.
    pub line: usize,
    /// Its cells; unquoted ones are trimmed.
    pub cells: Vec<String>,
}

/// What is wrong with the quoting, and where.
#[derive(Debug)]
pub struct BadQuoting {
    /// The line, from 1.
    pub line: usize,
    /// The message, without a full stop.
    pub reason: &'static str,
}

/// Splits text into records.
#[derive(Debug)]
pub struct CsvRecords<'a> {
    /// The text that is left.
    pub rest: &'a str,
    /// Its first line, from 1.
    pub line: usize,
}

impl<'a> CsvRecords<'a> {
    /// The next record that is not a blank line.
    pub fn next_record(&mut self) -> Result<Option<CsvRecord>, BadQuoting> {
        while let Some((blank, after)) = self.rest.split_once('\n')
            && blank.trim().is_empty()
        {
            self.rest = after;
            self.line += 1;
        }
        // Not from the end, which may be blank for long: this is asked for each record.
        if self.rest.trim_start().is_empty() {
            return Ok(None);
        }
        let mut record = CsvRecord { line: self.line, cells: Vec::new() };
        loop {
            let (cell, is_last) = self.next_cell()?;
            record.cells.push(cell);
            if is_last {
                return Ok(Some(record));
            }
        }
    }

    /// The next cell, and whether the record ends with it.
    fn next_cell(&mut self) -> Result<(String, bool), BadQuoting> {
        let blanks = [' ', '\t'];
        if let Some(quoted) = self.rest.trim_start_matches(blanks).strip_prefix('"') {
            let cell = self.quoted_cell(quoted)?;
            let line = self.line;
            let (between, is_last) = self.skip_to_separator();
            if !between.trim().is_empty() {
                let reason = "there is text after the closing quote of a cell";
                return Err(BadQuoting { line, reason });
            }
            return Ok((cell, is_last));
        }
        let line = self.line;
        let (raw, is_last) = self.skip_to_separator();
        if raw.contains('"') {
            let reason = "there is a quote inside an unquoted cell";
            return Err(BadQuoting { line, reason });
        }
        Ok((raw.trim().to_owned(), is_last))
    }

    /// Reads from after an opening quote to the closing one; a doubled quote is one quote.
    fn quoted_cell(&mut self, mut rest: &'a str) -> Result<String, BadQuoting> {
        let (opened_on, mut cell) = (self.line, String::new());
        loop {
            let Some((part, after)) = rest.split_once('"') else {
                let reason = "this quoted cell never closes; the output may be truncated";
                return Err(BadQuoting { line: opened_on, reason });
            };
            cell.push_str(part);
            self.line += part.matches('\n').count();
            match after.strip_prefix('"') {
                Some(after_pair) => {
                    cell.push('"');
                    rest = after_pair;
                }
                None => {
                    self.rest = after;
                    return Ok(cell);
                }
            }
        }
    }

    /// Takes the text up to the next separator, and the separator; returns whether it ends the
    /// record.
    fn skip_to_separator(&mut self) -> (&'a str, bool) {
        let end = self.rest.find([',', '\n']).unwrap_or(self.rest.len());
        let (raw, separator) = self.rest.split_at(end);
        self.rest = separator.get(1..).unwrap_or_default();
        let is_last = !separator.starts_with(',');
        self.line += usize::from(separator.starts_with('\n'));
        (raw, is_last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blank_text_after_many_records_is_passed_once() {
        // Passed for each record, this would take hours.
        let text = "a\n".repeat(100_000) + &" ".repeat(8 << 20);
        let mut records = CsvRecords { rest: &text, line: 1 };
        let mut n = 0;
        while let Some(record) = records.next_record().unwrap() {
            assert_eq!(record.cells, ["a"]);
            n += 1;
        }
        assert_eq!((n, records.line), (100_000, 100_001));
    }
}
