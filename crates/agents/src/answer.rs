//! An agent's answer, parsed strictly: JSON, a fenced JSON block, or the Markdown contract.
//!
//! An answer is data, never an instruction: it is either a claim in the contract, or refused with
//! every error listed.

use super::form::{self, ProposalForm};
use crate::{claim, messages};
use karve_core::hypothesis::{Direction, EXPECTED, Hypothesis};
use karve_core::integrity::Bucket;
use karve_core::knowledge::LessonNotes;
use karve_core::markdown::last_block;
use karve_core::spending::AgentUsage;
use karve_os::text;
use serde_json::{Map, Value};

/// Characters of one text field.
const FIELD_CHARS_MAX: usize = 2_000;
/// Characters of one part of a lesson.
const WORDS_CHARS_MAX: usize = 400;

/// A readable answer to "propose".
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ProposalAnswer {
    /// A hypothesis.
    Stated(Box<Hypothesis>, AgentUsage),
    /// Nothing is left to try.
    Exhausted(String),
}

/// The usage that an answer reports.
pub(super) fn parse_usage(text: &str) -> AgentUsage {
    let fields = json_of(text.trim()).ok().flatten();
    fields.map_or_else(AgentUsage::default, |fields| usage(&fields))
}

/// Parses a proposal, or lists everything that is wrong with it.
pub(super) fn parse_proposal(text: &str) -> Result<ProposalAnswer, Vec<String>> {
    // An agent may use the contract of a published workflow.
    if let Some(said) = messages::hypothesis_of(text) {
        let stated = |claim: Box<Hypothesis>| {
            ProposalAnswer::Stated(Box::new(cleaned(*claim)), parse_usage(text))
        };
        return said.map(stated);
    }
    let fields = fields_of(text).map_err(|error| vec![error])?;
    let form = ProposalForm::of(&fields).map_err(|error| vec![error])?;
    if !form.exhausted.is_empty() {
        return Ok(ProposalAnswer::Exhausted(bounded(&form.exhausted)));
    }
    let hypothesis = hypothesis_of(&form)?;
    Ok(ProposalAnswer::Stated(Box::new(cleaned(hypothesis)), usage(&fields)))
}

/// The claim of a form, or everything that is wrong with it.
fn hypothesis_of(form: &ProposalForm) -> Result<Hypothesis, Vec<String>> {
    let mut errors = Vec::new();
    let title = required("title", &form.title, &mut errors);
    let mechanism = required("mechanism", &form.mechanism, &mut errors);
    let expected_ratio = match form.expected_ratio {
        Some(ratio) if EXPECTED.contains(&ratio) => ratio,
        _ => {
            errors.push("expected_ratio must be a speedup such as 1.15, at least 1".into());
            1.0
        }
    };
    let direction = match form.direction.trim() {
        "" => Some(Direction::Algorithm),
        named => Direction::by_name(named),
    };
    if direction.is_none() {
        let names: Vec<&str> = Direction::ALL.iter().map(|d| d.name()).collect();
        errors.push(format!("direction must be one of {}", names.join(", ")));
    }
    let bucket = match form.bucket.trim() {
        "" => None,
        named => match Bucket::ALL.into_iter().find(|known| known.name() == named) {
            Some(known) => Some(known),
            None => {
                errors.push("bucket must be one of K1, K2, K3, K4, W1, W2, W3".into());
                None
            }
        },
    };
    if !errors.is_empty() {
        return Err(errors);
    }
    let optional = |text: &str| Some(bounded(text)).filter(|text| !text.is_empty());
    let list = |texts: &[String]| texts.iter().filter_map(|text| optional(text)).collect();
    Ok(Hypothesis {
        bottleneck: bounded(&form.bottleneck),
        direction: direction.unwrap_or(Direction::Algorithm),
        high_risk: form.high_risk,
        files: list(&form.files),
        counters: list(&form.counters),
        steps: list(&form.steps),
        gate: optional(&form.gate),
        question: optional(&form.question),
        sweep: form.sweep,
        entry: optional(&form.entry),
        differs: optional(&form.differs),
        bucket,
        alternatives: list(&form.alternatives),
        task: optional(form.task.trim()),
        ..claim(title.replace('\n', " "), mechanism, expected_ratio)
    })
}

/// Parses the answer after an implementation; plain text is a summary too. The change is in the
/// worktree, so a summary that breaks its contract loses nothing: it is kept with its errors.
pub(super) fn parse_implementation(text: &str) -> Result<(String, AgentUsage), String> {
    if let Some(said) = messages::summary_of(text) {
        let broken =
            |errors: Vec<String>| format!("{} (malformed: {})", one_line(text), errors.join("; "));
        return Ok((bounded(&said.unwrap_or_else(broken)), parse_usage(text)));
    }
    let Ok(fields) = fields_of(text) else {
        return Ok((bounded(text.trim()), AgentUsage::default()));
    };
    if let Some(why) = fields.get("give_up") {
        return Err(format!("the agent gave up: {}", bounded(&form::text_of(why))));
    }
    let summary = fields.get("summary").map(form::text_of).unwrap_or_default();
    Ok((bounded(&summary), usage(&fields)))
}

/// Parses an agent's lesson from a round: an object of texts, all of them optional. An unusable
/// answer is an error, with its usage.
pub(super) fn parse_words(text: &str) -> Result<(LessonNotes, AgentUsage), (String, AgentUsage)> {
    let none = |why: String| (why, AgentUsage::default());
    let fields = json_of(text.trim()).map_err(none)?;
    let fields = fields.ok_or_else(|| none("the answer has no JSON object".into()))?;
    let usage = usage(&fields);
    let mut words = LessonNotes::default();
    for (name, value) in &fields {
        let part = match name.as_str() {
            "mechanism" => &mut words.mechanism,
            "condition" => &mut words.condition,
            "pitfall" => &mut words.pitfall,
            "usage" | "tokens" | "usd" => continue,
            _ => {
                let name: String = bounded(name).chars().take(40).collect();
                return Err((format!("the answer has an unknown key {name:?}"), usage));
            }
        };
        match value {
            Value::String(said) => *part = one_line(said),
            Value::Null => {}
            _ => return Err((format!("{name} must be a text"), usage)),
        }
    }
    Ok((words, usage))
}

fn one_line(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    bounded(&line).chars().take(WORDS_CHARS_MAX).collect()
}

/// The fields of an answer, in whichever form it has.
fn fields_of(text: &str) -> Result<Map<String, Value>, String> {
    let trimmed = text.trim();
    if let Some(fields) = json_of(trimmed)? {
        return Ok(fields);
    }
    let fields = markdown_fields(trimmed);
    if fields.is_empty() {
        return Err("the answer has no JSON object and no \"- title: …\" list".into());
    }
    Ok(fields)
}

/// The fields of a JSON object, alone or in the last fenced block; none if there is no object.
fn json_of(trimmed: &str) -> Result<Option<Map<String, Value>>, String> {
    if trimmed.is_empty() {
        return Err("the answer is empty".into());
    }
    if let Ok(Value::Object(fields)) = serde_json::from_str(trimmed) {
        return Ok(Some(fields));
    }
    let Some(block) = last_block(trimmed, "json") else {
        return Ok(None);
    };
    match serde_json::from_str(block) {
        Ok(Value::Object(fields)) => Ok(Some(fields)),
        Ok(_) => Err("the JSON block is not an object".into()),
        Err(error) => Err(format!("the JSON block cannot be read: {error}")),
    }
}

/// `- key: value` or `**key**: value` lines; a line without a key continues the last one.
fn markdown_fields(text: &str) -> Map<String, Value> {
    let mut fields = Map::new();
    for line in text.lines().take(1_000) {
        let line = line.trim().trim_start_matches(['-', '*', ' ']);
        let Some((key, value)) = line.split_once(':') else {
            continue;
        };
        let key = key.trim().trim_matches('*').trim().to_lowercase().replace(' ', "_");
        if form::FIELDS.contains(&key.as_str()) || ["summary", "give_up"].contains(&key.as_str()) {
            let value = value.trim().trim_matches('*').trim();
            fields.insert(key, Value::from(value));
        }
    }
    fields
}

fn required(name: &str, said: &str, errors: &mut Vec<String>) -> String {
    let text = bounded(said.trim());
    if text.is_empty() {
        errors.push(format!("{name} is missing"));
    }
    text
}

fn bounded(text: &str) -> String {
    text::plain(text).chars().take(FIELD_CHARS_MAX).collect()
}

/// A claim in karve's text: the title is one line that is no heading, and nothing in it is unseen.
fn cleaned(claim: Hypothesis) -> Hypothesis {
    let optional = |text: Option<String>| text.map(|text| bounded(&text));
    let list = |texts: Vec<String>| texts.iter().map(|text| bounded(text)).collect();
    let title = text::one_line(&bounded(&claim.title), FIELD_CHARS_MAX);
    Hypothesis {
        title: title.trim_start_matches(['#', '>', ' ']).to_owned(),
        mechanism: bounded(&claim.mechanism),
        bottleneck: bounded(&claim.bottleneck),
        files: list(claim.files),
        counters: list(claim.counters),
        alternatives: list(claim.alternatives),
        gate: optional(claim.gate),
        question: optional(claim.question),
        entry: optional(claim.entry),
        differs: optional(claim.differs),
        task: optional(claim.task),
        ..claim
    }
}

fn usage(fields: &Map<String, Value>) -> AgentUsage {
    let inner = fields.get("usage").and_then(Value::as_object);
    let find = |name: &str| {
        let said = inner.and_then(|inner| inner.get(name)).or_else(|| fields.get(name));
        said.and_then(form::number_of)
    };
    AgentUsage {
        tokens: find("tokens").map_or(0, |tokens| tokens.max(0.0) as u64),
        usd: find("usd").map_or(0.0, |usd| usd.max(0.0)),
        estimated: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, want: Result<&str, &str>) {
        match (parse_proposal(text), want) {
            (Ok(ProposalAnswer::Stated(hypothesis, _)), Ok(title)) => {
                assert_eq!(hypothesis.title, title);
            }
            (Ok(ProposalAnswer::Exhausted(why)), Ok(title)) => assert_eq!(why, title),
            (Err(errors), Err(part)) => assert!(errors.join("; ").contains(part), "{errors:?}"),
            (got, want) => panic!("{got:?}, wanted {want:?}"),
        }
    }

    #[test]
    fn json_a_json_block_and_markdown_are_all_read() {
        check(r#"{"title":"T","mechanism":"m","expected_ratio":1.1}"#, Ok("T"));
        check(
            "Look:\n```json\n{\"title\":\"T\",\"mechanism\":\"m\",\"expected_ratio\":2}\n```\n",
            Ok("T"),
        );
        check("## Hypothesis\n- **title**: T\n- mechanism: m\n- expected ratio: 1.3x\n", Ok("T"));
        check(r#"{"exhausted":"nothing left"}"#, Ok("nothing left"));
    }

    #[test]
    fn a_title_is_one_line_of_plain_text_in_either_form() {
        let title = r"## T\u001b[31m\u202e\n# Heading\r\u009bx";
        let own = format!(r#"{{"title":"{title}","mechanism":"m","expected_ratio":1.1}}"#);
        check(&own, Ok("T[31m # Headingx"));
    }

    #[test]
    fn every_error_is_listed() {
        check("", Err("empty"));
        check("I made it faster!", Err("no JSON object"));
        check("{}", Err("title is missing; mechanism is missing; expected_ratio"));
        check(
            r#"{"title":"T","mechanism":"m","expected_ratio":"NaN","direction":"up"}"#,
            Err("direction must be one of"),
        );
        check("```json\n{\"title\":\n```", Err("cannot be read"));
    }

    #[test]
    fn the_item_of_an_agenda_is_named_in_either_form() {
        let task = |text: &str| match parse_proposal(text) {
            Ok(ProposalAnswer::Stated(hypothesis, _)) => hypothesis.task,
            other => panic!("{other:?}"),
        };
        let json = r#"{"title":"T","mechanism":"m","expected_ratio":1.1,"task":"a-1"}"#;
        let markdown = "- task: a-1\n- title: T\n- mechanism: m\n- expected ratio: 1.3x\n";
        assert_eq!(task(json).as_deref(), Some("a-1"));
        assert_eq!(task(markdown).as_deref(), Some("a-1"));
    }

    #[test]
    fn what_is_null_is_left_out() {
        let text = r#"{"title":"T","mechanism":"m","expected_ratio":1.1,"task":null,"gate":null,
            "exhausted":null,"direction":null}"#;
        let Ok(ProposalAnswer::Stated(hypothesis, _)) = parse_proposal(text) else { panic!() };
        assert_eq!((hypothesis.task, hypothesis.gate), (None, None));
        check(r#"{"exhausted":""}"#, Err("title is missing"));
    }

    #[test]
    fn a_knob_setting_cannot_be_claimed_from_outside() {
        let text = r#"{"title":"T","mechanism":"m","expected_ratio":1.1,"config":{"A":"1"}}"#;
        let Ok(ProposalAnswer::Stated(hypothesis, _)) = parse_proposal(text) else { panic!() };
        assert!(hypothesis.config.is_empty());
    }

    #[test]
    fn words_are_texts_of_known_names_and_bounded() {
        let check = |text: &str, want: Result<&str, &str>| match (parse_words(text), want) {
            (Ok((words, _)), Ok(want)) => assert_eq!(words.mechanism, want),
            (Err((why, _)), Err(part)) => assert!(why.contains(part), "{why}"),
            (got, want) => panic!("{got:?}, wanted {want:?}"),
        };
        check(r#"{"mechanism": "a\n# b\u0007", "pitfall": null}"#, Ok("a # b"));
        check("so:\n```json\n{\"mechanism\": \"m\"}\n```", Ok("m"));
        check("{}", Ok(""));
        check("", Err("empty"));
        check("- mechanism: m", Err("no JSON object"));
        check("[1]", Err("no JSON object"));
        check(r#"{"mechanism": 3}"#, Err("mechanism must be a text"));
        check(r#"{"ratio": "9x"}"#, Err("unknown key \"ratio\""));
        let long = format!("{{\"condition\": \"{}\", \"usd\": 2}}", "x".repeat(9_000));
        let (words, usage) = parse_words(&long).unwrap();
        assert_eq!((words.condition.len(), usage.usd), (WORDS_CHARS_MAX, 2.0));
        let (_, usage) = parse_words(r#"{"other": 1, "usage": {"tokens": 7}}"#).unwrap_err();
        assert_eq!(usage.tokens, 7);
    }

    #[test]
    fn giving_up_is_no_candidate() {
        assert!(parse_implementation(r#"{"give_up":"too hard"}"#).is_err());
        assert_eq!(parse_implementation("done").unwrap().0, "done");
        // The change is there, so a summary that breaks its contract does not lose it.
        let (summary, _) =
            parse_implementation("## New Version: mla v2\n### Files: k.py\n").unwrap();
        assert!(summary.starts_with("## New Version: mla v2 ### Files: k.py (malformed: "));
        assert!(summary.contains("changes is missing"), "{summary}");
        // Text around it and a fence are ignored.
        let version = include_str!("../../../testdata/messages/hyper-mla/summary.md");
        for around in
            [format!("Done.\n\n```markdown\n{version}```\nBye.\n"), format!("Done.\n{version}")]
        {
            let (summary, _) = parse_implementation(&around).unwrap();
            let changes = "split the KV sequence by blocks; group heads that share an operand";
            assert_eq!(summary, changes);
        }
        let (summary, usage) = parse_implementation(r#"{"summary":"s","usd":0.5}"#).unwrap();
        assert_eq!((summary.as_str(), usage.usd), ("s", 0.5));
    }
}
