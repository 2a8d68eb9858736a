//! How often each case is repeated in one run.

use karve_core::campaign::{Campaign, Repeats};
use karve_harness::commands::CaseRunSettings;
use std::collections::BTreeMap;

/// How often each case is repeated in one run, by name.
pub(super) fn settings_per_case(campaign: &Campaign) -> BTreeMap<String, CaseRunSettings> {
    let Some(baseline) = campaign.baseline() else {
        return BTreeMap::new();
    };
    let setting_of = |of: &Repeats| {
        let name = campaign.case(of.case)?.name;
        let settings = CaseRunSettings { repeats: of.calls, spin_us: None };
        Some((name, settings))
    };
    baseline.repeats.iter().filter_map(setting_of).collect()
}
