//! Writes down a turn of an agent that only answers: what it was asked, what it said, and how that
//! ended. JSON lines, as those of command-line agents.

use super::secrets::Secrets;
use karve_os::error::{Context, Result};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

/// The version of the form of an exchange.
pub(super) const VERSION: u32 = 1;

/// What was asked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked<'a> {
    /// Who: its kind, or its name.
    pub(super) agent: &'a str,
    /// What for.
    pub(super) task: &'a str,
    /// The brief.
    pub(super) brief: &'a str,
}

/// Writes it down, without the values of keys.
pub(super) fn write_down(
    path: &Path,
    asked: Asked<'_>,
    said: std::result::Result<&str, &str>,
    secrets: &Secrets,
) -> Result<()> {
    let mut lines = vec![json!({
        "karve": "brief",
        "version": VERSION,
        "agent": asked.agent,
        "task": asked.task,
        "brief": secrets.redact(asked.brief),
    })];
    if let Ok(text) = said {
        lines.push(json!({"karve": "answer", "text": secrets.redact(text)}));
    }
    let fault = said.err().map(|why| secrets.redact(why));
    lines.push(json!({"karve": "end", "fault": fault}));
    write_lines(path, &lines)
}

/// Writes lines down, in an exchange of its own.
pub(super) fn write_lines(path: &Path, lines: &[Value]) -> Result<()> {
    let cannot = || format!("cannot write {}", path.display());
    if let Some(dir) = path.parent() {
        fs::create_dir_all(dir).context(cannot)?;
    }
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    fs::write(path, text).context(cannot)
}
