//! `karve completions`, `karve man` and `karve schema`.

use crate::{config, ui};
use clap::CommandFactory;
use karve_os::error::{Result, WithContext};
use std::fs;
use std::path::PathBuf;

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
        ui::out(names_script(self.shell));
        Ok(())
    }
}

/// Lines after the generated ones: they complete the names of campaigns and rounds.
fn names_script(shell: clap_complete::Shell) -> &'static str {
    match shell {
        clap_complete::Shell::Bash => include_str!("names.bash"),
        clap_complete::Shell::Zsh => include_str!("names.zsh"),
        clap_complete::Shell::Fish => include_str!("names.fish"),
        _ => "",
    }
}

/// Write man pages, one for each command
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  karve man ~/.local/share/man/man1")]
pub struct ManArgs {
    /// The directory, which is created
    dir: PathBuf,
}

impl ManArgs {
    /// Runs the command.
    pub fn run(&self) -> Result<()> {
        fs::create_dir_all(&self.dir)
            .context(|| format!("cannot create {}", self.dir.display()))?;
        clap_mangen::generate_to(super::Cli::command(), &self.dir)
            .context(|| format!("cannot write into {}", self.dir.display()))
            .map_err(|error| error.hint("name another directory: `karve man DIR`"))
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
