//! A model API in `[agents.NAME]` of `karve.toml`.

use super::file::AgentProgram;
use super::source::{Source, shown};
use crate::agents::api::Kind;
use crate::error::{CommandError, Result};
use karve_core::asking::budget;
use schemars::JsonSchema;
use serde::Deserialize;

/// Tries after the first, unless the file says otherwise.
const RETRIES: u32 = 6;
/// The first wait between two tries in milliseconds, unless the file says otherwise.
const BACKOFF_MS: u64 = 1_000;

/// What tokens cost, in US dollars for a million.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// A million tokens that go in.
    #[schemars(range(min = 0))]
    pub input: f64,
    /// A million tokens that come out.
    #[schemars(range(min = 0))]
    pub output: f64,
    /// A million tokens that go in from the model's cache; as `input` without it.
    #[schemars(range(min = 0))]
    pub cached: Option<f64>,
}

impl From<Price> for budget::Price {
    fn from(price: Price) -> Self {
        Self {
            input: price.input,
            output: price.output,
            cached: price.cached.unwrap_or(price.input),
        }
    }
}

/// A model API, asked by karve itself.
#[derive(Clone, Debug, PartialEq)]
pub struct ApiConfig {
    /// Which.
    pub kind: Kind,
    /// The model to ask.
    pub model: Option<String>,
    /// Where it is, if it is not where it usually is.
    pub base_url: Option<String>,
    /// Where its key comes from.
    pub key: KeySource,
    /// What tokens cost.
    pub price: Option<Price>,
    /// Tokens that one answer may have.
    pub max_tokens: u32,
    /// Tokens that the model can take in.
    pub context_tokens: u64,
    /// Tokens that a campaign may use.
    pub tokens_max: Option<u64>,
    /// Tries after the first.
    pub retries: u32,
    /// The first wait between two tries, in milliseconds.
    pub backoff_ms: u64,
}

/// Where a key comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeySource {
    /// The usual variable of the kind.
    Usual,
    /// Another variable.
    Variable(String),
    /// What a command prints.
    Command(String),
}

impl ApiConfig {
    /// A kind as it is without any configuration.
    pub fn of(kind: Kind) -> Self {
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

    /// Where it is.
    pub fn url(&self) -> &str {
        self.base_url.as_deref().unwrap_or(self.kind.base_url())
    }

    /// Whether it is on this machine.
    pub fn is_loopback(&self) -> bool {
        is_loopback(self.url())
    }

    /// Whether nobody can read along on the way there.
    pub fn is_private(&self) -> bool {
        self.url().starts_with("https://") || self.is_loopback()
    }

    /// Whether it may be asked without a key: a server of one's own.
    pub fn needs_no_key(&self) -> bool {
        let is_own = self.kind == Kind::OpenaiChat && self.base_url.is_some();
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

/// It may become a part of an address.
fn is_model(model: &str) -> bool {
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

/// The model API of a table.
pub(super) fn api_of(
    source: &Source<'_>,
    path: &str,
    (kind, table): (Kind, &AgentProgram),
) -> Result<ApiConfig> {
    let usual = ApiConfig::of(kind);
    let config = ApiConfig {
        kind,
        model: table.model.clone(),
        base_url: table.base_url.clone(),
        key: key_of(source, path, table)?,
        price: table.price,
        max_tokens: table.max_tokens.unwrap_or(usual.max_tokens),
        context_tokens: table.context_tokens.unwrap_or(usual.context_tokens),
        tokens_max: table.tokens_max,
        retries: table.retries.unwrap_or(usual.retries),
        backoff_ms: table.backoff_ms.unwrap_or(usual.backoff_ms),
    };
    if let Some(url) = &config.base_url {
        check_url(source, path, (url, &config))?;
    }
    if let Some(model) = config.model.as_deref().filter(|model| !is_model(model)) {
        let message = format!("`{}` cannot be the name of a model", shown(model));
        return Err(source
            .error_at(&format!("{path}.model"), message)
            .hint(format!("write {path}.model as the server names it")));
    }
    if u64::from(config.max_tokens) >= config.context_tokens {
        return Err(source
            .error_at(path, "`max_tokens` leaves no room in `context_tokens`")
            .hint(format!(
                "make {path}.context_tokens larger, or {path}.max_tokens smaller"
            )));
    }
    Ok(config)
}

fn key_of(source: &Source<'_>, path: &str, table: &AgentProgram) -> Result<KeySource> {
    Ok(match (&table.key_env, &table.key_command) {
        (None, None) => KeySource::Usual,
        (Some(name), None) => KeySource::Variable(name.clone()),
        (None, Some(line)) => KeySource::Command(line.clone()),
        (Some(_), Some(_)) => {
            return Err(source
                .error_at(
                    &format!("{path}.key_command"),
                    "a key comes from a variable or from a command, not from both",
                )
                .hint(format!("remove {path}.key_env or {path}.key_command")));
        }
    })
}

fn check_url(source: &Source<'_>, path: &str, (url, config): (&str, &ApiConfig)) -> Result<()> {
    let at = format!("{path}.base_url");
    let known = ["https://", "http://"];
    let host = known.iter().find_map(|start| url.strip_prefix(start));
    let usable = |rest: &str| {
        let fits = rest.chars().all(|c| c.is_ascii_graphic());
        fits && !rest.is_empty() && !rest.contains(['@', '?', '#'])
    };
    if !host.is_some_and(usable) {
        let message = format!("`{}` is no address of a server", shown(url));
        return Err(source
            .error_at(&at, message)
            .hint(format!("write {at} like \"https://example.com/v1\"")));
    }
    if !config.is_private() && !config.needs_no_key() {
        return Err(source
            .error_at(&at, "a key would go over the network for everybody to read")
            .hint(format!("use https:// in {at}, or a server on this machine")));
    }
    Ok(())
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
