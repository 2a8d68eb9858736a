//! What must not come through: escape sequences, damage of a log, the mistakes of a client.

use crate::e2e::lab::{Lab, Said};
use std::fs;
use std::io::Write;
use std::process::Stdio;

/// ESC, OSC 8 and 52, a C1 control, a bidirectional override and a carriage return, for `printf`.
const HOSTILE: &str =
    r"\033[31m\033]52;c;eA==\007\033]8;;http://x\033\\\\\302\233 7m\342\200\256x\rA";

#[track_caller]
fn is_plain(said: &Said) {
    for text in [&said.stdout, &said.stderr] {
        let bad = text.chars().find(|c| {
            (c.is_control() && *c != '\n' && *c != '\t')
                || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        });
        assert_eq!(bad, None, "{text:?}");
    }
}

#[test]
fn escape_sequences_of_agents_and_tests_are_shown_as_text() {
    let lab = Lab::new("gains");
    fs::remove_dir_all(lab.path("script")).unwrap();
    let title = r"halve \u001b[31m\u202e\u009b\r\n# the work";
    let answer =
        format!(r#"{{"title":"{title}","mechanism":"less\u001b]0;x\u0007","expected_ratio":2}}"#);
    lab.script("1", "propose", &format!("cat <<'END'\n{answer}\nEND\n"));
    let edit = format!("printf '# {HOSTILE}\\n' >>kernel.sh\nedit s/TIME=.*/TIME=50/\necho done");
    lab.script("1", "implement", &edit);
    lab.commit().karve(&["run", "--yes", "--rounds", "1"]).ends(0);
    for args in [&["diff", "1"][..], &["show", "1"], &["log"], &["status"], &["report"]] {
        is_plain(&lab.karve(args).ends(0));
    }
    lab.karve(&["diff", "1"]).shows(&["\\u001b[31m"]);
    let title = lab.events("proposed")[0]["hypothesis"]["title"].as_str().unwrap().to_owned();
    assert_eq!(title, "halve [31m # the work");
    lab.write("test.sh", &format!("#!/bin/sh\nprintf '{HOSTILE}\\n'\nexit 1\n"));
    lab.commit();
    is_plain(&lab.karve(&["check"]).ends(1));
    is_plain(&lab.karve(&["check", "--json"]).ends(1));
}

#[test]
fn a_log_that_is_empty_of_another_format_or_not_text_is_not_verified() {
    let lab = Lab::new("gains");
    lab.dies("after:30");
    let path = lab.campaign("events.jsonl");
    let good = fs::read(&path).unwrap();
    let text = String::from_utf8(good.clone()).unwrap();
    let mut garbled = good.clone();
    let second = good.iter().position(|byte| *byte == b'\n').unwrap() + 9;
    garbled[second] = 0xff;
    for (log, part) in [
        (Vec::new(), "has no records"),
        (text.replacen("\"v\":3", "\"v\":99", 1).into_bytes(), "line 1: it has format 99, not 3"),
        (garbled, "line 2: not UTF-8"),
    ] {
        fs::write(&path, log).unwrap();
        let said = lab.karve(&["verify", "--campaign", "toy"]).ends(1);
        said.shows(&[part]).complains(&["found 1 difference", "hint: "]);
    }
    fs::write(&path, good).unwrap();
    lab.karve(&["verify", "--campaign", "toy"]).ends(0);
}

#[test]
fn a_message_before_initialize_gets_an_error_and_no_dump() {
    let lab = Lab::new("gains");
    let mut command = lab.command(&["mcp"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let early = b"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/list\"}\n";
    child.stdin.take().unwrap().write_all(early).unwrap();
    let said = Said::of(&child.wait_with_output().unwrap());
    let answer = said.json();
    assert_eq!(answer["id"], 7, "{said:?}");
    assert!(answer["error"]["message"].is_string(), "{said:?}");
    assert!(!said.stderr.contains("Some(") && !said.stderr.contains("ListTools"), "{said:?}");
}
