//! One turn: the program is started in its worktree, its output is read as it arrives, and it is
//! ended with all its child processes.

use super::listen::OutputListener;
use super::turn_output::{TurnFailure, TurnOutput, message};
use super::{CliOutputParser, CliSpec, CliTurnRequest, TurnTask, Workspace, changed_files};
use crate::ExecAccess;
use crate::cli::CliConfig;
use crate::secrets::Secrets;
use crate::session_log::{SESSION_LOG_BYTES_MAX, SessionLog, VERSION};
use karve_core::spending::AgentUsage;
use karve_os::error::{CommandError, Result, WithContext};
use karve_os::process::{Command, StopFlag};
use karve_os::sandbox::{AgentPaths, AllowedHost, Gateway, NetworkAccess, Sandbox};
use karve_os::{process, sandbox};
use serde_json::json;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How much of a program's error output is kept, in bytes.
const STDERR_BYTES_MAX: usize = 64 << 10;

/// The directory in its notes that a program uses if it has no home.
pub(super) const STATE: &str = "state";

/// The program to start, and its settings.
#[derive(Debug)]
pub struct CliProgram {
    config: CliConfig,
    env: BTreeMap<String, String>,
    program: PathBuf,
    limit_s: u64,
    tag: String,
    secrets: Secrets,
    pub(super) reach: NetworkAccess,
}

/// Where a turn takes place.
#[derive(Debug)]
pub(super) struct CliTurnContext<'a> {
    pub(super) tree: &'a Path,
    pub(super) notes: &'a Path,
    pub(super) session_log: &'a Path,
    pub(super) stop: &'a StopFlag,
    pub(super) sandbox: Option<&'a Sandbox>,
    pub(super) exec: Option<&'a ExecAccess>,
}

impl<'a> CliTurnContext<'a> {
    /// The place of a turn.
    pub(super) fn of(workspace: &Workspace<'a>) -> Self {
        Self {
            tree: workspace.tree,
            notes: workspace.notes,
            session_log: workspace.session_log,
            stop: workspace.stop,
            sandbox: workspace.sandbox,
            exec: workspace.exec,
        }
    }

    /// The file with the brief.
    pub(super) fn brief_file(&self) -> PathBuf {
        self.notes.join("brief.md")
    }
}

impl CliProgram {
    /// Finds the program, or says how to get it.
    pub(super) fn new(
        config: CliConfig,
        env: BTreeMap<String, String>,
        limit_s: u64,
        tag: String,
    ) -> Result<Self> {
        let kind = config.kind;
        let name = config.program.as_deref().unwrap_or(kind.program());
        let Some(program) = process::find_program(name) else {
            let message = format!("the agent {} needs {name}, which is not installed", kind.name());
            return Err(CommandError::environment(message)
                .hint(format!("install it with \"{}\"", kind.install()))
                .hint("or set another path as program under [agents] in karve.toml"));
        };
        let program = std::path::absolute(&program).unwrap_or(program);
        Ok(Self {
            secrets: Secrets::of(&env),
            config,
            env,
            program,
            limit_s,
            tag,
            reach: NetworkAccess::Usual,
        })
    }

    /// How long a turn may take, in seconds.
    pub(super) fn limit_s(&self, task: TurnTask) -> u64 {
        task.limit_s(self.limit_s)
    }

    /// The requested model, if one is named.
    pub(super) fn model(&self) -> Option<&str> {
        self.config.model.as_deref()
    }

    fn spec(&self) -> &'static CliSpec {
        self.config.kind.spec()
    }

    /// Where it keeps its credentials and state: variables to set, and directories to expose.
    fn state(&self, notes: &Path) -> (Vec<(String, String)>, Vec<PathBuf>) {
        let spec = self.spec();
        let led: Vec<PathBuf> = spec
            .home_variables
            .iter()
            .filter_map(|name| self.value(name))
            .map(|dir| PathBuf::from(dir).join(spec.below))
            .filter(|dir| dir.is_absolute() && dir.exists())
            .collect();
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let at_home = home.is_some_and(|home| spec.homes.iter().any(|at| home.join(at).exists()));
        if !led.is_empty() || at_home {
            return (Vec::new(), led);
        }
        // It has no credentials here yet, so its state between turns goes to its notes.
        let set = spec.home_variables.iter().map(|name| {
            let dir = notes.join(STATE).join(name.to_lowercase());
            let _ = fs::create_dir_all(&dir);
            ((*name).to_owned(), dir.to_string_lossy().into_owned())
        });
        (set.collect(), Vec::new())
    }

    /// The variable as the program sees it.
    fn value(&self, name: &str) -> Option<String> {
        let own = self.env.get(name).cloned();
        let value = own.or_else(|| std::env::var(name).ok());
        value.filter(|value| !value.is_empty())
    }

    /// The hosts that it may reach; none if it may reach all.
    fn hosts(&self) -> Option<Vec<AllowedHost>> {
        let spec = self.spec();
        let mut hosts = match &self.reach {
            NetworkAccess::All => return None,
            NetworkAccess::Usual if spec.hosts.is_empty() => return None,
            NetworkAccess::Only(hosts) => hosts.clone(),
            NetworkAccess::Usual => {
                let meant = spec.hosts.iter();
                let meant = meant.filter(|(by, _)| by.is_empty() || self.value(by).is_some());
                meant.filter_map(|(_, host)| AllowedHost::parse(host).ok()).collect()
            }
        };
        let mut led: Vec<String> =
            spec.host_variables.iter().filter_map(|name| self.value(name)).collect();
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let homes = spec.homes.iter().filter_map(|at| Some(home.as_ref()?.join(at)));
        let elsewhere = spec.home_variables.iter().filter_map(|name| self.value(name));
        for dir in homes.chain(elsewhere.map(PathBuf::from)) {
            led.extend((spec.addresses)(&dir));
        }
        hosts.extend(led.iter().filter_map(|url| AllowedHost::parse(url).ok()));
        Some(hosts)
    }

    fn command(
        &self,
        ask: &CliTurnRequest<'_>,
        brief: &str,
        place: &CliTurnContext<'_>,
    ) -> Result<CliLaunch> {
        let spec = self.spec();
        let mut words = vec![self.program.clone().into_os_string()];
        words.extend((spec.arguments)(ask).into_iter().map(Into::into));
        // Before the brief on standard input, which some programs take as their last argument.
        let end = match words.last().is_some_and(|word| word == "-") {
            true => words.len() - 1,
            false => words.len(),
        };
        words.splice(end..end, self.config.args.iter().map(Into::into));
        let mut command = Command::argv(words, place.tree)
            .limit(Duration::from_secs(ask.limit_s))
            .tag(&self.tag)
            .capture_bytes(STDERR_BYTES_MAX);
        if let CliOutputParser::Events(_) = spec.speaks {
            command = command.stdin(brief.as_bytes());
        }
        let passed = sandbox::variables_of_agent(place.sandbox, spec.variables);
        let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
        for name in names.filter(|name| !passed.pass(name)) {
            command = command.env_remove(name);
        }
        let (state, shown) = self.state(place.notes);
        let set = spec.set.iter();
        let set = set.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let exec = place.exec.iter().flat_map(|exec| exec.variables());
        let exec = exec.map(|(name, value)| (name.to_owned(), value));
        let set = set.chain(exec).chain((spec.settings)(ask)).chain(state);
        for (name, value) in set.chain(self.env.clone()) {
            command = command.env(name, value);
        }
        let mut gateway = None;
        if let Some(sandbox) = place.sandbox {
            let hosts = self.hosts();
            let exec = place.exec.iter().flat_map(|exec| exec.shown());
            let read: Vec<PathBuf> = beside(&self.program).into_iter().chain(exec).collect();
            let places = AgentPaths {
                tree: place.tree,
                notes: place.notes,
                read: &read,
                write: &shown,
                hosts: hosts.as_deref(),
            };
            let confined = sandbox.confine_agent(&places)?;
            command = command.confined(&confined.0);
            gateway = confined.1;
        }
        for (name, value) in gateway.iter().flat_map(Gateway::variables) {
            command = command.env(name, value);
        }
        Ok(CliLaunch { command, gateway })
    }
}

/// The command, and its network gateway, which is kept until the command has ended.
struct CliLaunch {
    command: Command,
    gateway: Option<Gateway>,
}

/// A program, and the packages that it was installed with, which it needs.
fn beside(program: &Path) -> Vec<PathBuf> {
    let mut paths = vec![program.to_owned()];
    paths.extend(fs::canonicalize(program));
    let mut found = paths.clone();
    for path in &paths {
        // The outermost, because packages are next to each other there.
        let above: Vec<&Path> = path.ancestors().collect();
        let packages = above.iter().rev().find(|dir| dir.ends_with("node_modules"));
        found.extend(packages.map(|dir| dir.to_path_buf()));
        let python = above.iter().find(|dir| dir.join("pyvenv.cfg").is_file());
        found.extend(python.map(|dir| dir.to_path_buf()));
    }
    found
}

/// Why a turn that ended normally is a failure, if so: nothing changed, because it was denied a
/// tool or gave no reply.
pub(super) fn examine(heard: &TurnOutput, place: &CliTurnContext<'_>) -> Option<TurnFailure> {
    let since = changed_files::changed_at(&place.brief_file())?;
    if !changed_files::changed(place.tree, since).is_empty() {
        return None;
    }
    match (heard.denied.is_empty(), heard.text.trim().is_empty()) {
        (false, _) => Some(TurnFailure::Denied(heard.denied.clone())),
        (true, true) => Some(TurnFailure::NoOutput),
        (true, false) => None,
    }
}

/// A finished turn.
#[derive(Debug)]
pub(super) struct CliTurnResult {
    pub(super) output: TurnOutput,
    /// Why it failed, if so.
    pub(super) failure: Option<TurnFailure>,
    /// The usage of its conversation so far.
    pub(super) conversation_used: AgentUsage,
}

/// Runs one turn.
pub(super) fn run(
    caller: &CliProgram,
    ask: &CliTurnRequest<'_>,
    brief: &str,
    place: &CliTurnContext<'_>,
) -> Result<CliTurnResult> {
    let cannot = || format!("cannot write to {}", place.notes.display());
    fs::create_dir_all(place.notes).context(cannot)?;
    let brief = caller.secrets.redact(brief);
    fs::write(place.brief_file(), &brief).context(cannot)?;
    let mut log = SessionLog::open(place.session_log, &caller.secrets)?;
    log.note(&json!({
        "karve": "brief",
        "version": VERSION,
        "agent": caller.config.kind.name(),
        "task": ask.task.name(),
        "model": ask.model,
        "session": ask.session,
        "bytes_max": SESSION_LOG_BYTES_MAX,
        "brief": brief,
    }))?;
    let CliLaunch { command, gateway } = caller.command(ask, &brief, place)?;
    let mut listener = OutputListener::new(caller.spec(), &caller.secrets, log);
    let run = process::run_tapped(&command, place.stop, &mut |bytes| listener.push(bytes))?;
    let (mut heard, mut log) = listener.finish()?;
    let talk_used = heard.settle(ask.used_before);
    let stderr = caller.secrets.redact(&run.stderr.text());
    let mut fault = heard.judge(run.exit, &stderr, ask.limit_s);
    let kept_from = gateway.map_or_else(Vec::new, |gateway| gateway.refused());
    if let (Some(TurnFailure::Api(said)), false) = (&mut fault, kept_from.is_empty()) {
        let hosts = kept_from.join(", ");
        *said = message(&format!(
            "{said}; karve blocked its access to {hosts}, see hosts in docs/agents.md"
        ));
    }
    log.note(&json!({
        "karve": "end",
        "exit": run.exit.describe(),
        "fault": fault.as_ref().map(TurnFailure::describe),
        "orphans": run.orphans,
        "kept_from": kept_from,
        "used": {"tokens": heard.usage.tokens, "usd": heard.usage.usd},
        "stderr": message(&stderr),
        "answer": heard.text,
    }))?;
    log.finish()?;
    Ok(CliTurnResult { output: heard, failure: fault, conversation_used: talk_used })
}
