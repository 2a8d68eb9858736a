//! Whether the gain of a round applies in real training: bucket, cache, trace and groups.

use crate::reports::figures::deciding;
use crate::reports::source::ReportSource;
use crate::reports::text::CELL_MAX;
use karve_core::campaign::RoundSummary;
use karve_core::integrity::{self, Bucket, is_skewed};
use minijinja::value::Serde;
use minijinja::{Value, context};

/// Whether the gain applies in real use, by the findings of the audit.
pub(super) fn transfer(source: &ReportSource<'_>, round: &RoundSummary) -> Value {
    let classified = integrity::classify(&round.findings, source.campaign.standing_proof());
    let share = source.charter.audit.weight_share;
    context! {
        kind => Serde(classified.transfer()),
        buckets => Serde(&classified.buckets),
        about => classified.describe(),
        cache_key => classified.cache_key.as_deref().map(|key| source.line(key, CELL_MAX)),
        bound => round.ratio().zip(share).map(|(ratio, share)| ratio.min(1.0 + share)),
        decision => classified.transfer().decision(),
        id_audit => id_audit(source, round),
        trace => trace(&classified.buckets),
        groups => groups(source, round),
    }
}

/// What the audit found that is kept by the identity of an object.
fn id_audit(source: &ReportSource<'_>, round: &RoundSummary) -> Vec<String> {
    const RULES: [&str; 4] = ["identity-cache", "weak-reference", "tensor-memo", "weight-cache"];
    let found = round.findings.iter().filter(|found| RULES.contains(&found.rule.as_str()));
    found.map(|found| source.line(&found.what, CELL_MAX)).collect()
}

/// How often a cache of these kinds is hit in real training, where inputs differ in every step and
/// weights change between steps; `None` without a cache.
fn trace(buckets: &[Bucket]) -> Option<String> {
    let trace = integrity::trace(buckets);
    let rate = trace.rate()? * 100.0;
    let steps = format!("{}/{} ({rate:.0}%)", trace.hits, trace.uses);
    let each = match trace.hits {
        0 => "steps 1 to 4: forward miss, backward miss; inputs and gradients differ in every step",
        _ => "steps 1 to 4: forward miss, backward hit; the weights change between steps",
    };
    let end = if trace.is_overfit() { "; below half: rolled back" } else { "" };
    Some(format!("{steps}: {each}{end}"))
}

/// Whether the gain of a grouped kernel depends on how rows are distributed among groups.
fn groups(source: &ReportSource<'_>, round: &RoundSummary) -> Option<String> {
    let fixed = round.findings.iter().find(|found| found.rule == "fixed-groups");
    let is_grouped = integrity::is_grouped(&source.charter.target.op);
    Some(match (fixed, is_grouped, source.charter.contract.is_some()) {
        (Some(found), ..) => source.line(&found.what, CELL_MAX),
        (None, false, _) => return None,
        (None, true, true) => {
            "skewed and empty groups were played, if an input draws groups".into()
        }
        (None, true, false) => skewed_results(source, round),
    })
}

/// What a round measured on the skewed shapes.
fn skewed_results(source: &ReportSource<'_>, round: &RoundSummary) -> String {
    let measured = deciding(round).into_iter().flat_map(|(comparison, _)| &comparison.cases);
    let skewed =
        measured.filter(|of| source.campaign.case(of.case).is_some_and(|case| is_skewed(&case)));
    let shown = skewed.map(|of| format!("{} {:.3}x", source.case(of.case), of.estimate.ratio));
    let shown: Vec<String> = shown.collect();
    match shown.is_empty() {
        true => "no skewed shape was measured".to_owned(),
        false => format!("re-run on skewed shapes: {}", shown.join(", ")),
    }
}
