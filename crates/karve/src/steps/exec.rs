//! A command of an agent, on the machine with the device: in a copy of its files, in the sandbox
//! of builds, with the device to itself.

use super::context::Context;
use crate::project::tag_of;
use crate::remote::exec::{EXEC_LIMIT_S, EXEC_OUTPUT_MAX, ExecRun, ExecTask};
use karve_core::charter::SandboxMode;
use karve_harness::git::Oid;
use karve_os::device;
use karve_os::error::{CommandError, Result, WithContext as _};
use karve_os::process::{self, Command, Exit, StopFlag};
use karve_os::sandbox::CommandPurpose;
use std::fs;
use std::path::{Component, Path};
use std::time::Duration;

/// The directory with the copy, which stays from command to command.
const COPY: &str = "exec";

/// Runs it.
pub(crate) fn exec(context: &Context, task: &ExecTask, stop: &StopFlag) -> Result<ExecRun> {
    let plain = Path::new(&task.dir).components().all(|part| matches!(part, Component::Normal(_)));
    if !plain {
        return Err(CommandError::usage("a command runs in a directory of the worktree")
            .hint("run \"karve exec\" in the worktree"));
    }
    let tree = context.dir.worktrees().join(COPY);
    fs::create_dir_all(&tree).context(|| format!("cannot create {}", tree.display()))?;
    let index = context.dir.join("tmp").join("exec-index");
    context.repos.work.show_in(&tree, &Oid::named(&task.commit)?, &index)?;
    let place = tree.join(&task.dir);
    // A link in the way could lead anywhere.
    if !fs::canonicalize(&place).is_ok_and(|real| real.starts_with(&tree)) {
        return Err(CommandError::usage(format!("there is no directory {:?}", task.dir))
            .hint("run \"karve exec\" in a directory that git knows"));
    }
    let limit = Duration::from_secs(task.limit_s.min(EXEC_LIMIT_S));
    let mut command = Command::shell(&task.line, &place)
        .limit(limit)
        .tag(tag_of(&context.dir))
        .capture_bytes(EXEC_OUTPUT_MAX);
    for (name, value) in &context.charter.commands.env {
        command = command.env(name, value);
    }
    command = match &context.sandbox {
        Some(sandbox) => command.confined(&sandbox.confine(CommandPurpose::Build, &tree)?),
        None if context.charter.sandbox.mode == SandboxMode::Off => command,
        None => {
            return Err(CommandError::environment("this host cannot confine a command")
                .hint("\"karve remote doctor NAME\" says what it lacks"));
        }
    };
    let (charter, notices) = (&context.charter, &context.device.notices);
    let lease = device::lease_for(charter, "karve exec", stop, notices)?;
    let ran = process::run(&command, stop)?;
    drop(lease);
    let code = match ran.exit {
        Exit::Code(code) => code,
        Exit::Signal(signal) => 128 + signal,
        Exit::TimedOut => 124,
        Exit::Stopped | Exit::TooMuch(_) => 130,
    };
    Ok(ExecRun {
        code,
        stdout: ran.stdout.text().into_owned(),
        stderr: ran.stderr.text().into_owned(),
    })
}
