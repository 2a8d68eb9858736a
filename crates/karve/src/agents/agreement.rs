//! Whether an event says of a turn what its exchange does: who edits the log by hand leaves the
//! exchange, whose name is its hash.
//!
//! What karve wrote down by itself is compared: the answer of a program or a visitor, and what a
//! model API used. The lines between are as a command-line agent printed them, and prove nothing.

use super::answer::{self, ProposalAnswer};
use super::api;
use super::visitor::VISITOR;
use crate::plain_file;
use karve_core::campaign::{Event, Usage};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

/// A first line, or an exchange with an answer, is read up to this size.
const READ_BYTES_MAX: u64 = 16 << 20;
/// The last line is looked for in so many bytes.
const LAST_BYTES_MAX: u64 = 64 << 10;
/// By how much two amounts of money may differ that were written and read as text.
const USD_SLACK: f64 = 1e-9;

/// How an event differs from what its exchange says; nothing where that cannot be told.
pub fn differences(event: &Event, exchange: &Path) -> Vec<String> {
    let agent = first_line(exchange).and_then(|brief| text_of(&brief, "agent"));
    let Some(agent) = agent else {
        return Vec::new();
    };
    if api::Kind::by_name(&agent).is_some() {
        return last_line(exchange).map_or_else(Vec::new, |end| of_model(event, &end));
    }
    match agent == "command" || agent == VISITOR {
        true => answer_in(exchange).map_or_else(Vec::new, |said| of_answer(event, &agent, &said)),
        false => Vec::new(),
    }
}

/// What a model used stands at the end.
fn of_model(event: &Event, end: &Value) -> Vec<String> {
    let told = (
        end.get("tokens").and_then(Value::as_u64),
        end.get("usd").and_then(Value::as_f64),
    );
    match (usage_of(event), told) {
        (Some(stored), (Some(tokens), Some(usd))) => {
            let told = Usage {
                tokens,
                usd,
                estimated: stored.estimated,
            };
            used(stored, told).into_iter().collect()
        }
        (_, _) => Vec::new(),
    }
}

/// An answer is read as it was then; one that cannot be read any more tells nothing.
fn of_answer(event: &Event, agent: &str, said: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut compare = |what: &str, stored: &str, told: &str| {
        if stored != told {
            found.push(format!(
                "the {what} is {stored:?}, the exchange says {told:?}"
            ));
        }
    };
    match event {
        Event::Proposed {
            hypothesis, usage, ..
        } => {
            if let Ok(ProposalAnswer::Stated(told, claimed)) = answer::parse_proposal(said) {
                compare("title", &hypothesis.title, &told.title);
                compare("mechanism", &hypothesis.mechanism, &told.mechanism);
                found.extend(used(*usage, claimed));
            }
        }
        Event::Implemented {
            candidate, usage, ..
        } if agent == VISITOR => {
            compare("summary", &candidate.summary, said);
            found.extend(used(*usage, Usage::default()));
        }
        Event::Implemented {
            candidate, usage, ..
        } => {
            if let Ok((told, claimed)) = answer::parse_implementation(said) {
                compare("summary", &candidate.summary, &told);
                found.extend(used(*usage, claimed));
            }
        }
        _ => {}
    }
    found
}

fn usage_of(event: &Event) -> Option<Usage> {
    match event {
        Event::Proposed { usage, .. }
        | Event::ProposalRefused { usage, .. }
        | Event::Implemented { usage, .. }
        | Event::NotImplemented { usage, .. } => Some(*usage),
        // A reviewer may be asked twice, and the exchange is of the last time.
        _ => None,
    }
}

fn used(stored: Usage, told: Usage) -> Option<String> {
    let slack = USD_SLACK * told.usd.abs().max(1.0);
    let same = stored.tokens == told.tokens && (stored.usd - told.usd).abs() <= slack;
    (!same).then(|| {
        format!(
            "{} tokens and ${} were used, the exchange says {} and ${}",
            stored.tokens, stored.usd, told.tokens, told.usd
        )
    })
}

fn text_of(line: &Value, key: &str) -> Option<String> {
    line.get(key).and_then(Value::as_str).map(str::to_owned)
}

fn first_line(path: &Path) -> Option<Value> {
    let mut line = Vec::new();
    let file = plain_file::open(path).ok()?.take(READ_BYTES_MAX);
    BufReader::new(file).read_until(b'\n', &mut line).ok()?;
    serde_json::from_slice(&line).ok()
}

fn last_line(path: &Path) -> Option<Value> {
    let mut file = plain_file::open(path).ok()?;
    let bytes = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(bytes.saturating_sub(LAST_BYTES_MAX)))
        .ok()?;
    let mut end = Vec::new();
    file.take(LAST_BYTES_MAX).read_to_end(&mut end).ok()?;
    let last = end.trim_ascii_end().rsplit(|byte| *byte == b'\n').next()?;
    let last: Value = serde_json::from_slice(last).ok()?;
    (last.get("karve")? == "end").then_some(last)
}

/// All lines of such an exchange are karve's; one of them is the answer.
fn answer_in(path: &Path) -> Option<String> {
    let text = plain_file::read_text(path, READ_BYTES_MAX).ok()?;
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
        let path = dir.path().join("exchange");
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
        // A model is held to what it used, a command-line agent to nothing.
        check(implemented("better", 7), &lines("anthropic", said), &[]);
        let want = ["8 tokens and $0.1 were used"];
        check(implemented("wider", 8), &lines("anthropic", said), &want);
        check(implemented("better", 8), &lines("claude", said), &[]);
        check(implemented("better", 8), &[json!("nothing")], &[]);
        let plain = lines("command", "wider");
        check(implemented("wider", 7), &plain, &["7 tokens"]);
    }
}
