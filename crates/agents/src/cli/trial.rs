//! A small turn, to check whether an agent works here: its program, its key and its model's server.

use super::turn::{CliProgram, CliTurnContext, CliTurnResult};
use super::{CliKind, CliTurnRequest, TurnTask, turn};
use crate::cli::CliConfig;
use karve_core::spending::AgentUsage;
use karve_os::error::{Result, WithContext};
use karve_os::process::{self, Command, StopFlag};
use karve_os::sandbox::{NetworkAccess, Sandbox};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a program may take to print its version.
const VERSION_LIMIT: Duration = Duration::from_secs(30);

/// How long the small turn may take, in seconds.
const TRIAL_S: u64 = 120;

/// Characters of a version that are shown.
const VERSION_CHARS_MAX: usize = 60;

/// The question; the word must come back.
const QUESTION: &str = "Use no tool. Answer with this one word and nothing else: ready\n";

/// An installed program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstalledProgram {
    /// Where it is.
    pub path: PathBuf,
    /// The version that it reports, if any.
    pub version: Option<String>,
}

/// How a small turn went.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentTrial {
    /// What it used.
    pub usage: AgentUsage,
    /// Why it failed, if so.
    pub failure: Option<String>,
}

/// Finds a program and asks for its version.
pub fn find(config: &CliConfig, stop: &StopFlag) -> Option<InstalledProgram> {
    let name = config.program.as_deref().unwrap_or(config.kind.program());
    let path = process::find_program(name)?;
    let path = std::path::absolute(&path).unwrap_or(path);
    let asked = [path.clone().into_os_string(), "--version".into()];
    let command = Command::argv(asked, Path::new("/")).limit(VERSION_LIMIT);
    let run = process::run(&command, stop).ok();
    let version = run.filter(|run| run.exit.success()).and_then(|run| {
        let text = run.stdout.text().into_owned();
        let line = text.lines().find(|line| !line.trim().is_empty())?.trim();
        let line = line.chars().filter(|c| !c.is_control());
        Some(line.take(VERSION_CHARS_MAX).collect())
    });
    Some(InstalledProgram { path, version })
}

impl CliConfig {
    /// The program that a small turn in this directory starts.
    pub fn trial_program(
        &self,
        env: &BTreeMap<String, String>,
        reach: &NetworkAccess,
        dir: &Path,
    ) -> Result<CliProgram> {
        let tag = dir.to_string_lossy().into_owned();
        let mut program = CliProgram::new(self.clone(), env.clone(), TRIAL_S, tag)?;
        program.reach.clone_from(reach);
        Ok(program)
    }
}

/// Runs a small turn in its own directory.
pub fn run_trial(
    caller: &CliProgram,
    dir: &Path,
    sandbox: Option<&Sandbox>,
    stop: &StopFlag,
) -> Result<AgentTrial> {
    let [tree, notes] = ["worktrees/trial", "tmp/agent"].map(|name| dir.join(name));
    let _ = fs::remove_dir_all(&notes);
    for dir in [&tree, &notes] {
        fs::create_dir_all(dir).context(|| format!("cannot create {}", dir.display()))?;
    }
    let place = CliTurnContext {
        tree: &tree,
        notes: &notes,
        session_log: &dir.join("tmp/session.jsonl"),
        stop,
        sandbox,
        exec: None,
    };
    let ask = CliTurnRequest {
        task: TurnTask::Trial,
        model: caller.model(),
        session: None,
        used_before: AgentUsage::default(),
        confined: sandbox.is_some(),
        usd_left: None,
        limit_s: TRIAL_S,
        files: &[],
        brief_file: &place.brief_file(),
    };
    let CliTurnResult { output: heard, failure: fault, .. } =
        turn::run(caller, &ask, QUESTION, &place)?;
    let mut fault = fault.map(|fault| fault.describe());
    if fault.is_none() && heard.text.trim().is_empty() {
        fault = Some("empty reply".into());
    }
    Ok(AgentTrial { usage: heard.usage, failure: fault })
}

impl CliConfig {
    /// A kind with its default configuration.
    pub fn of(kind: CliKind) -> Self {
        Self { kind, program: None, model: None, args: Vec::new() }
    }
}
