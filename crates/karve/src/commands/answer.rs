//! `karve queue` and `karve answer`: questions for a person, which never block a campaign.

use crate::project::ProjectArgs;
use crate::ui::{self};
use karve_os::error::{CommandError, Result, WithContext};
use karve_os::{clock, files, text};
use std::fs;

/// List the questions that a campaign has for you
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  karve queue
  karve answer \"try the layout of the reference implementation\"")]
pub struct QueueArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl QueueArgs {
    /// Runs the command.
    pub fn run(&self, place: &ProjectArgs) -> Result<()> {
        let items = place.open()?.campaign.view().queue;
        if self.json {
            ui::out_json(&items);
            return Ok(());
        }
        if items.is_empty() {
            ui::outln("no questions");
        }
        for item in items {
            ui::outln(&format!("round {:<4} {}", item.round, text::safe(&item.question, 300)));
        }
        Ok(())
    }
}

/// Tell the campaign something; the next brief includes it
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  karve answer \"tiles above 128 never fit this cache\"")]
pub struct AnswerArgs {
    /// The answer or advice
    text: String,
}

/// Most characters of an answer.
const TEXT_CHARS_MAX: usize = 4_000;

impl AnswerArgs {
    /// Runs the command.
    pub fn run(&self, place: &ProjectArgs) -> Result<()> {
        let text = self.text.trim();
        if text.is_empty() || text.chars().count() > TEXT_CHARS_MAX {
            return Err(CommandError::usage(format!(
                "an answer must have 1 to {TEXT_CHARS_MAX} characters"
            ))
            .hint("shorten it: karve answer \"…\""));
        }
        let opened = place.open()?;
        if opened.campaign.is_finished() {
            return Err(CommandError::usage(
                "the campaign is finished and does not accept answers",
            )
            .hint("resume it first: \"karve run --campaign NAME --rounds N\""));
        }
        let inbox = opened.dir.join("inbox");
        fs::create_dir_all(&inbox).context(|| format!("cannot create {}", inbox.display()))?;
        let name = format!("{:020}-{}.txt", clock::now_ms(), std::process::id());
        files::write_atomic(&inbox.join(name), text.as_bytes())?;
        ui::outln("the campaign will read it before its next step");
        Ok(())
    }
}
