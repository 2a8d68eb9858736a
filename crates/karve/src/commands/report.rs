//! `karve report`.

use super::history::repo_of;
use crate::project::{LoadedCampaign, ProjectArgs};
use crate::web::CampaignWatch;
use crate::{bundle, publish, reports, ui, web};
use karve_harness::store::{CampaignDir, Store};
use karve_os::error::{Result, WithContext};
use karve_os::text::counted;
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};

/// Print the report of a campaign, finished or not
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  karve report > report.md
  karve report --html report.html     the whole campaign as one page that needs no network
  karve report --svg plots            every plot as a file
  karve report --bundle claim.tar.gz  all that another person needs to check it
  karve report --rebuild              write every derived file again from the log")]
pub struct ReportArgs {
    /// Print JSON; with --html, --svg or --bundle, what was written
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
    /// Write one archive with the log, the artifacts, the patch and how to check them; it names the
    /// hidden cases, and `karve verify FILE` checks it
    #[arg(long, value_name = "FILE", conflicts_with = "rebuild")]
    bundle: Option<PathBuf>,
}

impl ReportArgs {
    /// Runs the command.
    pub fn run(&self, place: &ProjectArgs) -> Result<()> {
        let opened = place.open()?;
        if let Some(file) = &self.bundle {
            return self.write_bundle(place, &opened, &place.here()?.join(file));
        }
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
            ui::out_json(&json!({
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
        let (mut lines, mut written) = (Vec::new(), serde_json::Map::new());
        if let Some(path) = &self.html {
            let page = web::render_file(&watch)?;
            write(path, page.as_bytes(), "--html FILE")?;
            lines.push(format!("{} ({} KiB)", path.display(), page.len().div_ceil(1 << 10)));
            written.insert("html".to_owned(), json!({"file": path, "bytes": page.len()}));
        }
        if let Some(to) = &self.svg {
            let plots = watch.plot_files();
            for (name, svg) in &plots {
                write(&to.join(name), svg.as_bytes(), "--svg DIR")?;
            }
            lines.push(format!("{} in {}", counted(plots.len(), "plot"), to.display()));
            let names: Vec<&String> = plots.iter().map(|(name, _)| name).collect();
            written.insert("svg".to_owned(), json!({"directory": to, "files": names}));
        }
        match self.json {
            true => ui::out_json(&written),
            false => lines.iter().for_each(|line| ui::outln(line)),
        }
        Ok(())
    }

    fn write_bundle(
        &self,
        place: &ProjectArgs,
        opened: &LoadedCampaign,
        target: &Path,
    ) -> Result<()> {
        let written = bundle::pack(&opened.dir, &repo_of(place, opened)?, target)?;
        if self.json {
            ui::out_json(&json!({
                "file": target,
                "files": written.files,
                "bytes": written.bytes,
                "sha256": written.sha256,
                "bundle": written.facts,
            }));
            return Ok(());
        }
        let facts = &written.facts;
        let size = format!("{:.1} KiB", written.bytes as f64 / 1024.0);
        let files = counted(written.files, "file");
        ui::outln(&format!("bundle    {} ({files}, {size})", target.display()));
        ui::outln(&format!("sha256    {}", written.sha256));
        if !facts.finished {
            ui::outln("note      the campaign is not finished: there is no final duel in it");
        }
        if !facts.left_out.is_empty() {
            let n = counted(facts.left_out.len(), "artifact");
            ui::outln(&format!("left out  {n}, too large or gone; README.md in it lists them"));
        }
        if !facts.hidden_cases.is_empty() {
            let n = counted(facts.hidden_cases.len(), "hidden case");
            ui::outln(&format!(
                "reveals   the names of {n}: keep it from agents that work on this"
            ));
        }
        ui::next_step("\"karve verify FILE\" checks it, here or elsewhere");
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
