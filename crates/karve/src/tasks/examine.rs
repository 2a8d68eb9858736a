//! Examines the check of an imported task: runs its own code in the sandbox, within a limit.

use super::lint::{TaskLint, parse_lint, script_of_lint};
use super::{AcceptedFault, TASK_PATH};
use karve_core::charter::Charter;
use karve_harness::scratch::{ScratchDir, ScratchKind};
use karve_os::error::{CommandError, Result};
use karve_os::process::{self, Command, Exit, StopFlag};
use karve_os::sandbox::{CommandPurpose, Sandbox, SandboxPaths};
use karve_os::text::{counted, safe};
use std::path::Path;
use std::time::Duration;

/// How long an examination may take that nobody asked for: of a doctor, and before a first round.
const QUICK_LIMIT: Duration = Duration::from_secs(60);

/// How long a line about a finding is.
const LINE_CHARS: usize = 300;

/// How a task is examined.
#[derive(Clone, Debug)]
pub struct ExamineTask<'a> {
    /// The project's directory.
    pub dir: &'a Path,
    /// The project.
    pub charter: &'a Charter,
    /// The Python that runs the task, if not the contract's.
    pub python: Option<&'a str>,
    /// How long it may take.
    pub limit: Duration,
}

impl ExamineTask<'_> {
    /// Runs the task's own code on wrong results.
    pub fn run(&self, stop: &StopFlag) -> Result<TaskLint> {
        let contract = self.charter.contract.as_ref();
        let own = contract.and_then(|one| one.modules.interpreter.as_deref());
        let python = self.python.or(own).unwrap_or("python3");
        let scratch = ScratchDir::new(ScratchKind::Check, &[])?;
        let site = SandboxPaths::of_commands(self.dir, scratch.path());
        let sandbox = Sandbox::open(&self.charter.sandbox, site)?;
        let mut command = Command::argv([python, "-"], self.dir)
            .stdin(script_of_lint(self.dir))
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .limit(self.limit);
        if let Some(sandbox) = &sandbox {
            command = command.confined(&sandbox.confine(CommandPurpose::Measure, self.dir)?);
        }
        let run = process::run(&command, stop)?;
        let cannot = |why: String| {
            CommandError::environment("the task cannot be examined")
                .cause(why)
                .hint("run \"karve lint-task\", and name a Python with its packages by --python")
        };
        if run.exit == Exit::TimedOut {
            return Err(cannot(format!("it took more than {} s", self.limit.as_secs())));
        }
        if !run.exit.success() {
            return Err(cannot(process::excerpt(&run)));
        }
        parse_lint(&run.stdout.text()).map_err(cannot)
    }
}

/// What is known about the task of a project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskCheck {
    /// It is no imported task, or was not examined because the user stopped.
    None,
    /// This many cases were examined, and nothing wrong passes.
    Sound(String),
    /// What passes although it is wrong, a line each.
    Faulty(Vec<String>),
    /// Why it could not be examined.
    NotExamined(String),
}

/// Examines the task of a project, if it is an imported one, within a minute.
pub fn examine_quickly(dir: &Path, charter: &Charter, stop: &StopFlag) -> TaskCheck {
    if !dir.join(TASK_PATH).is_file() {
        return TaskCheck::None;
    }
    let task = ExamineTask { dir, charter, python: None, limit: QUICK_LIMIT };
    match task.run(stop) {
        _ if stop.at_once() => TaskCheck::None,
        Ok(lint) if lint.findings.is_empty() => {
            TaskCheck::Sound(counted(lint.examined as usize, "case"))
        }
        Ok(lint) => TaskCheck::Faulty(lint.findings.iter().map(line).collect()),
        Err(error) => {
            let parts = std::iter::once(error.message).chain(error.causes);
            let text = parts.collect::<Vec<_>>().join(": ");
            TaskCheck::NotExamined(safe(&text, LINE_CHARS))
        }
    }
}

fn line(fault: &AcceptedFault) -> String {
    safe(&format!("{}: {} ({})", fault.rule, fault.what, fault.shows), LINE_CHARS)
}
