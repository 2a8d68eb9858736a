//! `karve apply`: puts the best kernel on a branch that the user names.

use super::history::repo_of;
use super::remote::named;
use crate::project::{LoadedCampaign, ProjectArgs, tag_of};
use crate::remote::host::{HostUser, NearSide, RemoteHost};
use crate::remote::wire::{Outcome, RepoRole, Work};
use crate::steps::AcceptanceTest;
use crate::{remote, reports, session, steps, ui, workspace};
use karve_core::charter::{Charter, WorkMode};
use karve_core::measurement::Gate;
use karve_harness::commands::Harness;
use karve_harness::git::{ExpectedRef, Oid, Repo};
use karve_harness::store::Store;
use karve_harness::worktrees::Worktrees;
use karve_os::error::{CommandError, ErrorKind, Result};
use karve_os::files;
use karve_os::process::StopFlag;
use karve_os::sandbox::Sandbox;

/// Put the best kernel on a new branch and print a pull request description
///
/// First the kernel must pass the tests on all cases and commands.acceptance; in workspace mode it
/// is built and tested in the whole repository. Your checkout is not touched, except that tips are
/// added to agent/historical_experience if it is there.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  karve apply --branch faster-matmul
  karve apply --branch faster-matmul > pr.md && git push origin faster-matmul")]
pub struct ApplyArgs {
    /// The branch to create
    #[arg(long, value_name = "NAME")]
    branch: String,
    /// Create the branch even if the final duel does not confirm a gain
    #[arg(long)]
    unconfirmed: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl ApplyArgs {
    /// Runs the command.
    pub fn run(&self, place: &ProjectArgs) -> Result<()> {
        let opened = place.open()?;
        let campaign = &opened.campaign;
        let Some(charter) = campaign.charter() else {
            return Err(CommandError::usage("the campaign has no charter yet")
                .hint("resume with \"karve run\""));
        };
        if campaign.lineage().best().is_none() {
            return Err(CommandError::new(
                ErrorKind::Negative,
                "nothing was kept, so there is \
                                                               nothing to apply",
            )
            .hint("see why with \"karve log\""));
        }
        if campaign.view().confirmed == Some(false) && !self.unconfirmed {
            let message = "the final duel does not confirm a gain, so nothing is applied";
            return Err(CommandError::new(ErrorKind::Negative, message)
                .hint("see \"karve report\"; --unconfirmed creates the branch anyway"));
        }
        let upstream = place.repo()?;
        upstream.check_branch_name(&self.branch)?;
        let commit = accepted(place, &opened, &upstream, charter)?;
        let name = format!("refs/heads/{}", self.branch);
        if upstream.read_ref(&name)?.is_some_and(|found| found != commit) {
            return Err(CommandError::usage(format!("the branch {} already exists", self.branch))
                .hint("choose another name with --branch NAME"));
        }
        upstream.update_ref(&name, &commit, ExpectedRef::Absent)?;
        let campaigns = opened.dir.path().parent().unwrap_or(opened.dir.path());
        let tips = steps::hand_over_tips(&charter.target, campaigns, upstream.root())?;
        let text = reports::render_pull_request(campaign);
        files::write_derived(&opened.dir.join("pull-request.md"), text.as_bytes())?;
        if self.json {
            ui::out_json(&serde_json::json!({
                "branch": self.branch, "commit": commit.as_str(), "pull_request": text,
            }));
        } else {
            ui::note(&format!("the branch {} is at {}", self.branch, commit.short()));
            if let Some(path) = &tips {
                ui::note(&format!("the tips of the campaign are in {}", path.display()));
            }
            ui::out(&text);
            ui::next_step(&format!("\"git switch {0}\", or \"git push origin {0}\"", self.branch));
        }
        Ok(())
    }
}

/// Builds and tests the kernel as it is handed back, where the campaign was measured; returns its
/// commit.
fn accepted(
    place: &ProjectArgs,
    opened: &LoadedCampaign,
    upstream: &Repo,
    charter: &Charter,
) -> Result<Oid> {
    // The lock keeps a running campaign's worktrees from being removed.
    let _store = Store::open(&opened.dir, "karve apply\n")?;
    let mut trees = Worktrees::new(upstream, opened.dir.worktrees())?;
    let best = opened.campaign.incumbent();
    let (commit, says, hint) = match &charter.mode {
        WorkMode::Repo => {
            let says = "the kernel does not pass the acceptance tests";
            (Oid::named(best)?, says, "see [commands] in karve.toml")
        }
        WorkMode::Workspace { .. } => {
            let repo = repo_of(place, opened)?;
            let (_, synced) = workspace::synced(upstream, &repo, &trees, charter, best)?;
            let says = "the kernel does not pass the integration gate";
            (synced, says, "see workspace.integration in karve.toml")
        }
    };
    let gate = match &charter.remote {
        Some(name) => tested_there(place, name, opened, (upstream, &commit))?,
        None => tested_here(opened, charter, (upstream, &commit), &mut trees)?,
    };
    trees.clear(upstream)?;
    let _ = std::fs::remove_dir_all(opened.dir.join("tmp"));
    match gate {
        Gate::Passed => Ok(commit),
        gate => Err(CommandError::new(ErrorKind::Negative, says).cause(gate.describe()).hint(hint)),
    }
}

fn tested_here(
    opened: &LoadedCampaign,
    charter: &Charter,
    (upstream, commit): (&Repo, &Oid),
    trees: &mut Worktrees,
) -> Result<Gate> {
    let campaigns = opened.dir.path().parent().unwrap_or(opened.dir.path());
    let sandbox = Sandbox::of(&upstream.checkout(), campaigns, opened.dir.path(), charter)?;
    let (tmp, tag) = (opened.dir.join("tmp"), tag_of(&opened.dir));
    let harness = Harness::new(charter, &tmp, &tag, &StopFlag::new()).in_sandbox(sandbox.as_ref());
    let test = AcceptanceTest { campaign: &opened.campaign, charter, harness, upstream };
    test.run(trees, commit.as_str())
}

/// The same on the machine that measured the campaign.
fn tested_there(
    place: &ProjectArgs,
    name: &str,
    opened: &LoadedCampaign,
    (upstream, commit): (&Repo, &Oid),
) -> Result<Gate> {
    let stop = StopFlag::new();
    session::watch_signals_at_once(&stop, "stopping")?;
    let user = HostUser {
        project: remote::project_id(upstream),
        campaign: opened.campaign.charter().map(|charter| charter.name.clone()),
        patience_s: None,
        notices: ui::notices(),
        stop: stop.clone(),
    };
    let near = NearSide {
        dir: Some(&opened.dir),
        repos: vec![(RepoRole::Upstream, upstream)],
        refs: None,
        commits: vec![(RepoRole::Upstream, commit.clone())],
        artifacts: Vec::new(),
    };
    let mut host = RemoteHost::new(named(place, name)?, user);
    let work = Work::Accept { commit: commit.to_string() };
    match session::unless_stopped(&stop, host.ask(&near, &work))?.outcome {
        Outcome::Accepted { gate } => Ok(gate),
        _ => Err(CommandError::new(ErrorKind::Bug, "the worker did something else")),
    }
}
