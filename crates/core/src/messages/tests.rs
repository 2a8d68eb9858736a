//! Messages are checked completely, and Markdown messages are read back unchanged.

use super::*;
use crate::testing::fixed;
use proptest::prelude::*;

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
            section("Bottleneck: {class}-bound", "cause"),
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

### Bottleneck: Memory-bound
It waits. For memory.

### Ideas
1. larger tiles — est. 12% gain

### Right
yes
";

#[test]
fn the_form_is_sound_and_a_text_is_read_and_written_back() {
    assert_eq!(message().errors(), Vec::<String>::new());
    let datum = parse_markdown(&message(), TEXT).unwrap();
    assert_eq!(datum.number_of("version"), Some(3.0));
    assert_eq!(datum.list_of("stages")[0].number_of("time"), Some(12.5));
    assert_eq!(datum.list_of("stages")[1].get("time"), None);
    assert_eq!(render_markdown(&message(), &datum).unwrap(), TEXT);
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
    check("Memory-bound", "Magic-bound", &["class must be one of Memory, Compute"]);
    check("| qk | 12.5 |", "| qk |", &["stages[0] must have 2 cells"]);
    check("| pv | - |", "| pv | soon |", &["stages[1].time must be a number"]);
    check("12% gain", "a lot", &["ideas[0] must have the form", "ideas"]);
    check("It waits. For memory.", "One. Two. Three.", &["cause has more than 2 sentences"]);
    check("### Right\nyes", "", &["right is missing"]);
    check("### Right", "### Wrong", &["\"Wrong\"", "right is missing"]);
    check("yes", "maybe", &["right must be true or false"]);
    check("## Profile", "# Profile", &["must begin with"]);
    // Two errors at once are both named.
    let both = TEXT.replace("Memory-bound", "X-bound").replace("yes", "so");
    assert_eq!(parse_markdown(&message(), &both).unwrap_err().len(), 2);
    for text in ["", "## ", "## Profile: a 1\nstray\n"] {
        assert!(parse_markdown(&message(), text).is_err(), "{text}");
    }
}

#[test]
fn what_could_not_be_read_back_is_not_written() {
    let mut datum = parse_markdown(&message(), TEXT).unwrap();
    let Datum::Fields(values) = &mut datum else { panic!() };
    for cause in ["a\n### Right\nno", "\na", "a\n\n"] {
        values.insert("cause".into(), Datum::text(cause));
        let datum = Datum::Fields(values.clone());
        assert!(render_markdown(&message(), &datum).is_err(), "{cause:?}");
    }
}

#[test]
fn objects_are_checked_whole() {
    let mut form = message();
    form.form = MessageFormat::Object;
    let datum: Datum = serde_json::from_str(
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
    assert!(serde_json::from_str::<Datum>(r#"{"a": 1, "a": 2}"#).is_err());
}

/// Any words in all places.
fn any_words() -> impl Strategy<Value = Datum> {
    let notes = proptest::collection::vec("[ -~]{1,10}", 0..3);
    let row = ("[ -~]{1,8}", proptest::option::of(-1e6..1e6_f64));
    let words = ("[ -~é]{1,12}", "[ -~—]{1,20}", "[ -~\n]{1,40}");
    (words, row, notes, 0_u32..1000).prop_map(|(words, (stage, time), notes, version)| {
        let (kernel, idea, cause) = words;
        let mut row = BTreeMap::from([("stage".to_owned(), Datum::text(&stage))]);
        row.extend(time.map(|time| ("time".to_owned(), Datum::Number(time))));
        let idea = Datum::fields([("idea", Datum::text(&idea)), ("gain", Datum::Number(2.5))]);
        let notes = notes.iter().map(|note| Datum::text(note)).collect();
        Datum::fields([
            ("kernel", Datum::text(&kernel)),
            ("version", Datum::Number(f64::from(version))),
            ("stages", Datum::List(vec![Datum::Fields(row)])),
            ("class", Datum::text("Compute")),
            ("cause", Datum::text(&cause)),
            ("ideas", Datum::List(vec![idea])),
            ("right", Datum::Truth(false)),
            ("notes", Datum::List(notes)),
        ])
    })
}

/// Whether a value is made of letters alone.
fn is_plain(datum: &Datum, name: &str) -> bool {
    let text = datum.str_of(name);
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphabetic())
}

proptest! {
    #![proptest_config(fixed(512))]

    /// Every message is read back unchanged, whatever its words are, or else not written; plain
    /// words are always written.
    #[test]
    fn reading_undoes_writing(datum in any_words()) {
        if let Ok(text) = render_markdown(&message(), &datum) {
            prop_assert_eq!(parse_markdown(&message(), &text), Ok(datum));
        } else if message().check(&datum).is_empty() {
            let all = is_plain(&datum, "kernel")
                && is_plain(&datum, "cause")
                && is_plain(&datum.list_of("stages")[0], "stage")
                && is_plain(&datum.list_of("ideas")[0], "idea");
            prop_assert!(!all, "{:?}", datum);
        }
    }
}
