//! Who proposes and implements. An agent never measures, never judges, never settles.

mod answer;
pub mod builtin;
pub mod command;
mod prompt;
pub mod replay;

use crate::config::AgentConfig;
use crate::error::{CommandError, Result};
use crate::git::Repo;
use crate::process::StopFlag;
use crate::sandbox::Sandbox;
use karve_core::campaign::{ImplementStep, Refusal, Usage};
use karve_core::charter::Charter;
use karve_core::hypothesis::Hypothesis;
use karve_core::strategy::Brief;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What an agent answers when it is asked for a hypothesis.
#[derive(Clone, Debug, PartialEq)]
pub enum Proposal {
    /// A hypothesis.
    Stated(Box<Hypothesis>, Usage),
    /// None, and why.
    Refused(Refusal, Usage),
}

/// What an agent answers when it is asked to realize one.
#[derive(Clone, Debug, PartialEq)]
pub enum Implementation {
    /// The worktree holds the change.
    Done {
        /// What the agent says about it.
        summary: String,
        /// What it used.
        usage: Usage,
    },
    /// There is no change.
    NotDone {
        /// Why.
        why: String,
        /// What it used.
        usage: Usage,
    },
}

/// Where an agent works and what it may use.
#[derive(Debug)]
pub struct Desk<'a> {
    /// The repository of the campaign, for reading commits.
    pub repo: &'a Repo,
    /// The worktree at the parent; an agent changes files here and nowhere else.
    pub tree: &'a Path,
    /// Where briefs and answers are kept, outside the worktree.
    pub notes: &'a Path,
    /// What the user asked for with Ctrl-C.
    pub stop: &'a StopFlag,
    /// What confines a program.
    pub sandbox: Option<&'a Sandbox>,
}

/// A participant that proposes hypotheses and realizes them.
pub trait Agent: Debug {
    /// Asks for the next hypothesis.
    fn propose(&mut self, brief: &Brief, desk: &Desk<'_>) -> Result<Proposal>;

    /// Asks to realize one in the desk's worktree.
    fn implement(&mut self, step: &ImplementStep, desk: &Desk<'_>) -> Result<Implementation>;

    /// Whether it needs a worktree to propose.
    fn reads_worktree(&self) -> bool;
}

/// The agent that a charter names.
pub fn agent_of(
    charter: &Charter,
    agents: &BTreeMap<String, AgentConfig>,
    tag: &str,
) -> Result<Box<dyn Agent>> {
    let name = charter.agent.as_str();
    if name == "builtin" {
        return Ok(Box::new(builtin::Builtin::new(
            charter.granted.clone(),
            charter.knobs.clone(),
        )));
    }
    if let Some(dir) = name.strip_prefix("replay:") {
        return Ok(Box::new(replay::Replay::open(&PathBuf::from(dir))?));
    }
    let Some(config) = agents.get(name) else {
        let known: Vec<&str> = agents.keys().map(String::as_str).collect();
        return Err(
            CommandError::usage(format!("there is no agent {name:?}")).hint(format!(
                "use \"builtin\", \"replay:<campaign directory>\", or name it in karve.toml under \
             [agents.{name}]; configured now: {}",
                if known.is_empty() {
                    "none".to_owned()
                } else {
                    known.join(", ")
                }
            )),
        );
    };
    Ok(Box::new(command::CommandAgent::new(
        config.clone(),
        Duration::from_secs(charter.limits.agent_s),
        tag.to_owned(),
    )))
}
