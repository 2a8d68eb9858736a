//! What an agent in the role of a profiler reports, held against karve's own counters.
//!
//! The report is data from elsewhere: it decides nothing, and where it contradicts a counter that
//! karve measured, the next brief says so.

use super::classify::with_derived;
use super::{Bottleneck, CounterValues, KernelProfile, Profile};
use crate::spending::{AgentUsage, EndedTurns, UnreadableAnswer};
use serde::{Deserialize, Serialize};

/// The longest report that is taken, in characters; a compact summary has a tenth of it.
pub const REPORT_CHARS_MAX: usize = 8_000;
/// The most contradictions that are kept.
const DISPUTES_MAX: usize = 8;
/// Two shares in percent agree if they differ by at most this many points.
const SHARE_SLACK: f64 = 5.0;
/// Other values agree if they differ by at most this part of the larger one.
const VALUE_SLACK: f64 = 0.1;
/// Shorter names of stages may be part of any kernel's name.
const STAGE_CHARS_MIN: usize = 3;

/// What the profiler role reported, or why it did not.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AgentProfile {
    /// The role that was asked.
    pub role: String,
    /// Its report in the published form, unchanged; empty if there is none.
    pub text: String,
    /// Where it contradicts karve's own counters.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub disputes: Vec<String>,
    /// How many of its values karve had measured too.
    pub checked: u32,
    /// Why there is no report.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub failed: String,
    /// What all its turns used.
    pub usage: AgentUsage,
    /// The artifact with the session log of the last turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_log: Option<String>,
    /// Turns before the last one, whose answers could not be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<UnreadableAnswer>,
}

/// What a report claims, as far as karve may have measured it.
#[derive(Clone, Debug, PartialEq)]
pub struct ReportClaims {
    /// The report, unchanged.
    pub text: String,
    /// The class that it names.
    pub bottleneck: Bottleneck,
    /// Its values.
    pub values: Vec<ReportedValue>,
}

/// A value of a report.
#[derive(Clone, Debug, PartialEq)]
pub struct ReportedValue {
    /// The stage, or nothing for the kernel as a whole.
    pub stage: String,
    /// The counter, by karve's name.
    pub counter: String,
    /// The value, in the unit of the name.
    pub value: f64,
}

impl AgentProfile {
    /// What came of asking a role, held against the profile.
    pub fn of(role: &str, turns: EndedTurns<ReportClaims>, profile: &Profile) -> Self {
        let mut report = Self {
            role: role.to_owned(),
            usage: turns.usage,
            session_log: turns.session_log,
            earlier: turns.earlier,
            ..Self::default()
        };
        match turns.answer {
            Some(claims) => {
                report.check(&claims, profile);
                report.text = claims.text;
            }
            None => report.failed = turns.why,
        }
        report
    }

    fn check(&mut self, claims: &ReportClaims, profile: &Profile) {
        let mut disputes = Vec::new();
        let measured = profile.bottleneck;
        if ![claims.bottleneck, measured].contains(&Bottleneck::Unknown) {
            self.checked += 1;
            if claims.bottleneck != measured {
                let (said, is) = (claims.bottleneck.name(), measured.name());
                disputes.push(format!("it says {said}-bound, karve's counters say {is}"));
            }
        }
        for claim in &claims.values {
            let Some(counters) = kernel_of(profile, &claim.stage).map(with_derived) else {
                continue;
            };
            let Some(own) = measured_value(&counters, &claim.counter) else {
                continue;
            };
            self.checked = self.checked.saturating_add(1);
            if !agrees(&claim.counter, claim.value, own) {
                let (counter, value) = (&claim.counter, claim.value);
                disputes.push(format!("it says {counter}={value}, karve measured {own:.4}"));
            }
        }
        disputes.dedup();
        disputes.truncate(DISPUTES_MAX);
        self.disputes = disputes;
    }

    /// In one line.
    pub fn describe(&self) -> String {
        match (self.failed.as_str(), self.disputes.as_slice()) {
            ("", []) => format!("{} reported; {} values agree", self.role, self.checked),
            ("", disputes) => format!("{} reported; {}", self.role, disputes.join("; ")),
            (why, _) => format!("{} gave no report: {why}", self.role),
        }
    }

    /// What the next brief says of it; nothing without a report.
    pub fn for_brief(&self) -> String {
        if self.text.is_empty() {
            return String::new();
        }
        let mut text = format!("{}\n", self.text.trim_end());
        for dispute in &self.disputes {
            text.push_str(&format!("\nContradicted by karve's own profile: {dispute}"));
        }
        text
    }
}

/// The kernel that a stage is about, if karve saw it.
fn kernel_of<'a>(profile: &'a Profile, stage: &str) -> Option<&'a KernelProfile> {
    let stage = stage.to_lowercase();
    if stage.is_empty() {
        return profile.main_kernel();
    }
    let is_named = |kernel: &&KernelProfile| {
        let name = kernel.name.to_lowercase();
        name == stage || stage.chars().count() >= STAGE_CHARS_MIN && name.contains(&stage)
    };
    profile.kernels.iter().find(is_named)
}

fn measured_value(counters: &CounterValues, name: &str) -> Option<f64> {
    counters.get(name).copied().filter(|value| value.is_finite())
}

fn agrees(counter: &str, said: f64, own: f64) -> bool {
    let apart = (said - own).abs();
    match counter.ends_with("_pct") {
        true => apart <= SHARE_SLACK,
        false => apart <= VALUE_SLACK * said.abs().max(own.abs()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{ProfileDepth, ProfileSource};
    use crate::spending::{AnswerTurns, TurnAnswer};

    fn profile(counters: &[(&str, f64)]) -> Profile {
        let mut kernel = KernelProfile::named("attention_kernel");
        for (name, value) in counters {
            assert!(kernel.set(name, *value, ProfileSource::default()));
        }
        Profile {
            commit: "c".into(),
            depth: ProfileDepth::Light,
            bottleneck: Bottleneck::Memory,
            digest: String::new(),
            artifact: None,
            skipped: None,
            share: None,
            kernels: vec![kernel],
            diagnosis: None,
            notes: Vec::new(),
            assembly: None,
            report: None,
        }
    }

    fn value(stage: &str, counter: &str, value: f64) -> ReportedValue {
        ReportedValue { stage: stage.into(), counter: counter.into(), value }
    }

    fn claims(bottleneck: Bottleneck, values: Vec<ReportedValue>) -> ReportClaims {
        ReportClaims { text: "## Profile: k v1\n".into(), bottleneck, values }
    }

    /// The report after these answers.
    fn report(answers: Vec<TurnAnswer<ReportClaims>>) -> AgentProfile {
        let mut turns = AnswerTurns::default();
        for answer in answers {
            assert!(turns.is_due());
            turns.add(answer, AgentUsage { tokens: 3, ..AgentUsage::default() }, None);
        }
        assert!(!turns.is_due());
        let profile = profile(&[("dram_pct", 88.0), ("duration_us", 50.0)]);
        AgentProfile::of("profiler", turns.end(), &profile)
    }

    #[test]
    fn a_report_is_held_against_the_counters_that_karve_has_too() {
        let near = vec![
            value("attention", "dram_pct", 91.0),
            value("", "duration_us", 52.0),
            value("combine", "dram_pct", 1.0),
            value("attention", "tensor_pct", 40.0),
        ];
        let said = report(vec![TurnAnswer::Read(claims(Bottleneck::Memory, near))]);
        assert!(said.disputes.is_empty(), "{:?}", said.disputes);
        assert_eq!(said.checked, 3);
        assert_eq!(said.for_brief(), "## Profile: k v1\n");

        let far = vec![value("attention", "dram_pct", 22.0), value("", "duration_us", 40.0)];
        let said = report(vec![TurnAnswer::Read(claims(Bottleneck::Latency, far))]);
        assert_eq!(
            said.disputes,
            [
                "it says latency-bound, karve's counters say memory",
                "it says dram_pct=22, karve measured 88.0000",
                "it says duration_us=40, karve measured 50.0000",
            ]
        );
        assert!(said.for_brief().contains("Contradicted by karve's own profile: it says latency"));
    }

    #[test]
    fn a_profiler_is_asked_once_more_and_then_karves_own_profile_stands_alone() {
        let bad = || TurnAnswer::Unreadable(vec!["the section \"### Stages\" is missing".into()]);
        let said = report(vec![bad(), bad()]);
        assert!(said.describe().contains("gave no report: the section"), "{}", said.describe());
        assert_eq!((said.for_brief().as_str(), said.earlier.len()), ("", 1));
        assert_eq!(said.usage.tokens, 6);
        let said = report(vec![TurnAnswer::Missing("it crashed".into())]);
        assert_eq!(said.failed, "it crashed");
        let good = || TurnAnswer::Read(claims(Bottleneck::Unknown, Vec::new()));
        let said = report(vec![bad(), good()]);
        assert_eq!((said.failed.as_str(), said.checked, said.earlier.len()), ("", 0, 1));
    }
}
