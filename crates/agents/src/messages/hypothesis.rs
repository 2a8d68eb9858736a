//! What karve accepts from messages of the published workflows: a hypothesis, a summary, a review.
//! An agent that uses one of them needs no other contract.

use super::{Message, checked, form, object_in, parse};
use crate::claim;
use karve_core::hypothesis::{Direction, EXPECTED, Hypothesis};
use karve_core::integrity::Bucket;
use karve_core::markdown::message_from;
use karve_core::roles::{Review, ReviewAdvice, ReviewSignal, Stance};
use karve_os::text::one_line;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Characters of a title.
const TITLE_CHARS: usize = 200;
/// The largest gain that is accepted, in percent.
const GAIN_PCT_MAX: f64 = 900_000.0;

/// The hypothesis of an answer in the primus contract for analysis or for stagnation; none if it
/// uses neither.
pub fn hypothesis_of(text: &str) -> Option<Result<Box<Hypothesis>, Vec<String>>> {
    let datum = object_in(text).ok()?;
    let (name, taken): (&str, HypothesisParser) =
        match (datum.get("primary_hypothesis"), datum.get("new_directions")) {
            (Some(_), _) => ("primus/analyze", analyzed),
            (None, Some(_)) => ("primus/stagnation", turned),
            (None, None) => return None,
        };
    let answer = object_of(name, text).and_then(|said| taken(&said).map_err(|fault| vec![fault]));
    Some(answer.map(|hypothesis| Box::new(Hypothesis { task: task_in(&datum), ..hypothesis })))
}

/// The agenda item that an answer names.
fn task_in(datum: &Value) -> Option<String> {
    datum.get("task")?;
    Some(one_line(text_at(datum, "task"), TITLE_CHARS))
}

/// The expected ratio of a text: its first percentage of gain, or factor such as `1.2x`. What is
/// below zero is the loss of something else.
fn ratio_in(text: &str) -> Option<f64> {
    // An exponent belongs to its number, or 1e308% would be 308%.
    let is_part = |c: char| c.is_ascii_digit() || "+-.eE".contains(c);
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
        let start = rest[..at].trim_end_matches(['+', '-', '.']).len();
        let end = at + rest[at..].find(|c| !is_part(c)).unwrap_or(rest.len() - at);
        let number: Option<f64> = rest[start..end].trim_end_matches(['-', '.']).parse().ok();
        let after = rest[end..].trim_start();
        match number {
            Some(percent) if after.starts_with('%') && (0.0..=GAIN_PCT_MAX).contains(&percent) => {
                return Some(1.0 + percent / 100.0);
            }
            Some(factor) if after.starts_with(['x', '×']) => return Some(factor),
            _ => rest = &rest[end.max(at + 1)..],
        }
    }
    None
}

fn expected(name: &str, text: &str) -> Result<f64, String> {
    let ratio = ratio_in(text).filter(|ratio| EXPECTED.contains(ratio));
    ratio.ok_or_else(|| format!("{name} must contain a gain such as +5% or 1.05x"))
}

type HypothesisParser = fn(&Value) -> Result<Hypothesis, String>;

fn analyzed(datum: &Value) -> Result<Hypothesis, String> {
    let said = text_at(datum, "primary_hypothesis");
    let ratio = expected("expected_benefit", text_at(datum, "expected_benefit"))?;
    let class = text_at(datum, "bottleneck_class");
    let bucket = text_at(datum, "bucket");
    Ok(Hypothesis {
        bucket: Bucket::ALL.into_iter().find(|known| known.name() == bucket),
        bottleneck: class.to_owned(),
        direction: match class {
            "memory" => Direction::Memory,
            "resource" => Direction::Resource,
            "launch" => Direction::Pipeline,
            _ => Direction::Algorithm,
        },
        files: list_at(datum, "planned_modified_files")
            .iter()
            .filter_map(|file| file.as_str().map(str::to_owned))
            .collect(),
        counters: vec![text_at(datum, "verification_signal").to_owned()],
        alternatives: list_at(datum, "rejected_alternatives")
            .iter()
            .filter_map(|idea| Some(one_line(idea.as_str()?, TITLE_CHARS)))
            .collect(),
        ..claim(one_line(said, TITLE_CHARS), said.to_owned(), ratio)
    })
}

fn turned(datum: &Value) -> Result<Hypothesis, String> {
    let pick = text_at(datum, "primary_pick");
    let all = list_at(datum, "new_directions");
    let picked = all.iter().find(|of| text_at(of, "title") == pick);
    let picked = picked.ok_or("primary_pick must be the title of one of new_directions")?;
    let signal = text_at(picked, "expected_signal");
    let ratio = expected("expected_signal", signal)?;
    let others = all.iter().map(|of| text_at(of, "title")).filter(|title| *title != pick);
    Ok(Hypothesis {
        alternatives: others.map(|title| one_line(title, TITLE_CHARS)).collect(),
        direction: Direction::by_name(text_at(picked, "category")).unwrap_or(Direction::Algorithm),
        counters: vec![signal.to_owned()],
        ..claim(one_line(pick, TITLE_CHARS), text_at(picked, "hypothesis").to_owned(), ratio)
    })
}

/// The summary of an answer in the primus contract for a change, or in the hyper-mla contract for
/// a new version; none if it uses neither.
pub fn summary_of(text: &str) -> Option<Result<String, Vec<String>>> {
    if let Some(version) = message_from(text.trim_start(), "## New Version") {
        let said = form_named("hyper-mla/summary").and_then(|form| parse(form, &version));
        return Some(said.map(|datum| version_summary(&datum)));
    }
    object_in(text).ok()?.get("diff_summary")?;
    let said = object_of("primus/optimize", text);
    Some(said.map(|datum| text_at(&datum, "diff_summary").to_owned()))
}

fn version_summary(datum: &Value) -> String {
    let changes = list_at(datum, "changes").iter().filter_map(Value::as_str);
    let changes = changes.collect::<Vec<_>>().join("; ");
    match text_at(datum, "correctness") {
        "FAIL" => format!("{changes} (its author reports that it is not correct)"),
        _ => changes,
    }
}

/// The review of an answer in the primus contract, or everything that is wrong with it.
pub fn review_of(tree: &str, text: &str) -> Result<Review, Vec<String>> {
    let datum = object_of("primus/review", text)?;
    let stance = |signal: ReviewSignal| {
        let said = text_at(&datum["rule_verdicts"], signal.name());
        Some((signal, Stance::by_name(said)?))
    };
    Ok(Review {
        tree: tree.to_owned(),
        advice: ReviewAdvice::by_name(text_at(&datum, "review_verdict")),
        reason: karve_os::text::plain(text_at(&datum, "review_reason")),
        signals: ReviewSignal::ALL.into_iter().filter_map(stance).collect(),
        failed: String::new(),
    })
}

/// The object of an answer, if it matches its form. What an answer says in addition to the message
/// is left out: its cost, and the item that it is about.
fn object_of(name: &str, text: &str) -> Result<Value, Vec<String>> {
    let mut object = object_in(text);
    if let Ok(Value::Object(fields)) = &mut object {
        fields.retain(|name, _| !["usage", "tokens", "usd", "task"].contains(&name.as_str()));
    }
    checked(form_named(name)?, object)
}

fn form_named(name: &str) -> Result<&'static Message, Vec<String>> {
    form(name).map_err(|error| vec![error.to_string()])
}

/// The text of a field; empty if it has none.
fn text_at<'a>(datum: &'a Value, name: &str) -> &'a str {
    datum[name].as_str().unwrap_or_default()
}

/// The entries of a field; none if it is not a list.
fn list_at<'a>(datum: &'a Value, name: &str) -> &'a [Value] {
    datum[name].as_array().map_or(&[], Vec::as_slice)
}

/// A review in the primus contract; none if it failed.
pub fn render_review(review: &Review) -> Option<String> {
    let rules = review.signals.iter().map(|(signal, is)| (signal.name(), is.name()));
    let value = json!({
        "review_reason": review.reason,
        "review_verdict": review.advice?.name(),
        "rule_verdicts": rules.collect::<BTreeMap<_, _>>(),
    });
    let value = checked(form("primus/review").ok()?, Ok(value)).ok()?;
    let text = serde_json::to_string_pretty(&value).ok()?;
    Some(text + "\n")
}
