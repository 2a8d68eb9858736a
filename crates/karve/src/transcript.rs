//! Transcripts: what was said between karve and an agent in a round, from the artifacts that its
//! events name, in bounded memory.

mod text;

pub use self::text::render_transcript;

use crate::agents::cli::{Kind, told_of};
use crate::agents::told::Told;
use crate::error::{CommandError, Context, Result};
use crate::plain_file;
use crate::store::CampaignDir;
use karve_core::campaign::{Event, Record, Refusal, Usage};
use karve_core::knowledge::Lesson;
use serde::Serialize;
use serde_json::Value;
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read};

/// Utterances of one turn that are kept from its beginning.
const FIRST_MAX: usize = 60;
/// Utterances that are kept from its end.
const LAST_MAX: usize = 140;
/// Characters of what an agent says at once.
const SAID_CHARS_MAX: usize = 4_000;
/// Characters of what goes to a tool, or comes from it.
const TOOL_CHARS_MAX: usize = 600;
/// Characters of a brief.
const BRIEF_CHARS_MAX: usize = 24_000;
/// A line of an exchange is read up to this size; a longer one is left out.
const LINE_BYTES_MAX: u64 = 4 << 20;

/// All turns of a round.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Transcript {
    /// The round.
    pub round: u32,
    /// The turns, in order.
    pub turns: Vec<TurnView>,
}

/// One turn.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TurnView {
    /// What was asked for: propose, implement or mend.
    pub task: String,
    /// Who was asked: a kind of agent, `command` or `visitor`.
    pub agent: String,
    /// The model, if one was named.
    pub model: Option<String>,
    /// What was asked.
    pub brief: String,
    /// What was said, in order.
    pub said: Vec<Utterance>,
    /// Utterances in the middle that are not shown.
    pub left_out: usize,
    /// How its program ended.
    pub exit: Option<String>,
    /// Why it gave nothing, if so.
    pub fault: Option<String>,
    /// What came of it, in words.
    pub outcome: String,
    /// What it used.
    pub usage: Usage,
    /// The artifact.
    pub exchange: String,
}

/// One thing that was said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Utterance {
    /// Who said it.
    pub who: Who,
    /// The tool, where one was used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// What was said.
    pub text: String,
    /// Whether a tool failed.
    pub failed: bool,
}

/// Who said something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Who {
    /// The agent, in words.
    Agent,
    /// The agent, to a tool.
    Call,
    /// A tool.
    Result,
    /// The program around it.
    Note,
}

/// The artifacts with what was said in a round.
pub fn exchanges(records: &[Record], round: u32) -> Vec<String> {
    let of_round = records
        .iter()
        .filter(|record| round_of(&record.event) == Some(round));
    let named = of_round.filter_map(|record| record.event.exchange());
    named.map(str::to_owned).collect()
}

/// Reads the transcript of a round.
pub fn read(dir: &CampaignDir, records: &[Record], round: u32) -> Result<Transcript> {
    let mut turns = Vec::new();
    for record in records {
        let event = &record.event;
        let (Some(hash), true) = (event.exchange(), round_of(event) == Some(round)) else {
            continue;
        };
        let mut turn = read_turn(dir, hash)?;
        (turn.outcome, turn.usage) = outcome(event);
        turns.push(turn);
    }
    match turns.is_empty() {
        false => Ok(Transcript { round, turns }),
        true => Err(CommandError::usage(format!(
            "nothing was written down of what was said in round {round}"
        ))
        .hint("the built-in strategy and recordings say nothing; see docs/agents.md")
        .hint("\"karve log\" lists the rounds")),
    }
}

fn round_of(event: &Event) -> Option<u32> {
    match event {
        Event::Proposed { round, .. }
        | Event::ProposalRefused { round, .. }
        | Event::Implemented { round, .. }
        | Event::NotImplemented { round, .. }
        | Event::Reviewed { round, .. }
        | Event::Learnt { round, .. } => Some(*round),
        _ => None,
    }
}

/// What came of a turn, and what it used.
fn outcome(event: &Event) -> (String, Usage) {
    match event {
        Event::Proposed {
            hypothesis, usage, ..
        } => {
            let expected = hypothesis.expected_ratio;
            let told = format!("stated \"{}\", expects {expected:.3}x", hypothesis.title);
            (told, *usage)
        }
        Event::ProposalRefused { refusal, usage, .. } => {
            let told = match refusal {
                Refusal::Unreadable { errors } => format!("refused: {}", errors.join("; ")),
                Refusal::AgentFailed { why } => format!("failed: {why}"),
                Refusal::Exhausted { why } => format!("nothing left to try: {why}"),
            };
            (told, *usage)
        }
        Event::Implemented {
            candidate, usage, ..
        } => {
            let told = match (
                candidate.files.as_slice(),
                candidate.out_of_scope.as_slice(),
            ) {
                ([], []) => "changed nothing".to_owned(),
                (files, []) => format!("changed {}", files.join(", ")),
                (_, strays) => format!("changed protected files: {}", strays.join(", ")),
            };
            (told, *usage)
        }
        Event::NotImplemented { why, usage, .. } => (format!("no change: {why}"), *usage),
        Event::Reviewed { review, usage, .. } => (review.describe(), *usage),
        Event::Learnt { lesson, usage, .. } => (taught(lesson), *usage),
        _ => (String::new(), Usage::default()),
    }
}

/// What was said about a round.
fn taught(lesson: &Lesson) -> String {
    let learning = lesson.learning.as_ref();
    match learning.map(|learning| (learning.words.is_empty(), learning.unsaid.as_str())) {
        Some((false, _)) => "said what the round taught".to_owned(),
        Some((true, "")) | None => "said nothing about the round".to_owned(),
        Some((true, why)) => format!("said nothing about the round: {why}"),
    }
}

fn read_turn(dir: &CampaignDir, hash: &str) -> Result<TurnView> {
    // The log is data: a name that is no hash leads elsewhere.
    let is_hash = hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !is_hash {
        return Err(
            CommandError::environment(format!("{hash:?} is no name of an artifact"))
                .hint("see what else is damaged with \"karve verify\""),
        );
    }
    let path = dir.join("artifacts").join(hash);
    let cannot = || format!("cannot read {}", path.display());
    let file = plain_file::open(&path)
        .context(cannot)
        .map_err(|error| error.hint("see what else is lost with \"karve verify\""))?;
    let mut reader = BufReader::new(file);
    let mut kept = Kept::default();
    let mut turn = TurnView {
        exchange: hash.to_owned(),
        ..TurnView::default()
    };
    let mut line = Vec::new();
    let mut place = Place::First;
    loop {
        line.clear();
        let n = (&mut reader)
            .take(LINE_BYTES_MAX)
            .read_until(b'\n', &mut line)
            .context(cannot)?;
        if n == 0 {
            break;
        }
        if n as u64 == LINE_BYTES_MAX && line.last() != Some(&b'\n') {
            reader.skip_until(b'\n').context(cannot)?;
            kept.push(Told::Notes(
                "a line that is too long to be shown".to_owned(),
            ));
            continue;
        }
        if reader.fill_buf().is_ok_and(<[u8]>::is_empty) && place != Place::First {
            place = Place::Last;
        }
        take_line(&mut turn, &mut kept, (place, &line));
        place = Place::Between;
    }
    turn.left_out = kept.left_out;
    turn.said = kept.finish();
    Ok(turn)
}

/// Where a line of an exchange stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    First,
    Between,
    Last,
}

/// The first line and the last are karve's. Those between are as a command-line agent printed
/// them, and may pretend to be anything; all other agents have theirs written down by karve.
fn take_line(turn: &mut TurnView, kept: &mut Kept, (place, line): (Place, &[u8])) {
    let is_quoted = Kind::by_name(&turn.agent).is_some();
    let own = match place {
        Place::Between if is_quoted => None,
        Place::First | Place::Between | Place::Last => serde_json::from_slice::<Value>(line).ok(),
    };
    let own = own.unwrap_or_default();
    let word = |key: &str| own.get(key).and_then(Value::as_str).map(str::to_owned);
    let text = || word("text").unwrap_or_default();
    match (place, word("karve").unwrap_or_default().as_str()) {
        (Place::First, "brief") => {
            turn.task = word("task").unwrap_or_default();
            turn.agent = word("agent").unwrap_or_default();
            turn.model = word("model");
            let brief = word("brief").unwrap_or_default();
            turn.brief = brief.chars().take(BRIEF_CHARS_MAX).collect();
        }
        (Place::Last, "end") => {
            turn.exit = word("exit");
            turn.fault = word("fault");
            let complaint = word("stderr").filter(|text| !text.is_empty());
            if let Some(complaint) = complaint.filter(|_| turn.fault.is_some()) {
                kept.push(Told::Notes(complaint));
            }
        }
        (_, "answer" | "says") => kept.push(Told::Says(text())),
        (_, "call") => kept.push(Told::Calls {
            tool: word("tool").unwrap_or_default(),
            with: word("with").unwrap_or_default(),
        }),
        (_, "gives") => kept.push(Told::Gives {
            text: text(),
            failed: own.get("failed").and_then(Value::as_bool) == Some(true),
        }),
        _ => told_of(&turn.agent, line)
            .into_iter()
            .for_each(|told| kept.push(told)),
    }
}

/// What is kept of what was said: the beginning and the end.
#[derive(Debug, Default)]
struct Kept {
    first: Vec<Utterance>,
    last: VecDeque<Utterance>,
    left_out: usize,
}

impl Kept {
    fn push(&mut self, told: Told) {
        let (who, tool, text, failed) = match told {
            Told::More(text) => match self.latest() {
                Some(latest) if latest.who == Who::Agent => {
                    let room = SAID_CHARS_MAX.saturating_sub(latest.text.chars().count());
                    latest.text.extend(text.chars().take(room));
                    return;
                }
                _ => (Who::Agent, None, text, false),
            },
            Told::Says(text) => (Who::Agent, None, text, false),
            Told::Calls { tool, with } => (Who::Call, Some(tool), with, false),
            Told::Gives { text, failed } => (Who::Result, None, text, failed),
            Told::Notes(text) => (Who::Note, None, text, false),
        };
        let is_said = |latest: &mut Utterance| latest.who == who && latest.text == text;
        let is_again = who == Who::Agent && self.latest().is_some_and(is_said);
        if is_again || text.trim().is_empty() && matches!(who, Who::Agent | Who::Note) {
            return;
        }
        let most = match who {
            Who::Agent => SAID_CHARS_MAX,
            Who::Call | Who::Result | Who::Note => TOOL_CHARS_MAX,
        };
        let utterance = Utterance {
            who,
            tool: tool.map(|tool| cut(&tool, 100)),
            text: cut(&text, most),
            failed,
        };
        if self.first.len() < FIRST_MAX {
            self.first.push(utterance);
            return;
        }
        self.last.push_back(utterance);
        if self.last.len() > LAST_MAX {
            self.last.pop_front();
            self.left_out += 1;
        }
    }

    fn latest(&mut self) -> Option<&mut Utterance> {
        match self.last.is_empty() {
            true => self.first.last_mut(),
            false => self.last.back_mut(),
        }
    }

    fn finish(mut self) -> Vec<Utterance> {
        if self.left_out > 0 {
            let count = self.left_out;
            self.first.push(Utterance {
                who: Who::Note,
                tool: None,
                text: format!("{count} more were said here"),
                failed: false,
            });
        }
        self.first.extend(self.last);
        self.first
    }
}

fn cut(text: &str, chars_max: usize) -> String {
    let mut out: String = text.chars().take(chars_max).collect();
    if out.len() < text.len() {
        out.push('…');
    }
    out
}

#[cfg(test)]
mod tests;
