//! Processes that outlive karve: one undoes a single thing, the other cleans up after it.
//!
//! Each waits at the end of a pipe. A [`CleanupProcess`] acts when the pipe closes, because karve
//! closes it or because karve dies and the kernel closes it. A [`Reaper`] acts only if karve dies:
//! a karve that exits normally says so on the pipe. Both have their own sessions, are in no control
//! group of a command, and carry no mark, so nothing that kills commands kills them.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{PipeWriter, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::time::{Duration, Instant};
use std::{io, thread};

use super::launch::ExecCommand;
use super::sys::{ParentDeathAction, SpawnSpec, SpawnedChild, WaitMode};
use super::watch::TICK;
use super::{Command, launch, sys};
use crate::error::{Result, WithContext};

/// How often to poll for its exit if the kernel does not notify us.
const LOOK_PAUSE: Duration = Duration::from_millis(1);

/// How long karve waits for a reaper that it has dismissed.
const LEAVE_LIMIT: Duration = Duration::from_secs(5);

/// Waits for the pipe to close, runs the line, and removes the note if that worked. Its own output
/// stays open until the end: it is the locked file.
const SCRIPT: &str =
    "read -r never; sh -c \"$1\" </dev/null >/dev/null 2>&1 && exec rm -f -- \"$2\"";

/// A process that waits for karve to close the pipe, or to die.
#[derive(Debug)]
pub struct CleanupProcess {
    pipe: PipeWriter,
    child: SpawnedChild,
}

impl CleanupProcess {
    /// Starts a cleanup process that will run a line in a directory and then remove the note, if
    /// the line succeeds. Until it has ended it keeps the file open, and with it the file's lock.
    pub fn start(line: &str, dir: &Path, note: &Path, held: &File) -> Result<Self> {
        let args = [
            "sh".as_ref(),
            "-c".as_ref(),
            SCRIPT.as_ref(),
            "karve-cleanup".as_ref(),
            line.as_ref(),
            note.as_os_str(),
        ];
        let null = nowhere()?;
        let (pipe, child) = outliving(&args, dir, [held.as_fd(), null.as_fd()])?;
        Ok(Self { pipe, child })
    }

    /// Lets it run its line now, and waits for it to end; returns whether it ended in time.
    pub fn finish(self, limit: Duration) -> bool {
        let Self { pipe, child } = self;
        drop(pipe);
        ends_within(&child, limit)
    }
}

/// A process that kills what karve has started and removes what it left, if karve is killed. It
/// is dismissed when this is dropped.
#[derive(Debug)]
pub struct Reaper {
    pipe: PipeWriter,
    child: SpawnedChild,
}

impl Reaper {
    /// Starts this program again with these arguments; it must wait for [`Reaper::is_needed`].
    pub fn start(args: &[&str]) -> Result<Self> {
        let program = OsStr::new("/proc/self/exe");
        let args: Vec<&OsStr> =
            std::iter::once(program).chain(args.iter().map(OsStr::new)).collect();
        let null = nowhere()?;
        let (pipe, child) = outliving(&args, Path::new("/"), [null.as_fd(), null.as_fd()])?;
        Ok(Self { pipe, child })
    }

    /// In the reaper: waits for karve to end, and returns whether it was killed.
    pub fn is_needed(pipe: &mut impl io::Read) -> bool {
        let mut word = [0];
        loop {
            match pipe.read(&mut word) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(0) => return true,
                // An error says nothing about karve, so nothing may be cleaned up.
                Ok(_) | Err(_) => return false,
            }
        }
    }
}

impl Drop for Reaper {
    fn drop(&mut self) {
        let _ = self.pipe.write_all(b"\n");
        ends_within(&self.child, LEAVE_LIMIT);
    }
}

/// Starts this program again, in a session of its own, so that it outlives this process and the
/// line that started it. What it says goes to the file.
pub fn start_detached(args: &[&OsStr], said: &File) -> Result<()> {
    let program = OsStr::new("/proc/self/exe");
    let args: Vec<&OsStr> = std::iter::once(program).chain(args.iter().copied()).collect();
    outliving(&args, Path::new("/"), [said.as_fd(), said.as_fd()]).map(drop)
}

/// Starts a process that does not die with karve. It reads from the pipe and writes to `outputs`.
fn outliving(
    args: &[&OsStr],
    dir: &Path,
    outputs: [BorrowedFd<'_>; 2],
) -> Result<(PipeWriter, SpawnedChild)> {
    let command = Command::argv(args, dir);
    let launch = ExecCommand::new(&command, "")?;
    let (stdin, pipe) = io::pipe().context(cannot_prepare)?;
    let child = sys::spawn(&SpawnSpec {
        program: &launch.program,
        argv: &launch.argv,
        env: &launch.env,
        dir: &launch.dir,
        streams: [stdin.as_fd(), outputs[0], outputs[1]],
        cgroup: None,
        cpus: None,
        death: ParentDeathAction::OnItsOwn,
        namespace: None,
        profile: None,
    })
    .map_err(|error| launch::spawn_error(&command, &error))?;
    Ok((pipe, child))
}

fn nowhere() -> Result<File> {
    let null = File::options().write(true).open("/dev/null");
    null.context(cannot_prepare)
}

fn cannot_prepare() -> String {
    "cannot prepare a cleanup process".to_owned()
}

/// Waits for a child to end; returns whether it ended in time.
fn ends_within(child: &SpawnedChild, limit: Duration) -> bool {
    let start = Instant::now();
    loop {
        if !matches!(sys::wait(child.pid, WaitMode::Look), Ok(None)) {
            return true;
        }
        if start.elapsed() >= limit {
            return false;
        }
        match &child.pidfd {
            Some(pidfd) => {
                let _ = sys::wait_readable([Some(pidfd.as_fd())], TICK);
            }
            None => thread::sleep(LOOK_PAUSE),
        }
    }
}
