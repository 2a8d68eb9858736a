//! How a failed request is classified, and whether the failure is transient. Pure; when to retry is
//! decided in `karve_core::asking`.

use super::http::ResponseError;
use crate::cli::turn_output::{TurnFailure, message};
use karve_core::asking::retry::{RetryCause, StatusMeaning, meaning_of};
use serde_json::Value;
use std::time::Duration;

/// Error codes for a conversation that is too long.
const FULL_CODES: [&str; 3] =
    ["context_length_exceeded", "exceed_context_size_error", "request_too_large"];
/// Phrases for the same if there is no code.
const FULL_WORDS: [&str; 6] = [
    "prompt is too long",
    "maximum context length",
    "context length exceeded",
    "context window",
    "exceeds the maximum number of tokens",
    "exceeds the available context size",
];
/// Codes of refusals that waiting does not fix, whatever their status.
const LASTING_CODES: [&str; 2] = ["insufficient_quota", "billing_hard_limit_reached"];
/// Types of transient errors in a stream.
const PASSING_TYPES: [&str; 9] = [
    "overloaded_error",
    "rate_limit_error",
    "rate_limit_exceeded",
    "api_error",
    "server_error",
    "timeout_error",
    "INTERNAL",
    "RESOURCE_EXHAUSTED",
    "UNAVAILABLE",
];

/// Why a request has no response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ApiFailure {
    /// The server refused, perhaps temporarily.
    Passing(String, Option<Duration>),
    /// The server refused permanently.
    Lasting(String),
    /// The conversation is too long.
    Full(String),
    /// The server could not be reached.
    Unreachable(String),
    /// The stream stopped in the middle.
    Broken(String),
    /// The data is not one of the API's events.
    Garbled(String),
    /// The response is longer than an answer may be.
    TooLong,
    /// The response is longer than `max_tokens`.
    Cut,
    /// The response exceeds the storage limit.
    Flooded(u64),
    /// The turn has no time left.
    OverTime,
    /// The user stopped it.
    Stopped,
}

impl ApiFailure {
    /// The final fault, after this many retries.
    pub(super) fn into_turn_failure(self, limit_s: u64, retries: u32) -> TurnFailure {
        let reported = |said: String| match retries {
            0 => said,
            n => format!("{said}, asked {} times", n + 1),
        };
        match self {
            Self::Passing(said, _) | Self::Lasting(said) => TurnFailure::Api(reported(said)),
            Self::Full(said) => TurnFailure::Context(said),
            Self::Unreachable(said) => {
                TurnFailure::Api(reported(format!("cannot be reached: {said}")))
            }
            Self::Broken(said) => TurnFailure::NoResult(reported(said)),
            Self::Garbled(said) => TurnFailure::Malformed(reported(said)),
            Self::TooLong => TurnFailure::TooLong,
            Self::Cut => TurnFailure::Cut,
            Self::Flooded(bytes) => TurnFailure::Flooded(bytes),
            Self::OverTime => TurnFailure::OverTime(limit_s),
            Self::Stopped => TurnFailure::Killed("stopped by the user".into()),
        }
    }

    /// Whether it is transient, and how long the server asks to wait.
    pub(super) fn missed(&self) -> RetryCause {
        match self {
            Self::Passing(_, wait) => RetryCause::Passing(wait.unwrap_or_default()),
            Self::Unreachable(_) | Self::Broken(_) | Self::Garbled(_) => {
                RetryCause::Passing(Duration::ZERO)
            }
            Self::Lasting(_)
            | Self::Full(_)
            | Self::TooLong
            | Self::Cut
            | Self::Flooded(_)
            | Self::OverTime
            | Self::Stopped => RetryCause::Lasting,
        }
    }
}

impl From<ResponseError> for ApiFailure {
    fn from(lost: ResponseError) -> Self {
        match lost {
            ResponseError::Stopped => Self::Stopped,
            ResponseError::OverTime => Self::OverTime,
            ResponseError::Way(why) => Self::Unreachable(why),
        }
    }
}

/// Classifies a response with a status other than 200.
pub(super) fn refusal_of(status: u16, body: &[u8], wait: Option<Duration>) -> ApiFailure {
    let parsed = serde_json::from_slice::<Value>(body).unwrap_or_default();
    // One API responds with a list of one.
    let parsed = parsed.get(0).cloned().unwrap_or(parsed);
    let error = parsed.get("error").unwrap_or(&parsed);
    let said = described(error);
    let said = match said.is_empty() {
        true => message(&String::from_utf8_lossy(body)),
        false => said,
    };
    let reported = message(&format!("{status} {said}"));
    let lasts = codes(error).any(|code| LASTING_CODES.contains(&code));
    match meaning_of(status.into()) {
        StatusMeaning::MayBeTooLong if is_full(error, &said) => ApiFailure::Full(reported),
        StatusMeaning::Passes if !lasts => ApiFailure::Passing(reported, wait),
        StatusMeaning::MayBeTooLong | StatusMeaning::Passes | StatusMeaning::Lasts => {
            ApiFailure::Lasting(reported)
        }
    }
}

/// Classifies an error reported in the stream.
pub(super) fn stream_failure(error: &Value) -> ApiFailure {
    let said = described(error);
    if is_full(error, &said) {
        return ApiFailure::Full(said);
    }
    let by_name = codes(error).any(|code| PASSING_TYPES.contains(&code));
    let number = error.get("code").and_then(Value::as_u64);
    let by_number = number.map(meaning_of) == Some(StatusMeaning::Passes);
    match by_name || by_number {
        true => ApiFailure::Passing(said, None),
        false => ApiFailure::Lasting(said),
    }
}

fn codes(error: &Value) -> impl Iterator<Item = &str> {
    let names = ["code", "type", "status"];
    names.into_iter().filter_map(move |name| error.get(name).and_then(Value::as_str))
}

fn described(error: &Value) -> String {
    let code = codes(error).next().unwrap_or_default();
    let said = match error {
        Value::String(said) => said.as_str(),
        _ => error.get("message").and_then(Value::as_str).unwrap_or(""),
    };
    message(&format!("{code} {said}"))
}

fn is_full(error: &Value, said: &str) -> bool {
    let said = said.to_lowercase();
    codes(error).any(|code| FULL_CODES.contains(&code))
        || FULL_WORDS.iter().any(|words| said.contains(words))
}
