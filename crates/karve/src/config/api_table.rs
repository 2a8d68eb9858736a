//! A model API in `[agents.NAME]` of `karve.toml`.

use super::agent_file::AgentProgram;
use super::source::ConfigSource;
use karve_agents::api::{ApiConfig, ApiKind, KeySource, is_model};
use karve_os::error::Result;
use karve_os::text::shown;

/// The model API of a table.
pub(super) fn api_of(
    source: &ConfigSource<'_>,
    path: &str,
    kind: ApiKind,
    table: &AgentProgram,
) -> Result<ApiConfig> {
    let usual = ApiConfig::of(kind);
    let config = ApiConfig {
        kind,
        model: table.model.clone(),
        base_url: table.base_url.clone(),
        key: key_of(source, path, table)?,
        price: table.price.map(Into::into),
        max_tokens: table.max_tokens.unwrap_or(usual.max_tokens),
        context_tokens: table.context_tokens.unwrap_or(usual.context_tokens),
        tokens_max: table.tokens_max,
        retries: table.retries.unwrap_or(usual.retries),
        backoff_ms: table.backoff_ms.unwrap_or(usual.backoff_ms),
    };
    check_url(source, path, &config)?;
    if let Some(model) = config.model.as_deref().filter(|model| !is_model(model)) {
        let message = format!("`{}` cannot be the name of a model", shown(model));
        return Err(source
            .error_at(&format!("{path}.model"), message)
            .hint(format!("write {path}.model as the server names it")));
    }
    if u64::from(config.max_tokens) >= config.context_tokens {
        return Err(source
            .error_at(path, "`max_tokens` does not fit into `context_tokens`")
            .hint(format!("make {path}.context_tokens larger, or {path}.max_tokens smaller")));
    }
    Ok(config)
}

fn key_of(source: &ConfigSource<'_>, path: &str, table: &AgentProgram) -> Result<KeySource> {
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

fn check_url(source: &ConfigSource<'_>, path: &str, config: &ApiConfig) -> Result<()> {
    let Some(url) = &config.base_url else {
        return Ok(());
    };
    let at = format!("{path}.base_url");
    let known = ["https://", "http://"];
    let host = known.iter().find_map(|start| url.strip_prefix(start));
    let usable = |rest: &str| {
        let fits = rest.chars().all(|c| c.is_ascii_graphic());
        fits && !rest.is_empty() && !rest.contains(['@', '?', '#'])
    };
    if !host.is_some_and(usable) {
        let message = format!("`{}` is not a server URL", shown(url));
        return Err(source
            .error_at(&at, message)
            .hint(format!("write {at} like \"https://example.com/v1\"")));
    }
    if !config.is_private() && !config.needs_no_key() {
        return Err(source
            .error_at(&at, "the key would be sent over the network unencrypted")
            .hint(format!("use https:// in {at}, or a server on this machine")));
    }
    Ok(())
}
