//! The user's settings for audits: which rules are looser or stricter than their defaults.

use super::{AuditFinding, Severity};
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

/// The audit section of the charter.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AuditRule {
    /// Whether audits run.
    pub mode: AuditMode,
    /// Rules that find nothing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<String>,
    /// Rules whose Findings drop a candidate.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub forbid: Vec<String>,
    /// Names of arguments that are weights: a cache of them that is keyed on a version is W1.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub weights: Vec<String>,
    /// The time to prepare the weights over the time of a step, 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight_share: Option<f64>,
}

impl AuditRule {
    /// Whether everything has its default.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// A Finding under these settings: dropped, made more severe, or unchanged.
    pub fn weigh(&self, mut finding: AuditFinding) -> Option<AuditFinding> {
        if self.forbid.contains(&finding.rule) {
            finding.severity = Severity::Forbidden;
        } else if self.allow.contains(&finding.rule) {
            return None;
        }
        Some(finding)
    }
}
