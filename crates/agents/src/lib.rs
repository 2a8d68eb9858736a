//! Agents propose and implement. An agent never measures, never judges, never settles.

pub mod agreement;
mod answer;
pub mod api;
pub mod builtin;
pub mod cli;
pub mod command;
pub mod config;
mod exec_access;
pub mod external;
pub mod form;
pub mod messages;
mod notes;
mod prompt;
pub mod replay;
pub mod scripted;
mod secrets;
pub mod session_event;
mod session_log;
pub mod team;
pub mod template_env;
mod turn;

pub use exec_access::{EXEC_SOCKET, ExecAccess};
pub use secrets::Secrets;

use crate::config::{AgentConfig, AgentLaunch};
use karve_core::campaign::strategy::Brief;
use karve_core::campaign::{ImplementStep, ProposalRefusal, Step};
use karve_core::charter::{Charter, REPLAY};
use karve_core::hypothesis::Hypothesis;
use karve_core::knowledge::{Learning, LessonNotes, PredictedCounter};
use karve_core::spending::AgentUsage;
use karve_harness::commands::Harness;
use karve_harness::git::Repo;
use karve_numerics::case::Case;
use karve_os::error::{CommandError, Result};
use karve_os::process::StopFlag;
use karve_os::sandbox::Sandbox;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::path::{Path, PathBuf};

/// An agent's answer to a request for a hypothesis.
#[derive(Clone, Debug, PartialEq)]
pub enum Proposal {
    /// A hypothesis.
    Stated(Box<Hypothesis>, AgentUsage),
    /// None, and why.
    Refused(ProposalRefusal, AgentUsage),
}

/// An agent's answer to a request to implement one.
#[derive(Clone, Debug, PartialEq)]
pub enum Implementation {
    /// The worktree holds the change.
    Done {
        /// The agent's summary.
        summary: String,
        /// What it used.
        usage: AgentUsage,
    },
    /// There is no change.
    NotDone {
        /// Why.
        why: String,
        /// What it used.
        usage: AgentUsage,
    },
}

/// Where an agent works and what it may use.
#[derive(Debug)]
pub struct Workspace<'a> {
    /// The repository of the campaign, for reading commits.
    pub repo: &'a Repo,
    /// The worktree at the parent; an agent changes files here and nowhere else.
    pub tree: &'a Path,
    /// Where briefs and answers are kept, outside the worktree.
    pub notes: &'a Path,
    /// Where the session log of a turn goes; the agent does not see this file.
    pub session_log: &'a Path,
    /// What the user asked for with Ctrl-C.
    pub stop: &'a StopFlag,
    /// What confines a program.
    pub sandbox: Option<&'a Sandbox>,
    /// The campaign's commands, for an agent that builds and tests through karve.
    pub harness: &'a Harness,
    /// The cases that it may see.
    pub cases: &'a [Case],
    /// What the campaign has used so far.
    pub spent: AgentUsage,
    /// How it runs commands on the machine with the device, if that is another one.
    pub exec: Option<&'a ExecAccess>,
}

/// A participant that proposes hypotheses and implements them.
pub trait Agent: Debug {
    /// Asks for the next hypothesis.
    fn propose(&mut self, brief: &Brief, workspace: &Workspace<'_>) -> Result<Proposal>;

    /// Asks to implement one in the given worktree.
    fn implement(
        &mut self,
        step: &ImplementStep,
        workspace: &Workspace<'_>,
    ) -> Result<Implementation>;

    /// Whether it needs a worktree to propose.
    fn reads_worktree(&self) -> bool;

    /// Whether a step must wait until an external agent answers.
    fn waits_for_answer(&self, _: &Step) -> bool {
        false
    }

    /// Environment variables of karve that hold its keys; no command of the project gets them.
    fn key_variables(&self) -> Vec<String> {
        Vec::new()
    }

    /// The name of the agent that is asked in a role, or without one, if known.
    fn called(&self, role: Option<&str>) -> Option<&str> {
        let _ = role;
        None
    }

    /// Whether some bytes contain a key that only it knows, such as one that a command printed.
    fn knows_key_in(&self, _: &[u8]) -> bool {
        false
    }

    /// Asks a self-contained question; the answer is text, and the worktree is only read.
    fn ask(
        &mut self,
        question: &AgentQuestion<'_>,
        workspace: &Workspace<'_>,
    ) -> Result<AgentReply> {
        let _ = (question, workspace);
        Ok(AgentReply::Failed {
            why: "this agent answers no questions".to_owned(),
            usage: AgentUsage::default(),
        })
    }

    /// Whether it is asked what a round taught that was made in a role.
    fn learns(&self, role: Option<&str>) -> bool {
        let _ = role;
        false
    }

    /// Asks what a round taught, in words.
    fn learn(
        &mut self,
        taught: &LessonQuestion<'_>,
        workspace: &Workspace<'_>,
    ) -> Result<LessonAnswer> {
        let _ = (taught, workspace);
        Ok(LessonAnswer::default())
    }
}

/// What a question is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuestionKind {
    /// A change, which is reviewed.
    Review,
    /// The kernel, whose profile is reported.
    Profile,
}

impl QuestionKind {
    fn task(self) -> turn::TurnTask {
        match self {
            Self::Review => turn::TurnTask::Review,
            Self::Profile => turn::TurnTask::Profile,
        }
    }
}

/// A self-contained question.
#[derive(Debug)]
pub struct AgentQuestion<'a> {
    /// What it is about.
    pub kind: QuestionKind,
    /// The round.
    pub round: u32,
    /// Which attempt of the round it is about.
    pub retry: u32,
    /// The role that is asked.
    pub role: &'a str,
    /// Everything needed for the answer.
    pub brief: &'a str,
}

/// The result of a question.
#[derive(Clone, Debug, PartialEq)]
pub enum AgentReply {
    /// An answer.
    Replied {
        /// The text of the answer, unchanged.
        text: String,
        /// What it used.
        usage: AgentUsage,
    },
    /// None.
    Failed {
        /// Why.
        why: String,
        /// What it used.
        usage: AgentUsage,
    },
}

/// What a round taught in numbers, for the agent that puts it in words.
#[derive(Debug)]
pub struct LessonQuestion<'a> {
    /// The round.
    pub round: u32,
    /// The role that made it, where there are roles.
    pub role: Option<&'a str>,
    /// What was claimed.
    pub hypothesis: &'a Hypothesis,
    /// The outcome.
    pub lesson: &'a str,
    /// Counters that it expected to move, and whether they did.
    pub predicted: &'a [PredictedCounter],
    /// What the library learns from it.
    pub learning: &'a Learning,
}

/// An agent's answer to the question what a round taught.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LessonAnswer {
    /// Its words.
    pub words: LessonNotes,
    /// Why there are none, if the answer cannot be used.
    pub failed: String,
    /// What it used.
    pub usage: AgentUsage,
}

/// The brief of a step for an external agent, with the directory of its files; none for the steps
/// that karve does itself.
pub fn brief_of(step: &Step, answer_to: &str, files_in: &Path) -> Result<Option<String>> {
    let brief = match step {
        Step::Propose { brief, .. } => prompt::render_propose(brief, answer_to)?,
        Step::Implement(step) => prompt::render_implement(step)?,
        _ => return Ok(None),
    };
    // It is in the first sentence, which is karve's own; an external agent runs elsewhere.
    Ok(Some(brief.replacen(prompt::HERE, &files_in.display().to_string(), 1)))
}

pub use prompt::{render_profile, render_review};

/// A claim, to which the caller adds what else it knows.
fn claim(title: String, mechanism: String, expected_ratio: f64) -> Hypothesis {
    Hypothesis { title, mechanism, expected_ratio, ..Hypothesis::default() }
}

/// The agent that a charter names.
pub fn agent_of(
    charter: &Charter,
    agents: &BTreeMap<String, AgentConfig>,
    tag: &str,
) -> Result<Box<dyn Agent>> {
    agent_named(&charter.agent, charter, agents, tag)
}

/// The agent with a name, with what a charter allows it.
fn agent_named(
    name: &str,
    charter: &Charter,
    agents: &BTreeMap<String, AgentConfig>,
    tag: &str,
) -> Result<Box<dyn Agent>> {
    if name == "builtin" {
        return Ok(Box::new(builtin::BuiltinAgent::new(
            charter.editable.clone(),
            charter.knobs.clone(),
        )));
    }
    if name == external::EXTERNAL {
        return Ok(Box::new(external::ExternalAgent::default()));
    }
    if name == scripted::SCRIPTED {
        return Ok(Box::new(scripted::ScriptedAgent::open()?));
    }
    if let Some(dir) = name.strip_prefix(REPLAY) {
        return Ok(Box::new(replay::ReplayAgent::open(&PathBuf::from(dir))?));
    }
    let Some(config) = config::agent_named(name, agents) else {
        let known: Vec<&str> = agents.keys().map(String::as_str).collect();
        return Err(CommandError::usage(format!("there is no agent {name:?}")).hint(format!(
            "use \"builtin\", a name from \"karve agents\", \"external\", \
                 \"replay:<campaign directory>\", or define it in karve.toml under \
                 [agents.{name}]; configured now: {}",
            if known.is_empty() { "none".to_owned() } else { known.join(", ") }
        )));
    };
    let AgentConfig { runs, env, pass, learn, reach } = config;
    let (limits, tag) = (&charter.limits, tag.to_owned());
    Ok(match runs {
        AgentLaunch::Line(line) => {
            let agent = command::CommandAgent::new(line, env, limits.agent_s, tag);
            Box::new(agent.learning(learn).reaching(reach).passing(pass))
        }
        AgentLaunch::Cli(config) => {
            let agent = cli::CliAgent::new(config, env, limits, tag)?;
            Box::new(agent.learning(learn).reaching(reach))
        }
        AgentLaunch::Api(config) => Box::new(api::ApiAgent::new(name, config, learn, charter)?),
    })
}

/// For the fuzzing tests: whether a text can be read as one of the answers of an agent.
#[doc(hidden)]
pub fn reads_answer(text: &str) -> bool {
    let (proposal, words) = (answer::parse_proposal(text), answer::parse_words(text));
    let implementation = answer::parse_implementation(text);
    let review = messages::review_of("0", text);
    answer::parse_usage(text);
    proposal.is_ok() || words.is_ok() || review.is_ok() || implementation.is_err()
}
