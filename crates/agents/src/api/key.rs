//! The key of a model API: from a variable or a command, and never shown.

use crate::api::{ApiConfig, KeySource};
use karve_os::error::{CommandError, Result};
use karve_os::process::{self, Command, StopFlag};
use std::fmt;
use std::path::Path;
use std::time::Duration;

/// How long a command may take to print a key; the user may have to unlock it.
const COMMAND_LIMIT: Duration = Duration::from_secs(120);
/// The largest output of such a command, in bytes.
const COMMAND_BYTES_MAX: usize = 64 << 10;

/// A key. Only [`ApiKey::reveal`] shows it.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct ApiKey(String);

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[key]")
    }
}

impl ApiKey {
    /// Its value, for the header that carries it.
    pub(super) fn reveal(&self) -> &str {
        &self.0
    }

    /// A key, if the text can be one.
    fn of(text: &str) -> Option<Self> {
        let text = text.trim();
        let usable = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
        usable.then(|| Self(text.to_owned()))
    }
}

/// The variable that holds the key, if it comes from one.
pub(super) fn variable_of(config: &ApiConfig) -> Option<&str> {
    match &config.key {
        KeySource::Usual => Some(config.kind.key_env()),
        KeySource::Variable(name) => Some(name),
        KeySource::Command(_) => None,
    }
}

/// Whether the variable that must hold a key has one.
pub(super) fn is_there(config: &ApiConfig) -> bool {
    match &config.key {
        KeySource::Command(_) => true,
        KeySource::Usual if config.needs_no_key() => true,
        KeySource::Usual | KeySource::Variable(_) => in_variable(config).is_some(),
    }
}

/// Fails if the key is missing, without running any command.
pub(super) fn check(name: &str, config: &ApiConfig) -> Result<()> {
    match is_there(config) {
        true => Ok(()),
        false => Err(missing(name, config)),
    }
}

/// The key; none if none is needed and none is set.
pub(super) fn key_of(name: &str, config: &ApiConfig, stop: &StopFlag) -> Result<Option<ApiKey>> {
    match &config.key {
        KeySource::Command(line) => by_command(name, line, stop).map(Some),
        // A key that was not meant for this server is not sent.
        KeySource::Usual if config.needs_no_key() && !config.is_private() => Ok(None),
        KeySource::Usual | KeySource::Variable(_) => match in_variable(config) {
            None if config.needs_no_key() => Ok(None),
            None => Err(missing(name, config)),
            key => Ok(key),
        },
    }
}

fn in_variable(config: &ApiConfig) -> Option<ApiKey> {
    ApiKey::of(&std::env::var(variable_of(config)?).ok()?)
}

fn missing(name: &str, config: &ApiConfig) -> CommandError {
    let variable = variable_of(config).unwrap_or_default();
    CommandError::environment(format!("the agent {name} needs a key, and {variable} is not set"))
        .hint(format!(
            "set {variable}, or name another variable in agents.{name}.key_env or a command in \
             agents.{name}.key_command in karve.toml"
        ))
}

fn by_command(name: &str, line: &str, stop: &StopFlag) -> Result<ApiKey> {
    let command =
        Command::shell(line, Path::new("/")).limit(COMMAND_LIMIT).capture_bytes(COMMAND_BYTES_MAX);
    let run = process::run(&command, stop)?;
    let said = run.stdout.text();
    let key = said.lines().find_map(ApiKey::of);
    match key.filter(|_| run.exit.success()) {
        Some(key) => Ok(key),
        // Its output may be the key, so it is not shown.
        None => Err(CommandError::environment(format!(
            "the key command of the agent {name} did not print a key"
        ))
        .cause(run.exit.describe())
        .hint(format!(
            "run agents.{name}.key_command from karve.toml by hand: it must print the key"
        ))),
    }
}
