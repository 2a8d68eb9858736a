//! Bottlenecks of known kernels by each rule set.

use super::*;
use crate::profile::{ProfileSource, ProfilerRemark};

fn kernel(values: &[(&str, f64)]) -> KernelProfile {
    let mut kernel = KernelProfile::named("k");
    for (name, value) in values {
        assert!(kernel.set(name, *value, ProfileSource::default()));
    }
    kernel
}

fn check(values: &[(&str, f64)], rules: DiagnosisRuleSet, want: Bottleneck) -> Diagnosis {
    let found = diagnose(&kernel(values), rules);
    assert_eq!(found.bottleneck, want, "{rules:?} {values:?}: {found:?}");
    let sentences = found.root_cause.matches(". ").count() + 1;
    assert!(sentences <= 2, "{}", found.root_cause);
    assert!(!found.root_cause.contains('{'), "{}", found.root_cause);
    found
}

/// Readings of four kernels on a large device.
const NAIVE: &[(&str, f64)] = &[
    ("duration_us", 3176.0),
    ("memory_pct", 97.3),
    ("dram_pct", 0.3),
    ("l1_pct", 97.81),
    ("l2_pct", 19.54),
    ("compute_pct", 64.84),
    ("tensor_pct", 0.0),
    ("occupancy_pct", 97.87),
    ("waves", 15.52),
    ("blocks", 16384.0),
];
const COPY: &[(&str, f64)] = &[
    ("duration_us", 497.4),
    ("memory_pct", 88.76),
    ("dram_pct", 88.76),
    ("l1_pct", 29.18),
    ("l2_pct", 92.94),
    ("compute_pct", 9.7),
    ("tensor_pct", 0.0),
    ("occupancy_pct", 77.7),
    ("waves", 248.0),
    ("blocks", 262144.0),
];

#[test]
fn rule_sets_draw_their_lines_at_different_places() {
    use Bottleneck::{Balanced, Compute, Latency, Memory};
    let naive = check(NAIVE, DiagnosisRuleSet::Karve, Memory);
    assert!(naive.root_cause.contains("first-level cache"), "{}", naive.root_cause);
    assert!(naive.opportunities[0].name.contains("registers"));
    assert!(naive.opportunities[0].trigger.contains("l1_pct=97.81"));
    // hyper-mla only uses device memory and matrix units; for trtllm both are near their limits.
    check(NAIVE, DiagnosisRuleSet::HyperMla, Latency);
    check(NAIVE, DiagnosisRuleSet::Trtllm, Balanced);
    check(COPY, DiagnosisRuleSet::Karve, Memory);
    check(COPY, DiagnosisRuleSet::HyperMla, Memory);
    check(COPY, DiagnosisRuleSet::Trtllm, Memory);
    check(COPY, DiagnosisRuleSet::Primus, Memory);
    check(COPY, DiagnosisRuleSet::Tilegym, Memory);
    check(&[("intensity", 60.0)], DiagnosisRuleSet::Tilegym, Compute);
    check(&[("intensity", 30.0)], DiagnosisRuleSet::Tilegym, Balanced);
}

#[test]
fn small_launches_idle_devices_and_few_warps_are_seen() {
    use Bottleneck::{Communication, Latency, Launch, Occupancy, Sync, Unknown};
    let small = [("duration_us", 4.0), ("compute_pct", 5.0), ("memory_pct", 8.0), ("blocks", 8.0)];
    check(&small, DiagnosisRuleSet::Karve, Launch);
    check(&small, DiagnosisRuleSet::Trtllm, Launch);
    let few = [("duration_us", 90.0), ("compute_pct", 20.0), ("memory_pct", 30.0)];
    check(&few, DiagnosisRuleSet::Karve, Latency);
    let empty = [&few[..], &[("occupancy_pct", 9.0), ("waves", 0.4)]].concat();
    let found = check(&empty, DiagnosisRuleSet::Karve, Occupancy);
    assert!(found.opportunities[0].name.contains("more blocks"), "{found:?}");
    assert!(found.health.iter().any(|h| h.counter == "waves" && !h.healthy));
    check(&[("gpu_idle_pct", 45.0)], DiagnosisRuleSet::Trtllm, Sync);
    check(&[("communication_pct", 21.0)], DiagnosisRuleSet::Trtllm, Communication);
    check(&[("spill_bytes", 64.0), ("tensor_pct", 70.0)], DiagnosisRuleSet::Primus, Occupancy);
    check(&[("registers", 64.0)], DiagnosisRuleSet::Karve, Unknown);
}

#[test]
fn a_cpu_is_judged_by_its_roofline_and_whoever_is_silent_says_so() {
    use Bottleneck::{Compute, Memory};
    let near = [("intensity", 30.0), ("ridge", 8.0), ("ceiling_pct", 72.0)];
    let found = check(&near, DiagnosisRuleSet::HyperMla, Compute);
    assert_eq!(
        (found.rules, found.requested),
        (DiagnosisRuleSet::Karve, Some(DiagnosisRuleSet::HyperMla))
    );
    let streams = [("intensity", 0.25), ("ridge", 8.0), ("ceiling_pct", 30.0)];
    check(&streams, DiagnosisRuleSet::Karve, Memory);
    let scalar = [
        ("intensity", 30.0),
        ("ridge", 8.0),
        ("ceiling_pct", 5.0),
        ("vector_pct", 0.0),
        ("l1_miss_pct", 0.2),
    ];
    let found = check(&scalar, DiagnosisRuleSet::Karve, Compute);
    assert!(found.root_cause.contains("in vectors"), "{}", found.root_cause);
}

#[test]
fn a_kernel_whose_loads_hit_is_not_bound_by_memory_however_few_operations_it_has() {
    use Bottleneck::{Compute, Latency, Memory};
    let few = [("intensity", 0.25), ("ridge", 8.0), ("ceiling_pct", 0.6)];
    check(&few, DiagnosisRuleSet::Karve, Latency);
    let hits = [&few[..], &[("l1_miss_pct", 0.01)]].concat();
    let found = check(&hits, DiagnosisRuleSet::Karve, Compute);
    let tries: Vec<&str> = found.opportunities.iter().map(|o| &*o.name).collect();
    assert!(!tries.iter().any(|t| t.contains("memory")), "{tries:?}");
    // A share of the last-level cache's misses means nothing if there are hardly any.
    let seldom = [&hits[..], &[("llc_miss_pct", 100.0)]].concat();
    let found = check(&seldom, DiagnosisRuleSet::Karve, Compute);
    assert!(found.opportunities.iter().all(|o| !o.name.contains("line")));
    let misses = [&few[..], &[("l1_miss_pct", 12.0)]].concat();
    let found = check(&misses, DiagnosisRuleSet::Karve, Memory);
    assert_eq!(found.because, "l1_miss_pct > 10 (l1_miss_pct=12)");
    assert!(found.root_cause.contains("12% of the loads miss"));
}

#[test]
fn what_decides_is_told_under_its_own_name() {
    let values = [("memory_pct", 57.9), ("l2_pct", 84.7), ("compute_pct", 11.9)];
    let found = check(&values, DiagnosisRuleSet::Karve, Bottleneck::Memory);
    assert_eq!(
        found.because,
        "l2_pct >= 60 && l2_pct >= compute_pct (l2_pct=84.7, compute_pct=11.9)"
    );
    // Device memory alone is enough for hyper-mla.
    let found = check(&[("dram_pct", 88.8)], DiagnosisRuleSet::HyperMla, Bottleneck::Memory);
    assert_eq!((found.rules, found.requested), (DiagnosisRuleSet::HyperMla, None));
    assert!(found.root_cause.starts_with("Device memory is at 88.8%."));
    // Counters that were read are not listed as unread.
    let found = check(&[("l1_miss_pct", 4.0)], DiagnosisRuleSet::Karve, Bottleneck::Unknown);
    assert_eq!(
        found.because,
        "no condition of the rules holds for l1_miss_pct=4; not read: ipc, llc_miss_pct, vector_pct"
    );
}

#[test]
fn no_sentence_has_a_gap_where_something_was_not_read() {
    for (when, says) in CLASSES
        .iter()
        .map(|class| (class.when, class.text))
        .chain(SIGNALS.iter().map(|signal| (signal.when, signal.text)))
    {
        for name in Predicate::parse(when).unwrap().names() {
            let reported = fill(says, &[(name.to_owned(), 1.0)].into());
            let whole =
                reported.is_empty() || reported.ends_with('.') && !reported.contains(['{', '}']);
            assert!(whole && !reported.contains("()"), "{reported:?} of {says:?}");
        }
    }
}

#[test]
fn what_the_profiler_itself_expects_is_told_after_our_own_signs() {
    let mut reported = kernel(&[("compute_pct", 50.0), ("memory_pct", 50.0)]);
    let all = [("a", Some(12.0)), ("b", None), ("c", Some(40.0)), ("d", Some(0.4))];
    for (rule, gain) in all {
        reported.remarks.push(ProfilerRemark {
            rule: rule.into(),
            text: format!("do  {rule}"),
            gain_pct: gain,
            source: ProfileSource::at("tool", 3, "x"),
        });
    }
    let found = diagnose(&reported, DiagnosisRuleSet::Karve);
    let names: Vec<&str> = found.opportunities.iter().map(|o| o.name.as_str()).collect();
    assert_eq!(names, ["tool says (c): \"do c\"", "tool says (a): \"do a\""]);
}

#[test]
fn an_unknown_bottleneck_of_a_newer_karve_is_readable() {
    let read: Bottleneck = serde_json::from_str("\"thermal\"").unwrap();
    assert_eq!(read, Bottleneck::Unknown);
    for name in ["memory", "occupancy", "sync", "balanced", "unknown"] {
        let read: Bottleneck = serde_json::from_str(&format!("{name:?}")).unwrap();
        assert_eq!(read.name(), name);
        assert_eq!(serde_json::to_string(&read).unwrap(), format!("{name:?}"));
    }
}

#[test]
fn hyper_mla_s_ranges_and_patterns_are_those_of_its_document() {
    use Bottleneck::{Compute, Latency, Memory};
    for (counter, healthy, unhealthy, hint) in [
        ("tensor_pct", 60.1, 60.0, "matrix units"),
        ("dram_pct", 70.1, 70.0, "bytes in flight"),
        ("occupancy_pct", 25.1, 25.0, "registers"),
        ("l2_hit_pct", 80.1, 80.0, "locality"),
        ("spill_bytes", 0.0, 1.0, "registers"),
        ("waves", 1.1, 1.0, "more blocks"),
    ] {
        for (value, want) in [(healthy, true), (unhealthy, false)] {
            let found = diagnose(&kernel(&[(counter, value)]), DiagnosisRuleSet::HyperMla);
            let range = found.health.iter().find(|range| range.counter == counter).unwrap();
            assert_eq!(range.healthy, want, "{counter}={value}: {range:?}");
            assert!(range.hint.contains(hint), "{range:?}");
        }
    }
    for (dram, tensor, want) in [(85.0, 10.0, Memory), (20.0, 75.0, Compute), (20.0, 15.0, Latency)]
    {
        let values = [("dram_pct", dram), ("tensor_pct", tensor)];
        check(&values, DiagnosisRuleSet::HyperMla, want);
    }
}
