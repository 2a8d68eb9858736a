//! `karve names`: names for completions of a shell, one per line.

use crate::project::ProjectArgs;
use crate::{project, ui};
use karve_harness::store;
use karve_os::error::Result;

/// What is named.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Named {
    /// The campaigns of this project.
    Campaigns,
    /// The finished rounds of the selected campaign.
    Rounds,
}

/// Print the names that a shell completes
#[derive(Debug, clap::Args)]
#[command(hide = true)]
pub struct NamesArgs {
    /// What
    of: Named,
}

impl NamesArgs {
    /// Runs the command.
    pub fn run(&self, place: &ProjectArgs) -> Result<()> {
        match self.of {
            Named::Campaigns => {
                let repo = place.repo().ok();
                for dir in store::list(&place.root()?)? {
                    if project::is_of(&dir, repo.as_ref()) {
                        ui::outln(&dir.name());
                    }
                }
            }
            Named::Rounds => {
                for round in place.open()?.campaign.rounds() {
                    ui::outln(&round.number.to_string());
                }
            }
        }
        Ok(())
    }
}
