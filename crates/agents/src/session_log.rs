//! Writes the session log of a turn: the brief, what the agent printed or replied, and how the turn
//! ended, as JSON lines without keys.

use super::secrets::Secrets;
use karve_os::error::{Result, WithContext};
use serde_json::{Value, json};
use std::fs::{self, File, OpenOptions};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// The format version of a session log.
pub(super) const VERSION: u32 = 1;
/// The largest session log of one turn, in bytes; an agent that prints more is ended.
pub(super) const SESSION_LOG_BYTES_MAX: u64 = 256 << 20;

/// A log file that grows during a turn.
#[derive(Debug)]
pub(super) struct SessionLog {
    file: BufWriter<File>,
    path: PathBuf,
    written: u64,
    secrets: Secrets,
}

impl SessionLog {
    /// Appends to a file, or creates it.
    pub(super) fn open(path: &Path, secrets: &Secrets) -> Result<Self> {
        let mut options = OpenOptions::new();
        let file = options.create(true).append(true).open(path);
        Ok(Self {
            file: BufWriter::new(file.context(|| format!("cannot write {}", path.display()))?),
            path: path.to_owned(),
            written: 0,
            secrets: secrets.clone(),
        })
    }

    /// Whether the size limit is reached.
    pub(super) fn is_full(&self) -> bool {
        self.written > SESSION_LOG_BYTES_MAX
    }

    /// Writes a line of karve's own.
    pub(super) fn note(&mut self, value: &Value) -> Result<()> {
        let line = self.secrets.redact(&value.to_string());
        self.line(line.as_bytes())
    }

    /// Writes a received line unchanged; it contains no key and no newline.
    pub(super) fn line(&mut self, line: &[u8]) -> Result<()> {
        self.bytes(line)?;
        self.bytes(b"\n")
    }

    /// Writes received output unchanged; it contains no key.
    pub(super) fn bytes(&mut self, bytes: &[u8]) -> Result<()> {
        self.written += bytes.len() as u64;
        let written = self.file.write_all(bytes);
        written.context(|| format!("cannot write {}", self.path.display()))
    }

    /// Flushes the file.
    pub(super) fn finish(mut self) -> Result<()> {
        self.file.flush().context(|| format!("cannot write {}", self.path.display()))
    }
}

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

/// Writes the log of an agent that only answers.
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
