//! What the library knows about the current kernel: matches for its profile, refutations here.

use super::relations::{UsableEntry, after_what_they_need, in_kernel, is_of_no_use};
use super::{TEXT_MAX, clip, in_role, kernel_class};
use crate::campaign::Campaign;
use crate::hypothesis::{Hypothesis, title_similarity};
use crate::knowledge::{EntryKind, EntryStatus, ExpectedGain, KnownEntry, cut_at_sentence};
use crate::profile::classify::with_derived;
use crate::profile::counters::{CounterPreference, known as known_counter};
use crate::profile::{CounterValues, Predicate, PredicateValue};
use std::collections::BTreeMap;

/// Maximum number of entries in a brief because a trigger fires.
const BRIEF_ENTRIES_MAX: usize = 8;
/// Maximum number of entries in a brief without a trigger that fires.
const UNFIRED_MAX: usize = 3;
/// What an entry about this operation is worth without a trigger that fires, in log speedups: more
/// than any gain that was shown on other operations.
const NAMES_OP_RANK: f64 = 10.0;
/// Maximum number of refuted entries in a brief.
const REFUTED_MAX: usize = 12;
/// Maximum number of pages that a brief names.
const PAGES_MAX: usize = 8;
/// Assumed number of applied entries that kept their promise, before any was tried.
const UNTRIED_ROUNDS: f64 = 3.0;

/// What the library knows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LibraryRecall {
    /// Matches for the profile, or shown before; the most promising first.
    pub entries: Vec<BriefEntry>,
    /// Entries that were refuted in this situation.
    pub refuted: Vec<BriefEntry>,
    /// Pages about device, language and operation; those about the device have their text.
    pub pages: Vec<BriefEntry>,
    /// Entries that can be applied without an agent, the most promising first.
    pub usable: Vec<UsableEntry>,
    /// Entries that rounds applied, and which of their actions.
    pub applied: Vec<(String, u32)>,
    /// By entry, the counters that its trigger fired on, each with the direction it should move.
    pub predicts: BTreeMap<String, Vec<String>>,
    /// Entries that are already in the kernel in one way.
    pub kept: Vec<String>,
    /// Entries for other roles than the one that is asked.
    pub not_for_role: usize,
}

/// An entry as shown in a brief.
#[derive(Clone, Debug, PartialEq)]
pub struct BriefEntry {
    /// The entry.
    pub id: String,
    /// Its kind.
    pub kind: EntryKind,
    /// One line.
    pub title: String,
    /// How far it can be trusted.
    pub status: EntryStatus,
    /// How it works and how to do it.
    pub text: String,
    /// Why it is shown.
    pub why: String,
    /// The expected speedup and its basis, if it promises any.
    pub expected: Option<String>,
}

/// Whether a trigger of an entry fires.
enum TriggerResult {
    /// This one does.
    Yes(Predicate),
    /// None does, although the counters they use were read.
    No,
    /// There is none, or the counters they use were not read.
    Unknown,
}

/// The entry that the hypothesis of the round applies, as far as it is known.
pub(super) fn applied_entry(campaign: &Campaign) -> Option<BriefEntry> {
    let id = campaign.current_round()?.hypothesis.as_ref()?.entry.as_ref()?;
    let known = campaign.known().iter().find(|known| known.id == *id)?;
    let expected = ExpectedGain::of(known).describe(known.kind, kept_share(campaign));
    Some(brief_entry(known, String::new(), expected))
}

/// What the library knows about the current kernel.
pub fn recall(campaign: &Campaign) -> LibraryRecall {
    let kernel = campaign.profile().and_then(|profile| profile.main_kernel());
    let values = kernel.map(with_derived).unwrap_or_default();
    let (mut reported, mut unfired) = (Vec::new(), Vec::new());
    let mut usable: Vec<(f64, UsableEntry)> = Vec::new();
    let kept_share = kept_share(campaign);
    let mut refuted = Vec::new();
    let mut foretells = BTreeMap::new();
    let kept = in_kernel(campaign);
    let mut not_for_role = 0;
    let asked = in_role(campaign).map(|asked| asked.proposes);
    let class = kernel_class(campaign);
    for known in campaign.known() {
        if asked.as_ref().is_some_and(|role| !role.gets(known)) {
            not_for_role += 1;
            continue;
        }
        if is_out(known) {
            refuted.push(brief_entry(known, known.refuted.clone(), None));
            continue;
        }
        if is_of_no_use(known, campaign.known(), &kept) {
            continue;
        }
        let fires = fires(known, &values);
        let promised = ExpectedGain::of(known);
        let promise = promised.gain(kept_share);
        let rank = promise * weight(&fires, promise);
        let expected = promised.describe(known.kind, kept_share);
        let place = class.as_ref().and_then(|class| class.place(known));
        match &fires {
            // The class decides, unless the counters speak against it.
            TriggerResult::Yes(_) | TriggerResult::Unknown if let Some((rank, why)) = place => {
                reported.push((rank, brief_entry(known, why, expected)));
            }
            TriggerResult::Yes(trigger) => {
                let quote = trigger.quote(&values);
                let why = format!("trigger {} ({quote})", trigger.text());
                reported.push((rank, brief_entry(known, why, expected)));
                foretells.insert(known.id.clone(), predicted_by(trigger));
            }
            TriggerResult::Unknown if known.n_evidence > 0 => {
                let rank = rank + first_of_op(known, promise);
                unfired.push((rank, brief_entry(known, shown_in(known), expected)));
            }
            TriggerResult::No | TriggerResult::Unknown => {}
        }
        if !known.apply.is_empty() && known.kind != EntryKind::AntiPattern {
            let known = known.clone();
            usable.push((rank, UsableEntry { known, promise }));
        }
    }
    usable.sort_by(|a, b| {
        let by_name = || a.1.known.id.cmp(&b.1.known.id);
        b.0.total_cmp(&a.0).then_with(by_name)
    });
    refuted.truncate(REFUTED_MAX);
    let applied = applied(campaign);
    let usable = usable.into_iter().map(|(_, usable)| usable).collect();
    LibraryRecall {
        usable: after_what_they_need(usable, &applied),
        applied,
        kept,
        entries: in_order(reported, unfired),
        pages: pages(campaign),
        refuted,
        predicts: foretells,
        not_for_role,
    }
}

/// Whether an entry is about one architecture, and not about a kind of device.
fn is_about_device(known: &KnownEntry) -> bool {
    known.scope.device.iter().any(|word| word.chars().any(|c| c.is_ascii_digit()))
}

/// Pages to read: techniques without a trigger, those about the device first.
fn pages(campaign: &Campaign) -> Vec<BriefEntry> {
    let asked = in_role(campaign).map(|asked| asked.proposes);
    let is_page = |known: &&KnownEntry| {
        let scope = &known.scope;
        let about = is_about_device(known) || !scope.language.is_empty() || !scope.op.is_empty();
        known.kind == EntryKind::Technique && known.triggers.is_empty() && about && !is_out(known)
    };
    let is_for_role = |known: &&KnownEntry| asked.as_ref().is_none_or(|role| role.gets(known));
    let mut found: Vec<_> = campaign.known().iter().filter(is_page).filter(is_for_role).collect();
    found.sort_by_key(|known| (!is_about_device(known), known.id.clone()));
    let shown = found.into_iter().take(PAGES_MAX).map(|known| {
        let mut page = brief_entry(known, String::new(), None);
        if !is_about_device(known) {
            page.text.clear();
        }
        page
    });
    shown.collect()
}

/// Entries that rounds applied, and which of their actions.
fn applied(campaign: &Campaign) -> Vec<(String, u32)> {
    let stated = campaign.rounds().iter().filter_map(|round| round.hypothesis.as_ref());
    stated.filter_map(|stated| Some((stated.entry.clone()?, stated.variant))).collect()
}

/// The entries of a brief: those that fire first. Ties are ordered by name, so that a campaign can
/// be repeated.
fn in_order(
    mut fired: Vec<(f64, BriefEntry)>,
    mut unfired: Vec<(f64, BriefEntry)>,
) -> Vec<BriefEntry> {
    let by_rank = |a: &(f64, BriefEntry), b: &(f64, BriefEntry)| {
        let by_name = || a.1.id.cmp(&b.1.id);
        b.0.total_cmp(&a.0).then_with(by_name)
    };
    fired.sort_by(by_rank);
    unfired.sort_by(by_rank);
    // Entries that the profile says nothing about come last, and only a few.
    let all = fired.into_iter().chain(unfired.into_iter().take(UNFIRED_MAX));
    all.map(|(_, reported)| reported).take(BRIEF_ENTRIES_MAX).collect()
}

fn is_out(known: &KnownEntry) -> bool {
    matches!(known.status, EntryStatus::Refuted | EntryStatus::Superseded)
}

fn shown_in(known: &KnownEntry) -> String {
    let of = if known.elsewhere { " on other operations" } else { "" };
    match known.n_evidence {
        1 => format!("shown in 1 round or run{of}"),
        n => format!("shown in {n} rounds or runs{of}"),
    }
}

fn brief_entry(known: &KnownEntry, why: String, expected: Option<String>) -> BriefEntry {
    BriefEntry {
        id: known.id.clone(),
        kind: known.kind,
        title: clip(&known.title),
        status: known.status,
        text: cut_at_sentence(&known.text, TEXT_MAX),
        why: why.chars().take(TEXT_MAX).collect(),
        expected,
    }
}

fn fires(known: &KnownEntry, values: &CounterValues) -> TriggerResult {
    let mut fails = false;
    for trigger in &known.triggers {
        let Ok(predicate) = Predicate::parse(trigger) else {
            continue;
        };
        match predicate.truth(values) {
            PredicateValue::Holds => return TriggerResult::Yes(predicate),
            PredicateValue::Fails => fails = true,
            PredicateValue::Unknown => {}
        }
    }
    if fails { TriggerResult::No } else { TriggerResult::Unknown }
}

/// The counters of a trigger, each with the direction that would be better.
fn predicted_by(trigger: &Predicate) -> Vec<String> {
    let way = |name: &str| match known_counter(name)?.better {
        CounterPreference::Higher => Some(format!("{name} up")),
        CounterPreference::Lower => Some(format!("{name} down")),
        CounterPreference::Neither => None,
    };
    trigger.names().into_iter().filter_map(way).collect()
}

/// A trigger that fires makes a promise count more. A loss is never a promise.
fn weight(fires: &TriggerResult, promise: f64) -> f64 {
    match fires {
        _ if promise <= 0.0 => 1.0,
        TriggerResult::Yes(_) => 1.5,
        TriggerResult::Unknown => 1.0,
        TriggerResult::No => 0.5,
    }
}

/// What puts a promise about this operation before those of other operations.
fn first_of_op(known: &KnownEntry, promise: f64) -> f64 {
    match promise > 0.0 && !known.scope.op.is_empty() {
        true => NAMES_OP_RANK,
        false => 0.0,
    }
}

/// How much of their promises applied entries have delivered so far, from 0 to 1.
fn kept_share(campaign: &Campaign) -> f64 {
    let (mut share, mut rounds) = (UNTRIED_ROUNDS, UNTRIED_ROUNDS);
    for round in campaign.rounds() {
        let Some(hypothesis) = &round.hypothesis else {
            continue;
        };
        if hypothesis.entry.is_none() {
            continue;
        }
        rounds += 1.0;
        let gain = round.ratio().filter(|_| round.verdict.keeps());
        let promised = hypothesis.expected_ratio.ln();
        let kept = gain.map_or(0.0, f64::ln) / promised.max(1e-3);
        share += if kept.is_finite() { kept.clamp(0.0, 1.0) } else { 0.0 };
    }
    share / rounds
}

/// Why a hypothesis is refused that repeats an entry refuted here, unless it says what is
/// different.
pub fn repeats_refuted(campaign: &Campaign, new: &Hypothesis) -> Option<String> {
    let says = new.differs.as_ref().is_some_and(|text| !text.trim().is_empty());
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
