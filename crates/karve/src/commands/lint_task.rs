//! `karve lint-task`: what the check of an imported task lets through.

use crate::config::Overrides;
use crate::project::ProjectArgs;
use crate::tasks::{ExamineTask, TASK_PATH, TaskLint};
use crate::{session, ui};
use karve_os::error::{CommandError, ErrorKind, Result};
use karve_os::process::StopFlag;
use karve_os::text::safe;
use std::time::Duration;

/// How long the code of a task may take.
const LIMIT: Duration = Duration::from_secs(600);
const CHARS_MAX: usize = 300;

/// Find what the check of an imported task lets through
///
/// Runs the task's own code, in the sandbox and without any kernel, and shows its check results
/// that are wrong: zeros, a constant, half of the bits, the result of another call, and those of a
/// kernel that ignores an input or a mask. What passes on every case that was examined is a
/// finding. Also says if booleans are read as strings, and if all results are nearly the same.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  karve lint-task
  karve lint-task --python .venv/bin/python --json

Exit codes: 0 nothing was found, 1 something was found.")]
pub struct LintTaskArgs {
    /// The Python that runs the task: a name on the PATH, or a full path [default: python3]
    #[arg(long, value_name = "PYTHON")]
    python: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl LintTaskArgs {
    /// Runs the command.
    pub fn run(&self, place: &ProjectArgs) -> Result<()> {
        let config = place.config()?;
        let dir = config.parent().unwrap_or(&config).to_owned();
        if !dir.join(TASK_PATH).is_file() {
            return Err(CommandError::usage(format!("there is no {TASK_PATH}"))
                .hint("only a project that \"karve import\" wrote has it"));
        }
        let loaded = place.load(&Overrides::default())?;
        let stop = StopFlag::new();
        session::watch_signals(&stop)?;
        let (charter, python) = (&loaded.charter, self.python.as_deref());
        let lint = ExamineTask { dir: &dir, charter, python, limit: LIMIT }.run(&stop)?;
        if self.json {
            ui::out_json(&lint);
        } else {
            show(&lint);
        }
        match lint.findings.len() {
            0 => Ok(()),
            n => Err(CommandError::new(
                ErrorKind::Negative,
                format!("{n} finding(s): the task accepts what it should not"),
            )
            .hint(
                "docs/tasks.md says what each means; under a [contract] karve's own checks hold",
            )),
        }
    }
}

fn show(lint: &TaskLint) {
    for finding in &lint.findings {
        let (what, shows) = (safe(&finding.what, CHARS_MAX), safe(&finding.shows, CHARS_MAX));
        ui::outln(&format!("{:<16} {what}", safe(&finding.rule, 40)));
        ui::outln(&format!("{:<16} {shows}", ""));
    }
    for note in &lint.notes {
        ui::outln(&format!("note: {}", safe(note, CHARS_MAX)));
    }
    let s = if lint.examined == 1 { "" } else { "s" };
    ui::outln(&format!("{} case{s} examined, {} findings", lint.examined, lint.findings.len()));
}
