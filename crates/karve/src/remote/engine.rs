//! How a device on another machine is had: acquire it, run there, give it back.

use karve_os::device::NoticeSink;
use karve_os::error::Result;
use karve_os::process::{Command, Program, StopFlag};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Debug;
use std::time::Duration;

/// A device that is held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allocation {
    /// As its engine names it; empty if nothing had to be acquired.
    pub id: String,
    /// Whether karve gives it back.
    pub own: bool,
}

/// Who waits for a device.
#[derive(Debug)]
pub struct DeviceWait<'a> {
    /// Named in the queue.
    pub name: &'a str,
    /// Where the state of the queue is shown.
    pub notices: &'a NoticeSink,
    /// What the user asked for with Ctrl-C.
    pub stop: &'a StopFlag,
}

/// One way to get to a device.
pub trait Engine: Debug + Send {
    /// Waits for a device.
    fn acquire(&mut self, wait: &DeviceWait<'_>) -> Result<Allocation>;
    /// A local command that runs a shell script at the gate: the host that starts the worker.
    fn gate(&self, held: &Allocation, script: &str) -> Command;
    /// Words before the command of a worker, at the gate, that bring it to the device.
    fn bring(&self, _held: &Allocation) -> Vec<String> {
        Vec::new()
    }
    /// A line for a shell here that takes the same way and does nothing, to try by hand.
    fn by_hand(&self, held: &Allocation) -> String {
        let mut words = self.bring(held);
        words.push("true".to_owned());
        match self.gate(held, &quoted_line(&words)).program {
            Program::Argv(words) => {
                let word = |word: &OsString| quoted(&word.to_string_lossy());
                words.iter().map(word).collect::<Vec<_>>().join(" ")
            }
            Program::Shell(line) | Program::Line(line) => line,
        }
    }
    /// Whether the line to the gate may drop while the gate goes on.
    fn may_drop(&self) -> bool;
    /// How long the device is still held.
    fn time_left(&self, _held: &Allocation) -> Option<Duration> {
        None
    }
    /// A line for the far side's shell that gives the device back.
    fn will(&self, _held: &Allocation) -> Option<String> {
        None
    }
    /// A line for the shell here that gives the device back.
    fn release(&self, _held: &Allocation) -> Option<String> {
        None
    }
    /// The state of a held device that does not answer, if that can be known.
    fn state(&self, _held: &Allocation) -> Option<String> {
        None
    }
}

/// A word as a shell reads it back.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@%+".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

/// Lines for a shell that set variables.
pub fn exports(env: &BTreeMap<String, String>) -> String {
    env.iter().map(|(name, value)| format!("export {name}={}\n", quoted(value))).collect()
}

/// Words as one line for a shell.
pub fn quoted_line(words: &[String]) -> String {
    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}
