//! `karve checkout`: a version of the kernel in a directory of its own, as the start of another.

use super::history::{find, repo_of};
use crate::project::ProjectArgs;
use crate::ui;
use karve_harness::git::Oid;
use karve_os::error::{CommandError, Result};
use std::fs;
use std::path::PathBuf;

/// Check out any version of the kernel in a new directory, on a new branch, to go on from it
///
/// Version N is the candidate of round N, kept or not; version 0 is the original. A version never
/// changes: what you do in the directory is a new one. "karve check" tests and measures it, "karve
/// bench" compares it with another, and "karve run --new" starts a campaign from it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  karve checkout 3 ../matmul-v3          version 3, on the branch matmul-v3
  karve checkout 3 ../wider --branch wider-tiles
  karve -C ../wider bench matmul-v3 .    is what you changed there faster than version 3?")]
pub struct CheckoutArgs {
    /// The version: the number of a round, or 0 for the original
    #[arg(value_name = "VERSION")]
    number: u32,
    /// The directory to create
    #[arg(value_name = "DIR")]
    into: PathBuf,
    /// The branch to create [default: the name of the directory]
    #[arg(long, value_name = "NAME")]
    branch: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl CheckoutArgs {
    /// Runs the command.
    pub fn run(&self, place: &ProjectArgs) -> Result<()> {
        let opened = place.open()?;
        let commit = match self.number {
            0 => opened.campaign.base_commit(),
            number => {
                let candidate = find(&opened, number)?.candidate.as_ref();
                candidate.map_or("", |candidate| &candidate.commit)
            }
        };
        if commit.is_empty() {
            let error = CommandError::usage(format!("there is no version {}", self.number));
            return Err(error.hint("\"karve log\" lists the rounds; those with a change have one"));
        }
        let dir = place.here()?.join(&self.into);
        if fs::read_dir(&dir).is_ok_and(|mut entries| entries.next().is_some()) || dir.is_file() {
            return Err(CommandError::usage(format!("{} exists", self.into.display()))
                .hint("name a directory that does not exist: karve checkout VERSION DIR"));
        }
        if dir.components().any(|part| part.as_os_str() == ".git") {
            return Err(CommandError::usage(format!("{} belongs to git", self.into.display()))
                .hint("name a directory of your own: karve checkout VERSION DIR"));
        }
        let named = dir.file_name().map(|name| name.to_string_lossy().into_owned());
        let branch = self.branch.clone().or(named).unwrap_or_default();
        let repo = repo_of(place, &opened)?;
        repo.check_branch_name(&branch)?;
        if repo.read_ref(&format!("refs/heads/{branch}"))?.is_some() {
            return Err(CommandError::usage(format!("the branch {branch} already exists"))
                .hint("choose another name with --branch NAME"));
        }
        let commit = Oid::named(commit)?;
        repo.worktree_on_branch(&dir, &branch, &commit)?;
        if self.json {
            ui::out_json(&serde_json::json!({
                "version": self.number, "commit": commit.as_str(), "branch": branch, "dir": dir,
            }));
        } else {
            ui::outln(&format!(
                "version {} ({}) is in {}, on the branch {branch}",
                self.number,
                commit.short(),
                self.into.display()
            ));
        }
        Ok(())
    }
}
