//! Whether a gain is real: what an audit found in a change, what may be counted, and how much of a
//! campaign's gain remains without caches and impossible figures.
//!
//! Nothing here looks at source or at the host. An audit of the source or of a run fills in
//! Findings; `plausible` bounds what a change can gain.

mod plausible;
mod proof;
mod rule;
mod seeds;
mod training;
mod work;

pub use plausible::{
    ImplausibleReason, ROOFLINE_HARD, ROOFLINE_SLACK, amdahl_ratio, assess_gain, assess_time,
};

pub use proof::{
    GHOST_RULE, GainDoubt, GainProof, MutantCheck, ROUND_RATIO_MAX, STATE_RULES, allowed_round,
    buffers_in, has_ghost, output_in, remaining, state_in,
};
pub use rule::{AuditMode, AuditRule};
pub use seeds::{CHECKSUM_REL_MAX, SeedReaction, differing_checksum};
pub use training::{StepTrace, is_grouped, is_skewed, lacks_skew, trace};
pub use work::{
    CallCost, CallKind, CaseWork, CountedRun, WorkCounts, can_notice, can_tell_by_computing,
    is_interpreted, objection,
};

use crate::measurement::Gate;
use serde::{Deserialize, Serialize};

/// Maximum number of stored Findings per change; the most severe come first.
pub const FINDINGS_MAX: usize = 64;
/// Maximum length of a Finding's text, in characters.
pub const WHAT_CHARS_MAX: usize = 240;

/// Where a gain comes from. K transfers fully to real use, W1 within a bound, W2 and W3 not at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Bucket {
    /// Inside the kernel.
    K1,
    /// A second layout of the same data.
    K2,
    /// Several launches became one.
    K3,
    /// Data that is passed along inside the same call.
    K4,
    /// Prepared weights are cached by identity and version.
    W1,
    /// Results that belong to inputs, gradients or scales are cached.
    W2,
    /// Results are cached by whatever the caller passes.
    W3,
}

impl Bucket {
    /// All of them, from the kernel to the cache.
    pub const ALL: [Self; 7] =
        [Self::K1, Self::K2, Self::K3, Self::K4, Self::W1, Self::W2, Self::W3];

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::K1 => "K1",
            Self::K2 => "K2",
            Self::K3 => "K3",
            Self::K4 => "K4",
            Self::W1 => "W1",
            Self::W2 => "W2",
            Self::W3 => "W3",
        }
    }

    /// What it means, in a few words.
    pub fn describe(self) -> &'static str {
        match self {
            Self::K1 => "kernel-internal",
            Self::K2 => "layout duplicate",
            Self::K3 => "single-launch fusion",
            Self::K4 => "same-call data flow",
            Self::W1 => "weight cache keyed on identity and version",
            Self::W2 => "cache on inputs, gradients or scales",
            Self::W3 => "generic memoization",
        }
    }

    /// How a gain of this kind counts.
    pub fn transfer(self) -> Transfer {
        match self {
            Self::K1 | Self::K2 | Self::K3 | Self::K4 => Transfer::AsReal,
            Self::W1 => Transfer::WithAsterisk,
            Self::W2 | Self::W3 => Transfer::Overfit,
        }
    }
}

/// Whether a gain transfers from the benchmark to real use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Transfer {
    /// It does.
    AsReal,
    /// It does up to a bound.
    WithAsterisk,
    /// Nothing shows whether it does.
    Unknown,
    /// It does not.
    Overfit,
}

impl Transfer {
    /// The decision, as written by the transfer check of a round.
    pub fn decision(self) -> &'static str {
        match self {
            Self::AsReal => "ACCEPT-as-real",
            Self::WithAsterisk => "ACCEPT-with-asterisk",
            Self::Unknown => "UNKNOWN",
            Self::Overfit => "REJECT-as-overfit",
        }
    }
}

/// The severity of a Finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// No honest kernel needs it: the candidate is dropped.
    Forbidden,
    /// An honest kernel may need it, but so may a cheat: a person should look at it.
    Suspicious,
    /// Worth knowing.
    Advice,
}

impl Severity {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Forbidden => "forbidden",
            Self::Suspicious => "suspicious",
            Self::Advice => "advice",
        }
    }
}

/// Something that an audit found in a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditFinding {
    /// The rule, by its name in `[audit]`.
    pub rule: String,
    /// Its severity.
    pub severity: Severity,
    /// Where the gain would come from, if the rule says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bucket: Option<Bucket>,
    /// The file.
    pub file: String,
    /// The line, from 1; 0 where the whole file is meant.
    pub line: u32,
    /// What was seen.
    pub what: String,
}

impl AuditFinding {
    /// One line: where, which rule, and what.
    pub fn describe(&self) -> String {
        let place = match self.line {
            0 => self.file.clone(),
            line => format!("{}:{line}", self.file),
        };
        format!("{place}: {} ({}): {}", self.rule, self.severity.name(), self.what)
    }
}

/// The classification of a change, from its Findings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Classification {
    /// The bucket that decides: the one that transfers least; `None` if nothing shows one.
    pub bucket: Option<Bucket>,
    /// All buckets that were seen, in order.
    pub buckets: Vec<Bucket>,
    /// The key under which something is cached, in words; `None` if nothing is.
    pub cache_key: Option<String>,
    /// What shows that the work was done, if anything does.
    pub proof: Option<GainProof>,
}

impl Classification {
    /// Whether the gain transfers. That it does is never assumed.
    pub fn transfer(&self) -> Transfer {
        match (self.bucket.map(Bucket::transfer), self.proof) {
            (Some(Transfer::AsReal) | None, None) => Transfer::Unknown,
            (Some(transfer), _) => transfer,
            (None, Some(_)) => Transfer::AsReal,
        }
    }

    /// The bucket, in words.
    pub fn describe(&self) -> &'static str {
        self.bucket.map_or("nothing shows where the gain comes from", Bucket::describe)
    }
}

/// The bucket of a change. With a proof that the work was done, a change with no other bucket is
/// inside the kernel; without one, its bucket is unknown.
pub fn classify(findings: &[AuditFinding], proof: Option<GainProof>) -> Classification {
    let mut buckets: Vec<Bucket> = findings.iter().filter_map(|finding| finding.bucket).collect();
    buckets.sort_unstable();
    buckets.dedup();
    if buckets.is_empty() && proof.is_some() {
        buckets.push(Bucket::K1);
    }
    let bucket = buckets.last().copied();
    let of_cache = |finding: &&AuditFinding| {
        finding.bucket == bucket && bucket.is_some_and(|b| b.transfer() != Transfer::AsReal)
    };
    Classification {
        bucket,
        buckets,
        cache_key: findings.iter().find(of_cache).map(|finding| finding.what.clone()),
        proof,
    }
}

/// Sorted by severity, location and rule, without duplicates, and bounded.
#[must_use]
pub fn in_order(mut findings: Vec<AuditFinding>) -> Vec<AuditFinding> {
    for finding in &mut findings {
        if finding.what.chars().count() > WHAT_CHARS_MAX {
            finding.what = finding.what.chars().take(WHAT_CHARS_MAX).collect();
        }
    }
    findings.sort_by(|a, b| {
        let place = |f: &AuditFinding| (f.severity, f.file.clone(), f.line, f.rule.clone());
        place(a).cmp(&place(b)).then_with(|| a.what.cmp(&b.what))
    });
    findings.dedup();
    findings.truncate(FINDINGS_MAX);
    findings
}

/// How many findings a person should look at, in words; `None` if there are none.
pub fn suspicious_note(findings: &[AuditFinding]) -> Option<String> {
    match findings.iter().filter(|finding| finding.severity == Severity::Suspicious).count() {
        0 => None,
        1 => Some("1 suspicious finding".to_owned()),
        n => Some(format!("{n} suspicious findings")),
    }
}

/// The gate's message about a change, if it contains something forbidden.
pub fn forbids(findings: &[AuditFinding]) -> Option<Gate> {
    let forbidden = |finding: &&AuditFinding| finding.severity == Severity::Forbidden;
    let n = findings.iter().filter(forbidden).count();
    let first = findings.iter().find(forbidden)?;
    let more = match n {
        1 => String::new(),
        n => format!(", and {} more", n - 1),
    };
    Some(Gate::Dishonest { why: format!("the audit forbids it: {}{more}", first.describe()) })
}

/// Where a contract allows one thread, a change that starts more is refused before it is measured:
/// it would be charged for the CPU time of all of them.
pub fn forbid_threads(findings: &mut [AuditFinding], allowed: u32) {
    if allowed > 1 {
        return;
    }
    for finding in findings.iter_mut().filter(|finding| finding.rule == "threads") {
        finding.severity = Severity::Forbidden;
        finding.what += "; the contract allows one thread (contract.threads)";
    }
}

#[cfg(test)]
mod tests;
