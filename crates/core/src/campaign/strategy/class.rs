//! The class of a kernel by its arithmetic intensity, and the order of the playbook that follows
//! from it.

use crate::campaign::Campaign;
use crate::hypothesis::Hypothesis;
use crate::knowledge::KnownEntry;
use crate::profile::Bottleneck;
use karve_numerics::case::CaseSet;
use karve_numerics::stats;

/// No entry that is ranked by its promise comes before those of the playbook.
const PLAYBOOK_RANK: f64 = 1e9;

/// Entries that a refusal names.
const OPEN_MAX: usize = 12;

/// A kernel's class.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelClass {
    /// Memory, compute, or balanced.
    pub bottleneck: Bottleneck,
    /// What it is based on, in words.
    pub why: String,
    /// The letters of the playbook, the most promising one first.
    pub order: String,
}

/// The class by the policy's rule: from the profile if there is one, else from the work and the
/// bytes of the visible cases.
pub fn kernel_class(campaign: &Campaign) -> Option<KernelClass> {
    let rule = campaign.charter()?.policy.playbook.as_ref()?;
    let profiled = campaign.profile().map(|profile| profile.bottleneck);
    let (bottleneck, why) = match profiled {
        Some(seen @ (Bottleneck::Memory | Bottleneck::Compute)) => {
            (seen, "by its profile".to_owned())
        }
        _ => {
            let intensity = intensity(campaign)?;
            let (class, limit) = if intensity < rule.memory_below {
                (Bottleneck::Memory, format!("fewer than {}", rule.memory_below))
            } else if intensity > rule.compute_above {
                (Bottleneck::Compute, format!("more than {}", rule.compute_above))
            } else {
                let limits = format!("between {} and {}", rule.memory_below, rule.compute_above);
                (Bottleneck::Balanced, limits)
            };
            (class, format!("{intensity:.1} operations per byte, {limit}"))
        }
    };
    let order = match bottleneck {
        Bottleneck::Memory => rule.memory.clone(),
        Bottleneck::Compute => rule.compute.clone(),
        _ => ('A'..='Z').collect(),
    };
    Some(KernelClass { bottleneck, why, order })
}

/// Why a hypothesis must name an entry of the playbook, if the policy has one, some of its entries
/// were not tried yet, and it names none. Knobs alone need no entry.
pub(in crate::campaign) fn outside_playbook(
    campaign: &Campaign,
    new: &Hypothesis,
) -> Option<String> {
    campaign.charter()?.policy.playbook.as_ref()?;
    let is_knobs = new.sweep || !new.config.is_empty();
    if new.entry.is_some() || is_knobs || campaign.charter()?.agenda.is_some() {
        return None;
    }
    let tried = |id: &String| {
        let stated = campaign.rounds().iter().filter_map(|round| round.hypothesis.as_ref());
        stated.filter_map(|hypothesis| hypothesis.entry.as_ref()).any(|entry| entry == id)
    };
    let open = campaign.known().iter().filter(|known| known.refuted.is_empty());
    let mut open: Vec<String> = open
        .filter(|known| !tried(&known.id))
        .filter_map(|known| Some(format!("{} {}", known.letter?, known.id)))
        .collect();
    open.sort();
    open.truncate(OPEN_MAX);
    (!open.is_empty()).then(|| {
        format!(
            "choose one optimization of the playbook and name it in \"entry\" ({}); a plan of your \
             own is the last one of them",
            open.join(", ")
        )
    })
}

/// Operations per byte, as the geometric mean over the visible cases.
fn intensity(campaign: &Campaign) -> Option<f64> {
    let cases = campaign.cases_of(CaseSet::Full).into_iter();
    let ratios: Option<Vec<f64>> = cases
        .map(|case| {
            let demand = campaign.demand(case)?;
            let ratio = demand.work? / demand.bytes?;
            (ratio.is_finite() && ratio > 0.0).then_some(ratio)
        })
        .collect();
    stats::geometric_mean(&ratios?)
}

impl KernelClass {
    /// The rank of an entry in a brief, above all others, and why, if the playbook has it.
    pub(super) fn place(&self, known: &KnownEntry) -> Option<(f64, String)> {
        let letter = known.letter?;
        let place = self.order.chars().position(|known| known == letter)? + 1;
        let why = format!("playbook {letter}, priority {place}: {}", self.describe());
        Some((PLAYBOOK_RANK - place as f64, why))
    }

    /// In words, for a brief.
    pub fn describe(&self) -> String {
        format!("{}-bound ({})", self.bottleneck.name(), self.why)
            .replace("balanced-bound", "balanced")
    }
}
