//! Compares what incumbent and candidate compute, where the benchmark reports a checksum.
//!
//! The project's tests may miss a wrong result on inputs that only the benchmark has.

use super::correctness::cases_at;
use karve_core::campaign::Campaign;
use karve_core::integrity::differing_checksum;
use karve_core::measurement::{FailureCategory, Gate};
use karve_harness::commands::{BenchParams, Harness};
use karve_harness::outcome::{GateResult, split};
use karve_harness::worktrees::BuiltTree;
use karve_numerics::case::CaseSet;

/// Runs both on the same seed; a checksum that differs by more than rounding is a wrong result.
pub(super) fn compare(
    harness: &Harness,
    incumbent: &BuiltTree,
    candidate: &BuiltTree,
    set: CaseSet,
    campaign: &Campaign,
) -> GateResult<()> {
    let limit = campaign.charter().and_then(|charter| charter.output.checksum_rel_max);
    let reports = campaign.baseline().is_some_and(|baseline| baseline.seeds.is_some());
    let (Some(limit), true) = (limit, reports) else {
        return Ok(());
    };
    let cases = cases_at(campaign, &campaign.cases_of(set));
    let call = BenchParams::fresh(set.into())?;
    let run = |tree: &BuiltTree| harness.bench_with_checksums(&tree.path, &cases, call);
    // Whether the incumbent can be measured is not a question of this candidate.
    let (Ok(first), Ok(again)) = (split(run(incumbent))?, split(run(incumbent))?) else {
        return Ok(());
    };
    if differing_checksum(&first.checksums, &again.checksums, limit).is_some() {
        return Ok(());
    }
    let own = run(candidate)?.checksums;
    let Some(row) = differing_checksum(&first.checksums, &own, limit) else {
        return Ok(());
    };
    let said = |all: &[f64]| all.get(row).map_or("none".to_owned(), f64::to_string);
    let case = cases.get(row).map_or_else(|| "the benchmark".to_owned(), |case| case.name.clone());
    let excerpt = format!(
        "the benchmark's checksum is {} for the incumbent and {} for the candidate on the same \
         seed, and the tests did not notice",
        said(&first.checksums),
        said(&own)
    );
    Err(Gate::WrongResult { case, category: FailureCategory::SnrFail, excerpt }.into())
}
