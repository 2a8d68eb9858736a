//! Agents in roles: each question goes to the agent of its role.
//!
//! The role was decided earlier and is in the brief. For a role without its own agent, the
//! campaign's agent is used.

use super::{
    Agent, AgentQuestion, AgentReply, Implementation, LessonAnswer, LessonQuestion, Proposal,
    Workspace, agent_named, agent_of,
};
use crate::config::AgentConfig;
use karve_core::campaign::strategy::Brief;
use karve_core::campaign::{ImplementStep, Step};
use karve_core::charter::Charter;
use karve_os::error::Result;
use std::collections::BTreeMap;

/// Which roles keep their agents in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentRetention {
    /// Every role.
    All,
    /// Only those that answer questions, the reviewer and the profiler: another agent proposes and
    /// implements in this run.
    Answering,
    /// None.
    None,
}

/// The campaign's own agent, and those of roles.
#[derive(Debug)]
pub struct AgentTeam {
    own: NamedAgent,
    roles: BTreeMap<String, NamedAgent>,
}

/// An agent with its name.
#[derive(Debug)]
pub struct NamedAgent {
    name: String,
    agent: Box<dyn Agent>,
}

impl NamedAgent {
    /// The display name: without the model or the directory that was given with it.
    pub fn new(name: &str, agent: Box<dyn Agent>) -> Self {
        let name = name.split(':').next().unwrap_or(name).to_owned();
        Self { name, agent }
    }
}

/// The agents of a run: the campaign's agent, plus those of the roles if there are any.
pub fn team_of(
    charter: &Charter,
    agents: &BTreeMap<String, AgentConfig>,
    tag: &str,
) -> Result<Box<dyn Agent>> {
    let own = agent_of(charter, agents, tag)?;
    with_roles(NamedAgent::new(&charter.agent, own), charter, AgentRetention::All, agents, tag)
}

/// A named agent, plus those of the roles that keep theirs.
pub fn with_roles(
    own: NamedAgent,
    charter: &Charter,
    keeps: AgentRetention,
    agents: &BTreeMap<String, AgentConfig>,
    tag: &str,
) -> Result<Box<dyn Agent>> {
    let answering = [charter.asks.reviewer(), charter.asks.profiler()];
    let mut roles = BTreeMap::new();
    for (role, named) in &charter.asks.agents {
        let kept = match keeps {
            AgentRetention::All => true,
            AgentRetention::Answering => {
                answering.iter().flatten().any(|answers| answers.name == *role)
            }
            AgentRetention::None => false,
        };
        if kept {
            let agent = agent_named(named, charter, agents, tag)?;
            roles.insert(role.clone(), NamedAgent::new(named, agent));
        }
    }
    Ok(Box::new(AgentTeam { own, roles }))
}

impl AgentTeam {
    fn member_for(&self, role: Option<&str>) -> &NamedAgent {
        let of_role = role.and_then(|role| self.roles.get(role));
        of_role.unwrap_or(&self.own)
    }

    fn of(&mut self, role: Option<&str>) -> &mut dyn Agent {
        match role.and_then(|role| self.roles.get_mut(role)) {
            Some(member) => member.agent.as_mut(),
            None => self.own.agent.as_mut(),
        }
    }
}

fn proposes(brief: &Brief) -> Option<&str> {
    brief.roles.as_ref().map(|roles| roles.route.role.as_str())
}

fn implements(step: &ImplementStep) -> Option<&str> {
    step.brief.roles.as_ref().map(|roles| roles.route.implements.as_str())
}

impl Agent for AgentTeam {
    fn propose(&mut self, brief: &Brief, workspace: &Workspace<'_>) -> Result<Proposal> {
        self.of(proposes(brief)).propose(brief, workspace)
    }

    fn implement(
        &mut self,
        step: &ImplementStep,
        workspace: &Workspace<'_>,
    ) -> Result<Implementation> {
        self.of(implements(step)).implement(step, workspace)
    }

    fn ask(
        &mut self,
        question: &AgentQuestion<'_>,
        workspace: &Workspace<'_>,
    ) -> Result<AgentReply> {
        self.of(Some(question.role)).ask(question, workspace)
    }

    /// Any of them may.
    fn reads_worktree(&self) -> bool {
        let mut roles = self.roles.values();
        self.own.agent.reads_worktree() || roles.any(|member| member.agent.reads_worktree())
    }

    fn called(&self, role: Option<&str>) -> Option<&str> {
        Some(&self.member_for(role).name)
    }

    fn waits_for_answer(&self, step: &Step) -> bool {
        let role = match step {
            Step::Propose { brief, .. } => proposes(brief),
            Step::Implement(step) => implements(step),
            _ => None,
        };
        self.member_for(role).agent.waits_for_answer(step)
    }

    /// The keys of all agents: no command of the project gets any of them.
    fn key_variables(&self) -> Vec<String> {
        let members = self.roles.values().chain([&self.own]);
        let mut all: Vec<String> = members.flat_map(|one| one.agent.key_variables()).collect();
        all.sort();
        all.dedup();
        all
    }

    fn knows_key_in(&self, bytes: &[u8]) -> bool {
        let mut members = self.roles.values().chain([&self.own]);
        members.any(|member| member.agent.knows_key_in(bytes))
    }

    fn learns(&self, role: Option<&str>) -> bool {
        self.member_for(role).agent.learns(role)
    }

    /// The agent that made a round knows best what it taught.
    fn learn(
        &mut self,
        taught: &LessonQuestion<'_>,
        workspace: &Workspace<'_>,
    ) -> Result<LessonAnswer> {
        self.of(taught.role).learn(taught, workspace)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::CommandAgent;

    fn member(name: &str, learns: bool) -> NamedAgent {
        let agent = CommandAgent::new("true".into(), BTreeMap::new(), 1, "tag".into());
        NamedAgent::new(name, Box::new(agent.learning(learns)))
    }

    #[test]
    fn who_made_a_round_is_asked_what_it_taught() {
        let team = AgentTeam {
            own: member("mine", true),
            roles: [("designer".to_owned(), member("other", false))].into(),
        };
        assert!(!team.learns(Some("designer")));
        // For a role without its own agent, the campaign's agent is used.
        assert!(team.learns(Some("profiler")) && team.learns(None));
    }
}
