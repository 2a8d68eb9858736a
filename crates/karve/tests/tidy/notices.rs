//! Each check of `tidy` must notice what is broken, and leave the rest alone.

use super::source::Source;
use super::{
    MACHINES, UNDONE, coverage, cycles, house, impurities, leftovers, missing_files, orphan_output,
    oversized_file, oversized_functions, strange_dependencies, trespasses, unused_words,
    vague_hints,
};

fn broken(path: &str, text: &str) -> Source {
    Source::of(path, text.to_owned())
}

fn check(complaints: Vec<String>, want: usize) {
    assert_eq!(complaints.len(), want, "{complaints:#?}");
}

#[test]
fn a_long_function() {
    let body = |n: usize| "    let _ = \"}\"; // {\n".repeat(n);
    let text = format!("fn ok() {{\n{}}}\nfn long() {{\n{}}}\n", body(68), body(69));
    let found = oversized_functions(&broken("crates/karve/src/x.rs", &text));
    check(found.clone(), 1);
    assert_eq!(found[0], "crates/karve/src/x.rs:71: 71 lines > 70");
}

#[test]
fn a_sixth_parameter() {
    let five = "fn a<T>(&self, b: fn(u8, u8) -> u8, c: (u8, u8), d: X<u8, u8>, e: u8,) {}\n";
    let six = "fn a(a: u8, b: u8, c: u8, d: u8, e: u8, f: u8) {}\n";
    check(oversized_functions(&broken("src/x.rs", five)), 0);
    check(oversized_functions(&broken("src/x.rs", six)), 1);
}

#[test]
fn a_long_file_and_a_wide_line() {
    let tests = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", "// t\n".repeat(300));
    let text = |n: usize| format!("{}{tests}", "// x\n".repeat(n));
    check(oversized_file(&broken("crates/karve/src/x.rs", &text(500))), 0);
    check(oversized_file(&broken("crates/karve/src/x.rs", &text(501))), 1);
    check(oversized_file(&broken("crates/karve/src/drive.rs", &text(151))), 1);
    check(oversized_file(&broken("crates/karve/tests/x.rs", &text(2_000))), 0);
    check(oversized_file(&broken("src/x.rs", &"ö".repeat(101))), 1);
}

#[test]
fn a_file_in_the_architecture_that_does_not_exist() {
    let files: Vec<String> =
        ["crates/karve/src/a.rs", "crates/karve/src/git/b.rs", "x.md"].map(str::to_owned).to_vec();
    check(missing_files("see `a.rs`, git/{b}.rs, crates/karve/src/, x.md.", &files), 0);
    check(missing_files("a.rs git/b.rs c.rs gone/", &files), 2);
}

#[test]
fn a_requirement_without_evidence() {
    let page = super::read("docs/coverage.md");
    let read = |path: &str| Some(super::read(path));
    let first = page.lines().find(|line| line.starts_with("| A10 |")).unwrap();
    let replaced = |with: &str| coverage::faults(&page.replace(first, with), &read);
    check(replaced(first), 0);
    check(replaced("| A10 | Done | works | it is so |"), 1);
    check(replaced("| A10 | Done | works | `karve/src/lib.rs::gone` |"), 2);
    check(replaced("| A10 | Done | works | `karve fly` |"), 1);
    check(replaced("| A10 | Done | works | `karve run` |"), 0);
    check(replaced("| A10 | Done | done | `karve run` |"), 2);
    check(replaced("| A10 | Done | partly | not all |"), 1);
    check(replaced("| A9 | Done | works | `karve run` |"), 1);
    check(replaced("| A10 | works | `karve run` |"), 3);
}

#[test]
fn a_crate_that_points_the_wrong_way() {
    let manifest = "[dependencies]\nkarve-core.workspace = true\nkarve-agents = \"1\"\n";
    check(house::wrong_dependencies("os", manifest, &["core"]), 1);
    check(house::wrong_dependencies("x", manifest, &["core", "agents"]), 0);
}

#[test]
fn modules_in_a_circle() {
    let source = |path: &str, text: &str| broken(&format!("crates/x/src/{path}"), text);
    let found = |sources: &[Source]| cycles::cycles("x", &cycles::imports(sources.iter()));
    let circle = [
        source("a.rs", "use crate::{b::{C, D}, other};\n"),
        source("b.rs", "mod deep;\n"),
        source("b/deep.rs", "fn f() { crate::c::g() }\n"),
        source("c.rs", "use super::{a::X, a};\n"),
        source("d.rs", "use crate::a::X;\n#[cfg(test)]\nmod tests {\n    use crate::d::Y;\n}\n"),
    ];
    check(found(&circle), 3);
    check(found(&circle[1..]), 0);
    let inside = [
        source("e.rs", "use self::f::F;\n"),
        source("e/f.rs", "use super::super::e::{g::{G}, E};\n"),
        source("e/g.rs", "use super::f::{self, F as H};\n"),
        source("e/h.rs", "use super::{E, f::F};\n"),
    ];
    let complaints = found(&inside);
    check(complaints.clone(), 2);
    assert_eq!(complaints[0], "crates/x: e::f is part of an import cycle");
    check(found(&inside[..2]), 0);
}

#[test]
fn unsafe_code_elsewhere() {
    let found = |text: &str| house::unsafe_places(&broken("crates/x/src/a.rs", text));
    check(found("fn f() { unsafe { g() } } // unsafe\n"), 1);
    check(found("#![forbid(unsafe_code)]\n"), 0);
}

#[test]
fn a_name_of_two_types() {
    let a = broken("crates/x/src/a.rs", "pub struct Twice;\nenum Once {}\n");
    let b = broken("crates/y/src/b.rs", "/// struct Once\ntrait Twice {}\n");
    check(house::double_names([a, b].iter()), 1);
}

#[test]
fn a_word_that_was_replaced() {
    let word = concat!("vis", "itor");
    check(house::old_words("a.md", &format!("The {word}s and a {word}.")), 2);
    check(house::old_words("a.rs", &format!("fn {word}_of() {{}}")), 1);
    check(house::old_words("a.md", "A recommendation, an example."), 0);
}

#[test]
fn an_impure_core() {
    let impure = "use std::fs;\nlet ncu_path = 1;\nlet a = \"run git log\";\n";
    check(impurities(&broken("crates/core/src/x.rs", impure)), 3);
    let pure = "// std::fs, ncu\nlet instant = \"legitimate\";\n#[cfg(test)]\nmod tests { \
                use std::fs; }\n";
    check(impurities(&broken("crates/core/src/x.rs", pure)), 0);
    check(strange_dependencies("[dependencies]\nserde.workspace = true\nrand = \"1\"\n"), 1);
    check(strange_dependencies("[dependencies.rand]\nversion = \"1\"\n"), 1);
    check(strange_dependencies("[dev-dependencies]\nproptest = \"1\"\n"), 0);
}

#[test]
fn a_process_git_or_the_log_in_the_wrong_place() {
    let process = "use std::process::Command;\nfn f() { libc::fork(); }\n";
    check(trespasses(&broken("crates/karve/src/world.rs", process)), 2);
    check(trespasses(&broken("crates/karve/src/process/sys.rs", process)), 0);
    let git = "Command::argv([\"git\", \"log\"], dir);\nlet line = \"git log\";\n";
    check(trespasses(&broken("crates/karve/src/world.rs", git)), 2);
    check(trespasses(&broken("crates/karve/src/git/call.rs", git)), 0);
    let log = "dir.join(\"events.jsonl\");";
    check(trespasses(&broken("crates/karve/src/world.rs", log)), 1);
    check(trespasses(&broken("crates/karve/src/store.rs", log)), 0);
}

#[test]
fn output_beside_the_screens() {
    let text = "println!(\"x\"); std::io::stderr().flush();";
    check(orphan_output(&broken("crates/karve/src/world.rs", text)), 2);
    check(orphan_output(&broken("crates/karve/src/ui/plain.rs", text)), 0);
}

#[test]
fn a_vague_hint() {
    let vague = "e.hint(\"try again later.\")";
    check(vague_hints(&broken("crates/karve/src/x.rs", vague)), 1);
    let telling = [
        "e.hint(\"run \\\"karve init\\\"\")",
        "e.hint(\"fix it in karve.toml\")",
        "e.hint(format!(\"remove {}\", path))",
        "e.hint(\"use --new\")",
        "e.hint(text)",
    ];
    for text in telling {
        check(vague_hints(&broken("crates/karve/src/x.rs", text)), 0);
    }
}

#[test]
fn leftovers_of_work() {
    let undone = format!("// {} later\n", UNDONE[0]);
    check(leftovers("x.rs", &undone), 1);
    check(leftovers("x.rs", "todo!()"), 1);
    check(leftovers("x.md", &format!("see {}main/x", MACHINES[0])), 1);
    check(leftovers("x.md", &format!("see a{}x and mktemp.XXXXXX", MACHINES[0])), 0);
}

#[test]
fn a_word_that_nothing_is_called() {
    let glossary = "| word | is |\n|---|---|\n| Step / Event | x |\n| Ghost | y |\n";
    check(unused_words(glossary, "enum StepKind; let event = 1;"), 1);
    check(unused_words("no table", ""), 1);
}

#[test]
fn strings_comments_and_lifetimes_are_told_apart() {
    let text = "let a = '\"'; let b = r#\"x \" // \"#; fn c<'a>(d: &'a str) {} /* \" */ b\"\\\"\"";
    let source = broken("src/x.rs", text);
    let strings: Vec<&str> = source.strings().map(|(_, s)| s).collect();
    assert_eq!(strings, ["\"", "x \" // ", "\\\""]);
    assert!(source.code.contains("fn c<'a>(d: &'a str) {}"));
    assert!(!source.code.contains('*') || source.code.contains("    "));
}
