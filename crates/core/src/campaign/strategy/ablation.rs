//! What each part of a kept bundle is worth: the kept kernel without it, beside the kept kernel.
//!
//! The shares are information for later rounds. They decide nothing, and they need not add up:
//! parts may depend on each other.

use crate::campaign::{Campaign, RoundPhase};
use crate::hypothesis::PartShare;
use crate::policy::BundleRule;
use crate::variants::VariantTrial;

/// The most parts that are taken apart; a version has at most five changes.
const ABLATED_MAX: usize = 5;
/// Readings of each arm.
const TURNS: u32 = 7;
/// The time after which no further readings start, in seconds.
const LIMIT_S: u64 = 600;
/// Most characters of why a part cannot be left out.
const WHY_CHARS: usize = 200;

/// How a kept change is taken apart.
#[derive(Clone, Debug, PartialEq)]
pub struct Ablation {
    /// Its commit.
    pub commit: String,
    /// The artifact with its patch.
    pub patch: String,
    /// How much faster it is than its parent.
    pub ratio: f64,
    /// Readings of each arm.
    pub turns: u32,
    /// The time after which no further readings start, in seconds.
    pub limit_s: u64,
}

/// How the change of the current round is taken apart, if the policy says so: it is kept, and has
/// two to five parts.
pub fn to_ablate(campaign: &Campaign) -> Option<Ablation> {
    let round = campaign.current_round()?;
    let RoundPhase::Learning { verdict } = &round.phase else {
        return None;
    };
    let candidate = round.candidate.as_ref()?;
    let is_due = campaign.charter()?.policy.bundles == BundleRule::Ablate && verdict.keeps();
    let is_bundle = (2..=ABLATED_MAX).contains(&candidate.parts.len());
    let ratio = round.shown()?.overall.ratio;
    (is_due && is_bundle).then(|| Ablation {
        commit: candidate.commit.clone(),
        patch: candidate.patch.clone(),
        ratio,
        turns: TURNS,
        limit_s: LIMIT_S,
    })
}

/// The share of a part: `whole` are the readings of the kept kernel, `without` those of the kernel
/// without it (lower is better), `ratio` is the gain of the whole change.
pub fn share(what: &str, whole: &VariantTrial, without: &VariantTrial, ratio: f64) -> PartShare {
    let slower = whole.value().zip(without.value()).map(|(kept, without)| without / kept);
    let slower = slower.filter(|slower| slower.is_finite() && *slower > 0.0);
    let part = slower.map(|slower| slower.ln() / ratio.ln() * 100.0);
    let why = match (without.gate.passed(), slower) {
        (false, _) => without.gate.describe(),
        (true, None) => "it could not be measured".to_owned(),
        (true, Some(_)) if is_noise(whole, without) => "its readings do not agree".to_owned(),
        (true, Some(_)) => String::new(),
    };
    PartShare {
        what: what.to_owned(),
        slower,
        percent: part.filter(|part| part.is_finite()),
        why: why.chars().take(WHY_CHARS).collect(),
    }
}

/// Whether the turns do not all say that the kernel is slower, or all that it is faster. Seven that
/// agree by chance are one case in 64.
fn is_noise(whole: &VariantTrial, without: &VariantTrial) -> bool {
    let turns = || whole.values.iter().zip(&without.values);
    turns().any(|(kept, without)| without <= kept) && turns().any(|(kept, without)| without >= kept)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurement::Gate;
    use crate::testing::script::wrong_result;

    fn trial(gate: Gate, values: &[f64]) -> VariantTrial {
        VariantTrial { values: values.to_vec(), ..VariantTrial::new(0, gate) }
    }

    #[test]
    fn a_share_is_the_part_of_the_gain_that_is_lost_without_it() {
        let whole = trial(Gate::Passed, &[40.0, 39.0, 41.0]);
        let of = |gate, values: &[f64]| share("rows", &whole, &trial(gate, values), 2.5);
        let rows = of(Gate::Passed, &[80.0, 81.0, 79.0]);
        assert_eq!(rows.describe(), "rows: without it 2.000x slower, 76% of the gain");
        let nothing = of(Gate::Passed, &[40.0]);
        let noise = " (its readings do not agree)";
        let said = format!("rows: without it 1.000x slower, 0% of the gain{noise}");
        assert_eq!(nothing.describe(), said);
        // Slower by its median, but not in every turn.
        assert!(of(Gate::Passed, &[80.0, 38.0, 79.0]).describe().ends_with(noise));
        // A part may cost time.
        assert!(of(Gate::Passed, &[36.0]).percent.unwrap() < 0.0);
        let needed = of(wrong_result("n=1"), &[]);
        assert_eq!((needed.slower, needed.percent), (None, None));
        assert!(needed.describe().starts_with("rows: cannot be left out: "), "{needed:?}");
        assert!(of(Gate::Passed, &[]).describe().ends_with("it could not be measured"));
        // A change that gained nothing has no shares.
        assert_eq!(share("rows", &whole, &whole, 1.0).percent, None);
    }
}
