//! Profiles as files: `profiles/round-N_<trigger>/`, with a summary and the profiler's output.

use crate::reports::profile::{KernelReport, ProfilePage, ReportFormat, render};
use karve_core::campaign::Campaign;
use karve_core::profile::{Profile, ProfileDepth};
use karve_harness::store::{self, CampaignDir};
use karve_os::error::Result;
use karve_os::files;

/// The folder of the profile of the final kernel.
pub(super) const FINAL: &str = "final";

/// The folder of a profile before a round, with what triggered it.
pub(super) fn folder(campaign: &Campaign, round: u32) -> String {
    let first = campaign.charter().map_or(1, |charter| charter.policy.first_round);
    let mut earlier = campaign.rounds().iter().filter(|earlier| earlier.number < round);
    let trigger = match earlier.next_back() {
        _ if round == first => "post_baseline",
        Some(last) if last.verdict.keeps() => "post_accept",
        Some(_) | None => "pre_stagnation",
    };
    format!("round-{round}_{trigger}")
}

/// Writes the summary of a profile and its raw output.
pub(super) fn write(dir: &CampaignDir, folder: &str, profile: &Profile) -> Result<()> {
    let home = dir.join("profiles").join(folder);
    files::write_derived(&home.join("profile_summary.md"), summary(folder, profile).as_bytes())?;
    if let Some(report) = &profile.report {
        let said = report.for_brief();
        files::write_derived(&home.join("profiler_report.md"), said.as_bytes())?;
    }
    let outputs = [("raw_output.txt", &profile.artifact), ("assembly.txt", &profile.assembly)];
    for (name, hash) in outputs {
        if let Some(hash) = hash {
            files::write_derived(&home.join(name), &store::get_artifact(dir, hash)?)?;
        }
    }
    Ok(())
}

fn summary(title: &str, profile: &Profile) -> String {
    let diagnosis = profile.diagnosis.as_deref().cloned();
    let shown: Vec<KernelReport> = profile
        .kernels
        .iter()
        .zip(diagnosis.into_iter().cycle())
        .map(|(kernel, diagnosis)| KernelReport {
            kernel: kernel.clone(),
            diagnosis,
            entries: Vec::new(),
            against: None,
        })
        .collect();
    let mut notes = profile.notes.clone();
    notes.extend(profile.skipped.clone());
    if shown.is_empty() {
        notes.push(format!("bottleneck_class: {}", profile.bottleneck.name()));
    }
    let depth = match profile.depth {
        ProfileDepth::Light => "light",
        ProfileDepth::Full => "full",
        ProfileDepth::Code => "code",
    };
    let title = format!("{title} ({depth})");
    let page =
        ProfilePage { title: &title, shown: &shown, notes: &notes, ..ProfilePage::default() };
    render(ReportFormat::Primus, &page)
}
