//! Receives one response: removes keys, logs what arrives, and parses it event by event.

use super::Wire;
use super::exchange::{EXCHANGE_BYTES_MAX, Exchange};
use super::http::{Came, Lost};
use super::reply::{End, Reply};
use super::retry::{Failure, refusal_of};
use super::sse::Sse;
use crate::cli::heard::message;
use crate::secrets::{Redacting, Secrets};
use karve_os::error::Result;
use serde_json::{Value, json};
use std::time::Duration;

/// The part of a refusal that is read, in bytes.
const REFUSAL_BYTES_MAX: usize = 64 << 10;
/// The largest response on the wire, with everything around its text.
const STREAM_BYTES_MAX: u64 = 64 << 20;
/// The word that ends the stream of some servers.
const DONE: &[u8] = b"[DONE]";

/// The receiver of one response.
pub(super) struct Hearing<'a> {
    wire: &'a Wire,
    keys: Redacting,
    log: &'a mut Exchange,
    sse: Sse,
    status: Option<u16>,
    wait: Option<Duration>,
    /// The body of a refusal.
    refusal: Vec<u8>,
    bytes: u64,
    pub(super) reply: Reply,
    failure: Option<Failure>,
    /// The error if the log could not be written.
    broken: Result<()>,
}

impl<'a> Hearing<'a> {
    /// Receives a response of an API.
    pub(super) fn new(wire: &'a Wire, secrets: &Secrets, log: &'a mut Exchange) -> Self {
        Self {
            wire,
            keys: secrets.redacting(),
            log,
            sse: Sse::default(),
            status: None,
            wait: None,
            refusal: Vec::new(),
            bytes: 0,
            reply: Reply::default(),
            failure: None,
            broken: Ok(()),
        }
    }

    /// Processes what arrives; returns whether more is wanted.
    pub(super) fn take(&mut self, came: &Came<'_>) -> bool {
        match came {
            Came::Head(status, wait) => {
                self.status = Some(*status);
                self.wait = *wait;
            }
            Came::Piece(bytes) => {
                self.bytes += bytes.len() as u64;
                let clean = self.keys.push(bytes).into_owned();
                self.take_clean(&clean);
            }
        }
        self.look();
        self.failure.is_none() && self.broken.is_ok()
    }

    /// Checks the size limits.
    fn look(&mut self) {
        if self.bytes > STREAM_BYTES_MAX {
            self.fail(Failure::Flooded(STREAM_BYTES_MAX));
        } else if self.log.is_full() {
            self.fail(Failure::Flooded(EXCHANGE_BYTES_MAX));
        } else if self.reply.is_over || self.sse.is_over {
            self.fail(Failure::TooLong);
        }
    }

    fn fail(&mut self, failure: Failure) {
        self.failure.get_or_insert(failure);
    }

    fn take_clean(&mut self, bytes: &[u8]) {
        if self.status != Some(200) {
            let room = REFUSAL_BYTES_MAX.saturating_sub(self.refusal.len());
            self.refusal.extend(bytes.iter().take(room));
            return;
        }
        let mut sse = std::mem::take(&mut self.sse);
        sse.push(bytes, &mut |data| self.take_event(data));
        self.sse = sse;
    }

    fn take_event(&mut self, data: &[u8]) {
        if self.failure.is_some() || data == DONE {
            return;
        }
        let written = match serde_json::from_slice::<Value>(data) {
            // This key marks karve's own lines, and only those.
            Ok(event) if event.is_object() && event.get("karve").is_none() => {
                (self.wire.read)(&mut self.reply, &event);
                // On one line, however the server splits lines.
                match data.contains(&b'\n') {
                    true => self.log.line(event.to_string().as_bytes()),
                    false => self.log.line(data),
                }
            }
            Ok(_) | Err(_) => {
                let said = message(&String::from_utf8_lossy(data));
                self.fail(Failure::Garbled(format!("not an event: {said:?}")));
                self.log.note(&json!({"karve": "strange", "data": said}))
            }
        };
        if written.is_err() {
            self.broken = written;
        }
    }

    /// The complete response, or why there is none.
    pub(super) fn finish(
        mut self,
        ended: std::result::Result<(), Lost>,
    ) -> Result<(Reply, Option<Failure>)> {
        let rest = self.keys.rest();
        self.take_clean(&rest);
        self.look();
        self.broken.clone()?;
        self.reply.had_key = self.keys.found;
        self.reply.status = self.status;
        let failure = self.judge(ended);
        if failure.is_none() {
            (self.wire.settle)(&mut self.reply);
        }
        Ok((self.reply, failure))
    }

    /// Why there is no response, if so.
    fn judge(&mut self, ended: std::result::Result<(), Lost>) -> Option<Failure> {
        let way = match ended {
            Ok(()) => None,
            Err(Lost::Stopped) => return Some(Failure::Stopped),
            Err(Lost::OverTime) => return Some(Failure::OverTime),
            Err(Lost::Way(why)) => Some(message(&why)),
        };
        if let Some(failure) = self.failure.take().or(self.reply.fault.take()) {
            return Some(failure);
        }
        let in_the_middle = "the stream stopped in the middle";
        match (self.status, &self.reply.end) {
            (None, _) => Some(Failure::Unreachable(
                way.unwrap_or_else(|| "there was no answer".into()),
            )),
            (Some(200), None) => Some(match (&self.sse.strange, way) {
                (Some(strange), _) => Failure::Garbled(message(strange)),
                (None, None) => Failure::Broken(in_the_middle.into()),
                (None, Some(why)) => Failure::Broken(format!("{in_the_middle}: {why}")),
            }),
            (Some(200), Some(End::Whole)) => None,
            (Some(200), Some(End::Cut)) => Some(Failure::Cut),
            (Some(200), Some(End::Declined(why))) => {
                Some(Failure::Lasting(format!("declined: {why}")))
            }
            (Some(200), Some(End::Full(why))) => Some(Failure::Full(why.clone())),
            (Some(status), _) => Some(refusal_of(status, &self.refusal, self.wait)),
        }
    }
}
