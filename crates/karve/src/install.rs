//! Installs karve for an agent that people already use: a skill, sub-agents, slash commands and
//! the registration of the MCP server, by that tool's own conventions.
//!
//! ```text
//! tools     what is installed where for each tool, from `guides/tools.toml`
//! edit      how a piece gets into a file and out of it again; pure
//! jsonc     JSON with comments, changed without touching the rest
//! record    what was written, so that exactly that can be removed
//! disk      files are checked first, then written completely or not at all
//! ```

mod disk;
mod edit;
mod jsonc;
mod record;
#[cfg(test)]
mod tests;
mod tools;

pub use self::disk::{InstallChange, InstallResult};

use self::disk::InstallRoot;
use self::edit::PlannedWrite;
use self::tools::InstallTool;
use clap::ValueEnum;
use karve_os::error::{CommandError, Result};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// What karve can be installed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum InstallTarget {
    /// Claude Code
    Claude,
    /// Codex
    Codex,
    /// Gemini CLI
    Gemini,
    /// opencode
    Opencode,
    /// Cursor
    Cursor,
    /// Any other: a section in AGENTS.md
    AgentsMd,
}

/// The scope of an installation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InstallOwner {
    /// For everyone who works on a project, in its directory.
    Project(PathBuf),
    /// For the user, in all projects.
    User,
}

/// What may be overwritten or removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OverwritePolicy {
    /// Only what is unchanged since karve wrote it.
    Unchanged,
    /// Also what was changed since.
    Force,
}

impl InstallTarget {
    fn spec(self) -> Result<&'static InstallTool> {
        let name = self.to_possible_value();
        tools::manifest()?.spec(name.as_ref().map_or("", |name| name.get_name()))
    }

    /// Its display name.
    pub fn title(self) -> Result<&'static str> {
        Ok(&self.spec()?.title)
    }

    /// How to check that it worked.
    pub fn check(self) -> Result<&'static str> {
        Ok(&self.spec()?.check)
    }

    fn pieces(self, site: &InstallSite) -> Result<Vec<PlannedWrite>> {
        tools::manifest()?.pieces(self.spec()?, site)
    }

    /// Where it looks: in the project, or below the user's home or where its variable points.
    fn site(self, whom: &InstallOwner) -> Result<InstallSite> {
        let spec = self.spec()?;
        let set = |name: &str| std::env::var_os(name).filter(|dir| !dir.is_empty());
        let (root, reach) = match whom {
            InstallOwner::Project(root) => (root.clone(), InstallScope::Project),
            InstallOwner::User => match (set(&spec.variable), set("HOME")) {
                (Some(dir), _) => (dir.into(), InstallScope::Led),
                (None, Some(home)) => (home.into(), InstallScope::User),
                (None, None) => {
                    return Err(CommandError::environment("HOME is not set")
                        .hint("set HOME, or install for a project with --project DIR"));
                }
            },
        };
        match spec.dir.get(&reach) {
            Some(own) => Ok(InstallSite { root, own: own.clone(), reach }),
            None => Err(CommandError::usage(format!("{} belongs to a project", spec.title))
                .hint("leave out --user, or name the project with --project DIR")),
        }
    }

    /// The records of the other tools in the same directory.
    fn others(self, whom: &InstallOwner) -> Result<Vec<String>> {
        if *whom == InstallOwner::User {
            return Ok(Vec::new());
        }
        let others = Self::value_variants().iter().filter(|tool| **tool != self);
        others.map(|tool| Ok(tool.site(whom)?.record())).collect()
    }
}

/// The scope of what is installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum InstallScope {
    Project,
    User,
    /// For the user, in the directory that a variable points to.
    Led,
}

/// Where a tool looks.
#[derive(Clone, Debug)]
struct InstallSite {
    root: PathBuf,
    /// The tool's own directory, from the root.
    own: String,
    reach: InstallScope,
}

impl InstallSite {
    /// A path in the tool's own directory.
    fn own(&self, path: &str) -> String {
        match self.own.as_str() {
            "" => path.to_owned(),
            own => format!("{own}/{path}"),
        }
    }

    /// The file that records what was written.
    fn record(&self) -> String {
        match self.own.as_str() {
            "" if self.reach == InstallScope::Project => ".karve-agents-md.json".to_owned(),
            _ => self.own("karve-install.json"),
        }
    }
}

/// Every file with its content; nothing is read or written.
pub fn shown(tool: InstallTarget, whom: &InstallOwner) -> Result<Vec<(String, String)>> {
    let pieces = tool.pieces(&tool.site(whom)?)?.into_iter();
    Ok(pieces.map(|piece| (piece.path.clone(), piece.shown())).collect())
}

/// Writes everything that is not there yet.
pub fn install(
    tool: InstallTarget,
    whom: &InstallOwner,
    care: OverwritePolicy,
) -> Result<InstallResult> {
    let site = tool.site(whom)?;
    InstallRoot::open(&site, &tool.others(whom)?)?.put(&tool.pieces(&site)?, care)
}

/// Removes what was written, and nothing else.
pub fn uninstall(
    tool: InstallTarget,
    whom: &InstallOwner,
    care: OverwritePolicy,
) -> Result<InstallResult> {
    InstallRoot::open(&tool.site(whom)?, &tool.others(whom)?)?.take(care)
}
