//! The output of real agents is parsed correctly, and malicious output does no harm.

use super::listen::{OutputListener, read_line};
use super::turn_output::{TEXT_BYTES_MAX, TurnFailure, TurnOutput};
use super::{CliKind, CliTurnRequest, TurnTask, changed_files};
use crate::secrets::Secrets;
use crate::session_log::SessionLog;
use karve_core::spending::AgentUsage;
use karve_os::process::{ExceededLimit, Exit};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

fn sample(kind: CliKind) -> String {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/agents");
    fs::read_to_string(dir.join(format!("{}.jsonl", kind.name()))).unwrap()
}

fn hear(kind: CliKind, text: &str) -> TurnOutput {
    let mut heard = TurnOutput::default();
    for line in text.lines() {
        read_line(kind.spec(), &mut heard, format!("{line}\n").as_bytes());
    }
    heard
}

#[test]
fn real_events_of_every_kind_are_read() {
    let check = |kind, session: &str, tokens, usd: f64| {
        let mut heard = hear(kind, &sample(kind));
        heard.settle(AgentUsage::default());
        assert_eq!(heard.session.as_deref(), Some(session));
        assert_eq!(heard.text, "Done: kernel edited and measured.");
        assert_eq!(heard.usage.tokens, tokens);
        assert!((heard.usage.usd - usd).abs() < 1e-9, "{heard:?}");
        assert_eq!(heard.judge(Exit::Code(0), "", 1), None, "{heard:?}");
        assert_eq!(heard.strange_lines, 0);
    };
    check(CliKind::Claude, "733ad806-196f-4e9b-9614-0b67ba996169", 5_000, 0.01524);
    check(CliKind::Codex, "01a1dcc1-bac4-7561-aa6c-02cf69e086ac", 5_250, 0.0);
    check(CliKind::Gemini, "99dd4450-adcc-4dee-a004-bd5e4483f009", 4_200, 0.0);
    check(CliKind::Opencode, "ses_e233f67cfffeZP3zUWSm0f7LJr", 4_200, 0.015);
}

#[test]
fn a_turn_used_what_the_conversation_used_since() {
    let check = |kind: CliKind, before: AgentUsage, want: AgentUsage| {
        let mut heard = hear(kind, &sample(kind));
        let used = heard.settle(before);
        assert!((heard.usage.usd - want.usd).abs() < 1e-9, "{heard:?}");
        assert_eq!(heard.usage.tokens, want.tokens);
        used
    };
    let usage = |tokens, usd| AgentUsage { tokens, usd, estimated: false };
    let used = check(CliKind::Codex, usage(5_000, 0.0), usage(250, 0.0));
    assert_eq!(used.tokens, 5_250);
    let used = check(CliKind::Claude, usage(0, 0.01), usage(5_000, 0.00524));
    assert!((used.usd - 0.01524).abs() < 1e-9);
    // The counter was reset.
    check(CliKind::Claude, usage(0, 1.0), usage(5_000, 0.01524));
    check(CliKind::Opencode, usage(0, 1.0), usage(4_200, 0.015));
}

/// The fault of a turn with these events and this exit code.
fn check(kind: CliKind, text: &str, code: i32, want: Option<TurnFailure>) {
    let got = hear(kind, text).judge(Exit::Code(code), "", 1);
    assert_eq!(got, want, "{text}");
}

#[test]
fn how_a_turn_of_claude_ended_is_told_by_its_result() {
    let claude = |fields: &str, code, want| {
        check(CliKind::Claude, &format!("{{\"type\":\"result\",{fields}}}"), code, want);
    };
    let fine = r#""subtype":"success","is_error":false,"result":"r""#;
    claude(fine, 0, None);
    let turns = r#""subtype":"error_max_turns","is_error":true,"errors":["Reached 2"]"#;
    claude(turns, 1, Some(TurnFailure::MaxTurns("[\"Reached 2\"]".into())));
    let budget = r#""subtype":"error_max_budget_usd","is_error":true"#;
    claude(budget, 1, Some(TurnFailure::Budget(String::new())));
    let api = r#""subtype":"success","is_error":true,"api_error_status":401,"result":"no key""#;
    claude(api, 1, Some(TurnFailure::Api("401 no key".into())));
    claude(api, 0, Some(TurnFailure::Api("401 no key".into())));
    let aborted = r#""subtype":"error_during_execution","is_error":true,"result":"""#;
    let fault = TurnFailure::Api("error_during_execution".into());
    claude(aborted, 0, Some(fault));
    // An event that does not report success is not a success.
    let unclear = r#""subtype":"success""#;
    claude(unclear, 0, Some(TurnFailure::Api(String::new())));
}

#[test]
fn a_turn_without_its_last_event_is_a_failure_whatever_its_exit_code() {
    let start = r#"{"type":"thread.started","thread_id":"t"}"#;
    let none = |how: &str| Some(TurnFailure::NoResult(how.into()));
    check(CliKind::Codex, start, 0, none("exit code 0"));
    check(CliKind::Codex, start, 1, none("exit code 1"));
    let killed = Some(TurnFailure::Killed("exit code 143".into()));
    check(CliKind::Codex, start, 143, killed);
    check(CliKind::Codex, "", 0, Some(TurnFailure::NoOutput));
    check(CliKind::Codex, "", 1, none("exit code 1"));
    let strange = "1 lines, such as \"Segmentation fault\"";
    let malformed = Some(TurnFailure::Malformed(strange.into()));
    check(CliKind::Codex, "Segmentation fault", 0, malformed);
    let failed = r#"{"type":"turn.failed","error":{"message":"401 no key"}}"#;
    let api = Some(TurnFailure::Api("401 no key".into()));
    check(CliKind::Codex, failed, 1, api);
    let complaint = r#"{"type":"error","message":"stream ended"}"#;
    check(CliKind::Codex, complaint, 1, none("exit code 1, stream ended"));
    // A step that ended with tool calls is not the last one.
    let step = r#"{"type":"step_finish","part":{"reason":"tool-calls"}}"#;
    check(CliKind::Opencode, step, 0, none("exit code 0"));
}

#[test]
fn how_a_program_was_ended_counts_before_what_it_said() {
    let heard = hear(CliKind::Codex, &sample(CliKind::Codex));
    let check = |exit, want: &str| {
        let fault = heard.judge(exit, "", 5).unwrap();
        assert!(fault.describe().starts_with(want), "{fault:?}");
    };
    check(Exit::TimedOut, "timeout: the agent ran for more than 5 s");
    check(Exit::Signal(9), "killed: ended by signal 9");
    check(Exit::Stopped, "killed: stopped by the user");
    check(Exit::TooMuch(ExceededLimit::Output), "flooded: it printed more than");
    check(Exit::TooMuch(ExceededLimit::Memory), "killed: exceeded its memory limit");
}

#[test]
fn an_error_of_the_model_is_told_by_the_other_kinds_too() {
    let gemini = r#"{"type":"result","status":"error","error":{"message":"401"},"stats":{}}"#;
    let fault = TurnFailure::Api("{\"message\":\"401\"}".into());
    check(CliKind::Gemini, gemini, 145, Some(fault));
    let opencode =
        r#"{"type":"error","error":{"name":"APIError","data":{"message":"no","statusCode":401}}}"#;
    let fault = TurnFailure::Api("401 APIError no".into());
    check(CliKind::Opencode, opencode, 1, Some(fault));
    let aider = "litellm.AuthenticationError: no key\n";
    let fault = TurnFailure::Api("litellm.AuthenticationError: no key".into());
    check(CliKind::Aider, aider, 0, Some(fault));
}

#[test]
fn aider_speaks_as_people_do() {
    let text = "Aider v0.86.2\nModel: some\n\n{\"summary\": \"s\"}\n\n\
                Tokens: 1.2k sent, 50 received. Cost: $0.0038 message, $0.0076 session.\n";
    let heard = hear(CliKind::Aider, text);
    assert!(heard.has_ended && heard.text.contains("\"summary\""));
    assert_eq!((heard.usage.tokens, heard.usage.usd), (1_250, 0.0038));
    let silent = hear(CliKind::Aider, "Aider v0.86.2\n");
    let fault = silent.judge(Exit::Code(0), "", 1);
    assert_eq!(fault, Some(TurnFailure::NoResult("exit code 0".into())));
}

#[test]
fn last_words_are_bounded_and_then_no_answer() {
    let mut heard = TurnOutput::default();
    for _ in 0..3 {
        heard.append_text(&"é".repeat(TEXT_BYTES_MAX / 4));
    }
    heard.has_ended = true;
    assert!(heard.is_cut && heard.text.len() <= TEXT_BYTES_MAX);
    assert_eq!(heard.judge(Exit::Code(0), "", 1), Some(TurnFailure::TooLong));
    heard.set_text("short");
    assert_eq!(heard.judge(Exit::Code(0), "", 1), None);
}

#[test]
fn what_comes_in_pieces_is_written_down_whole_and_without_keys() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("session_log");
    let env = BTreeMap::from([("A_KEY".to_owned(), "sk-very-secret".to_owned())]);
    let secrets = Secrets::of(&env);
    let text = "{\"type\":\"thread.started\",\"thread_id\":\"t\"}\nnoise sk-very-secret\n\
                {\"type\":\"item.completed\",\"item\":{\"type\":\"agent_message\",\
                \"text\":\"my key is sk-very-secret\"}}\n{\"type\":\"turn.completed\"}";
    for size in [1, 7, 1_000] {
        let _ = fs::remove_file(&path);
        let log = SessionLog::open(&path, &secrets).unwrap();
        let mut listener = OutputListener::new(CliKind::Codex.spec(), &secrets, log);
        assert!(text.as_bytes().chunks(size).all(|piece| listener.push(piece)));
        let (heard, log) = listener.finish().unwrap();
        log.finish().unwrap();
        assert_eq!(heard.text, "my key is [key]");
        assert!(heard.has_ended && heard.strange_lines == 1);
        let written = fs::read_to_string(&path).unwrap();
        assert_eq!(written, text.replace("sk-very-secret", "[key]") + "\n");
    }
}

#[test]
fn a_line_without_end_is_written_down_and_not_kept() {
    let dir = tempfile::tempdir().unwrap();
    let log = SessionLog::open(&dir.path().join("session_log"), &Secrets::default()).unwrap();
    let mut listener = OutputListener::new(CliKind::Codex.spec(), &Secrets::default(), log);
    let piece = vec![b'x'; 1 << 20];
    assert!((0..16).all(|_| listener.push(&piece)));
    listener.push(b"\n{\"type\":\"turn.completed\"}\n");
    let (heard, _) = listener.finish().unwrap();
    assert!(heard.has_ended && heard.strange_lines == 1);
}

#[test]
fn every_kind_is_called_for_every_task() {
    for kind in CliKind::ALL {
        for task in [
            TurnTask::Propose,
            TurnTask::Implement,
            TurnTask::Repair,
            TurnTask::Review,
            TurnTask::Learn,
            TurnTask::Trial,
        ] {
            let ask = |confined, session| {
                (kind.spec().arguments)(&CliTurnRequest {
                    task,
                    model: Some("m-1"),
                    session,
                    used_before: AgentUsage::default(),
                    confined,
                    usd_left: Some(1.0),
                    limit_s: 60,
                    files: &[],
                    brief_file: Path::new("/notes/brief.md"),
                })
            };
            assert!(ask(true, None).iter().any(|word| word == "m-1"));
            let goes_on = ask(false, Some("s-1")).iter().any(|word| word == "s-1");
            assert_eq!(goes_on, kind != CliKind::Aider);
        }
    }
}

#[test]
fn what_changed_in_a_worktree_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let tree = dir.path().join("tree");
    fs::create_dir_all(tree.join("a/b")).unwrap();
    fs::create_dir_all(tree.join(".git")).unwrap();
    for name in ["a/b/k.c", "x.c"] {
        fs::write(tree.join(name), "1").unwrap();
    }
    let since = wait_for_later(dir.path());
    assert!(changed_files::changed(&tree, since).is_empty());
    wait_for_later(dir.path());
    fs::write(tree.join(".git/index"), "1").unwrap();
    assert!(changed_files::changed(&tree, since).is_empty());
    fs::write(tree.join("a/b/k.c"), "2").unwrap();
    assert_eq!(changed_files::changed(&tree, since), [tree.join("a/b/k.c")]);
    fs::remove_file(tree.join("a/b/k.c")).unwrap();
    assert_eq!(changed_files::changed(&tree, since), [tree.join("a/b")]);
}

/// File timestamps are coarse: returns a time that is after everything written so far.
fn wait_for_later(dir: &Path) -> (i64, i64) {
    let now = || {
        let path = dir.join("moment");
        fs::write(&path, "").unwrap();
        changed_files::changed_at(&path).unwrap()
    };
    let start = now();
    loop {
        let later = now();
        if later > start {
            return later;
        }
    }
}

proptest! {
    #[test]
    fn no_line_does_harm(line in prop::collection::vec(any::<u8>(), 0..200)) {
        for kind in CliKind::ALL {
            read_line(kind.spec(), &mut TurnOutput::default(), &line);
        }
    }

    #[test]
    fn a_broken_event_does_no_harm(at in 0usize..20_000, byte in any::<u8>(), which in 0usize..4) {
        let kind = CliKind::ALL[which];
        let mut bytes = sample(kind).into_bytes();
        let at = at % bytes.len();
        bytes[at] = byte;
        let mut heard = TurnOutput::default();
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            read_line(kind.spec(), &mut heard, line);
        }
        prop_assert!(heard.usage.usd.is_finite());
        heard.judge(Exit::Code(0), "", 1);
    }
}
