//! What karve accepts from messages of the published workflows: a hypothesis, a summary, a review.
//! An agent that uses one of them needs no other contract.

use super::{form, object_in, parse, render};
use crate::claim;
use karve_core::hypothesis::{Direction, Hypothesis};
use karve_core::messages::{Datum, Message};
use karve_core::roles::{Review, ReviewAdvice, ReviewSignal, Stance};
use karve_os::text::one_line;

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
    let hypothesis = checked(name, text).and_then(|said| taken(&said).map_err(|fault| vec![fault]));
    Some(hypothesis.map(|hypothesis| Box::new(Hypothesis { task: task_in(&datum), ..hypothesis })))
}

/// The agenda item that an answer names.
fn task_in(datum: &Datum) -> Option<String> {
    datum.get("task")?;
    Some(one_line(datum.str_of("task"), TITLE_CHARS))
}

/// The expected ratio of a text with a percentage, or with a factor such as `1.2x`.
fn ratio_in(text: &str) -> Option<f64> {
    let is_part = |c: char| c.is_ascii_digit() || "+-.".contains(c);
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
        let start = rest[..at].trim_end_matches(['+', '-', '.']).len();
        let end = at + rest[at..].find(|c| !is_part(c)).unwrap_or(rest.len() - at);
        let number: Option<f64> = rest[start..end].trim_end_matches(['-', '.']).parse().ok();
        let after = rest[end..].trim_start();
        match number {
            Some(percent) if after.starts_with('%') && percent.abs() <= GAIN_PCT_MAX => {
                return Some(1.0 + percent / 100.0);
            }
            Some(factor) if after.starts_with(['x', '×']) => return Some(factor),
            _ => rest = &rest[end.max(at + 1)..],
        }
    }
    None
}

fn expected(name: &str, text: &str) -> Result<f64, String> {
    let ratio = ratio_in(text).filter(|ratio| *ratio > 0.0 && *ratio <= 10_000.0);
    ratio.ok_or_else(|| format!("{name} must contain a figure such as +5%"))
}

type HypothesisParser = fn(&Datum) -> Result<Hypothesis, String>;

fn analyzed(datum: &Datum) -> Result<Hypothesis, String> {
    let said = datum.str_of("primary_hypothesis");
    let ratio = expected("expected_benefit", datum.str_of("expected_benefit"))?;
    let class = datum.str_of("bottleneck_class");
    Ok(Hypothesis {
        bottleneck: class.to_owned(),
        direction: match class {
            "memory" => Direction::Memory,
            "resource" => Direction::Resource,
            "launch" => Direction::Pipeline,
            _ => Direction::Algorithm,
        },
        files: datum.texts_of("planned_modified_files"),
        counters: vec![datum.str_of("verification_signal").to_owned()],
        ..claim(one_line(said, TITLE_CHARS), said.to_owned(), ratio)
    })
}

fn turned(datum: &Datum) -> Result<Hypothesis, String> {
    let pick = datum.str_of("primary_pick");
    let all = datum.list_of("new_directions");
    let picked = all.iter().find(|of| of.str_of("title") == pick);
    let picked = picked.ok_or("primary_pick must be the title of one of new_directions")?;
    let signal = picked.str_of("expected_signal");
    let ratio = expected("expected_signal", signal)?;
    Ok(Hypothesis {
        direction: Direction::by_name(picked.str_of("category")).unwrap_or(Direction::Algorithm),
        counters: vec![signal.to_owned()],
        ..claim(one_line(pick, TITLE_CHARS), picked.str_of("hypothesis").to_owned(), ratio)
    })
}

/// The summary of an answer in the primus contract for a change, or in the hyper-mla contract for
/// a new version; none if it uses neither.
pub fn summary_of(text: &str) -> Option<Result<String, Vec<String>>> {
    if text.trim_start().starts_with("## New Version") {
        let said = form_named("hyper-mla/summary").and_then(|form| parse(form, text.trim_start()));
        return Some(said.and_then(|datum| version_summary(&datum)));
    }
    object_in(text).ok()?.get("diff_summary")?;
    let said = checked("primus/optimize", text);
    Some(said.map(|datum| datum.str_of("diff_summary").to_owned()))
}

fn version_summary(datum: &Datum) -> Result<String, Vec<String>> {
    if datum.str_of("correctness") == "FAIL" {
        return Err(vec!["the new version is not correct, by its author's own report".to_owned()]);
    }
    let changes = datum.list_of("changes").iter();
    let line = |of: &Datum| format!("{}: {}", of.str_of("change"), of.str_of("rationale"));
    Ok(changes.map(line).collect::<Vec<_>>().join("; "))
}

/// The review of an answer in the primus contract, or everything that is wrong with it.
pub fn review_of(tree: &str, text: &str) -> Result<Review, Vec<String>> {
    let datum = checked("primus/review", text)?;
    let rules = datum.get("rule_verdicts");
    let stance = |signal: ReviewSignal| {
        let said = rules.map_or("", |rules| rules.str_of(signal.name()));
        Some((signal, Stance::by_name(said)?))
    };
    Ok(Review {
        tree: tree.to_owned(),
        advice: ReviewAdvice::by_name(datum.str_of("review_verdict")),
        reason: datum.str_of("review_reason").to_owned(),
        signals: ReviewSignal::ALL.into_iter().filter_map(stance).collect(),
        failed: String::new(),
    })
}

/// The object of an answer, if it matches its form.
fn checked(name: &str, text: &str) -> Result<Datum, Vec<String>> {
    let datum = object_in(text).map(without_own).map_err(|fault| vec![fault])?;
    match form_named(name)?.check(&datum) {
        faults if faults.is_empty() => Ok(datum),
        faults => Err(faults),
    }
}

fn form_named(name: &str) -> Result<&'static Message, Vec<String>> {
    form(name).map_err(|error| vec![error.to_string()])
}

/// What an answer says in addition to the message: its cost, and the item that it is about.
fn without_own(datum: Datum) -> Datum {
    match datum {
        Datum::Fields(mut fields) => {
            fields.retain(|name, _| !["usage", "tokens", "usd", "task"].contains(&name.as_str()));
            Datum::Fields(fields)
        }
        other => other,
    }
}

/// A review in the primus contract; none if it failed.
pub fn render_review(review: &Review) -> Option<String> {
    let rules = review.signals.iter();
    let rules = rules.map(|(signal, is)| (signal.name().to_owned(), Datum::text(is.name())));
    let datum = Datum::fields([
        ("review_verdict", Datum::text(review.advice?.name())),
        ("review_reason", Datum::text(&review.reason)),
        ("rule_verdicts", Datum::Fields(rules.collect())),
    ]);
    render(form("primus/review").ok()?, &datum).ok()
}
