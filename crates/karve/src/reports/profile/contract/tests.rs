//! The output satisfies the contract: for real samples, every class, and hostile names.

use super::*;
use crate::reports::profile::KernelComparison;
use karve_core::profile::{DiagnosisRuleSet, KernelProfile, Opportunity, ProfileSource, diagnose};
use karve_profile::profilers::contract::{ProfilerReport, parse};
use karve_profile::profilers::{self, sniff};

fn shown_of(kernel: &KernelProfile, rules: DiagnosisRuleSet) -> KernelReport {
    KernelReport {
        kernel: kernel.clone(),
        diagnosis: diagnose(kernel, rules),
        entries: Vec::new(),
        against: None,
    }
}

/// Writes a page in both variants, and parses it again.
fn round_trip(page: &ProfilePage<'_>) -> ProfilerReport {
    let read = |variant: ConfigPlacement| {
        let text = render(variant, page);
        let report = parse(&text).unwrap_or_else(|faults| panic!("{faults:#?}\n{text}"));
        assert_eq!(report.variant, variant);
        report
    };
    let (title, table) = (read(ConfigPlacement::Title), read(ConfigPlacement::Table));
    assert_eq!(title.configuration, table.configuration);
    assert_eq!(title.stages, table.stages);
    title
}

fn near(reported: Option<f64>, value: Option<f64>) -> bool {
    match (reported, value) {
        (Some(reported), Some(value)) => (reported - value).abs() <= 0.01 * value.abs() + 1e-4,
        (None, None) => true,
        _ => false,
    }
}

#[test]
fn real_samples_keep_the_contract_under_all_rules() {
    let dir = format!("{}/../../testdata/profiles", env!("CARGO_MANIFEST_DIR"));
    let mut n = 0;
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let Some(tool) = sniff(&text) else {
            continue;
        };
        let parsed = profilers::parse(tool, &text).unwrap();
        for rules in DiagnosisRuleSet::ALL {
            let all = parsed.kernels.iter().chain(&parsed.timeline);
            let mut shown: Vec<KernelReport> = all.map(|kernel| shown_of(kernel, rules)).collect();
            let before = shown[0].kernel.clone();
            shown[0].against = Some(KernelComparison::of(&before, &shown[0].kernel));
            let page =
                ProfilePage { version: "a file.csv", shown: &shown, ..ProfilePage::default() };
            let report = round_trip(&page);
            assert_eq!(report.version, "a_file.csv");
            assert_eq!(report.configuration, [("case".to_owned(), "-".to_owned())]);
            assert_eq!(report.stages.len(), shown.len());
            for (stage, shown) in report.stages.iter().zip(&shown) {
                let value = |name| shown.kernel.value(name);
                assert!(near(stage.duration_us, value("duration_us")), "{path:?}");
                assert!(near(stage.dram_pct, value("dram_pct")), "{path:?}");
                assert!(near(stage.occupancy_pct, value("occupancy_pct")), "{path:?}");
            }
            n += 1;
        }
    }
    assert!(n >= 8 * DiagnosisRuleSet::ALL.len(), "{n}");
}

fn kernel(values: &[(&str, f64)]) -> KernelProfile {
    let mut kernel = KernelProfile::named("k");
    for (name, value) in values {
        kernel.set(name, *value, ProfileSource::at("t", 1, "q"));
    }
    kernel
}

fn report_of(shown: KernelReport) -> ProfilerReport {
    round_trip(&ProfilePage {
        kernel: "op",
        version: "v1",
        shown: &[shown],
        ..ProfilePage::default()
    })
}

#[test]
fn classes_that_the_contract_lacks_are_told_as_the_nearest_and_named() {
    let check = |values: &[(&str, f64)], class: BottleneckClass, named: &str| {
        let report = report_of(shown_of(&kernel(values), DiagnosisRuleSet::Karve));
        assert_eq!(report.bottleneck, class, "{values:?}");
        assert_eq!(report.stages[0].remark, named, "{values:?}");
        let reported = report.root_cause.contains("eported as ");
        assert_eq!(reported, !named.is_empty(), "{}", report.root_cause);
    };
    let used = |compute: f64, memory: f64| [("compute_pct", compute), ("memory_pct", memory)];
    check(&used(10.0, 90.0), BottleneckClass::Memory, "");
    check(&used(90.0, 10.0), BottleneckClass::Compute, "");
    check(&used(10.0, 10.0), BottleneckClass::Latency, "");
    check(&used(50.0, 45.0), BottleneckClass::Compute, "balanced");
    check(&used(45.0, 50.0), BottleneckClass::Memory, "balanced");
    let few = [("compute_pct", 10.0), ("memory_pct", 10.0), ("occupancy_pct", 5.0)];
    check(&few, BottleneckClass::Latency, "occupancy");
    check(&[("duration_us", 3.0), ("blocks", 1.0)], BottleneckClass::Latency, "launch");
    check(&[("communication_pct", 50.0)], BottleneckClass::Latency, "communication");
    check(&[("gpu_idle_pct", 50.0)], BottleneckClass::Latency, "sync");
    check(&[], BottleneckClass::Latency, "unknown");
}

#[test]
fn a_comparison_stands_under_vs_baseline() {
    let before = kernel(&[("duration_us", 150.0), ("dram_pct", 0.00115), ("registers", 0.0)]);
    let after = kernel(&[("duration_us", 128.0), ("dram_pct", 0.00134), ("registers", 64.0)]);
    let mut shown = shown_of(&after, DiagnosisRuleSet::Karve);
    shown.against = Some(KernelComparison::of(&before, &after));
    let versus = report_of(shown.clone()).versus;
    let rows: Vec<&str> = versus.iter().map(|row| row.metric.as_str()).collect();
    assert_eq!(rows, ["duration_us", "dram_pct", "registers"]);
    assert_eq!((versus[0].previous.as_str(), versus[0].change.as_str()), ("150", "-14.7%"));
    assert_eq!(versus[2].change, "-");
    // Another kernel is named, and values of another tool are not compared.
    let mut other = KernelProfile::named("older | one");
    other.set("duration_us", 1.0, ProfileSource::at("u", 1, "q"));
    other.set("dram_pct", 2.0, ProfileSource::at("t", 1, "q"));
    shown.against = Some(KernelComparison::of(&other, &after));
    let versus = report_of(shown).versus;
    assert_eq!((versus[0].metric.as_str(), versus[0].previous.as_str()), ("kernel", "older | one"));
    assert_eq!((versus.len(), versus[1].metric.as_str()), (2, "dram_pct"));
}

#[test]
fn hostile_names_cannot_break_the_report() {
    for name in
        ["", "a | b\n### Stages", "— est. 9% gain — trigger: a=1", "\\", "## x", "-", "\u{1b}[2J"]
    {
        let mut hostile =
            kernel(&[("dram_pct", 900.0), ("tensor_pct", -1.0), ("duration_us", 2e9)]);
        hostile.name = name.to_owned();
        let mut shown = shown_of(&hostile, DiagnosisRuleSet::Karve);
        shown.diagnosis.opportunities.push(Opportunity {
            name: name.to_owned(),
            gain_pct: 0.5,
            trigger: name.to_owned(),
            entry: None,
        });
        let configuration = [(name.to_owned(), name.to_owned()), (name.to_owned(), "x".into())];
        let page = ProfilePage {
            kernel: name,
            version: name,
            configuration: &configuration,
            shown: &[shown],
            ..ProfilePage::default()
        };
        let report = round_trip(&page);
        assert_eq!(report.stages.len(), 1);
        assert_eq!((report.stages[0].dram_pct, report.stages[0].tensor_pct), (None, None));
        assert_eq!(report.stages[0].duration_us, Some(2e9));
        let last = report.opportunities.last().unwrap();
        assert_eq!(last.gain_pct, 0.5);
    }
}
