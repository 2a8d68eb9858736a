//! `karve report`.

use super::history::repo_of;
use crate::project::ProjectArgs;
use crate::{publish, reports, ui};
use karve_harness::store::Store;
use karve_os::error::Result;

/// Print the report of a campaign, finished or not
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  karve report > report.md
  karve report --rebuild      write every derived file again from the log")]
pub struct ReportArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Delete and rebuild the derived files of the campaign's directory
    #[arg(long)]
    rebuild: bool,
}

impl ReportArgs {
    /// Runs the command.
    pub fn run(&self, place: &ProjectArgs) -> Result<()> {
        let opened = place.open()?;
        let campaign = &opened.campaign;
        if self.rebuild {
            // A running campaign writes the same files.
            let _store = Store::open(&opened.dir, "karve report --rebuild\n")?;
            let _ = std::fs::remove_dir_all(opened.dir.join("rounds"));
            publish::rebuild(&repo_of(place, &opened)?, &opened.dir, campaign, &opened.records)?;
        }
        if self.json {
            let rounds: Vec<_> =
                campaign.rounds().iter().map(|round| campaign.round_view(round)).collect();
            ui::out_json(&serde_json::json!({
                "campaign": campaign.view(),
                "rounds": rounds,
                "final": campaign.final_comparison(),
                "environment": campaign.preparation().map(|p| &p.environment.facts),
            }));
        } else {
            ui::out(&reports::render_final_report(campaign));
            if campaign.lineage().best().is_some() {
                ui::next_step("\"karve apply --branch NAME\" puts the best kernel on a branch");
            }
        }
        Ok(())
    }
}
