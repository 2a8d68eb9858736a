//! What the user says about audits: which rules are looser or stricter than they are by themselves.

use super::{Finding, Severity};
use serde::{Deserialize, Serialize};

/// Whether candidates are audited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AuditMode {
    /// Before each is built.
    #[default]
    On,
    /// Not at all.
    Off,
}

/// The part of the charter that is about audits.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AuditRule {
    /// Whether there are any.
    pub mode: AuditMode,
    /// Rules that find nothing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<String>,
    /// Rules whose Findings drop a candidate.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub forbid: Vec<String>,
    /// Names of arguments that are weights: what is kept of them, with a version, is W1.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub weights: Vec<String>,
    /// The time to prepare the weights over the time of a step, 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight_share: Option<f64>,
}

impl AuditRule {
    /// Whether nothing was said.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// A Finding as this rule sees it: dropped, made graver, or as it is.
    pub fn weigh(&self, mut finding: Finding) -> Option<Finding> {
        if self.forbid.contains(&finding.rule) {
            finding.severity = Severity::Forbidden;
        } else if self.allow.contains(&finding.rule) {
            return None;
        }
        Some(finding)
    }
}
