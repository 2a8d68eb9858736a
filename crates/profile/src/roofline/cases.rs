//! How long the calls of a campaign took, case by case: at the baseline, and now.

use karve_core::campaign::Campaign;
use karve_core::comparison::Comparison;
use karve_core::score;
use karve_numerics::case::Case;
use karve_numerics::stats;
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
    let mut values: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    let baseline = campaign.baseline();
    for reading in baseline.iter().flat_map(|baseline| &baseline.readings) {
        let of_case = values.entry(reading.case).or_default();
        of_case.push(reading.sample.value);
    }
    let median = |(case, values): (usize, Vec<f64>)| Some((case, stats::median(&values)?));
    in_seconds(campaign, values.into_iter().filter_map(median))
}

/// The best kernel so far: from the final duel, or else from the duel that kept it.
pub fn of_incumbent(campaign: &Campaign) -> CaseTimes {
    let last = campaign.lineage().kept().last().map(|kept| kept.round);
    let mut rounds = campaign.rounds().iter();
    let kept = rounds.find(|round| Some(round.number) == last);
    let kept = kept.and_then(|round| round.shown());
    // An extended campaign that runs again has only the duel of its previous end.
    let ended = campaign.stop_reason().is_some();
    let last = campaign.final_comparison().filter(|_| ended);
    match last.or(kept) {
        Some(comparison) => of_comparison(campaign, comparison),
        None => at_baseline(campaign),
    }
}

/// The candidate of the current round, as far as it was measured.
pub fn of_candidate(campaign: &Campaign) -> CaseTimes {
    let round = campaign.current_round();
    let shown = round.and_then(|round| round.shown());
    shown.map_or_else(CaseTimes::new, |shown| of_comparison(campaign, shown))
}

fn of_comparison(campaign: &Campaign, comparison: &Comparison) -> CaseTimes {
    let values = comparison.cases.iter();
    in_seconds(campaign, values.map(|case| (case.case, case.candidate_median)))
}

fn in_seconds(campaign: &Campaign, values: impl Iterator<Item = (usize, f64)>) -> CaseTimes {
    let seconds = |(index, value): (usize, f64)| {
        let charter = campaign.charter()?;
        let case = campaign.case(index)?;
        let seconds = score::implied_seconds(&charter.metric, value, &case)?;
        Some((index, seconds))
    };
    values.filter_map(seconds).collect()
}
