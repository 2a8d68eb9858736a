//! A model API as it is configured: the model, its address, its key, its limits.

use super::ApiKind;
use karve_core::asking::budget::TokenPrice;
use karve_os::error::{CommandError, Result};
use karve_os::text::shown;

/// Default number of retries.
const RETRIES: u32 = 6;

/// Default wait before the first retry, in milliseconds.
const BACKOFF_MS: u64 = 1_000;

/// A model API, asked by karve itself.
#[derive(Clone, Debug, PartialEq)]
pub struct ApiConfig {
    /// Its kind.
    pub kind: ApiKind,
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
    pub fn of(kind: ApiKind) -> Self {
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
        let is_own = self.kind == ApiKind::OpenaiChat && self.base_url.is_some();
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
        for name in ["claude-sonnet-4-5", "qwen3-coder:30b", "org/model@2", "gpt-5.1"] {
            assert!(is_model(name), "{name}");
        }
        for name in ["", "a b", "../x", "a?b", "a#b", "a%2f", "ä"] {
            assert!(!is_model(name), "{name}");
        }
    }
}
