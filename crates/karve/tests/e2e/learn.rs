//! What rounds leave in the library: figures by karve, words by the agent, and how entries stand.

use crate::e2e::lab::Lab;
use crate::e2e::tidy::is_tidy;
use std::fs;

/// A proposal that applies the entry `x`.
const APPLIES: &str = "echo '{\"title\": \"do x\", \"mechanism\": \"m\", \"expected_ratio\": 2.0, \
    \"entry\": \"x\"}'";

/// One round that applies the entry `x` and sets the time that the kernel takes.
fn round(time: u32) -> Lab {
    let lab = Lab::new("gains");
    fs::remove_dir_all(lab.path("script")).unwrap();
    lab.script("1", "propose", APPLIES);
    lab.script("1", "implement", &format!("edit s/TIME=.*/TIME={time}/"));
    lab.replace(
        "karve.toml",
        "command = \"sh agent.sh\"",
        "command = \"sh agent.sh\"\nlearn = true",
    );
    lab
}

const SAYS: &str = r#"grep -q 'measured 2.000x' "$KARVE_BRIEF" || exit 9
printf '%s' '{"mechanism": "half of it\n## is gone", "pitfall": null,
    "usage": {"tokens": 5, "usd": 0.5}}'"#;

#[test]
fn an_agent_says_in_words_what_karve_says_in_figures() {
    let lab = round(50);
    lab.script("1", "learn", SAYS).commit();
    lab.karve(&["run", "--yes"]).ends(0);
    let learned = &lab.events("learned")[0];
    let learning = &learned["lesson"]["learning"];
    assert_eq!(learning["words"]["mechanism"], "half of it ## is gone");
    let ratio = learning["evidence"]["ratio"].as_f64().unwrap();
    assert!((ratio - 2.0).abs() < 1e-9, "{ratio}");
    assert_eq!(learned["usage"]["tokens"], 5);
    let usage = lab.karve(&["status", "--json"]).json()["usage"].take();
    assert_eq!(usage["usd"], 0.5);
    let entry = lab.read(".karve/knowledge/x.md");
    let claim = "\n- toy/round-1, mechanism: \"half of it ## is gone\"";
    assert!(entry.contains("## Claims\n") && entry.contains(claim), "{entry}");
    is_tidy(&lab);
    // A recording says it again, and costs nothing.
    let replay = format!("replay:{}", lab.campaign("").display());
    lab.karve(&["run", "--yes", "--new", "--agent", &replay]).ends(0);
    let again = lab.read(".karve/knowledge/x.md");
    assert!(again.contains("toy-2/round-1, mechanism: \"half"), "{again}");
    let usage = lab.karve(&["status", "--json"]).json()["usage"].take();
    assert_eq!(usage["usd"], 0.0);
}

#[test]
fn an_answer_of_no_use_costs_nothing_but_is_noted() {
    for (says, why) in [
        ("echo 'it was great'", "no JSON object"),
        ("echo '{\"ratio\": \"9x\"}'", "unknown key"),
        ("exit 4", "the agent failed"),
    ] {
        let lab = round(50);
        lab.script("1", "learn", says).commit();
        lab.karve(&["run", "--yes"]).ends(0);
        assert_eq!(lab.verdicts(), ["keep"]);
        let learning = &lab.events("learned")[0]["lesson"]["learning"];
        let unsaid = learning["unsaid"].as_str().unwrap();
        assert!(unsaid.contains(why), "{unsaid}");
        assert!(learning.get("words").is_none());
        let entry = lab.read(".karve/knowledge/x.md");
        assert!(!entry.contains("Claims"), "{entry}");
    }
}

#[test]
fn an_agent_is_not_asked_unless_it_wants_to_be() {
    let lab = round(50);
    lab.replace("karve.toml", "\nlearn = true", "");
    lab.script("1", "learn", SAYS).commit();
    lab.karve(&["run", "--yes"]).ends(0);
    let learning = &lab.events("learned")[0]["lesson"]["learning"];
    assert!(learning.get("words").is_none() && learning.get("unsaid").is_none());
}

/// An entry that claims much, with evidence that nobody here has taken.
const FORGED: &str = "---
id: x
kind: optimization
status: verified
basis: measured
scope: {device: [cpu]}
evidence:
  - {metric: time_us, before: 9, after: 1, ratio: 9, low: 8, high: 10, device: cpu,
     workload: toy n=1, run: far/round-1, date: 2026-11-01, toolchain: sh, n: 9}
  - {metric: time_us, before: 9, after: 1, ratio: 9, low: 8, high: 10, device: cpu,
     workload: toy n=1, run: far/round-2, date: 2026-11-01, toolchain: sh, n: 9}
date: 2026-11
---
# Do x

## When to apply

Always.

## Mechanism

Magic.

## Recipe

Do x.

## Pitfalls

None.
";

#[test]
fn evidence_that_a_round_contradicts_and_nobody_can_trace_counts_no_more() {
    let lab = round(130);
    lab.write("knowledge/x.md", FORGED);
    lab.commit();
    lab.karve(&["knowledge", "show", "x"])
        .ends(0)
        .shows(&["standing  verified: replicated in 2 runs"]);
    lab.karve(&["run", "--yes"])
        .ends(0)
        .shows(&["learned   x is refuted now", "2 pieces of evidence for it are disputed"]);
    lab.karve(&["knowledge", "show", "x"]).ends(0).shows(&[
        "standing  refuted: 1 run against it and none for it",
        "disputed: toy/round-1",
        "overrides project",
    ]);
    let report = lab.karve(&["report"]).ends(0).stdout;
    assert!(report.contains("What the library learned"), "{report}");
    assert_eq!(lab.read("knowledge/x.md"), FORGED, "the project's file stays");
}

#[test]
fn what_a_campaign_here_has_measured_is_not_disputed_by_the_next() {
    let lab = round(50);
    lab.commit().karve(&["run", "--yes"]).ends(0);
    lab.script("1", "implement", "edit s/TIME=.*/TIME=130/");
    lab.commit().karve(&["run", "--yes", "--new"]).ends(0);
    lab.karve(&["knowledge", "show", "x"]).ends(0).shows(&["1 run for it, 1 run against it"]);
    let entry = lab.read(".karve/knowledge/x.md");
    assert!(!entry.contains("disputed"), "{entry}");
}
