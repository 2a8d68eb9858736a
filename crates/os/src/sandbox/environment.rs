//! Which variables of karve's own environment a confined command sees.
//!
//! Variables that tell a compiler or a library where things are get passed on. Those that could
//! make a program load code, hold secrets, or point to shared caches do not.

use super::names;
use crate::process::EnvPolicy;
use karve_core::charter::SandboxRule;

/// What a command of the project sees.
pub(super) fn of_command(rule: &SandboxRule, set: &[(String, String)]) -> EnvPolicy {
    variables(rule, &[], set)
}

/// What a kernel's process sees.
pub(super) fn of_kernel(rule: &SandboxRule) -> EnvPolicy {
    variables(rule, names("kernel-variables"), &[])
}

/// What an agent sees. Its home is the real one, where its program keeps its credentials.
pub(super) fn of_agent(rule: &SandboxRule, set: &[(String, String)]) -> EnvPolicy {
    let own = ["HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"];
    let set: Vec<_> =
        set.iter().filter(|(name, _)| !own.contains(&name.as_str())).cloned().collect();
    variables(rule, &[&own[..], names("agent-variables")].concat(), &set)
}

/// What is passed on to an agent of a known kind, which needs its own variables and none of
/// another agent's.
pub(super) fn of_kind(more: &[String], own: &[&str]) -> EnvPolicy {
    let usual = names("variables").iter().chain(names("program-variables")).chain(own);
    let usual = usual.map(|name| (*name).to_owned());
    EnvPolicy { passed: usual.chain(more.iter().cloned()).collect(), set: Vec::new() }
}

fn variables(rule: &SandboxRule, more: &[&str], set: &[(String, String)]) -> EnvPolicy {
    let usual = names("variables").iter().chain(more).map(|name| (*name).to_owned());
    EnvPolicy { passed: usual.chain(rule.env.iter().cloned()).collect(), set: set.to_vec() }
}
