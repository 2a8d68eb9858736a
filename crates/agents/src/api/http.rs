//! Asks a server and hears its answer piece by piece. The only file of karve that speaks HTTP as a
//! client.
//!
//! The client blocks, so each question has a thread of its own, which ends with its question: at
//! the end of the turn's time at the latest. Whoever waits looks at the stop flag all the while.
//! No redirect is followed, for a key would go along.

use super::key::Key;
use karve_os::error::{CommandError, Context, Result};
use karve_os::files;
use karve_os::process::StopFlag;
use std::fmt;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};
use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};

/// How often the stop flag and the time are looked at.
const TICK: Duration = Duration::from_millis(50);
/// How long a connection may take to come about.
const CONNECT: Duration = Duration::from_secs(30);
/// A server that says nothing for so long is given up; some think for minutes.
const SILENCE_MAX: Duration = Duration::from_secs(600);
/// Bytes that are read at once.
const PIECE_BYTES: usize = 16 << 10;
/// Pieces that wait to be heard.
const PIECES_MAX: usize = 4;
/// The variable that names certificates to trust instead of the built-in ones.
const CERTIFICATES: &str = "SSL_CERT_FILE";
/// The largest file of certificates.
const CERTIFICATES_BYTES_MAX: u64 = 16 << 20;

/// What comes of an answer.
#[derive(Debug)]
pub(super) enum Came<'a> {
    /// Its head: the status, and how long the server wants to be left alone.
    Head(u16, Option<Duration>),
    /// A piece of its body.
    Piece(&'a [u8]),
}

/// Why an answer did not come to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Lost {
    /// The user stopped it.
    Stopped,
    /// The time is over.
    OverTime,
    /// The way to the server, or back, failed.
    Way(String),
}

/// Who stops a question, and when.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience<'a> {
    pub(super) stop: &'a StopFlag,
    pub(super) until: Instant,
}

impl Patience<'_> {
    /// Why to wait no longer, if so.
    pub(super) fn is_over(&self) -> Option<Lost> {
        match self.stop.at_once() {
            true => Some(Lost::Stopped),
            false if Instant::now() >= self.until => Some(Lost::OverTime),
            false => None,
        }
    }

    /// Waits; tells why it did not to the end.
    pub(super) fn wait(&self, wait: Duration) -> Option<Lost> {
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

/// A server, and what every question to it carries.
pub(super) struct Client {
    agent: ureq::Agent,
    base_url: String,
    headers: Vec<(&'static str, String)>,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Headers hold the key.
        write!(f, "Client({})", self.base_url)
    }
}

enum Sent {
    Head(u16, Option<Duration>),
    Piece(Vec<u8>),
    Failed(String),
}

impl Client {
    /// A server at an address; `headers` makes those that carry the key.
    pub(super) fn new(
        base_url: &str,
        key: Option<&Key>,
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
            headers: headers(key.map(Key::reveal)),
        })
    }

    /// Asks, and passes on what comes until all came or no more is wanted.
    pub(super) fn post(
        &self,
        path: &str,
        body: Vec<u8>,
        patience: Patience<'_>,
        on: &mut dyn FnMut(Came<'_>) -> bool,
    ) -> std::result::Result<(), Lost> {
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
        asks.spawn(move || hear(request, &body, &sender))
            .map_err(|error| Lost::Way(error.to_string()))?;
        pass_on(&pieces, patience, on).map_err(|lost| match lost {
            Lost::Way(why) => Lost::Way(format!("{}: {why}", host_of(&self.base_url))),
            lost @ (Lost::Stopped | Lost::OverTime) => lost,
        })
    }
}

/// The host and port of an address, and nothing that may be secret in it.
fn host_of(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    authority.rsplit('@').next().unwrap_or(authority)
}

/// Certificates to trust: those of a file that the user names, or the built-in ones.
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
        true => Err(
            CommandError::environment(format!("{} has no certificate", path.display()))
                .hint(format!("unset {CERTIFICATES}, or name a file in PEM")),
        ),
        false => Ok(RootCerts::Specific(Arc::new(found))),
    }
}

/// Asks, and sends on what comes, until nobody listens any longer.
fn hear(
    request: ureq::RequestBuilder<ureq::typestate::WithBody>,
    body: &[u8],
    to: &SyncSender<Sent>,
) {
    let answer = match request.send(body) {
        Ok(answer) => answer,
        Err(error) => {
            let _ = to.send(Sent::Failed(error.to_string()));
            return;
        }
    };
    let wait = answer.headers().get("retry-after");
    let wait = wait.and_then(|value| seconds_of(value.to_str().ok()?));
    if to.send(Sent::Head(answer.status().as_u16(), wait)).is_err() {
        return;
    }
    let mut reader = answer.into_body().into_reader();
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let sent = match reader.read(&mut piece) {
            Ok(0) => return,
            Ok(n) => to.send(Sent::Piece(piece[..n].to_vec())),
            Err(error) => {
                let _ = to.send(Sent::Failed(error.to_string()));
                return;
            }
        };
        if sent.is_err() {
            return;
        }
    }
}

/// `retry-after` in seconds; a date is not read.
fn seconds_of(value: &str) -> Option<Duration> {
    let seconds: f64 = value.trim().parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

fn pass_on(
    pieces: &Receiver<Sent>,
    patience: Patience<'_>,
    on: &mut dyn FnMut(Came<'_>) -> bool,
) -> std::result::Result<(), Lost> {
    let mut heard = Instant::now();
    loop {
        let wanted = match pieces.recv_timeout(TICK) {
            Ok(Sent::Head(status, wait)) => on(Came::Head(status, wait)),
            Ok(Sent::Piece(bytes)) => on(Came::Piece(&bytes)),
            Ok(Sent::Failed(why)) => {
                return Err(patience.is_over().unwrap_or(Lost::Way(why)));
            }
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
            Err(RecvTimeoutError::Timeout) => {
                if heard.elapsed() >= SILENCE_MAX {
                    let s = SILENCE_MAX.as_secs();
                    return Err(Lost::Way(format!("nothing came for {s} s")));
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
