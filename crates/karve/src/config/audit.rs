//! `[audit]`: which rules of the audit are looser or stricter than by default.

use super::names::AuditModeName;
use super::source::ConfigSource;
use karve_core::integrity::{AuditMode, AuditRule};
use karve_os::error::Result;
use karve_os::text::{shown, suggestion};
use schemars::JsonSchema;
use serde::Deserialize;

/// What the audit of a candidate's source looks for; see `docs/audit.md`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AuditTable {
    /// `on`, or `off` to look only for state that outlives a call; `on` by default.
    #[schemars(with = "Option<AuditModeName>")]
    pub(super) mode: Option<AuditMode>,
    /// Rules to turn off, such as `threads`; rules about state that outlives a call become
    /// suspicious.
    #[serde(default)]
    pub(super) allow: Vec<String>,
    /// Rules whose findings drop a candidate.
    #[serde(default)]
    pub(super) forbid: Vec<String>,
    /// Names of arguments that are weights: caches of them must check their identity and version.
    #[serde(default)]
    pub(super) weights: Vec<String>,
    /// The time to prepare the weights divided by the time of a step; limits the speedup that a
    /// weight cache may account for.
    #[schemars(range(min = 0, max = 1))]
    pub(super) weight_share: Option<f64>,
}

/// What the charter says about audits.
pub(super) fn audit_of(source: &ConfigSource<'_>, table: &AuditTable) -> Result<AuditRule> {
    for (key, rules) in [("audit.allow", &table.allow), ("audit.forbid", &table.forbid)] {
        for (index, name) in rules.iter().enumerate() {
            if karve_audit::rule_names().all(|known| known != name) {
                let message = format!("`{}` is not an audit rule", shown(name));
                let hint =
                    suggestion(name, karve_audit::rule_names(), &format!("`{key}` may name"));
                return Err(source.error(source.item_line(key, index), message).hint(hint));
            }
        }
    }
    if let Some(both) = table.allow.iter().find(|name| table.forbid.contains(name)) {
        let message = format!("`{both}` is both allowed and forbidden");
        return Err(source
            .error_at("audit.forbid", message)
            .hint("name it in audit.allow or in audit.forbid, not in both"));
    }
    Ok(AuditRule {
        mode: table.mode.unwrap_or_default(),
        allow: table.allow.clone(),
        forbid: table.forbid.clone(),
        weights: table.weights.clone(),
        weight_share: table.weight_share,
    })
}
