//! Golden pages of campaigns and profiles that fill nearly every part of the templates.

use super::{check_golden, fold, text_of};
use crate::reports::profile::{
    FittingEntry, KernelComparison, KernelReport, ProfilePage, ReportFormat, render,
};
use karve_core::campaign::{Campaign, Record};
use karve_core::profile::{DiagnosisRuleSet, diagnose};
use karve_profile::profilers::{self, sniff};

fn testdata(path: &str) -> String {
    let path = format!("{}/../../testdata/{path}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).unwrap()
}

fn campaign(log: &str) -> Campaign {
    let records: Result<Vec<Record>, _> = testdata(log).lines().map(serde_json::from_str).collect();
    fold(&records.unwrap())
}

fn check_pages(dir: &str, campaign: &Campaign) {
    for (name, path) in [
        ("REPORT.md", "REPORT.md"),
        ("summary-1.md", "rounds/round-1/summary.md"),
        ("summary-2.md", "rounds/round-2/summary.md"),
        ("optimize.md", "logs/optimize.md"),
    ] {
        check_golden(&format!("{dir}/{name}"), &text_of(campaign, path));
    }
    let summary = crate::reports::render_terminal_summary(campaign);
    check_golden(&format!("{dir}/terminal.txt"), &summary);
    let message = crate::reports::render_commit_message(campaign, &campaign.rounds()[0]).unwrap();
    check_golden(&format!("{dir}/commit-1.txt"), &message);
}

/// Profiles, an agenda, errors, findings and hostile text.
#[test]
fn the_pages_of_a_rich_campaign_are_as_they_were() {
    check_pages("rich", &campaign("reports/rich/events.jsonl"));
}

/// Roles, variants and reviews.
#[test]
fn the_pages_of_a_campaign_with_roles_are_as_they_were() {
    check_pages("agents", &campaign("logs/v3-agents.jsonl"));
}

#[test]
fn every_form_of_a_profile_is_as_it_was() {
    let text = testdata("profiles/rocprofv3.csv");
    let tool = sniff(&text).unwrap();
    let parsed = profilers::parse(tool, &text).unwrap();
    let reports = parsed.kernels.iter().map(|kernel| KernelReport {
        kernel: kernel.clone(),
        diagnosis: diagnose(kernel, DiagnosisRuleSet::Karve),
        entries: Vec::new(),
        against: None,
    });
    let mut shown: Vec<KernelReport> = reports.collect();
    let mut before = shown[0].kernel.clone();
    before.name = "other | kernel <x>".into();
    for (n, counter) in before.counters.values_mut().enumerate() {
        counter.value *= 1.0 + 0.1 * (n % 4) as f64;
    }
    for opportunity in &mut shown[0].diagnosis.opportunities {
        opportunity.entry = Some("some-entry".into());
    }
    shown[0].entries = vec![FittingEntry {
        id: "some-entry".into(),
        title: "A title".into(),
        impact: Some("5 to 10%".into()),
        why: "because  it\nfits".into(),
    }];
    shown[0].against = Some(KernelComparison::of(&before, &shown[0].kernel));
    let page = ProfilePage {
        title: "a <title> | of `it`",
        kernel: "ker|nel",
        version: "v 1",
        configuration: &[("M".to_owned(), "1,2".to_owned()), ("N".to_owned(), "3".to_owned())],
        shown: &shown,
        notes: &["a note".to_owned(), "another | `note`\nmore".to_owned()],
        against: Some("an earlier one"),
    };
    for (name, form) in [
        ("karve.txt", ReportFormat::Karve),
        ("hyper-mla.md", ReportFormat::HyperMla),
        ("hyper-mla-table.md", ReportFormat::HyperMlaTable),
        ("trtllm.md", ReportFormat::Trtllm),
        ("primus.md", ReportFormat::Primus),
    ] {
        check_golden(&format!("profile/{name}"), &render(form, &page));
    }
}
