//! Watches a command while it runs: reads its output, and notices its end.

use std::cell::Cell;
use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use super::capture::{CHUNK_BYTES, CapturedStream, OutputTap};
use super::sys::ResourceUsage;
use super::tree::ProcessTree;
use super::{
    Command, CommandOutcome, ExceededLimit, Exit, LAYERS, ResourceLimits, RunError, StopFlag,
    run_once, sys,
};
use crate::error::Result;

/// How often the limit and the stop flag are checked, at least.
pub(super) const TICK: Duration = Duration::from_millis(50);

/// The same if the kernel does not notify us when a child ends, so that we must poll.
const TICK_WITHOUT_PIDFD: Duration = Duration::from_millis(1);

/// How often the resource use of a confined command is checked; too rarely to disturb short ones.
const LOOK: Duration = Duration::from_millis(200);

/// Why watching a command ended.
#[derive(Clone, Copy, Debug)]
pub(super) enum WatchEnd {
    Itself,
    TimedOut,
    Stopped,
    TooMuch(ExceededLimit),
}

/// What is known about a finished command, except for its output.
pub(super) struct FinishedProcess {
    pub(super) exit: Exit,
    pub(super) wall: Duration,
    pub(super) usage: ResourceUsage,
    pub(super) orphans: u32,
}

thread_local! {
    /// The buffer of the last command of this thread: a new one is expensive for a short run.
    static BUFFER: Cell<Option<Vec<u8>>> = const { Cell::new(None) };
}

/// Reads a command's output while it runs.
pub(super) struct OutputWatch<'a> {
    stdout: CapturedStream<'a>,
    stderr: CapturedStream<'a>,
    buffer: Vec<u8>,
}

impl<'a> OutputWatch<'a> {
    /// Watches two streams.
    pub(super) fn new(stdout: CapturedStream<'a>, stderr: CapturedStream<'a>) -> Self {
        Self { stdout, stderr, buffer: BUFFER.take().unwrap_or_else(|| vec![0; CHUNK_BYTES]) }
    }

    /// Watches until the command has ended, or must be killed.
    pub(super) fn until_end(
        &mut self,
        tree: &ProcessTree,
        limit: Duration,
        bounds: ResourceLimits,
        stop: &StopFlag,
    ) -> io::Result<(WatchEnd, Duration)> {
        let started = tree.child().started;
        let pidfd = tree.child().pidfd.as_ref().map(AsFd::as_fd);
        let tick = if pidfd.is_some() { TICK } else { TICK_WITHOUT_PIDFD };
        let mut look = started + LOOK;
        loop {
            let timeout = tick.min(limit.saturating_sub(started.elapsed()));
            let fds = [pidfd, self.stdout.fd(), self.stderr.fd()];
            let [mut ended, out, err] = sys::wait_readable(fds, timeout)?;
            let wall = started.elapsed();
            if pidfd.is_none() {
                ended = sys::has_ended(Some(tree.child().pid));
            }
            if ended {
                return Ok((WatchEnd::Itself, wall));
            }
            if stop.at_once() {
                return Ok((WatchEnd::Stopped, wall));
            }
            if wall >= limit {
                return Ok((WatchEnd::TimedOut, wall));
            }
            if Instant::now() >= look {
                if let Some(what) = excess(tree, bounds) {
                    return Ok((WatchEnd::TooMuch(what), wall));
                }
                look = Instant::now() + LOOK;
            }
            // At most one buffer each, so that the end is noticed at once however much is printed.
            if out {
                self.stdout.read(&mut self.buffer);
                if self.stdout.is_enough() {
                    return Ok((WatchEnd::TooMuch(ExceededLimit::Output), wall));
                }
            }
            if err {
                self.stderr.read(&mut self.buffer);
            }
        }
    }

    /// Reads what is left of the streams.
    pub(super) fn finish(mut self, ended: FinishedProcess) -> CommandOutcome {
        let run = CommandOutcome {
            exit: ended.exit,
            wall: ended.wall,
            cpu: ended.usage.cpu,
            max_rss_bytes: ended.usage.max_rss_bytes,
            stdout: self.stdout.finish(&mut self.buffer),
            stderr: self.stderr.finish(&mut self.buffer),
            orphans: ended.orphans,
        };
        BUFFER.set(Some(self.buffer));
        run
    }
}

/// Like [`super::run`], with a tap on the command's standard output. A line is not retried with a
/// shell if its program cannot be executed.
pub fn run_tapped(
    command: &Command,
    stop: &StopFlag,
    tap: OutputTap<'_>,
) -> Result<CommandOutcome> {
    run_once(command, stop, LAYERS, Some(tap)).map_err(RunError::into_error)
}

/// Which resource limit a command exceeds.
fn excess(tree: &ProcessTree, bounds: ResourceLimits) -> Option<ExceededLimit> {
    if bounds.processes.is_none() && bounds.memory_sum_bytes.is_none() {
        return None;
    }
    let (n_processes, memory_bytes) = tree.in_use();
    let over = |used: u64, most: Option<u64>| most.is_some_and(|most| used > most);
    if over(n_processes, bounds.processes.map(u64::from)) {
        return Some(ExceededLimit::Processes);
    }
    over(memory_bytes, bounds.memory_sum_bytes).then_some(ExceededLimit::Memory)
}
