//! Every shipped form is valid, survives writing and parsing, and is accepted for what it says.

use super::*;
use karve_core::messages::{FieldKind, MessageField};
use karve_core::roles::ReviewAdvice;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed};

/// Words that no form uses as a separator.
const WORDS: &str = "[a-zA-Z][a-zA-Z0-9_.=]{0,11}";

/// A value of a field.
fn value(field: &MessageField) -> BoxedStrategy<Datum> {
    let least = field.least.unwrap_or(0);
    let most = field.most.unwrap_or(4).clamp(least, 4.max(least));
    match field.kind {
        FieldKind::Line => WORDS.prop_map(Datum::Text).boxed(),
        FieldKind::Text => WORDS.prop_map(Datum::Text).boxed(),
        FieldKind::Number => (-1e6..1e6_f64).prop_map(Datum::Number).boxed(),
        FieldKind::Count => (0..1_000_000_u32).prop_map(|n| Datum::Number(f64::from(n))).boxed(),
        FieldKind::Truth => any::<bool>().prop_map(Datum::Truth).boxed(),
        FieldKind::Choice => {
            proptest::sample::select(field.of.clone()).prop_map(Datum::Text).boxed()
        }
        FieldKind::Lines => proptest::collection::vec(WORDS.prop_map(Datum::Text), least..=most)
            .prop_map(Datum::List)
            .boxed(),
        FieldKind::Rows => proptest::collection::vec(values(&field.field), least..=most)
            .prop_map(Datum::List)
            .boxed(),
        FieldKind::Record => values(&field.field),
    }
}

/// Values of some fields; optional ones may be left out.
fn values(fields: &[MessageField]) -> BoxedStrategy<Datum> {
    let each: Vec<BoxedStrategy<(String, Option<Datum>)>> = fields
        .iter()
        .map(|field| {
            let name = field.name.clone();
            let some = value(field).prop_map(Some);
            let given = match field.optional {
                true => prop_oneof![Just(None), some].boxed(),
                false => some.boxed(),
            };
            given.prop_map(move |value| (name.clone(), value)).boxed()
        })
        .collect();
    each.prop_map(|pairs| {
        let given = pairs.into_iter();
        let given = given.filter_map(|(name, value)| Some((name, value?)));
        Datum::Fields(given.collect())
    })
    .boxed()
}

/// Any message of any form.
fn any_message() -> impl Strategy<Value = (&'static Message, Datum)> {
    let forms: Vec<&'static Message> = all().unwrap().iter().collect();
    proptest::sample::select(forms)
        .prop_flat_map(|form| values(&form.field).prop_map(move |datum| (form, datum)))
}

proptest! {
    #![proptest_config(Config {
        cases: 600,
        rng_seed: RngSeed::Fixed(1),
        failure_persistence: None,
        ..Config::default()
    })]

    #[test]
    fn reading_undoes_writing((form, datum) in any_message()) {
        let text = render(form, &datum).unwrap();
        prop_assert_eq!(parse(form, &text), Ok(datum), "{}", text);
    }
}

#[test]
fn every_workflow_has_its_messages() {
    let names: Vec<&str> = all().unwrap().iter().map(|form| form.name.as_str()).collect();
    for name in [
        "hyper-mla/task",
        "hyper-mla/summary",
        "trtllm/analysis",
        "trtllm/optimization",
        "primus/analyze",
        "primus/optimize",
        "primus/review",
        "primus/stagnation",
        "primus/profile",
        "primus/report",
    ] {
        assert!(names.contains(&name), "{name}");
    }
    assert!(form("tilegym/none").is_err());
}

const ANALYZE: &str = r#"{"round": 2, "primary_hypothesis": "Prefetch because loads wait",
 "bottleneck_class": "memory", "expected_benefit": "forward +12.5% at best", "risks": ["registers"],
 "verification_signal": "dram_pct up", "planned_modified_files": ["k.py"],
 "rejected_alternatives": [], "evidence_paths": []}"#;

#[test]
fn an_analysis_and_a_turn_become_a_hypothesis() {
    let said = hypothesis_of(ANALYZE).unwrap().unwrap();
    assert!((said.expected_ratio - 1.125).abs() < 1e-9);
    assert_eq!((said.bottleneck.as_str(), said.files.len()), ("memory", 1));
    let errors = |text: &str| hypothesis_of(text).unwrap().unwrap_err().join("; ");
    let vague = ANALYZE.replace("+12.5% at best", "much");
    assert!(errors(&vague).contains("a figure such as +5%"));
    let short = ANALYZE.replace("\"round\": 2, ", "").replace("[\"k.py\"]", "[]");
    let said = errors(&short);
    assert!(said.contains("round is missing") && said.contains("at least 1"), "{said}");
    let direction = |title: &str| {
        format!(
            "{{\"title\": \"{title}\", \"category\": \"tile\", \"hypothesis\": \"h\", \
             \"expected_signal\": \"1.3x\", \"risk\": \"r\"}}"
        )
    };
    let turn = |pick: &str| {
        let all = ["a", "b", "c"].map(direction).join(",");
        format!("{{\"new_directions\": [{all}], \"primary_pick\": \"{pick}\"}}")
    };
    let said = hypothesis_of(&turn("b")).unwrap().unwrap();
    assert_eq!((said.title.as_str(), said.direction.name()), ("b", "tile"));
    assert!(errors(&turn("z")).contains("primary_pick"));
    assert_eq!(said.task, None);
    // Under an agenda an answer names its item, whatever contract it uses.
    for text in [ANALYZE.to_owned(), turn("b")] {
        let with_task = text.replacen('{', "{\"task\": \" tiles \", ", 1);
        let said = hypothesis_of(&with_task).unwrap().unwrap();
        assert_eq!(said.task.as_deref(), Some("tiles"));
    }
    assert!(hypothesis_of("{\"title\": \"t\"}").is_none());
    assert!(hypothesis_of("not at all").is_none());
}

#[test]
fn a_change_and_a_new_version_become_a_summary() {
    let change = r#"{"modified_files": ["k.py"], "diff_summary": "tiles of 128", "build_ok": true,
        "kernel_snapshotted": false}"#;
    assert_eq!(summary_of(change).unwrap().unwrap(), "tiles of 128");
    let broken = change.replace("\"build_ok\": true,", "");
    let faults = summary_of(&broken).unwrap().unwrap_err();
    assert_eq!(faults, ["build_ok is missing"]);
    let version = "## New Version: mla v4\n\n### Changes\n1. tiles of 128 — fewer loads\n\n\
        ### Files\n- k.py\n\n### Correctness\nPASS\n\n### Trial Configurations\n\
        | Configuration | Why It Matters |\n| --- | --- |\n| b=32 | decode |\n";
    let said = summary_of(version).unwrap().unwrap();
    assert_eq!(said, "tiles of 128: fewer loads");
    assert!(summary_of(&version.replace("PASS", "FAIL")).unwrap().is_err());
    assert!(summary_of("done").is_none());
}

#[test]
fn a_review_is_read_strictly() {
    let review = |verdict: &str, last: &str| {
        format!(
            "I looked.\n```json\n{{\"review_verdict\": \"{verdict}\", \"review_reason\": \"r\", \
             \"rule_verdicts\": {{\"hypothesis_metric_alignment\": \"pass\", \
             \"off_target_gain\": \"fail\", \"quick_vs_full\": \"unknown\", \
             \"noise_band\": \"unknown\"{last}}}}}\n```\n"
        )
    };
    let whole = ", \"bit_identity\": \"pass\"";
    let said = review_of("t", &review("DOWNGRADE_TO_ROLLBACK", whole)).unwrap();
    assert_eq!((said.advice, said.signals.len()), (Some(ReviewAdvice::DowngradeToRollback), 5));
    assert!(said.doubts());
    let faults = review_of("t", &review("ACCEPT", "")).unwrap_err();
    assert_eq!(faults.len(), 2, "{faults:?}");
    assert!(review_of("t", "looks good to me").is_err());
}
