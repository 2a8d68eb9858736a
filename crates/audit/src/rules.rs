//! The rules of the audit: `rules.txt` lists them with their severity, and so does `docs/audit.md`.

use karve_core::integrity::{Bucket, Severity};
use std::sync::OnceLock;

/// A rule of the audit.
#[derive(Clone, Copy, Debug)]
pub(super) struct AuditRuleSpec {
    /// Its name in `[audit]` and in Findings.
    pub(super) name: &'static str,
    /// Its severity, unless `[audit]` says otherwise.
    pub(super) severity: Severity,
    /// Where a gain would come from, if the rule says.
    pub(super) bucket: Option<Bucket>,
}

/// All rules, the most severe first.
pub(super) fn rules() -> &'static [AuditRuleSpec] {
    static RULES: OnceLock<Vec<AuditRuleSpec>> = OnceLock::new();
    RULES.get_or_init(|| include_str!("rules.txt").lines().filter_map(parse_rule).collect())
}

/// A rule from its line: name, severity, bucket, and what it finds, which is for readers.
fn parse_rule(line: &'static str) -> Option<AuditRuleSpec> {
    let (name, rest) = line.split_once(' ').filter(|(name, _)| !name.starts_with('#'))?;
    let (severity, rest) = rest.trim_start().split_once(' ')?;
    let (bucket, _) = rest.trim_start().split_once(' ')?;
    let severities = [Severity::Forbidden, Severity::Suspicious, Severity::Advice];
    Some(AuditRuleSpec {
        name,
        severity: severities.into_iter().find(|known| known.name() == severity)?,
        bucket: Bucket::ALL.into_iter().find(|known| known.name() == bucket),
    })
}

/// The rule with that name.
pub(super) fn rule(name: &str) -> Option<&'static AuditRuleSpec> {
    rules().iter().find(|rule| rule.name == name)
}

/// All names, for `[audit]`.
pub fn rule_names() -> impl Iterator<Item = &'static str> {
    rules().iter().map(|rule| rule.name)
}
