//! `karve exec` for an agent that karve drives: it asks karve over a socket, and karve asks the
//! worker of its campaign, so that nothing runs elsewhere than on the device that is held.
//!
//! The agent is not trusted: requests are few, small and in time, and output is cut.

use karve_os::error::{CommandError, Result, WithContext as _};
use karve_os::process::StopFlag;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsRawFd as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// The name of the socket in its directory.
const SOCKET: &str = "socket";
/// The longest request, in bytes.
const REQUEST_BYTES_MAX: usize = 64 << 10;
/// The longest reply, in bytes: output of both kinds, each character escaped.
const REPLY_BYTES_MAX: u64 = 16 << 20;
/// How much of each kind of output is kept, in bytes.
pub const EXEC_OUTPUT_MAX: usize = 128 << 10;
/// The most seconds that a command of an agent may run.
pub const EXEC_LIMIT_S: u64 = 600;
/// The most commands of one turn.
const EXECS_MAX: u32 = 200;
/// How long a request may take to arrive.
const ARRIVAL: Duration = Duration::from_secs(5);
/// How often the socket is looked at.
const GLANCE: Duration = Duration::from_millis(20);

/// What an agent asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecRequest {
    /// The words of the command.
    pub command: Vec<String>,
    /// The directory in its worktree.
    pub dir: String,
    /// Seconds that it may run.
    pub limit_s: u64,
}

/// A command in a copy of an agent's files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecTask {
    /// The commit with the files.
    pub commit: String,
    /// The directory in it.
    pub dir: String,
    /// The command, for a shell.
    pub line: String,
    /// Seconds that it may run.
    pub limit_s: u64,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecRun {
    /// The exit code.
    pub code: i32,
    /// What it printed, cut in the middle if that was much.
    pub stdout: String,
    /// The same for errors.
    pub stderr: String,
}

/// What an agent hears.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ExecReply {
    Ran(ExecRun),
    Refused { why: String },
}

/// Listens in a directory of its own, which is made anew.
pub fn open(dir: &Path) -> Result<UnixListener> {
    let cannot = || format!("cannot listen in {}", dir.display());
    let _ = fs::remove_dir_all(dir);
    fs::create_dir_all(dir).context(cannot)?;
    // The path of a socket must be short.
    let opened = File::open(dir).context(cannot)?;
    let short = format!("/proc/self/fd/{}/{SOCKET}", opened.as_raw_fd());
    let listener = UnixListener::bind(short).context(cannot)?;
    listener.set_nonblocking(true).context(cannot)?;
    Ok(listener)
}

/// Answers requests until it is over.
pub fn serve(
    listener: &UnixListener,
    over: &StopFlag,
    mut ask: impl FnMut(&ExecRequest) -> Result<ExecRun>,
) {
    let mut n = 0;
    while !over.at_once() {
        let Ok((stream, _)) = listener.accept() else {
            thread::sleep(GLANCE);
            continue;
        };
        n += 1;
        let reply = match read_request(&stream) {
            Err(why) => ExecReply::Refused { why: format!("the request is not usable: {why}") },
            Ok(_) if n > EXECS_MAX => {
                ExecReply::Refused { why: format!("a turn has at most {EXECS_MAX} commands") }
            }
            Ok(request) => match ask(&request) {
                Ok(ran) => ExecReply::Ran(ran),
                Err(error) => ExecReply::Refused { why: error.to_string() },
            },
        };
        // An agent that does not listen any more has its own reasons.
        let _ = write_reply(&stream, &reply);
    }
}

fn read_request(mut stream: &UnixStream) -> io::Result<ExecRequest> {
    let until = Instant::now() + ARRIVAL;
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(ARRIVAL))?;
    let (mut text, mut part) = (Vec::new(), [0; 4096]);
    loop {
        let n = stream.read(&mut part)?;
        text.extend_from_slice(&part[..n]);
        if n == 0 {
            return Ok(serde_json::from_slice(&text)?);
        }
        if text.len() > REQUEST_BYTES_MAX || Instant::now() > until {
            return Err(io::Error::new(ErrorKind::InvalidData, "it is too long, or too slow"));
        }
    }
}

fn write_reply(mut stream: &UnixStream, reply: &ExecReply) -> io::Result<()> {
    stream.set_write_timeout(Some(ARRIVAL))?;
    stream.write_all(&serde_json::to_vec(reply)?)
}

/// Asks the karve that drives this agent. The directory is entered, because the path of a socket
/// must be short.
pub fn ask(dir: &Path, request: &ExecRequest) -> Result<ExecRun> {
    let cannot = || "cannot ask the karve that drives this agent".to_owned();
    std::env::set_current_dir(dir).context(cannot)?;
    let mut stream = UnixStream::connect(SOCKET).context(cannot)?;
    let text = serde_json::to_vec(request).context(cannot)?;
    stream.write_all(&text).context(cannot)?;
    stream.shutdown(std::net::Shutdown::Write).context(cannot)?;
    let mut text = Vec::new();
    stream.take(REPLY_BYTES_MAX).read_to_end(&mut text).context(cannot)?;
    match serde_json::from_slice(&text).context(cannot)? {
        ExecReply::Ran(ran) => Ok(ran),
        ExecReply::Refused { why } => Err(CommandError::environment(why)
            .hint("\"karve exec -- COMMAND\" runs one short command at a time")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is heard when some bytes are sent.
    fn heard(dir: &Path, bytes: &[u8]) -> String {
        let mut stream = UnixStream::connect(dir.join(SOCKET)).unwrap();
        let _ = stream.write_all(bytes);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut text = String::new();
        let _ = stream.read_to_string(&mut text);
        text
    }

    #[test]
    fn whatever_an_agent_sends_is_answered_within_bounds() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("x");
        let listener = open(&place).unwrap();
        let over = StopFlag::new();
        thread::scope(|scope| {
            scope.spawn(|| {
                serve(&listener, &over, |request| {
                    let stdout = request.command.join(" ");
                    Ok(ExecRun { code: 0, stdout, stderr: String::new() })
                });
            });
            let request = br#"{"command":["a","b"],"dir":"","limit_s":1}"#;
            assert!(heard(&place, request).contains(r#""stdout":"a b""#));
            for garbage in [&b""[..], b"{", b"\xff\0\0", b"[1,2]", &vec![b'['; 1 << 20]] {
                let text = heard(&place, garbage);
                assert!(text.is_empty() || text.contains("refused"), "{text}");
            }
            // Gone at once, and then as before.
            drop(UnixStream::connect(place.join(SOCKET)).unwrap());
            assert!(heard(&place, request).contains("a b"));
            for _ in 0..EXECS_MAX {
                heard(&place, request);
            }
            assert!(heard(&place, request).contains("at most 200 commands"));
            over.request();
            over.request();
        });
    }
}
