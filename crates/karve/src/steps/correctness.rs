//! The visible cases, and the test of a built tree on them.

use karve_core::campaign::Campaign;
use karve_harness::commands::{CommandVariant, Harness};
use karve_harness::outcome::GateResult;
use karve_numerics::case::{Case, CaseSet};
use karve_numerics::contract::CaseTensorError;
use std::path::Path;

/// Tests a built tree on the visible cases of a set; returns how far its results are from the
/// reference.
pub(super) fn test_visible_cases(
    harness: &Harness,
    tree: &Path,
    set: CaseSet,
    variant: CommandVariant,
    campaign: &Campaign,
) -> GateResult<Vec<CaseTensorError>> {
    let visible = cases_at(campaign, &campaign.cases_of(set));
    if let Some(errors) = harness.check_kernel(tree, &visible)? {
        return Ok(errors);
    }
    harness.test(tree, &visible, variant)?;
    Ok(Vec::new())
}

/// The cases with these indices.
pub(super) fn cases_at(campaign: &Campaign, indices: &[usize]) -> Vec<Case> {
    indices.iter().filter_map(|index| campaign.case(*index)).collect()
}
