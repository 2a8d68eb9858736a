//! Any program as an agent: it gets a brief, works in its worktree and answers in a contract.
//!
//! The program is started once to propose and once to implement, in a fresh worktree at the
//! parent. The brief is on its standard input and in the file that `KARVE_BRIEF` names;
//! `KARVE_TASK` is `propose`, `implement`, `repair`, `review`, `profile` or `learn`. The answer
//! is what it
//! writes to the file that `KARVE_ANSWER` names, or else its standard output. See docs/agents.md.

mod own;

pub use self::own::lacking;

use super::secrets::{Secrets, is_key_name};
use super::session_log::TurnPrompt;
use super::turn::{FinishedTurn, TextAgent, TurnEnd, TurnRequest, UsageReport};
use super::{Workspace, notes, session_log};
use karve_core::campaign::ImplementStep;
use karve_os::error::{Result, WithContext};
use karve_os::process::{Command, CommandOutcome, Exit, excerpt};
use karve_os::sandbox::{AgentPaths, Gateway, NetworkAccess};
use karve_os::{files, process, sandbox};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// An answer is read up to this size.
const ANSWER_BYTES_MAX: usize = 1 << 20;

/// At most this many withheld variables are named.
const WITHHELD_NAMED_MAX: usize = 4;

/// An external program.
#[derive(Debug)]
pub struct CommandAgent {
    line: String,
    env: BTreeMap<String, String>,
    limit_s: u64,
    tag: String,
    secrets: Secrets,
    /// Names of variables with keys that are passed to it.
    pass: Vec<String>,
    /// Whether it is asked what a round taught.
    learns: bool,
    /// The hosts it may reach.
    reach: NetworkAccess,
}

impl CommandAgent {
    /// A command line, with additions to its environment and its time limit.
    pub fn new(line: String, env: BTreeMap<String, String>, limit_s: u64, tag: String) -> Self {
        Self {
            secrets: Secrets::of(&env),
            line,
            env,
            limit_s,
            tag,
            pass: Vec::new(),
            learns: false,
            reach: NetworkAccess::Usual,
        }
    }

    /// The same, with the hosts it may reach.
    #[must_use]
    pub fn reaching(mut self, reach: NetworkAccess) -> Self {
        self.reach = reach;
        self
    }

    /// The same, with variables that hold keys.
    #[must_use]
    pub fn passing(mut self, pass: Vec<String>) -> Self {
        self.pass = pass;
        self
    }

    /// The same, asked or not what a round taught.
    #[must_use]
    pub fn learning(mut self, learns: bool) -> Self {
        self.learns = learns;
        self
    }

    /// karve's environment variables with keys: those passed to it, and the names of the others.
    fn keys(&self, workspace: &Workspace<'_>) -> (Vec<(String, String)>, Vec<String>) {
        let own: Vec<&str> = self.pass.iter().map(String::as_str).collect();
        let passed = sandbox::variables_of_agent(workspace.sandbox, &own);
        let mut all: Vec<(String, String)> = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .filter(|(name, _)| is_key_name(name))
            .collect();
        all.sort();
        let (given, kept): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|(name, _)| passed.pass(name));
        (given, kept.into_iter().map(|(name, _)| name).collect())
    }

    /// A confined command, with its network gateway if it has one.
    fn confine(
        &self,
        mut command: Command,
        workspace: &Workspace<'_>,
    ) -> Result<(Command, Option<Gateway>)> {
        let Some(sandbox) = workspace.sandbox else {
            return Ok((command, None));
        };
        // Its own script may be in a home or temporary directory, which the sandbox hides.
        let mut own = own::files(&self.line, sandbox);
        own.extend(workspace.exec.iter().flat_map(|exec| exec.shown()));
        let places = AgentPaths {
            read: &own,
            hosts: match &self.reach {
                NetworkAccess::Only(hosts) => Some(hosts),
                NetworkAccess::Usual | NetworkAccess::All => None,
            },
            ..AgentPaths::of(workspace.tree, workspace.notes)
        };
        let (confined, gateway) = sandbox.confine_agent(&places)?;
        command = command.confined(&confined);
        for (name, value) in gateway.iter().flat_map(Gateway::variables) {
            command = command.env(name, value);
        }
        Ok((command, gateway))
    }
}

impl TextAgent for CommandAgent {
    const ANSWER_TO: &'static str = "on standard output or in the file named by KARVE_ANSWER";

    fn run_turn(
        &mut self,
        request: TurnRequest<'_>,
        workspace: &Workspace<'_>,
    ) -> Result<FinishedTurn> {
        let TurnRequest { task, brief, .. } = request;
        let cannot = || format!("cannot write to {}", workspace.notes.display());
        fs::create_dir_all(workspace.notes).context(cannot)?;
        let brief_path = workspace.notes.join("brief.md");
        let answer_path = workspace.notes.join("answer");
        fs::write(&brief_path, brief).context(cannot)?;
        let _ = fs::remove_file(&answer_path);
        let limit_s = task.limit_s(self.limit_s);
        let mut command = Command::shell(&self.line, workspace.tree)
            .limit(Duration::from_secs(limit_s))
            .tag(&self.tag)
            .capture_bytes(ANSWER_BYTES_MAX)
            .stdin(brief.as_bytes())
            .env("KARVE_TASK", task.name())
            .env("KARVE_VARIANT", request.variant.saturating_add(1).to_string())
            .env("KARVE_BRIEF", brief_path.to_string_lossy())
            .env("KARVE_ANSWER", answer_path.to_string_lossy());
        for (name, value) in workspace.exec.iter().flat_map(|exec| exec.variables()) {
            command = command.env(name, value);
        }
        let (given, kept) = self.keys(workspace);
        for name in &kept {
            command = command.env_remove(name);
        }
        for (name, value) in given.into_iter().chain(self.env.clone()) {
            command = command.env(name, value);
        }
        // Kept until the program has ended.
        let (command, gateway) = self.confine(command, workspace)?;
        let run = process::run(&command, workspace.stop)?;
        drop(gateway);
        let ended = match run.exit {
            Exit::Code(0) => read_answer(&answer_path, &run),
            Exit::TimedOut => Err(format!("the agent ran for more than {limit_s} s")),
            Exit::Code(_) | Exit::Signal(_) | Exit::Stopped | Exit::TooMuch(_) => {
                let unseen = workspace.sandbox.map(|sandbox| own::unseen(&self.line, sandbox));
                Err(why_failed(&run, &kept, unseen.unwrap_or_default()))
            }
        };
        // The answer is stored, so keys are removed from it.
        let ended = ended.map(|text| self.secrets.redact(&text));
        let ended = ended.map_err(|why| self.secrets.redact(&why));
        let asked = TurnPrompt { agent: "command", task: task.name(), brief };
        let said = ended.as_deref().map_err(String::as_str);
        session_log::write_down(workspace.session_log, asked, said, &self.secrets)?;
        Ok(FinishedTurn {
            ended: ended.map_or_else(TurnEnd::Failed, TurnEnd::Replied),
            used: UsageReport::Claimed,
        })
    }

    /// Its contract says where the answer goes.
    fn answer_line() -> String {
        String::new()
    }

    fn prepare(&self, step: &ImplementStep, workspace: &Workspace<'_>) -> Result<()> {
        notes::clear(workspace.notes, step, &[])
    }

    fn is_asked_for_lessons(&self) -> bool {
        self.learns
    }
}

/// How a program failed, and what may have been missing.
fn why_failed(run: &CommandOutcome, kept: &[String], unseen: String) -> String {
    let lacks = match kept {
        [] => String::new(),
        kept => format!(
            "; it did not get {}: list what it needs under pass in its table in karve.toml",
            kept.iter().take(WITHHELD_NAMED_MAX).cloned().collect::<Vec<_>>().join(", ")
        ),
    };
    format!("the agent failed: {}{lacks}{unseen}", excerpt(run))
}

/// The answer file if there is one, else the standard output; never truncated.
fn read_answer(path: &Path, run: &CommandOutcome) -> std::result::Result<String, String> {
    let too_long = || Err(format!("the answer exceeds {ANSWER_BYTES_MAX} bytes"));
    // A pipe would never end, and a symlink could point anywhere.
    match fs::symlink_metadata(path) {
        Ok(meta) if !meta.is_file() => Err("the answer is not a regular file".into()),
        Ok(meta) if meta.len() > ANSWER_BYTES_MAX as u64 => too_long(),
        Ok(_) => match files::read(path, ANSWER_BYTES_MAX as u64) {
            Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
            Err(error) => Err(format!("the answer cannot be read: {error}")),
        },
        Err(_) if run.stdout.truncated() => too_long(),
        Err(_) => Ok(run.stdout.text().into_owned()),
    }
}
