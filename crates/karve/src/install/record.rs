//! What was written, so that exactly that can be removed: a small file next to it.

use karve_os::error::{CommandError, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::{Component, Path};

/// The format version of a record.
const VERSION: u32 = 1;

/// Everything that was written for one tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct InstallRecord {
    pub(super) version: u32,
    /// Directories that were created, relative to the root.
    pub(super) dirs: Vec<String>,
    /// What was written.
    pub(super) written: Vec<WrittenFile>,
}

/// What was written to one file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct WrittenFile {
    /// The file, relative to the root.
    pub(super) path: String,
    /// Whether it did not exist before.
    pub(super) made: bool,
    /// What was written.
    pub(super) what: WrittenContent,
}

/// What was written, and how it is recognized.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub(super) enum WrittenContent {
    /// The whole file.
    Whole { digest: String },
    /// An entry of an object.
    Json { within: String, value: Value, text: String, made_object: bool },
    /// A table.
    Toml { within: String, text: String },
    /// A part between two marks.
    Section { text: String },
}

impl WrittenFile {
    /// Whether a file contains it, as far as its text shows.
    pub(super) fn is_in(&self, file: &str) -> bool {
        match &self.what {
            WrittenContent::Section { text } => file.contains(text.as_str()),
            WrittenContent::Whole { .. }
            | WrittenContent::Json { .. }
            | WrittenContent::Toml { .. } => true,
        }
    }
}

impl Default for InstallRecord {
    fn default() -> Self {
        Self { version: VERSION, dirs: Vec::new(), written: Vec::new() }
    }
}

impl InstallRecord {
    /// Reads a record. It is trusted only for paths that could be ours.
    pub(super) fn parse(text: &str, path: &str) -> Result<Self> {
        let damaged = |why: &str| {
            CommandError::usage(format!("{path} is not as karve wrote it")).cause(why).hint(
                format!(
                    "restore {path}, or remove it and what \"karve install --print\" shows by hand"
                ),
            )
        };
        let read: Self = serde_json::from_str(text).map_err(|error| damaged(&error.to_string()))?;
        if read.version > VERSION {
            return Err(damaged("a newer version of karve wrote it"));
        }
        for written in &read.written {
            let is_ours = match written.what {
                WrittenContent::Whole { .. } => {
                    written.path.split('/').any(|part| part.starts_with("karve"))
                }
                WrittenContent::Json { .. }
                | WrittenContent::Toml { .. }
                | WrittenContent::Section { .. } => true,
            };
            if !is_below(&written.path) || !is_ours {
                return Err(damaged(&format!("it names the path {:?}", written.path)));
            }
        }
        match read.dirs.iter().find(|dir| !is_below(dir)) {
            Some(dir) => Err(damaged(&format!("it names {dir:?}"))),
            None => Ok(read),
        }
    }

    /// The record as file content.
    pub(super) fn render(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    /// What was written to a file.
    pub(super) fn of(&self, path: &str) -> Option<&WrittenFile> {
        self.written.iter().find(|written| written.path == path)
    }
}

/// Whether a path stays below the root.
fn is_below(path: &str) -> bool {
    let parts = Path::new(path).components();
    let mut parts = parts.map(|part| matches!(part, Component::Normal(_)));
    !path.is_empty() && parts.all(|is_plain| is_plain)
}
