//! Campaigns that are asked for something: one item, the items of an analysis, an autopilot, or the
//! best of several realizations.

use crate::e2e::lab::Lab;
use crate::e2e::tidy::{Remains, is_tidy};
use serde_json::Value;
use std::fs;

/// An entry whose recipe a machine can apply to the toy.
const ENTRY: &str = "---
id: halve-time
kind: optimization
basis: source-semantics
scope:
  device: [cpu]
impact: {low: 1.5, high: 2.5}
apply:
  - do: rewrite
    pattern: 'TIME=100'
    to: 'TIME=50'
    files: ['*.sh']
date: 2026-11
---
# Halve the time

## When to apply

Always.

## Mechanism

Half of it is not needed.

## Recipe

Write half.

## Pitfalls

None that is known.
";

/// The same for kernels of another language.
fn elsewhere() -> String {
    ENTRY.replace("halve-time", "halve-warps").replace("device: [cpu]", "device: [gpu]")
}

/// Two knobs; A=4 and B=5 is the best.
const KNOBS: &str = "# karve: knob A in 1..16*2
A=1
# karve: knob B in 1..8
B=1
result=$((3 + 4))
TIME=$((100 + (A - 4) * (A - 4) * 3 + (B - 5) * (B - 5) * 7))
";

/// The toy without a script.
fn bare() -> Lab {
    let lab = Lab::new("gains");
    fs::remove_dir_all(lab.path("script")).unwrap();
    lab
}

/// A round of the scripted agent about an item.
fn plays(lab: &Lab, round: &str, (task, title): (&str, &str), time: u32) {
    let claim = format!(
        "echo '{{\"task\": \"{task}\", \"title\": \"{title}\", \"mechanism\": \"{title} it is\", \
         \"expected_ratio\": 1.5}}'"
    );
    lab.script(round, "propose", &claim);
    let change = format!("edit s/TIME=.*/TIME={time}/\necho done");
    lab.script(round, "implement", &change);
}

/// Each item of the agenda with its state.
fn states(lab: &Lab) -> Vec<(String, String)> {
    let view = lab.karve(&["status", "--json"]).ends(0).json();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let items = view["agenda"].as_array().cloned().unwrap_or_default();
    let state = |item: &Value| (text(&item["id"]), text(&item["state"]));
    items.iter().map(state).collect()
}

fn pairs(wanted: &[(&str, &str)]) -> Vec<(String, String)> {
    let own = |(id, state): &(&str, &str)| ((*id).to_owned(), (*state).to_owned());
    wanted.iter().map(own).collect()
}

#[test]
fn one_entry_is_applied_by_the_machine_and_nothing_else() {
    let lab = bare();
    lab.write("knowledge/halve-time.md", ENTRY);
    lab.write("knowledge/halve-warps.md", &elsewhere());
    lab.commit();
    let asks = |what: &str| lab.karve(&["run", "--yes", "--agent", "builtin", "--only", what]);
    asks("halve-warps")
        .ends(2)
        .complains(&["the entry halve-warps is only for", "karve knowledge show"]);
    asks("halve-nothing")
        .ends(2)
        .complains(&["there is no entry halve-nothing", "karve knowledge search"]);
    assert!(!lab.campaign("events.jsonl").exists());
    asks("halve-time").ends(0).shows(&[
        "agenda    only halve-time",
        "its only item was kept",
        "Agenda (1)",
    ]);
    assert_eq!(lab.verdicts(), ["keep"]);
    let hypothesis = &lab.events("proposed")[0]["hypothesis"];
    assert_eq!(
        (&hypothesis["task"], &hypothesis["entry"]),
        (&"halve-time".into(), &"halve-time".into())
    );
    assert_eq!(states(&lab), pairs(&[("halve-time", "kept")]));
    let report = lab.karve(&["report"]).ends(0).stdout;
    assert!(report.contains("## Agenda") && report.contains("kept in round 1, 2.000x"), "{report}");
    lab.karve(&["verify"]).ends(0);
    is_tidy(&lab);
    // The kernel has it already, so there is nothing left to change.
    lab.git(&["merge", "-q", "optimize/toy"]);
    lab.karve(&["run", "--yes", "--new", "--agent", "builtin", "--only", "halve-time"])
        .ends(2)
        .complains(&["changes anything in the editable files", "--agent"]);
}

#[test]
fn knob_values_are_set_in_one_round_and_checked_before() {
    let lab = bare();
    lab.write("kernel.sh", KNOBS);
    lab.commit();
    let asks = |what: &str| lab.karve(&["run", "--yes", "--agent", "builtin", "--only", what]);
    asks("A=3").ends(2).complains(&["A cannot be 3", "A takes 1, 2, 4, 8, 16"]);
    asks("C=3").ends(2).complains(&["there is no knob C", "A, B"]);
    asks("A=4,B=5").ends(0).shows(&["its only item was kept"]);
    assert_eq!(lab.verdicts(), ["keep"]);
    let diff = lab.karve(&["diff"]).ends(0).stdout;
    assert!(diff.contains("+A=4") && diff.contains("+B=5"), "{diff}");
    is_tidy(&lab);
}

#[test]
fn an_agent_sets_exactly_the_values_that_an_item_asks_for() {
    let lab = bare();
    lab.write("kernel.sh", KNOBS);
    let claim = "echo '{\"task\": \"knobs\", \"title\": \"set A\", \"mechanism\": \"asked for\", \
                 \"expected_ratio\": 1.5}'";
    lab.script("1", "propose", claim)
        .script("1", "implement", "edit 's/A=1/A=4/; s/B=1/B=2/'\necho done")
        .commit();
    lab.karve(&["run", "--yes", "--only", "A=4"]).ends(0);
    assert_eq!(lab.verdicts(), ["no_candidate"]);
    let why = lab.events("not_implemented")[0]["why"].clone();
    assert_eq!(why, "wrong values for knobs: B changed to 2, but should stay 1");
    is_tidy(&lab);
}

#[test]
fn words_are_for_an_agent_who_must_name_the_item() {
    let lab = bare();
    plays(&lab, "1", ("only", "half the iterations"), 50);
    let right = lab.read("script/round-1/propose.sh");
    let reported = "grep -q 'do less work' \"$KARVE_BRIEF\" || exit 9\n";
    lab.script("1", "propose", "claim \"something else\" \"it is better\" 2.0");
    lab.script("1", "propose-again", &format!("{reported}{right}"));
    lab.commit();
    lab.karve(&["run", "--yes", "--agent", "builtin", "--only", "do less work"])
        .ends(2)
        .complains(&["cannot carry out a task in words", "karve agents"]);
    lab.karve(&["run", "--yes", "--only", "do less work"]).ends(0);
    assert_eq!(lab.verdicts(), ["keep"]);
    assert_eq!(states(&lab), pairs(&[("only", "kept")]));
    let shown = lab.karve(&["show", "1"]).ends(0).stdout;
    assert!(shown.contains("half the iterations"), "{shown}");
    is_tidy(&lab);
}

const ANALYSIS: &str = "Primary bottleneck: too much work
Evidence: TIME=100

## Recommendations

1. [Medium] sleep less
   - id: sleep
2. [High] halve the work
   - id: half
   - effort: low
3. [High] dream instead
   - id: dream
   - needs: sleep
4. [Low] walk rows first
   - id: rows
   - when: l1_miss_pct > 4
";

/// What a profiler printed: one load in a hundred misses.
const PERF: &str = "# started on Sun Nov 15 22:57:09 2026

0.28,msec,task-clock,276829,100.00,0.370,CPUs utilized
1000000,,L1-dcache-loads,276829,100.00,,
10000,,L1-dcache-load-misses,276829,100.00,,
747439,ns,duration_time,747439,100.00,2.700,G/sec
";

/// A campaign with a plan in which one item is kept, one dropped, and two skipped.
fn planned() -> Lab {
    let lab = bare();
    lab.write("analysis.md", ANALYSIS);
    lab.replace("karve.toml", "name = \"toy\"", "name = \"toy\"\nplan = \"analysis.md\"");
    lab.write("perf.csv", PERF);
    lab.replace("karve.toml", "[commands]\n", "[commands]\nprofile = \"cat perf.csv\"\n");
    plays(&lab, "1", ("half", "half the iterations"), 50);
    plays(&lab, "2", ("sleep", "shorter naps"), 300);
    plays(&lab, "3", ("sleep", "no pillow at all"), 200);
    lab.commit();
    lab
}

#[test]
fn the_items_of_a_plan_are_kept_dropped_or_skipped_one_at_a_time() {
    let lab = planned();
    lab.karve(&["run", "--dry-run"]).ends(0).shows(&["a plan of 4 items", "half: halve the work"]);
    lab.karve(&["run", "--yes"]).ends(0).shows(&["the agenda is done: 1 of 4 items kept"]);
    assert_eq!(lab.verdicts(), ["keep", "regressed", "regressed"]);
    let tasks: Vec<Value> =
        lab.events("proposed").iter().map(|event| event["hypothesis"]["task"].clone()).collect();
    assert_eq!(tasks, ["half", "sleep", "sleep"]);
    let became = states(&lab);
    for (id, state) in [("half", "kept"), ("sleep", "dropped"), ("dream", "skipped")] {
        assert!(became.contains(&(id.into(), state.into())), "{became:?}");
    }
    lab.karve(&["status"]).ends(0).shows(&[
        "it needs sleep, which was dropped",
        "`l1_miss_pct > 4` does not hold (l1_miss_pct=1)",
    ]);
    lab.karve(&["verify"]).ends(0);
    is_tidy(&lab);
    // A recording names its items again.
    let replay = format!("replay:{}", lab.campaign("").display());
    lab.karve(&["run", "--yes", "--new", "--agent", &replay]).ends(0).shows(&["1 of 4 items kept"]);
}

#[test]
fn a_plan_goes_on_after_kills_and_not_with_another_agenda() {
    let lab = planned();
    for seq in [2, 8, 13, 20, 30] {
        lab.dies(&format!("after:{seq}"));
    }
    lab.karve(&["run", "--yes", "--autopilot"]).ends(2).complains(&[
        "was started with another agenda",
        "a plan of 4 items",
        "--new",
    ]);
    lab.karve(&["run", "--yes", "--plan", "analysis.md"]).ends(0).shows(&["1 of 4 items kept"]);
    assert_eq!(lab.verdicts(), ["keep", "regressed", "regressed"]);
    is_tidy(&lab);
}

#[test]
fn what_is_wrong_with_a_plan_is_said_with_every_line() {
    let lab = bare();
    let bad = "Recommendations:\n1. [Huge] x\n2. [Low] y\n   - needs: 9\n";
    fs::write(lab.beside("bad.md"), bad).unwrap();
    let path = lab.beside("bad.md");
    let path = path.to_string_lossy();
    let asks = |path: &str| lab.karve(&["run", "--yes", "--plan", path]).ends(2);
    asks(&path).complains(&["cannot be used", "line 2: `Huge`", "docs/modes.md"]);
    let bad = "Recommendations:\n1. [Low] y\n   - needs: 9\n2. [Low] z\n   - entry: nobody-knows\n\
        3. [Low] w\n   - when: cash > 3\n";
    fs::write(lab.beside("bad.md"), bad).unwrap();
    asks(&path).complains(&[
        "line 2: it needs 9",
        "line 4: there is no entry nobody-knows",
        "line 6: the condition `cash > 3` asks for cash",
    ]);
    asks("/nowhere").complains(&["cannot read the analysis", "--plan"]);
    assert!(!lab.campaign("events.jsonl").exists());
}

/// One round of three realizations: a wrong one, a slow one, a fast one.
pub(crate) fn of_three() -> Lab {
    let lab = bare();
    let claim = "claim \"halve the work\" \"half of it is not needed\" 2.0";
    lab.script("1", "propose", claim);
    let makes = "case $KARVE_VARIANT in
1) edit 's/2 \\* 3/2 * 4/; s/TIME=.*/TIME=10/' ;;
2) edit s/TIME=.*/TIME=90/ ;;
3) edit s/TIME=.*/TIME=50/ ;;
esac
grep -q \"Candidate $KARVE_VARIANT of 3\" \"$KARVE_BRIEF\" || exit 9
left=$(dirname \"$KARVE_ANSWER\")/left
[ ! -e \"$left\" ] || exit 8
echo \"$KARVE_VARIANT\" >\"$left\"
echo done";
    lab.script("1", "implement", makes);
    lab.replace("karve.toml", "[policy.accept]", "[policy]\nbest_of = 3\n\n[policy.accept]");
    lab.commit();
    lab
}

#[test]
fn of_three_realizations_the_fast_one_that_is_right_is_kept() {
    let lab = of_three();
    lab.karve(&["run", "--yes"]).ends(0).shows(&["chosen    round 1: candidate 3 of 3"]);
    assert_eq!(lab.verdicts(), ["keep"]);
    let chosen = &lab.events("chosen")[0];
    assert_eq!(chosen["first"], 2);
    assert_eq!(chosen["tryouts"][0]["gate"]["gate"], "wrong_result");
    let values = chosen["tryouts"][1]["values"].as_array().unwrap();
    let is_right = |value: &Value| value.as_f64().is_some_and(|v| (v - 90.0).abs() < 1e-6);
    assert!(values.len() == 3 && values.iter().all(is_right), "{values:?}");
    let diff = lab.karve(&["diff"]).ends(0).stdout;
    assert!(diff.contains("+TIME=50") && !diff.contains("2 * 4"), "{diff}");
    let shown = lab.karve(&["show", "1"]).ends(0).stdout;
    for part in
        ["Variant 1 of 3: ", "Variant 2 of 3: passed, measured 90.", " us; this one was chosen"]
    {
        assert!(shown.contains(part), "{part} is not in {shown}");
    }
    lab.karve(&["verify"]).ends(0);
    is_tidy(&lab);
    // Every variant is kept under a ref of its own, and a recording makes them again.
    let refs = lab.git(&["for-each-ref", "--format=%(refname)", "refs/karve/toy"]);
    for number in 1..=3 {
        assert!(refs.contains(&format!("round-1-variant-{number}")), "{refs}");
    }
    let replay = format!("replay:{}", lab.campaign("").display());
    lab.karve(&["run", "--yes", "--new", "--agent", &replay]).ends(0).shows(&["candidate 3 of 3"]);
    lab.karve(&["run", "--yes", "--campaign", "toy", "--best-of", "2"])
        .ends(2)
        .complains(&["was started with --best-of 3", "--new"]);
}

#[test]
fn killed_between_realizations_the_same_one_is_chosen() {
    let reference = of_three();
    reference.karve(&["run", "--yes"]).ends(0);
    let reference = Remains::of(&reference);
    let telling = ["implemented", "chosen", "gated", "settled"];
    let kinds = reference.kinds();
    let lab = of_three();
    for (seq, kind) in kinds.iter().enumerate() {
        if telling.contains(&kind.as_str()) {
            for point in ["before", "torn", "after"] {
                lab.dies(&format!("{point}:{seq}"));
            }
        }
    }
    lab.karve(&["run", "--yes"]).ends(0);
    assert_eq!(reference.difference(&Remains::of(&lab)), None);
    lab.karve(&["verify"]).ends(0);
}

#[test]
fn an_autopilot_tries_what_promises_most_and_ends_by_itself() {
    let lab = bare();
    lab.write("kernel.sh", KNOBS);
    lab.write("knowledge/halve-warps.md", &elsewhere());
    lab.commit();
    lab.karve(&["run", "--yes", "--agent", "builtin", "--autopilot", "--rounds", "30"])
        .ends(0)
        .shows(&["autopilot", "the agenda is done"]);
    let became = states(&lab);
    assert!(became.contains(&("sweep".into(), "kept".into())), "{became:?}");
    assert!(became.iter().all(|(id, _)| id != "halve-warps"), "{became:?}");
    assert!(!lab.events("profiled").is_empty());
    lab.karve(&["verify"]).ends(0);
    is_tidy(&lab);
}
