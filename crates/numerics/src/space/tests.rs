//! Knobs of every kind are found, read and set, and nothing else changes.

use super::*;
use proptest::prelude::*;

fn declared(name: &str, file: &str, deliver: Delivery) -> KnobDeclaration {
    KnobDeclaration {
        name: name.into(),
        values: vec!["4".into(), "8".into()],
        file: file.into(),
        flags: Vec::new(),
        deliver,
        key: None,
        when: None,
    }
}

fn check(text: &str, name: &str, value: &str, want: &str) {
    let knobs = parse_knobs("k.c", text, &[]).unwrap();
    let knob = knobs.iter().find(|knob| knob.name == name).unwrap();
    assert_eq!(set_knob(text, knob, value).as_deref(), Some(want));
}

#[test]
fn a_knob_is_set_where_it_is_defined() {
    check(
        "// karve: knob TILE in 8,16\n#define TILE 8 // width\nint TILE_K = TILE;\n",
        "TILE",
        "16",
        "// karve: knob TILE in 8,16\n#define TILE 16 // width\nint TILE_K = TILE;\n",
    );
    check(
        "# karve: knob OPT in -O1,-O3\nOPT = -O1",
        "OPT",
        "-O3",
        "# karve: knob OPT in -O1,-O3\nOPT = -O3",
    );
    check(
        "/* karve: knob N in 1,2 */\nconstexpr int N = 1;\n",
        "N",
        "2",
        "/* karve: knob N in 1,2 */\nconstexpr int N = 2;\n",
    );
    check(
        "# karve: knob MODE in fast,slow\nMODE = \"slow\"\n",
        "MODE",
        "fast",
        "# karve: knob MODE in fast,slow\nMODE = \"fast\"\n",
    );
}

#[test]
fn a_definition_may_name_a_type() {
    for (line, want) in [
        ("const TILE: usize = 8;", "const TILE: usize = 16;"),
        ("TILE: int = 8  # width", "TILE: int = 16  # width"),
        ("TILE: 8", "TILE: 16"),
        ("TILE = 8 == WIDTH", "TILE = 16 == WIDTH"),
    ] {
        let text = |line: &str| format!("# karve: knob TILE in 8,16\n{line}\n");
        check(&text(line), "TILE", "16", &text(want));
    }
}

#[test]
fn a_declaration_outside_the_source_finds_its_definition() {
    let declared = declared("WARPS", "k.py", Delivery::Source);
    let knobs = parse_knobs("k.py", "x = 1\nWARPS = 2\n", &[declared]).unwrap();
    assert_eq!(knobs[0].current, "2");
    assert_eq!(knobs[0].values, ["2", "4", "8"]);
    assert_eq!(knobs[0].position("8"), Some(2));
}

#[test]
fn values_may_be_a_range() {
    for (values, want) in [
        ("1..4", "1 2 3 4"),
        ("0..20+8", "0 8 16"),
        ("1..20*2", "1 2 4 8 16"),
        ("-1, 4..8+4", "-1 4 8"),
    ] {
        let text = format!("// karve: knob X in {values}\n#define X 4\n");
        let knobs = parse_knobs("k.c", &text, &[]).unwrap();
        assert!(knobs[0].values.join(" ").ends_with(want), "{:?}", knobs[0].values);
    }
    for wrong in ["4..1", "1..9*1", "0..9*2", "1..9+0", "a..b", "1..99999"] {
        let text = format!("// karve: knob X in {wrong}\n#define X 4\n");
        assert!(parse_knobs("k.c", &text, &[]).is_err(), "{wrong}");
    }
}

#[test]
fn restrictions_stand_in_comments() {
    let text = "# karve: restrict A % B == 0\n/* karve: restrict A < 4 */\nA = 1\n";
    assert_eq!(parse_restrictions(text), ["A % B == 0", "A < 4"]);
}

#[test]
fn mistakes_name_file_and_line() {
    for (text, part) in [
        ("// karve: knob X of 1,2\n#define X 1", "k.c:1"),
        ("// karve: knob X in 1,2\n#define Y 1", "does not define X"),
        ("// karve: knob X in 1,,2\n#define X 1", "k.c:1"),
        ("// karve: knob X in 1\n#define X 1", "needs 2"),
    ] {
        let error = parse_knobs("k.c", text, &[]).unwrap_err();
        assert!(error.contains(part), "{error}");
    }
}

proptest! {
    #![proptest_config(crate::testing::fixed(256))]

    #[test]
    fn any_text_is_read_or_refused(text in "(.{0,40}\n){0,6}") {
        let _ = parse_knobs("k.c", &text, &[]);
    }

    #[test]
    fn any_text_is_looked_through(text in "[ {}\\[\\]\",:a1.\\\\]{0,40}", path in "[a1.]{1,4}") {
        if let Some(at) = json::find(&text, &path) {
            prop_assert!(!text[at].is_empty());
        }
    }

    #[test]
    fn json_is_found_where_a_reader_finds_it(
        keys in prop::collection::btree_set("[a-c]{1,2}", 1..5),
        values in prop::collection::vec(
            prop_oneof!["[1-9][0-9]{0,2}", "\"[a-z ,}]{0,4}\"", "\\[1, \"}\"\\]", "\\{\"a\": 1\\}"],
            5,
        ),
        space in "[ \n]{0,2}",
    ) {
        let members: Vec<String> = keys
            .iter()
            .zip(&values)
            .map(|(key, value)| format!("\"{key}\"{space}:{space}{value}"))
            .collect();
        let text = format!("{space}{{{}}}", members.join(&format!("{space},{space}")));
        let read: serde_json::Value = serde_json::from_str(&text).unwrap();
        for key in &keys {
            let found = json::find(&text, key).unwrap();
            let found: serde_json::Value = serde_json::from_str(&text[found]).unwrap();
            prop_assert_eq!(&found, &read[key.as_str()]);
        }
    }

    #[test]
    fn what_is_set_is_read_again(value in "[a-z0-9_.+-]{1,8}") {
        let text = "// karve: knob X in a,b\n#define X a\n";
        let knob = &parse_knobs("k.c", text, &[]).unwrap()[0];
        let changed = set_knob(text, knob, &value).unwrap();
        prop_assert_eq!(&parse_knobs("k.c", &changed, &[]).unwrap()[0].current, &value);
    }
}

#[test]
fn a_knob_without_a_name_is_nowhere() {
    assert_eq!(spot::find_value("TILE 8", ""), None);
}

#[test]
fn each_flag_of_a_list_is_a_knob() {
    let text = "# karve: knob CFLAGS of -funroll-loops,-mprefer-vector-width=512\n\
                CFLAGS := -O2 -funroll-loops # fast\n";
    let knobs = parse_knobs("flags.mk", text, &[]).unwrap();
    let names: Vec<&str> = knobs.iter().map(|knob| knob.name.as_str()).collect();
    assert_eq!(names, ["CFLAGS_funroll_loops", "CFLAGS_mprefer_vector_width_512"]);
    assert_eq!([&knobs[0].current, &knobs[1].current], ["on", "off"]);
    let without = set_knob(text, &knobs[0], "off").unwrap();
    assert!(without.ends_with("CFLAGS := -O2 # fast\n"), "{without}");
    let both = set_knob(text, &knobs[1], "on").unwrap();
    let end = "CFLAGS := -O2 -funroll-loops -mprefer-vector-width=512 # fast\n";
    assert!(both.ends_with(end), "{both}");
    let none = "# karve: knob F of -a,-b\nF = \"\"\n";
    let knobs = parse_knobs("k.py", none, &[]).unwrap();
    let text = set_knob(none, &knobs[1], "on").unwrap();
    assert!(text.ends_with("F = \"-b\"\n"), "{text}");
}

#[test]
fn a_knob_may_matter_only_somewhere() {
    let text = "/* karve: knob STEP in 1,2 when ORDER == 'tiled' */\n#define STEP 1\n";
    let knobs = parse_knobs("k.c", text, &[]).unwrap();
    assert_eq!(knobs[0].when.as_deref(), Some("ORDER == 'tiled'"));
    assert_eq!(knobs[0].values, ["1", "2"]);
}

#[test]
fn values_stand_in_json_by_their_path() {
    let text =
        "{\n  \"gemm\": {\"tile\": 4, \"order\": \"row\"},\n  \"tile\": [1],\"a.b\": true\n}\n";
    let check = |path: &str, current: &str, value: &str, want: &str| {
        let mut declared = declared("TILE", "k.json", Delivery::Json);
        declared.key = Some(path.into());
        let knobs = parse_knobs("k.json", text, &[declared]).unwrap();
        assert_eq!(knobs[0].current, current);
        let changed = set_knob(text, &knobs[0], value).unwrap();
        assert!(changed.contains(want), "{changed}");
        assert_eq!(changed.lines().count(), text.lines().count());
    };
    check("gemm.tile", "4", "8", "\"tile\": 8, \"order\"");
    check("gemm.order", "row", "8", "\"order\": \"8\"}");
    check("gemm.tile", "4", "fast", "\"tile\": \"fast\", ");
    check("a.b", "true", "false", "\"a.b\": false\n");
    for path in ["tile", "gemm", "gemm.none", "gemm.tile.x"] {
        let mut declared = declared("TILE", "k.json", Delivery::Json);
        declared.key = Some(path.into());
        let error = parse_knobs("k.json", text, &[declared]).unwrap_err();
        assert!(error.contains(path), "{error}");
    }
}

#[test]
fn values_stand_in_templates_between_signs() {
    let text = "int tile[@TILE=4@]; // mail a@b.c\nint n = @TILE@ + @OTHER@;\n";
    let declared = declared("TILE", "k.c.in", Delivery::Placeholder);
    let knobs = parse_knobs("k.c.in", text, std::slice::from_ref(&declared)).unwrap();
    assert_eq!(knobs[0].current, "4");
    let changed = set_knob(text, &knobs[0], "8").unwrap();
    let values = KnobSetting::from([("TILE".into(), "8".into())]);
    let want = "int tile[8]; // mail a@b.c\nint n = 8 + @OTHER@;\n";
    assert_eq!(render_template(&changed, &values), want);
    let error = parse_knobs("k.c.in", "int x;\n", &[declared]).unwrap_err();
    assert!(error.contains("@TILE=VALUE@"), "{error}");
}
