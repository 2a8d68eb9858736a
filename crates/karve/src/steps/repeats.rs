//! How often each case is repeated in one run.

use karve_core::campaign::{Campaign, Repeats};
use karve_harness::commands::CaseRunSettings;
use std::collections::BTreeMap;

/// How often each case is repeated in one run, by name.
pub(super) fn per_case(campaign: &Campaign) -> BTreeMap<String, CaseRunSettings> {
    let Some(baseline) = campaign.baseline() else {
        return BTreeMap::new();
    };
    let named = |of: &Repeats| {
        let name = campaign.case(of.case)?.name;
        let of_case = CaseRunSettings { repeats: of.calls, spin_us: None };
        Some((name, of_case))
    };
    baseline.repeats.iter().filter_map(named).collect()
}
