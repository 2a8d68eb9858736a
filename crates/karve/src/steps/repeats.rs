//! How often each case is repeated in one run.

use karve_core::campaign::{Campaign, Repeats};
use karve_harness::commands::CaseRunSettings;
use std::collections::BTreeMap;

/// The most calls in one batch.
const CALLS_MAX: f64 = 4_096.0;

/// How often each case is repeated in one run, by name. Under a contract a batch takes as long for
/// a faster incumbent as it took for the baseline, so that handing it over stays a small part.
pub(super) fn settings_per_case(campaign: &Campaign) -> BTreeMap<String, CaseRunSettings> {
    let Some(baseline) = campaign.baseline() else {
        return BTreeMap::new();
    };
    let under_contract = campaign.charter().is_some_and(|charter| charter.contract.is_some());
    let faster = if under_contract { campaign.lineage().cumulative_ratio() } else { 1.0 };
    let setting_of = |of: &Repeats| {
        let name = campaign.case(of.case)?.name;
        let calls = f64::from(of.calls);
        let repeats = (calls * faster).clamp(calls, CALLS_MAX.max(calls)) as u32;
        let settings = CaseRunSettings { repeats, spin_us: None };
        Some((name, settings))
    };
    baseline.repeats.iter().filter_map(setting_of).collect()
}
