//! The line to a worker on another machine: karve copies itself there, and talks to itself.

use super::engine::{Allocation, Engine, exports, quoted, quoted_line};
use super::table::RemoteConfig;
use super::wire::{
    FromFar, Hello, MessageReader, ToFar, Welcome, WireError, WireMessage, write_message,
};
use karve_os::error::{CommandError, Result, WithContext};
use karve_os::files::sha256_file;
use karve_os::process::{self, Command, PipedProcess, StopFlag};
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, PipeWriter, Read};
use std::path::Path;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How long it may take until the far side speaks: a slow login, a new host.
const GREETING_LIMIT: Duration = Duration::from_secs(60);
/// How long copying karve may take.
const COPY_LIMIT: Duration = Duration::from_secs(600);
/// How much a login may print before the greeting.
const BANNER_BYTES_MAX: usize = 64 << 10;
/// A line without a sign of life for this long is dead.
const SILENCE_MAX: Duration = Duration::from_secs(20);
/// Messages that wait to be read.
const MESSAGES_MAX: usize = 64;
/// The program that is copied.
const PROGRAM: &str = "/proc/self/exe";

/// A line to a worker.
#[derive(Debug)]
pub(super) struct Line {
    process: PipedProcess,
    input: PipeWriter,
    messages: Receiver<io::Result<WireMessage<FromFar>>>,
    heard: Instant,
}

/// What was heard.
#[derive(Debug)]
pub(super) enum Heard {
    /// A message.
    Message(Box<WireMessage<FromFar>>),
    /// Nothing yet.
    Nothing,
    /// The line is dead, for this reason.
    Lost(String),
}

/// Why a worker gives no welcome.
#[derive(Debug)]
pub(super) enum Greeted {
    /// It does not answer.
    Silent(String),
    /// It cannot serve the project.
    Refused(WireError),
}

/// The digest of this program, by which the far side knows it.
pub(super) fn own_digest() -> Result<&'static str> {
    static DIGEST: OnceLock<String> = OnceLock::new();
    if let Some(digest) = DIGEST.get() {
        return Ok(digest);
    }
    let digest = sha256_file(Path::new(PROGRAM))?;
    Ok(DIGEST.get_or_init(|| digest))
}

/// What is held while karve is copied to a place, for each place.
type CopyLocks = BTreeMap<[Option<String>; 3], Arc<Mutex<()>>>;

/// The lock of a place.
fn copy_lock(config: &RemoteConfig) -> Arc<Mutex<()>> {
    static PLACES: Mutex<CopyLocks> = Mutex::new(BTreeMap::new());
    let mut places = PLACES.lock().unwrap_or_else(PoisonError::into_inner);
    Arc::clone(places.entry(config.place()).or_default())
}

/// Everything that a line is made from.
#[derive(Debug)]
pub(super) struct LineParts<'a> {
    pub(super) config: &'a RemoteConfig,
    pub(super) engine: &'a dyn Engine,
    pub(super) held: &'a Allocation,
    /// The name of the session on the far side.
    pub(super) session: &'a str,
}

impl LineParts<'_> {
    /// The first lines of every script: where karve is there, and its variables.
    fn preamble(&self) -> Result<String> {
        let dir = match &self.config.table.dir {
            Some(dir) => quoted(dir),
            None => "${XDG_CACHE_HOME:-$HOME/.cache}/karve".to_owned(),
        };
        let digest = own_digest()?;
        let env = exports(&self.config.table.env);
        Ok(format!("d={dir}\nb=$d/bin/karve-{digest}\n{env}"))
    }

    /// Says whether karve is there, and becomes the worker if it is.
    fn connecting(&self, greeting: &str) -> Result<String> {
        let bring = quoted_line(&self.engine.bring(self.held));
        let worker = format!("{bring} \"$b\" worker --remote \"$d\"");
        let started = match self.engine.may_drop() {
            true => {
                let (session, grace) = (quoted(self.session), self.config.grace.as_secs());
                format!("\"$b\" relay \"$d\" {session} --grace {grace} -- {worker}")
            }
            false => worker,
        };
        let preamble = self.preamble()?;
        Ok(format!(
            "{preamble}if [ -x \"$b\" ]; then echo {greeting} ready; exec {started}; fi\n\
             echo {greeting} missing \"$(uname -s) $(uname -m)\"\n"
        ))
    }

    /// Puts what comes in under karve's name, if its digest is right.
    fn copying(&self) -> Result<String> {
        let (preamble, digest) = (self.preamble()?, own_digest()?);
        Ok(format!(
            "{preamble}umask 077; t=$b.$$; trap 'rm -f \"$t\"' EXIT\n\
             mkdir -p \"$d/bin\" && cat > \"$t\" || exit 3\n\
             s=$(sha256sum < \"$t\") || exit 4\n\
             [ \"${{s%% *}}\" = {digest} ] || exit 5\n\
             chmod 700 \"$t\" && mv \"$t\" \"$b\"\n"
        ))
    }

    /// Opens a line, and copies karve first if it is not there.
    pub(super) fn open(&self, stop: &StopFlag) -> Result<Line> {
        if let Some(line) = self.connect(stop)? {
            return Ok(line);
        }
        // Devices with one directory get one copy.
        let place = copy_lock(self.config);
        let _copying = place.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(line) = self.connect(stop)? {
            return Ok(line);
        }
        self.copy(stop)?;
        self.connect(stop)?
            .ok_or_else(|| self.error("karve is not there after it was copied", String::new()))
    }

    /// Opens a line; none if karve is not there.
    fn connect(&self, stop: &StopFlag) -> Result<Option<Line>> {
        // A word that no banner contains.
        let greeting = format!("karve-{}", &own_digest()?[..16]);
        let command = self.engine.gate(self.held, &self.connecting(&greeting)?);
        let (process, pipes) = PipedProcess::start(&command)?;
        let (send, messages) = mpsc::sync_channel(MESSAGES_MAX);
        let (tell, told) = mpsc::sync_channel(1);
        let mut output = pipes.output;
        thread::spawn(move || {
            let greeted = greeting_in(&mut output, &greeting);
            let is_ready = matches!(greeted.as_deref(), Ok("ready"));
            let _ = tell.send(greeted);
            let mut reader = MessageReader::default();
            let mut goes_on = is_ready;
            while goes_on {
                let message = reader.read(&mut output).transpose();
                let message = message.unwrap_or(Err(io::ErrorKind::UnexpectedEof.into()));
                goes_on = message.is_ok();
                goes_on &= send.send(message).is_ok();
            }
        });
        let start = Instant::now();
        let greeted = loop {
            match told.recv_timeout(Duration::from_millis(50)) {
                Ok(greeted) => break greeted,
                Err(_) if start.elapsed() > GREETING_LIMIT || stop.at_once() => {
                    break Err(io::ErrorKind::TimedOut.into());
                }
                Err(_) => {}
            }
        };
        let mut line = Line { process, input: pipes.input, messages, heard: Instant::now() };
        match greeted.as_deref() {
            Ok("ready") => Ok(Some(line)),
            Ok(words) if words.starts_with("missing") => {
                self.check_machine(words.trim_start_matches("missing").trim())?;
                Ok(None)
            }
            Ok(_) | Err(_) => {
                let exit = line.process.end_within(Duration::from_millis(500));
                let said = line.process.said();
                let why = match (said.trim(), greeted) {
                    ("", Err(error)) if error.kind() == io::ErrorKind::TimedOut => {
                        format!("no answer within {} s", GREETING_LIMIT.as_secs())
                    }
                    ("", _) => format!("it ended with {}", exit.describe()),
                    (said, _) => said.to_owned(),
                };
                Err(self.error("cannot be reached", why))
            }
        }
    }

    /// The same program runs only on the same kind of machine.
    fn check_machine(&self, machine: &str) -> Result<()> {
        let own = format!("Linux {}", std::env::consts::ARCH);
        match machine == own {
            true => Ok(()),
            false => Err(self.error(
                &format!("is a {machine} machine, and this karve runs on {own}"),
                String::new(),
            )),
        }
    }

    /// Copies karve.
    fn copy(&self, stop: &StopFlag) -> Result<()> {
        let cannot = || "cannot read karve's own program".to_owned();
        let bytes = fs::read(PROGRAM).context(cannot)?;
        let command: Command = self.engine.gate(self.held, &self.copying()?);
        let ran = process::run(&command.stdin(bytes).limit(COPY_LIMIT), stop)?;
        match ran.exit.success() {
            true => Ok(()),
            false => Err(self
                .error("cannot take a copy of karve", process::excerpt(&ran))
                .hint(format!("name another directory in remote.{}.dir", self.config.name))),
        }
    }

    fn error(&self, what: &str, why: String) -> CommandError {
        let name = &self.config.name;
        let error = CommandError::environment(format!("{name} {what}"));
        let error = if why.is_empty() { error } else { error.cause(why) };
        let error = match self.engine.state(self.held) {
            Some(state) => error.cause(state),
            None => error,
        };
        error.hint(format!("try it yourself: {}", self.engine.by_hand(self.held)))
    }
}

/// Reads up to the line that starts with the greeting, and returns the rest of that line.
fn greeting_in(from: &mut impl Read, greeting: &str) -> io::Result<String> {
    let (mut line, mut seen, mut byte) = (Vec::new(), 0, [0]);
    while seen < BANNER_BYTES_MAX {
        if from.read(&mut byte)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        seen += 1;
        if byte[0] != b'\n' {
            line.push(byte[0]);
            continue;
        }
        let text = String::from_utf8_lossy(&line);
        if let Some(rest) = text.trim().strip_prefix(greeting) {
            return Ok(rest.trim().to_owned());
        }
        line.clear();
    }
    Err(io::ErrorKind::InvalidData.into())
}

impl Line {
    /// Says something.
    pub(super) fn say(&mut self, message: &WireMessage<ToFar>) -> io::Result<()> {
        write_message(&mut self.input, message)
    }

    /// Waits a little for a message.
    pub(super) fn hear(&mut self, limit: Duration) -> Heard {
        match self.messages.recv_timeout(limit) {
            Ok(Ok(message)) => {
                self.heard = Instant::now();
                Heard::Message(Box::new(message))
            }
            Ok(Err(error)) if error.kind() == io::ErrorKind::InvalidData => {
                Heard::Lost(format!("it does not speak like karve: {error}"))
            }
            Ok(Err(_)) | Err(RecvTimeoutError::Disconnected) => Heard::Lost(self.last_words()),
            Err(RecvTimeoutError::Timeout) if self.heard.elapsed() > SILENCE_MAX => {
                Heard::Lost(format!("no sign of life for {} s", SILENCE_MAX.as_secs()))
            }
            Err(RecvTimeoutError::Timeout) => Heard::Nothing,
        }
    }

    /// What the line said at its end.
    fn last_words(&mut self) -> String {
        let exit = self.process.end_within(Duration::from_secs(2));
        match self.process.said().trim() {
            "" => format!("the line ended with {}", exit.describe()),
            said => said.lines().rev().take(3).collect::<Vec<_>>().join("; "),
        }
    }

    /// Introduces karve; the worker says what it already has.
    pub(super) fn greet(&mut self, hello: &Hello, stop: &StopFlag) -> Result<Welcome, Greeted> {
        let said = self.say(&ToFar::Hello(hello.clone()).into());
        said.map_err(|error| Greeted::Silent(error.to_string()))?;
        let start = Instant::now();
        while start.elapsed() < GREETING_LIMIT && !stop.at_once() {
            match self.hear(Duration::from_millis(50)) {
                Heard::Lost(why) => return Err(Greeted::Silent(why)),
                Heard::Message(message) => match message.body {
                    FromFar::Welcome(welcome) => return Ok(*welcome),
                    FromFar::Refused { error } => return Err(Greeted::Refused(error)),
                    _ => {}
                },
                Heard::Nothing => {}
            }
        }
        Err(Greeted::Silent("the worker does not answer".to_owned()))
    }

    /// Ends it: the far side is told, and given a moment.
    pub(super) fn close(mut self) {
        if self.say(&ToFar::Goodbye.into()).is_ok() {
            let end = Instant::now() + Duration::from_secs(10);
            while Instant::now() < end {
                if matches!(self.hear(Duration::from_millis(20)), Heard::Lost(_)) {
                    return;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_banner_before_the_greeting_is_skipped_and_bounded() {
        let mut text = &b"Welcome!\n  * news\nkarve-1 ready\n=rest"[..];
        assert_eq!(greeting_in(&mut text, "karve-1").unwrap(), "ready");
        assert_eq!(text, b"=rest");
        let endless = vec![b'x'; BANNER_BYTES_MAX + 1];
        assert!(greeting_in(&mut &endless[..], "karve-1").is_err());
    }
}
