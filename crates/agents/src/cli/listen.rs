//! Reads an agent's output as it arrives: removes keys, logs the output, and parses it line by
//! line, in bounded memory.

use super::CliSpec;
use super::turn_output::TurnOutput;
use crate::secrets::{Redactor, Secrets};
use crate::session_log::SessionLog;
use karve_os::error::{CommandError, Result};
use serde_json::Value;

/// A line is parsed up to this size; a longer one is logged but not parsed.
const LINE_BYTES_MAX: usize = 4 << 20;

/// Reads the output of one turn.
pub(super) struct OutputListener<'a> {
    spec: &'a CliSpec,
    keys: Redactor,
    log: SessionLog,
    /// The current line.
    line: Vec<u8>,
    /// Whether it is too long to parse.
    is_long: bool,
    output: TurnOutput,
    /// Why the log could not be written.
    broken: Option<CommandError>,
}

impl<'a> OutputListener<'a> {
    /// Writes to a log.
    pub(super) fn new(spec: &'a CliSpec, secrets: &Secrets, log: SessionLog) -> Self {
        Self {
            spec,
            keys: secrets.redacting(),
            log,
            line: Vec::new(),
            is_long: false,
            output: TurnOutput::default(),
            broken: None,
        }
    }

    /// Processes new output; returns whether more is wanted.
    pub(super) fn push(&mut self, bytes: &[u8]) -> bool {
        let clean = self.keys.push(bytes).into_owned();
        self.take(&clean);
        self.broken.is_none() && !self.log.is_full()
    }

    fn take(&mut self, bytes: &[u8]) {
        if self.broken.is_none() {
            self.broken = self.log.bytes(bytes).err();
        }
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let whole = piece.ends_with(b"\n");
            if self.line.len() + piece.len() > LINE_BYTES_MAX {
                self.is_long = true;
            } else if !self.is_long {
                self.line.extend_from_slice(piece);
            }
            if whole {
                self.end_line();
            }
        }
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        if std::mem::take(&mut self.is_long) {
            self.output.is_strange(&line);
        } else {
            read_line(self.spec, &mut self.output, &line);
        }
        // A large buffer is not kept for the small lines that follow.
        if line.capacity() <= 1 << 16 {
            self.line = line;
            self.line.clear();
        }
    }

    /// The final state, and the log for more lines.
    pub(super) fn finish(mut self) -> Result<(TurnOutput, SessionLog)> {
        let rest = self.keys.rest();
        self.take(&rest);
        if !self.line.is_empty() || self.is_long {
            self.end_line();
            self.log.bytes(b"\n")?;
        }
        match self.broken {
            Some(error) => Err(error),
            None => Ok((self.output, self.log)),
        }
    }
}

/// Parses one line in an agent's format.
pub(super) fn read_line(spec: &CliSpec, heard: &mut TurnOutput, line: &[u8]) {
    let text = line.trim_ascii();
    if text.is_empty() {
        return;
    }
    match spec.speaks {
        super::CliOutputParser::Text(read) => {
            heard.events += 1;
            read(heard, &String::from_utf8_lossy(line));
        }
        super::CliOutputParser::Events(read) => match serde_json::from_slice::<Value>(text) {
            Ok(event) if event.is_object() => {
                heard.events += 1;
                read(heard, &event);
            }
            Ok(_) | Err(_) => heard.is_strange(text),
        },
    }
}
