//! `[agent]` and `[agents]` of `karve.toml`: who may be named as the agent, and who is.

use super::commands::env_of;
use super::file::{AgentKind, AgentProgram, File};
use super::source::{Source, shown, suggestion};
use super::{AgentConfig, CliConfig, Overrides, Reach, Runs};
use crate::agents::cli::Kind;
use crate::agents::visitor::VISITOR;
use crate::error::{CommandError, Result};
use crate::sandbox::Host;
use std::collections::BTreeMap;

/// Agents that need no table, beside the kinds of command-line agents.
const AGENTS: [&str; 3] = ["builtin", VISITOR, "replay:<directory>"];

/// Hosts of one agent.
const HOSTS_MAX: usize = 64;

/// The agents of all tables.
pub(super) fn agents_of(
    source: &Source<'_>,
    tables: &BTreeMap<String, AgentProgram>,
) -> Result<BTreeMap<String, AgentConfig>> {
    let mut agents = BTreeMap::new();
    for (name, table) in tables {
        let path = format!("agents.{name}");
        let taken = name == "builtin" || name == VISITOR || name.starts_with("replay:");
        if taken || name.trim().is_empty() {
            return Err(source
                .error_at(
                    &path,
                    format!("an agent of [agents] cannot be called `{}`", shown(name)),
                )
                .hint(
                    "choose another name in [agents]; builtin, visitor and replay:<directory> are \
                     taken",
                ));
        }
        let env = env_of(source, &format!("{path}.env"), &table.env)?;
        let runs = runs_of(source, (&path, name), table)?;
        let reach = reach_of(source, &path, table)?;
        agents.insert(
            name.clone(),
            AgentConfig {
                runs,
                env,
                learn: table.learn,
                reach,
            },
        );
    }
    Ok(agents)
}

/// What a table starts: its command, or the kind that it names or is called like.
fn runs_of(source: &Source<'_>, (path, name): (&str, &str), table: &AgentProgram) -> Result<Runs> {
    let kind = match (table.kind, &table.command) {
        (Some(kind), _) => kind_of(kind),
        (None, Some(_)) => None,
        (None, None) => match Kind::by_name(name) {
            Some(kind) => Some(kind),
            None => {
                let message = format!("the agent `{}` has no command and no kind", shown(name));
                return Err(source.error_at(path, message).hint(format!(
                    "add {path}.command or {path}.kind to karve.toml; \"karve agents\" lists kinds"
                )));
            }
        },
    };
    let own = [
        ("program", table.program.is_some()),
        ("model", table.model.is_some()),
        ("args", !table.args.is_empty()),
    ];
    if kind.is_some() && table.learn {
        return Err(source
            .error_at(
                &format!("{path}.learn"),
                "only an agent with a command can be asked what a round taught",
            )
            .hint(format!("remove {path}.learn from karve.toml")));
    }
    match (kind, &table.command) {
        (None, Some(command)) => match own.iter().find(|(_, given)| *given) {
            None => Ok(Runs::Line(command.clone())),
            Some((key, _)) => Err(source
                .error_at(
                    &format!("{path}.{key}"),
                    format!("`{key}` is for command-line agents, not for a command"),
                )
                .hint(format!("write it into {path}.command, or set {path}.kind"))),
        },
        (None, None) => Err(source
            .error_at(path, format!("the agent `{}` has no command", shown(name)))
            .hint(format!("add {path}.command to karve.toml"))),
        (Some(kind), Some(_)) => Err(source
            .error_at(
                &format!("{path}.command"),
                format!("an agent of kind `{}` takes no command", kind.name()),
            )
            .hint(format!(
                "name its program in {path}.program, or remove {path}.kind"
            ))),
        (Some(kind), None) => Ok(Runs::Cli(CliConfig {
            kind,
            program: table.program.clone(),
            model: table.model.clone(),
            args: table.args.clone(),
        })),
    }
}

/// The hosts that a table allows.
fn reach_of(source: &Source<'_>, path: &str, table: &AgentProgram) -> Result<Reach> {
    let Some(hosts) = &table.hosts else {
        return Ok(Reach::Usual);
    };
    if hosts.iter().any(|host| host == "*") {
        return Ok(Reach::All);
    }
    let parsed: Result<Vec<Host>, String> = hosts.iter().map(|host| Host::parse(host)).collect();
    match parsed {
        Ok(hosts) if hosts.len() <= HOSTS_MAX => Ok(Reach::Only(hosts)),
        Ok(_) => Err(source
            .error_at(
                &format!("{path}.hosts"),
                format!("more than {HOSTS_MAX} hosts"),
            )
            .hint(format!("name fewer in {path}.hosts, or \"*\" for all"))),
        Err(why) => Err(source
            .error_at(&format!("{path}.hosts"), shown(&why))
            .hint(format!(
                "write names such as \"api.example.com\" or \"localhost:8080\" in {path}.hosts"
            ))),
    }
}

/// The kind of command-line agent; none for any program.
fn kind_of(kind: AgentKind) -> Option<Kind> {
    match kind {
        AgentKind::Command => None,
        AgentKind::Claude => Some(Kind::Claude),
        AgentKind::Codex => Some(Kind::Codex),
        AgentKind::Gemini => Some(Kind::Gemini),
        AgentKind::Opencode => Some(Kind::Opencode),
        AgentKind::Aider => Some(Kind::Aider),
    }
}

/// The agent that is named.
pub(super) fn agent_of(
    source: &Source<'_>,
    file: &File,
    agents: &BTreeMap<String, AgentConfig>,
    overrides: &Overrides,
) -> Result<String> {
    let written = overrides.agent.as_deref().or(file.agent.name.as_deref());
    let name = written.unwrap_or("builtin");
    let replays = name
        .strip_prefix("replay:")
        .is_some_and(|dir| !dir.trim().is_empty());
    let needs_no_table = name == "builtin" || name == VISITOR || Kind::by_name(name).is_some();
    if needs_no_table || replays || agents.contains_key(name) {
        return Ok(name.to_owned());
    }
    let message = format!("there is no agent `{}`", shown(name));
    let mut known: Vec<&str> = Kind::ALL.map(Kind::name).to_vec();
    known.extend(AGENTS);
    known.extend(agents.keys().map(String::as_str));
    let hint = suggestion(name, known, "agents");
    let hint = format!("{hint}; add [agents.<name>] with a command to karve.toml for another");
    Err(match overrides.agent {
        Some(_) => CommandError::usage(format!("--agent: {message}")),
        None => source.error_at("agent.name", message),
    }
    .hint(hint))
}
