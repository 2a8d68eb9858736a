//! `karve knowledge` as a person uses it: found, shown, added, linted, promoted, retracted.

use crate::e2e::lab::{Lab, Said};
use std::fs;
use std::process::Stdio;

const ENTRY: &str = "---
id: hold-rows
kind: optimization
basis: source-semantics
scope:
  device: [cpu]
triggers: ['l1_miss_pct > 4 && dram_pct < 200']
interactions:
  depends-on: [rows-first]
date: 2026-11
---
# Hold rows in quokka order

## When to apply

Loads miss.

## Mechanism

Rows stay near.

## Recipe

Hold them.

## Pitfalls

None that is known.
";

fn lab() -> Lab {
    let lab = Lab::new("gains");
    let first = ENTRY
        .replace("hold-rows", "rows-first")
        .replace("Hold rows in quokka order", "Walk rows first")
        .replace("  depends-on: [rows-first]", "  depends-on: []");
    fs::write(lab.beside("first.md"), first).unwrap();
    fs::write(lab.beside("entry.md"), ENTRY).unwrap();
    for file in ["first.md", "entry.md"] {
        let path = lab.beside(file);
        let path = path.to_string_lossy();
        lab.karve(&["knowledge", "add", &path]).ends(0);
    }
    lab
}

#[test]
fn an_entry_is_found_by_words_by_counters_and_by_scope_and_says_why() {
    let lab = lab();
    lab.karve(&["knowledge", "search", "quokka"]).ends(0).shows(&[
        "hold-rows",
        "words quokka",
        "candidate, project",
    ]);
    lab.karve(&["knowledge", "search", "--counters", "l1_miss_pct=9,dram_pct=1"])
        .ends(0)
        .shows(&["hold-rows", "(l1_miss_pct=9, dram_pct=1)"]);
    let gpu = ["knowledge", "search", "quokka", "--device", "H200"];
    lab.karve(&gpu).ends(0).shows(&["no entry fits"]);
    let found = lab.karve(&["knowledge", "search", "quokka", "--json"]).ends(0).json();
    assert_eq!(found[0]["id"], "hold-rows");
    let shown = lab.karve(&["knowledge", "show", "hold-rows"]).ends(0);
    shown.shows(&["layer     project", "nothing was measured", "  depends-on:", "## Recipe"]);
    lab.karve(&["knowledge", "search", "--counters", "no_such=1"])
        .ends(2)
        .complains(&["no counter has that name", "docs/profile.md"]);
    lab.karve(&["knowledge", "show", "nobody"]).ends(2).complains(&["karve knowledge search"]);
}

#[test]
fn a_retraction_stays_and_questions_what_depends_on_it() {
    let lab = lab();
    lab.karve(&["knowledge", "retract", "rows-first", "--why", "the reference was wrong"])
        .ends(0)
        .shows(&["retracted rows-first", "affected  hold-rows depends on it"]);
    lab.karve(&["knowledge", "search", "quokka"]).ends(0).shows(&["no entry fits"]);
    lab.karve(&["knowledge", "search", "quokka", "--refuted"]).ends(0).shows(&["hold-rows"]);
    lab.karve(&["knowledge", "show", "rows-first"])
        .ends(0)
        .shows(&["retracted: the reference was wrong", "needed by hold-rows"]);
    assert!(lab.path("knowledge/rows-first.md").exists(), "nothing is deleted");
}

#[test]
fn faults_are_named_and_nothing_is_written_over() {
    let lab = lab();
    lab.karve(&["knowledge", "lint", "hold-rows", "rows-first"])
        .ends(0)
        .shows(&["no problems found"]);
    let bad = ENTRY.replace("l1_miss_pct > 4", "cash > 4").replace("## Pitfalls", "## Tried");
    fs::write(lab.beside("bad.md"), bad).unwrap();
    let path = lab.beside("bad.md");
    let path = path.to_string_lossy();
    lab.karve(&["knowledge", "add", &path, "--replace"]).ends(2).complains(&[
        "cannot be used",
        "which is not a counter",
        "\"Pitfalls\" is missing",
    ]);
    lab.karve(&["knowledge", "lint", &path]).ends(1).shows(&["describes a moment in time"]);
    let path = lab.beside("entry.md");
    let path = path.to_string_lossy();
    lab.karve(&["knowledge", "add", &path]).ends(2).complains(&["already", "--replace"]);
    fs::write(lab.path("knowledge/junk.md"), "junk").unwrap();
    lab.karve(&["knowledge", "lint"]).ends(1).shows(&["junk.md", "does not start with"]);
    lab.karve(&["knowledge", "search", "quokka"])
        .ends(0)
        .shows(&["hold-rows"])
        .complains(&["junk.md is not an entry"]);
}

#[test]
fn other_forms_come_in_staged_and_go_out() {
    let lab = lab();
    let tips = "### 2026-04-23 round-7 — ACCEPTED\n- Context: fused wombat barrier\n\
        - Signal: -50%\n- Takeaway: atomics serialize\n- Applicability: all\n";
    let dir = lab.beside("in/cpu/toy/sh");
    fs::create_dir_all(&dir).unwrap();
    fs::write(dir.join("tips.md"), tips).unwrap();
    let from = lab.beside("in");
    let from = from.to_string_lossy();
    lab.karve(&["knowledge", "import", &from, "--form", "tips"])
        .ends(0)
        .shows(&["imported  1 entries"]);
    lab.karve(&["knowledge", "import", &from, "--form", "tips"])
        .ends(2)
        .complains(&["every entry already exists", "--replace"]);
    let found = lab.karve(&["knowledge", "search", "wombat", "--json"]).ends(0).json();
    assert_eq!((&found[0]["layer"], &found[0]["status"]), (&"staged".into(), &"candidate".into()));
    let id = found[0]["id"].as_str().unwrap().to_owned();
    lab.karve(&["knowledge", "promote", &id, "--vouch", "seen again by hand"])
        .ends(0)
        .shows(&["promoted", "verified"]);
    assert!(lab.path(&format!("knowledge/{id}.md")).exists());
    assert!(!lab.path(&format!(".karve/knowledge/{id}.md")).exists());
    lab.karve(&["knowledge", "promote", &id]).ends(2).complains(&["not staged", "--to user"]);
    // Not to the home of who runs the tests.
    let mut command = lab.command(&["knowledge", "promote", &id, "--to", "user"]);
    command.env("XDG_CONFIG_HOME", lab.beside("config"));
    Said::of(&command.output().unwrap()).ends(0).shows(&["promoted", "the project keeps its own"]);
    let out = lab.beside("out");
    let out = out.to_string_lossy();
    let export = ["knowledge", "export", &out, "--form", "hyper-mla", "--layer", "project"];
    lab.karve(&export).ends(0).shows(&["exported  3 files"]);
    let index = fs::read_to_string(lab.beside("out/optimization-catalog.md")).unwrap();
    assert!(index.contains("Hold rows in quokka order"), "{index}");
    lab.karve(&export).ends(2).complains(&["already exists", "--replace"]);
    lab.karve(&["knowledge", "index", "--layer", "project"])
        .ends(0)
        .shows(&["| ID | Optimization |", "Profiling metric state"]);
}

#[test]
fn a_promotion_takes_the_place_of_no_other_entry_unless_told_to() {
    let lab = lab();
    let other = ENTRY
        .replace("Rows stay near.", "Another reason.")
        .replace("  depends-on: [rows-first]", "  depends-on: []");
    fs::write(lab.beside("other.md"), other).unwrap();
    let path = lab.beside("other.md");
    let path = path.to_string_lossy();
    lab.karve(&["knowledge", "add", &path, "--to", "staged"]).ends(0);
    lab.karve(&["knowledge", "promote", "hold-rows"]).ends(2).complains(&[
        "already exists (project)",
        "section Mechanism",
        "--replace",
    ]);
    let own = fs::read_to_string(lab.path("knowledge/hold-rows.md")).unwrap();
    assert!(own.contains("Rows stay near."), "{own}");
    lab.karve(&["knowledge", "promote", "hold-rows", "--replace"])
        .ends(0)
        .shows(&["promoted  hold-rows"]);
    let own = fs::read_to_string(lab.path("knowledge/hold-rows.md")).unwrap();
    assert!(own.contains("Another reason."), "{own}");
}

#[test]
fn what_is_taken_back_stays_so_through_another_form() {
    let lab = lab();
    let retract = ["knowledge", "retract", "rows-first", "--why", "it was luck"];
    lab.karve(&retract).ends(0);
    for form in ["hyper-mla", "casebook", "tips", "wiki", "playbook"] {
        let out = lab.beside(&format!("out-{form}"));
        let out = out.to_string_lossy();
        let export = ["knowledge", "export", &out, "rows-first", "--form", form];
        lab.karve(&export).ends(0);
        let import = ["knowledge", "import", &out, "--form", form, "--replace"];
        lab.karve(&import).ends(0).shows(&["imported  1 entries"]);
        lab.karve(&["knowledge", "show", "rows-first"])
            .ends(0)
            .shows(&["layer     staged", "refuted: retracted: it was luck"]);
    }
}

#[test]
fn an_import_is_whole_or_nothing() {
    let lab = lab();
    let dir = lab.beside("pages");
    fs::create_dir_all(&dir).unwrap();
    let page = |id: &str| ENTRY.replace("hold-rows", id);
    fs::write(dir.join("a.md"), page("one")).unwrap();
    fs::write(dir.join("b.md"), page("two").replace("optimization", "wonder")).unwrap();
    fs::write(dir.join("c.md"), page("three")).unwrap();
    let from = dir.to_string_lossy();
    let import = ["knowledge", "import", &from, "--to", "project"];
    lab.karve(&import).ends(2).complains(&[
        "nothing was imported",
        "b.md is not valid",
        "--partial",
    ]);
    assert!(!lab.path("knowledge/one.md").exists());
    let part = ["knowledge", "import", &from, "--to", "project", "--partial"];
    lab.karve(&part).ends(0).shows(&["imported  2 entries", "1 skipped"]);
    assert!(lab.path("knowledge/one.md").exists() && lab.path("knowledge/three.md").exists());
    let left = fs::read_dir(lab.path("knowledge")).unwrap().flatten();
    let left: Vec<_> = left.map(|file| file.file_name()).collect();
    assert_eq!(left.len(), 4, "{left:?}");
}

#[test]
fn a_retraction_names_few_of_many_and_no_entry_takes_its_own_place() {
    let lab = lab();
    for n in 0..30 {
        let text = ENTRY.replace("hold-rows", &format!("leaf-{n}"));
        fs::write(lab.path(&format!("knowledge/leaf-{n}.md")), text).unwrap();
    }
    let by = |id: &str| {
        let retract = ["knowledge", "retract", "rows-first", "--why", "x", "--by", id];
        lab.karve(&retract).ends(2)
    };
    by("rows-first").complains(&["cannot replace itself", "--by"]);
    let said = lab.karve(&["knowledge", "retract", "rows-first", "--why", "luck"]);
    let said = said.ends(0);
    said.shows(&["affected  11 more of 31 depend on it"]);
    let retract = ["knowledge", "retract", "register-blocking", "--why", "x", "--by", "rows-first"];
    lab.karve(&retract).ends(2).complains(&["rows-first cannot replace it", "retracted: luck"]);
}

#[test]
fn an_import_that_is_killed_is_whole_or_nothing_for_the_next_command() {
    const PAGES: usize = 80;
    let lab = lab();
    let dir = lab.beside("pages");
    fs::create_dir_all(&dir).unwrap();
    for n in 0..PAGES {
        let text = ENTRY.replace("hold-rows", &format!("page-{n}"));
        fs::write(dir.join(format!("{n}.md")), text).unwrap();
    }
    let from = dir.to_string_lossy();
    let staged = lab.path(".karve/knowledge");
    let files = |of: &str| {
        let all = fs::read_dir(&staged).into_iter().flatten().flatten();
        let names = all.map(|file| file.file_name().to_string_lossy().into_owned());
        names.filter(|name| name.contains(of)).count()
    };
    // Killed as soon as so many files are there under another name, or in place.
    for (mark, least) in [(".change", 1), (".new", 40), ("page-", PAGES), (".old", 0)] {
        let mut import = lab.command(&["knowledge", "import", &from, "--replace"]);
        import.stdout(Stdio::null()).stderr(Stdio::null());
        let mut import = import.spawn().unwrap();
        while import.try_wait().unwrap().is_none() && files(mark) < least {
            std::thread::yield_now();
        }
        let _ = import.kill();
        import.wait().unwrap();
        lab.karve(&["knowledge", "search", "quokka"]).ends(0);
        let (whole, rest) = (files("page-"), [".new", ".old"].map(files));
        assert!(whole == 0 || whole == PAGES, "{mark}: {whole}");
        assert_eq!(rest, [0, 0], "{mark}");
        assert!(!staged.join(".change.json").exists(), "{mark}");
    }
}

#[test]
fn a_word_that_is_no_command_is_to_be_searched() {
    let lab = Lab::new("gains");
    let tip = "'karve knowledge search banks'";
    lab.karve(&["knowledge", "banks"]).ends(2).complains(&["unrecognized subcommand", tip]);
    let told = lab.karve(&["knowledge", "serch", "--json"]).ends(2);
    told.shows(&["karve knowledge search serch", "a similar subcommand"]);
    let other = lab.karve(&["contract", "banks"]).ends(2);
    assert!(!other.stderr.contains("search"), "{other:?}");
}
