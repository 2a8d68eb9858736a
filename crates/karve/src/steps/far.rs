//! Steps that need the device, performed by the worker of a remote.

use super::bug;
use super::context::Context;
use crate::refs::refs_of;
use crate::remote::host::{NearSide, RemoteHost};
use crate::remote::wire::{Outcome, RepoRole, Work};
use crate::tuner::pool::{self, PoolWork};
use karve_core::campaign::{Campaign, ChooseStep, Event, Step, strategy};
use karve_core::charter::{Charter, WorkMode};
use karve_core::hypothesis::Candidate;
use karve_core::variants::VariantTrial;
use karve_harness::git::{Oid, Repo};
use karve_harness::store::CampaignDir;
use karve_os::error::Result;
use karve_os::files;
use karve_os::process::StopFlag;

/// Whether a step builds, tests or measures, and nothing else.
pub(super) fn is_for_device(step: &Step, host: &RemoteHost) -> bool {
    match step {
        // With several devices it is shared out here, and settings or variants are tried there.
        Step::Tune(_) | Step::Choose(_) => !host.has_helpers(),
        Step::CheckMutations | Step::MeasureBaseline | Step::Gate { .. } => true,
        Step::Measure(_) | Step::ProfileFinal { .. } => true,
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

/// Tries each variant on some device of the remote.
pub(super) fn try_variants(
    context: &mut Context,
    step: &ChooseStep,
    campaign: &Campaign,
) -> Result<Vec<VariantTrial>> {
    let mut hosts = context.take_hosts();
    let near = near_for(context, campaign, Some(refs_of(&context.charter.name)), &[]);
    let ready = |host: &mut RemoteHost, over: &StopFlag| host.get_ready(&near, over);
    let piece = |host: &mut RemoteHost, (variant, _): &(u32, Candidate)| match host
        .ask(&near, &Work::Variant { variant: *variant })?
        .outcome
    {
        Outcome::Tryout { trial } if trial.variant == *variant => Ok(trial),
        _ => Err(bug("the worker tried something else")),
    };
    let used = hosts.len().min(step.candidates.len());
    let work = PoolWork { stop: &context.stop, ready: &ready, piece: &piece };
    let tried = pool::share(&mut hosts[..used], &step.candidates, &work);
    // The others worked at the same time.
    for host in hosts.iter_mut().skip(1) {
        host.waited();
    }
    context.return_hosts(hosts);
    tried
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

/// What a host must have for a piece of work.
fn near_for<'a>(
    context: &'a Context,
    campaign: &Campaign,
    refs: Option<String>,
    commits: &[Oid],
) -> NearSide<'a> {
    let reference = campaign.baseline().and_then(|baseline| baseline.reference.clone());
    let repos = (&context.repos.upstream, &context.repos.work);
    NearSide {
        refs,
        artifacts: reference.into_iter().collect(),
        ..near_side(&context.dir, &context.charter, repos, commits)
    }
}

fn ask_host(
    context: &Context,
    host: &mut RemoteHost,
    (campaign, refs): (&Campaign, Option<String>),
    work: &Work,
    commits: &[Oid],
) -> Result<Outcome> {
    let mut near = near_for(context, campaign, refs, commits);
    if let (Work::Learn, Some(plan)) = (work, strategy::to_ablate(campaign)) {
        near.artifacts.push(plan.patch);
    }
    let answer = host.ask(&near, work)?;
    for (path, bytes) in &answer.files {
        files::write_derived(&context.dir.join(path), bytes)?;
    }
    Ok(answer.outcome)
}
