//! Writes the session log of an agent that only answers: the brief, the reply, and how the turn
//! ended. JSON lines, like the session logs of command-line agents.

use super::secrets::Secrets;
use karve_os::error::{Result, WithContext};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

/// The format version of a session log.
pub(super) const VERSION: u32 = 1;

/// The request.
#[derive(Clone, Copy, Debug)]
pub(super) struct TurnPrompt<'a> {
    /// The agent: its kind, or its name.
    pub(super) agent: &'a str,
    /// The task.
    pub(super) task: &'a str,
    /// The brief.
    pub(super) brief: &'a str,
}

/// Writes the log, without the values of keys.
pub(super) fn write_down(
    path: &Path,
    asked: TurnPrompt<'_>,
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

/// Writes lines as a separate session log.
pub(super) fn write_lines(path: &Path, lines: &[Value]) -> Result<()> {
    let cannot = || format!("cannot write {}", path.display());
    if let Some(dir) = path.parent() {
        fs::create_dir_all(dir).context(cannot)?;
    }
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    fs::write(path, text).context(cannot)
}
