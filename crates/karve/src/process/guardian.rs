//! A process that outlives karve to undo one thing, however karve ends.
//!
//! It waits at the end of a pipe that karve never writes to. When karve closes it, or dies and the
//! kernel closes it, the guardian runs its line. It is in a session of its own, in no control group
//! of a command, and carries no mark, so nothing that ends commands ends it.

use std::fs::File;
use std::io::{self, PipeWriter};
use std::os::fd::AsFd;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use super::Command;
use super::launch::{self, Launch};
use super::sys::{self, Child, Death, Start, Wait};
use super::watch::TICK;
use crate::error::{Context, Result};

/// How often its end is looked for where the kernel does not tell.
const LOOK_PAUSE: Duration = Duration::from_millis(1);

/// Waits for the pipe to close, runs the line, and removes the note if that worked. Its own output
/// stays open until the end: it is the file that it holds.
const SCRIPT: &str =
    "read -r never; sh -c \"$1\" </dev/null >/dev/null 2>&1 && exec rm -f -- \"$2\"";

/// A process that waits for karve to let go, or to die.
#[derive(Debug)]
pub struct Guardian {
    pipe: PipeWriter,
    child: Child,
}

impl Guardian {
    /// Starts a guardian that will run a line in a directory and then remove the note, if the line
    /// succeeds. Until it has ended it holds the file open, and with it a lock on the file.
    pub fn start(line: &str, dir: &Path, note: &Path, held: &File) -> Result<Self> {
        let args = [
            "sh".as_ref(),
            "-c".as_ref(),
            SCRIPT.as_ref(),
            "karve-guardian".as_ref(),
            line.as_ref(),
            note.as_os_str(),
        ];
        let command = Command::argv(args, dir);
        let cannot_prepare = || "cannot prepare a guardian".to_owned();
        let launch = Launch::new(&command, "")?;
        let (stdin, pipe) = io::pipe().context(cannot_prepare)?;
        let null = File::options()
            .write(true)
            .open("/dev/null")
            .context(cannot_prepare)?;
        let child = sys::spawn(&Start {
            program: &launch.program,
            argv: &launch.argv,
            env: &launch.env,
            dir: &launch.dir,
            streams: [stdin.as_fd(), held.as_fd(), null.as_fd()],
            cgroup: None,
            cpus: None,
            death: Death::OnItsOwn,
        })
        .map_err(|error| launch::spawn_error(&command, &error))?;
        Ok(Self { pipe, child })
    }

    /// Lets it run its line now, and waits for its end; gives whether it came in time.
    pub fn finish(self, limit: Duration) -> bool {
        let Self { pipe, child } = self;
        drop(pipe);
        let start = Instant::now();
        loop {
            if !matches!(sys::wait(child.pid, Wait::Look), Ok(None)) {
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
}
