//! How agents are asked: how long a brief may be, and who takes which role.

use crate::roles::{Duty, Role, RoleTable};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Bytes that count as one token. Four is typical of common tokenizers on English and code;
/// characters beyond ASCII have more bytes, and take more tokens.
pub const TOKEN_BYTES: usize = 4;

/// How agents are asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AskRule {
    /// Tokens of a brief at most, counted as `TOKEN_BYTES` bytes each.
    pub brief_tokens: u32,
    /// What is wanted, in words, for routing.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub intent: String,
    /// The architecture of the device, for routing.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub arch: String,
    /// The roles, if there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role_table: Option<Box<RoleTable>>,
    /// The agents of roles; the campaign's own agent takes the others.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub agents: BTreeMap<String, String>,
}

impl AskRule {
    /// Tokens of a brief, unless the charter says otherwise.
    pub const BRIEF_TOKENS: u32 = 1_500;
    /// Tokens of a brief that shows a change or a profile as a whole, unless the charter says
    /// otherwise.
    pub const LONG_BRIEF_TOKENS: u32 = 6_000;

    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// A role of the role table.
    pub fn role(&self, name: &str) -> Option<&Role> {
        self.role_table.as_ref()?.role(name)
    }

    /// The role that plans what others implement, if any.
    pub fn planner(&self) -> Option<&Role> {
        let role = self.role_table.as_ref()?.planner()?;
        self.agents.contains_key(&role.name).then_some(role)
    }

    /// The role that is asked to report each profile, if any.
    pub fn profiler(&self) -> Option<&Role> {
        let mut roles = self.role_table.as_ref()?.role.iter();
        roles.find(|role| role.may(Duty::Profile) && self.agents.contains_key(&role.name))
    }

    /// The role that reviews a change before its gate, if any.
    pub fn reviewer(&self) -> Option<&Role> {
        let role = self.role_table.as_ref()?.reviewer()?;
        self.agents.contains_key(&role.name).then_some(role)
    }
}

impl Default for AskRule {
    fn default() -> Self {
        Self {
            brief_tokens: Self::BRIEF_TOKENS,
            intent: String::new(),
            arch: String::new(),
            role_table: None,
            agents: BTreeMap::new(),
        }
    }
}
