//! Whether an event agrees with the session log of its turn: an edit of the event log by hand does
//! not change the session log, whose name is its hash.
//!
//! Only karve's own lines are compared: the answer it accepted, and the usage. The lines between
//! are the output of a command-line agent and prove nothing; the last line is karve's.

use super::answer::ProposalAnswer;
use super::external::EXTERNAL;
use super::{answer, api};
use karve_core::campaign::Event;
use karve_core::spending::AgentUsage;
use karve_os::files;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

/// A first line, or a session log with an answer, is read up to this size.
const READ_BYTES_MAX: u64 = 16 << 20;
/// The last line, which holds the answer, is searched for in this many bytes at the end.
const LAST_BYTES_MAX: u64 = 8 << 20;
/// The tolerance for amounts of money that were written and read as text.
const USD_SLACK: f64 = 1e-9;

/// How an event differs from its session log; empty if they cannot be compared.
pub fn differences(event: &Event, session_log: &Path) -> Vec<String> {
    let agent = first_line(session_log).and_then(|brief| text_of(&brief, "agent"));
    let Some(agent) = agent else {
        return Vec::new();
    };
    if agent == "command" || agent == EXTERNAL {
        let said = answer_in(session_log);
        return said.map_or_else(Vec::new, |said| of_answer(event, &agent, &said));
    }
    let Some(end) = last_line(session_log) else {
        return Vec::new();
    };
    let used_at = match api::ApiKind::by_name(&agent) {
        Some(_) => Some(&end),
        // Older versions of karve wrote the usage of the whole conversation at the end of a turn.
        None => end.get("used"),
    };
    let mut found = text_of(&end, "answer").map_or_else(Vec::new, |said| of_words(event, &said));
    found.extend(used_at.and_then(|reported| of_usage(event, reported)));
    found
}

/// Compares the usage in the last line.
fn of_usage(event: &Event, reported: &Value) -> Option<String> {
    let stored = usage_of(event)?;
    let reported = AgentUsage {
        tokens: reported.get("tokens")?.as_u64()?,
        usd: reported.get("usd")?.as_f64()?,
        estimated: stored.estimated,
    };
    used(stored, reported)
}

/// Compares the answer of a program or an external agent, with the usage that it claims.
fn of_answer(event: &Event, agent: &str, said: &str) -> Vec<String> {
    let (stored, claimed) = match event {
        Event::Proposed { usage, .. } => match answer::parse_proposal(said) {
            Ok(ProposalAnswer::Stated(_, claimed)) => (usage, claimed),
            Ok(_) | Err(_) => return Vec::new(),
        },
        // An external agent submits its change with a summary.
        Event::Implemented { candidate, usage, .. } if agent == EXTERNAL => {
            let mut found: Vec<String> = differ("summary", &candidate.summary, said).collect();
            found.extend(used(*usage, AgentUsage::default()));
            return found;
        }
        Event::Implemented { usage, .. } => match answer::parse_implementation(said) {
            Ok((_, claimed)) => (usage, claimed),
            Err(_) => return Vec::new(),
        },
        _ => return Vec::new(),
    };
    let mut found = of_words(event, said);
    found.extend(used(*stored, claimed));
    found
}

/// An answer is parsed as it was then; one that no longer parses shows nothing.
fn of_words(event: &Event, said: &str) -> Vec<String> {
    match event {
        Event::Proposed { hypothesis, .. } => match answer::parse_proposal(said) {
            Ok(ProposalAnswer::Stated(reported, _)) => {
                let title = differ("title", &hypothesis.title, &reported.title);
                let mechanism = differ("mechanism", &hypothesis.mechanism, &reported.mechanism);
                title.chain(mechanism).collect()
            }
            Ok(_) | Err(_) => Vec::new(),
        },
        Event::Implemented { candidate, .. } => match answer::parse_implementation(said) {
            // Its contract was another one then.
            Ok(_) if crate::messages::summary_of(said).is_some_and(|said| said.is_err()) => {
                Vec::new()
            }
            Ok((reported, _)) => differ("summary", &candidate.summary, &reported).collect(),
            Err(_) => Vec::new(),
        },
        _ => Vec::new(),
    }
}

fn differ(what: &str, stored: &str, reported: &str) -> impl Iterator<Item = String> + use<> {
    let differs = stored != reported;
    let said =
        differs.then(|| format!("the {what} is {stored:?}, the session log has {reported:?}"));
    said.into_iter()
}

fn usage_of(event: &Event) -> Option<AgentUsage> {
    match event {
        Event::Proposed { usage, .. }
        | Event::ProposalRefused { usage, .. }
        | Event::Implemented { usage, .. }
        | Event::NotImplemented { usage, .. } => Some(*usage),
        // A reviewer may be asked twice, and the session log is the last one.
        _ => None,
    }
}

fn used(stored: AgentUsage, reported: AgentUsage) -> Option<String> {
    let slack = USD_SLACK * reported.usd.abs().max(1.0);
    let same = stored.tokens == reported.tokens && (stored.usd - reported.usd).abs() <= slack;
    (!same).then(|| {
        format!(
            "{} tokens and ${} were used, the session log has {} and ${}",
            stored.tokens, stored.usd, reported.tokens, reported.usd
        )
    })
}

fn text_of(line: &Value, key: &str) -> Option<String> {
    line.get(key).and_then(Value::as_str).map(str::to_owned)
}

fn first_line(path: &Path) -> Option<Value> {
    let mut line = Vec::new();
    let file = files::open(path).ok()?.take(READ_BYTES_MAX);
    BufReader::new(file).read_until(b'\n', &mut line).ok()?;
    serde_json::from_slice(&line).ok()
}

fn last_line(path: &Path) -> Option<Value> {
    let mut file = files::open(path).ok()?;
    let bytes = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(bytes.saturating_sub(LAST_BYTES_MAX))).ok()?;
    let mut end = Vec::new();
    file.take(LAST_BYTES_MAX).read_to_end(&mut end).ok()?;
    let last = end.trim_ascii_end().rsplit(|byte| *byte == b'\n').next()?;
    let last: Value = serde_json::from_slice(last).ok()?;
    (last.get("karve")? == "end").then_some(last)
}

/// All lines of such a session log are karve's; one of them is the answer.
fn answer_in(path: &Path) -> Option<String> {
    let text = files::read_text(path, READ_BYTES_MAX).ok()?;
    let lines = text.lines().map(serde_json::from_str::<Value>);
    let answer = lines.flatten().find(|line| line["karve"] == "answer")?;
    text_of(&answer, "text")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(event: Value, lines: &[Value], want: &[&str]) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("session_log");
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        std::fs::write(&path, text).unwrap();
        let event: Event = serde_json::from_value(event).unwrap();
        let found = differences(&event, &path);
        assert_eq!(found.len(), want.len(), "{found:?}");
        for (found, part) in found.iter().zip(want) {
            assert!(found.contains(part), "{found}");
        }
    }

    fn implemented(summary: &str, tokens: u64) -> Value {
        json!({"type": "implemented", "round": 1, "retry": 0,
            "candidate": {"commit": "c", "tree": "t", "files": [], "patch": "p",
                "out_of_scope": [], "summary": summary},
            "usage": {"tokens": tokens, "usd": 0.1}})
    }

    #[test]
    fn words_and_costs_that_were_edited_differ_from_what_was_written_down() {
        let lines = |agent: &str, said: &str| {
            [
                json!({"karve": "brief", "agent": agent, "brief": "…"}),
                json!({"karve": "answer", "text": said}),
                json!({"karve": "end", "fault": null, "tokens": 7, "usd": 0.1}),
            ]
        };
        let said = r#"{"summary": "wider", "usage": {"tokens": 7, "usd": 0.1}}"#;
        check(implemented("wider", 7), &lines("command", said), &[]);
        let want = ["the summary is \"better\"", "8 tokens"];
        check(implemented("better", 8), &lines("command", said), &want);
        check(implemented("better", 8), &[json!("nothing")], &[]);
        let plain = lines("command", "wider");
        check(implemented("wider", 7), &plain, &["7 tokens"]);
    }

    #[test]
    fn what_karve_heard_of_a_model_or_a_program_is_what_its_event_says() {
        let said = r#"{"summary": "wider"}"#;
        let lines = |agent: &str, end: Value| {
            [
                json!({"karve": "brief", "agent": agent, "brief": "…"}),
                // As a dishonest agent would write it.
                json!({"karve": "end", "answer": "{}", "used": {"tokens": 1, "usd": 0}}),
                end,
            ]
        };
        let model =
            lines("anthropic", json!({"karve": "end", "tokens": 7, "usd": 0.1, "answer": said}));
        let program = lines(
            "claude",
            json!({"karve": "end", "used": {"tokens": 7, "usd": 0.1}, "answer": said}),
        );
        let want = ["the summary is \"better\"", "8 tokens and $0.1 were used"];
        for lines in [model, program] {
            check(implemented("wider", 7), &lines, &[]);
            check(implemented("better", 8), &lines, &want);
        }
        // Older versions of karve wrote other things.
        let old = lines("claude", json!({"karve": "end", "tokens": 70, "usd": 0.7}));
        check(implemented("better", 8), &old, &[]);
        let old = lines("anthropic", json!({"karve": "end", "tokens": 7, "usd": 0.1}));
        check(implemented("better", 7), &old, &[]);
    }
}
