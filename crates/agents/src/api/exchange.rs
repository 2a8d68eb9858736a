//! Writes down a turn: what was asked, every event of every answer, and what tools gave, as lines
//! of JSON without keys.

use crate::secrets::Secrets;
use karve_os::error::{Context, Result};
use serde_json::Value;
use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// What is written down of one turn.
pub(super) const EXCHANGE_BYTES_MAX: u64 = 256 << 20;
/// The version of the form of an exchange.
pub(super) const VERSION: u32 = 1;

/// A file that grows with a turn.
#[derive(Debug)]
pub(super) struct Exchange {
    file: BufWriter<File>,
    path: PathBuf,
    written: u64,
    secrets: Secrets,
}

impl Exchange {
    /// Goes on with a file, or begins it.
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

    /// Whether as much was written as may be.
    pub(super) fn is_full(&self) -> bool {
        self.written > EXCHANGE_BYTES_MAX
    }

    /// A line by karve.
    pub(super) fn note(&mut self, value: &Value) -> Result<()> {
        let line = self.secrets.redact(&value.to_string());
        self.line(line.as_bytes())
    }

    /// A line as it came; it holds no key and no end of a line.
    pub(super) fn line(&mut self, line: &[u8]) -> Result<()> {
        self.written += line.len() as u64 + 1;
        let written = self.file.write_all(line);
        written
            .and_then(|()| self.file.write_all(b"\n"))
            .context(|| format!("cannot write {}", self.path.display()))
    }

    /// All of it is in the file.
    pub(super) fn finish(mut self) -> Result<()> {
        self.file
            .flush()
            .context(|| format!("cannot write {}", self.path.display()))
    }
}
