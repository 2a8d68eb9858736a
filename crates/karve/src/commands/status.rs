//! `karve status` and `karve best`.

use crate::project::ProjectArgs;
use crate::reports::price_of;
use crate::ui::{self, template};
use karve_core::campaign::Campaign;
use karve_core::view::CampaignView;
use karve_os::error::{CommandError, ErrorKind, Result};
use karve_os::text;
use minijinja::context;
use minijinja::value::Serde;

/// Show the progress of a campaign
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  karve status
  karve status --json | jq .cumulative_ratio")]
pub struct StatusArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl StatusArgs {
    /// Runs the command.
    pub fn run(&self, place: &ProjectArgs) -> Result<()> {
        let campaign = place.open()?.campaign;
        let view = campaign.view();
        if self.json {
            ui::out_json(&view);
        } else {
            ui::out(&render_status(&view, campaign.host().waited_ms));
            ui::next_step(match campaign.is_finished() {
                true => "\"karve report\", \"karve log\"",
                false => "\"karve run\" resumes it",
            });
        }
        refuse_changed(&campaign)
    }
}

/// A log whose readings do not show what it states was changed: no figure of it counts.
pub(super) fn refuse_changed(campaign: &Campaign) -> Result<()> {
    match campaign.misstatements() {
        [] => Ok(()),
        [first, ..] => {
            let message = format!("the log was changed: {}", first.describe());
            Err(CommandError::new(ErrorKind::Negative, message)
                .hint("do not trust its figures; \"karve verify\" lists all differences"))
        }
    }
}

fn render_status(view: &CampaignView, waited_ms: u64) -> String {
    let values = context! {
        view => Serde(view),
        state => view.stopped.clone().unwrap_or_else(|| format!("next: {}", view.step)),
        waited_s => waited_ms as f64 / 1_000.0,
        price => view.cost.per_percent.as_ref().map(price_of),
    };
    template::render(include_str!("status.txt.j2"), values)
}

/// Show the best kernel so far
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  karve best
  git diff \"$(karve best --json | jq -r .base)\" \"$(karve best --json | jq -r .commit)\"")]
pub struct BestArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl BestArgs {
    /// Runs the command.
    pub fn run(&self, place: &ProjectArgs) -> Result<()> {
        let opened = place.open()?;
        let view = opened.campaign.view();
        let title = opened
            .campaign
            .rounds()
            .iter()
            .find(|round| round.number == view.best_round)
            .map_or("the baseline", |round| round.title());
        if self.json {
            ui::out_json(&serde_json::json!({
                "campaign": view.campaign,
                "round": view.best_round,
                "commit": view.best_commit,
                "base": opened.campaign.base_commit(),
                "title": title,
                "cumulative_ratio": view.cumulative_ratio,
                "unchecked_keeps": view.unchecked_keeps,
                "speedup_note": view.speedup_note,
                "headline": view.headline,
                "headline_over": view.headline_over,
                "self_reported": view.self_reported,
            }));
            return Ok(());
        }
        ui::outln(&format!("commit    {}", view.best_commit));
        ui::outln(&format!("round     {} ({})", view.best_round, text::safe(title, 100)));
        let note = view.gain_note();
        let over = if view.headline_over.is_none() { " over the baseline" } else { "" };
        ui::outln(&format!("gain      {:.3}x{over}{note}", view.gain()));
        if let Some(trust) = view.self_reported {
            ui::outln(&format!("trust     {trust}"));
        }
        Ok(())
    }
}
