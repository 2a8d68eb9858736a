//! `karve list`.

use crate::project::ProjectArgs;
use crate::{project, ui};
use karve_harness::store;
use karve_os::error::Result;
use karve_os::text::counted;

/// List the campaigns of this project
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  karve list
  karve list --json")]
pub struct ListArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl ListArgs {
    /// Runs the command.
    pub fn run(&self, place: &ProjectArgs) -> Result<()> {
        let (mut views, mut others) = (Vec::new(), 0_u32);
        let repo = place.repo().ok();
        for dir in store::list(&place.root()?)? {
            if !project::is_of(&dir, repo.as_ref()) {
                others += 1;
                continue;
            }
            match store::read(&dir) {
                Ok(loaded) => views.push(loaded.campaign.view()),
                Err(error) => ui::note(&format!("note: {}: {}", dir.name(), error.message)),
            }
        }
        if self.json {
            ui::out_json(&views);
            return Ok(());
        }
        if others > 0 {
            ui::note(&format!("note: {others} campaigns of other projects share this root"));
        }
        if views.is_empty() {
            ui::outln("no campaign yet; start one with \"karve run\"");
        }
        for view in views {
            let state = if view.step == "finished" { "finished" } else { "open" };
            ui::outln(&format!(
                "{:<44} {state:<9} {:>11} {:>3} kept {:>8.3}x{}",
                view.campaign,
                counted(view.rounds_done as usize, "round"),
                view.kept,
                view.gain(),
                view.gain_note()
            ));
        }
        ui::next_step("\"karve report --campaign NAME\", \"karve clean NAME\"");
        Ok(())
    }
}
