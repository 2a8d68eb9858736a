//! A child process that runs alongside karve, exchanges messages, and is frozen while idle.
//!
//! Its standard input is one end of a socket with message boundaries. While it is frozen none of
//! its threads runs, so it can neither disturb another process that is timed nor write late into
//! memory that is being checked. karve reads its CPU time itself and does not rely on its report.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use super::cgroup::CommandCgroup;
use super::launch::ExecCommand;
use super::sys::{ParentDeathAction, Pid, SpawnSpec, SpawnedChild};
use super::tree::{BeforeStart, ProcessTree};
use super::{Command, ExceededLimit, Exit, StopFlag, launch, sys, table};
use crate::error::{Result, WithContext};

/// How many bytes of its stderr are kept; writing more fails.
const DIAGNOSTICS_BYTES: u64 = 64 << 10;

/// How long to wait on the socket before checking the process itself.
const TICK: Duration = Duration::from_millis(100);

/// The most threads that it may have: the number of all threads of a host is limited, and at that
/// limit no other program can start one.
const THREADS_MAX: u64 = 4_096;

/// How long its threads may take to stop: milliseconds, but a thread that waits for the disk of a
/// host that does much else needs seconds.
const STOP_LIMIT: Duration = Duration::from_secs(30);

/// How long to wait for its exit before scanning all processes.
const END_LIMIT: Duration = Duration::from_secs(1);

/// A child process that runs alongside karve.
#[derive(Debug)]
pub struct ChildProcess {
    tree: Option<ProcessTree>,
    socket: OwnedFd,
    diagnostics: File,
    stop: StopFlag,
    /// The most private memory that it may have, in bytes.
    memory_max: u64,
}

/// The result of waiting for a message.
#[derive(Debug, PartialEq, Eq)]
pub enum ReceiveResult {
    /// A message of this many bytes.
    Message(usize),
    /// It has ended, or closed its side.
    Gone,
    /// It has more memory or threads than it may.
    TooMuch(ExceededLimit),
    /// The time is up, or the user wants to stop immediately.
    Nothing,
}

/// The result of stopping it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopResult {
    /// None of its threads is running.
    Still,
    /// It has ended.
    Gone,
    /// Some part of it does not stop.
    Restless,
}

/// What a child needs before it exists.
pub(super) struct NewChild<'a> {
    /// Its mark.
    pub(super) mark: &'a str,
    /// Its program, environment and directory.
    pub(super) launch: &'a ExecCommand,
    /// What becomes of descriptors 0, 1 and 2.
    pub(super) streams: [BorrowedFd<'a>; 3],
    leaf: Option<&'a CommandCgroup>,
}

impl ChildProcess {
    /// Starts a command that communicates over its standard input; waits for it end when the user
    /// wants to stop immediately.
    pub fn start(command: &Command, stop: &StopFlag) -> Result<Self> {
        Self::begin(command, stop, |new| {
            sys::spawn(&SpawnSpec {
                program: &new.launch.program,
                argv: &new.launch.argv,
                env: &new.launch.env,
                dir: &new.launch.dir,
                streams: new.streams,
                cgroup: new.leaf.map(CommandCgroup::fd),
                cpus: new.launch.cpus.as_deref(),
                profile: None,
                namespace: None,
                death: ParentDeathAction::WithKarve,
            })
            .map_err(|error| launch::spawn_error(command, &error))
        })
    }

    /// The same for a process that another one forks, and that becomes a child of karve.
    pub(super) fn adopt(
        command: &Command,
        stop: &StopFlag,
        fork: impl FnOnce(&NewChild<'_>) -> Result<Pid>,
    ) -> Result<Self> {
        Self::begin(command, stop, |new| {
            let started = Instant::now();
            // Until it is known, no command takes it for an orphan of its own.
            let _starting = BeforeStart::look();
            sys::count_start();
            let pid = fork(new)?;
            let in_cgroup = new.leaf.is_some_and(|leaf| leaf.adopt(pid));
            Ok(SpawnedChild { started, pid, pidfd: sys::pidfd_open(pid).ok(), in_cgroup })
        })
    }

    fn begin(
        command: &Command,
        stop: &StopFlag,
        start: impl FnOnce(&NewChild<'_>) -> Result<SpawnedChild>,
    ) -> Result<Self> {
        let cannot_prepare = || "cannot prepare a worker".to_owned();
        sys::become_subreaper();
        let mark = launch::fresh_mark();
        let launch = ExecCommand::new(command, &mark)?;
        let (socket, theirs) = sys::socket_pair().context(cannot_prepare)?;
        let diagnostics = sys::bounded_file(DIAGNOSTICS_BYTES).context(cannot_prepare)?;
        let null = File::options().write(true).open("/dev/null");
        let null = null.context(cannot_prepare)?;
        let leaf = CommandCgroup::for_tag(&command.tag);
        let child = start(&NewChild {
            mark: &mark,
            launch: &launch,
            streams: [theirs.as_fd(), null.as_fd(), diagnostics.as_fd()],
            leaf: leaf.as_ref(),
        })?;
        Ok(Self {
            tree: Some(ProcessTree::new(child, mark, leaf)),
            socket,
            diagnostics,
            stop: stop.clone(),
            memory_max: command.memory_bytes.unwrap_or(u64::MAX),
        })
    }

    /// The end of what it wrote to its stderr.
    pub(super) fn said(&self) -> String {
        sys::written_text(&self.diagnostics, DIAGNOSTICS_BYTES)
    }

    /// Sends one message, with descriptors if there are any.
    pub fn send(&self, message: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<()> {
        sys::send_message(self.socket.as_fd(), message, fds)
    }

    /// Waits for one message; what does not fit into the buffer is truncated.
    pub fn receive(&self, buffer: &mut [u8], limit: Duration) -> io::Result<ReceiveResult> {
        let start = Instant::now();
        loop {
            let left = limit.saturating_sub(start.elapsed());
            let pidfd = self.pidfd();
            let [message, ended] =
                sys::wait_readable([Some(self.socket.as_fd()), pidfd], left.min(TICK))?;
            if message {
                return Ok(match sys::receive_message(self.socket.as_fd(), buffer)? {
                    0 => ReceiveResult::Gone,
                    n => ReceiveResult::Message(n),
                });
            }
            if ended || (pidfd.is_none() && self.has_ended()) {
                return Ok(ReceiveResult::Gone);
            }
            if left.is_zero() || self.stop.at_once() {
                return Ok(ReceiveResult::Nothing);
            }
            if let Some(limit) = self.excess() {
                return Ok(ReceiveResult::TooMuch(limit));
            }
        }
    }

    /// Which limit it exceeds.
    fn excess(&self) -> Option<ExceededLimit> {
        if self.memory_bytes() > self.memory_max {
            return Some(ExceededLimit::Memory);
        }
        (table::threads(self.pid()?) > THREADS_MAX).then_some(ExceededLimit::Threads)
    }

    /// Discards unsolicited messages; returns how many.
    pub fn discard_messages(&self) -> io::Result<u32> {
        let mut thrown = 0;
        let mut buffer = [0; 8];
        while thrown < u32::from(u16::MAX) {
            let [message] = sys::wait_readable([Some(self.socket.as_fd())], Duration::ZERO)?;
            if !message || sys::receive_message(self.socket.as_fd(), &mut buffer)? == 0 {
                break;
            }
            thrown += 1;
        }
        Ok(thrown)
    }

    /// Stops all its threads, and returns when they have stopped, or after a timeout: a thread
    /// that waits for a vfork child, for example, stops only when the child ends.
    pub fn freeze(&self) -> StopResult {
        match self.pid().map(|pid| sys::stop_and_wait(pid, STOP_LIMIT)) {
            Some(Some(true)) => StopResult::Still,
            Some(Some(false)) | None => StopResult::Gone,
            Some(None) => StopResult::Restless,
        }
    }

    /// Resumes it.
    pub fn thaw(&self) {
        if let Some(pid) = self.pid() {
            sys::continue_process(pid);
        }
    }

    /// User and system time of all its threads so far.
    pub fn cpu_time(&self) -> io::Result<Duration> {
        match self.pid() {
            Some(pid) => sys::cpu_time_of(pid),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// Bytes of its private memory; 0 if it has ended.
    pub fn memory_bytes(&self) -> u64 {
        self.pid().map_or(0, table::memory_bytes)
    }

    /// Whether it has started processes that still live.
    pub fn has_children(&self) -> bool {
        self.tree.as_ref().is_some_and(|tree| tree.pids().len() > 1)
    }

    /// Its process id, while it lives.
    pub fn pid(&self) -> Option<i32> {
        self.tree.as_ref().map(|tree| tree.child().pid)
    }

    /// Waits until it has ended, but not longer than this: one that uses a device may take a while.
    pub fn wait_for_exit(&self, limit: Duration) {
        if let Some(pidfd) = self.pidfd() {
            let _ = sys::wait_readable([Some(pidfd)], limit);
        }
    }

    /// Kills it with all its descendants; returns how it ended and the tail of its stderr.
    pub fn end(&mut self) -> (Exit, String) {
        let Some(mut tree) = self.tree.take() else {
            return (Exit::Stopped, String::new());
        };
        let child = tree.child();
        let itself = sys::has_ended(Some(child.pid));
        // Usually it has no descendants, which is quickly seen once it has ended.
        sys::kill(child.pid);
        let pidfd = child.pidfd.as_ref().map(AsFd::as_fd);
        let _ = sys::wait_readable([pidfd], pidfd.map_or(Duration::ZERO, |_| END_LIMIT));
        tree.end_orphans();
        let exit = match tree.finish() {
            Ok((status, _)) if itself => match sys::parse_status(status) {
                Ok(code) => Exit::Code(code),
                Err(signal) => Exit::Signal(signal),
            },
            Ok(_) | Err(_) => Exit::Stopped,
        };
        (exit, self.said())
    }

    fn has_ended(&self) -> bool {
        self.pid().is_none_or(|pid| sys::has_ended(Some(pid)))
    }

    fn pidfd(&self) -> Option<BorrowedFd<'_>> {
        let child = self.tree.as_ref()?.child();
        child.pidfd.as_ref().map(AsFd::as_fd)
    }
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn one_that_fills_the_memory_is_noticed_while_karve_waits() {
        let line = "x=$(head -c 100000000 /dev/zero | tr '\\0' a); sleep 60";
        let mut command = Command::shell(line, Path::new("/"));
        command.memory_bytes = Some(50 << 20);
        let child = ChildProcess::start(&command, &StopFlag::new()).unwrap();
        let heard = child.receive(&mut [0; 8], Duration::from_secs(50)).unwrap();
        assert_eq!(heard, ReceiveResult::TooMuch(ExceededLimit::Memory));
    }
}
