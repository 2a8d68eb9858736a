//! `karve clean`.

mod far;

use crate::project::{self, ProjectArgs};
use crate::refs::refs_of;
use crate::session::holder;
use crate::ui;
use karve_core::charter::Branch;
use karve_harness::git::Repo;
use karve_harness::store::{self, CampaignDir};
use karve_harness::worktrees::CARGO_SEED;
use karve_os::error::{CommandError, Result, WithContext};
use karve_os::files;
use karve_os::text::counted;
use serde::Serialize;
use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, IsTerminal};
use std::path::Path;

/// Show what campaigns take on disk, and remove those that you name
///
/// Without a name nothing is removed. A campaign is removed with its log, its samples, its
/// worktrees and its refs under `refs/karve`. Its branch `optimize/NAME` stays, unless --branch is
/// given; so do the library and the tips. What was removed cannot be restored. `cargo-seed` is what
/// cargo built of the unchanged project; the next campaign builds it again. With --on only copies
/// on that remote are removed: a campaign that is resumed there sends its files again.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  karve clean                 sizes of all campaigns, and what a removed one left behind
  karve clean NAME            remove a campaign
  karve clean --finished -y   remove every campaign that is finished, without being asked
  karve clean --on box        sizes of the copies on a remote
  karve clean --on box --finished    remove those of finished campaigns there")]
pub struct CleanArgs {
    /// The campaigns to remove
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Remove every finished campaign
    #[arg(long, conflicts_with = "names")]
    finished: bool,
    /// Copies on this remote, and nothing here
    #[arg(long, value_name = "REMOTE", conflicts_with = "branch")]
    on: Option<String>,
    /// Remove their branches too
    #[arg(long)]
    branch: bool,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What is left of a campaign.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum TraceState {
    Finished,
    Open,
    Unreadable,
    /// Only refs.
    Removed,
    /// No campaign: what cargo built for all of them.
    Builds,
}

impl TraceState {
    fn name(self) -> &'static str {
        match self {
            Self::Finished => "finished",
            Self::Open => "open",
            Self::Unreadable => "unreadable",
            Self::Removed => "removed",
            Self::Builds => "builds",
        }
    }
}

/// What a campaign takes.
#[derive(Clone, Debug, Serialize)]
struct CampaignTrace {
    campaign: String,
    state: TraceState,
    bytes: u64,
    refs: usize,
    branch: Option<String>,
    #[serde(skip)]
    dir: Option<CampaignDir>,
}

impl CleanArgs {
    /// Runs the command.
    pub fn run(&self, place: &ProjectArgs) -> Result<()> {
        let (repo, root) = (place.repo()?, place.root()?);
        let found = traces(&root, &repo)?;
        if let Some(remote) = &self.on {
            return far::run(self, place, remote, &repo, &found);
        }
        let chosen = self.chosen(&found)?;
        if chosen.is_empty() {
            self.show(&found);
            return Ok(());
        }
        self.agree(chosen.iter().map(|trace| trace.campaign.as_str()))?;
        for trace in &chosen {
            self.remove(trace, &repo, &root)?;
        }
        self.report_removed(&chosen);
        Ok(())
    }

    fn agree<'a>(&self, names: impl Iterator<Item = &'a str>) -> Result<()> {
        match self.yes || is_agreed(&names.collect::<Vec<_>>()) {
            true => Ok(()),
            false => Err(CommandError::usage("nothing was removed")
                .hint("karve clean NAME --yes removes it without being asked")),
        }
    }

    fn chosen(&self, found: &[CampaignTrace]) -> Result<Vec<CampaignTrace>> {
        if self.finished {
            let over = |trace: &&CampaignTrace| {
                matches!(trace.state, TraceState::Finished | TraceState::Removed)
            };
            return Ok(found.iter().filter(over).cloned().collect());
        }
        let names: BTreeSet<&String> = self.names.iter().collect();
        let one = |name: &String| {
            found.iter().find(|trace| trace.campaign == *name).cloned().ok_or_else(|| {
                CommandError::usage(format!("there is no campaign {name:?}"))
                    .hint("\"karve clean\" lists them")
            })
        };
        names.into_iter().map(one).collect()
    }

    fn show(&self, found: &[CampaignTrace]) {
        if self.json {
            return ui::out_json(&found);
        }
        if found.is_empty() {
            return ui::outln("there is nothing to remove");
        }
        for trace in found {
            ui::outln(&format!(
                "{:<44} {:<10} {:>9}  {}{}",
                trace.campaign,
                trace.state.name(),
                size(trace.bytes),
                counted(trace.refs, "ref"),
                trace.branch.as_ref().map_or_else(String::new, |name| format!(", branch {name}"))
            ));
        }
        let total = found.iter().map(|trace| trace.bytes).sum();
        ui::outln(&format!("{} in all; \"karve clean NAME\" removes one", size(total)));
    }

    /// Removes what a campaign left. If that is interrupted, the rest is found the next time.
    fn remove(&self, trace: &CampaignTrace, repo: &Repo, root: &Path) -> Result<()> {
        if trace.state == TraceState::Builds {
            let dir = root.join(CARGO_SEED);
            return fs::remove_dir_all(&dir).context(|| format!("cannot remove {}", dir.display()));
        }
        if let Some(dir) = &trace.dir {
            let _lock = store::lock(dir, &holder())?;
            repo.prune_under(&dir.worktrees())?;
            fs::remove_dir_all(dir.path())
                .context(|| format!("cannot remove {}", dir.path().display()))?;
        }
        for (name, _) in repo.list_refs(&refs_of(&trace.campaign))? {
            repo.delete_ref(&name)?;
        }
        match &trace.branch {
            Some(name) if self.branch => repo.delete_ref(&format!("refs/heads/{name}")),
            Some(_) | None => Ok(()),
        }
    }

    fn report_removed(&self, chosen: &[CampaignTrace]) {
        if self.json {
            return ui::out_json(&chosen);
        }
        for trace in chosen {
            let kept = trace.branch.as_ref().filter(|_| !self.branch);
            let kept = kept.map_or_else(String::new, |name| format!("; the branch {name} stays"));
            ui::outln(&format!("removed {}, {}{kept}", trace.campaign, size(trace.bytes)));
        }
        ui::outln("\"git gc\" frees the space of their commits");
    }
}

/// The campaigns of this project, refs whose campaign is gone, and what campaigns share.
fn traces(root: &Path, repo: &Repo) -> Result<Vec<CampaignTrace>> {
    let mut found = Vec::new();
    let all = store::list(root)?;
    for dir in all.iter().filter(|dir| project::is_of(dir, Some(repo))) {
        let loaded = store::read(dir).ok();
        let campaign = loaded.as_ref().map(|loaded| &loaded.campaign);
        let state = match campaign {
            Some(campaign) if campaign.is_finished() => TraceState::Finished,
            Some(_) => TraceState::Open,
            None => TraceState::Unreadable,
        };
        let branch =
            campaign.and_then(|campaign| campaign.charter()).map(|charter| &charter.branch);
        let branch = match branch {
            Some(Branch::Named { name }) => Some(name.clone()),
            _ => None,
        };
        let refs = repo.list_refs(&refs_of(&dir.name()))?.len();
        let bytes = files::bytes_of(dir.path());
        let dir = dir.clone();
        let name = dir.name();
        found.push(CampaignTrace { campaign: name, state, bytes, refs, branch, dir: Some(dir) });
    }
    let names: BTreeSet<String> = all.iter().map(CampaignDir::name).collect();
    let refs = repo.list_refs("refs/karve")?;
    let owner = |name: &str| name.strip_prefix("refs/karve/")?.split('/').next().map(str::to_owned);
    let owners: Vec<String> = refs.iter().filter_map(|(name, _)| owner(name)).collect();
    for gone in owners.iter().collect::<BTreeSet<_>>() {
        if !names.contains(gone) {
            let refs = owners.iter().filter(|owner| *owner == gone).count();
            let (campaign, state, branch) = (gone.clone(), TraceState::Removed, None);
            found.push(CampaignTrace { campaign, state, bytes: 0, refs, branch, dir: None });
        }
    }
    let bytes = files::bytes_of(&root.join(CARGO_SEED));
    if bytes > 0 {
        let (campaign, state) = (CARGO_SEED.to_owned(), TraceState::Builds);
        found.push(CampaignTrace { campaign, state, bytes, refs: 0, branch: None, dir: None });
    }
    Ok(found)
}

/// Asks on a terminal; elsewhere nobody agrees.
fn is_agreed(names: &[&str]) -> bool {
    let stdin = std::io::stdin();
    let mut said = String::new();
    if stdin.is_terminal() {
        ui::prompt(&format!("Remove {}? [y/N] ", names.join(", ")));
        let _ = stdin.lock().read_line(&mut said);
    }
    ["y", "yes"].contains(&said.trim().to_lowercase().as_str())
}

fn size(bytes: u64) -> String {
    match bytes {
        0..10_000 => format!("{bytes} B"),
        10_000..10_000_000 => format!("{} kB", bytes / 1_000),
        _ => format!("{} MB", bytes / 1_000_000),
    }
}
