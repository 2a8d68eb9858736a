//! A child process whose input and output are pipes, such as the line to another machine.

use std::fs::File;
use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::AsFd;
use std::time::Duration;

use super::cgroup::CommandCgroup;
use super::launch::ExecCommand;
use super::sys::{ParentDeathAction, SpawnSpec};
use super::tree::ProcessTree;
use super::{Command, Exit, launch, sys};
use crate::error::{Result, WithContext};

/// How many bytes of its stderr are kept; writing more fails.
const DIAGNOSTICS_BYTES: u64 = 64 << 10;

/// A child process that is read from and written to while it runs. It dies with karve.
#[derive(Debug)]
pub struct PipedProcess {
    tree: Option<ProcessTree>,
    diagnostics: File,
}

/// The two ends of its pipes that karve holds.
#[derive(Debug)]
pub struct ProcessPipes {
    /// What it reads.
    pub input: PipeWriter,
    /// What it writes.
    pub output: PipeReader,
}

impl PipedProcess {
    /// Starts a command.
    pub fn start(command: &Command) -> Result<(Self, ProcessPipes)> {
        let cannot_prepare = || "cannot prepare a process".to_owned();
        sys::become_subreaper();
        let mark = launch::fresh_mark();
        let launch = ExecCommand::new(command, &mark)?;
        let (stdin, input) = io::pipe().context(cannot_prepare)?;
        let (output, stdout) = io::pipe().context(cannot_prepare)?;
        let diagnostics = sys::bounded_file(DIAGNOSTICS_BYTES).context(cannot_prepare)?;
        let leaf = CommandCgroup::for_tag(&command.tag);
        let child = sys::spawn(&SpawnSpec {
            program: &launch.program,
            argv: &launch.argv,
            env: &launch.env,
            dir: &launch.dir,
            streams: [stdin.as_fd(), stdout.as_fd(), diagnostics.as_fd()],
            cgroup: leaf.as_ref().map(CommandCgroup::fd),
            cpus: None,
            profile: None,
            namespace: None,
            death: ParentDeathAction::WithKarve,
        })
        .map_err(|error| launch::spawn_error(command, &error))?;
        let tree = Some(ProcessTree::new(child, mark, leaf));
        Ok((Self { tree, diagnostics }, ProcessPipes { input, output }))
    }

    /// What it wrote to its stderr so far.
    pub fn said(&self) -> String {
        sys::written_text(&self.diagnostics, DIAGNOSTICS_BYTES)
    }

    /// Whether it runs no more.
    pub fn has_ended(&self) -> bool {
        self.tree.as_ref().is_none_or(|tree| sys::has_ended(Some(tree.child().pid)))
    }

    /// Waits for it to end by itself, but not longer than this, and then kills it with all its
    /// descendants. Returns how it ended.
    pub fn end_within(&mut self, limit: Duration) -> Exit {
        let Some(mut tree) = self.tree.take() else {
            return Exit::Stopped;
        };
        let child = tree.child();
        let pidfd = child.pidfd.as_ref().map(AsFd::as_fd);
        let _ = sys::wait_readable([pidfd], pidfd.map_or(Duration::ZERO, |_| limit));
        let itself = sys::has_ended(Some(child.pid));
        if !itself {
            sys::kill(child.pid);
        }
        tree.end_orphans();
        match tree.finish() {
            Ok((status, _)) if itself => match sys::parse_status(status) {
                Ok(code) => Exit::Code(code),
                Err(signal) => Exit::Signal(signal),
            },
            Ok(_) | Err(_) => Exit::Stopped,
        }
    }
}

impl Drop for PipedProcess {
    fn drop(&mut self) {
        self.end_within(Duration::ZERO);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::path::Path;

    #[test]
    fn it_answers_while_it_runs_and_leaves_nothing_behind() {
        let line = "read -r word; echo odd >&2; echo \"got $word\"; sleep 60 & wait";
        let command = Command::shell(line, Path::new("/"));
        let (mut process, mut pipes) = PipedProcess::start(&command).unwrap();
        pipes.input.write_all(b"this\n").unwrap();
        let mut answer = [0; 9];
        pipes.output.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"got this\n");
        assert!(!process.has_ended());
        assert_eq!(process.end_within(Duration::ZERO), Exit::Stopped);
        assert_eq!(process.said(), "odd\n");
        // Nobody holds the other end any more.
        let mut rest = Vec::new();
        pipes.output.read_to_end(&mut rest).unwrap();
    }
}
