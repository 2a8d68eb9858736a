//! `karve.toml` → Charter: what the user agrees to, validated before anything runs.
//!
//! ```text
//! text ──▶ source (places) ──▶ shape (schema) ──▶ file (types) ──▶ charter_of ──▶ Loaded
//! ```
//!
//! The types of `file` make the JSON schema; `shape` checks the text against that schema, so the
//! file, the schema and the messages cannot disagree. Checks that involve more than one value are
//! in `charter_of` and the modules next to it. The first error is reported, with its line.

mod agenda;
mod agent_file;
mod agents;
mod api_table;
mod audit;
mod baselines;
mod cases;
mod change;
mod charter_of;
mod commands;
mod contract;
mod contract_file;
mod file;
mod knobs;
mod metric;
mod names;
mod naming;
mod policy_file;
mod roles;
mod rules;
mod sandbox;
mod schema;
mod scope;
mod shape;
mod source;
#[cfg(test)]
mod tests;
mod values;

pub use agent_file::PriceSetting;
pub use cases::{CASES_MAX, case_of};
pub use change::{as_toml, check, with_key};
pub use commands::PROFILE_AUTO;
pub use metric::unit_in;
pub use naming::{TILEGYM_BRANCH, campaign_name};
pub use schema::schema_json;

use crate::remote::table::RemoteTable;
use karve_agents::config::AgentConfig;
use karve_core::charter::Charter;
use karve_harness::project_file::FILE_NAME;
use karve_os::error::{CommandError, Result, WithContext};
use karve_os::files;
use source::ConfigSource;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The longest file that is read, in bytes; a thousand cases are about 64 KiB.
const BYTES_MAX: usize = 1024 * 1024;

/// A charter with everything else the file contains.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadedConfig {
    /// What the user agreed to.
    pub charter: Charter,
    /// The directory that holds all campaigns; absolute if `dir` is.
    pub root: PathBuf,
    /// The directory of `karve.toml`, in which the commands run.
    pub dir: PathBuf,
    /// The programs that can be selected as the agent.
    pub agents: BTreeMap<String, AgentConfig>,
    /// The items a new campaign is asked to work through.
    pub agenda: Option<AgendaRequest>,
    /// Other machines that build and measure.
    pub remotes: BTreeMap<String, RemoteTable>,
}

/// What a campaign is asked to do, as the user wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgendaRequest {
    /// The items.
    pub option: AgendaOption,
    /// Rounds that one item may take.
    pub tries: u32,
    /// Whether this comes from the command line rather than the file.
    pub by_flag: bool,
}

/// Which items a campaign works through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgendaOption {
    /// A single one: an entry, knob values, a sweep, or free text.
    Only(String),
    /// The recommendations of an analysis in this file.
    Plan(PathBuf),
    /// Whatever the first profile and the library suggest.
    Autopilot,
}

/// Command-line options that override the file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Overrides {
    /// `--agent`.
    pub agent: Option<String>,
    /// `--rounds`.
    pub rounds: Option<u32>,
    /// `--hours`.
    pub hours: Option<f64>,
    /// `--best-of`.
    pub best_of: Option<u32>,
    /// `--on` with a device of the pool.
    pub on: Option<String>,
    /// `--on` with a remote.
    pub remote: Option<String>,
    /// `--only`, `--plan` or `--autopilot`.
    pub agenda: Option<AgendaOption>,
}

/// When the charter was agreed to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CharterTime {
    /// `YYYY-MM-DD HH:MM`, by the host's clock.
    pub minute: String,
}

/// Reads a file and makes its charter.
pub fn load(path: &Path, overrides: &Overrides, now: CharterTime) -> Result<LoadedConfig> {
    let text = files::read_text(path, files::WRITTEN_BYTES_MAX)
        .context(|| format!("cannot read {}", path.display()))
        .map_err(|error| error.hint("create one with \"karve init\", or pass another file"))?;
    let path = std::path::absolute(path).context(|| "cannot find the working directory".into())?;
    let dir = path.parent().unwrap_or(&path).to_path_buf();
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    parse_named(&name, &text, &charter_of::CharterContext { dir: &dir, overrides, now: &now })
}

/// Builds the charter from the text of a `karve.toml` in `dir`; touches nothing.
pub fn parse(
    text: &str,
    dir: &Path,
    overrides: &Overrides,
    now: &CharterTime,
) -> Result<LoadedConfig> {
    parse_named(FILE_NAME, text, &charter_of::CharterContext { dir, overrides, now })
}

fn parse_named(
    name: &str,
    text: &str,
    given: &charter_of::CharterContext<'_>,
) -> Result<LoadedConfig> {
    if text.len() > BYTES_MAX {
        return Err(CommandError::usage(format!(
            "{name}:1: the file is longer than {BYTES_MAX} bytes"
        ))
        .hint(format!("use cases.matrix instead of a long cases.list in {name}")));
    }
    let source = ConfigSource::parse(name, text)?;
    shape::check(&source, &schema::schema())?;
    let file: file::ConfigFile = toml::from_str(text).map_err(|error| {
        // The shape was checked, so this is a value that the schema should have rejected.
        let line = source.line_of(error.span().unwrap_or_default());
        source
            .error(line, "this value cannot be used here")
            .hint(format!("compare line {line} with karve.schema.json"))
    })?;
    charter_of::loaded_of(&source, &file, given)
}
