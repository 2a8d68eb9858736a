//! Command-line agents that misbehave, played by small programs that speak like one: every fault
//! has a name, and nothing keeps running.

use crate::e2e::lab::{Lab, Said};
use crate::e2e::tidy::{is_tidy, processes_of};
use std::fs;
use std::os::unix::fs::PermissionsExt;

/// The value of a key; it may be in nothing that is stored.
const KEY: &str = "sk-never-to-be-stored-0123456789";

/// Begins a program: `said` and `ends` print the event that ends a turn of Claude Code, and a
/// request for a hypothesis is answered.
const BEGIN: &str = r#"#!/bin/sh
brief=$(cat)
round=$(printf '%s\n' "$brief" | sed -n 's/^# Round \([0-9]*\):.*/\1/p')
init() { echo '{"type":"system","subtype":"init","session_id":"x"}'; }
ends() { printf '{"type":"result","subtype":"%s","is_error":%s,%s}\n' "$1" "$2" "$3"; }
said() {
    used='"total_cost_usd":0.01,"usage":{"input_tokens":90,"output_tokens":10}'
    ends success false "\"session_id\":\"s-$round\",$used,\"result\":\"$1\""
}
case $brief in
*'state one hypothesis'*)
    q='\"'
    title="${q}title$q: ${q}idea $round$q, ${q}mechanism$q: ${q}m $round$q"
    said "{$title, ${q}expected_ratio$q: 2.0}"
    exit 0 ;;
esac
"#;

/// A project whose agent speaks like Claude Code; a body is what it does in a round to implement.
fn lab_of(bodies: &[&str]) -> Lab {
    let lab = Lab::new("gains");
    fs::remove_dir_all(lab.path("script")).unwrap();
    let mut program = format!("{BEGIN}case $round in\n");
    for (at, body) in bodies.iter().enumerate() {
        program += &format!("{}) {body}\n;;\n", at + 1);
    }
    program += "esac\n";
    let path = lab.beside("played-agent");
    fs::write(&path, program).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    let table = format!("[agents.claude]\nprogram = \"{}\"", path.display());
    lab.replace("karve.toml", "name = \"script\"", "name = \"claude\"")
        .replace("karve.toml", "[agents.script]\ncommand = \"sh agent.sh\"", &table)
        .replace("karve.toml", "rounds = 10", &format!("rounds = {}", bodies.len()));
    lab.commit();
    lab
}

fn run(lab: &Lab) -> Said {
    let mut command = lab.command(&["run", "--yes"]);
    Said::of(&command.env("ANTHROPIC_API_KEY", KEY).output().unwrap())
}

/// Why each round has no candidate.
#[track_caller]
fn check(bodies: &[&str], want: &[&str]) {
    check_in(&lab_of(bodies), want);
}

#[track_caller]
fn check_in(lab: &Lab, want: &[&str]) {
    run(lab).ends(0);
    let why: Vec<String> = lab
        .events("not_implemented")
        .iter()
        .map(|event| event["why"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(why.len(), want.len(), "{why:?}");
    for (why, want) in why.iter().zip(want) {
        assert!(why.starts_with(want), "{why:?} is not {want:?}");
    }
    assert_eq!(processes_of(lab), Vec::<String>::new());
    is_tidy(lab);
    nothing_stored_has_a_key(lab);
}

#[track_caller]
fn nothing_stored_has_a_key(lab: &Lab) {
    let mut dirs = vec![lab.campaign("")];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(&dir).unwrap().flatten() {
            if entry.file_type().unwrap().is_dir() {
                dirs.push(entry.path());
            } else {
                let bytes = fs::read(entry.path()).unwrap();
                let text = String::from_utf8_lossy(&bytes);
                assert!(!text.contains(KEY), "{} has a key", entry.path().display());
            }
        }
    }
}

#[test]
fn an_exit_code_of_zero_is_no_success() {
    check(
        &["exit 0", "echo 'Segmentation fault, or whatever this is'; exit 0"],
        &["empty reply", "malformed: 1 lines, such as \"Segm"],
    );
    let refused = r#"ends success true '"api_error_status":401,"result":"bad key"'"#;
    check(&["init; exit 0", refused], &["no result: exit code 0", "api error: 401 bad key"]);
    let denied = r#"ends success false '"permission_denials":[{"tool_name":"Edit"}]'"#;
    let turns = r#"ends error_max_turns true '"errors":["20"]'; exit 1"#;
    check(&[denied, turns], &["denied: it is not allowed to use Edit", "max turns"]);
}

#[test]
fn one_that_hangs_or_is_killed_is_ended_with_all_its_processes() {
    let hangs = "setsid sleep 1000 &\n(setsid sh -c 'sleep 1000; true' &)\nsleep 1000";
    let lab = lab_of(&[hangs, "setsid sleep 1000 & kill -9 $$"]);
    lab.replace("karve.toml", "agent_s = 20", "agent_s = 4").commit();
    run(&lab).ends(0);
    let events = lab.events("not_implemented");
    assert_eq!(events[0]["why"], "timeout: the agent ran for more than 4 s");
    assert_eq!(events[1]["why"], "killed: ended by signal 9 (killed)");
    assert_eq!(processes_of(&lab), Vec::<String>::new());
    is_tidy(&lab);
}

#[test]
fn children_and_daemons_that_it_leaves_end_with_its_turn() {
    let lab = lab_of(&[
        "sed -i 's/^TIME=.*/TIME=50/' kernel.sh; sleep 1000 & said done",
        "sed -i 's/^TIME=.*/TIME=20/' kernel.sh\n\
         (setsid sh -c 'exec >/dev/null 2>&1 </dev/null; (sleep 1000 &); sleep 1000' &)\n\
         said done",
    ]);
    run(&lab).ends(0);
    assert_eq!(lab.verdicts(), ["keep", "keep"]);
    assert_eq!(processes_of(&lab), Vec::<String>::new());
    is_tidy(&lab);
}

#[test]
fn one_that_floods_is_ended_and_a_key_is_never_stored() {
    let lab = lab_of(&[
        "yes \"$ANTHROPIC_API_KEY$(head -c 65000 /dev/zero | tr '\\0' x)\"",
        "echo \"# $ANTHROPIC_API_KEY\" >>kernel.sh; said done",
    ]);
    lab.replace("karve.toml", "agent_s = 20", "agent_s = 600").commit();
    check_in(&lab, &["flooded: it printed more than", "leaked: kernel.sh"]);
}

#[test]
fn it_gets_its_own_key_and_no_other_and_what_it_says_is_stored_without() {
    let lab = lab_of(&[
        "[ -z \"$OPENAI_API_KEY\" ] || exit 7\n[ -n \"$ANTHROPIC_API_KEY\" ] || exit 8\n\
         sed -i 's/^TIME=.*/TIME=50/' kernel.sh; said \"my key is $ANTHROPIC_API_KEY\"",
    ]);
    let mut command = lab.command(&["run", "--yes"]);
    command.env("ANTHROPIC_API_KEY", KEY).env("OPENAI_API_KEY", "of-another-agent");
    Said::of(&command.output().unwrap()).ends(0);
    assert_eq!(lab.verdicts(), ["keep"]);
    let event = &lab.events("implemented")[0];
    assert_eq!(event["candidate"]["summary"], "my key is [key]");
    assert_eq!(event["usage"]["tokens"], 100);
    let session_log = event["session_log"].as_str().unwrap();
    let session_log = fs::read_to_string(lab.campaign("artifacts").join(session_log)).unwrap();
    let lines: Vec<&str> = session_log.lines().collect();
    assert!(lines[0].starts_with("{\"agent\":\"claude\"") && lines[0].contains("# Round 1"));
    assert!(lines[1].contains("my key is [key]"), "{session_log}");
    assert!(lines[2].contains("\"karve\":\"end\""));
    nothing_stored_has_a_key(&lab);
    is_tidy(&lab);
}

#[test]
fn a_round_is_one_conversation_and_a_lost_one_begins_anew() {
    let lab = lab_of(&[
        "case \"$*\" in *'--resume s-1'*) ;; *) exit 9 ;; esac\n\
         sed -i 's/^TIME=.*/TIME=50/' kernel.sh; said done",
        "case \"$*\" in *--resume*) echo 'no such conversation' >&2; exit 1 ;; esac\n\
         sed -i 's/^TIME=.*/TIME=20/' kernel.sh; said done",
    ]);
    run(&lab).ends(0);
    assert_eq!(lab.verdicts(), ["keep", "keep"]);
}

#[test]
fn what_was_said_can_be_read() {
    let block = |block: serde_json::Value, who: &str| {
        let message = serde_json::json!({"content": [block]});
        serde_json::json!({"type": who, "message": message})
    };
    let call = serde_json::json!({"type": "tool_use", "name": "Bash",
        "input": {"command": "sed \u{1b}[2J"}});
    let event = block(call, "assistant");
    let answer = serde_json::json!({"type": "tool_result", "content": "no such file",
        "is_error": true});
    let result = block(answer, "user");
    let lab = lab_of(&[
        &format!(
            "init; cat <<'EOF'\n{event}\n{result}\nEOF\n\
             sed -i 's/^TIME=.*/TIME=50/' kernel.sh; said 'half of it, with '$ANTHROPIC_API_KEY"
        ),
        "exit 9",
    ]);
    run(&lab).ends(0);
    lab.karve(&["show", "1"])
        .ends(0)
        .shows(&["The agent had 2 turns", "karve show 1 --transcript"]);
    let said = lab.karve(&["show", "1", "--transcript"]).ends(0).shows(&[
        "round 1, turn 1: propose by claude",
        "round 1, turn 2: implement by claude",
        "tool    Bash {\"command\":\"sed",
        "failed  -> no such file",
        "agent   half of it, with [key]",
        "ended   exit code 0; 100 tokens, $0.0",
        "outcome changed kernel.sh",
    ]);
    assert!(!said.stdout.contains('\u{1b}'), "{said:?}");
    let transcript = lab.karve(&["show", "1", "--transcript", "--json"]).ends(0).json();
    let turn = &transcript["turns"][1];
    assert_eq!(turn["task"], "implement");
    assert_eq!(turn["lines"][0]["tool"], "Bash");
    assert_eq!(turn["usage"]["tokens"], 100);
    assert_eq!(turn["session_log"], lab.events("implemented")[0]["session_log"]);
    let shown = lab.karve(&["show", "1", "--json"]).ends(0).json();
    assert_eq!(shown["session_logs"].as_array().unwrap().len(), 2);
    lab.karve(&["show", "2", "--transcript"])
        .ends(0)
        .shows(&["exit code 9", "outcome no change: no result: exit code 9"]);
    lab.karve(&["show", "7", "--transcript"])
        .ends(2)
        .complains(&["there is no session log", "karve log"]);
    nothing_stored_has_a_key(&lab);
    // A changed session log is found.
    let hash = turn["session_log"].as_str().unwrap();
    fs::write(lab.campaign("artifacts").join(hash), "{}\n").unwrap();
    lab.karve(&["verify"]).ends(1).shows(&["does not match its hash"]);
}

#[test]
fn what_a_turn_and_a_percent_cost_is_told() {
    let lab = lab_of(&["sed -i 's/^TIME=.*/TIME=50/' kernel.sh; said half", "exit 9"]);
    run(&lab).ends(0);
    let view = lab.karve(&["status", "--json"]).ends(0).json();
    let cost = &view["cost"];
    assert_eq!(cost["turns"]["propose"]["turns"], 2, "{cost}");
    assert_eq!(cost["turns"]["implement"]["turns"], 2, "{cost}");
    assert_eq!(cost["turns"]["implement"]["tokens"], 100, "{cost}");
    let number = |value: &serde_json::Value| value.as_f64().unwrap();
    let tokens = number(&view["usage"]["tokens"]);
    let gain = (number(&view["headline"]["ratio"]) - 1.0) * 100.0;
    let price = number(&cost["per_percent"]["tokens"]);
    assert!((price * gain - tokens).abs() < 1e-6 * tokens, "{cost}");
    lab.karve(&["status"]).ends(0).shows(&["per percent of gain"]);
    lab.karve(&["report"]).ends(0).shows(&["## Agent cost", "| propose | 2 | 200 | 0.0200 |"]);
    let report = lab.karve(&["report", "--json"]).ends(0).json();
    assert_eq!(report["campaign"]["cost"], *cost);
}

#[test]
fn a_transcript_of_200_mib_costs_little_memory() {
    // The parent of an agent that is not confined is karve.
    let lab = lab_of(&[
        "peak() { sed -n 's/^VmHWM:[^0-9]*\\([0-9]*\\) kB/\\1/p' /proc/$PPID/status; }\n\
         peak >>../../../../peaks\n\
         line=$(head -c 65000 /dev/zero | tr '\\0' x)\n\
         yes \"{\\\"type\\\":\\\"user\\\",\\\"message\\\":\\\"$line\\\"}\" | head -n 3226\n\
         peak >>../../../../peaks\nsed -i 's/^TIME=.*/TIME=50/' kernel.sh; said done",
    ]);
    lab.unconfined().replace("karve.toml", "agent_s = 20", "agent_s = 600").commit();
    run(&lab).ends(0);
    assert_eq!(lab.verdicts(), ["keep"]);
    let session_log = lab.events("implemented")[0]["session_log"].clone();
    let session_log = lab.campaign("artifacts").join(session_log.as_str().unwrap());
    assert!(fs::metadata(session_log).unwrap().len() > 200 << 20);
    // It is shown by its ends.
    lab.karve(&["show", "1", "--transcript"])
        .ends(0)
        .shows(&["turn 2: implement by claude", "agent   done"]);
    let peaks = fs::read_to_string(lab.path("peaks")).unwrap();
    let peaks: Vec<i64> = peaks.lines().map(|line| line.parse().unwrap()).collect();
    let more_kib = peaks[1] - peaks[0];
    println!("200 MiB of transcript cost {more_kib} KiB of memory");
    assert!(more_kib <= 64 << 10, "{peaks:?}");
}

#[test]
fn what_is_there_and_what_works_is_listed() {
    let lab = lab_of(&["exit 0"]);
    let listed = lab.karve(&["agents"]).ends(0);
    listed.shows(&[
        "builtin",
        "claude",
        "played-agent",
        "hint: install Codex with \"npm install -g @openai/codex\"",
    ]);
    let all = lab.karve(&["agents", "--json"]).ends(0).json();
    let find = |name: &str| {
        let all = all.as_array().unwrap();
        all.iter().find(|one| one["name"] == name).unwrap().clone()
    };
    assert_eq!(find("claude")["configured"], true);
    assert_eq!(find("aider")["path"], serde_json::Value::Null);
    // It has nothing to say to a question that is no brief.
    let said = lab.karve(&["agents", "--trial"]).ends(1);
    said.shows(&["FAILED", "empty reply", "hint: check that \"claude\" works"])
        .complains(&["trials that failed: 1"]);
    // Without a project the kinds are listed.
    let empty = Lab::empty();
    empty.karve(&["agents"]).ends(0).shows(&["missing", "opencode"]);
}

/// Changes the kernel, and says what that taught in one way or another.
fn halves_and(time: u32, taught: &str) -> String {
    format!(
        "q='\\\"'
case $brief in
*'say what it taught'*)
    {taught} ;;
*)
    sed s/TIME=.*/TIME={time}/ kernel.sh >k && mv k kernel.sh
    said done ;;
esac"
    )
}

#[test]
fn what_a_round_taught_is_said_in_words_and_a_failure_of_that_hurts_nothing() {
    let says = halves_and(50, "said \"{${q}mechanism$q: ${q}half of it is gone$q}\"");
    let dies = halves_and(25, "kill -9 $$");
    let lab = lab_of(&[&says, &dies]);
    lab.replace("karve.toml", "[agents.claude]", "[agents.claude]\nlearn = true").commit();
    run(&lab).ends(0);
    assert_eq!(lab.verdicts(), ["keep", "keep"]);
    let learned = lab.events("learned");
    let learning = |at: usize| &learned[at]["lesson"]["learning"];
    assert_eq!(learning(0)["words"]["mechanism"], "half of it is gone");
    assert_eq!(learned[0]["usage"]["tokens"], 100);
    let why = learning(1)["unsaid"].as_str().unwrap();
    assert!(why.starts_with("killed"), "{why}");
    // All of it is written down and checked, also where nothing came of it.
    for event in &learned {
        let name = event["session_log"].as_str().unwrap();
        let text = fs::read_to_string(lab.campaign("artifacts").join(name)).unwrap();
        assert!(text.contains("\"task\":\"learn\""), "{text}");
    }
    lab.karve(&["show", "2", "--transcript"])
        .ends(0)
        .shows(&["learn by claude", "said nothing useful: killed"]);
    lab.karve(&["verify"]).ends(0);
    nothing_stored_has_a_key(&lab);
}

#[test]
fn with_nothing_left_to_spend_nobody_is_asked_what_a_round_taught() {
    let lab = lab_of(&[&halves_and(50, "exit 9")]);
    lab.replace("karve.toml", "[agents.claude]", "[agents.claude]\nlearn = true")
        .replace("karve.toml", "rounds = 1", "rounds = 1\nagent_usd = 0.01")
        .commit();
    run(&lab).ends(0);
    assert_eq!(lab.verdicts(), ["keep"]);
    let learned = &lab.events("learned")[0];
    let why = learned["lesson"]["learning"]["unsaid"].as_str().unwrap();
    assert!(why.starts_with("budget: "), "{why}");
    assert!(learned.get("session_log").is_none(), "{learned}");
}
