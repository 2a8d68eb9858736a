//! The demo with a recorded agent: a whole campaign on the embedded kernel, with what was said.

use crate::e2e::lab::{Lab, Said};

/// The demo in a directory beside the project, with its campaign.
fn demo(lab: &Lab) -> Said {
    let into = lab.beside("demo").to_string_lossy().into_owned();
    lab.karve(&["demo", "--agent", "scripted", "--into", &into])
}

#[test]
fn a_recorded_agent_plays_a_whole_campaign_without_a_key() {
    let lab = Lab::empty();
    let said = demo(&lab).ends(0);
    let said = said.shows(&["karve show 1 --transcript", "wrong", "keep"]);
    // Mutants in code that the first knobs leave out are built to the same bytes: they say nothing.
    let said = said.shows(&["tests     the tests killed "]);
    assert!(!said.stdout.contains("killed 0 of"), "{}", said.stdout);
    let dir = lab.beside("demo").to_string_lossy().into_owned();
    let karve = |args: &[&str]| {
        let mut all = vec!["-C", &dir];
        all.extend(args);
        lab.karve(&all)
    };
    let rounds = karve(&["log", "--json"]).ends(0).json();
    let verdict = |n: usize| rounds[n]["verdict"].as_str().unwrap_or_default().to_owned();
    assert_eq!(verdict(0), "keep", "{rounds:#} {said:#?}");
    for (n, part) in [(1, "wrong"), (2, "bench.c")] {
        assert_eq!(verdict(n), "drop", "{rounds:#}");
        let why = rounds[n]["why"].as_str().unwrap();
        assert!(why.contains(part), "{why}");
    }
    // The benchmark is what it was.
    let diff = karve(&["diff"]).ends(0).stdout;
    assert!(diff.contains("+#define ORDER ikj") && !diff.contains("bench.c"), "{diff}");
    karve(&["show", "2"]).ends(0).shows(&["karve show 2 --transcript"]);
    karve(&["show", "2", "--transcript"]).ends(0).shows(&[
        "propose by scripted",
        "implement by scripted",
        "repair by scripted",
        "memset",
        "outcome no change",
    ]);
    let turns = karve(&["show", "3", "--transcript", "--json"]).ends(0).json();
    let outcomes = turns["turns"].as_array().unwrap().iter();
    let outcomes: Vec<&str> = outcomes.map(|turn| turn["outcome"].as_str().unwrap()).collect();
    assert!(outcomes[1].contains("read-only files: bench.c"), "{outcomes:?}");
    karve(&["report"]).ends(0).shows(&["# Report", "Agent: scripted"]);
    karve(&["verify"]).ends(0);
}
