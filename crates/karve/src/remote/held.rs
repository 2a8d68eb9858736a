//! A device while it is held: it is given back whatever happens to karve.

use super::engine::{Allocation, Engine};
use super::far_state::FarState;
use super::line::Line;
use karve_os::device::NoticeSink;
use karve_os::error::{CommandError, Result, WithContext as _};
use karve_os::process::{CleanupProcess, StopFlag};
use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long giving a device back may take.
const RELEASE_LIMIT: Duration = Duration::from_secs(60);

/// Who works with a host.
#[derive(Clone, Debug)]
pub struct HostUser {
    /// A digest of where the project is.
    pub project: String,
    /// The campaign, if there is one.
    pub campaign: Option<String>,
    /// Seconds of a pause, in place of the charter's.
    pub patience_s: Option<u64>,
    /// Where notices go.
    pub notices: NoticeSink,
    /// What the user asked for with Ctrl-C.
    pub stop: StopFlag,
}

/// A device that is held, and the worker on it.
#[derive(Debug)]
pub(super) struct HeldDevice {
    pub(super) allocation: Allocation,
    pub(super) since: Instant,
    pub(super) busy: Duration,
    /// When the time that is left was last asked for.
    pub(super) asked_left: Instant,
    pub(super) line: Option<Line>,
    pub(super) far: FarState,
    /// Gives the device back, also if karve is killed.
    releaser: Option<CleanupProcess>,
}

/// Why a task has no end yet.
pub(super) enum TaskFailure {
    /// The line or the worker was lost.
    Lost(String),
    /// The line is good, and the worker does not know the task.
    Again(String),
    /// Something else.
    Error(CommandError),
}

impl From<CommandError> for TaskFailure {
    fn from(error: CommandError) -> Self {
        Self::Error(error)
    }
}

impl HeldDevice {
    /// A device that was acquired just now.
    pub(super) fn new(allocation: Allocation, engine: &dyn Engine) -> Result<Self> {
        let releaser = engine.release(&allocation).map(|line| {
            let null = File::open("/dev/null").context(|| "cannot open /dev/null".into())?;
            CleanupProcess::start(&line, Path::new("/"), Path::new("/dev/null/none"), &null)
        });
        Ok(Self {
            releaser: releaser.transpose()?,
            allocation,
            since: Instant::now(),
            busy: Duration::ZERO,
            asked_left: Instant::now(),
            line: None,
            far: FarState::default(),
        })
    }

    /// Gives it back.
    pub(super) fn give_back(&mut self) {
        if let Some(releaser) = self.releaser.take() {
            releaser.finish(RELEASE_LIMIT);
        }
    }
}
