//! aider: plain text. It exits with 0 whatever happens; the line with the token counts shows that
//! its model answered.

use super::turn_output::{TurnFailure, TurnOutput, message};
use super::{CliOutputParser, CliSpec, CliTurnRequest};

/// aider as a kind of agent.
pub(super) const SPEC: CliSpec = CliSpec {
    name: "aider",
    title: "aider",
    program: "aider",
    install: "pip install aider-chat",
    variables: &[
        "AIDER_*",
        "OPENAI_*",
        "ANTHROPIC_*",
        "GEMINI_*",
        "GOOGLE_*",
        "OPENROUTER_*",
        "DEEPSEEK_*",
        "MISTRAL_*",
        "OLLAMA_*",
        "AWS_*",
        "AZURE_*",
    ],
    set: &[("LITELLM_LOCAL_MODEL_COST_MAP", "True")],
    homes: &[".aider.conf.yml"],
    home_variables: &[],
    below: "",
    hosts: &[],
    host_variables: &[],
    addresses: |_| Vec::new(),
    speaks: CliOutputParser::Text(read),
    session_events: |_| Vec::new(),
    arguments,
    settings: |_| Vec::new(),
};

fn arguments(ask: &CliTurnRequest<'_>) -> Vec<String> {
    let fixed = [
        "--yes-always",
        "--no-auto-commits",
        "--no-dirty-commits",
        "--no-gitignore",
        "--no-check-update",
        "--analytics-disable",
        "--no-pretty",
        "--no-stream",
        "--no-show-model-warnings",
        "--no-suggest-shell-commands",
        "--chat-mode",
        if ask.task.changes_files() { "code" } else { "ask" },
    ];
    let mut args = fixed.map(str::to_owned).to_vec();
    // Its conversation history stays out of the worktree.
    let notes = ask.brief_file.parent().unwrap_or(ask.brief_file);
    for (flag, name) in
        [("--chat-history-file", "aider.chat"), ("--input-history-file", "aider.input")]
    {
        args.push(flag.to_owned());
        args.push(notes.join(name).to_string_lossy().into_owned());
    }
    if let Some(model) = ask.model {
        args.extend(["--model".to_owned(), model.to_owned()]);
    }
    args.push("--message-file".to_owned());
    args.push(ask.brief_file.to_string_lossy().into_owned());
    args.extend(ask.files.iter().cloned());
    args
}

fn read(heard: &mut TurnOutput, line: &str) {
    let start = line.trim();
    if let Some(counts) = start.strip_prefix("Tokens:") {
        heard.has_ended = true;
        read_counts(heard, counts);
    } else if start.starts_with("litellm.") && start.contains("Error") {
        heard.failure = Some(TurnFailure::Api(message(start)));
    } else {
        heard.append_text(line);
    }
}

/// `1.0k sent, 50 received. Cost: $0.0038 message, $0.0076 session.`
fn read_counts(heard: &mut TurnOutput, counts: &str) {
    let words: Vec<&str> = counts.split_whitespace().collect();
    for pair in words.windows(2) {
        let [amount, what] = pair else { continue };
        match what.trim_end_matches(['.', ',']) {
            "sent" | "received" => {
                let tokens = amount_of(amount).unwrap_or(0.0) as u64;
                heard.usage.tokens = heard.usage.tokens.saturating_add(tokens);
            }
            "message" => {
                heard.usage.usd += amount.strip_prefix('$').and_then(amount_of).unwrap_or(0.0);
            }
            _ => {}
        }
    }
}

/// A number as rounded for display: `50`, `1.2k`, `3.4M`.
fn amount_of(word: &str) -> Option<f64> {
    let word = word.replace(',', "");
    let (digits, unit) = match word.chars().last()? {
        'k' => (&word[..word.len() - 1], 1e3),
        'M' => (&word[..word.len() - 1], 1e6),
        _ => (&word[..], 1.0),
    };
    let amount: f64 = digits.parse().ok()?;
    (amount.is_finite() && amount >= 0.0).then_some(amount * unit)
}
