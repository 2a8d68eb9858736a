//! How often each case is repeated in one run.

use karve_core::campaign::{Campaign, Repeats};
use karve_core::sampling;
use karve_harness::commands::CaseRunSettings;
use karve_numerics::case::CaseSet;
use std::collections::BTreeMap;

/// How often each case is repeated in one run, by name, where the original takes part.
pub(super) fn settings_per_case(campaign: &Campaign) -> BTreeMap<String, CaseRunSettings> {
    settings_at(campaign, 1.0)
}

/// The same where only the incumbent and its candidates do. Under a contract a batch of a visible
/// case takes as long for a faster incumbent as it took for the baseline, so that handing it over
/// stays a small part.
pub(super) fn incumbent_settings(campaign: &Campaign) -> BTreeMap<String, CaseRunSettings> {
    let under_contract = campaign.charter().is_some_and(|charter| charter.contract.is_some());
    let faster = if under_contract { campaign.lineage().cumulative_ratio() } else { 1.0 };
    settings_at(campaign, faster)
}

fn settings_at(campaign: &Campaign, faster: f64) -> BTreeMap<String, CaseRunSettings> {
    let Some(baseline) = campaign.baseline() else {
        return BTreeMap::new();
    };
    let visible = campaign.cases_of(CaseSet::Full);
    let setting_of = |of: &Repeats| {
        let name = campaign.case(of.case)?.name;
        let more = if visible.contains(&of.case) { faster } else { 1.0 };
        let repeats = sampling::lengthened(of.calls, more);
        Some((name, CaseRunSettings { repeats, spin_us: None }))
    };
    baseline.repeats.iter().filter_map(setting_of).collect()
}
