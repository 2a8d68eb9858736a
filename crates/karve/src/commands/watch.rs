//! `karve watch`.

use crate::project::ProjectArgs;
use crate::ui::terminal;
use crate::{tui, ui};
use karve_os::error::Result;

/// The size of a picture where there is no terminal.
const PICTURE: (u16, u16) = (100, 30);

/// Watch a campaign on the whole terminal, running or finished
///
/// Shows the rounds with their verdicts, and of each round what happened, the evidence of its duel
/// against both thresholds, its change, and what the agent said. It only reads the log: start it
/// beside `karve run`, over ssh, or after the end. Press ? for the keys.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  karve watch
  karve watch --once          print one picture, for a terminal that cannot be drawn on")]
pub struct WatchArgs {
    /// Print one picture and end
    #[arg(long)]
    once: bool,
}

impl WatchArgs {
    /// Runs the command.
    pub fn run(&self, place: &ProjectArgs) -> Result<()> {
        let dir = place.pick()?;
        if self.once {
            ui::out(&tui::picture(dir, terminal::size().unwrap_or(PICTURE))?);
            return Ok(());
        }
        tui::watch(dir)
    }
}
