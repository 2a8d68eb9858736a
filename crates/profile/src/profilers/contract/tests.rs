//! Both variants are parsed, every error is reported, and hostile reports are bounded.

use super::*;
use proptest::prelude::*;

const REPORT: &str = "## Profile: mla decode v3 | b=32, s=1, t=4096\n\n### Stages\n\
    | Stage | Duration (us) | TC% | DRAM% | Occ% | Bottleneck | Key Issue |\n\
    |---|---|---|---|---|---|---|\n| split \\| kv | 120.5 | 12 | 88.2% | 41 | Memory | L2 |\n\
    | combine | 8 | - | n/a | 12 | Latency (occupancy) | few blocks |\n\n\
    ### Bottleneck: Memory-bound\nRoot cause: DRAM is at 88.2%. Only fewer bytes help.\n\n\
    ### Top 3 Opportunities (ranked by estimated impact)\n\
    1. head grouping — est. 40% gain — trigger: DRAM%=88.2\n\
    2. swizzle - the blocks -- est. 5% gain -- trigger: l2_hit=70%, TC%=12\n\n\
    ### vs Baseline (if applicable)\n| Metric | Previous | Current | Change |\n|---|---|---|---|\n\
    | us | 150 | 128 | -14.7% |\n| spills | none | 12 | - |\n";

fn table_variant() -> String {
    let rows = "### Configuration\n| b | s | dtype |\n|---|---|---|\n| 32 | 1 | bfloat16 |\n\n";
    let plain = REPORT.replace(" | b=32, s=1, t=4096", "");
    plain.replace("### Stages", &format!("{rows}### Stages"))
}

#[test]
fn both_published_variants_are_read() {
    let report = parse(REPORT).unwrap();
    assert_eq!((report.kernel.as_str(), report.version.as_str()), ("mla decode", "v3"));
    assert_eq!(report.variant, ConfigPlacement::Title);
    assert_eq!(report.configuration[2], ("t".into(), "4096".into()));
    assert_eq!(report.stages[0].name, "split | kv");
    assert_eq!(report.stages[0].duration_us, Some(120.5));
    assert_eq!(report.stages[0].dram_pct, Some(88.2));
    assert_eq!((report.stages[1].tensor_pct, report.stages[1].dram_pct), (None, None));
    assert_eq!(report.stages[1].bottleneck, BottleneckClass::Latency);
    assert_eq!(report.stages[1].remark, "occupancy");
    assert_eq!(report.bottleneck, BottleneckClass::Memory);
    assert_eq!(report.root_cause, "DRAM is at 88.2%. Only fewer bytes help.");
    assert_eq!(report.opportunities[0].gain_pct, 40.0);
    assert_eq!(report.opportunities[1].name, "swizzle - the blocks");
    assert_eq!(report.opportunities[1].trigger[0], ("l2_hit".into(), "70%".into()));
    assert_eq!(report.versus[0].change, "-14.7%");
    let other = parse(&table_variant()).unwrap();
    assert_eq!(other.variant, ConfigPlacement::Table);
    assert_eq!(other.configuration[2], ("dtype".into(), "bfloat16".into()));
    assert_eq!(other.stages, report.stages);
    let windows = REPORT.replace('\n', "\r\n");
    assert_eq!(parse(&windows).unwrap(), report);
}

#[test]
fn where_the_column_has_no_unit_the_cells_have_one() {
    let unitless = REPORT.replace("Duration (us)", "Duration");
    let faults = parse(&unitless).unwrap_err();
    assert!(faults[0].contains("has no unit"), "{faults:?}");
    let with = unitless.replace("| 120.5 |", "| 1.5 ms |").replace("| 8 |", "| 800ns |");
    let stages = parse(&with).unwrap().stages;
    assert_eq!((stages[0].duration_us, stages[1].duration_us), (Some(1500.0), Some(0.8)));
}

#[test]
fn no_opportunity_is_said_in_a_word() {
    let (before, rest) = REPORT.split_once("1. head").unwrap();
    let (_, after) = rest.split_once("\n\n").unwrap();
    let none = format!("{before}none\n\n{after}");
    assert_eq!(parse(&none).unwrap().opportunities, []);
    let faults = parse(&format!("{before}\n\n{after}")).unwrap_err();
    assert!(faults[0].contains("no opportunity is named"), "{faults:?}");
}

/// With this change to the report, an error is reported.
fn check(from: &str, to: &str, want: &str) {
    let text = REPORT.replacen(from, to, 1);
    assert_ne!(text, REPORT, "{from}");
    let faults = parse(&text).unwrap_err();
    assert!(faults.iter().any(|f| f.contains(want)), "{want}: {faults:?}");
}

#[test]
fn every_fault_of_the_title_and_the_sections_is_named() {
    check("## Profile:", "## A page:", "the heading must be");
    check("## Profile:", "# Profile:", "is missing");
    check("## Profile: mla decode v3", "## Profile: mla", "line 1: the title must name");
    check(" | b=32, s=1, t=4096", "", "the configuration");
    check("b=32", "b32", "is not name=value");
    check("b=32", "b=", "no name or no value");
    check("s=1", "b=1", "\"b\" appears twice");
    check("## Profile", "Here it is:\n## Profile", "is outside of any section");
    check("### Stages", "### Steps", "unknown section \"Steps\"");
    check("### Stages", "### Steps", "the section \"### Stages\" is missing");
    check("### Bottleneck", "### Stages\n### Bottleneck", "appears twice");
    check("### Stages", "### vs Baseline\n### Stages", "is out of order");
    check("### vs", "## Profile: b v2\n### vs", "more than one report");
}

#[test]
fn every_fault_of_the_stages_is_named() {
    check(" Occ% |", "", "the columns must be Stage | Duration (us)");
    check("| 120.5 |", "| 120,5 |", "line 6: Duration (us): \"120,5\" is not a number");
    check("| 120.5 |", "| 1.2.3 |", "is not a number");
    check("| 120.5 |", "| 120.5 ms |", "ms is not the unit of the column");
    check("| 120.5 |", "| -3 |", "is not a number");
    check("| 120.5 |", "| 1e999 |", "is not a number");
    check("| 120.5 |", "| inf |", "is not a number");
    check("| 120.5 |", "| 12% |", "is not a time");
    check("| 120.5 |", "|  |", "the cell of Duration (us) is empty");
    check("88.2%", "188.2%", "188.2 is more than 105");
    check("| 41 | Memory |", "| 41 | Thermal |", "\"Thermal\" is not one of Memory");
    check("| split \\| kv | 120.5", "| 120.5", "the row has 6 cells, not 7");
    check("| L2 |", "| L2", "is not a row from | to |");
}

#[test]
fn every_fault_of_what_follows_is_named() {
    check("Memory-bound", "Thermal-bound", "not one of Memory, Compute, Latency");
    check("Memory-bound", "Memory", "followed by -bound");
    check("DRAM is at 88.2%. Only fewer bytes help.", "", "the root cause is missing");
    check("Only fewer bytes help.", "A. B. C.", "has 4 sentences");
    check("est. 40% gain", "a lot", "is not \"est. X% gain\"");
    check("est. 40% gain", "est. 10-40% gain", "is not \"est. X% gain\"");
    check("trigger: DRAM%=88.2", "trigger: it is slow", "is not metric=value");
    check("trigger: DRAM%=88.2", "because", "is not \"1. name");
    check("2. swizzle", "3. swizzle", "is not \"2. name");
    check(
        "2. swizzle",
        "2. x — est. 1% gain — trigger: a=1\n3. x — est. 1% gain — trigger: a=1\n4. y",
        "more than 3 opportunities",
    );
    check("| 128 | -14.7% |", "| 128 |", "the row has 3 cells, not 4");
    check("-14.7%", "+14.7%", "from 150 to 128 is -14.7%, not +14.7%");
    check("-14.7%", "-47.1%", "not -47.1%");
}

#[test]
fn a_configuration_stands_in_one_place_and_one_row() {
    let both = table_variant().replace("mla decode v3", "mla decode v3 | b=1");
    let faults = parse(&both).unwrap_err();
    assert!(faults[0].contains("both in the title and in a table"), "{faults:?}");
    let two = table_variant().replace("| 32 | 1 | bfloat16 |", "| 32 | 1 | a |\n| 16 | 1 | b |");
    let faults = parse(&two).unwrap_err();
    assert!(faults[0].contains("more than one row"), "{faults:?}");
}

#[test]
fn changes_are_held_against_the_figures_as_far_as_these_are_rounded() {
    let check = |row: (&str, &str, &str), want: Option<&str>| {
        let found = change_holds(row.0, row.1, row.2);
        assert_eq!(found.as_deref(), want, "{row:?}");
    };
    check(("150", "128", "-14%"), None);
    check(("150", "128", "−15 %"), None);
    check(("150.0", "128.0", "-14%"), Some("-14.7%"));
    check(("0.0012", "0.0013", "+16.5%"), None);
    check(("1.000e9", "1.200e9", "+20.0%"), None);
    check(("1.000e9", "1.200e9", "+30%"), Some("+20.0%"));
    // Values that are not plain numbers are not compared, and a change from zero has no percentage.
    for row in [("0", "12", "+5%"), ("1 ms", "2 ms", "+5%"), ("1", "2", "2x"), ("a", "b", "-")] {
        check(row, None);
    }
}

#[test]
fn a_cut_report_is_never_taken_for_a_whole_one() {
    let second = REPORT.find("2. swizzle").unwrap();
    let whole = parse(REPORT).unwrap();
    for cut in (0..REPORT.len()).filter(|cut| REPORT.is_char_boundary(*cut)) {
        if let Ok(read) = parse(&REPORT[..cut]) {
            // A cut at the end of a line cannot be detected; the rest is unchanged.
            assert!(REPORT[..cut].ends_with('\n') && cut >= second, "{cut}");
            assert_eq!(read.stages, whole.stages);
            assert_eq!(read.opportunities[0], whole.opportunities[0]);
        }
    }
}

#[test]
fn hostile_reports_are_bounded() {
    assert!(parse("").is_err());
    assert!(parse(&"## Profile: x\n".repeat(100_000)).is_err());
    let faults = parse(&"| a |\n".repeat(10_000)).unwrap_err();
    assert!(faults.len() <= ERRORS_MAX + 6, "{}", faults.len());
    let row = "| a | 1 | 1 | 1 | 1 | Memory | x |\n";
    let many = REPORT.replace("| combine", &format!("{}| combine", row.repeat(2_000)));
    let faults = parse(&many).unwrap_err();
    assert!(faults[0].contains("more than 64 rows"), "{faults:?}");
    let long = REPORT.replace("| L2 |", &format!("| {} |", "x".repeat(10_000)));
    let faults = parse(&long).unwrap_err();
    assert!(faults[0].contains("more than 400 characters") && faults[0].len() < 200);
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(
        at in 0..REPORT.len(),
        n in 0..40_usize,
        put in "[-|#0-9.%=e \\\\\n—a-z]{0,12}",
    ) {
        let from = (0..=at).rev().find(|at| REPORT.is_char_boundary(*at)).unwrap();
        let mut to = (at + n).min(REPORT.len());
        while !REPORT.is_char_boundary(to) {
            to += 1;
        }
        let text = format!("{}{put}{}", &REPORT[..from], &REPORT[to..]);
        if let Err(faults) = parse(&text) {
            prop_assert!(!faults.is_empty());
        }
    }
}
