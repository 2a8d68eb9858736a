//! Buckets, bounds and attribution, by example and by property.

use super::*;
use crate::attribution::AttributedGain;
use crate::attribution::Honesty;
use crate::attribution::attribute;
use karve_numerics::roof::{CallDemand, DevicePeaks, roofline_s};
use proptest::prelude::*;

fn finding(rule: &str, severity: Severity, bucket: Option<Bucket>) -> AuditFinding {
    AuditFinding {
        rule: rule.to_owned(),
        severity,
        bucket,
        file: "kernel.c".to_owned(),
        line: 3,
        what: "what was seen".to_owned(),
    }
}

fn gain(buckets: &[Bucket], ratio: f64, kept: bool) -> AttributedGain {
    AttributedGain {
        source: "round".to_owned(),
        buckets: buckets.to_vec(),
        ratio: Some(ratio),
        proof: Some(GainProof::Contract),
        kept,
    }
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-6 * (1.0 + a.abs().max(b.abs()))
}

#[test]
fn a_proven_change_without_findings_is_inside_the_kernel() {
    let classified = classify(&[], Some(GainProof::Contract));
    assert_eq!(classified.bucket, Some(Bucket::K1));
    assert_eq!(classified.buckets, [Bucket::K1]);
    assert_eq!(classified.cache_key, None);
    assert_eq!(classified.transfer().decision(), "ACCEPT-as-real");
}

#[test]
fn without_evidence_a_bucket_and_a_transfer_are_unknown() {
    let classified = classify(&[], None);
    assert_eq!((classified.bucket, classified.transfer()), (None, Transfer::Unknown));
    assert_eq!(classified.transfer().decision(), "UNKNOWN");
    let layout = [finding("layout-copy", Severity::Advice, Some(Bucket::K2))];
    assert_eq!(classify(&layout, None).transfer(), Transfer::Unknown);
    assert_eq!(classify(&layout, Some(GainProof::Person)).transfer(), Transfer::AsReal);
    let unproven = AttributedGain { proof: None, ..gain(&[], 1.5, true) };
    let done = attribute(&[unproven], None, None);
    assert_eq!(done.honesty, Honesty::Unknown);
    assert!(near(done.unknown_percent, 50.0) && near(done.s_real_percent, 0.0), "{done:?}");
}

#[test]
fn the_bucket_that_transfers_least_decides() {
    let seen = [
        finding("layout-copy", Severity::Advice, Some(Bucket::K2)),
        finding("weight-cache", Severity::Suspicious, Some(Bucket::W1)),
        finding("threads", Severity::Advice, None),
    ];
    let classified = classify(&seen, None);
    assert_eq!(classified.bucket, Some(Bucket::W1));
    assert_eq!(classified.buckets, [Bucket::K2, Bucket::W1]);
    assert_eq!(classified.cache_key.as_deref(), Some("what was seen"));
    assert_eq!(classified.transfer().decision(), "ACCEPT-with-asterisk");
}

#[test]
fn only_a_forbidden_finding_closes_the_gate() {
    let suspicious = finding("env-read", Severity::Suspicious, None);
    assert_eq!(forbids(std::slice::from_ref(&suspicious)), None);
    let gate = forbids(&[suspicious, finding("timer", Severity::Forbidden, None)]);
    let text = gate.map(|gate| gate.describe()).unwrap_or_default();
    assert_eq!(
        text,
        "integrity check failed: the audit forbids it: kernel.c:3: timer (forbidden): what was seen"
    );
}

#[test]
fn a_change_that_starts_threads_is_refused_where_the_contract_allows_one() {
    let starts = || vec![finding("threads", Severity::Advice, None)];
    let gate = |threads: u32| {
        let mut findings = starts();
        forbid_threads(&mut findings, threads);
        forbids(&findings).map(|gate| gate.describe())
    };
    assert!(gate(1).unwrap().ends_with("the contract allows one thread (contract.threads)"));
    assert_eq!(gate(2), None);
}

#[test]
fn the_user_may_loosen_and_tighten_rules() {
    let rule = AuditRule {
        allow: vec!["timer".to_owned(), "threads".to_owned()],
        forbid: vec!["threads".to_owned()],
        ..AuditRule::default()
    };
    assert_eq!(rule.weigh(finding("timer", Severity::Forbidden, None)), None);
    let threads = rule.weigh(finding("threads", Severity::Advice, None));
    assert_eq!(threads.map(|f| f.severity), Some(Severity::Forbidden));
    let other = finding("prints", Severity::Suspicious, None);
    assert_eq!(rule.weigh(other.clone()), Some(other));
}

#[test]
fn a_weight_cache_counts_up_to_what_preparing_costs() {
    for (share, gap) in [(0.015, 3.5), (0.02, 3.0)] {
        let done = attribute(&[gain(&[Bucket::W1], 1.05, true)], None, Some(share));
        assert!(near(done.w_real_percent, share * 100.0), "{done:?}");
        assert!(near(done.gap_percent, gap), "{done:?}");
        assert_eq!(done.honesty, Honesty::Inflated);
    }
    let within = attribute(&[gain(&[Bucket::W1], 1.012, true)], None, Some(0.015));
    assert_eq!(within.honesty, Honesty::Clean);
    let unknown = attribute(&[gain(&[Bucket::W1], 1.05, true)], None, None);
    assert!(near(unknown.w_real_percent, 0.0) && near(unknown.gap_percent, 5.0));
}

#[test]
fn a_dropped_cache_is_rolled_back_and_a_kept_one_inflates() {
    let kernel = gain(&[Bucket::K1], 1.1, true);
    let dropped = gain(&[Bucket::W2], 1.4, false);
    let done = attribute(&[kernel.clone(), dropped], None, None);
    assert_eq!(done.honesty, Honesty::RolledBack);
    assert!(near(done.real_percent, 10.0) && near(done.gap_percent, 0.0));
    let kept = attribute(&[kernel, gain(&[Bucket::W3], 1.4, true)], None, None);
    assert_eq!(kept.honesty, Honesty::Inflated);
    assert!(near(kept.r_real_percent, 0.0) && near(kept.gap_percent, 44.0), "{kept:?}");
}

#[test]
fn a_time_below_the_roofline_is_blocked() {
    let demand = CallDemand { work: Some(2e9), bytes: Some(1e8) };
    let peaks = DevicePeaks { flops: Some(1e12), bytes: Some(1e10) };
    let floor = roofline_s(demand, peaks);
    assert_eq!(floor, Some(0.01));
    assert_eq!(assess_time(0.011, floor), Ok(()));
    assert_eq!(assess_time(0.009, floor), Ok(()), "a measured peak has slack");
    assert!(matches!(assess_time(0.005, floor), Err(ImplausibleReason::BelowRoofline { .. })));
    assert_eq!(assess_time(0.0, None), Err(ImplausibleReason::NotANumber));
    assert_eq!(roofline_s(demand, DevicePeaks::default()), None);
}

#[test]
fn a_gain_beyond_the_changed_part_is_blocked() {
    assert_eq!(assess_gain(1.9, Some(0.5)), Ok(()));
    assert!(matches!(assess_gain(2.5, Some(0.5)), Err(ImplausibleReason::BeyondAmdahl { .. })));
    assert_eq!(assess_gain(1e6, Some(1.0)), Ok(()));
    assert_eq!(assess_gain(1e6, None), Ok(()));
    let gate = ImplausibleReason::NotANumber.gate("M=1");
    assert!(matches!(gate, Gate::Dishonest { .. }));
}

fn buckets() -> impl Strategy<Value = Bucket> {
    proptest::sample::select(Bucket::ALL.to_vec())
}

fn gains() -> impl Strategy<Value = Vec<AttributedGain>> {
    let one = (buckets(), 1.0..3.0_f64, any::<bool>());
    proptest::collection::vec(one, 0..12).prop_map(|those| {
        let made = those.iter().map(|(bucket, ratio, kept)| gain(&[*bucket], *ratio, *kept));
        made.collect()
    })
}

proptest! {
    #[test]
    fn the_parts_never_exceed_the_whole(gains in gains(), share in 0.0..1.0_f64) {
        let done = attribute(&gains, None, Some(share));
        prop_assert!(done.gap_percent >= -1e-6, "{done:?}");
        prop_assert!(done.real_percent <= done.benchmark_percent + 1e-6);
        prop_assert!(done.w_real_percent <= share * 100.0 + 1e-6);
        prop_assert!(near(done.r_real_percent, 0.0));
    }

    #[test]
    fn the_order_of_rounds_changes_nothing(gains in gains(), share in 0.0..1.0_f64) {
        let there = attribute(&gains, None, Some(share));
        let back: Vec<AttributedGain> = gains.into_iter().rev().collect();
        let back = attribute(&back, None, Some(share));
        prop_assert!(near(there.gap_percent, back.gap_percent));
        prop_assert!(near(there.real_percent, back.real_percent));
        prop_assert_eq!(there.honesty, back.honesty);
    }

    #[test]
    fn kernel_gains_are_clean_whatever_the_final_duel_shows(
        ratios in proptest::collection::vec(1.0..2.0_f64, 1..10),
        shown in 0.5..20.0_f64,
    ) {
        let gains = ratios.iter().map(|r| gain(&[Bucket::K1], *r, true));
        let gains: Vec<AttributedGain> = gains.collect();
        let done = attribute(&gains, Some(shown), None);
        prop_assert!(near(done.gap_percent, 0.0), "{done:?}");
        prop_assert_eq!(done.honesty, Honesty::Clean);
    }

    #[test]
    fn any_figures_are_taken_apart_without_panic(
        ratios in proptest::collection::vec((buckets(), any::<f64>(), any::<bool>()), 0..8),
        shown in proptest::option::of(any::<f64>()),
        share in proptest::option::of(any::<f64>()),
    ) {
        let gains = ratios.iter().map(|(b, r, k)| gain(&[*b], *r, *k));
        let gains: Vec<AttributedGain> = gains.collect();
        let done = attribute(&gains, shown, share);
        prop_assert_eq!(done.rows.len(), gains.len());
        let peaks = DevicePeaks { flops: shown, bytes: share };
        let floor = roofline_s(CallDemand { work: share, bytes: shown }, peaks);
        prop_assert!(floor.is_none_or(|floor| floor > 0.0));
        prop_assert!(amdahl_ratio(shown.unwrap_or(0.5)) >= 1.0);
    }

    #[test]
    fn a_larger_demand_never_lowers_the_roofline(work in 1.0..1e15_f64, more in 1.0..10.0_f64) {
        let peaks = DevicePeaks { flops: Some(1e12), bytes: Some(1e11) };
        let floor = |work| roofline_s(CallDemand { work: Some(work), bytes: Some(1e6) }, peaks);
        prop_assert!(floor(work * more) >= floor(work));
    }

    #[test]
    fn one_cache_decides_whatever_else_is_found(
        others in proptest::collection::vec(buckets(), 0..9),
    ) {
        let mut found: Vec<AuditFinding> = others
            .iter()
            .map(|bucket| finding("x", Severity::Advice, Some(*bucket)))
            .collect();
        found.push(finding("tensor-memo", Severity::Forbidden, Some(Bucket::W3)));
        prop_assert_eq!(classify(&found, None).transfer(), Transfer::Overfit);
        prop_assert!(forbids(&in_order(found)).is_some());
    }

    #[test]
    fn findings_are_bounded_and_in_order(n in 0_u32..200, chars in 0_usize..600) {
        let made = (0..n).map(|line| AuditFinding {
            line,
            what: "é".repeat(chars),
            ..finding("x", Severity::Advice, None)
        });
        let kept = in_order(made.rev().collect());
        prop_assert!(kept.len() <= FINDINGS_MAX);
        prop_assert!(kept.is_sorted_by_key(|f| f.line));
        prop_assert!(kept.iter().all(|f| f.what.chars().count() <= WHAT_CHARS_MAX));
    }
}
