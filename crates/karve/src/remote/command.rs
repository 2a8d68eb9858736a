//! Any other engine, by commands of the user: docker, kubectl, PBS, Flux, Grid Engine.

use super::engine::{Allocation, DeviceWait, Engine, quoted};
use super::table::RemoteConfig;
use karve_os::error::{CommandError, ErrorKind, Result};
use karve_os::process::{self, Command, StopFlag};
use std::path::Path;
use std::time::Duration;

/// How long it may take to ask for the state of a device.
const SHORT: Duration = Duration::from_secs(60);

/// The user's commands.
#[derive(Debug)]
pub(super) struct CommandEngine {
    config: RemoteConfig,
}

impl CommandEngine {
    pub(super) fn new(config: &RemoteConfig) -> Self {
        Self { config: config.clone() }
    }
}

/// A template with its placeholders replaced.
fn filled(template: &str, id: &str, command: &str) -> String {
    // The command comes last, so that nothing is replaced in it.
    let template = template.replace("{id}", &quoted(id));
    let parts = template.split("{command_word}").map(|part| part.replace("{command}", command));
    parts.collect::<Vec<_>>().join(&quoted(command))
}

impl Engine for CommandEngine {
    fn acquire(&mut self, wait: &DeviceWait<'_>) -> Result<Allocation> {
        let Some(line) = &self.config.table.acquire else {
            return Ok(Allocation { id: String::new(), own: true });
        };
        let name = &self.config.name;
        wait.notices.mention(&format!("{name}: waiting for a device"));
        let command = Command::shell(line.clone(), Path::new("/")).limit(self.config.queue);
        let ran = process::run(&command, wait.stop)?;
        if wait.stop.at_once() {
            return Err(CommandError::new(ErrorKind::Interrupted, "stopped while waiting"));
        }
        let printed = ran.stdout.text();
        let id = printed.lines().rev().map(str::trim).find(|line| !line.is_empty());
        match id.filter(|_| ran.exit.success()) {
            Some(id) => Ok(Allocation { id: id.to_owned(), own: true }),
            None => {
                let message = format!("remote.{name}.acquire gave no device");
                let why = format!("it {}: {}", ran.exit.describe(), process::excerpt(&ran));
                Err(CommandError::environment(message).cause(why).hint(format!(
                    "run it by hand; its last line must be the {{id}} that remote.{name}.run uses"
                )))
            }
        }
    }

    fn gate(&self, held: &Allocation, script: &str) -> Command {
        let template = self.config.table.run.as_deref().unwrap_or("{command}");
        let far = format!("/bin/sh -c {}", quoted(script));
        Command::shell(filled(template, &held.id, &far), Path::new("/"))
    }

    fn may_drop(&self) -> bool {
        true
    }

    fn release(&self, held: &Allocation) -> Option<String> {
        self.config.table.release.as_ref().map(|line| filled(line, &held.id, ""))
    }

    fn state(&self, held: &Allocation) -> Option<String> {
        let line = filled(self.config.table.status.as_ref()?, &held.id, "");
        let command = Command::shell(line, Path::new("/")).limit(SHORT);
        let ran = process::run(&command, &StopFlag::new()).ok()?;
        let printed = ran.stdout.text().trim().to_owned();
        Some(match ran.exit.success() {
            true => printed,
            false => format!("{}: {printed}", ran.exit.describe()),
        })
    }
}
