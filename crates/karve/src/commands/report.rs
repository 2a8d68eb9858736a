//! `karve report`.

use super::history::repo_of;
use crate::project::ProjectArgs;
use crate::web::CampaignWatch;
use crate::{publish, reports, ui, web};
use karve_harness::store::{CampaignDir, Store};
use karve_os::error::{Result, WithContext};
use karve_os::text;
use std::fs;
use std::path::{Path, PathBuf};

/// Print the report of a campaign, finished or not
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  karve report > report.md
  karve report --html report.html     the whole campaign as one page that needs no network
  karve report --svg plots            every plot as a file
  karve report --rebuild              write every derived file again from the log")]
pub struct ReportArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Write the campaign as one HTML file, for a browser or an e-mail
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write every plot as an SVG file into this directory
    #[arg(long, value_name = "DIR")]
    svg: Option<PathBuf>,
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
        if self.html.is_some() || self.svg.is_some() {
            return self.write_pages(opened.dir);
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

    fn write_pages(&self, dir: CampaignDir) -> Result<()> {
        let watch = CampaignWatch::open(dir)?;
        if let Some(path) = &self.html {
            let page = web::render_file(&watch)?;
            write(path, page.as_bytes(), "--html FILE")?;
            ui::outln(&format!("{} ({} KiB)", path.display(), page.len().div_ceil(1 << 10)));
        }
        if let Some(to) = &self.svg {
            let plots = watch.plot_files();
            for (name, svg) in &plots {
                write(&to.join(name), svg.as_bytes(), "--svg DIR")?;
            }
            ui::outln(&format!("{} in {}", text::counted(plots.len(), "plot"), to.display()));
        }
        Ok(())
    }
}

/// Writes a file that the user named, and the directory above it.
fn write(path: &Path, bytes: &[u8], flag: &str) -> Result<()> {
    let above = path.parent().filter(|above| !above.as_os_str().is_empty());
    let made = above.map_or(Ok(()), fs::create_dir_all);
    made.and_then(|()| fs::write(path, bytes))
        .context(|| format!("cannot write {}", path.display()))
        .map_err(|error| error.hint(format!("name another place with {flag}")))
}
