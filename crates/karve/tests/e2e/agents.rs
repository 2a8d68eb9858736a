//! Agents that misbehave: late, talkative, greedy, silent; and what becomes of the round.

use crate::e2e::lab::{Lab, Said};
use crate::e2e::tidy::{is_tidy, processes_of};
use std::fs;
use std::process::Command;

/// One round of an agent with this proposal and this change.
fn round(propose: &str, implement: &str) -> Lab {
    let lab = Lab::new("gains");
    fs::remove_dir_all(lab.path("script")).unwrap();
    lab.script("1", "propose", propose).script("1", "implement", implement);
    lab
}

const CLAIM: &str = "claim \"halve the work\" \"half of it is not needed\" 2.0";

#[test]
fn an_agent_over_its_time_is_ended_with_all_its_processes() {
    let hang = "setsid sleep 1000 &\n(setsid sh -c 'sleep 1000; true' &)\nsleep 1000";
    let lab = round(CLAIM, hang);
    lab.replace("karve.toml", "agent_s = 20", "agent_s = 1").commit();
    lab.karve(&["run", "--yes"]).ends(0);
    assert_eq!(lab.verdicts(), ["no_candidate"]);
    let event = &lab.events("not_implemented")[0];
    assert_eq!(event["why"], "the agent ran for more than 1 s");
    assert_eq!(processes_of(&lab), Vec::<String>::new());
    is_tidy(&lab);
}

#[test]
fn what_an_agent_leaves_running_is_ended_with_its_turn() {
    let orphan = "setsid sleep 1000 >/dev/null 2>&1 &\nedit s/TIME=.*/TIME=50/\necho done";
    let lab = round(CLAIM, orphan);
    lab.commit().karve(&["run", "--yes"]).ends(0);
    assert_eq!(lab.verdicts(), ["keep"]);
    is_tidy(&lab);
}

#[test]
fn three_unusable_answers_drop_the_round_and_three_such_rounds_end_the_campaign() {
    let lab = Lab::new("gains");
    fs::remove_dir_all(lab.path("script")).unwrap();
    lab.script("1", "propose", "echo 'I made it faster!'");
    lab.script("2", "propose", "echo '{\"title\": \"no more\"}'; exit 3");
    lab.script("3", "propose", "head -c 3000000 /dev/zero");
    lab.commit();
    let said = lab.karve(&["run", "--yes"]).ends(1);
    said.complains(&["the agent produced no candidate", "hint: see why with \"karve log\""]);
    assert_eq!(lab.verdicts(), ["no_candidate"; 3]);
    let refused = lab.events("proposal_refused");
    assert_eq!(refused.len(), 9);
    assert_eq!(refused[0]["refusal"]["refusal"], "unreadable");
    lab.karve(&["show", "1", "--transcript"]).ends(0).shows(&[
        "propose by script",
        "agent   I made it faster!",
        "outcome refused",
    ]);
    assert_eq!(refused[3]["refusal"]["refusal"], "agent_failed");
    let why = refused[6]["refusal"]["why"].as_str().unwrap();
    assert!(why.contains("exceeds"), "{why}");
    is_tidy(&lab);
}

#[test]
fn a_change_out_of_scope_is_not_taken_and_can_be_repaired() {
    let greedy = "edit s/TIME=.*/TIME=50/\nedit s/7/8/ test.sh\nrm bench.sh\necho done";
    let lab = round(CLAIM, greedy);
    let reported =
        "grep -q 'read-only files changed: bench.sh, test.sh' \"$KARVE_BRIEF\" || exit 9";
    lab.script(
        "1",
        "repair",
        &format!("{reported}\ngrep -q TIME=50 kernel.sh || exit 8\necho repaired"),
    );
    lab.commit().karve(&["run", "--yes"]).ends(0);
    assert_eq!(lab.events("gated")[0]["gate"]["gate"], "out_of_scope");
    assert_eq!(lab.verdicts(), ["keep"]);
    assert_eq!(lab.git(&["diff", "--name-only", "main", "optimize/toy"]), "kernel.sh");
    // A orphan new file is left behind, and that is all.
    let lab = round(CLAIM, "edit s/TIME=.*/TIME=50/\ntouch notes.md\necho done");
    lab.commit().karve(&["run", "--yes"]).ends(0);
    assert_eq!(lab.verdicts(), ["keep"]);
    assert_eq!(lab.git(&["diff", "--name-only", "main", "optimize/toy"]), "kernel.sh");
    // Who insists is dropped.
    let lab = round(CLAIM, greedy);
    lab.script("1", "repair", "edit s/7/8/ test.sh").commit();
    lab.karve(&["run", "--yes"]).ends(0);
    assert_eq!(lab.verdicts(), ["out_of_scope"]);
    assert_eq!(lab.events("gated").len(), 4);
    // A recording insists as well, in every turn: what was refused is not kept when it is replayed.
    let replay = format!("replay:{}", lab.campaign("").display());
    let replay = replay.trim_end_matches('/');
    lab.karve(&["run", "--yes", "--campaign", "again", "--agent", replay]).ends(0);
    fs::rename(lab.campaign(""), lab.beside("recorded")).unwrap();
    fs::rename(lab.path(".karve/again"), lab.campaign("")).unwrap();
    assert_eq!(lab.verdicts(), ["out_of_scope"]);
    assert_eq!(lab.events("gated").len(), 4);
}

#[test]
fn no_change_and_the_same_change_again_are_not_measured() {
    let lab = round(CLAIM, "echo 'I changed everything'");
    lab.script("2", "propose", "claim slow sleeping 1.1");
    lab.script("2", "implement", "edit s/TIME=.*/TIME=300/; echo done");
    lab.script("3", "propose", "claim other words 1.1");
    lab.script("3", "implement", "edit s/TIME=.*/TIME=300/; echo done");
    lab.commit().karve(&["run", "--yes"]).ends(0);
    assert_eq!(lab.verdicts(), ["no_change", "regressed", "already_tried"]);
    is_tidy(&lab);
}

#[test]
fn a_wrong_a_hanging_and_a_lying_kernel_are_dropped() {
    let lab = Lab::new("gains");
    fs::remove_dir_all(lab.path("script")).unwrap();
    let tries = [
        ("wrong result", "edit 's/2 \\* 3/2 * 4/'"),
        ("endless loop", "echo HANG=1 >>kernel.sh"),
        ("zero time", "edit s/TIME=.*/TIME=0/"),
        ("negative time", "edit s/TIME=.*/TIME=-5/"),
        ("time that is none", "edit s/TIME=.*/TIME=fast/"),
        ("longer than the clock", "edit s/TIME=.*/TIME=9e9/"),
        ("printing another reading", "edit 's/TIME=.*/TIME=\"1 case=n=1\\nMETRIC time_us=2\"/'"),
    ];
    for (number, (title, change)) in tries.iter().enumerate() {
        let round = (number + 1).to_string();
        lab.script(&round, "propose", &format!("claim \"{title}\" \"{title} it is\" 2.0"));
        lab.script(&round, "implement", &format!("{change}\necho done"));
        lab.script(&round, "repair", "echo 'it is right as it is'");
    }
    lab.replace("karve.toml", "command_s = 20", "command_s = 1").commit();
    lab.karve(&["run", "--yes"]).ends(0);
    let wrong = "wrong_result";
    let wanted = [wrong, "timed_out", "dishonest", wrong, wrong, "dishonest", wrong];
    assert_eq!(lab.verdicts(), wanted);
    is_tidy(&lab);
}

#[test]
fn an_agent_that_is_not_there_is_refused_at_once() {
    let lab = Lab::new("gains");
    let said = lab.karve(&["run", "--yes", "--agent", "nobody"]).ends(2);
    said.complains(&["there is no agent `nobody`", "hint: ", "[agents.<name>]", "`script`"]);
    lab.karve(&["run", "--yes", "--agent", "replay:/nowhere"]).ends(2).complains(&["no campaign"]);
    assert!(!lab.campaign("events.jsonl").exists());
}

#[test]
fn what_an_agent_costs_is_counted_and_bounded() {
    let lab = round(
        CLAIM,
        "edit s/TIME=.*/TIME=50/\n\
        echo '{\"summary\": \"s\", \"usage\": {\"tokens\": 10, \"usd\": 3.5}}'",
    );
    lab.replace("karve.toml", "rounds = 10", "rounds = 10\nagent_usd = 3.0").commit();
    lab.karve(&["run", "--yes"]).ends(0).shows(&["the agent's budget is used up"]);
    let usage = lab.karve(&["status", "--json"]).json()["usage"].take();
    assert_eq!(usage["usd"], 3.5);
}

#[test]
fn a_change_that_holds_a_key_is_no_candidate_whoever_made_it() {
    const KEY: &str = "sk-very-secret-key";
    let lab = round(CLAIM, "echo \"# $SOME_TOKEN\" >>kernel.sh; echo done");
    let env = "[sandbox]\nenv = [\"SOME_TOKEN\"]\n\n[campaign]";
    lab.replace("karve.toml", "[campaign]", env).commit();
    let mut command = lab.command(&["run", "--yes"]);
    let output = command.env("SOME_TOKEN", KEY).output().unwrap();
    Said::of(&output).ends(0);
    assert_eq!(lab.verdicts(), ["no_candidate"]);
    let event = &lab.events("not_implemented")[0];
    let why = "leaked: kernel.sh contains the value of a key";
    assert_eq!(event["why"], why);
    let objects = lab.git(&["cat-file", "--batch", "--batch-all-objects"]);
    assert!(!objects.contains(KEY));
    let stored = Command::new("grep").args(["-rlF", KEY]).arg(lab.campaign("")).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&stored.stdout), "");
}

#[test]
fn a_editable_file_that_cannot_be_taken_is_named() {
    let lab = round(CLAIM, "ln -sf /etc/passwd kernel.sh; echo done");
    for (number, makes) in [("2", "mkfifo kernel.sh"), ("3", "truncate -s 3G kernel.sh")] {
        lab.script(number, "propose", &CLAIM.replace("halve", number));
        let makes = format!("rm kernel.sh; {makes}; echo done");
        lab.script(number, "implement", &makes);
    }
    // Three rounds without a candidate end the campaign.
    lab.commit().karve(&["run", "--yes"]).ends(1);
    let why = lab.events("not_implemented");
    let why: Vec<&str> = why.iter().filter_map(|one| one["why"].as_str()).collect();
    let no_file = "not accepted: kernel.sh is not a regular file (a symlink, a pipe, ...)";
    let large = "not accepted: kernel.sh is larger than 67108864 bytes";
    assert_eq!(why, [no_file, no_file, large]);
}

#[test]
fn a_program_gets_no_key_but_those_that_its_table_names() {
    let asks = "[ -z \"${OPENAI_API_KEY-}${MY_PASSWORD-}\" ] || exit 7\n\
                [ \"${ANTHROPIC_API_KEY-}\" = its-own-key ] || exit 8\n\
                [ \"$ANTHROPIC_BASE_URL\" = http://localhost ] || exit 9\n\
                edit s/TIME=.*/TIME=50/; echo done";
    let command = "command = \"sh agent.sh\"";
    let run = |named: &str| {
        let lab = round(CLAIM, asks);
        lab.replace("karve.toml", command, &format!("{command}\n{named}")).commit();
        let mut run = lab.command(&["run", "--yes"]);
        run.env("ANTHROPIC_API_KEY", "its-own-key")
            .env("OPENAI_API_KEY", "of-another-model")
            .env("MY_PASSWORD", "of-somebody")
            .env("ANTHROPIC_BASE_URL", "http://localhost");
        Said::of(&run.output().unwrap()).ends(0);
        lab
    };
    let why = run("").events("not_implemented")[0]["why"].to_string();
    let reported = "it did not get ANTHROPIC_API_KEY, MY_PASSWORD, OPENAI_API_KEY: list what";
    assert!(why.contains("exit code 8") && why.contains(reported), "{why}");
    assert_eq!(run("pass = [\"ANTHROPIC_*\"]").verdicts(), ["keep"]);
}
