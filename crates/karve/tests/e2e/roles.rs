//! Roles: which agent is asked, what it may write, in which language, and what a reviewer says.

use crate::e2e::lab::{Lab, source};
use crate::e2e::tidy::is_tidy;
use serde_json::Value;
use std::fs;

const CLAIM: &str = "claim \"halve the work\" \"half of it is not needed\" 2.0";
const HALVE: &str = "edit s/TIME=.*/TIME=50/";

/// A second agent that notes when it is asked, and then plays `script/second`.
const SECOND: &str = "[agents.second]\ncommand = \"sh second.sh\"";

/// One round of the scripted agent, and a second agent that says this.
fn lab(second: &str, roles: &str) -> Lab {
    let lab = Lab::new("gains");
    fs::remove_dir_all(lab.path("script")).unwrap();
    lab.script("1", "propose", CLAIM).script("1", "implement", HALVE);
    lab.write("second.sh", &format!("set -eu\n{second}\n"));
    lab.configure(&format!("{SECOND}\n{roles}"));
    lab
}

/// A review with this verdict, as JSON.
fn review(verdict: &str) -> String {
    format!(
        "{{\"review_verdict\": \"{verdict}\", \"review_reason\": \"it drops half of the work\", \
         \"rule_verdicts\": {{\"hypothesis_metric_alignment\": \"fail\", \
         \"off_target_gain\": \"pass\", \"quick_vs_full\": \"unknown\", \
         \"noise_band\": \"unknown\", \"bit_identity\": \"pass\"}}, \
         \"usage\": {{\"tokens\": 7, \"usd\": 0.5}}}}"
    )
}

fn says(verdict: &str) -> String {
    format!("[ \"$KARVE_TASK\" = review ] || exit 9\ncat <<'END'\n{}\nEND", review(verdict))
}

const REVIEWER: &str = "[roles.reviewer]\nagent = \"second\"";

#[test]
fn the_agent_of_the_role_that_is_routed_to_is_asked_and_the_log_says_why() {
    let second = "case $KARVE_TASK in
propose) grep -q '^## Your role: designer' \"$KARVE_BRIEF\" || exit 9
    echo '{\"title\": \"halve it\", \"mechanism\": \"m\", \"expected_ratio\": 2.0}' ;;
implement) grep -q 'may change only the editable files' \"$KARVE_BRIEF\" || exit 8
    sed s/TIME=.*/TIME=50/ kernel.sh >k && mv k kernel.sh && echo '{\"summary\": \"s\"}' ;;
esac";
    let lab = lab(second, "[roles.designer]\nagent = \"second\"");
    lab.replace("karve.toml", "rounds = 10", "rounds = 1").commit();
    lab.karve(&["run", "--yes"]).ends(0).shows(&["role      round 1: designer"]);
    assert_eq!(lab.verdicts(), ["keep"]);
    let route = &lab.events("proposed")[0]["route"];
    assert_eq!((&route["role"], &route["implements"]), (&"designer".into(), &"designer".into()));
    let rules: Vec<&str> = route["why"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|reason| reason["rule"].as_str())
        .collect();
    assert_eq!(rules, ["kernel", "role"]);
    lab.karve(&["log"]).ends(0).shows(&["role designer"]);
    lab.karve(&["show", "1"]).ends(0).shows(&["## Role", "the kernel is in sh"]);
    let view = lab.karve(&["show", "1", "--json"]).ends(0).json();
    assert_eq!(view["route"]["role"], "designer");
    is_tidy(&lab);
}

#[test]
fn a_role_may_change_fewer_files_than_are_editable_and_the_gate_holds_it() {
    let lab = lab("exit 9", "[roles.designer]\nwrites = [\"*.txt\"]");
    lab.script("1", "implement", &format!("{HALVE}\necho half >notes.txt"));
    lab.replace(
        "karve.toml",
        "editable = [\"kernel.sh\"]",
        "editable = [\"kernel.sh\", \"*.txt\"]",
    );
    lab.script("1", "repair", "echo '{\"give_up\": \"I may not\"}'").commit();
    lab.karve(&["run", "--yes"]).ends(0);
    let gate = &lab.events("gated")[0]["gate"];
    assert_eq!((&gate["gate"], &gate["paths"][0]), (&"out_of_scope".into(), &"kernel.sh".into()));
    assert_eq!(lab.verdicts(), ["out_of_scope"]);
    is_tidy(&lab);
}

#[test]
fn another_framework_than_the_role_writes_is_named_and_can_be_repaired() {
    let orphan = "printf 'import cutlass\\n' > k.py\nedit s/TIME=.*/TIME=50/";
    let lab = lab("exit 9", "[roles.triton-specialist]\nwrites = [\"*\"]");
    lab.replace("karve.toml", "editable = [\"kernel.sh\"]", "editable = [\"kernel.sh\", \"*.py\"]")
        .replace(
            "karve.toml",
            "backend = \"sh\"\ndevice = \"cpu\"",
            "backend = \"triton\"\ndevice = \"H200\"",
        )
        .script("1", "implement", orphan)
        .script(
            "1",
            "repair",
            "grep -q wrong_framework \"$KARVE_BRIEF\" || exit 9\nprintf 'import triton\\n' > k.py",
        )
        .commit();
    lab.karve(&["run", "--yes"]).ends(0);
    let gate = &lab.events("gated")[0]["gate"];
    assert_eq!(gate["wrong_framework"][0]["speaks"], "cute-dsl", "{gate}");
    assert_eq!(lab.verdicts(), ["keep"]);
    let route = &lab.events("proposed")[0]["route"];
    assert_eq!(route["implements"], "triton-specialist");
    is_tidy(&lab);
}

#[test]
fn a_proposal_for_another_role_is_refused_with_the_right_one() {
    let reported = "grep -q 'cute-dsl-specialist is the role for this' \"$KARVE_BRIEF\" || exit 9";
    let lab = lab("exit 9", "[roles.triton-specialist]\nwrites = [\"*\"]");
    lab.replace(
        "karve.toml",
        "backend = \"sh\"\ndevice = \"cpu\"",
        "backend = \"triton\"\ndevice = \"H200\"",
    )
    .script("1", "propose", "claim \"rewrite it in CuTe DSL\" \"more control\" 2.0")
    .script("1", "propose-again", &format!("{reported}\n{CLAIM}"))
    .commit();
    lab.karve(&["run", "--yes"]).ends(0);
    assert_eq!(lab.verdicts(), ["keep"]);
    assert_eq!(lab.events("proposed").len(), 2);
}

#[test]
fn a_review_is_stored_and_shown_and_decides_nothing() {
    let lab = lab(&says("DOWNGRADE_TO_ROLLBACK"), REVIEWER);
    lab.commit().karve(&["run", "--yes"]).ends(0).shows(&["review    round 1"]);
    assert_eq!(lab.verdicts(), ["keep"]);
    let reviewed = &lab.events("reviewed")[0];
    assert_eq!(reviewed["review"]["advice"], "DOWNGRADE_TO_ROLLBACK");
    assert_eq!(reviewed["usage"]["tokens"], 7);
    lab.karve(&["log"]).ends(0).shows(&["review DOWNGRADE_TO_ROLLBACK"]);
    lab.karve(&["show", "1"]).ends(0).shows(&["## Review", "A review is advice"]);
    lab.karve(&["report"]).ends(0).shows(&["## Reviews"]);
    lab.karve(&["verify"]).ends(0);
    is_tidy(&lab);
    // A recording says it again, without the reviewer.
    let replay = format!("replay:{}", lab.campaign("").display());
    lab.karve(&["run", "--yes", "--new", "--agent", &replay]).ends(0);
    let again = fs::read_to_string(lab.path(".karve/toy-2/events.jsonl")).unwrap();
    let again: Vec<Value> = again.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let again = again.iter().find(|record| record["event"]["type"] == "reviewed").unwrap();
    assert_eq!(again["event"]["review"], reviewed["review"]);
}

#[test]
fn flattery_does_not_carry_a_wrong_kernel_through_the_gate() {
    let lab = lab(&says("AGREE"), REVIEWER);
    lab.script("1", "implement", "edit s/result=.*/result=8/\nedit s/TIME=.*/TIME=5/")
        .script("1", "repair", "echo '{\"give_up\": \"it is right\"}'")
        .commit();
    lab.karve(&["run", "--yes"]).ends(0);
    assert_eq!(lab.verdicts(), ["wrong_result"]);
    assert_eq!(lab.events("reviewed").len(), 1);
}

#[test]
fn a_policy_may_have_a_doubted_change_repaired_or_skipped() {
    let doubt = says("DOWNGRADE_TO_ROLLBACK");
    for (rule, verdict, repairs) in [("repair", "keep", 1), ("skip", "no_candidate", 0)] {
        let lab = lab(&doubt, REVIEWER);
        lab.replace(
            "karve.toml",
            "[policy.accept]",
            &format!("[policy]\nreview = \"{rule}\"\n[policy.accept]"),
        )
        .script(
            "1",
            "repair",
            "grep -q 'drops half of the work' \"$KARVE_BRIEF\" || exit 9\necho '# m' >>kernel.sh",
        )
        .commit();
        lab.karve(&["run", "--yes"]).ends(0);
        assert_eq!(lab.verdicts(), [verdict], "{rule}");
        assert_eq!(lab.events("implemented").len(), 1 + repairs, "{rule}");
        let reported = match rule {
            "skip" => "gate and the duel were not run for this candidate",
            _ => "A review is advice: the gate and the duel decided.",
        };
        lab.karve(&["show", "1"]).ends(0).shows(&[reported]);
    }
}

#[test]
fn a_reviewer_that_says_nothing_of_use_is_asked_once_more_and_then_noted() {
    for (says, why) in [
        ("echo 'looks good to me'", "no JSON object"),
        ("echo '{\"review_verdict\": \"ACCEPT\"}'", "review_verdict must be one of"),
        ("exit 3", "the agent failed"),
    ] {
        let lab = lab(says, REVIEWER);
        lab.commit().karve(&["run", "--yes"]).ends(0);
        assert_eq!(lab.verdicts(), ["keep"]);
        let failed = lab.events("reviewed")[0]["review"]["failed"].clone();
        assert!(failed.as_str().unwrap().contains(why), "{failed}");
    }
    // The second question lists what was wrong with the first answer.
    let again = format!(
        "if grep -q 'rule_verdicts is missing' \"$KARVE_BRIEF\"; then cat <<'END'\n{}\nEND\nelse\n\
         echo '{{\"review_verdict\": \"AGREE\", \"review_reason\": \"r\"}}'; fi",
        review("AGREE")
    );
    let lab = lab(&again, REVIEWER);
    lab.commit().karve(&["run", "--yes"]).ends(0);
    let reviewed = &lab.events("reviewed")[0];
    assert_eq!(reviewed["review"]["advice"], "AGREE");
    // Both turns are kept, and shown.
    assert_eq!(reviewed["earlier"].as_array().map(Vec::len), Some(1));
    lab.karve(&["show", "1", "--transcript"])
        .ends(0)
        .shows(&["outcome refused: rule_verdicts is missing", "outcome AGREE"]);
}

#[test]
fn answers_in_the_contracts_of_the_workflows_are_taken() {
    let lab = lab("exit 9", "");
    let analyze = "cat <<'END'\n{\"round\": 1, \"primary_hypothesis\": \"halve the work\", \
        \"bottleneck_class\": \"memory\", \"expected_benefit\": \"+90%\", \"risks\": [], \
        \"verification_signal\": \"dram_pct up\", \"planned_modified_files\": [\"kernel.sh\"], \
        \"rejected_alternatives\": [], \"evidence_paths\": []}\nEND";
    let optimize = "edit s/TIME=.*/TIME=50/\ncat <<'END'\n{\"modified_files\": [\"kernel.sh\"], \
        \"diff_summary\": \"half of it\", \"build_ok\": true, \"kernel_snapshotted\": false}\nEND";
    lab.script("1", "propose", analyze).script("1", "implement", optimize).commit();
    lab.karve(&["run", "--yes"]).ends(0);
    assert_eq!(lab.verdicts(), ["keep"]);
    assert_eq!(lab.events("implemented")[0]["candidate"]["summary"], "half of it");
}

#[test]
fn an_answer_that_breaks_the_contract_it_speaks_is_asked_for_again() {
    let lab = lab("exit 9", "");
    let reported = "grep -q 'risks is missing' \"$KARVE_BRIEF\" || exit 9";
    lab.script("1", "propose", "echo '{\"primary_hypothesis\": \"halve it\"}'")
        .script("1", "propose-again", &format!("{reported}\n{CLAIM}"))
        .commit();
    lab.karve(&["run", "--yes"]).ends(0);
    assert_eq!(lab.verdicts(), ["keep"]);
    let refused = &lab.events("proposal_refused")[0]["refusal"];
    assert_eq!(refused["refusal"], "unreadable", "{refused}");
}

#[test]
fn the_published_messages_and_our_own_pass_the_check() {
    let lab = Lab::empty();
    let published = source("testdata/messages");
    for name in [
        "hyper-mla/profile",
        "hyper-mla/task",
        "hyper-mla/summary",
        "trtllm/analysis",
        "trtllm/optimization",
        "trtllm/summary",
    ] {
        let file = published.join(format!("{name}.md"));
        lab.karve(&["messages", name, "--check", file.to_str().unwrap()]).ends(0);
    }
    let own = source("testdata/reports");
    for (name, file) in [
        ("hyper-mla/profile", "profile/hyper-mla.md"),
        ("hyper-mla/profile", "profile/hyper-mla-table.md"),
        ("trtllm/analysis", "profile/trtllm.md"),
        ("trtllm/optimization", "optimization-1.md"),
        ("trtllm/summary", "optimizations.md"),
    ] {
        let file = own.join(file);
        lab.karve(&["messages", name, "--check", file.to_str().unwrap()]).ends(0);
    }
    lab.write("broken.md", "Primary bottleneck: memory-bound\n");
    let check = ["messages", "trtllm/analysis", "--check", "broken.md"];
    lab.karve(&check).ends(1).complains(&["line 1", "Recommendations"]);
}

#[test]
fn a_new_version_is_taken_in_its_form_and_a_broken_summary_loses_nothing() {
    let lab = lab("exit 9", "");
    let version = "edit s/TIME=.*/TIME=50/\ncat <<'END'\n## New Version: kernel v1\n\
        ### Changes Applied: half of the work\n### Files: kernel.sh\n### Correctness: PASS\n\n\
        ### Trial Configurations Checked\n1. n=1 -- the only one\n\n\
        ### Devlog Entry Written: docs/kernels/kernel.md\nEND";
    let broken =
        "edit s/TIME=.*/TIME=25/\ncat <<'END'\n## New Version: kernel v2\nhalved again\nEND";
    lab.replace("karve.toml", "rounds = 10", "rounds = 2");
    lab.script("1", "propose", CLAIM)
        .script("1", "implement", version)
        .script("2", "propose", "claim \"shorten the wait\" \"less of it is needed\" 2.0")
        .script("2", "implement", broken)
        .commit();
    lab.karve(&["run", "--yes"]).ends(0);
    assert_eq!(lab.verdicts(), ["keep", "keep"]);
    let said = lab.events("implemented");
    assert_eq!(said[0]["candidate"]["summary"], "half of the work");
    let second = said[1]["candidate"]["summary"].as_str().unwrap();
    assert!(second.contains("halved again (malformed: "), "{second}");
}

#[test]
fn a_kernel_for_tileir_is_right_with_the_backend_off_and_then_on() {
    let lab = lab("exit 9", "[roles.kernel-tileir-specialist]\nwrites = [\"kernel.sh\"]");
    lab.replace("karve.toml", "backend = \"sh\"", "backend = \"triton\"\nlanguage = \"Triton\"");
    lab.replace("karve.toml", "device = \"cpu\"", "device = \"B200\"");
    lab.replace("karve.toml", "rounds = 10", "rounds = 1");
    let test = lab.read("test.sh");
    let fails = "[ \"${ENABLE_TILE-}${TILED-}\" != 11 ] || { echo 'wrong tiles' >&2; exit 1; }";
    lab.write("test.sh", &format!("{test}{fails}\n"));
    let told = "grep -q 'with ENABLE_TILE=1: .*wrong tiles' \"$KARVE_BRIEF\" || exit 9";
    lab.script("1", "implement", &format!("{HALVE}\necho TILED=1 >>kernel.sh\necho tiled"))
        .script("1", "repair", &format!("{told}\nedit /TILED/d\necho fixed"))
        .commit();
    lab.karve(&["run", "--yes"]).ends(0).shows(&["tileir-specialist"]);
    assert_eq!(lab.verdicts(), ["keep"]);
    let gates = lab.events("gated");
    assert_eq!(gates[0]["gate"]["gate"], "wrong_result", "{gates:?}");
}

#[test]
fn a_kernel_for_tileir_takes_two_rounds_and_the_second_has_the_kernel_of_the_first() {
    let lab = lab("exit 9", "[roles.kernel-triton-specialist]\nwrites = [\"*\"]");
    lab.configure("[roles.kernel-tileir-specialist]\nwrites = [\"*\"]");
    lab.replace("karve.toml", "editable = [\"kernel.sh\"]", "editable = [\"kernel.sh\", \"*.py\"]")
        .replace("karve.toml", "device = \"cpu\"", "device = \"B200\"")
        .replace("karve.toml", "rounds = 10", "rounds = 2")
        .replace("karve.toml", "name = \"script\"", "name = \"script\"\nintent = \"use TileIR\"");
    let read = "grep -q 'read the modules that you import from' \"$KARVE_BRIEF\" || exit 9";
    lab.script("1", "implement", &format!("{read}\nprintf 'import triton\\n' > k.py\n{HALVE}"))
        .script("2", "propose", "claim \"tiles\" \"the backend copies whole tiles\" 1.5")
        .script(
            "2",
            "implement",
            &format!("{read}\ngrep -q 'import triton' k.py || exit 8\nedit s/TIME=.*/TIME=25/"),
        )
        .commit();
    lab.karve(&["run", "--yes"]).ends(0);
    assert_eq!(lab.verdicts(), ["keep", "keep"]);
    let proposed = lab.events("proposed");
    let of = |round: usize| proposed[round]["route"]["implements"].clone();
    assert_eq!((of(0), of(1)), ("triton-specialist".into(), "tileir-specialist".into()));
    is_tidy(&lab);
}

#[test]
fn bad_tables_are_refused_with_a_hint() {
    for (roles, parts) in [
        ("[roles.plumber]", ["there is no role `plumber`", "hint:"]),
        ("[roles.designer]\nagent = \"nobody\"", ["there is no agent `nobody`", "[agents]"]),
        ("[roles.designer]\nenabled = false", ["the enabled roles", "roles.designer"]),
        ("[roles.reviewer]\nagent = \"builtin\"", ["cannot take the role", "roles.reviewer.agent"]),
        ("[roles.reviewer]\nwrites = [\"*\"]", ["changes no files", "roles.reviewer.writes"]),
        ("[roles.designer]\nwrites = [\"/etc/*\"]", ["it is absolute", "roles.designer.writes"]),
    ] {
        let lab = lab("exit 9", roles);
        lab.commit().karve(&["check"]).ends(2).complains(&parts);
    }
    let lab = lab("exit 9", "");
    lab.replace("karve.toml", "name = \"script\"", "name = \"script\"\nintent = \"use TileIR\"");
    lab.commit().karve(&["check"]).ends(2).complains(&[
        "tileir needs sm100",
        "designer is the role",
        "agent.intent",
    ]);
}

#[test]
fn routing_and_messages_can_be_asked_for() {
    let lab = Lab::empty();
    lab.karve(&["roles"]).ends(0).shows(&["triton-specialist", "may propose, implement"]);
    lab.write("k.py", "@triton.jit\ndef k():\n    tl.dot(a, b)\n");
    let said = lab.karve(&["roles", "--classify", "k.py"]).ends(0);
    said.shows(&["dot (confidence 0.95)", "BLOCK_M=128 BLOCK_N=128 BLOCK_K=64"]);
    lab.karve(&["roles", "tileir-specialist"]).ends(0).shows(&["ENABLE_TILE=0"]);
    lab.karve(&["roles", "nobody"]).ends(2).complains(&["hint: \"karve roles\""]);
    let route = ["roles", "--route", "port it to TileIR", "--device", "B200", "--kernel"];
    let both = lab.karve(&[&route[..], &["none"]].concat()).ends(0);
    both.shows(&["first triton, then tileir", "triton-specialist, then tileir-specialist"]);
    let one = lab.karve(&[&route[..], &["triton", "--json"]].concat()).ends(0).json();
    assert_eq!(one["routed"]["steps"], serde_json::json!(["tileir-specialist"]));
    let wrong = [&route[..], &["triton", "--to", "cute-dsl-specialist"]].concat();
    lab.karve(&wrong).ends(1).complains(&["tileir-specialist is the role for this"]);
    lab.karve(&["messages"]).ends(0).shows(&["hyper-mla/task", "primus/review"]);
    lab.karve(&["messages", "primus/review"]).ends(0).shows(&["rule_verdicts: object"]);
    for name in ["hyper-mla/profile", "trtllm/analysis"] {
        let shown = lab.karve(&["messages", name]).ends(0).stdout;
        lab.write("example.md", shown.split_once("For example:\n\n").unwrap().1);
        lab.karve(&["messages", name, "--check", "example.md"]).ends(0);
    }
    lab.write("answer.json", "{\"review_verdict\": \"ACCEPT\"}");
    lab.karve(&["messages", "primus/review", "--check", "answer.json"])
        .ends(1)
        .complains(&["review_verdict must be one of", "rule_verdicts is missing"]);
    lab.write(
        "answer.json",
        &review("AGREE").replace(", \"usage\": {\"tokens\": 7, \"usd\": 0.5}", ""),
    );
    lab.karve(&["messages", "primus/review", "--check", "answer.json"]).ends(0);
}

#[test]
fn of_several_realizations_the_chosen_one_is_reviewed() {
    let lab = lab(&says("AGREE"), REVIEWER);
    lab.script("1", "implement", "edit s/TIME=.*/TIME=$((100 - 25 * KARVE_VARIANT))/")
        .replace("karve.toml", "rounds = 10", "rounds = 1")
        .replace("karve.toml", "[policy.accept]", "[policy]\nbest_of = 2\n\n[policy.accept]")
        .commit();
    lab.karve(&["run", "--yes"]).ends(0);
    assert_eq!(lab.verdicts(), ["keep"]);
    assert_eq!(lab.events("chosen")[0]["first"], 1);
    let reviewed = lab.events("reviewed");
    let made = lab.events("implemented");
    assert_eq!(reviewed.len(), 1);
    assert_eq!(reviewed[0]["review"]["tree"], made[1]["candidate"]["tree"]);
    is_tidy(&lab);
}

#[test]
fn a_role_that_changes_only_what_it_may_not_is_told_which_files() {
    let lab = lab("exit 9", "[roles.designer]\nwrites = [\"*.txt\"]");
    lab.replace(
        "karve.toml",
        "editable = [\"kernel.sh\"]",
        "editable = [\"kernel.sh\", \"*.txt\"]",
    )
    .replace("karve.toml", "rounds = 10", "rounds = 1")
    .commit();
    lab.karve(&["run", "--yes"]).ends(0);
    assert_eq!(lab.verdicts(), ["no_candidate"]);
    assert_eq!(
        lab.events("not_implemented")[0]["why"],
        "out of scope: the only changes are to kernel.sh, not editable in the role designer"
    );
    is_tidy(&lab);
}
