//! Every shipped form is sound, and messages are checked completely and accepted for what they say.

use super::form::MessageSection;
use super::markdown::parse_markdown;
use super::*;
use karve_core::roles::ReviewAdvice;
use serde_json::json;
use std::collections::BTreeSet;

fn field(name: &str, kind: FieldKind) -> MessageField {
    MessageField { name: name.into(), kind, ..MessageField::default() }
}

/// A message with a field of every kind that Markdown can show.
fn message() -> Message {
    let mut class = field("class", FieldKind::Choice);
    class.of = vec!["Memory".into(), "Compute".into()];
    let mut stages = field("stages", FieldKind::Rows);
    stages.least = Some(1);
    stages.field = vec![field("stage", FieldKind::Line), field("time", FieldKind::Number)];
    stages.field[1].optional = true;
    let mut ideas = field("ideas", FieldKind::Rows);
    ideas.most = Some(3);
    ideas.field = vec![field("idea", FieldKind::Line), field("gain", FieldKind::Number)];
    let mut cause = field("cause", FieldKind::Text);
    cause.most = Some(2);
    let mut notes = field("notes", FieldKind::Lines);
    notes.optional = true;
    let section = |heading: &str, body: &str| MessageSection {
        heading: heading.into(),
        body: body.into(),
        ..MessageSection::default()
    };
    let mut table = section("Stages", "stages");
    table.columns = vec!["Stage".into(), "Time (us)".into()];
    let mut list = section("Ideas", "ideas");
    list.row = "{idea} — est. {gain}% gain".into();
    Message {
        name: "x/profile".into(),
        system: "x".into(),
        about: "a test".into(),
        form: MessageFormat::Markdown,
        title: "Profile: {kernel} {version}".into(),
        example: String::new(),
        labels: Vec::new(),
        field: vec![
            field("kernel", FieldKind::Line),
            field("version", FieldKind::Count),
            stages,
            class,
            cause,
            ideas,
            field("right", FieldKind::Truth),
            notes,
        ],
        section: vec![
            table,
            section("Class", "class"),
            section("Cause", "cause"),
            list,
            section("Right", "right"),
            section("Notes", "notes"),
        ],
    }
}

const TEXT: &str = "## Profile: mla 3

### Stages
| Stage | Time (us) |
| --- | --- |
| qk | 12.5 |
| pv | - |

### Class: Memory

### Cause
It waits. For memory.

### Ideas
1. larger tiles — est. 12% gain

### Right
yes
";

#[test]
fn a_text_is_read_with_a_value_of_every_kind() {
    assert_eq!(form_errors(&message()), Vec::<String>::new());
    let value = parse_markdown(&message(), TEXT).unwrap();
    let want = json!({
        "kernel": "mla", "version": 3, "class": "Memory", "cause": "It waits. For memory.",
        "stages": [{"stage": "qk", "time": 12.5}, {"stage": "pv"}],
        "ideas": [{"idea": "larger tiles", "gain": 12}], "right": true,
    });
    assert_eq!(value, want);
}

#[test]
fn every_fault_is_named() {
    let check = |from: &str, to: &str, parts: &[&str]| {
        assert!(TEXT.contains(from), "{from}");
        let faults = parse_markdown(&message(), &TEXT.replace(from, to)).unwrap_err();
        let faults = faults.join("\n");
        for part in parts {
            assert!(faults.contains(part), "{part} in {faults}");
        }
    };
    check("mla 3", "mla three", &["version must be a number"]);
    check("Memory\n", "Magic\n", &["class must be one of Memory, Compute"]);
    check("| qk | 12.5 |", "| qk |", &["stages[0] must have 2 cells"]);
    check("| pv | - |", "| pv | soon |", &["stages[1].time must be a number"]);
    check("12% gain", "a lot", &["ideas[0] must have the form", "ideas"]);
    check("It waits. For memory.", "One. Two. Three.", &["cause has more than 2 sentences"]);
    check("### Right\nyes", "", &["right is missing"]);
    check("### Right", "### Wrong", &["\"Wrong\"", "right is missing"]);
    check("yes", "maybe", &["right must be true or false"]);
    check("## Profile", "# Profile", &["must begin with"]);
    // Two errors at once are both named.
    let both = TEXT.replace("Class: Memory", "Class: X").replace("yes", "so");
    assert_eq!(parse_markdown(&message(), &both).unwrap_err().len(), 2);
    for text in ["", "## ", "## Profile: a 1\n"] {
        assert!(parse_markdown(&message(), text).is_err(), "{text}");
    }
}

#[test]
fn objects_are_checked_whole() {
    let mut form = message();
    form.form = MessageFormat::Object;
    let datum: Value = serde_json::from_str(
        r#"{"kernel": "", "version": 1.5, "stages": [], "class": 3, "cause": "a\u0007",
            "ideas": [{"idea": "x"}, 4], "right": "yes", "extra": 1, "notes": null}"#,
    )
    .unwrap();
    let faults = form.check(&datum).join("\n");
    for part in [
        "kernel is empty",
        "version must be a whole number",
        "stages needs at least 1",
        "class must be one of",
        "cause contains a control character",
        "ideas[0].gain is missing",
        "ideas[1] must be an object",
        "right must be true or false",
        "extra is not a field",
    ] {
        assert!(faults.contains(part), "{part} in {faults}");
    }
    assert!(!faults.contains("notes"), "{faults}");
}

/// Everything that is wrong with a form itself.
fn form_errors(form: &Message) -> Vec<String> {
    let mut faults = Vec::new();
    if form.name.is_empty() || form.system.is_empty() || form.about.is_empty() {
        faults.push("it needs a name, a system and a description".to_owned());
    }
    push_field_errors(&form.field, &mut faults);
    let mut shown = names_in(&form.title);
    shown.extend(form.labels.iter().flat_map(|label| names_in(label)));
    for section in &form.section {
        shown.extend(section.labels.iter().flat_map(|label| names_in(label)));
        if section.body.is_empty() && !section.labels.is_empty() {
            continue;
        }
        shown.push(section.body.clone());
        let field = form.field.iter().find(|field| field.name == section.body).unwrap();
        let inner: Vec<String> = field.field.iter().map(|field| field.name.clone()).collect();
        let fits = match (field.kind, section.columns.is_empty()) {
            (FieldKind::Rows, true) => names_in(&section.row) == inner,
            (FieldKind::Rows, false) => section.columns.len() == inner.len(),
            (FieldKind::Record, _) => false,
            _ => section.columns.is_empty() && section.row.is_empty(),
        };
        if !fits {
            faults.push(format!("{} does not show the fields of its body", section.heading));
        }
    }
    let mut names: Vec<String> = form.field.iter().map(|field| field.name.clone()).collect();
    names.sort();
    shown.sort();
    if form.form == MessageFormat::Markdown && names != shown {
        faults.push("it does not show each field once".to_owned());
    }
    faults
}

fn names_in(pattern: &str) -> Vec<String> {
    let parts = pattern.split('{').skip(1);
    parts.map(|part| part.split_once('}').unwrap().0.to_owned()).collect()
}

fn push_field_errors(fields: &[MessageField], faults: &mut Vec<String>) {
    let mut seen = BTreeSet::new();
    for field in fields {
        let nests = matches!(field.kind, FieldKind::Rows | FieldKind::Record);
        let is_choice = field.kind == FieldKind::Choice;
        if field.name.is_empty()
            || !seen.insert(&field.name)
            || nests == field.field.is_empty()
            || is_choice == field.of.is_empty()
        {
            faults.push(format!("{:?} is not a sound field", field.name));
        }
        push_field_errors(&field.field, faults);
    }
}

#[test]
fn every_shipped_form_is_sound() {
    for form in all().unwrap() {
        assert_eq!(form_errors(form), Vec::<String>::new(), "{}", form.name);
    }
}

#[test]
fn every_workflow_has_its_messages() {
    let names: Vec<&str> = all().unwrap().iter().map(|form| form.name.as_str()).collect();
    for name in [
        "hyper-mla/profile",
        "hyper-mla/task",
        "hyper-mla/summary",
        "trtllm/analysis",
        "trtllm/optimization",
        "trtllm/summary",
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
fn an_optional_text_may_be_empty() {
    let said = "{\"modified_files\": [\"k.py\"], \"diff_summary\": \"did it\", \"build_ok\": true, \
                \"build_log\": \"\", \"kernel_snapshotted\": true, \"notes\": \"\"}";
    assert_eq!(summary_of(said).unwrap().unwrap(), "did it");
    let nothing = said.replace("did it", "");
    assert!(summary_of(&nothing).unwrap().unwrap_err()[0].contains("diff_summary is empty"));
}

#[test]
fn an_analysis_and_a_turn_become_a_hypothesis() {
    let said = hypothesis_of(ANALYZE).unwrap().unwrap();
    assert!((said.expected_ratio - 1.125).abs() < 1e-9);
    assert_eq!((said.bottleneck.as_str(), said.files.len()), ("memory", 1));
    let errors = |text: &str| hypothesis_of(text).unwrap().unwrap_err().join("; ");
    let vague = ANALYZE.replace("+12.5% at best", "much");
    assert!(errors(&vague).contains("a gain such as +5% or 1.05x"));
    // Neither a loss nor the end of a number is a gain.
    for (told, want) in [("-5%", None), ("1e308%", None), ("-40% DRAM, +5%", Some(1.05))] {
        let said = hypothesis_of(&ANALYZE.replace("+12.5% at best", told)).unwrap();
        assert_eq!(said.ok().map(|said| said.expected_ratio), want, "{told}");
    }
    let with = ANALYZE.replace("alternatives\": []", "alternatives\": [\"split K\"]");
    assert_eq!(hypothesis_of(&with).unwrap().unwrap().alternatives, ["split K"]);
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
    assert_eq!(said.alternatives, ["a", "c"]);
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

/// A message as its workflow publishes the form.
fn published(path: &str) -> String {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/messages");
    std::fs::read_to_string(format!("{dir}/{path}")).unwrap()
}

#[test]
fn the_published_forms_are_read() {
    let read = |name: &str| parse(form(name).unwrap(), &published(&format!("{name}.md")));
    let task = read("hyper-mla/task").unwrap();
    assert_eq!((&task["from"], &task["to"]), (&json!("v2"), &json!("v3")));
    assert_eq!(task["optimizations"].as_array().unwrap().len(), 2);
    let summary = read("hyper-mla/summary").unwrap();
    assert_eq!(summary["trials"][0]["matters"], "decode");
    assert_eq!(summary["devlog"], "docs/kernels/mla.md");
    let optimization = read("trtllm/optimization").unwrap();
    assert_eq!(optimization["specialist"], "perf-torch-cuda-graph-specialist");
    assert_eq!(optimization["validation"][1]["change"], "-18.0%");
    assert_eq!(optimization["result"], "SUCCESS");
    let all = read("trtllm/summary").unwrap();
    assert_eq!(all["optimizations"][2]["status"], "Rolled back");
    assert_eq!(all["totals"][2]["metric"], "SOL%");
    assert_eq!(all["remaining"].as_array().unwrap().len(), 2);
    for name in ["trtllm/optimization", "trtllm/summary"] {
        let text = published(&format!("{name}.md")).replace("Specialist:", "Who:");
        let text = text.replace("**Goal**:", "Goal:");
        let faults = parse(form(name).unwrap(), &text).unwrap_err();
        assert!(faults[0].starts_with("a line must have the form"), "{faults:?}");
    }
}

#[test]
fn a_change_and_a_new_version_become_a_summary() {
    let change = r#"{"modified_files": ["k.py"], "diff_summary": "tiles of 128", "build_ok": true,
        "kernel_snapshotted": false}"#;
    assert_eq!(summary_of(change).unwrap().unwrap(), "tiles of 128");
    let broken = change.replace("\"build_ok\": true,", "");
    let faults = summary_of(&broken).unwrap().unwrap_err();
    assert_eq!(faults, ["build_ok is missing"]);
    let version = published("hyper-mla/summary.md");
    let said = summary_of(&version).unwrap().unwrap();
    assert_eq!(said, "split the KV sequence by blocks; group heads that share an operand");
    let failed = summary_of(&version.replace("PASS", "FAIL")).unwrap().unwrap();
    assert!(failed.ends_with("(its author reports that it is not correct)"), "{failed}");
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
