//! The worker on another machine: a replica of a project that performs what needs the device.
//!
//! It speaks frames on standard input and output. It has no agent, appends nothing to a log of its
//! own accord, and ends when its input ends.

mod campaign;
mod commands;
mod copies;
mod tools;
mod tuner;

use crate::remote::wire::{
    FromFar, Hello, MessageReader, Outcome, Task, TaskEnd, ToFar, Welcome, WireMessage,
    write_message,
};
use crate::ui;
use campaign::FarProject;
use karve_core::charter::{SandboxMode, SandboxRule};
use karve_os::device::{Notice, NoticeSink};
use karve_os::error::{CommandError, ErrorKind, Result};
use karve_os::process::{self, Command, StopFlag};
use karve_os::sync::locked;
use karve_os::{clock, host, sandbox};
use std::io;
use std::path::Path;
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// How often the worker says that it is alive.
const BEAT: Duration = Duration::from_secs(2);
/// How long giving the device back may take.
const WILL_LIMIT: Duration = Duration::from_secs(60);
/// Tasks that wait.
const TASKS_MAX: usize = 4;

/// The worker's side of the line, as all threads use it.
struct FarLine {
    /// Differs for each process.
    instance: String,
    output: Mutex<io::Stdout>,
    state: Mutex<LineState>,
}

/// What the worker is doing.
#[derive(Default)]
struct LineState {
    /// What stops the current task.
    stop: StopFlag,
    /// What ends a command of an agent, and nothing else.
    cancel: StopFlag,
    /// The current or last task.
    task: u64,
    /// The end of the last task, to be said again after a lost line.
    end: Option<WireMessage<FromFar>>,
    /// Gives the device back if the near side is gone for good.
    will: Option<String>,
}

/// What the main thread works through.
enum Incoming {
    Hello(Hello),
    Task(Box<Task>, Vec<Vec<u8>>),
    End,
}

impl FarLine {
    fn say(&self, message: &WireMessage<FromFar>) {
        // A line that is lost comes back through the relay, or the input ends.
        let _ = write_message(&mut *locked(&self.output), message);
    }
}

/// Serves a karve on another machine until it hangs up.
pub fn serve(dir: &Path) -> Result<()> {
    // Nobody removes this program meanwhile.
    let _program = copies::hold_program()?;
    let line = Arc::new(FarLine {
        instance: format!("{}-{}", std::process::id(), clock::now_ms()),
        output: Mutex::new(ui::line()),
        state: Mutex::new(LineState::default()),
    });
    let beating = Arc::clone(&line);
    thread::spawn(move || {
        loop {
            thread::sleep(BEAT);
            beating.say(&FromFar::Beat.into());
        }
    });
    let (send, incoming) = mpsc::sync_channel(TASKS_MAX);
    let listening = Arc::clone(&line);
    thread::spawn(move || listen(&listening, &send));
    let mut project = None;
    work(&line, &incoming, dir, &mut project);
    // What a campaign left here goes before the device does.
    drop(project);
    if let Some(will) = locked(&line.state).will.take() {
        let command = Command::shell(will, Path::new("/")).limit(WILL_LIMIT);
        let _ = process::run(&command, &StopFlag::new());
    }
    Ok(())
}

/// Hears what the near side says, also while a task runs.
fn listen(line: &FarLine, send: &mpsc::SyncSender<Incoming>) {
    let (mut input, mut reader) = (io::stdin().lock(), MessageReader::default());
    while let Ok(Some(message)) = reader.read::<ToFar>(&mut input) {
        let next = match message.body {
            ToFar::Hello(hello) if hello.instance == line.instance => {
                // The same karve after a lost line: its task goes on.
                line.say(&FromFar::Welcome(Box::new(Welcome::short(&line.instance))).into());
                continue;
            }
            ToFar::Hello(hello) => {
                stop_task(line);
                Incoming::Hello(hello)
            }
            ToFar::Resume { id } => {
                let state = locked(&line.state);
                let again = match &state.end {
                    Some(end) if state.task == id => end.clone(),
                    None if state.task == id => continue,
                    Some(_) | None => FromFar::Unknown { id }.into(),
                };
                drop(state);
                line.say(&again);
                continue;
            }
            ToFar::Stop => {
                stop_task(line);
                continue;
            }
            ToFar::Cancel => {
                end_now(&locked(&line.state).cancel);
                continue;
            }
            ToFar::Goodbye => {
                locked(&line.state).will = None;
                break;
            }
            ToFar::Task(task) => {
                let mut state = locked(&line.state);
                state.task = task.id;
                state.end = None;
                state.cancel = StopFlag::new();
                drop(state);
                Incoming::Task(task, message.attached)
            }
        };
        if send.send(next).is_err() {
            return;
        }
    }
    stop_task(line);
    let _ = send.send(Incoming::End);
}

fn stop_task(line: &FarLine) {
    let state = locked(&line.state);
    end_now(&state.stop);
    end_now(&state.cancel);
}

fn end_now(flag: &StopFlag) {
    flag.request();
    flag.request();
}

/// Works through what comes in.
fn work(
    line: &Arc<FarLine>,
    incoming: &Receiver<Incoming>,
    dir: &Path,
    project: &mut Option<FarProject>,
) {
    for next in incoming {
        match next {
            Incoming::End => return,
            Incoming::Hello(hello) => {
                // What an earlier karve started is over.
                *project = None;
                let stop = StopFlag::new();
                let mut state = locked(&line.state);
                state.stop = stop.clone();
                (state.task, state.end) = (0, None);
                state.will.clone_from(&hello.will);
                drop(state);
                let opened = FarProject::open(dir, &hello, &stop, &notices(line));
                let welcome = Welcome {
                    sandbox: sandbox::active(&SandboxRule {
                        mode: SandboxMode::Auto,
                        ..SandboxRule::default()
                    }),
                    host: host::name(),
                    ..match &opened {
                        Ok(project) => project.welcome(&line.instance),
                        Err(_) => Welcome::short(&line.instance),
                    }
                };
                match opened {
                    Ok(opened) => *project = Some(opened),
                    Err(error) => line.say(&FromFar::Refused { error: error.into() }.into()),
                }
                line.say(&FromFar::Welcome(Box::new(welcome)).into());
            }
            Incoming::Task(task, attached) => {
                let end = end_of(line, project.as_mut(), &task, attached);
                let mut state = locked(&line.state);
                state.end = Some(end.clone());
                drop(state);
                line.say(&end);
            }
        }
    }
}

fn end_of(
    line: &Arc<FarLine>,
    project: Option<&mut FarProject>,
    task: &Task,
    attached: Vec<Vec<u8>>,
) -> WireMessage<FromFar> {
    let mut end = TaskEnd::new(task.id);
    let done = match project {
        None => Err(CommandError::new(ErrorKind::Bug, "a task before a hello")),
        Some(project) => {
            let say = |stderr: bool, bytes: &[u8]| {
                let attached = vec![bytes.to_vec()];
                line.say(&WireMessage { body: FromFar::Output { stderr }, attached });
            };
            project.cancelled_by(&locked(&line.state).cancel);
            project.perform(task, attached, &mut end, &say)
        }
    };
    let mut files = Vec::new();
    match done {
        Ok((outcome, made)) => {
            end.outcome = Ok(outcome);
            files = made;
        }
        Err(error) => end.outcome = Err(error.into()),
    }
    WireMessage { body: FromFar::End(Box::new(end)), attached: files }
}

/// What a task gives back: its outcome, and the attachments.
type Performed = Result<(Outcome, Vec<Vec<u8>>)>;

fn notices(line: &Arc<FarLine>) -> NoticeSink {
    let line = Arc::clone(line);
    NoticeSink::new(move |notice| {
        let lasting = matches!(notice, Notice::Lasting(_));
        line.say(&FromFar::Notice { lasting, text: notice.text().to_owned() }.into());
    })
}
