//! The relay on another machine: it holds a worker while the line to it is lost.
//!
//! Each line attaches to a relay that outlives it. The relay passes on whole frames, so that a
//! dropped line never leaves half a message behind. If no line comes back within the grace period,
//! it closes the worker's input, and the worker ends its work.

use super::wire::read_raw_frame;
use crate::ui;
use karve_os::error::{CommandError, Result, WithContext};
use karve_os::files::sha256_hex;
use karve_os::process::{Command, PipedProcess, ProcessPipes, start_detached};
use karve_os::sync::locked;
use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, PipeWriter, Read, Write};
use std::net::Shutdown;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use std::{env, process, thread};

/// How long a relay may take to start.
const START_LIMIT: Duration = Duration::from_secs(20);
/// How long the worker may take to end once its input is closed.
const END_LIMIT: Duration = Duration::from_secs(30);
/// A line that takes nothing for this long is lost.
const WRITE_LIMIT: Duration = Duration::from_secs(20);
/// How often the lines are counted.
const GLANCE: Duration = Duration::from_millis(200);

/// Where the relay of a session listens. The name is short: socket names are.
fn socket_of(dir: &Path, session: &str) -> Result<PathBuf> {
    let dir = dir.join("lines");
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&dir)
        .context(|| format!("cannot create {}", dir.display()))?;
    Ok(dir.join(&sha256_hex(session.as_bytes())[..16]))
}

/// Attaches standard input and output to the relay of a session, which is started if it does not
/// run yet.
pub fn attach(dir: &Path, session: &str, grace_s: u64, worker: &[String]) -> Result<()> {
    let socket = socket_of(dir, session)?;
    let stream = match UnixStream::connect(&socket) {
        Ok(stream) => stream,
        Err(_) => {
            start(dir, session, grace_s, worker, &socket)?;
            let begin = Instant::now();
            loop {
                match UnixStream::connect(&socket) {
                    Ok(stream) => break stream,
                    Err(error) if begin.elapsed() > START_LIMIT => {
                        let said = fs::read_to_string(said_by(&socket)).unwrap_or_default();
                        return Err(CommandError::environment("the relay does not start")
                            .cause(error)
                            .cause(said.trim()));
                    }
                    Err(_) => thread::sleep(Duration::from_millis(5)),
                }
            }
        }
    };
    let cannot = || "cannot use the relay".to_owned();
    let mut to = stream.try_clone().context(cannot)?;
    thread::spawn(move || {
        let _ = copy(&mut io::stdin().lock(), &mut to);
        // The line is gone.
        let _ = to.shutdown(Shutdown::Both);
    });
    let mut from = stream;
    let _ = copy(&mut from, &mut ui::line().lock());
    // Why the worker ended, if it did.
    let said = fs::read_to_string(said_by(&socket)).unwrap_or_default();
    match said.trim() {
        "" => Ok(()),
        said => Err(CommandError::environment(said)),
    }
}

fn copy(from: &mut impl Read, to: &mut impl Write) -> io::Result<()> {
    let mut buffer = vec![0; 1 << 16];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(n) => {
                to.write_all(&buffer[..n])?;
                to.flush()?;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn said_by(socket: &Path) -> PathBuf {
    socket.with_extension("log")
}

/// Starts the relay as a process of its own.
fn start(dir: &Path, session: &str, grace_s: u64, worker: &[String], socket: &Path) -> Result<()> {
    let said = File::create(said_by(socket)).context(|| "cannot start the relay".into())?;
    let grace = grace_s.to_string();
    let args = ["relay".as_ref(), dir.as_os_str(), session.as_ref(), "--serve".as_ref()];
    let more: [&OsStr; 3] = ["--grace".as_ref(), grace.as_ref(), "--".as_ref()];
    let args: Vec<&OsStr> =
        args.into_iter().chain(more).chain(worker.iter().map(OsStr::new)).collect();
    start_detached(&args, &said)
}

/// The current line and since when there is none.
struct RelayLines {
    current: Option<(u64, UnixStream)>,
    none_since: Instant,
    count: u64,
}

/// Holds a worker until it ends, or until no line has come for the grace period.
pub fn serve(dir: &Path, session: &str, grace: Duration, worker: &[String]) -> Result<()> {
    let socket = socket_of(dir, session)?;
    let lock = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(socket.with_extension("lock"))
        .context(|| "cannot lock the relay".into())?;
    if lock.try_lock().is_err() {
        // Another line was faster.
        return Ok(());
    }
    let _ = fs::remove_file(&socket);
    let listener =
        UnixListener::bind(&socket).context(|| format!("cannot listen at {}", socket.display()))?;
    let home = env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_dir());
    let home = home.unwrap_or_else(|| PathBuf::from("/"));
    let (mut child, pipes) = PipedProcess::start(&Command::argv(worker, &home))?;
    let ProcessPipes { input, mut output } = pipes;
    let input = Arc::new(Mutex::new(Some(input)));
    let lines = RelayLines { current: None, none_since: Instant::now(), count: 0 };
    let lines = Arc::new(Mutex::new(lines));
    let (of_worker, of_listener) = (Arc::clone(&lines), Arc::clone(&lines));
    let to_worker = Arc::clone(&input);
    thread::spawn(move || accept(&listener, &of_listener, &to_worker));
    let worker_ended = thread::spawn(move || {
        while let Ok(Some(frame)) = read_raw_frame(&mut output) {
            let mut lines = locked(&of_worker);
            // Without a line it is dropped: the next line asks for what it needs.
            let passed = lines.current.as_mut().map(|(_, line)| line.write_all(&frame));
            if matches!(passed, Some(Err(_))) {
                lines.drop_current();
            }
        }
    });
    while !worker_ended.is_finished() {
        thread::sleep(GLANCE);
        let lines = locked(&lines);
        if lines.current.is_none() && lines.none_since.elapsed() > grace {
            break;
        }
    }
    *locked(&input) = None;
    let exit = child.end_within(END_LIMIT);
    let said = child.said();
    let _ = fs::remove_file(&socket);
    drop(lock);
    // Threads that wait for a line end with the process.
    match exit.success() {
        true => {
            let _ = fs::remove_file(said_by(&socket));
            process::exit(0)
        }
        false => {
            // Before the line is closed, so that who attached last learns why.
            let why = format!("the worker ended with {}: {}", exit.describe(), said.trim());
            let _ = fs::write(said_by(&socket), why);
            process::exit(1)
        }
    }
}

/// Takes every new line in place of the one before.
fn accept(
    listener: &UnixListener,
    lines: &Arc<Mutex<RelayLines>>,
    input: &Arc<Mutex<Option<PipeWriter>>>,
) {
    for stream in listener.incoming().flatten() {
        let Ok(mut reader) = stream.try_clone() else {
            continue;
        };
        let _ = stream.set_write_timeout(Some(WRITE_LIMIT));
        let number = {
            let mut lines = locked(lines);
            lines.drop_current();
            lines.count += 1;
            lines.current = Some((lines.count, stream));
            lines.count
        };
        let (lines, input) = (Arc::clone(lines), Arc::clone(input));
        thread::spawn(move || {
            while let Ok(Some(frame)) = read_raw_frame(&mut reader) {
                let mut input = locked(&input);
                let passed = input.as_mut().map(|input| input.write_all(&frame));
                if !matches!(passed, Some(Ok(()))) {
                    break;
                }
            }
            let mut lines = locked(&lines);
            if lines.current.as_ref().is_some_and(|(current, _)| *current == number) {
                lines.drop_current();
            }
        });
    }
}

impl RelayLines {
    fn drop_current(&mut self) {
        if let Some((_, line)) = self.current.take() {
            let _ = line.shutdown(Shutdown::Both);
        }
        self.none_since = Instant::now();
    }
}
