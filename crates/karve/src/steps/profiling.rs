//! Profiles a kernel of the campaign: with the installed profilers, or with the project's own
//! command, parsed if karve knows its tool; and finds how close each call is to the roofline.

use super::context::Context;
use super::knowledge;
use crate::config::PROFILE_AUTO;
use crate::library::situation::situation_of;
use crate::reports::profile::{self as report, KernelReport, ProfilePage, ReportFormat};
use karve_core::campaign::{Campaign, strategy};
use karve_core::profile::{
    Bottleneck, DiagnosisRuleSet, KERNELS_MAX, Profile, ProfileDepth, diagnose, instruction_mix,
};
use karve_core::roofline::{ceilings, shown_cores};
use karve_harness::commands::Harness;
use karve_harness::outcome::split;
use karve_harness::project_file::glob_set;
use karve_harness::store;
use karve_numerics::case::CaseSet;
use karve_os::device;
use karve_os::error::Result;
use karve_os::process::excerpt;
use karve_profile::profilers::collect::{self, DevicePlatform, ProfileRequest, ProfileTarget};
use karve_profile::profilers::editable::EditableFiles;
use karve_profile::profilers::valgrind::{NO_KERNEL, UNSEEN};
use karve_profile::roofline::cases::{self, CaseTimes};
use karve_profile::roofline::counters::add_ceiling;
use std::path::Path;
use std::time::Duration;

/// Characters of a profile that the campaign keeps, from its end.
const DIGEST_CHARS: usize = 4_000;
/// Kernels that a campaign keeps.
const KERNELS_KEPT: usize = 4;
/// The time limit of one profiler; a longer run would not be a light profile.
const TOOL_LIMIT: Duration = Duration::from_secs(60);
/// Most reasons for a missing profile that are kept.
const NOTES_MAX: usize = 6;

/// The known profile, or else a new one of the incumbent.
pub(super) fn known_or_new_profile(
    context: &mut Context,
    known: Option<Profile>,
    commit: &str,
    depth: ProfileDepth,
    campaign: &Campaign,
) -> Result<Profile> {
    match known {
        Some(profile) => Ok(profile),
        None => collect_profile(context, commit, depth, campaign, &cases::of_incumbent(campaign)),
    }
}

/// The profile of the current round's candidate, if it is useful.
pub(super) fn profile_candidate(
    context: &mut Context,
    campaign: &Campaign,
) -> Result<Option<Profile>> {
    let Some((commit, depth)) = strategy::to_compare(campaign) else {
        return Ok(None);
    };
    let times = cases::of_candidate(campaign);
    let profile = collect_profile(context, &commit, depth, campaign, &times)?;
    context.carried.profiled = Some(profile.clone());
    Ok(Some(profile))
}

fn collect_profile(
    context: &mut Context,
    commit: &str,
    depth: ProfileDepth,
    campaign: &Campaign,
    times: &CaseTimes,
) -> Result<Profile> {
    let mut profile = Profile {
        commit: commit.to_owned(),
        depth,
        bottleneck: Bottleneck::Unknown,
        share: None,
        digest: String::new(),
        artifact: None,
        skipped: None,
        kernels: Vec::new(),
        diagnosis: None,
        notes: Vec::new(),
        assembly: None,
        report: None,
    };
    let harness = context.harness();
    let built = match split(context.repos.built(&harness, commit))? {
        Ok(built) => built,
        Err(gate) => {
            profile.skipped = Some(gate.describe());
            return Ok(profile);
        }
    };
    // Nothing is profiled while a duel of this or another campaign runs.
    let _lease = device::lease_for(
        &context.charter,
        &context.charter.name,
        &context.stop,
        &context.device.notices,
    )?;
    let is_auto = context.charter.commands.profile.as_deref() == Some(PROFILE_AUTO);
    let seen = campaign.profile_but_code(commit, depth).filter(|_| is_auto);
    match seen {
        Some(seen) => profile = Profile { depth, report: None, ..seen.clone() },
        None if is_auto => {
            profile_with_tools(context, &harness, &built.path, campaign, &mut profile)?;
        }
        None => profile_with_command(context, &harness, &built.path, campaign, &mut profile)?,
    }
    if seen.is_none() {
        add_diagnosis(context, &mut profile, campaign, times);
        // What was read says more in fewer words than a profiler's own output.
        if is_auto || !profile.kernels.is_empty() {
            profile.digest = render_digest(&profile);
        }
    }
    if depth == ProfileDepth::Code {
        add_assembly(context, &harness, &built.path, &mut profile)?;
    }
    Ok(profile)
}

/// Adds the generated code: in full as an artifact, and its instruction mix for the agent.
fn add_assembly(
    context: &Context,
    harness: &Harness,
    tree: &Path,
    profile: &mut Profile,
) -> Result<()> {
    let Some(run) = harness.assembly(tree, &[])? else {
        profile.notes.push("no generated code to show: name it in commands.artifacts".into());
        return Ok(());
    };
    let text = harness.without_private_dirs(tree, &run.stdout.text());
    match instruction_mix(&text) {
        None => profile.notes.push("the build's output has no code that objdump reads".into()),
        Some(mix) => {
            profile.assembly = Some(store::put_artifact(&context.dir, text.as_bytes())?);
            profile.digest.push_str(&format!("\n\nGenerated code: {mix}\n"));
        }
    }
    Ok(())
}

/// Profiles with the project's own command.
fn profile_with_command(
    context: &Context,
    harness: &Harness,
    tree: &Path,
    campaign: &Campaign,
    profile: &mut Profile,
) -> Result<()> {
    let first = campaign.cases_of(CaseSet::Full).into_iter().next();
    let case = first.and_then(|index| campaign.case(index));
    let Some(run) = harness.profile(tree, case.as_ref(), profile.depth.name())? else {
        profile.skipped = Some("there is no profile command".into());
        return Ok(());
    };
    let text = format!("{}{}", run.stdout.text(), run.stderr.text());
    profile.artifact = Some(store::put_artifact(&context.dir, text.as_bytes())?);
    if !run.exit.success() {
        profile.skipped = Some(harness.without_private_dirs(tree, &excerpt(&run)));
        return Ok(());
    }
    let skip = text.chars().count().saturating_sub(DIGEST_CHARS);
    let digest: String = text.chars().skip(skip).collect();
    profile.digest = harness.without_private_dirs(tree, &digest);
    profile.bottleneck = bottleneck_in(&profile.digest);
    profile.share = share_in(&profile.digest);
    if run.stdout.truncated() {
        let note = "the profile command printed more than karve keeps: no counter was parsed";
        profile.notes.push(note.to_owned());
    } else if let Ok((_, parsed)) = collect::read_any(&run.stdout.bytes) {
        profile.kernels = parsed.kernels;
        profile.kernels.truncate(KERNELS_KEPT.min(KERNELS_MAX));
        profile.kernels.extend(parsed.timeline);
    }
    Ok(())
}

/// Profiles with the installed profilers. One that failed is not started again.
fn profile_with_tools(
    context: &mut Context,
    harness: &Harness,
    tree: &Path,
    campaign: &Campaign,
    profile: &mut Profile,
) -> Result<()> {
    let first = campaign.cases_of(CaseSet::Full).into_iter().next();
    let Some(case) = first.and_then(|index| campaign.case(index)) else {
        profile.skipped = Some("there is no visible case".into());
        return Ok(());
    };
    let globs = glob_set(&context.charter.editable)?;
    let commit = context.repos.work.rev_parse(&profile.commit)?;
    let editable = EditableFiles::of(&context.repos.work.read_matching(&commit, &globs)?);
    let target = ProfileTarget {
        tree,
        case: &case,
        runs: DevicePlatform::at(&situation_of(&context.charter)),
        editable: &editable,
    };
    let request = ProfileRequest {
        tool: None,
        depth: (profile.depth != ProfileDepth::Light).then_some(profile.depth),
        without: &context.carried.failed_tools,
    };
    let rules = DiagnosisRuleSet::of(context.charter.policy.preset);
    let limit = Duration::from_secs(context.charter.limits.command_s).min(TOOL_LIMIT);
    let harness = harness.clone().with_limit(limit);
    let taken = collect::take(&harness, target, request, rules)?;
    let mut notes = Vec::new();
    for (tool, hint) in &taken.failed {
        notes.push(format!("{}: {}", tool.name(), hint.problem));
        context.carried.failed_tools.push(*tool);
    }
    let known = context.carried.failed_tools.iter();
    let failed_before = known.filter(|tool| taken.failed.iter().all(|(failed, _)| failed != *tool));
    for tool in failed_before {
        notes.push(format!("{}: it failed earlier", tool.name()));
    }
    let is_important = |note: &String| [UNSEEN, NO_KERNEL].contains(&note.as_str());
    let reported = taken.parsed.notes.into_iter();
    notes.extend(reported.filter(|note| is_important(note) || taken.parsed.kernels.is_empty()));
    // The deepest profile is kept.
    if let Some((_, bytes)) = taken.raw.last() {
        profile.artifact = Some(store::put_artifact(&context.dir, bytes)?);
    }
    profile.kernels = taken.parsed.kernels;
    profile.kernels.truncate(KERNELS_KEPT.min(KERNELS_MAX));
    profile.kernels.extend(taken.parsed.timeline);
    notes.truncate(NOTES_MAX);
    if profile.kernels.is_empty() {
        if notes.is_empty() {
            notes.push("no profiler reported anything".to_owned());
        }
        profile.skipped = Some(notes.join("; "));
    } else {
        profile.notes = notes;
    }
    Ok(())
}

/// What follows from the counters, and from the roofline of the first case.
fn add_diagnosis(context: &Context, profile: &mut Profile, campaign: &Campaign, times: &CaseTimes) {
    let charter = campaign.charter();
    let roof = campaign.baseline().and_then(|b| b.roof.as_ref());
    if let (Some(charter), Some(roof)) = (charter, roof) {
        let cases = cases::visible(campaign);
        let cores = shown_cores(charter, &cases, roof, &[times]);
        let found = ceilings(charter, &cases, roof, cores, times);
        if let Some(case) = found.first() {
            let (op, roof_name) = (&charter.target.op, case.roof_name());
            add_ceiling(&mut profile.kernels, op, &roof_name, &case.ceiling);
        }
    }
    if let Some(kernel) = profile.kernels.first() {
        let rules = DiagnosisRuleSet::of(context.charter.policy.preset);
        let mut diagnosis = diagnose(kernel, rules);
        knowledge::name_library_entries(context, kernel, &mut diagnosis);
        if profile.bottleneck == Bottleneck::Unknown {
            profile.bottleneck = diagnosis.bottleneck;
        }
        profile.diagnosis = Some(Box::new(diagnosis));
    }
}

/// A profile as an agent reads it.
fn render_digest(profile: &Profile) -> String {
    let first = profile.diagnosis.as_deref();
    let rules = first.map_or(DiagnosisRuleSet::Karve, |d| d.rules);
    let shown: Vec<KernelReport> = profile
        .kernels
        .iter()
        .enumerate()
        .map(|(number, kernel)| KernelReport {
            kernel: kernel.clone(),
            // The diagnosis of the first kernel names the library entries.
            diagnosis: match first.filter(|_| number == 0) {
                Some(first) => first.clone(),
                None => diagnose(kernel, rules),
            },
            entries: Vec::new(),
            against: None,
        })
        .collect();
    let notes: Vec<String> = profile.skipped.iter().chain(&profile.notes).cloned().collect();
    let page = ProfilePage {
        title: &profile.commit,
        shown: &shown,
        notes: &notes,
        ..ProfilePage::default()
    };
    let text = report::render(ReportFormat::Karve, &page);
    text.chars().take(DIGEST_CHARS).collect()
}

/// The class that a profile names in a line like `Bottleneck: Memory-bound`.
fn bottleneck_in(digest: &str) -> Bottleneck {
    let after = |line: &str| {
        let lower = line.to_lowercase();
        let (_, rest) = lower.split_once("bottleneck")?;
        Some(Bottleneck::by_name(rest.trim_start_matches([':', ' ', '*', '='])))
    };
    digest
        .lines()
        .filter_map(after)
        .find(|b| *b != Bottleneck::Unknown)
        .unwrap_or(Bottleneck::Unknown)
}

/// The share of the time that a profile names in a line like `Kernel share: 40%`, 0 to 1.
fn share_in(digest: &str) -> Option<f64> {
    let of_line = |line: &str| {
        let lower = line.to_lowercase();
        let (_, rest) = lower.split_once("kernel share")?;
        let (number, _) = rest.split_once('%')?;
        let number = number.trim_start_matches([':', ' ', '*', '=']).trim();
        number.parse::<f64>().ok().map(|percent| percent / 100.0)
    };
    let mut shares = digest.lines().filter_map(of_line);
    shares.rfind(|share| (0.0..=1.0).contains(share))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_may_name_the_share_of_the_kernel() {
        assert_eq!(share_in("x\n**Kernel share**: 40 %\n"), Some(0.4));
        assert_eq!(share_in("kernel share=12.5%"), Some(0.125));
        for none in ["", "Kernel share: most of it", "kernel share: 140%", "share: 4%"] {
            assert_eq!(share_in(none), None, "{none}");
        }
    }
}
