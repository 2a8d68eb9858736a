//! `karve completions` and `karve schema`.

use crate::{config, ui};
use clap::CommandFactory;
use karve_os::error::Result;

/// Print completions for a shell
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  karve completions bash > ~/.local/share/bash-completion/completions/karve
  karve completions zsh > ~/.zfunc/_karve")]
pub struct CompletionsArgs {
    /// The shell
    shell: clap_complete::Shell,
}

impl CompletionsArgs {
    /// Runs the command.
    pub fn run(&self) -> Result<()> {
        let mut command = super::Cli::command();
        let mut bytes = Vec::new();
        clap_complete::generate(self.shell, &mut command, "karve", &mut bytes);
        ui::out(&String::from_utf8_lossy(&bytes));
        Ok(())
    }
}

/// Print the JSON schema of karve.toml, for editors
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  karve schema > karve.schema.json")]
pub struct SchemaArgs {}

impl SchemaArgs {
    /// Runs the command.
    pub fn run(&self) -> Result<()> {
        ui::out(&config::schema_json());
        Ok(())
    }
}
