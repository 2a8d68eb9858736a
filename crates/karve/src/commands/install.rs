//! `karve install`: registers karve with an agent that the user already has.

use crate::install::{InstallChange, InstallOwner, InstallResult, InstallTarget, OverwritePolicy};
use crate::project::ProjectArgs;
use crate::{install, ui};
use karve_os::error::Result;
use karve_os::process;
use std::path::PathBuf;

/// Register karve with an agent: skill, sub-agents, commands and the MCP server
///
/// Writes a skill, sub-agents (profiler, kernel designer, reviewer and specialists), slash commands
/// and the registration of "karve mcp --yes", where the tool looks for them. Existing content of
/// these files is kept. A second run changes nothing, and --uninstall removes what was written.
/// agents-md writes a section into AGENTS.md, for any other agent.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  karve install claude                  for everyone who works in this directory
  karve install codex --user            for you, in all projects
  karve install gemini --print          only show the files
  karve install opencode --uninstall    remove what was written")]
pub struct InstallArgs {
    /// The tool
    #[arg(value_enum)]
    tool: InstallTarget,
    /// Install for the project in this directory [default: the current directory]
    #[arg(long, value_name = "DIR", conflicts_with = "user")]
    project: Option<PathBuf>,
    /// Install for you, in all projects: where the tool keeps your own settings
    #[arg(long)]
    user: bool,
    /// Remove what was written, and nothing else
    #[arg(long)]
    uninstall: bool,
    /// Show every file and write nothing
    #[arg(long, conflicts_with = "uninstall")]
    print: bool,
    /// Also overwrite or remove what was changed since
    #[arg(long, conflicts_with = "print")]
    force: bool,
}

impl InstallArgs {
    /// Runs the command.
    pub fn run(&self, place: &ProjectArgs) -> Result<()> {
        let whom = match self.user {
            true => InstallOwner::User,
            false => InstallOwner::Project(match &self.project {
                Some(dir) => place.here()?.join(dir),
                None => place.here()?,
            }),
        };
        if self.print {
            for (path, text) in install::shown(self.tool, &whom)? {
                ui::outln(&format!("==> {path} <=="));
                ui::outln(&text);
            }
            return Ok(());
        }
        let care = if self.force { OverwritePolicy::Force } else { OverwritePolicy::Unchanged };
        let title = self.tool.title()?;
        if self.uninstall {
            let done = install::uninstall(self.tool, &whom, care)?;
            print_result(&done);
            if done.deeds.is_empty() {
                ui::outln(&format!("nothing to do: karve is not installed for {title} here"));
            }
            return Ok(());
        }
        let done = install::install(self.tool, &whom, care)?;
        print_result(&done);
        if done.deeds.is_empty() {
            ui::outln(&format!("nothing to do: karve is installed for {title} here"));
            return Ok(());
        }
        ui::outln(&format!("next      {}", self.tool.check()?));
        if process::find_program("karve").is_none() {
            ui::note("note: karve is not on PATH, and agents start it by that name");
        }
        Ok(())
    }
}

fn print_result(done: &InstallResult) {
    for (deed, path) in &done.deeds {
        let word = match deed {
            InstallChange::Wrote => "wrote",
            InstallChange::Removed => "removed",
        };
        ui::outln(&format!("{word:<9} {path}"));
    }
}
