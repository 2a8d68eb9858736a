//! Sends a request to a server and receives the response piece by piece. The only HTTP client in
//! karve.
//!
//! The client blocks, so each request has its own thread, which ends with the request: at the end
//! of the turn's time at the latest. The caller polls the stop flag while it waits. Redirects are
//! not followed, because they would leak the key.

use super::key::ApiKey;
use karve_os::error::{CommandError, Result, WithContext};
use karve_os::files;
use karve_os::process::StopFlag;
use std::fmt;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};
use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};

/// How often the stop flag and the time are checked.
const TICK: Duration = Duration::from_millis(50);
/// How long connecting may take.
const CONNECT: Duration = Duration::from_secs(30);
/// A server that is silent for this long is given up; some think for minutes.
const SILENCE_MAX: Duration = Duration::from_secs(600);
/// Bytes that are read at once.
const PIECE_BYTES: usize = 16 << 10;
/// Pieces that wait to be processed.
const PIECES_MAX: usize = 4;
/// The variable that names certificates to trust instead of the built-in ones.
const CERTIFICATES: &str = "SSL_CERT_FILE";
/// The largest file of certificates.
const CERTIFICATES_BYTES_MAX: u64 = 16 << 20;

/// A piece of a response.
#[derive(Debug)]
pub(super) enum ResponsePart<'a> {
    /// Its head: the status, and how long the server asks to wait.
    Head(u16, Option<Duration>),
    /// A piece of its body.
    Piece(&'a [u8]),
}

/// Why a response is incomplete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ResponseError {
    /// The user stopped it.
    Stopped,
    /// The time limit passed.
    OverTime,
    /// The connection failed.
    Way(String),
}

/// What stops a request, and when.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestLimit<'a> {
    pub(super) stop: &'a StopFlag,
    pub(super) until: Instant,
}

impl RequestLimit<'_> {
    /// Why to stop waiting, if so.
    pub(super) fn is_over(&self) -> Option<ResponseError> {
        match self.stop.at_once() {
            true => Some(ResponseError::Stopped),
            false if Instant::now() >= self.until => Some(ResponseError::OverTime),
            false => None,
        }
    }

    /// Waits; returns why if it was interrupted.
    pub(super) fn wait(&self, wait: Duration) -> Option<ResponseError> {
        let end = Instant::now() + wait;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let over = self.is_over();
            if over.is_some() || left.is_zero() {
                return over;
            }
            std::thread::sleep(left.min(TICK));
        }
    }
}

/// A server, and the headers of every request to it.
pub(super) struct ApiClient {
    agent: ureq::Agent,
    base_url: String,
    headers: Vec<(&'static str, String)>,
}

impl fmt::Debug for ApiClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Headers contain the key.
        write!(f, "Client({})", self.base_url)
    }
}

enum ResponseMessage {
    Head(u16, Option<Duration>),
    Piece(Vec<u8>),
    Failed(String),
}

impl ApiClient {
    /// A server at an address; `headers` makes those that carry the key.
    pub(super) fn new(
        base_url: &str,
        key: Option<&ApiKey>,
        headers: fn(Option<&str>) -> Vec<(&'static str, String)>,
    ) -> Result<Self> {
        let tls = TlsConfig::builder().root_certs(roots()?).build();
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .timeout_connect(Some(CONNECT))
            .user_agent(concat!("karve/", env!("CARGO_PKG_VERSION")))
            .tls_config(tls)
            .build();
        Ok(Self {
            agent: config.into(),
            base_url: base_url.trim_end_matches('/').to_owned(),
            headers: headers(key.map(ApiKey::reveal)),
        })
    }

    /// Sends a request, and passes on the response until it ends or no more is wanted.
    pub(super) fn post(
        &self,
        path: &str,
        body: Vec<u8>,
        patience: RequestLimit<'_>,
        on: &mut dyn FnMut(ResponsePart<'_>) -> bool,
    ) -> std::result::Result<(), ResponseError> {
        let (sender, pieces) = sync_channel(PIECES_MAX);
        let left = patience.until.saturating_duration_since(Instant::now());
        let mut request = self
            .agent
            .post(format!("{}{path}", self.base_url))
            .config()
            .timeout_global(Some(left.max(TICK)))
            .build()
            .header("content-type", "application/json");
        for (name, value) in &self.headers {
            request = request.header(*name, value);
        }
        let asks = std::thread::Builder::new().name("karve-model".into());
        asks.spawn(move || stream_response(request, &body, &sender))
            .map_err(|error| ResponseError::Way(error.to_string()))?;
        pass_on(&pieces, patience, on).map_err(|lost| match lost {
            ResponseError::Way(why) => {
                ResponseError::Way(format!("{}: {why}", host_of(&self.base_url)))
            }
            lost @ (ResponseError::Stopped | ResponseError::OverTime) => lost,
        })
    }
}

/// The host and port of an address, without anything that may be secret.
fn host_of(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    authority.rsplit('@').next().unwrap_or(authority)
}

/// Certificates to trust: from a file that the user names, or the built-in ones.
fn roots() -> Result<RootCerts> {
    let Some(path) = std::env::var_os(CERTIFICATES).filter(|path| !path.is_empty()) else {
        return Ok(RootCerts::WebPki);
    };
    let path = Path::new(&path);
    let cannot = || format!("cannot read {}", path.display());
    let pem = files::read(path, CERTIFICATES_BYTES_MAX).context(cannot)?;
    let mut found = Vec::new();
    for item in parse_pem(&pem) {
        if let PemItem::Certificate(certificate) = item.context(cannot)? {
            found.push(certificate);
        }
    }
    match found.is_empty() {
        true => {
            Err(CommandError::environment(format!("{} contains no certificate", path.display()))
                .hint(format!("unset {CERTIFICATES}, or name a PEM file")))
        }
        false => Ok(RootCerts::Specific(Arc::new(found))),
    }
}

/// Sends a request, and forwards the response until the receiver is gone.
fn stream_response(
    request: ureq::RequestBuilder<ureq::typestate::WithBody>,
    body: &[u8],
    to: &SyncSender<ResponseMessage>,
) {
    let answer = match request.send(body) {
        Ok(answer) => answer,
        Err(error) => {
            let _ = to.send(ResponseMessage::Failed(error.to_string()));
            return;
        }
    };
    let wait = answer.headers().get("retry-after");
    let wait = wait.and_then(|value| seconds_of(value.to_str().ok()?));
    if to.send(ResponseMessage::Head(answer.status().as_u16(), wait)).is_err() {
        return;
    }
    let mut reader = answer.into_body().into_reader();
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let sent = match reader.read(&mut piece) {
            Ok(0) => return,
            Ok(n) => to.send(ResponseMessage::Piece(piece[..n].to_vec())),
            Err(error) => {
                let _ = to.send(ResponseMessage::Failed(error.to_string()));
                return;
            }
        };
        if sent.is_err() {
            return;
        }
    }
}

/// `retry-after` in seconds; a date is ignored.
fn seconds_of(value: &str) -> Option<Duration> {
    let seconds: f64 = value.trim().parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

fn pass_on(
    pieces: &Receiver<ResponseMessage>,
    patience: RequestLimit<'_>,
    on: &mut dyn FnMut(ResponsePart<'_>) -> bool,
) -> std::result::Result<(), ResponseError> {
    let mut heard = Instant::now();
    loop {
        let wanted = match pieces.recv_timeout(TICK) {
            Ok(ResponseMessage::Head(status, wait)) => on(ResponsePart::Head(status, wait)),
            Ok(ResponseMessage::Piece(bytes)) => on(ResponsePart::Piece(&bytes)),
            Ok(ResponseMessage::Failed(why)) => {
                return Err(patience.is_over().unwrap_or(ResponseError::Way(why)));
            }
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
            Err(RecvTimeoutError::Timeout) => {
                if heard.elapsed() >= SILENCE_MAX {
                    let s = SILENCE_MAX.as_secs();
                    return Err(ResponseError::Way(format!("the server sent nothing for {s} s")));
                }
                match patience.is_over() {
                    Some(lost) => return Err(lost),
                    None => continue,
                }
            }
        };
        heard = Instant::now();
        if !wanted {
            return Ok(());
        }
        if let Some(lost) = patience.is_over() {
            return Err(lost);
        }
    }
}
