//! A transcript for people: who said what, line by line, safe for a terminal.

use super::excerpt::MESSAGE_CHARS_MAX;
use super::{Transcript, TranscriptAuthor, TranscriptLine, TurnView};
use crate::ui::style::{Tone, toned};
use karve_os::text::{safe, safe_lines};
use std::fmt::Write;

/// Lines of one message of an agent.
const MESSAGE_LINES_MAX: usize = 40;
/// The kind of an agent that is an arbitrary program: its name says more.
const COMMAND: &str = "command";
/// Columns of a line.
const COLUMNS_MAX: usize = 160;

/// The transcript as text.
pub fn render_transcript(transcript: &Transcript, color: bool) -> String {
    let mut text = String::new();
    for (at, turn) in transcript.turns.iter().enumerate() {
        let head = format!("round {}, turn {}: {}", transcript.round, at + 1, heading(turn));
        let _ = writeln!(text, "{}", toned(&head, Tone::Strong, color));
        render_turn(&mut text, turn, color);
        text.push('\n');
    }
    text
}

/// The task and the agent: its name, with its kind and its model if they add information.
fn heading(turn: &TurnView) -> String {
    let variant = turn.variant.map(|number| format!(" variant {number}"));
    let name = turn.name.as_ref().unwrap_or(&turn.agent);
    let is_kind = turn.agent != *name && turn.agent != COMMAND;
    let kind = is_kind.then(|| safe(&turn.agent, 40));
    let model = turn.model.as_ref().map(|model| safe(model, 60));
    let more: Vec<String> = kind.into_iter().chain(model).collect();
    let more = if more.is_empty() { String::new() } else { format!(" ({})", more.join(", ")) };
    let variant = variant.unwrap_or_default();
    format!("{}{variant} by {}{more}", safe(&turn.task, 20), safe(name, 40))
}

fn render_turn(text: &mut String, turn: &TurnView, color: bool) {
    let title = turn.brief.lines().find(|line| !line.trim().is_empty());
    let title = safe(title.unwrap_or("no brief").trim_start_matches('#'), 80);
    let length = turn.brief.chars().count();
    let brief = format!("{title} ({length} characters)");
    let _ = writeln!(text, "  karve   {}", toned(&brief, Tone::Dim, color));
    for said in &turn.lines {
        render_utterance(text, said, color);
    }
    let mut end = Vec::new();
    end.extend(turn.exit.clone());
    end.extend(turn.failure.clone());
    if !turn.usage.is_none() {
        end.push(format!("{} tokens, ${:.4}", turn.usage.tokens, turn.usage.usd));
    }
    if !end.is_empty() {
        let _ = writeln!(text, "  ended   {}", safe(&end.join("; "), 400));
    }
    let tone = if turn.failure.is_some() { Tone::Bad } else { Tone::Strong };
    let outcome = toned(&safe(&turn.outcome, 400), tone, color);
    let _ = writeln!(text, "  outcome {outcome}");
}

fn render_utterance(text: &mut String, said: &TranscriptLine, color: bool) {
    let (who, tone) = match (said.who, said.failed) {
        (TranscriptAuthor::Agent, _) => ("agent", None),
        (TranscriptAuthor::Call, _) => ("tool", Some(Tone::Dim)),
        (TranscriptAuthor::Result, false) => ("", Some(Tone::Dim)),
        (TranscriptAuthor::Result, true) => ("failed", Some(Tone::Bad)),
        (TranscriptAuthor::Note, _) => ("note", Some(Tone::Dim)),
    };
    let lines = match said.who {
        TranscriptAuthor::Agent => message_lines(&said.text),
        TranscriptAuthor::Call => {
            let tool = said.tool.as_deref().unwrap_or_default();
            vec![safe(&format!("{tool} {}", said.text), COLUMNS_MAX)]
        }
        TranscriptAuthor::Result => vec![format!("-> {}", safe(&said.text, COLUMNS_MAX))],
        TranscriptAuthor::Note => vec![safe(&said.text, COLUMNS_MAX)],
    };
    for (at, line) in lines.iter().enumerate() {
        let who = if at == 0 { who } else { "" };
        let line = match tone {
            Some(tone) => toned(line, tone, color),
            None => line.clone(),
        };
        let _ = writeln!(text, "  {who:<7} {line}");
    }
}

/// A message of an agent: long lines are wrapped, and of many lines those in the middle are left
/// out, because the last ones are the answer.
fn message_lines(text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    for line in safe_lines(text, MESSAGE_CHARS_MAX, MESSAGE_CHARS_MAX) {
        let all: Vec<char> = line.chars().collect();
        let pieces = all.chunks(COLUMNS_MAX).map(|piece| piece.iter().collect());
        lines.extend(pieces);
        if all.is_empty() {
            lines.push(String::new());
        }
    }
    if lines.len() > MESSAGE_LINES_MAX {
        let half = MESSAGE_LINES_MAX / 2;
        let n = lines.len() - 2 * half;
        let mark = format!("… {n} lines …");
        lines.splice(half..half + n, [mark]);
    }
    lines
}
