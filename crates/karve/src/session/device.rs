//! Where a campaign is measured: here or on a remote, and whether that is still the same host.

use super::CampaignSetup;
use crate::remote::host::{HostUser, NearSide, RemoteHost};
use crate::remote::table;
use crate::remote::wire::{Outcome, RepoRole, Work};
use crate::{remote, ui};
use karve_core::basis;
use karve_core::campaign::Campaign;
use karve_core::charter::Charter;
use karve_core::measurement::Environment;
use karve_harness::git::Repo;
use karve_harness::store::CampaignDir;
use karve_os::device::NoticeSink;
use karve_os::error::{CommandError, ErrorKind, Result};
use karve_os::process::StopFlag;
use karve_os::{host, sandbox};

/// Refuses a sandbox that this host cannot give; what a remote can give is asked there.
pub(super) fn check_sandbox(charter: &Charter) -> Result<()> {
    if charter.remote.is_some() {
        return Ok(());
    }
    if let Some(warning) = sandbox::warning(&charter.sandbox) {
        ui::note(&warning);
    }
    sandbox::can_hold(&charter.sandbox)
}

/// The machine with the device, if the charter names one.
pub(super) fn remote_of(
    charter: &Charter,
    setting: &CampaignSetup<'_>,
    notices: &NoticeSink,
    stop: &StopFlag,
) -> Result<Option<RemoteHost>> {
    let Some(name) = &charter.remote else {
        return Ok(None);
    };
    let config = table::find(name, setting.remotes)?.ok_or_else(|| {
        CommandError::usage(format!("the campaign runs on {name}, and there is no remote.{name}"))
            .hint("\"karve remote list\" shows the remotes; \"karve remote add\" adds one")
    })?;
    let user = HostUser {
        project: remote::project_id(&setting.repo),
        campaign: Some(charter.name.clone()),
        patience_s: setting.patience_s,
        notices: notices.clone(),
        stop: stop.clone(),
    };
    Ok(Some(RemoteHost::new(config, user)))
}

/// The same check on another machine.
pub(super) fn check_remote(
    host: &mut RemoteHost,
    repo: &Repo,
    dir: &CampaignDir,
    campaign: &Campaign,
) -> Result<()> {
    if campaign.preparation().is_none() {
        return Ok(());
    }
    let base = campaign.base_commit().to_owned();
    let near = NearSide {
        dir: Some(dir),
        repos: vec![(RepoRole::Upstream, repo)],
        refs: None,
        commits: Vec::new(),
        artifacts: Vec::new(),
    };
    match host.ask(&near, &Work::Inspect { base })?.outcome {
        Outcome::Inspected { environment, .. } => check_host(campaign, &environment),
        _ => Err(CommandError::new(ErrorKind::Bug, "the worker inspected nothing")),
    }
}

/// A campaign resumes only where its measurements are still comparable.
pub(super) fn check_host(campaign: &Campaign, environment: &Environment) -> Result<()> {
    let (Some(charter), Some(preparation)) = (campaign.charter(), campaign.preparation()) else {
        return Ok(());
    };
    let basis = |environment| host::basis_of(charter, &preparation.harness_hash, environment);
    let before = basis(&preparation.environment);
    let now = basis(environment);
    let Err(mismatch) = basis::comparable(&before, &now) else {
        return Ok(());
    };
    let mut error = CommandError::environment(format!(
        "the campaign {} was measured on another host or with other tools",
        charter.name
    ));
    for difference in mismatch.differences {
        error = error.cause(difference);
    }
    Err(error
        .hint("go back to that host or those tools, then resume with \"karve run\"")
        .hint("or start a new campaign here with \"karve run --new\""))
}
