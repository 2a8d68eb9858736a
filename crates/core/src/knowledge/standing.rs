//! What evidence makes of an entry: verified when it was replicated, refuted when a measurement
//! speaks against it, narrowed when both are true in different places.

use super::{Entry, Evidence, Scope, Status};

/// A speedup below this is none.
const NO_GAIN_RATIO: f64 = 1.01;
/// So many independent runs replicate a finding.
const REPLICATED: usize = 2;

/// What one piece of evidence says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Faster, and the whole interval says so.
    Supports,
    /// Not faster: slower, or the whole interval lies below what is worth having.
    Refutes,
    /// It could be either.
    Open,
}

/// How an entry stands, given its evidence.
#[derive(Clone, Debug, PartialEq)]
pub struct Standing {
    /// The status that follows.
    pub status: Status,
    /// Why, in words.
    pub why: String,
    /// Independent runs for it.
    pub n_for: usize,
    /// Independent runs against it.
    pub n_against: usize,
    /// What it depends on is out, so that nobody knows whether it holds.
    pub in_question: Option<String>,
}

impl Standing {
    /// Whether it should not be acted on.
    pub fn is_out(&self) -> bool {
        self.in_question.is_some() || matches!(self.status, Status::Refuted | Status::Superseded)
    }

    /// In words.
    pub fn describe(&self) -> String {
        let asked = self.in_question.as_ref();
        let asked = asked.map_or_else(String::new, |why| format!("; in question: {why}"));
        format!("{}: {}{asked}", self.status.name(), self.why)
    }

    /// How much it is trusted, as a part of a score.
    pub fn trust(&self) -> f64 {
        let base = match self.status {
            Status::Verified => 1.0,
            Status::Candidate => 0.0,
            Status::Refuted | Status::Superseded => -4.0,
        };
        let runs = (self.n_for as f64).min(8.0) - 2.0 * (self.n_against as f64).min(8.0);
        base + 0.15 * runs
    }
}

/// What one piece of evidence says of the claim that something is faster.
pub fn effect_of(evidence: &Evidence) -> Effect {
    if evidence.failed {
        return Effect::Refutes;
    }
    let usable = |value: f64| value.is_finite() && value > 0.0;
    if !usable(evidence.ratio) {
        return Effect::Open;
    }
    let low = evidence.low.filter(|low| usable(*low));
    let high = evidence.high.filter(|high| usable(*high));
    match (low, high) {
        (Some(low), _) if low > 1.0 && evidence.ratio >= NO_GAIN_RATIO => Effect::Supports,
        (_, Some(high)) if high < NO_GAIN_RATIO => Effect::Refutes,
        // Without an interval only a large difference says something.
        (None, None) if evidence.ratio >= 1.05 => Effect::Supports,
        (None, None) if evidence.ratio <= 0.95 => Effect::Refutes,
        _ => Effect::Open,
    }
}

/// How an entry stands. What a person decided (superseded, retracted) stays; of the rest, evidence
/// decides, and without any what the entry says of itself.
pub fn assess(entry: &Entry) -> Standing {
    let (n_for, n_against) = weigh(&entry.evidence);
    let standing = |status, why: String| Standing {
        status,
        why,
        n_for,
        n_against,
        in_question: None,
    };
    if let Some(retraction) = &entry.retracted {
        return standing(Status::Refuted, format!("retracted: {}", retraction.why));
    }
    if entry.status == Status::Superseded {
        let by = entry.superseded_by.as_deref().unwrap_or("another entry");
        return standing(Status::Superseded, format!("superseded by {by}"));
    }
    // An anti-pattern claims that something is slower: what refutes that is support for the change.
    let (n_for, n_against) = match entry.kind {
        super::Kind::AntiPattern => (n_against, n_for),
        super::Kind::Optimization
        | super::Kind::Case
        | super::Kind::Tip
        | super::Kind::Technique => (n_for, n_against),
    };
    let standing = |status, why: String| Standing {
        status,
        why,
        n_for,
        n_against,
        in_question: None,
    };
    match (n_for, n_against) {
        (0, 0) => standing(
            entry.status,
            "nothing was measured for or against it".into(),
        ),
        (0, against) => standing(
            Status::Refuted,
            format!("{} against it and none for it", runs(against)),
        ),
        (shown, 0) if shown >= REPLICATED => {
            standing(Status::Verified, format!("replicated in {}", runs(shown)))
        }
        (_, 0) => standing(entry.status, "shown in one run".into()),
        (shown, against) if against > shown => standing(
            Status::Refuted,
            format!("{} against it, {} for it", runs(against), runs(shown)),
        ),
        (shown, against) => standing(
            Status::Candidate,
            format!("{} for it, {} against it", runs(shown), runs(against)),
        ),
    }
}

fn runs(n: usize) -> String {
    if n == 1 {
        "1 run".to_owned()
    } else {
        format!("{n} runs")
    }
}

/// How many independent runs are for and against something. Evidence of the same run counts once.
pub fn weigh(evidence: &[Evidence]) -> (usize, usize) {
    let of = |effect: Effect| {
        let said = evidence.iter().filter(|e| effect_of(e) == effect);
        let mut runs: Vec<&str> = said.map(|e| e.run.as_str()).collect();
        runs.sort_unstable();
        runs.dedup();
        runs.len()
    };
    (of(Effect::Supports), of(Effect::Refutes))
}

/// Where an entry was shown not to hold while it holds elsewhere: a scope to except, or `None` if
/// its evidence does not tell the places apart.
pub fn narrowed(entry: &Entry, here: &Scope) -> Option<Scope> {
    let elsewhere = |e: &&Evidence| {
        effect_of(e) == Effect::Supports && !here.device.is_empty() && {
            let device = e.device.to_lowercase();
            let op = e.workload.to_lowercase();
            let same_device = here
                .device
                .iter()
                .any(|d| device.contains(&d.to_lowercase()));
            let same_op = here.op.iter().any(|o| op.contains(&o.to_lowercase()));
            !(same_device && same_op)
        }
    };
    let supported_elsewhere = entry.evidence.iter().any(|e| elsewhere(&e));
    let vouched = entry.status == Status::Verified;
    (supported_elsewhere || vouched).then(|| here.clone())
}

/// The ids of entries that depend on one, directly or through others.
pub fn dependants(entries: &[Entry], id: &str) -> Vec<String> {
    let linked = |entry: &&Entry| !entry.interactions.depends_on.is_empty();
    let linked: Vec<&Entry> = entries.iter().filter(linked).collect();
    let mut out: Vec<String> = Vec::new();
    let mut next = vec![id.to_owned()];
    while let Some(of) = next.pop() {
        for entry in &linked {
            let depends = entry.interactions.depends_on.contains(&of);
            if depends && entry.id != id && !out.contains(&entry.id) {
                out.push(entry.id.clone());
                next.push(entry.id.clone());
            }
        }
    }
    out.sort();
    out
}
