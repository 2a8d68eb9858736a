//! `karve queue` and `karve answer`: questions for a person, which never block a campaign.

use crate::project::ProjectArgs;
use crate::{inbox, ui};
use karve_os::error::Result;
use karve_os::text;

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

impl AnswerArgs {
    /// Runs the command.
    pub fn run(&self, place: &ProjectArgs) -> Result<()> {
        let opened = place.open()?;
        inbox::put_answer(&opened.dir, &opened.campaign, &self.text)?;
        ui::outln("the campaign will read it before its next step");
        Ok(())
    }
}
