//! Steps that need the device, performed by the worker of a remote.

use super::bug;
use super::context::Context;
use crate::refs::refs_of;
use crate::remote::host::{NearSide, RemoteHost};
use crate::remote::wire::{Outcome, RepoRole, Work};
use karve_core::campaign::{Campaign, Event, Step, strategy};
use karve_core::charter::{Charter, WorkMode};
use karve_harness::git::{Oid, Repo};
use karve_harness::store::CampaignDir;
use karve_os::error::Result;
use karve_os::files;

/// Whether a step builds, tests or measures, and nothing else.
pub(super) fn is_for_device(step: &Step, host: &RemoteHost) -> bool {
    match step {
        // With several devices the search is here, and settings are tried there.
        Step::Tune(_) => !host.has_helpers(),
        Step::CheckMutations | Step::MeasureBaseline | Step::Gate { .. } => true,
        Step::Choose(_) | Step::Measure(_) | Step::ProfileFinal { .. } => true,
        Step::DefineTarget | Step::Prepare | Step::ReadTips | Step::Profile { .. } => false,
        Step::Propose { .. } | Step::Implement(_) | Step::Review(_) | Step::Settle { .. } => false,
        Step::Learn { .. } | Step::Finish { .. } => false,
    }
}

/// Whether an agent is asked, which may take long.
pub(super) fn is_for_agent(step: &Step) -> bool {
    matches!(step, Step::Propose { .. } | Step::Implement(_) | Step::Review(_))
}

/// Performs the step that is due, on the remote.
pub(super) fn perform(
    context: &mut Context,
    host: &mut RemoteHost,
    step: &Step,
    campaign: &Campaign,
) -> Result<Event> {
    // Between two blocks of a duel nothing changes but the log.
    let has_new_refs = !matches!(step, Step::Measure(step) if step.block > 0);
    let refs = has_new_refs.then(|| refs_of(&context.charter.name));
    match ask_host(context, host, (campaign, refs), &Work::Step, &[])? {
        Outcome::Event { event } => Ok(*event),
        _ => Err(bug("the worker performed something else")),
    }
}

/// Asks the remote for a part of a step; none if there is no remote.
pub(super) fn ask(
    context: &mut Context,
    campaign: Option<&Campaign>,
    work: &Work,
    commits: &[Oid],
) -> Result<Option<Outcome>> {
    let Some(mut host) = context.remote.take() else {
        return Ok(None);
    };
    let empty = Campaign::new();
    let campaign = campaign.unwrap_or(&empty);
    let refs = Some(refs_of(&context.charter.name));
    let outcome = ask_host(context, &mut host, (campaign, refs), work, commits);
    context.remote = Some(host);
    outcome.map(Some)
}

/// A campaign with its repositories, the user's and the one with the candidates, and some commits.
pub(super) fn near_side<'a>(
    dir: &'a CampaignDir,
    charter: &Charter,
    (upstream, work): (&'a Repo, &'a Repo),
    commits: &[Oid],
) -> NearSide<'a> {
    let mut repos = vec![(RepoRole::Upstream, upstream)];
    let is_extracted = matches!(charter.mode, WorkMode::Workspace { .. });
    if is_extracted {
        repos.push((RepoRole::Workspace, work));
    }
    let role = if is_extracted { RepoRole::Workspace } else { RepoRole::Upstream };
    let commits = commits.iter().map(|commit| (role, commit.clone())).collect();
    NearSide { dir: Some(dir), repos, refs: None, commits, artifacts: Vec::new() }
}

fn ask_host(
    context: &Context,
    host: &mut RemoteHost,
    (campaign, refs): (&Campaign, Option<String>),
    work: &Work,
    commits: &[Oid],
) -> Result<Outcome> {
    let reference = campaign.baseline().and_then(|baseline| baseline.reference.clone());
    let ablated = match work {
        Work::Learn => strategy::to_ablate(campaign).map(|plan| plan.patch),
        _ => None,
    };
    let repos = (&context.repos.upstream, &context.repos.work);
    let near = NearSide {
        refs,
        artifacts: reference.into_iter().chain(ablated).collect(),
        ..near_side(&context.dir, &context.charter, repos, commits)
    };
    let answer = host.ask(&near, work)?;
    for (path, bytes) in &answer.files {
        files::write_derived(&context.dir.join(path), bytes)?;
    }
    Ok(answer.outcome)
}
