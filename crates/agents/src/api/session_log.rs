//! Writes the session log of a turn: the brief, every event of every response, and the tool output,
//! as JSON lines without keys.

use crate::secrets::Secrets;
use karve_os::error::{Result, WithContext};
use serde_json::Value;
use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// The largest session log of one turn, in bytes.
pub(super) const SESSION_LOG_BYTES_MAX: u64 = 256 << 20;
/// The format version of a session log.
pub(super) const VERSION: u32 = 1;

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
        self.written += line.len() as u64 + 1;
        let written = self.file.write_all(line);
        written
            .and_then(|()| self.file.write_all(b"\n"))
            .context(|| format!("cannot write {}", self.path.display()))
    }

    /// Flushes the file.
    pub(super) fn finish(mut self) -> Result<()> {
        self.file.flush().context(|| format!("cannot write {}", self.path.display()))
    }
}
