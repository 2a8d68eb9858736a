//! Measured spaces of all formats, detected from their contents.

use super::*;
use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;
use std::io::Write;

const TABLE: &str = "A,B,valid,time\n1,x,1,2.5\n2,y,0,\n";
const CACHE: &str = include_str!("../../../../../testdata/spaces/sum_rows.json");
const RESULTS: &str = include_str!("../../../../../testdata/spaces/sum_rows_t4.json");

fn evaluations(text: &str) -> Evaluations {
    match parse(text).unwrap() {
        RecordingContent::Evaluations(evaluations) => evaluations,
        other => panic!("{other:?}"),
    }
}

fn rows_of(text: &str) -> Vec<MeasuredSetting> {
    match parse(text).unwrap() {
        RecordingContent::Table(_, rows) => rows,
        other => panic!("{other:?}"),
    }
}

#[test]
fn one_run_is_the_same_in_both_formats_of_kernel_tuner() {
    let (cache, results) = (evaluations(CACHE), evaluations(RESULTS));
    assert_eq!(cache.knobs, results.knobs);
    assert_eq!(cache.rows, results.rows);
}

#[test]
fn a_space_is_the_same_after_a_way_through_each_format() {
    let space = evaluations(CACHE).recorded("space").unwrap();
    let written = Evaluations::of(&space);
    let rows = rows_of(&render(&written, RecordingFormat::Table));
    let table = RecordedSpace::new("table", &written.knobs, &rows).unwrap();
    assert_eq!(table.grid.len(), space.grid.len());
    for point in space.grid.points() {
        match (table.read(point), space.read(point)) {
            (TrialResult::Value(a), TrialResult::Value(b)) => assert!((a / b - 1.0).abs() < 1e-8),
            (a, b) => assert_eq!(a, b),
        }
    }
    for format in [RecordingFormat::KernelTuner, RecordingFormat::T4] {
        let again = evaluations(&render(&written, format));
        assert_eq!(again.knobs, written.knobs);
        assert_eq!(again.rows, written.rows, "{format:?}");
        let again = again.recorded("again").unwrap();
        assert_eq!(again.optimum(), space.optimum());
        assert_eq!(again.grid.len(), space.grid.len());
    }
}

#[test]
fn a_file_is_read_by_what_it_says_and_a_description_is_passed_over() {
    let dir = tempfile::tempdir().unwrap();
    let put = |name: &str, bytes: &[u8]| std::fs::write(dir.path().join(name), bytes).unwrap();
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(RESULTS.as_bytes()).unwrap();
    put("results.json.gz", &packed.finish().unwrap());
    put("cache.json", CACHE.as_bytes());
    put("table.csv", TABLE.as_bytes());
    put("table.json", br#"{"name": "what the table is", "results": 3}"#);
    put("other.json", br#"{"name": "no space"}"#);
    put("oddly_named", CACHE.as_bytes());
    let spaces = load_all(dir.path()).unwrap();
    let names: Vec<(&str, usize)> =
        spaces.iter().map(|space| (space.name.as_str(), space.grid.len())).collect();
    assert_eq!(names, [("cache", 14), ("results", 14), ("table", 2)]);
    let odd = load(&dir.path().join("oddly_named")).unwrap();
    assert_eq!(odd.optimum(), spaces[0].optimum());
    let error = load(&dir.path().join("other.json")).unwrap_err();
    assert!(error.to_string().contains("T4 results"), "{error}");
}

#[test]
fn words_of_python_in_strings_stay() {
    let text = r#"{"a \\\" NaN": "Infinity", "b": [NaN, -Infinity]}"#;
    let plain = evaluation::plain_json(text);
    assert_eq!(plain, r#"{"a \\\" NaN": "Infinity", "b": [null, null]}"#);
}

proptest! {
    #[test]
    fn no_text_makes_the_parsers_panic(text in ".{0,300}") {
        let _ = parse(&text);
        let _ = parse(&format!("{{{text}"));
        let _ = kernel_tuner::parse_cache(&text);
        let _ = t4::parse_results(&text);
    }

    #[test]
    fn no_damaged_file_makes_the_parsers_panic(
        (start, len, filler) in (0_usize..7_000, 0_usize..2_000, "[ -~]{0,8}"),
    ) {
        for sample in [CACHE, RESULTS, TABLE] {
            let start = start.min(sample.len());
            let end = (start + len).min(sample.len());
            let text = format!("{}{filler}{}", &sample[..start], &sample[end..]);
            let _ = parse(&text);
            let _ = parse(&sample[..start]);
        }
    }

    #[test]
    fn any_evaluations_come_back(
        rows in prop::collection::vec(
            ("[ -~]{0,6}|-?[0-9]{1,3}(\\.[0-9]{1,3})?", 1e-9..1e9_f64, 0_usize..6),
            1..12,
        ),
    ) {
        let row = |(value, time_ms, failure): &(String, f64, usize)| Evaluation {
            values: vec![value.clone(), "1e-5".into()],
            outcome: match failure {
                0 => EvaluationOutcome::Failed(EvaluationFailure::Forbidden),
                1 => EvaluationOutcome::Failed(EvaluationFailure::NotBuilt),
                2 => EvaluationOutcome::Failed(EvaluationFailure::Crashed),
                _ => EvaluationOutcome::Timed { time_ms: *time_ms, readings_ms: vec![*time_ms; 2] },
            },
        };
        let mut written = Evaluations {
            kernel: "k\"1".into(),
            device: String::new(),
            knobs: vec!["A".into(), "B C".into()],
            rows: rows.iter().map(row).collect(),
        };
        prop_assert_eq!(&evaluations(&render(&written, RecordingFormat::KernelTuner)), &written);
        written.kernel.clear();
        prop_assert_eq!(&evaluations(&render(&written, RecordingFormat::T4)), &written);
    }
}

#[test]
fn a_file_that_expands_without_end_is_refused() {
    let mut packer = GzEncoder::new(Vec::new(), Compression::best());
    packer.write_all(b"A,time\n").unwrap();
    packer.write_all(&vec![b'1'; 8 << 20]).unwrap();
    let error = parse_space("bomb", &packer.finish().unwrap()[..]).unwrap_err();
    assert!(error.contains("expands to more than"), "{error}");
}
