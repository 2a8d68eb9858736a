//! The user's settings for audits: which rules are looser or stricter than their defaults.

use super::{AuditFinding, STATE_RULES, Severity};
use serde::{Deserialize, Serialize};

/// Whether candidates are audited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AuditMode {
    /// Before each is built.
    #[default]
    On,
    /// Only for state that outlives a call.
    Off,
}

/// The audit section of the charter.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AuditRule {
    /// Whether audits run.
    pub mode: AuditMode,
    /// Rules that find nothing; of state that outlives a call, the findings become suspicious.
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

    /// A Finding under these settings: dropped, made more or less severe, or unchanged. State that
    /// outlives a call is always reported: without a proof, a gain with it is not kept.
    pub fn weigh(&self, mut finding: AuditFinding) -> Option<AuditFinding> {
        let is_off = self.mode == AuditMode::Off;
        if self.forbid.contains(&finding.rule) && !is_off {
            finding.severity = Severity::Forbidden;
        } else if is_off || self.allow.contains(&finding.rule) {
            let is_state = STATE_RULES.contains(&finding.rule.as_str());
            if !is_state || finding.severity == Severity::Advice {
                return None;
            }
            finding.severity = Severity::Suspicious;
        }
        Some(finding)
    }
}
