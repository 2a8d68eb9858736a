//! Transcripts: the conversation between karve and an agent in a round, from the session logs that
//! its events name, in bounded memory.

mod excerpt;
mod outcome;
mod text;

pub use self::text::render_transcript;

use self::excerpt::TurnExcerpt;
use karve_agents::api::SessionLogReader;
use karve_agents::cli::{CliKind, parse_session_line};
use karve_agents::session_event::SessionEvent;
use karve_core::campaign::Record;
use karve_core::spending::AgentUsage;
use karve_harness::store::{self, CampaignDir};
use karve_os::error::{CommandError, Result, WithContext};
use karve_os::files;
use serde::Serialize;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};

/// Characters of a brief.
const BRIEF_CHARS_MAX: usize = 24_000;
/// A line of a session log is read up to this size; a longer one is left out.
const LINE_BYTES_MAX: u64 = 4 << 20;
/// A session log is read up to this size. Agents write no longer ones.
const LOG_BYTES_MAX: u64 = 260 << 20;

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
    /// The task: propose, implement, repair, review or learn.
    pub task: String,
    /// The kind of agent: one of the known kinds, `command` or `external`.
    pub agent: String,
    /// The name of that agent, if the log has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Which of several implementations, from 1, if there were several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variant: Option<u32>,
    /// The model, if one was named.
    pub model: Option<String>,
    /// The brief.
    pub brief: String,
    /// The messages, in order.
    pub lines: Vec<TranscriptLine>,
    /// Messages in the middle that are not shown.
    pub left_out: usize,
    /// How its program ended.
    pub exit: Option<String>,
    /// Why it failed, if so.
    pub failure: Option<String>,
    /// The outcome, in words.
    pub outcome: String,
    /// What it used.
    pub usage: AgentUsage,
    /// The artifact.
    pub session_log: String,
}

/// One message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TranscriptLine {
    /// Its author.
    pub who: TranscriptAuthor,
    /// The tool, if one was called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The text.
    pub text: String,
    /// Whether a tool failed.
    pub failed: bool,
}

/// The author of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TranscriptAuthor {
    /// The agent, as text.
    Agent,
    /// The agent, as a tool call.
    Call,
    /// A tool's output.
    Result,
    /// The program that runs the agent.
    Note,
}

/// The artifacts with the session logs of a round.
pub fn session_logs(records: &[Record], round: u32) -> Vec<String> {
    let turns = outcome::turns_of(records, round).into_iter();
    turns.map(|reported| reported.session_log.to_owned()).collect()
}

/// Reads the transcript of a round.
pub fn read(dir: &CampaignDir, records: &[Record], round: u32) -> Result<Transcript> {
    let mut turns = Vec::new();
    for reported in outcome::turns_of(records, round) {
        let mut turn = read_turn(dir, reported.session_log)?;
        turn.name = reported.by;
        turn.variant = reported.variant;
        turn.outcome = reported.outcome;
        turn.usage = reported.usage;
        turns.push(turn);
    }
    match turns.is_empty() {
        false => Ok(Transcript { round, turns }),
        true => Err(CommandError::usage(format!("there is no session log for round {round}"))
            .hint("the built-in strategy and recordings have no session log; see docs/agents.md")
            .hint("\"karve log\" lists the rounds")),
    }
}

/// The turn in a session log.
pub fn read_turn(dir: &CampaignDir, hash: &str) -> Result<TurnView> {
    let path = store::artifact_path(dir, hash)?;
    let cannot = || format!("cannot read {}", path.display());
    let file = files::open(&path)
        .context(cannot)
        .map_err(|error| error.hint("see what else is missing with \"karve verify\""))?;
    let mut reader = BufReader::new(file.take(LOG_BYTES_MAX));
    let mut reading = TurnReader::default();
    let mut line = Vec::new();
    let mut place = LinePosition::First;
    loop {
        line.clear();
        let n = (&mut reader).take(LINE_BYTES_MAX).read_until(b'\n', &mut line).context(cannot)?;
        if n == 0 {
            break;
        }
        if n as u64 == LINE_BYTES_MAX && line.last() != Some(&b'\n') {
            reader.skip_until(b'\n').context(cannot)?;
            let note = "a line that is too long to show".to_owned();
            reading.excerpt.push(SessionEvent::Note(note));
            continue;
        }
        let is_end = reader.fill_buf().is_ok_and(<[u8]>::is_empty);
        // Where a log is cut off, the line is not karve's.
        if is_end && reader.get_ref().limit() > 0 && place != LinePosition::First {
            place = LinePosition::Last;
        }
        reading.take(place, &line);
        place = LinePosition::Between;
    }
    if reader.get_ref().limit() == 0 {
        let note = "the rest of the log is too long to show".to_owned();
        reading.excerpt.push(SessionEvent::Note(note));
    }
    let mut turn = reading.finish();
    turn.session_log = hash.to_owned();
    Ok(turn)
}

/// The position of a line in a session log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LinePosition {
    First,
    Between,
    Last,
}

/// A session log that is read line by line.
#[derive(Debug, Default)]
struct TurnReader {
    turn: TurnView,
    excerpt: TurnExcerpt,
    /// Assembles the answers of a model API.
    log_reader: Option<SessionLogReader>,
}

impl TurnReader {
    /// The first line and the last are karve's. Those between are either the output of a
    /// command-line agent, which may pretend to be anything, or the events of a model API mixed
    /// with karve's notes; for all other agents karve writes every line.
    fn take(&mut self, place: LinePosition, line: &[u8]) {
        let own = match place {
            LinePosition::Between if CliKind::by_name(&self.turn.agent).is_some() => None,
            LinePosition::First | LinePosition::Between | LinePosition::Last => {
                serde_json::from_slice(line).ok()
            }
        };
        let own: Value = own.unwrap_or_default();
        let word = |key: &str| own.get(key).and_then(Value::as_str).map(str::to_owned);
        let text = || word("text").unwrap_or_default();
        match (place, word("karve").unwrap_or_default().as_str()) {
            (LinePosition::First, "brief") => self.begin(&own),
            (LinePosition::Last, "end") => {
                self.flush_rest();
                self.turn.exit = word("exit");
                self.turn.failure = word("fault");
                let complaint = word("stderr").filter(|text| !text.is_empty());
                if let Some(complaint) = complaint.filter(|_| self.turn.failure.is_some()) {
                    self.excerpt.push(SessionEvent::Note(complaint));
                }
            }
            (_, name) => match (&mut self.log_reader, name) {
                (Some(telling), _) => {
                    let reported = telling.take(line);
                    reported.into_iter().for_each(|reported| self.excerpt.push(reported));
                }
                (None, "answer" | "says") => self.excerpt.push(SessionEvent::Text(text())),
                (None, "call") => self.excerpt.push(SessionEvent::ToolCall {
                    tool: word("tool").unwrap_or_default(),
                    with: word("with").unwrap_or_default(),
                }),
                (None, "gives") => self.excerpt.push(SessionEvent::ToolOutput {
                    text: text(),
                    failed: own.get("failed").and_then(Value::as_bool) == Some(true),
                }),
                (None, _) => parse_session_line(&self.turn.agent, line)
                    .into_iter()
                    .for_each(|reported| self.excerpt.push(reported)),
            },
        }
    }

    fn begin(&mut self, own: &Value) {
        let word = |key: &str| own.get(key).and_then(Value::as_str).map(str::to_owned);
        self.turn.task = word("task").unwrap_or_default();
        self.turn.agent = word("agent").unwrap_or_default();
        self.turn.model = word("model");
        let brief = word("brief").unwrap_or_default();
        self.turn.brief = brief.chars().take(BRIEF_CHARS_MAX).collect();
        self.log_reader = SessionLogReader::of(&self.turn.agent);
    }

    fn flush_rest(&mut self) {
        let reported = self.log_reader.as_mut().map(SessionLogReader::rest);
        let reported = reported.into_iter().flatten();
        reported.for_each(|reported| self.excerpt.push(reported));
    }

    fn finish(mut self) -> TurnView {
        // A truncated log has no last line.
        self.flush_rest();
        self.turn.left_out = self.excerpt.left_out();
        self.turn.lines = self.excerpt.finish();
        self.turn
    }
}

#[cfg(test)]
mod tests;
