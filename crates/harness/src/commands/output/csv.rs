//! CSV with a header, quoted as in RFC 4180.
//!
//! Log lines before the header are skipped, but only if the header is recognized by a known name;
//! otherwise the first line is the header. Nothing may follow the rows: a line with a different
//! number of cells is usually a truncated row.

use super::fields::{FieldValue, OutputRows, RowLayout};
use super::{OutputParseError, OutputRow, ParseSpec, names};
use crate::csv::{CsvRecord, CsvRecords};

/// Reads the rows under the header.
pub(super) fn parse(text: &str, spec: &ParseSpec) -> Result<Vec<OutputRow>, OutputParseError> {
    let mut records = find_header(text, spec);
    let Some(header) = next_record(&mut records, text)? else {
        return Ok(Vec::new());
    };
    let names = header.cells.iter().map(|name| name.trim().to_owned()).collect();
    let at_header = |reason: String| OutputParseError::at(text, header.line, reason);
    let layout = RowLayout::of(names, spec).map_err(at_header)?;
    let mut rows = OutputRows::default();
    while let Some(record) = next_record(&mut records, text)? {
        check_count(&record, layout.len(), &records, text)?;
        let cells: Vec<FieldValue> = record.cells.into_iter().map(FieldValue::Text).collect();
        rows.add(text, record.line, layout.row(&cells, record.line))?;
    }
    Ok(rows.finish())
}

/// The next record of a text.
pub(super) fn next_record(
    records: &mut CsvRecords<'_>,
    text: &str,
) -> Result<Option<CsvRecord>, OutputParseError> {
    records.next_record().map_err(|e| OutputParseError::at(text, e.line, e.reason))
}

/// Refuses a record whose number of cells differs from the header.
pub(super) fn check_count(
    record: &CsvRecord,
    n_columns: usize,
    rest: &CsvRecords<'_>,
    text: &str,
) -> Result<(), OutputParseError> {
    let n_cells = record.cells.len();
    if n_cells == n_columns {
        return Ok(());
    }
    let is_cut = n_cells < n_columns && rest.rest.trim().is_empty();
    let cut = if is_cut { "; the output ends inside this row" } else { "" };
    let reason =
        format!("this line has {n_cells} cells, but the header has {n_columns} columns{cut}");
    Err(OutputParseError::at(text, record.line, reason))
}

/// The records from the header on.
fn find_header<'a>(text: &'a str, spec: &ParseSpec) -> CsvRecords<'a> {
    let mut rest = text;
    for (index, line) in text.split_inclusive('\n').enumerate() {
        let mut single = CsvRecords { rest: line, line: index + 1 };
        if let Ok(Some(record)) = single.next_record()
            && is_header(&record.cells, spec)
        {
            return CsvRecords { rest, line: index + 1 };
        }
        rest = &rest[line.len()..];
    }
    CsvRecords { rest: text, line: 1 }
}

fn is_header(cells: &[String], spec: &ParseSpec) -> bool {
    let is_known = |name: &str| {
        let is_configured = |column: Option<&str>| column == Some(name);
        is_configured(spec.case_column)
            || is_configured(spec.check_column)
            || names::canonical(name).is_some()
            || names::states_check(name)
            || names::names_case(name)
    };
    let n_axes = cells.iter().filter(|cell| names::is_axis(cell.trim())).count();
    cells.len() >= 2 && (n_axes >= 2 || cells.iter().any(|cell| is_known(cell.trim())))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{fixed_seed, render, spec};
    use super::super::{CaseCheck, OutputFormat, parse};
    use super::*;
    use proptest::prelude::*;

    const CANONICAL: &str = "label,B,M,N,K,Check,Forward TFLOPS,Forward TFLOPS_stddev,\
        Backward TFLOPS,Backward TFLOPS_stddev,Forward Time (ms),Backward Time (ms),\
        out_snr,da_snr,db_snr\n";

    fn check(text: &str, want: &str) {
        assert_eq!(render(&parse(text, &spec(OutputFormat::Csv))), want, "{text}");
    }

    fn check_columns(case: Option<&str>, correct: Option<&str>, text: &str, want: &str) {
        let spec =
            ParseSpec { case_column: case, check_column: correct, ..spec(OutputFormat::Csv) };
        assert_eq!(render(&parse(text, &spec)), want, "{text}");
    }

    #[test]
    fn the_canonical_header_is_read_with_its_failed_rows() {
        let rows = "gate_up,1,8192,28672,4096,PASS,1200,12,900,9,1.5,3.25,45.5,inf,44\n\
                    down,1,8192,4096,14336,FAIL,NaN,NaN,NaN,NaN,NaN,NaN,NaN,NaN,NaN\n";
        check(
            &format!("{CANONICAL}{rows}"),
            "2 gate_up Pass [B=1 K=4096 M=8192 N=28672] Backward TFLOPS=900; \
             Backward TFLOPS_rel_std=0.01; Backward Time (ms)=3.25; Forward TFLOPS=1200; \
             Forward TFLOPS_rel_std=0.01; Forward Time (ms)=1.5; da_snr=1000; db_snr=44; \
             out_snr=45.5\n\
             3 down Fail [B=1 K=14336 M=8192 N=4096] ",
        );
    }

    #[test]
    fn a_pass_row_with_a_nan_is_refused() {
        let row = "a,1,1,1,1,PASS,NaN,1,1,1,1,1,1,1,1";
        check(
            &format!("{CANONICAL}{row}"),
            "line 2: \"Forward TFLOPS\" is NaN, which only a row that says FAIL may have",
        );
    }

    #[test]
    fn columns_with_other_names_and_text_are_read() {
        check(
            "model,op,M,correct,fwd_ms_mean,fwd_ms_std_pct,dense_backend,dense_TFLOPS\n\
             llama,gemm,256,True,2.0,5,hipblaslt,600\n",
            "2 M=256 Pass [M=256] Forward Time (ms)=2; Forward Time (ms)_rel_std=0.05; \
             dense_TFLOPS=600",
        );
    }

    #[test]
    fn log_lines_before_a_known_header_are_skipped() {
        check(
            "warming up, please wait\nsaid \"go\", then ran\n\nlabel,ms\na,1\n",
            "5 a NotStated [] ms=1",
        );
        check("Running on H200\nM,N,ms\n1,2,3\n", "3 M=1,N=2 NotStated [M=1 N=2] ms=3");
        check_columns(Some("shape"), None, "hi\nshape,x1\ns,4\n", "3 s NotStated [] x1=4");
        check("hello\nx1,x2\n1,2\n", "line 2: this line has 2 cells, but the header has 1 columns");
    }

    #[test]
    fn a_row_with_another_number_of_cells_is_refused() {
        check(
            "case,ms,x1\na,1,2\nb,1\n",
            "line 3: this line has 2 cells, but the header has 3 columns; \
             the output ends inside this row",
        );
        check(
            "case,ms,x1\nb,1\na,1,2\n",
            "line 2: this line has 2 cells, but the header has 3 columns",
        );
        check(
            "case,ms\na,1\nDone, in 3 s, bye\n",
            "line 3: this line has 3 cells, but the header has 2 columns",
        );
    }

    #[test]
    fn the_last_line_needs_no_line_break_and_may_have_either() {
        let want = "2 a NotStated [] ms=1\n4 b NotStated [] ms=2";
        check("case,ms\na,1\n\nb,2", want);
        check("case,ms\r\na,1\r\n\r\nb,2\r\n\r\n", want);
        check("case,ms\na,1\n\nb,2\n  \n", want);
    }

    #[test]
    fn quoted_cells_hold_commas_quotes_and_line_breaks() {
        check(
            "case,ms,note\n\"a,\"\"b\"\"\", 1 ,\"two\nlines\"\n \"c\" ,2,\n",
            "2 a,\"b\" NotStated [] ms=1\n4 c NotStated [] ms=2",
        );
    }

    #[test]
    fn broken_quotes_are_refused_on_their_line() {
        check(
            "case,ms\na,1\n\"b,2\nc,3\n",
            "line 3: this quoted cell never closes; the output may be truncated",
        );
        let behind = "line 2: there is text after the closing quote of a cell";
        check("case,ms\n\"b\"x,2\n", behind);
        check("case,ms\n1,\"b\"x\n", behind);
        let inside = "line 3: there is a quote inside an unquoted cell";
        check("case,ms\na,1\nb\"c,2\n", inside);
        check("case,ms\na,1\nb,2\"\nc,3\n", inside);
    }

    #[test]
    fn a_case_that_appears_twice_is_refused() {
        check(
            "case,ms\na,1\nb,1\na,2\n",
            "line 4: the case \"a\" is already on line 2; each case may appear once",
        );
        check("case,ms\n,1\n", "line 2: \"case\" is empty, but it names the case");
    }

    #[test]
    fn a_column_that_drifted_away_is_refused_and_does_not_disable_the_check() {
        check_columns(
            None,
            Some("Check"),
            "label,Chk,ms\na,FAIL,1\n",
            "line 1: there is no column \"Check\", the check column",
        );
        check_columns(
            None,
            Some("Chk"),
            "label,Chk,ms\na,no,1\n",
            "line 2: \"Chk\" is \"no\", not PASS or FAIL",
        );
        check("ms,ms\n1,2\n", "line 1: the column \"ms\" appears twice");
    }

    #[test]
    fn the_index_column_of_pandas_is_no_value() {
        check(",case,ms\n0,a,1\n1,b,2\n", "2 a NotStated [] ms=1\n3 b NotStated [] ms=2");
    }

    fn quote(cell: &str) -> String {
        let needs_quotes = cell.contains([',', '"', '\n', '\r']) || cell.trim() != cell;
        if needs_quotes { format!("\"{}\"", cell.replace('"', "\"\"")) } else { cell.to_owned() }
    }

    proptest! {
        #![proptest_config(fixed_seed())]

        #[test]
        fn what_is_rendered_is_read_back(
            cases in proptest::collection::btree_set("[a-z,\"\n\r é]*[a-z,\"é][a-z\n ]*", 1..8),
            numbers in proptest::collection::vec((0.0..1e12_f64, any::<bool>()), 8),
            line_break in prop_oneof![Just("\n"), Just("\r\n")],
        ) {
            let mut text = format!("note,\"case\",Check,Forward Time (ms){line_break}");
            let want: Vec<_> = cases.iter().zip(&numbers).collect();
            for (case, (time_ms, is_right)) in &want {
                let note = quote(&format!("{case},"));
                let case = quote(case);
                text.push_str(&format!("{note},{case},{is_right},{time_ms}{line_break}"));
            }
            let rows = parse(&text, &spec(OutputFormat::Csv)).unwrap();
            prop_assert_eq!(rows.len(), want.len());
            for (row, (case, (time_ms, is_right))) in rows.iter().zip(want) {
                prop_assert_eq!(row.case.as_ref(), Some(case));
                prop_assert_eq!(row.values["Forward Time (ms)"], *time_ms);
                prop_assert_eq!(row.check == CaseCheck::Pass, *is_right);
            }
        }
    }
}
