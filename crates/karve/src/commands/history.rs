//! `karve log`, `karve show` and `karve diff`.

use crate::project::{LoadedCampaign, ProjectArgs};
use crate::ui::style;
use crate::{reports, transcript, ui};
use karve_core::campaign::RoundSummary;
use karve_core::charter::WorkMode;
use karve_core::view::RoundView;
use karve_harness::git::{Oid, Repo};
use karve_os::error::{CommandError, Result};
use karve_os::text;

/// List the rounds of a campaign
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  karve log
  karve log --json | jq '.[] | select(.verdict == \"keep\")'")]
pub struct LogArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl LogArgs {
    /// Runs the command.
    pub fn run(&self, place: &ProjectArgs) -> Result<()> {
        let campaign = place.open()?.campaign;
        let views: Vec<RoundView> =
            campaign.rounds().iter().map(|round| campaign.round_view(round)).collect();
        if self.json {
            ui::out_json(&views);
            return Ok(());
        }
        if views.is_empty() {
            ui::outln("no round is finished yet");
        }
        for (view, round) in views.iter().zip(campaign.rounds()) {
            let ratio = view.ratio.map_or_else(|| "      -".to_owned(), |r| format!("{r:>6.3}x"));
            ui::outln(&format!(
                "{:>4}  {:<9} {ratio}  {}  ({})",
                view.round,
                view.verdict,
                text::safe(&view.title, 60),
                text::safe(&view.why, 80),
            ));
            if let Some(values) = round.tuned.as_ref().and_then(|tuned| tuned.values()) {
                ui::outln(&format!("      set {}", text::safe(&values, 500)));
            }
            if let Some(route) = &round.route {
                ui::outln(&format!("      role {}", text::safe(&route.describe(), 200)));
            }
            for review in &round.reviews {
                ui::outln(&format!("      review {}", text::safe(&review.describe(), 200)));
            }
        }
        ui::next_step("\"karve why N\" explains a verdict, \"karve diff N\" shows its change");
        Ok(())
    }
}

/// Show one round: hypothesis, readings and decision, or its session log
///
/// With --transcript: what karve asked, the agent's replies, the tools it used, how each turn
/// ended, and what it cost. Long turns are shortened to their beginning and end; the full session
/// log is the artifact that --json names.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  karve show 3
  karve show 3 --transcript
  karve show 3 --transcript --json | jq '.turns[].outcome'")]
pub struct ShowArgs {
    /// The round
    round: u32,
    /// Show the session log between karve and the agent
    #[arg(long)]
    transcript: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl ShowArgs {
    /// Runs the command.
    pub fn run(&self, place: &ProjectArgs) -> Result<()> {
        let opened = place.open()?;
        if self.transcript {
            let transcript = transcript::read(&opened.dir, &opened.records, self.round)?;
            if self.json {
                ui::out_json(&transcript)
            } else {
                ui::out_toned(&transcript::render_transcript(&transcript, style::color()))
            }
            return Ok(());
        }
        let round = find(&opened, self.round)?;
        let logs = transcript::session_logs(&opened.records, self.round);
        if self.json {
            let mut view = serde_json::json!(opened.campaign.round_view(round));
            view["session_logs"] = logs.into();
            ui::out_json(&view);
            return Ok(());
        }
        let path = format!("rounds/round-{}/summary.md", self.round);
        let files = reports::round_files(&opened.campaign, self.round);
        match files.iter().find(|file| file.path == path) {
            Some(file) => ui::out(&file.text),
            None => ui::outln("the round has no summary"),
        }
        if !logs.is_empty() {
            let turns = text::counted(logs.len(), "turn");
            let number = self.round;
            ui::outln(&format!(
                "\nThe agent had {turns}: \"karve show {number} --transcript\" shows the log."
            ));
        }
        ui::next_step(&format!("\"karve why {0}\", \"karve diff {0}\"", self.round));
        Ok(())
    }
}

/// Show what a round changed, or what the campaign has changed so far
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  karve diff          from the baseline to the best kernel
  karve diff 3        what round 3 changed, kept or not")]
pub struct DiffArgs {
    /// The round [default: all kept rounds together]
    round: Option<u32>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl DiffArgs {
    /// Runs the command.
    pub fn run(&self, place: &ProjectArgs) -> Result<()> {
        let opened = place.open()?;
        let (from, to) = match self.round {
            None => (opened.campaign.base_commit(), opened.campaign.incumbent()),
            Some(number) => {
                let round = find(&opened, number)?;
                let candidate = round.candidate.as_ref().ok_or_else(|| {
                    CommandError::usage(format!("round {number} has no candidate"))
                        .hint(format!("see why with \"karve show {number}\""))
                })?;
                (round.parent.as_str(), candidate.commit.as_str())
            }
        };
        if from.is_empty() {
            return Err(CommandError::usage("the campaign has no baseline yet")
                .hint("resume with \"karve run\""));
        }
        let patch = repo_of(place, &opened)?.diff(&Oid::named(from)?, &Oid::named(to)?)?;
        if self.json {
            ui::out_json(&serde_json::json!({"from": from, "to": to, "patch": patch}));
        } else {
            ui::out(&patch);
        }
        Ok(())
    }
}

/// The repository in which a campaign's commits are.
pub(super) fn repo_of(place: &ProjectArgs, opened: &LoadedCampaign) -> Result<Repo> {
    match opened.campaign.charter().map(|charter| &charter.mode) {
        Some(WorkMode::Workspace { .. }) => Repo::discover(&opened.dir.join("workspace")),
        Some(WorkMode::Repo) | None => {
            let config = place.config()?;
            Repo::discover(config.parent().unwrap_or(&config))
        }
    }
}

/// A settled round.
pub(super) fn find(opened: &LoadedCampaign, number: u32) -> Result<&RoundSummary> {
    opened.campaign.rounds().iter().find(|round| round.number == number).ok_or_else(|| {
        let at_work = opened.campaign.current_round();
        let message = if at_work.is_some_and(|round| round.number == number) {
            format!("round {number} is not finished yet")
        } else {
            format!("there is no round {number}")
        };
        CommandError::usage(message).hint("\"karve log\" lists the rounds")
    })
}
