//! Which agents there are, as `karve.toml` configures them.

use crate::api;
use crate::api::{ApiConfig, KeySource};
use crate::cli::{CliConfig, CliKind};
use crate::secrets::Secrets;
use karve_os::sandbox::NetworkAccess;
use std::collections::BTreeMap;

/// A program that can be selected as the agent.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentConfig {
    /// What is started.
    pub runs: AgentLaunch,
    /// Added to its environment.
    pub env: BTreeMap<String, String>,
    /// Names of the variables with keys that are passed to a program.
    pub pass: Vec<String>,
    /// Whether it is asked what was learned in a round.
    pub learn: bool,
    /// Its network access.
    pub reach: NetworkAccess,
}

impl AgentConfig {
    /// An agent with nothing added to its environment.
    pub fn of(runs: AgentLaunch) -> Self {
        Self {
            runs,
            env: BTreeMap::new(),
            pass: Vec::new(),
            learn: false,
            reach: NetworkAccess::Usual,
        }
    }
}

/// The agent of this name: its table, or a kind that needs none. A model API may be named with its
/// model: `anthropic:MODEL`.
pub fn agent_named(name: &str, tables: &BTreeMap<String, AgentConfig>) -> Option<AgentConfig> {
    let bare = |name: &str| {
        let cli = CliKind::by_name(name).map(|kind| AgentLaunch::Cli(CliConfig::of(kind)));
        let api = || api::ApiKind::by_name(name).map(|kind| AgentLaunch::Api(ApiConfig::of(kind)));
        cli.or_else(api).map(AgentConfig::of)
    };
    let whole = tables.get(name).cloned().or_else(|| bare(name));
    whole.or_else(|| {
        let (head, model) = name.split_once(':')?;
        let mut config = tables.get(head).cloned().or_else(|| bare(head))?;
        match &mut config.runs {
            AgentLaunch::Api(api) if !model.trim().is_empty() => api.model = Some(model.to_owned()),
            AgentLaunch::Api(_) | AgentLaunch::Cli(_) | AgentLaunch::Line(_) => return None,
        }
        Some(config)
    })
}

/// What is started for an agent.
#[derive(Clone, Debug, PartialEq)]
pub enum AgentLaunch {
    /// A command line in the contract of docs/agents.md.
    Line(String),
    /// A command-line agent of a known kind.
    Cli(CliConfig),
    /// A model API, asked by karve itself.
    Api(ApiConfig),
}

/// The keys in karve's environment, and of all configured agents, used or not.
pub fn secrets_of(agents: &BTreeMap<String, AgentConfig>) -> Secrets {
    let mut more = Vec::new();
    for agent in agents.values() {
        more.extend(agent.env.clone());
        if let AgentLaunch::Api(config) = &agent.runs
            && let KeySource::Variable(name) = &config.key
            && let Ok(value) = std::env::var(name)
        {
            // Whatever its name, this variable holds a key.
            more.push(("API_KEY".to_owned(), value));
        }
    }
    Secrets::of(more.iter().map(|(name, value)| (name, value)))
}
