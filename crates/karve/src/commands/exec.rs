//! `karve exec`: any command on the machine with the device.

use super::remote::in_copy;
use crate::project::ProjectArgs;
use crate::remote::engine::quoted_line;
use crate::remote::exec::{self, EXEC_LIMIT_S, ExecRequest};
use crate::remote::wire::Work;
use crate::ui;
use karve_agents::EXEC_SOCKET;
use karve_os::error::{CommandError, ErrorKind, Result, WithContext as _};
use std::path::Path;

/// Run a command in the project on another machine
///
/// The files of the checkout are copied there, the command runs in the same directory, its output
/// is shown, and files that it changed come back, unless git ignores them. An agent that works for
/// a campaign elsewhere leaves out --on: its command runs in the campaign's allocation, in a
/// sandbox, for at most ten minutes, and only its output comes back.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  karve exec --on box -- nvidia-smi
  karve exec --on lab -- make test
  karve exec -- nvidia-smi            by an agent, where its campaign is measured")]
pub struct ExecArgs {
    /// On this remote
    #[arg(long, value_name = "NAME")]
    on: Option<String>,
    /// Seconds that it may run
    #[arg(long, value_name = "S", default_value_t = 3_600)]
    limit: u64,
    /// The command
    #[arg(last = true, required = true)]
    command: Vec<String>,
}

impl ExecArgs {
    /// Runs the command.
    pub fn run(&self, place: &ProjectArgs) -> Result<()> {
        let line = quoted_line(&self.command);
        let limit_s = self.limit;
        match (std::env::var_os(EXEC_SOCKET), &self.on) {
            (Some(dir), _) => self.ask_driver(Path::new(&dir)),
            (None, Some(on)) => in_copy(place, on, Vec::new(), |shown, _| Work::Shell {
                head: shown.head.to_string(),
                files: shown.files.to_string(),
                line: line.clone(),
                dir: shown.dir.clone(),
                limit_s,
            }),
            (None, None) => Err(CommandError::usage("--on NAME is missing")
                .hint("\"karve remote list\" shows the remotes")),
        }
    }

    /// Asks the karve that drives the agent which runs this command.
    fn ask_driver(&self, dir: &Path) -> Result<()> {
        let here = std::env::current_dir().context(|| "cannot find this directory".into())?;
        let request = ExecRequest {
            command: self.command.clone(),
            dir: here.to_string_lossy().into_owned(),
            limit_s: self.limit.min(EXEC_LIMIT_S),
        };
        let ran = exec::ask(dir, &request)?;
        ui::pass_on_output(ran.stdout.as_bytes());
        ui::pass_on_errors(ran.stderr.as_bytes());
        match ran.code {
            0 => Ok(()),
            code => {
                let kind = ErrorKind::of_exit_code(code).unwrap_or(ErrorKind::Negative);
                Err(CommandError::new(kind, format!("the command exited with {code}")))
            }
        }
    }
}
