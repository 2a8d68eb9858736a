//! Installs karve for an agent that people already use: a skill, sub-agents, slash commands and
//! the registration of the MCP server, by that tool's own conventions.
//!
//! ```text
//! guide     the texts, once for all tools
//! claude, codex, gemini, opencode, cursor, agents_md   where each tool looks for it
//! edit      how a piece gets into a file and out of it again; pure
//! jsonc     JSON with comments, changed without touching the rest
//! record    what was written, so that exactly that can be removed
//! disk      files are checked first, then written completely or not at all
//! ```

mod agents_md;
mod claude;
mod codex;
mod cursor;
mod disk;
mod edit;
mod gemini;
mod guide;
mod jsonc;
mod opencode;
mod record;
#[cfg(test)]
mod tests;

pub use self::disk::{InstallChange, InstallResult};

use self::disk::InstallRoot;
use self::edit::{PlannedContent, PlannedWrite};
use karve_os::error::{CommandError, Result};
use std::path::{Path, PathBuf};

/// What karve can be installed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
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
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Claude, Self::Codex, Self::Gemini, Self::Opencode, Self::Cursor, Self::AgentsMd];

    /// Its display name.
    pub fn title(self) -> &'static str {
        match self {
            Self::Claude => "Claude Code",
            Self::Codex => "Codex",
            Self::Gemini => "Gemini CLI",
            Self::Opencode => "opencode",
            Self::Cursor => "Cursor",
            Self::AgentsMd => "AGENTS.md",
        }
    }

    /// How to check that it worked.
    pub fn check(self) -> &'static str {
        match self {
            Self::Claude => "\"claude mcp list\" shows karve; then /karve-optimize",
            Self::Codex => "\"codex mcp list\" shows karve; then ask for the skill karve-optimize",
            Self::Gemini => "\"gemini mcp list\" shows karve; then /karve-optimize",
            Self::Opencode => "\"opencode mcp list\" shows karve; then /karve-optimize",
            Self::Cursor => "Settings, MCP shows karve; then /karve-optimize",
            Self::AgentsMd => "register \"karve mcp --yes\" with your agent as an MCP server",
        }
    }

    fn pieces(self, site: &InstallSite) -> Vec<PlannedWrite> {
        match self {
            Self::Claude => claude::pieces(site),
            Self::Codex => codex::pieces(site),
            Self::Gemini => gemini::pieces(site),
            Self::Opencode => opencode::pieces(site),
            Self::Cursor => cursor::pieces(site),
            Self::AgentsMd => agents_md::pieces(site),
        }
    }

    /// Its configuration directory: below the user's home, or where its variable points.
    fn user_site(self) -> Result<InstallSite> {
        let led = |name: &str| std::env::var_os(name).filter(|dir| !dir.is_empty());
        let home = || {
            led("HOME").ok_or_else(|| {
                CommandError::environment("HOME is not set")
                    .hint("set HOME, or install for a project with --project DIR")
            })
        };
        let (variable, own_if_led, own) = match self {
            Self::Claude => ("CLAUDE_CONFIG_DIR", "", ".claude"),
            Self::Codex => ("CODEX_HOME", "", ".codex"),
            Self::Gemini => ("GEMINI_CLI_HOME", ".gemini", ".gemini"),
            Self::Opencode => ("XDG_CONFIG_HOME", "opencode", ".config/opencode"),
            Self::Cursor => ("", "", ".cursor"),
            Self::AgentsMd => {
                return Err(CommandError::usage("AGENTS.md belongs to a project")
                    .hint("leave out --user, or name the project with --project DIR"));
            }
        };
        let (root, own, is_led) = match led(variable) {
            Some(dir) => (dir, own_if_led, true),
            None => (home()?, own, false),
        };
        Ok(InstallSite {
            root: root.into(),
            own: own.to_owned(),
            reach: if is_led { InstallScope::Led } else { InstallScope::User },
        })
    }

    fn project_site(self, root: &Path) -> InstallSite {
        let own = match self {
            Self::Claude => ".claude",
            Self::Codex => ".codex",
            Self::Gemini => ".gemini",
            Self::Opencode => ".opencode",
            Self::Cursor => ".cursor",
            Self::AgentsMd => "",
        };
        InstallSite { root: root.to_owned(), own: own.to_owned(), reach: InstallScope::Project }
    }

    /// The records of the other tools in the same directory.
    fn others(self, whom: &InstallOwner) -> Vec<String> {
        let InstallOwner::Project(root) = whom else {
            return Vec::new();
        };
        let others = Self::ALL.into_iter().filter(|tool| *tool != self);
        others.map(|tool| tool.project_site(root).record()).collect()
    }

    fn site(self, whom: &InstallOwner) -> Result<InstallSite> {
        match whom {
            InstallOwner::User => self.user_site(),
            InstallOwner::Project(root) => Ok(self.project_site(root)),
        }
    }
}

/// The scope of what is installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

    fn is_project(&self) -> bool {
        self.reach == InstallScope::Project
    }

    /// The file that records what was written.
    fn record(&self) -> String {
        match self.own.as_str() {
            "" if self.is_project() => ".karve-agents-md.json".to_owned(),
            _ => self.own("karve-install.json"),
        }
    }
}

/// Every file with its content; nothing is read or written.
pub fn shown(tool: InstallTarget, whom: &InstallOwner) -> Result<Vec<(String, String)>> {
    let site = tool.site(whom)?;
    let pieces = tool.pieces(&site).into_iter();
    Ok(pieces.map(|piece| (piece.path.clone(), piece.shown())).collect())
}

/// Writes everything that is not there yet.
pub fn install(
    tool: InstallTarget,
    whom: &InstallOwner,
    care: OverwritePolicy,
) -> Result<InstallResult> {
    let site = tool.site(whom)?;
    let pieces = tool.pieces(&site);
    InstallRoot::open(&site, &tool.others(whom))?.put(&pieces, care)
}

/// Removes what was written, and nothing else.
pub fn uninstall(
    tool: InstallTarget,
    whom: &InstallOwner,
    care: OverwritePolicy,
) -> Result<InstallResult> {
    let site = tool.site(whom)?;
    InstallRoot::open(&site, &tool.others(whom))?.take(care)
}

/// A file of karve's own.
fn whole(path: String, text: String) -> PlannedWrite {
    PlannedWrite { path, how: PlannedContent::Whole(text) }
}
