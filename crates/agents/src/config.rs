//! Which agents there are, as `karve.toml` configures them.

use crate::api;
use crate::cli::CliKind;
use karve_core::asking::budget::TokenPrice;
use karve_os::error::{CommandError, Result};
use karve_os::sandbox::AllowedHost;
use karve_os::text::shown;
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

/// Which hosts an agent may reach, if it has network access at all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum NetworkAccess {
    /// Its model's hosts, if its kind defines them; otherwise all hosts.
    #[default]
    Usual,
    /// Everything.
    All,
    /// These hosts, and the ones its own variables point to.
    Only(Vec<AllowedHost>),
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

/// Default number of retries.
const RETRIES: u32 = 6;

/// Default wait before the first retry, in milliseconds.
const BACKOFF_MS: u64 = 1_000;

/// A model API, asked by karve itself.
#[derive(Clone, Debug, PartialEq)]
pub struct ApiConfig {
    /// Its kind.
    pub kind: api::ApiKind,
    /// The model to ask.
    pub model: Option<String>,
    /// Its base URL, if not the default.
    pub base_url: Option<String>,
    /// Where its key comes from.
    pub key: KeySource,
    /// What tokens cost.
    pub price: Option<TokenPrice>,
    /// Most tokens of one reply.
    pub max_tokens: u32,
    /// The context window of the model, in tokens.
    pub context_tokens: u64,
    /// Tokens that a campaign may use.
    pub tokens_max: Option<u64>,
    /// Number of retries.
    pub retries: u32,
    /// The wait before the first retry, in milliseconds.
    pub backoff_ms: u64,
}

/// Where a key comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeySource {
    /// The default variable of the kind.
    Usual,
    /// Another variable.
    Variable(String),
    /// The output of a command.
    Command(String),
}

impl ApiConfig {
    /// The defaults of a kind.
    pub fn of(kind: api::ApiKind) -> Self {
        Self {
            kind,
            model: None,
            base_url: None,
            key: KeySource::Usual,
            price: None,
            max_tokens: kind.max_tokens(),
            context_tokens: kind.context_tokens(),
            tokens_max: None,
            retries: RETRIES,
            backoff_ms: BACKOFF_MS,
        }
    }

    /// Its base URL.
    pub fn url(&self) -> &str {
        self.base_url.as_deref().unwrap_or(self.kind.base_url())
    }

    /// Whether it is on this machine.
    pub fn is_loopback(&self) -> bool {
        is_loopback(self.url())
    }

    /// Whether the connection is encrypted or stays on this machine.
    pub fn is_private(&self) -> bool {
        self.url().starts_with("https://") || self.is_loopback()
    }

    /// Whether it may be used without a key: the user's own server.
    pub fn needs_no_key(&self) -> bool {
        let is_own = self.kind == api::ApiKind::OpenaiChat && self.base_url.is_some();
        is_own && self.key == KeySource::Usual
    }

    /// The model to ask, or how to name one.
    pub fn model_for(&self, agent: &str) -> Result<&str> {
        let kind = agent.split(':').next().unwrap_or(agent);
        let hint = format!(
            "name a model: \"karve run --agent {kind}:MODEL\", or agents.{kind}.model in karve.toml"
        );
        match self.model.as_deref() {
            None => Err(CommandError::usage(format!("the agent {agent} has no model")).hint(hint)),
            Some(model) if !is_model(model) => {
                let message = format!("`{}` cannot be the name of a model", shown(model));
                Err(CommandError::usage(message).hint(hint))
            }
            Some(model) => Ok(model),
        }
    }
}

/// Whether a text can be the name of a model: it may become a part of an address.
pub fn is_model(model: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || "._:/@+-".contains(c);
    !model.is_empty() && model.chars().all(fits) && !model.contains("..")
}

/// Whether an address is on this machine.
fn is_loopback(url: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if host.contains('@') {
        return false;
    }
    let name = match host.strip_prefix('[') {
        Some(v6) => v6.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    let is_address = name.parse::<std::net::IpAddr>();
    name == "localhost" || is_address.is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_this_machine_are_loopback() {
        for url in [
            "http://localhost:11434/v1",
            "http://127.0.0.1",
            "http://127.8.9.1:8080/v1",
            "http://[::1]:8080/v1",
        ] {
            assert!(is_loopback(url), "{url}");
        }
        for url in [
            "http://localhost.example.com/v1",
            "http://127.0.0.1.example.com",
            "http://localhost@example.com/v1",
            "http://10.0.0.1:8000",
            "https://example.com/127.0.0.1",
        ] {
            assert!(!is_loopback(url), "{url}");
        }
    }

    #[test]
    fn a_model_is_named_by_what_may_stand_in_an_address() {
        for name in [
            "claude-sonnet-4-5",
            "qwen3-coder:30b",
            "org/model@2",
            "gpt-5.1",
        ] {
            assert!(is_model(name), "{name}");
        }
        for name in ["", "a b", "../x", "a?b", "a#b", "a%2f", "ä"] {
            assert!(!is_model(name), "{name}");
        }
    }
}
