//! Command-line agents: programs that talk to a model and work in a worktree on their own.
//!
//! One adapter drives all of them. A kind is data: how to start its program, which variables it
//! needs, and how to parse its events. What counts as a failure is decided in one place, `heard`.
//!
//! ```text
//! claude, codex, gemini, opencode, aider   one kind each
//! turn_output the state parsed from a turn's output, and what makes it a failure
//! listen   reads an agent's output as it arrives, in bounded memory
//! changed_files what a turn changed in its worktree
//! turn     one turn: the program is started, read, and ended with all its child processes
//! trial    a small turn, to check whether an agent works here
//! ```

mod aider;
mod changed_files;
mod claude;
mod codex;
mod gemini;
mod listen;
mod opencode;
#[cfg(test)]
mod tests;
mod trial;
mod turn;
pub(super) mod turn_output;

pub use self::trial::{AgentTrial, InstalledProgram, find, run_trial};
pub use self::turn::CliProgram;

use self::turn::{CliTurnContext, CliTurnResult};
use self::turn_output::{TurnFailure, TurnOutput};
use super::secrets::Secrets;
use super::session_event::SessionEvent;
use super::session_log::SessionLog;
use super::turn::{FinishedTurn, TextAgent, TurnEnd, TurnRequest, TurnTask, UsageReport};
use super::{Workspace, notes};
use karve_core::campaign::ImplementStep;
use karve_core::charter::Limits;
use karve_core::spending::AgentUsage;
use karve_os::error::Result;
use karve_os::process::Exit;
use karve_os::sandbox::NetworkAccess;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// The smallest budget passed to a program; the campaign itself stops when everything is spent.
const USD_MIN: f64 = 0.01;

/// A kind of command-line agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CliKind {
    /// Claude Code.
    Claude,
    /// Codex.
    Codex,
    /// Gemini CLI.
    Gemini,
    /// opencode.
    Opencode,
    /// aider.
    Aider,
}

/// A command-line agent of a known kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CliConfig {
    /// Its kind.
    pub kind: CliKind,
    /// Its program, if it is not the usual one.
    pub program: Option<String>,
    /// The model it should use.
    pub model: Option<String>,
    /// Further arguments.
    pub args: Vec<String>,
}

impl CliKind {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Claude, Self::Codex, Self::Gemini, Self::Opencode, Self::Aider];

    /// The kind with a name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Its name in `karve.toml` and for `--agent`.
    pub fn name(self) -> &'static str {
        self.spec().name
    }

    /// Its display name.
    pub fn title(self) -> &'static str {
        self.spec().title
    }

    /// The program that is looked for on the `PATH`.
    pub fn program(self) -> &'static str {
        self.spec().program
    }

    /// How to install it.
    pub fn install(self) -> &'static str {
        self.spec().install
    }

    fn spec(self) -> &'static CliSpec {
        match self {
            Self::Claude => &claude::SPEC,
            Self::Codex => &codex::SPEC,
            Self::Gemini => &gemini::SPEC,
            Self::Opencode => &opencode::SPEC,
            Self::Aider => &aider::SPEC,
        }
    }
}

/// Parses a line of an agent's output for display; an unknown kind is treated as text.
pub fn parse_session_line(agent: &str, line: &[u8]) -> Vec<SessionEvent> {
    let more = || vec![SessionEvent::TextMore(String::from_utf8_lossy(line).into_owned())];
    let Some(spec) = CliKind::by_name(agent).map(CliKind::spec) else {
        return more();
    };
    match (spec.speaks, serde_json::from_slice::<Value>(line)) {
        (CliOutputParser::Events(_), Ok(event)) => (spec.session_events)(&event),
        (CliOutputParser::Events(_), Err(_)) | (CliOutputParser::Text(_), _) => more(),
    }
}

/// A kind as data.
struct CliSpec {
    name: &'static str,
    title: &'static str,
    program: &'static str,
    install: &'static str,
    /// Environment variables that are passed to it; a star matches any suffix.
    variables: &'static [&'static str],
    /// Variables that are set for it.
    set: &'static [(&'static str, &'static str)],
    /// Where in the user's home it keeps its credentials and configuration.
    homes: &'static [&'static str],
    /// Variables that point it to another directory.
    home_variables: &'static [&'static str],
    /// Its own subdirectory in the directories that those name.
    below: &'static str,
    /// The hosts of its model, each with the variable that enables it, if any; empty if they depend
    /// on its configuration.
    hosts: &'static [(&'static str, &'static str)],
    /// Variables that point it to another model server.
    host_variables: &'static [&'static str],
    /// Other hosts that its own files in a directory name.
    addresses: fn(&Path) -> Vec<String>,
    speaks: CliOutputParser,
    /// Parses an event for display.
    session_events: fn(&Value) -> Vec<SessionEvent>,
    /// Its command line for a turn.
    arguments: fn(&CliTurnRequest<'_>) -> Vec<String>,
    /// Variables that set its permissions in a turn.
    settings: fn(&CliTurnRequest<'_>) -> Vec<(String, String)>,
}

/// What it prints.
#[derive(Clone, Copy)]
enum CliOutputParser {
    /// One JSON object on each line.
    Events(fn(&mut TurnOutput, &Value)),
    /// Plain text.
    Text(fn(&mut TurnOutput, &str)),
}

/// What a kind needs to build its command line for a turn.
struct CliTurnRequest<'a> {
    task: TurnTask,
    model: Option<&'a str>,
    /// The conversation to resume.
    session: Option<&'a str>,
    /// What it has used so far.
    used_before: AgentUsage,
    /// Whether karve confines the program.
    confined: bool,
    /// What it may still cost.
    usd_left: Option<f64>,
    /// How long it may take, in seconds.
    limit_s: u64,
    /// The editable files that are named without globs.
    files: &'a [String],
    brief_file: &'a Path,
}

impl CliTurnRequest<'_> {
    /// A command line: its fixed words, then the options for the model and for the conversation to
    /// resume, if they are needed.
    fn words(&self, fixed: &[&str], model: &str, session: &str) -> Vec<String> {
        let model = self.model.map(|name| [model, name]);
        let session = self.session.map(|id| [session, id]);
        let options = model.into_iter().chain(session).flatten();
        fixed.iter().copied().chain(options).map(str::to_owned).collect()
    }
}

/// A conversation within a round.
#[derive(Debug)]
struct CliConversation {
    /// The round, and which of several implementations.
    of: (u32, u32),
    session: String,
    /// The usage of the conversation so far, if only that is reported.
    used: AgentUsage,
}

/// A command-line agent.
#[derive(Debug)]
pub struct CliAgent {
    caller: CliProgram,
    conversation: Option<CliConversation>,
    usd_max: Option<f64>,
    /// Whether it is asked what a round taught.
    learns: bool,
}

impl CliAgent {
    /// The agent of a configuration, with its budget.
    pub fn new(
        config: CliConfig,
        env: BTreeMap<String, String>,
        limits: &Limits,
        tag: String,
    ) -> Result<Self> {
        let caller = CliProgram::new(config, env, limits.agent_s, tag)?;
        Ok(Self { caller, conversation: None, usd_max: limits.agent_usd, learns: false })
    }

    /// The same, with the hosts it may reach.
    #[must_use]
    pub fn reaching(mut self, reach: NetworkAccess) -> Self {
        self.caller.reach = reach;
        self
    }

    /// The same, asked or not what a round taught.
    #[must_use]
    pub fn learning(mut self, learns: bool) -> Self {
        self.learns = learns;
        self
    }

    /// What may still be spent, given what the campaign has used. A program that resumes a
    /// conversation counts all of it.
    fn usd_left(&self, spent: AgentUsage, talk: Option<&CliConversation>) -> Option<f64> {
        let counted = talk.map_or(0.0, |talk| talk.used.usd);
        let left = self.usd_max? - spent.usd + counted;
        Some(left.max(USD_MIN))
    }
}

impl TextAgent for CliAgent {
    const ANSWER_TO: &'static str = "as your last message, in one fenced `json` block";

    /// One turn, in the conversation of its round if there is one.
    fn run_turn(
        &mut self,
        request: TurnRequest<'_>,
        workspace: &Workspace<'_>,
    ) -> Result<FinishedTurn> {
        let (task, of) = (request.task, (request.round, request.variant));
        let place = CliTurnContext::of(workspace);
        let files = plain_files(request.editable, workspace.tree);
        let mut session = self.conversation.take().filter(|talk| talk.of == of);
        loop {
            let ask = CliTurnRequest {
                task,
                model: self.caller.model(),
                session: session.as_ref().map(|talk| talk.session.as_str()),
                used_before: session.as_ref().map(|talk| talk.used).unwrap_or_default(),
                confined: workspace.sandbox.is_some(),
                usd_left: self.usd_left(workspace.spent, session.as_ref()),
                limit_s: self.caller.limit_s(task),
                files: &files,
                brief_file: &place.brief_file(),
            };
            let CliTurnResult { output: heard, failure: mut fault, conversation_used: used } =
                turn::run(&self.caller, &ask, request.brief, &place)?;
            // Some programs lose a conversation; then a new one is started, once.
            let is_lost =
                fault.as_ref().is_some_and(TurnFailure::is_of_start) && heard.never_asked_model();
            if is_lost && session.take().is_some() {
                continue;
            }
            self.conversation =
                heard.session.clone().map(|session| CliConversation { of, session, used });
            if fault.is_none() && task.changes_files() {
                fault = turn::examine(&heard, &place);
            } else if fault.is_none() && heard.text.trim().is_empty() {
                fault = Some(match heard.denied.as_slice() {
                    [] => TurnFailure::NoOutput,
                    denied => TurnFailure::Denied(denied.to_vec()),
                });
            }
            return Ok(FinishedTurn {
                ended: match fault {
                    Some(fault) => TurnEnd::Failed(fault.describe()),
                    None => TurnEnd::Replied(heard.text),
                },
                used: UsageReport::Counted(heard.usage),
            });
        }
    }

    fn prepare(&self, step: &ImplementStep, workspace: &Workspace<'_>) -> Result<()> {
        // Without a home it keeps its conversations there.
        notes::clear(workspace.notes, step, &[turn::STATE])
    }

    fn is_asked_for_lessons(&self) -> bool {
        self.learns
    }

    fn over_budget(&self, spent: AgentUsage) -> Option<String> {
        let usd = self.usd_max.filter(|usd| spent.usd >= *usd)?;
        Some(format!("budget: all of ${usd:.4} (limits.agent_usd) is spent"))
    }
}

/// Editable files that are named without globs and exist; programs cannot use the other patterns.
fn plain_files(editable: &[String], tree: &Path) -> Vec<String> {
    let named = editable.iter().filter(|name| tree.join(name).is_file());
    named.cloned().collect()
}

/// For the fuzzing tests: whether bytes are the output of a complete turn; `log` is written.
#[doc(hidden)]
pub fn reads_output(kind: CliKind, bytes: &[u8], log: &Path) -> Result<bool> {
    let secrets = Secrets::default();
    let log = SessionLog::open(log, &secrets)?;
    let mut listener = listen::OutputListener::new(kind.spec(), &secrets, log);
    // Output arrives in pieces.
    let more = bytes.chunks(1_000).all(|piece| listener.push(piece));
    let (mut output, _) = listener.finish()?;
    output.settle(AgentUsage::default());
    Ok(more && output.judge(Exit::Code(0), "", 1).is_none())
}
