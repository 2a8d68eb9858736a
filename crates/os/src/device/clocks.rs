//! Locks the clocks of the device while a campaign measures, and unlocks them whatever happens.
//!
//! ```text
//! note written ─▶ cleanup started ─▶ lock ─▶ blocks … ─▶ pipe closed ─▶ unlock ─▶ note removed
//!                      └── karve dies at any point from here on ──▶ ┘
//! ```
//!
//! Only the cleanup process unlocks, so it happens once. If it is killed too, the note remains,
//! and the next `karve run` or `karve doctor` unlocks.

use super::lease::{Lease, LeaseHolder, LeaseRequest};
use super::{NoticeSink, lease};
use crate::error::{CommandError, ErrorKind, Result};
use crate::process::{CleanupProcess, Command, StopFlag};
use crate::{files, process};
use karve_core::charter::{Charter, ClockLock};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The note in a campaign's directory that records that the clocks are locked.
pub const NOTE: &str = "undo";

/// Time limit of a lock or unlock command, in seconds.
const LIMIT: Duration = Duration::from_secs(60);

/// How long a campaign waits for the cleanup process of an earlier karve.
pub const LEFTOVER_LIMIT: Duration = Duration::from_secs(10);

/// The clocks of a device.
#[derive(Debug)]
pub struct DeviceClocks {
    commands: ClockLock,
    /// Where the commands run.
    dir: PathBuf,
    note: PathBuf,
    /// The name of the clocks' lease.
    device: String,
    holder: String,
    state: ClockState,
}

#[derive(Debug)]
enum ClockState {
    Free,
    /// Another karve process holds the clocks; they are used as they are.
    HeldByOther,
    Locked {
        cleanup: CleanupProcess,
        lease: Lease,
    },
}

/// What became of clocks that an earlier process locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeftoverLock {
    /// They are not locked.
    Nothing,
    /// They were, and have been unlocked.
    Undone,
    /// They cannot be unlocked.
    Locked,
    /// Another karve process uses them.
    InUse,
}

impl DeviceClocks {
    /// The clocks of a charter, if it locks them. Commands run in `dir`; the note is written to
    /// the campaign's directory.
    pub fn new(charter: &Charter, campaign: &Path, dir: &Path) -> Option<Self> {
        let commands = charter.device.clocks.clone()?;
        Some(Self {
            commands,
            dir: dir.to_owned(),
            note: campaign.join(NOTE),
            device: format!("{} clocks", charter.leased()),
            holder: charter.name.clone(),
            state: ClockState::Free,
        })
    }

    /// Whether an earlier process died and left the clocks locked, or is still running.
    pub fn has_leftover(&self) -> bool {
        self.note.exists()
    }

    /// Locks, unless this or another karve process has already done so.
    pub fn lock(&mut self, stop: &StopFlag, notices: &NoticeSink) -> Result<()> {
        if matches!(self.state, ClockState::Locked { .. }) {
            return Ok(());
        }
        let Some(lease) = lease::try_take(&self.device, &self.holder)? else {
            if matches!(self.state, ClockState::Free) {
                notices.notify("another karve process holds the clocks; using them as they are");
            }
            self.state = ClockState::HeldByOther;
            return Ok(());
        };
        let text = serde_json::to_vec(&LeaseHolder::me(&self.holder)).unwrap_or_default();
        files::write_atomic(&self.note, &text)?;
        let started =
            CleanupProcess::start(&self.commands.unlock, &self.dir, &self.note, lease.file());
        let cleanup_process = started.inspect_err(|_| {
            let _ = fs::remove_file(&self.note);
        })?;
        self.state = ClockState::Locked { cleanup: cleanup_process, lease };
        let run = self.run(&self.commands.lock, stop);
        let failed = match run {
            Ok(run) if run.exit.success() => return Ok(()),
            Ok(run) => cannot("lock").cause(crate::process::excerpt(&run)),
            Err(error) => error,
        };
        self.unlock(notices);
        Err(failed.hint("run device.lock of karve.toml by hand, or remove it from karve.toml"))
    }

    /// Unlocks the clocks if this process locked them.
    pub fn unlock(&mut self, notices: &NoticeSink) {
        let ClockState::Locked { cleanup: cleanup_process, lease } =
            std::mem::replace(&mut self.state, ClockState::Free)
        else {
            return;
        };
        if !cleanup_process.finish(LIMIT) {
            let line = &self.commands.unlock;
            notices.notify(&format!("the clocks are not unlocked yet: {line} is still running"));
        } else if self.has_leftover() {
            self.unlock_here(notices);
        }
        drop(lease);
    }

    /// Unlocks clocks that an earlier process left locked; waits up to `limit` for a cleanup
    /// process that may still be running.
    pub fn undo_leftover(&self, limit: Duration, notices: &NoticeSink) -> Result<LeftoverLock> {
        if !self.has_leftover() {
            return Ok(LeftoverLock::Nothing);
        }
        let wish = LeaseRequest { device: &self.device, holder: &self.holder, limit };
        match lease::take(&wish, &StopFlag::new(), notices) {
            // The cleanup process may have been running until now.
            Ok(_) if !self.has_leftover() => Ok(LeftoverLock::Undone),
            Ok(_lease) if self.unlock_here(notices) => Ok(LeftoverLock::Undone),
            Ok(_) => Ok(LeftoverLock::Locked),
            // Another karve process holds the clocks now, and will unlock them.
            Err(error) if error.kind == ErrorKind::Busy => Ok(LeftoverLock::InUse),
            Err(error) => Err(error),
        }
    }

    /// Unlocks in this process; returns whether it worked.
    fn unlock_here(&self, notices: &NoticeSink) -> bool {
        // Not the user's stop flag: an impatient Ctrl-C must not leave the clocks locked.
        let run = self.run(&self.commands.unlock, &StopFlag::new());
        let unlocked = run.is_ok_and(|run| run.exit.success());
        if unlocked {
            let _ = fs::remove_file(&self.note);
        } else {
            let line = &self.commands.unlock;
            notices.notify(&format!("the clocks stay locked: \"{line}\" failed; run it by hand"));
        }
        unlocked
    }

    fn run(&self, line: &str, stop: &StopFlag) -> Result<process::CommandOutcome> {
        process::run(&Command::shell(line, &self.dir).limit(LIMIT), stop)
    }
}

impl Drop for DeviceClocks {
    fn drop(&mut self) {
        self.unlock(&NoticeSink::default());
    }
}

fn cannot(what: &str) -> CommandError {
    CommandError::environment(format!("cannot {what} the clocks of the device"))
}
