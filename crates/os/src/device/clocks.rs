//! Holds the clocks of the device still while a campaign measures, and lets go whatever happens.
//!
//! ```text
//! note written ─▶ guardian started ─▶ lock ─▶ blocks … ─▶ pipe closed ─▶ unlock ─▶ note removed
//!                      └── karve dies at any point from here on ──▶ ┘
//! ```
//!
//! The guardian alone unlocks, so it happens once. If the guardian is killed too, the note is left,
//! and the next `karve run` or `karve doctor` unlocks.

use super::Notices;
use super::lease::{self, Holder, Lease, Wish};
use crate::error::{CommandError, ErrorKind, Result};
use crate::files;
use crate::process::{self, Command, Guardian, StopFlag};
use karve_core::charter::{Charter, ClockLock};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The note in a campaign's directory that says that the clocks are locked.
pub const NOTE: &str = "undo";

/// Seconds that a command may take to lock or unlock.
const LIMIT: Duration = Duration::from_secs(60);

/// How long a campaign waits for the guardian of an earlier process.
pub const LEFT_LIMIT: Duration = Duration::from_secs(10);

/// The clocks of a device.
#[derive(Debug)]
pub struct Clocks {
    commands: ClockLock,
    /// Where the commands run.
    dir: PathBuf,
    note: PathBuf,
    /// What the lease of the clocks is called.
    device: String,
    holder: String,
    state: State,
}

#[derive(Debug)]
enum State {
    Free,
    /// Another karve holds the clocks; they are taken as they are.
    Theirs,
    Locked {
        guardian: Guardian,
        lease: Lease,
    },
}

/// What became of clocks that an earlier process locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// They are not locked.
    Nothing,
    /// They were, and are not any more.
    Undone,
    /// They cannot be unlocked.
    Locked,
    /// Another karve uses them.
    InUse,
}

impl Clocks {
    /// The clocks of a charter, if it locks them. Commands run in `dir`; the note is written to
    /// the campaign's directory.
    pub fn new(charter: &Charter, campaign: &Path, dir: &Path) -> Option<Self> {
        let commands = charter.device.clocks.clone()?;
        Some(Self {
            commands,
            dir: dir.to_owned(),
            note: campaign.join(NOTE),
            device: format!("{} clocks", charter.target.device),
            holder: charter.name.clone(),
            state: State::Free,
        })
    }

    /// Whether an earlier process died and left the clocks locked, or is still at it.
    pub fn are_left(&self) -> bool {
        self.note.exists()
    }

    /// Locks, unless that is done already or another karve has done it.
    pub fn lock(&mut self, stop: &StopFlag, notices: &Notices) -> Result<()> {
        if matches!(self.state, State::Locked { .. }) {
            return Ok(());
        }
        let Some(lease) = lease::try_take(&self.device, &self.holder)? else {
            if matches!(self.state, State::Free) {
                notices.say("another karve holds the clocks; they are taken as they are");
            }
            self.state = State::Theirs;
            return Ok(());
        };
        let text = serde_json::to_vec(&Holder::me(&self.holder)).unwrap_or_default();
        files::write_atomic(&self.note, &text)?;
        let started = Guardian::start(&self.commands.unlock, &self.dir, &self.note, lease.file());
        let guardian = started.inspect_err(|_| {
            let _ = fs::remove_file(&self.note);
        })?;
        self.state = State::Locked { guardian, lease };
        let run = self.run(&self.commands.lock, stop);
        let failed = match run {
            Ok(run) if run.exit.success() => return Ok(()),
            Ok(run) => cannot("lock").cause(crate::process::excerpt(&run)),
            Err(error) => error,
        };
        self.unlock(notices);
        Err(failed.hint("run device.lock of karve.toml by hand, or leave it out there"))
    }

    /// Unlocks what this process locked.
    pub fn unlock(&mut self, notices: &Notices) {
        let State::Locked { guardian, lease } = std::mem::replace(&mut self.state, State::Free)
        else {
            return;
        };
        if !guardian.finish(LIMIT) {
            let line = &self.commands.unlock;
            notices.say(&format!(
                "the clocks are not unlocked yet: {line} takes long"
            ));
        } else if self.are_left() {
            self.unlock_here(notices);
        }
        drop(lease);
    }

    /// Unlocks what an earlier process left locked; a guardian that may still be at it is waited
    /// for as long as `limit`.
    pub fn undo_left(&self, limit: Duration, notices: &Notices) -> Result<Left> {
        if !self.are_left() {
            return Ok(Left::Nothing);
        }
        let wish = Wish {
            device: &self.device,
            holder: &self.holder,
            limit,
        };
        match lease::take(&wish, &StopFlag::new(), notices) {
            // The guardian may have been at it until now.
            Ok(_) if !self.are_left() => Ok(Left::Undone),
            Ok(_lease) if self.unlock_here(notices) => Ok(Left::Undone),
            Ok(_) => Ok(Left::Locked),
            // Another karve holds the clocks now, and will let go of them.
            Err(error) if error.kind == ErrorKind::Busy => Ok(Left::InUse),
            Err(error) => Err(error),
        }
    }

    /// Unlocks in this process; says whether it worked.
    fn unlock_here(&self, notices: &Notices) -> bool {
        // Not the user's stop flag: the clocks must not stay locked because somebody is in a hurry.
        let run = self.run(&self.commands.unlock, &StopFlag::new());
        let unlocked = run.is_ok_and(|run| run.exit.success());
        if unlocked {
            let _ = fs::remove_file(&self.note);
        } else {
            let line = &self.commands.unlock;
            notices.say(&format!(
                "the clocks stay locked: \"{line}\" failed; run it by hand"
            ));
        }
        unlocked
    }

    fn run(&self, line: &str, stop: &StopFlag) -> Result<process::Run> {
        process::run(&Command::shell(line, &self.dir).limit(LIMIT), stop)
    }
}

impl Drop for Clocks {
    fn drop(&mut self) {
        self.unlock(&Notices::default());
    }
}

fn cannot(what: &str) -> CommandError {
    CommandError::environment(format!("cannot {what} the clocks of the device"))
}
