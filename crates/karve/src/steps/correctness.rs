//! The visible cases, and the test of a built tree on them.

use karve_core::campaign::Campaign;
use karve_harness::commands::{CommandVariant, Harness};
use karve_harness::outcome::GateResult;
use karve_numerics::case::{Case, CaseSet};
use karve_numerics::contract::CaseTensorError;
use karve_os::error::Result;
use std::path::Path;

/// The test result of a built tree on the visible cases of a set, and how far its results are from
/// the reference.
pub(super) fn tested_visibly(
    harness: &Harness,
    tree: &Path,
    (set, variant): (CaseSet, CommandVariant),
    campaign: &Campaign,
) -> Result<(GateResult<()>, Vec<CaseTensorError>)> {
    let visible = cases_at(campaign, &campaign.cases_of(set));
    Ok(match harness.check_kernel(tree, &visible)? {
        Some(Ok(errors)) => (Ok(()), errors),
        Some(Err(gate)) => (Err(gate), Vec::new()),
        None => (harness.test(tree, &visible, variant)?, Vec::new()),
    })
}

/// The cases with these indices.
pub(super) fn cases_at(campaign: &Campaign, indices: &[usize]) -> Vec<Case> {
    indices.iter().filter_map(|index| campaign.case(*index)).collect()
}
