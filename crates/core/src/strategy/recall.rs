//! What the library knows about the kernel at hand: what fits its profile, what was refuted here.

use super::{TEXT_MAX, clip};
use crate::campaign::Campaign;
use crate::hypothesis::{Hypothesis, title_similarity};
use crate::knowledge::{Kind, Known, Status};
use crate::profile::classify::with_derived;
use crate::profile::{Predicate, Truth, Values};

/// Entries that a brief tells of because a trigger fires.
const TOLD_MAX: usize = 8;
/// Refuted entries that a brief tells of.
const REFUTED_MAX: usize = 12;
/// Log speedup that a claim without evidence is worth at most.
const CLAIM_GAIN_MAX: f64 = 0.4;
/// How much a claim without evidence is worth.
const CLAIM_TRUST: f64 = 0.5;

/// What the library knows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recall {
    /// What fits the profile, or was shown before, the most promising first.
    pub told: Vec<Told>,
    /// What was refuted where the kernel is.
    pub refuted: Vec<Told>,
    /// What a machine can apply, the most promising first.
    pub usable: Vec<Known>,
    /// Entries that rounds applied, and which of their ways.
    pub applied: Vec<(String, u32)>,
}

/// An entry as a brief tells it.
#[derive(Clone, Debug, PartialEq)]
pub struct Told {
    /// The entry.
    pub id: String,
    /// What it is.
    pub kind: Kind,
    /// One line.
    pub title: String,
    /// How far it can be trusted.
    pub status: Status,
    /// How it works and how it is done.
    pub text: String,
    /// Why it is told.
    pub why: String,
    /// The speedup to expect.
    pub expected_ratio: f64,
}

/// Whether a trigger of an entry fires.
enum Fires {
    /// One does, on these values.
    Yes(String),
    /// None does, although what they ask for was read.
    No,
    /// There is none, or what they ask for was not read.
    Unknown,
}

/// What the library knows about the kernel at hand.
pub fn recall(campaign: &Campaign) -> Recall {
    let kernel = campaign.profile().and_then(|profile| profile.main_kernel());
    let values = kernel.map(with_derived).unwrap_or_default();
    let mut told: Vec<(f64, Told)> = Vec::new();
    let mut usable: Vec<(f64, &Known)> = Vec::new();
    let mut refuted = Vec::new();
    for known in campaign.known() {
        if is_out(known) {
            refuted.push(tell(known, known.refuted.clone()));
            continue;
        }
        let fires = fires(known, &values);
        let promise = promise(known) * weight(&fires);
        match &fires {
            Fires::Yes(why) => told.push((promise, tell(known, format!("trigger {why}")))),
            Fires::Unknown if known.n_evidence > 0 => {
                let why = format!("shown in {} rounds or runs", known.n_evidence);
                told.push((promise, tell(known, why)));
            }
            Fires::No | Fires::Unknown => {}
        }
        if !known.apply.is_empty() && known.kind != Kind::AntiPattern {
            usable.push((promise, known));
        }
    }
    told.sort_by(|a, b| b.0.total_cmp(&a.0));
    // The order of the library is the order among equals, so that a campaign can be repeated.
    usable.sort_by(|a, b| b.0.total_cmp(&a.0));
    refuted.truncate(REFUTED_MAX);
    let rounds = campaign.rounds().iter();
    let applied = rounds.filter_map(|round| {
        let hypothesis = round.hypothesis.as_ref()?;
        Some((hypothesis.entry.clone()?, hypothesis.variant))
    });
    Recall {
        applied: applied.collect(),
        told: told
            .into_iter()
            .map(|(_, told)| told)
            .take(TOLD_MAX)
            .collect(),
        refuted,
        usable: usable.into_iter().map(|(_, known)| known.clone()).collect(),
    }
}

fn is_out(known: &Known) -> bool {
    matches!(known.status, Status::Refuted | Status::Superseded)
}

fn tell(known: &Known, why: String) -> Told {
    Told {
        id: known.id.clone(),
        kind: known.kind,
        title: clip(&known.title),
        status: known.status,
        text: clip(&known.text),
        why: why.chars().take(TEXT_MAX).collect(),
        expected_ratio: known.expected_ratio,
    }
}

fn fires(known: &Known, values: &Values) -> Fires {
    let mut fails = false;
    for trigger in &known.triggers {
        let Ok(predicate) = Predicate::parse(trigger) else {
            continue;
        };
        match predicate.truth(values) {
            Truth::Holds => {
                let values = predicate.quote(values);
                return Fires::Yes(format!("{} ({values})", predicate.text()));
            }
            Truth::Fails => fails = true,
            Truth::Unknown => {}
        }
    }
    if fails { Fires::No } else { Fires::Unknown }
}

fn weight(fires: &Fires) -> f64 {
    match fires {
        Fires::Yes(_) => 1.5,
        Fires::Unknown => 1.0,
        Fires::No => 0.5,
    }
}

/// The log speedup that an entry promises: all of what was measured, a part of what is claimed.
pub fn promise(known: &Known) -> f64 {
    let gain = known.expected_ratio.max(1e-6).ln();
    if known.n_evidence > 0 {
        return gain;
    }
    (CLAIM_TRUST * gain).min(CLAIM_GAIN_MAX)
}

/// Why a hypothesis is refused that repeats what was refuted here, unless it says what is
/// different.
pub fn repeats_refuted(campaign: &Campaign, new: &Hypothesis) -> Option<String> {
    let says = new
        .differs
        .as_ref()
        .is_some_and(|text| !text.trim().is_empty());
    if says || !new.config.is_empty() {
        return None;
    }
    let limit = campaign.charter()?.policy.duplicate_similarity;
    let known = campaign.known().iter().filter(|known| is_out(known));
    let mut same = known.filter(|known| {
        new.entry.as_ref() == Some(&known.id) || title_similarity(&new.title, &known.title) >= limit
    });
    same.next().map(|known| {
        let why: String = known.refuted.chars().take(300).collect();
        format!(
            "\"{}\" repeats the entry {}, which is refuted here ({why}): say in \"differs\" what \
             is different this time, or propose something else",
            new.title, known.id
        )
    })
}
