//! How long the calls of a campaign took, case by case: at the baseline, and now.

use karve_core::campaign::Campaign;
use karve_core::comparison::Comparison;
use karve_core::score;
use karve_numerics::case::Case;
use std::collections::BTreeMap;

/// Seconds of a call, by the index of the case.
pub type CaseTimes = BTreeMap<usize, f64>;

/// The cases that may be shown, as measured.
pub fn visible(campaign: &Campaign) -> Vec<(usize, Case)> {
    let indices = campaign.charter().map(|charter| charter.visible_cases());
    let case = |index: usize| Some((index, campaign.case(index)?));
    indices.into_iter().flatten().filter_map(case).collect()
}

/// The unchanged kernel.
pub fn at_baseline(campaign: &Campaign) -> CaseTimes {
    in_seconds(campaign, campaign.baseline_values())
}

/// The best kernel so far: from the final duel, or else from the duel that kept it.
pub fn of_incumbent(campaign: &Campaign) -> CaseTimes {
    in_seconds(campaign, campaign.incumbent_values())
}

/// The candidate of the current round, as far as it was measured.
pub fn of_candidate(campaign: &Campaign) -> CaseTimes {
    let round = campaign.current_round();
    let shown = round.and_then(|round| round.shown());
    in_seconds(campaign, shown.map(Comparison::candidate_values).unwrap_or_default())
}

fn in_seconds(campaign: &Campaign, values: BTreeMap<usize, f64>) -> CaseTimes {
    let seconds = |(index, value): (usize, f64)| {
        let charter = campaign.charter()?;
        let case = campaign.case(index)?;
        let seconds = score::implied_seconds(&charter.metric, value, &case)?;
        Some((index, seconds))
    };
    values.into_iter().filter_map(seconds).collect()
}
