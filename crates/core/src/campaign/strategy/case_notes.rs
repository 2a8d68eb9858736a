//! How fast the incumbent is on each case, and how fast the device lets it be, for a brief.

use crate::campaign::Campaign;
use crate::roofline::{ceilings, shown_cores};
use crate::score::{figure, implied_seconds};
use std::collections::BTreeMap;

/// One note for each of these cases: `2373 us now, 61.20 us at the roofline`; empty where nothing
/// is known.
pub(super) fn case_notes(campaign: &Campaign, cases: &[usize]) -> Vec<String> {
    let Some(charter) = campaign.charter() else {
        return Vec::new();
    };
    let (values, floors) = (campaign.incumbent_values(), floors(campaign, cases));
    let metric = &charter.metric;
    let note = |index: &usize| {
        let now = values.get(index).map(|value| format!("{} {} now", figure(*value), metric.unit));
        let floor = floors.get(index).zip(metric.seconds_per_unit());
        let floor = floor.map(|(floor_s, unit_s)| {
            format!("{} {} at the roofline", figure(floor_s / unit_s), metric.unit)
        });
        now.into_iter().chain(floor).collect::<Vec<_>>().join(", ")
    };
    cases.iter().map(note).collect()
}

/// The least seconds of a call, by the index of the case, where work, bytes and peaks are known.
fn floors(campaign: &Campaign, cases: &[usize]) -> BTreeMap<usize, f64> {
    let roof = campaign.baseline().and_then(|baseline| baseline.roof.as_ref());
    let (Some(charter), Some(roof)) = (campaign.charter(), roof) else {
        return BTreeMap::new();
    };
    let cases: Vec<_> =
        cases.iter().filter_map(|index| Some((*index, campaign.case(*index)?))).collect();
    let seconds = |(index, value): (usize, f64)| {
        let case = campaign.case(index)?;
        Some((index, implied_seconds(&charter.metric, value, &case)?))
    };
    let times = campaign.baseline_values().into_iter().filter_map(seconds).collect();
    let cores = shown_cores(charter, &cases, roof, &[&times]);
    let under = ceilings(charter, &cases, roof, cores, &times).into_iter();
    under.map(|under| (under.case, under.ceiling.floor_s)).collect()
}
