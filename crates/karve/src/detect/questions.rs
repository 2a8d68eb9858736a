//! The questions of `karve init`, with the proposal as the default answers.

use super::ConfigProposal;
use karve_core::charter::Better;
use karve_harness::commands::output::NAMES;
use karve_os::error::{CommandError, Result};

/// One question with its default answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetupQuestion {
    /// The key for [`apply_answer`].
    pub key: &'static str,
    /// The text of the question.
    pub prompt: String,
    /// The value for an empty answer.
    pub default: String,
}

/// All questions, the most important ones first.
pub fn questions(proposal: &ConfigProposal) -> Vec<SetupQuestion> {
    let ask = |key, prompt: &str, default: &str| SetupQuestion {
        key,
        prompt: prompt.to_owned(),
        default: default.to_owned(),
    };
    let better = match proposal.better {
        Better::Lower => "lower",
        Better::Higher => "higher",
    };
    let build = proposal.build.as_deref().unwrap_or("none");
    vec![
        ask(
            "editable",
            "Which files may be changed (globs, separated by spaces)?",
            &proposal.editable.join(" "),
        ),
        ask("op", "Which operation is it?", &proposal.op),
        ask("backend", "Which backend?", &proposal.backend),
        ask("language", "Which language?", &proposal.language),
        ask("device", "Which device does it run on?", &proposal.device),
        ask("build", "How is it built (\"none\" if it is not)?", build),
        ask(
            "test",
            "Which command exits with 0 if and only if the kernel is correct?",
            &proposal.test,
        ),
        ask("bench", "Which command measures it?", &proposal.bench),
        ask(
            "format",
            &format!("In which format does it print the numbers ({})?", NAMES.join(", ")),
            &proposal.format,
        ),
        ask("metric", "What is the metric called in that output?", &proposal.metric_name),
        ask("unit", "What is its unit?", &proposal.metric_unit),
        ask("better", "Which is better, lower or higher?", better),
        ask("cases", "Which cases (separated by spaces)?", &proposal.cases.join(" ")),
    ]
}

/// Applies an answer; an empty one leaves the proposal unchanged.
pub fn apply_answer(proposal: &mut ConfigProposal, key: &str, answer: &str) -> Result<()> {
    let answer = answer.trim();
    if answer.is_empty() {
        return Ok(());
    }
    let text = answer.to_owned();
    match key {
        "op" => proposal.op = text,
        "backend" => proposal.backend = text,
        "language" => proposal.language = text,
        "device" => proposal.device = text,
        "editable" => proposal.editable = words(answer),
        "build" => proposal.build = (answer != "none").then_some(text),
        "test" => proposal.test = text,
        "bench" => proposal.bench = text,
        "format" => {
            let known = NAMES.contains(&answer);
            proposal.format = one_of(known.then_some(text), key, answer, &NAMES.join(", "))?;
        }
        "metric" => proposal.metric_name = text,
        "unit" => proposal.metric_unit = text,
        "better" => {
            let better = match answer {
                "lower" => Some(Better::Lower),
                "higher" => Some(Better::Higher),
                _ => None,
            };
            proposal.better = one_of(better, key, answer, "lower, higher")?;
        }
        "cases" => proposal.cases = words(answer),
        _ => {
            return Err(CommandError::usage(format!("\"karve init\" does not ask for `{key}`"))
                .hint("edit karve.toml for everything that \"karve init\" does not ask about"));
        }
    }
    Ok(())
}

fn words(answer: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in answer.split_whitespace().map(str::to_owned) {
        if !words.contains(&word) {
            words.push(word);
        }
    }
    words
}

fn one_of<T>(value: Option<T>, key: &str, answer: &str, known: &str) -> Result<T> {
    value.ok_or_else(|| {
        CommandError::usage(format!("`{answer}` is not a valid answer for `{key}`"))
            .hint(format!("\"karve init\" takes one of: {known}"))
    })
}
