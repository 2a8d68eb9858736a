//! What evidence makes of an entry: verified when it was replicated, refuted when measurements
//! contradict it, narrowed when both are true in different places.

use super::{Entry, EntryStatus, Evidence, Scope};
use std::collections::{HashMap, HashSet};

/// A smaller speedup does not count as one.
const NO_GAIN_RATIO: f64 = 1.01;
/// This many independent runs replicate a finding.
const REPLICATED: usize = 2;
/// The section in which a person vouches for an entry.
pub const VOUCHED: &str = "Vouched for";

/// What one piece of evidence says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EvidenceEffect {
    /// Faster, with the whole interval above 1.
    Supports,
    /// Not faster: slower, wrong, or a worthwhile speedup was ruled out.
    Refutes,
    /// It could be either.
    Open,
}

/// The standing of an entry, from its evidence.
#[derive(Clone, Debug, PartialEq)]
pub struct EntryStanding {
    /// The status that follows.
    pub status: EntryStatus,
    /// Why, in words.
    pub why: String,
    /// Independent runs for it.
    pub n_for: usize,
    /// Independent runs against it.
    pub n_against: usize,
    /// An entry that it depends on is out, so it is unknown whether it applies.
    pub in_question: Option<String>,
}

impl EntryStanding {
    /// Whether it should not be acted on.
    pub fn is_out(&self) -> bool {
        self.in_question.is_some()
            || matches!(self.status, EntryStatus::Refuted | EntryStatus::Superseded)
    }

    /// In words, with the rule that decided if the entry's file claims something else.
    pub fn explain(&self, entry: &Entry) -> String {
        let (says, is) = (entry.status, self.status);
        if says == is {
            return self.describe();
        }
        let rule = match is {
            EntryStatus::Verified => {
                "two runs whose intervals lie above 1, on different hosts or from different \
                campaigns or parents, verify an entry"
            }
            EntryStatus::Refuted => "more runs against an entry than for it refute it",
            EntryStatus::Candidate => "as many runs for an entry as against it leave it open",
            EntryStatus::Superseded => "another entry takes its place",
        };
        format!(
            "{}; its file says {}, but its evidence decides: {rule}",
            self.describe(),
            says.name()
        )
    }

    /// In words.
    pub fn describe(&self) -> String {
        let asked = self.in_question.as_ref();
        let asked = asked.map_or_else(String::new, |why| format!("; in question: {why}"));
        format!("{}: {}{asked}", self.status.name(), self.why)
    }

    /// How much it is trusted, as a factor of a score.
    pub fn trust(&self) -> f64 {
        let base = match self.status {
            EntryStatus::Verified => 1.0,
            EntryStatus::Candidate => 0.0,
            EntryStatus::Refuted | EntryStatus::Superseded => -4.0,
        };
        let runs = (self.n_for as f64).min(8.0) - 2.0 * (self.n_against as f64).min(8.0);
        base + 0.15 * runs
    }
}

/// What one piece of evidence says about the claim that something is faster. If nothing is gained
/// on top of an alternative, that says nothing about the kernel without it.
pub fn effect_of(evidence: &Evidence) -> EvidenceEffect {
    match shown_by(evidence) {
        EvidenceEffect::Refutes if !evidence.on_top_of.is_empty() => EvidenceEffect::Open,
        effect => effect,
    }
}

/// Where an entry gains nothing more: here, after the alternatives that the kernel already had.
pub(super) fn spent_after(evidence: &Evidence, here: &Scope) -> Option<Scope> {
    let spent = !evidence.on_top_of.is_empty() && shown_by(evidence) == EvidenceEffect::Refutes;
    spent.then(|| Scope { after: evidence.on_top_of.clone(), ..here.clone() })
}

/// What it says about the kernel that was changed.
fn shown_by(evidence: &Evidence) -> EvidenceEffect {
    if !evidence.disputed.is_empty() {
        return EvidenceEffect::Open;
    }
    if evidence.failed {
        return EvidenceEffect::Refutes;
    }
    let usable = |value: f64| value.is_finite() && value > 0.0;
    if !usable(evidence.ratio) {
        return EvidenceEffect::Open;
    }
    let low = evidence.low.filter(|low| usable(*low));
    let high = evidence.high.filter(|high| usable(*high));
    match (low, high) {
        // Faster, but by less than the policy of that campaign asks for: no gain, no refutation.
        (Some(low), _) if low > 1.0 && evidence.not_faster => EvidenceEffect::Open,
        // A duel ends as soon as a gain is ruled out, so its interval may still extend above 1.
        _ if evidence.not_faster => EvidenceEffect::Refutes,
        (Some(low), _) if low > 1.0 && evidence.ratio >= NO_GAIN_RATIO => EvidenceEffect::Supports,
        (_, Some(high)) if high < NO_GAIN_RATIO => EvidenceEffect::Refutes,
        // Without an interval only a large difference counts.
        (None, None) if evidence.ratio >= 1.05 => EvidenceEffect::Supports,
        (None, None) if evidence.ratio <= 0.95 => EvidenceEffect::Refutes,
        _ => EvidenceEffect::Open,
    }
}

/// The last run against an entry and what it measured: under another benchmark or contract the
/// result may be another.
fn last_against(entry: &Entry, claims: EvidenceEffect) -> String {
    let is_against = |evidence: &&Evidence| {
        let effect = effect_of(evidence);
        effect != claims && effect != EvidenceEffect::Open
    };
    let last = entry.evidence.iter().rev().filter(is_against).find(|of| !of.run.is_empty());
    last.map_or_else(String::new, |of| {
        format!("; the last against it is {}, {} on {}", of.run, of.metric, of.workload)
    })
}

/// The standing of an entry. A person's decision (superseded, retracted) stays; otherwise evidence
/// decides, and without evidence the status in its file.
pub fn assess(entry: &Entry) -> EntryStanding {
    let (n_for, n_against) = weigh(entry.evidence.iter());
    let standing =
        |status, why: String| EntryStanding { status, why, n_for, n_against, in_question: None };
    if let Some(retraction) = &entry.retracted {
        return standing(EntryStatus::Refuted, format!("retracted: {}", retraction.why));
    }
    if entry.status == EntryStatus::Superseded {
        let by = entry.superseded_by.as_deref().unwrap_or("another entry");
        return standing(EntryStatus::Superseded, format!("superseded by {by}"));
    }
    // An anti-pattern claims that something is slower: its refutation is support for the change.
    let (n_for, n_against, claims) = match entry.kind {
        super::EntryKind::AntiPattern => (n_against, n_for, EvidenceEffect::Refutes),
        super::EntryKind::Optimization
        | super::EntryKind::Case
        | super::EntryKind::Tip
        | super::EntryKind::Technique => (n_for, n_against, EvidenceEffect::Supports),
    };
    let proven = replications(&entry.evidence, claims);
    let standing =
        |status, why: String| EntryStanding { status, why, n_for, n_against, in_question: None };
    match (n_for, n_against) {
        (0, 0) => standing(entry.status, "nothing was measured for or against it".into()),
        (0, against) => standing(
            EntryStatus::Refuted,
            format!("{} against it and none for it{}", runs(against), last_against(entry, claims)),
        ),
        (_, 0) if proven >= REPLICATED => {
            standing(EntryStatus::Verified, format!("replicated in {}", runs(proven)))
        }
        (shown, 0) if entry.evidence.iter().all(|e| e.reported) => standing(
            entry.status,
            format!("{} reported from elsewhere, none measured here", runs(shown)),
        ),
        (1, 0) => standing(entry.status, "shown in one run".into()),
        (shown, 0) => {
            standing(entry.status, format!("shown in {}, too few with an interval", runs(shown)))
        }
        (shown, against) if against > shown => standing(
            EntryStatus::Refuted,
            format!(
                "{} against it, {} for it{}",
                runs(against),
                runs(shown),
                last_against(entry, claims)
            ),
        ),
        (shown, against) => standing(
            EntryStatus::Candidate,
            format!("{} for it, {} against it", runs(shown), runs(against)),
        ),
    }
}

fn runs(n: usize) -> String {
    if n == 1 { "1 run".to_owned() } else { format!("{n} runs") }
}

/// How many independent runs are for and against something.
pub fn weigh<'a>(evidence: impl Iterator<Item = &'a Evidence> + Clone) -> (usize, usize) {
    let of =
        |effect: EvidenceEffect| independent(evidence.clone().filter(|e| effect_of(e) == effect));
    (of(EvidenceEffect::Supports), of(EvidenceEffect::Refutes))
}

/// How many independent runs showed an effect beyond doubt: with a whole interval, or by failing.
/// Imported evidence leaves doubt.
fn replications(evidence: &[Evidence], effect: EvidenceEffect) -> usize {
    let beyond = |e: &&Evidence| !e.reported && (e.failed || (e.low.is_some() && e.high.is_some()));
    let said = evidence.iter().filter(|e| effect_of(e) == effect);
    independent(said.filter(beyond))
}

/// How many runs these are. Two rounds of one campaign on the same parent are one; so are
/// measurements outside of campaigns of one program on one device, whatever toolchain built it.
fn independent<'a>(evidence: impl Iterator<Item = &'a Evidence>) -> usize {
    let mut runs: Vec<(&str, &str)> = evidence
        .map(|e| match e.run.rsplit_once("/round-") {
            Some((campaign, _)) if !e.parent.is_empty() => (campaign, e.parent.as_str()),
            Some(_) => (e.run.as_str(), ""),
            None => (e.device.as_str(), e.workload.as_str()),
        })
        .collect();
    runs.sort_unstable();
    runs.dedup();
    runs.len()
}

/// Where an entry was shown not to apply while it applies elsewhere: a scope to exclude, or `None`
/// if its evidence does not separate the places.
pub(super) fn narrowed(entry: &Entry, here: &Scope) -> Option<Scope> {
    let shown = entry.evidence.iter();
    let (near, far): (Vec<&Evidence>, Vec<&Evidence>) =
        shown.filter(|e| effect_of(e) == EvidenceEffect::Supports).partition(|e| is_of(e, here));
    let vouched = entry.section(VOUCHED).is_some();
    let apart = near.is_empty() && !here.device.is_empty();
    (apart && (vouched || !far.is_empty())).then(|| here.clone())
}

/// Whether a piece of evidence is about the device and the operation of a scope.
pub(super) fn is_of(evidence: &Evidence, scope: &Scope) -> bool {
    let device = evidence.device.to_lowercase();
    let op = evidence.workload.to_lowercase();
    let names =
        |words: &[String], text: &str| words.iter().any(|w| text.contains(&w.to_lowercase()));
    names(&scope.device, &device) && names(&scope.op, &op)
}

/// The ids of entries that depend on one, directly or through others.
pub fn dependants(entries: &[Entry], id: &str) -> Vec<String> {
    let mut found: Vec<String> = Dependents::of(entries).by(id).map(str::to_owned).collect();
    found.sort();
    found
}

/// The entries that depend on each entry directly.
pub(super) struct Dependents<'a>(HashMap<&'a str, Vec<&'a str>>);

impl<'a> Dependents<'a> {
    pub(super) fn of(entries: &'a [Entry]) -> Self {
        let mut needed: HashMap<&str, Vec<&str>> = HashMap::new();
        for entry in entries {
            for id in &entry.interactions.depends_on {
                needed.entry(id).or_default().push(&entry.id);
            }
        }
        Self(needed)
    }

    /// The entries that depend on an entry, directly or through others; each once, without itself.
    pub(super) fn by(&self, id: &str) -> impl Iterator<Item = &'a str> {
        let of = |id: &str| self.0.get(id).cloned().unwrap_or_default();
        let mut seen: HashSet<&str> = HashSet::new();
        let mut next = of(id);
        while let Some(found) = next.pop() {
            if found != id && seen.insert(found) {
                next.extend(of(found));
            }
        }
        seen.into_iter()
    }
}
