//! Receives one response: removes keys, logs what arrives, and parses it event by event.

use super::WireFormat;
use super::http::{ResponseError, ResponsePart};
use super::reply::{ModelReply, ReplyEnd};
use super::retry::{ApiFailure, refusal_of};
use super::sse::SseDecoder;
use crate::cli::turn_output::message;
use crate::secrets::{Redactor, Secrets};
use crate::session_log::{SESSION_LOG_BYTES_MAX, SessionLog};
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
pub(super) struct ReplyReader<'a> {
    wire: &'a WireFormat,
    keys: Redactor,
    log: &'a mut SessionLog,
    sse: SseDecoder,
    status: Option<u16>,
    wait: Option<Duration>,
    /// The body of a refusal.
    refusal: Vec<u8>,
    bytes: u64,
    pub(super) reply: ModelReply,
    failure: Option<ApiFailure>,
    /// The error if the log could not be written.
    broken: Result<()>,
}

impl<'a> ReplyReader<'a> {
    /// Receives a response of an API.
    pub(super) fn new(wire: &'a WireFormat, secrets: &Secrets, log: &'a mut SessionLog) -> Self {
        Self {
            wire,
            keys: secrets.redacting(),
            log,
            sse: SseDecoder::default(),
            status: None,
            wait: None,
            refusal: Vec::new(),
            bytes: 0,
            reply: ModelReply::default(),
            failure: None,
            broken: Ok(()),
        }
    }

    /// Processes what arrives; returns whether more is wanted.
    pub(super) fn take(&mut self, came: &ResponsePart<'_>) -> bool {
        match came {
            ResponsePart::Head(status, wait) => {
                self.status = Some(*status);
                self.wait = *wait;
            }
            ResponsePart::Piece(bytes) => {
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
            self.fail(ApiFailure::Flooded(STREAM_BYTES_MAX));
        } else if self.log.is_full() {
            self.fail(ApiFailure::Flooded(SESSION_LOG_BYTES_MAX));
        } else if self.reply.is_over || self.sse.is_over {
            self.fail(ApiFailure::TooLong);
        }
    }

    fn fail(&mut self, failure: ApiFailure) {
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
                self.fail(ApiFailure::Garbled(format!("not an event: {said:?}")));
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
        ended: std::result::Result<(), ResponseError>,
    ) -> Result<(ModelReply, Option<ApiFailure>)> {
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
    fn judge(&mut self, ended: std::result::Result<(), ResponseError>) -> Option<ApiFailure> {
        let way = match ended {
            Ok(()) => None,
            Err(ResponseError::Stopped) => return Some(ApiFailure::Stopped),
            Err(ResponseError::OverTime) => return Some(ApiFailure::OverTime),
            Err(ResponseError::Way(why)) => Some(message(&why)),
        };
        if let Some(failure) = self.failure.take().or(self.reply.failure.take()) {
            return Some(failure);
        }
        let in_the_middle = "the stream stopped in the middle";
        match (self.status, &self.reply.end) {
            (None, _) => {
                Some(ApiFailure::Unreachable(way.unwrap_or_else(|| "there was no answer".into())))
            }
            (Some(200), None) => Some(match (&self.sse.strange, way) {
                (Some(strange), _) => ApiFailure::Garbled(message(strange)),
                (None, None) => ApiFailure::Broken(in_the_middle.into()),
                (None, Some(why)) => ApiFailure::Broken(format!("{in_the_middle}: {why}")),
            }),
            (Some(200), Some(ReplyEnd::Whole)) => None,
            (Some(200), Some(ReplyEnd::Cut)) => Some(ApiFailure::Cut),
            (Some(200), Some(ReplyEnd::Declined(why))) => {
                Some(ApiFailure::Lasting(format!("declined: {why}")))
            }
            (Some(200), Some(ReplyEnd::Full(why))) => Some(ApiFailure::Full(why.clone())),
            (Some(status), _) => Some(refusal_of(status, &self.refusal, self.wait)),
        }
    }
}
