//! `[agent]` and `[roles]` of `karve.toml`: which agent takes which role, and what it may write.

use super::agent_file::RoleAgentTable;
use super::agents::{can_be_named, known_agents};
use super::file::ConfigFile;
use super::scope::check_globs;
use super::source::ConfigSource;
use crate::roles;
use karve_agents::config::AgentConfig;
use karve_agents::external::EXTERNAL;
use karve_agents::scripted::SCRIPTED;
use karve_core::charter::{AskRule, Target};
use karve_core::roles::{Duty, Role, RoleRequest, RoleTable, route};
use karve_os::error::Result;
use karve_os::text::{shown, suggestion};
use std::collections::BTreeMap;

/// How agents are asked.
pub(super) fn asks_of(
    source: &ConfigSource<'_>,
    file: &ConfigFile,
    target: &Target,
    agents: &BTreeMap<String, AgentConfig>,
) -> Result<AskRule> {
    let mut asks = AskRule {
        brief_tokens: file.agent.brief_tokens.unwrap_or(AskRule::BRIEF_TOKENS),
        ..AskRule::default()
    };
    let intent = file.agent.intent.clone().unwrap_or_default();
    if file.roles.is_empty() && intent.is_empty() {
        return Ok(asks);
    }
    let mut table_of_roles = roles::built_in()?;
    let mut removed: Vec<String> = Vec::new();
    for (name, table) in &file.roles {
        let role = take_table(source, name, table, &mut table_of_roles, agents)?;
        match (&table.agent, table.enabled == Some(false)) {
            (_, true) => removed.push(role),
            (Some(agent), false) => drop(asks.agents.insert(role, agent.clone())),
            (None, false) => {}
        }
    }
    table_of_roles.role.retain(|role| !removed.contains(&role.name));
    table_of_roles.call.retain(|call| !removed.contains(&call.role));
    if table_of_roles.general().is_none() {
        let message = "the enabled roles are not sufficient: there is no fallback role: one that \
            may implement, without a language";
        return Err(source
            .error_at("roles", message)
            .hint("keep roles.designer enabled in karve.toml; \"karve roles\" lists them"));
    }
    asks.arch = roles::arch_of(target);
    asks.intent = intent;
    check_route(source, &table_of_roles, target, &asks)?;
    asks.role_table = Some(Box::new(table_of_roles));
    Ok(asks)
}

/// Takes what a table says about a role; returns the role's own name.
fn take_table(
    source: &ConfigSource<'_>,
    name: &str,
    table: &RoleAgentTable,
    table_of_roles: &mut RoleTable,
    agents: &BTreeMap<String, AgentConfig>,
) -> Result<String> {
    let path = format!("roles.{name}");
    let names: Vec<String> = table_of_roles.role.iter().map(|role| role.name.clone()).collect();
    let is_named = |role: &&mut Role| role.name == name || role.aka.iter().any(|aka| aka == name);
    let Some(role) = table_of_roles.role.iter_mut().find(is_named) else {
        let hint = suggestion(name, names.iter().map(String::as_str), "roles");
        return Err(source
            .error_at(&path, format!("there is no role `{}`", shown(name)))
            .hint(format!("{hint}; \"karve roles\" shows what each may do")));
    };
    if let Some(agent) = &table.agent {
        let at = format!("{path}.agent");
        if !can_be_named(agent, agents) {
            let hint = suggestion(agent, known_agents(agents), "agents");
            return Err(source
                .error_at(&at, format!("there is no agent `{}`", shown(agent)))
                .hint(format!("{hint}; name it in [agents] of karve.toml")));
        }
        let answers = role.may(Duty::Review) || role.may(Duty::Profile);
        let is_mute = agent == EXTERNAL || agent.starts_with("replay:");
        let is_scripted = agent == SCRIPTED && !agents.contains_key(agent);
        if is_mute || (answers && (agent == "builtin" || is_scripted)) {
            let message = format!("the agent `{}` cannot take the role {name}", shown(agent));
            return Err(source
                .error_at(&at, message)
                .hint(format!("name a command-line agent or one of [agents] in {at}")));
        }
    }
    if let Some(writes) = &table.writes {
        let at = format!("{path}.writes");
        check_globs(source, &at, writes)?;
        if !role.may(Duty::Implement) || writes.is_empty() {
            return Err(source
                .error_at(&at, format!("the role {name} changes no files"))
                .hint(format!("remove {at} from karve.toml")));
        }
        role.writes.clone_from(writes);
    }
    Ok(role.name.clone())
}

/// A request that no role can handle is rejected before anything runs.
fn check_route(
    source: &ConfigSource<'_>,
    table_of_roles: &RoleTable,
    target: &Target,
    asks: &AskRule,
) -> Result<()> {
    let kernel = match table_of_roles.called(&target.language) {
        Some(language) => language.name.clone(),
        None => target.language.to_lowercase(),
    };
    let request = RoleRequest {
        intent: asks.intent.clone(),
        arch: asks.arch.clone(),
        op: target.op.clone(),
        kernel,
        backend: target.backend.clone(),
        ..RoleRequest::default()
    };
    let Err(refused) = route(table_of_roles, &request) else {
        return Ok(());
    };
    let mut error = source.error_at("agent.intent", refused.describe());
    for reason in &refused.reasons {
        error = error.cause(format!("{}: {}", reason.rule, reason.text));
    }
    Err(error.hint("change agent.intent, or target.device, in karve.toml"))
}
