//! `[agent]` and `[agents]` of `karve.toml`: which agents can be selected, and which one is.

use super::agent_file::AgentProgram;
use super::file::ConfigFile;
use super::source::ConfigSource;
use super::values::env_of;
use super::{Overrides, api_table};
use karve_agents::api;
use karve_agents::cli::{CliConfig, CliKind};
use karve_agents::config::{AgentConfig, AgentLaunch, agent_named};
use karve_agents::external::EXTERNAL;
use karve_agents::scripted::SCRIPTED;
use karve_os::error::{CommandError, Result};
use karve_os::sandbox::{AllowedHost, NetworkAccess};
use karve_os::text::{shown, suggestion};
use std::collections::BTreeMap;

/// Agents that need no table, besides the kinds of command-line agents and model APIs.
const AGENTS: [&str; 3] = ["builtin", EXTERNAL, "replay:<directory>"];

/// Most hosts of one agent.
const HOSTS_MAX: usize = 64;

/// The agents of all tables.
pub(super) fn agents_of(
    source: &ConfigSource<'_>,
    tables: &BTreeMap<String, AgentProgram>,
) -> Result<BTreeMap<String, AgentConfig>> {
    let mut agents = BTreeMap::new();
    for (name, table) in tables {
        let path = format!("agents.{name}");
        let taken =
            ["builtin", EXTERNAL, SCRIPTED].contains(&&**name) || name.starts_with("replay:");
        if taken || name.trim().is_empty() {
            return Err(source
                .error_at(&path, format!("an agent of [agents] cannot be called `{}`", shown(name)))
                .hint(
                    "choose another name in [agents]; builtin, external, scripted and \
                    replay:<directory> are reserved",
                ));
        }
        let env = env_of(source, &format!("{path}.env"), &table.env)?;
        let runs = runs_of(source, &path, name, table)?;
        let reach = reach_of(source, &path, table)?;
        agents.insert(
            name.clone(),
            AgentConfig { runs, env, pass: table.pass.clone(), learn: table.learn, reach },
        );
    }
    Ok(agents)
}

/// The category of a kind.
#[derive(Clone, Copy)]
enum AgentBackend {
    Cli(CliKind),
    Api(api::ApiKind),
}

impl AgentBackend {
    fn by_name(name: &str) -> Option<Self> {
        let cli = CliKind::by_name(name).map(Self::Cli);
        cli.or_else(|| api::ApiKind::by_name(name).map(Self::Api))
    }

    fn name(self) -> &'static str {
        match self {
            Self::Cli(kind) => kind.name(),
            Self::Api(kind) => kind.name(),
        }
    }
}

/// What a table starts: its command, or the kind given by `kind` or by the table's name.
fn runs_of(
    source: &ConfigSource<'_>,
    path: &str,
    name: &str,
    table: &AgentProgram,
) -> Result<AgentLaunch> {
    let kind = match (&table.kind, &table.command) {
        // The kind "command" is a plain program.
        (Some(kind), _) => AgentBackend::by_name(kind),
        (None, Some(_)) => None,
        (None, None) => match AgentBackend::by_name(name) {
            Some(kind) => Some(kind),
            None => {
                let message = format!("the agent `{}` has no command and no kind", shown(name));
                return Err(source.error_at(path, message).hint(format!(
                    "add {path}.command or {path}.kind to karve.toml; \"karve agents\" lists kinds"
                )));
            }
        },
    };
    check_keys(source, path, kind, table)?;
    match (kind, &table.command) {
        (None, Some(command)) => Ok(AgentLaunch::Line(command.clone())),
        (None, None) => Err(source
            .error_at(path, format!("the agent `{}` has no command", shown(name)))
            .hint(format!("add {path}.command to karve.toml"))),
        (Some(kind), Some(_)) => Err(source
            .error_at(
                &format!("{path}.command"),
                format!("an agent of kind `{}` takes no command", kind.name()),
            )
            .hint(format!("name its program in {path}.program, or remove {path}.kind"))),
        (Some(AgentBackend::Cli(kind)), None) => Ok(AgentLaunch::Cli(CliConfig {
            kind,
            program: table.program.clone(),
            model: table.model.clone(),
            args: table.args.clone(),
        })),
        (Some(AgentBackend::Api(kind)), None) => {
            api_table::api_of(source, path, kind, table).map(AgentLaunch::Api)
        }
    }
}

/// The hosts that a table allows.
fn reach_of(source: &ConfigSource<'_>, path: &str, table: &AgentProgram) -> Result<NetworkAccess> {
    let Some(hosts) = &table.hosts else {
        return Ok(NetworkAccess::Usual);
    };
    if hosts.iter().any(|host| host == "*") {
        return Ok(NetworkAccess::All);
    }
    let parsed: Result<Vec<AllowedHost>, String> =
        hosts.iter().map(|host| AllowedHost::parse(host)).collect();
    match parsed {
        Ok(hosts) if hosts.len() <= HOSTS_MAX => Ok(NetworkAccess::Only(hosts)),
        Ok(_) => Err(source
            .error_at(&format!("{path}.hosts"), format!("more than {HOSTS_MAX} hosts"))
            .hint(format!("name fewer in {path}.hosts, or \"*\" for all"))),
        Err(why) => Err(source.error_at(&format!("{path}.hosts"), shown(&why)).hint(format!(
            "write names such as \"api.example.com\" or \"localhost:8080\" in {path}.hosts"
        ))),
    }
}

/// Rejects keys that do not apply to the kind of a table.
fn check_keys(
    source: &ConfigSource<'_>,
    path: &str,
    kind: Option<AgentBackend>,
    table: &AgentProgram,
) -> Result<()> {
    let of_cli = [("program", table.program.is_some()), ("args", !table.args.is_empty())];
    let of_both = [("model", table.model.is_some())];
    let of_api = [
        ("base_url", table.base_url.is_some()),
        ("key_env", table.key_env.is_some()),
        ("key_command", table.key_command.is_some()),
        ("price", table.price.is_some()),
        ("max_tokens", table.max_tokens.is_some()),
        ("context_tokens", table.context_tokens.is_some()),
        ("tokens_max", table.tokens_max.is_some()),
        ("retries", table.retries.is_some()),
        ("backoff_ms", table.backoff_ms.is_some()),
    ];
    let of_program = [("env", !table.env.is_empty()), ("hosts", table.hosts.is_some())];
    // Each kind defines which keys apply to it.
    let of_command = [("pass", !table.pass.is_empty())];
    let (foreign, owner): (Vec<_>, _) = match kind {
        None => {
            let cli = of_cli.iter().chain(&of_both);
            (cli.chain(&of_api).collect(), "for a kind, not for a command")
        }
        Some(AgentBackend::Cli(_)) => {
            let foreign = of_api.iter().chain(&of_command);
            (foreign.collect(), "not for command-line agents")
        }
        Some(AgentBackend::Api(_)) => {
            let foreign = of_cli.iter().chain(&of_program).chain(&of_command);
            (foreign.collect(), "not for model APIs")
        }
    };
    match foreign.into_iter().find(|(_, given)| *given) {
        None => Ok(()),
        Some((key, _)) => Err(source
            .error_at(&format!("{path}.{key}"), format!("`{key}` is {owner}"))
            .hint(format!("remove {path}.{key}, or set another {path}.kind"))),
    }
}

/// The selected agent.
pub(super) fn agent_of(
    source: &ConfigSource<'_>,
    file: &ConfigFile,
    agents: &BTreeMap<String, AgentConfig>,
    overrides: &Overrides,
) -> Result<String> {
    let written = overrides.agent.as_deref().or(file.agent.name.as_deref());
    let name = written.unwrap_or("builtin");
    if can_be_named(name, agents) {
        return Ok(name.to_owned());
    }
    let message = format!("there is no agent `{}`", shown(name));
    let hint = suggestion(name, known_agents(agents), "agents");
    let hint = format!("{hint}; add [agents.<name>] with a command to karve.toml for another");
    Err(match overrides.agent {
        Some(_) => CommandError::usage(format!("--agent: {message}")),
        None => source.error_at("agent.name", message),
    }
    .hint(hint))
}

/// Whether there is an agent with that name.
pub(super) fn can_be_named(name: &str, agents: &BTreeMap<String, AgentConfig>) -> bool {
    let replays = name.strip_prefix("replay:").is_some_and(|dir| !dir.trim().is_empty());
    let needs_no_table = ["builtin", EXTERNAL, SCRIPTED].contains(&name);
    needs_no_table || replays || agent_named(name, agents).is_some()
}

/// The names of all agents.
pub(super) fn known_agents(agents: &BTreeMap<String, AgentConfig>) -> Vec<&str> {
    let mut known: Vec<&str> = CliKind::ALL.map(CliKind::name).to_vec();
    known.extend(api::ApiKind::ALL.map(api::ApiKind::name));
    known.extend(AGENTS);
    known.extend(agents.keys().map(String::as_str));
    known
}
