//! Profiles as files: `profiles/round-N_<trigger>/`, with a summary and the profiler's output.

use crate::reports::profile::{KernelComparison, KernelReport, ProfilePage, ReportFormat, render};
use karve_core::campaign::Campaign;
use karve_core::policy::Preset;
use karve_core::profile::{KernelProfile, Profile, ProfileDepth};
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

/// Writes the summary of a profile, its report in the form of the workflow, and its raw output.
pub(super) fn write(
    dir: &CampaignDir,
    campaign: &Campaign,
    folder: &str,
    profile: &Profile,
) -> Result<()> {
    let home = dir.join("profiles").join(folder);
    if let Some(text) = report(campaign, profile) {
        files::write_derived(&home.join("profile.md"), text.as_bytes())?;
    }
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

/// A profile in the form that the workflow of the preset has, compared with that of the baseline.
fn report(campaign: &Campaign, profile: &Profile) -> Option<String> {
    let charter = campaign.charter()?;
    let form = match charter.policy.preset {
        Preset::HyperMla => ReportFormat::HyperMla,
        Preset::Trtllm => ReportFormat::Trtllm,
        Preset::Strict | Preset::Primus | Preset::Tilegym => return None,
    };
    let first = campaign.first_profile().filter(|first| first.commit != profile.commit);
    let shown = kernels(profile, |kernel| {
        let same = first?.kernels.iter().find(|known| known.name == kernel.name)?;
        Some(KernelComparison::of(same, kernel))
    });
    let mut kept = campaign.lineage().kept().iter();
    let version = kept.find(|kept| kept.commit == profile.commit).map_or(0, |kept| kept.round);
    let visible = charter.visible_cases().into_iter().filter_map(|case| campaign.case(case));
    let configuration: Vec<(String, String)> =
        visible.take(1).flat_map(|case| case.params.into_iter()).collect();
    let (op, version) = (&charter.target.op, format!("v{version}"));
    let page = ProfilePage {
        title: &format!("{op} {version}"),
        kernel: op,
        version: &version,
        configuration: &configuration,
        shown: &shown,
        notes: &profile.notes,
        against: first.map(|_| "v0"),
    };
    (!shown.is_empty()).then(|| render(form, &page))
}

/// The kernels of a profile with what limits them.
fn kernels(
    profile: &Profile,
    against: impl Fn(&KernelProfile) -> Option<KernelComparison>,
) -> Vec<KernelReport> {
    let diagnosis = profile.diagnosis.as_deref().cloned();
    let all = profile.kernels.iter().zip(diagnosis.into_iter().cycle());
    let all = all.map(|(kernel, diagnosis)| KernelReport {
        kernel: kernel.clone(),
        diagnosis,
        entries: Vec::new(),
        against: against(kernel),
    });
    all.collect()
}

fn summary(title: &str, profile: &Profile) -> String {
    let shown = kernels(profile, |_| None);
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
