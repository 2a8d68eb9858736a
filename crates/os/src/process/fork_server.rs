//! A process that forks others: an interpreter that has imported its libraries, which takes
//! seconds, and nothing else.
//!
//! ```text
//! request   JSON: mark, arguments, environment, directory, CPUs and karve's process id;
//!           with the descriptors that become standard input, output and error
//! reply     the process id as decimal text, once karve has adopted the process
//! ```
//!
//! A forked process is orphaned at once, so karve, the subreaper, is its parent. It has its own
//! session, mark and control group, as one that karve started itself.

use super::child_process::{ChildProcess, ReceiveResult};
use super::{Command, Exit, StopFlag, sys};
use crate::error::{CommandError, Result, WithContext};
use serde::Serialize;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::os::fd::BorrowedFd;
use std::time::Duration;

/// How long importing may take, and forking.
const START_LIMIT: Duration = Duration::from_secs(120);
const FORK_LIMIT: Duration = Duration::from_secs(20);

/// Bytes of a reply at most.
const REPLY_BYTES: usize = 64;

/// A process that forks others.
#[derive(Debug)]
pub struct ForkServer {
    child: ChildProcess,
    /// Whether it has imported its libraries.
    is_ready: Cell<bool>,
}

#[derive(Serialize)]
struct ForkRequest<'a> {
    mark: &'a str,
    args: Vec<String>,
    env: BTreeMap<String, String>,
    dir: String,
    cpus: &'a [usize],
    parent: u32,
}

impl ForkServer {
    /// Starts it; the first fork waits until it is ready. It ends with the calling thread.
    pub fn start(command: &Command, stop: &StopFlag) -> Result<Self> {
        Ok(Self { child: ChildProcess::start(command, stop)?, is_ready: Cell::new(false) })
    }

    /// Forks a process that gets the arguments, environment, directory and CPUs of a command. What
    /// it executes is up to the server.
    pub fn forked(&self, command: &Command, stop: &StopFlag) -> Result<ChildProcess> {
        if !self.is_ready.get() {
            self.reply(START_LIMIT)?;
            self.is_ready.set(true);
        }
        ChildProcess::adopt(command, stop, |new| {
            let text = |text: &std::ffi::CString| text.to_string_lossy().into_owned();
            let pair = |text: String| {
                let (name, value) = text.split_once('=')?;
                Some((name.to_owned(), value.to_owned()))
            };
            let request = ForkRequest {
                mark: new.mark,
                args: new.launch.argv.iter().map(text).collect(),
                env: new.launch.env.iter().map(text).filter_map(pair).collect(),
                dir: text(&new.launch.dir),
                cpus: &command.cpus,
                parent: std::process::id(),
            };
            let request =
                serde_json::to_vec(&request).map_err(|error| failed(error.to_string()))?;
            let streams: [BorrowedFd<'_>; 3] = new.streams;
            let sent = self.child.send(&request, &streams);
            sent.context(|| "cannot fork a worker".to_owned())?;
            let pid = self.reply(FORK_LIMIT)?;
            let is_child = |pid: &i32| matches!(sys::wait(*pid, sys::WaitMode::Look), Ok(None));
            pid.filter(is_child).ok_or_else(|| failed("the process was not adopted".to_owned()))
        })
    }

    /// Its process id, while it lives.
    pub fn pid(&self) -> Option<i32> {
        self.child.pid()
    }

    /// The number in a reply.
    fn reply(&self, limit: Duration) -> Result<Option<i32>> {
        let mut buffer = [0; REPLY_BYTES];
        let heard = self.child.receive(&mut buffer, limit);
        match heard.context(|| "cannot fork a worker".to_owned())? {
            ReceiveResult::Message(bytes) => {
                Ok(std::str::from_utf8(&buffer[..bytes]).ok().and_then(|text| text.parse().ok()))
            }
            ReceiveResult::Gone => Err(failed(format!("it ended: {}", self.child.said()))),
            ReceiveResult::TooMuch(limit) => Err(failed(Exit::TooMuch(limit).describe())),
            ReceiveResult::Nothing => Err(failed("it does not answer".to_owned())),
        }
    }
}

fn failed(why: String) -> CommandError {
    CommandError::environment("the process that forks workers failed").cause(why)
}
