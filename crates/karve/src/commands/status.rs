//! `karve status` and `karve best`.

use crate::project::ProjectArgs;
use crate::reports::price_of;
use crate::ui::{self};
use karve_core::view::{CampaignView, ItemView};
use karve_os::error::Result;
use karve_os::text;
use std::fmt::Write;

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
            ui::out(&render_status(&view, campaign.waited_ms()));
        }
        Ok(())
    }
}

fn render_status(view: &CampaignView, waited_ms: u64) -> String {
    let mut text = format!("campaign  {}\n", view.campaign);
    let state = view.stopped.clone().unwrap_or_else(|| format!("next: {}", view.step));
    let _ = writeln!(text, "state     {}", text::safe(&state, 200));
    let _ = writeln!(
        text,
        "rounds    {} of {}, {} kept, {} in a row without a gain",
        view.rounds_done, view.rounds_max, view.kept, view.streak
    );
    if let Some(current) = &view.current {
        let title = current.title.as_deref().unwrap_or("no hypothesis yet");
        let blocks = current.blocks.map_or_else(String::new, |n| format!(", {n} blocks"));
        let title = text::safe(title, 80);
        let _ = writeln!(
            text,
            "now       round {} ({}{blocks}): {title}",
            current.round, current.phase
        );
    }
    if let (Some(baseline), Some(incumbent)) = (view.baseline, view.incumbent) {
        let (name, unit) = &view.metric;
        let _ = writeln!(text, "metric    {name}: {baseline:.4} {unit} to {incumbent:.4} {unit}");
    }
    match view.headline {
        Some(headline) => {
            let _ = writeln!(text, "gain      {:.3}x, original against final", headline.ratio);
        }
        None => {
            let ratio = view.cumulative_ratio;
            let _ = writeln!(text, "gain      {ratio:.3}x, product of the kept rounds");
        }
    }
    if let (Some(before), Some(now)) = (view.peak_share_baseline, view.peak_share) {
        let (before, now) = (before * 100.0, now * 100.0);
        let _ = writeln!(text, "peak      {before:.1}% to {now:.1}% of the measured peak");
    }
    let waited = match waited_ms {
        0 => String::new(),
        ms => format!(", {:.1} s waiting for the device", ms as f64 / 1_000.0),
    };
    let _ = writeln!(text, "time      {:.1} s of work{waited}", view.spent_s);
    if view.usage.usd > 0.0 || view.usage.tokens > 0 {
        let _ = writeln!(text, "agent     {}", used(view));
    }
    push_agenda(&mut text, &view.agenda);
    for item in &view.queue {
        let question = text::safe(&item.question, 160);
        let _ = writeln!(text, "question  round {}: {question}", item.round);
    }
    text
}

/// What the agent used, and its cost per percent of gain.
fn used(view: &CampaignView) -> String {
    let price = view.cost.per_percent.as_ref();
    let price = price.map(|price| format!("; {} per percent of gain", price_of(price)));
    format!("{} tokens, ${:.2}{}", view.usage.tokens, view.usage.usd, price.unwrap_or_default())
}

/// The result of each agenda item.
fn push_agenda(text: &mut String, items: &[ItemView]) {
    for item in items {
        let ratio = item.ratio.map_or_else(String::new, |ratio| format!(" {ratio:.3}x"));
        let why = if item.why.is_empty() {
            String::new()
        } else {
            format!(" ({})", text::safe(&item.why, 120))
        };
        let title = text::safe(&item.title, 60);
        let _ = writeln!(text, "item      {} {}{ratio}: {title}{why}", item.id, item.state);
    }
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
                "headline": view.headline,
            }));
            return Ok(());
        }
        ui::outln(&format!("commit    {}", view.best_commit));
        ui::outln(&format!("round     {} ({})", view.best_round, text::safe(title, 100)));
        ui::outln(&format!("gain      {:.3}x over the baseline", view.gain()));
        Ok(())
    }
}
