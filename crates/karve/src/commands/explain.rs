//! `karve explain`: the generated code of the kernel.

use crate::explain::explain;
use crate::project::ProjectArgs;
use crate::{session, ui};
use karve_os::error::Result;
use karve_os::process::StopFlag;

/// Show the generated code of the kernel: its functions, their loops and instructions
///
/// Builds a revision, or the worktree, in a scratch worktree and disassembles what the build left
/// (commands.artifacts, or else the program that the benchmark names). It shows the functions that
/// the editable files define, the longest first, with the innermost loops marked.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  karve explain                          the worktree
  karve explain \"$(karve best --json | jq -r .commit)\"
  karve explain --function product --json")]
pub struct ExplainArgs {
    /// A revision [default: the worktree]
    #[arg(value_name = "REV")]
    revision: Option<String>,
    /// A function whose name contains this
    #[arg(long, value_name = "NAME")]
    function: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl ExplainArgs {
    /// Runs the command.
    pub fn run(&self, place: &ProjectArgs) -> Result<()> {
        let stop = StopFlag::new();
        session::watch_signals_at_once(&stop, "stopping")?;
        let code = explain(place, self.revision.as_deref(), self.function.as_deref(), &stop);
        let code = session::unless_stopped(&stop, code)?;
        if self.json {
            ui::out_json(&code);
        } else {
            ui::out(&code.render());
            ui::next_step("\"karve profile\" says what the kernel waits for");
        }
        Ok(())
    }
}
