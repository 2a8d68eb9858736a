//! Runs a command with a limit and bounded capture, and leaves no process behind.
//!
//! The only file of karve that starts processes. A command gets its own session, dies with karve,
//! and is killed together with all its descendants: over its limit, at a second Ctrl-C, and also
//! after a normal exit, when anything it left behind is killed and counted. The outcome is a
//! [`CommandOutcome`], whatever happened; an error means that it could not be started or waited
//! for. Only a [`CleanupProcess`] outlives karve, to undo one thing, and a [`Reaper`], to clean up.
//!
//! ```text
//! launch    command, environment, marks -> C strings, and why a start failed
//! line      which command lines need no shell
//! capture   what was printed, head and tail
//! watch     how a command is monitored until it ends
//! tree      which processes belong to a command, and how all of them are killed
//!   cgroup    the command's control group
//!   table     the processes in /proc
//! child_process a child process that runs alongside karve, exchanges messages, and can be frozen
//! fork_server   a process that forks such processes
//! piped     a child process that is read from and written to while it runs
//! cleanup   processes that outlive karve to undo one thing, or to clean up after it
//! namespace namespaces that commands enter, and what is visible there
//! confinement  what one command may do
//!   ruleset   which files, for Landlock
//!   filter    which system calls, for seccomp
//! worker_profile  what a worker drops before it loads a kernel
//! sys       system calls; the only unsafe code, including the start of a child
//! ```

mod affinity;
mod capture;
mod cgroup;
mod child_process;
mod cleanup;
mod confinement;
mod excerpt;
mod exit;
mod filter;
mod fork_server;
mod launch;
mod line;
mod namespace;
mod permissions;
mod piped;
mod readable;
mod ruleset;
mod stop;
#[allow(unsafe_code)]
mod sys;
mod table;
mod tree;
mod watch;
mod worker_profile;

use std::ffi::{CStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use self::capture::{CapturedStream, OutputCopy};
use self::cgroup::CommandCgroup;
use self::launch::ExecCommand;
use self::sys::{ParentDeathAction, SpawnError, SpawnSpec};
use self::tree::{BeforeStart, ProcessTree};
use self::watch::{FinishedProcess, OutputWatch, WatchEnd};
use self::worker_profile::WorkerProfile;
use crate::error::{CommandError, Result, WithContext};

pub use self::affinity::AffinityGuard;
pub use self::capture::{CapturedOutput, OutputTap};
pub use self::child_process::{ChildProcess, ReceiveResult, StopResult};
pub use self::cleanup::{CleanupProcess, Reaper, start_detached};
pub use self::confinement::{Confinement, ConfinementSupport, EnvPolicy};
pub use self::excerpt::excerpt;
pub use self::exit::{ExceededLimit, Exit};
pub use self::fork_server::ForkServer;
pub use self::namespace::{
    BindMount, MountAccess, NamespaceSandbox, NamespaceView, OverlayDir, has_accelerators,
    is_accelerator,
};
pub use self::permissions::{CommandPermissions, ResourceLimits};
pub use self::piped::{PipedProcess, ProcessPipes};
pub use self::readable::{DeviceAccess, ReadableTree};
pub use self::stop::StopFlag;
pub use self::watch::run_tapped;

/// Permanently drops, for this process, what no kernel needs: writing files, reading what is not in
/// its tree, other processes, the clocks and priorities of the host, and root's capabilities. For a
/// worker, before it loads a kernel from this file.
pub fn give_up(kernel: &CStr, tree: &ReadableTree) {
    worker_profile::apply_profile(kernel, tree);
}

/// The same for a program that is not karve, which applies it to itself before it loads a kernel:
/// as JSON, for `runner/worker.py`.
pub fn worker_profile_text(tree: &ReadableTree) -> String {
    serde_json::to_string(&WorkerProfile::of_host(tree)).unwrap_or_default()
}

/// The default for how much of each stream is kept.
pub const CAPTURE_BYTES: usize = 4 << 20;

/// The default time limit of a command.
pub const LIMIT_DEFAULT: Duration = Duration::from_secs(600);

/// The variable that names the run in the environment of a command.
pub const RUN_MARK: &str = "KARVE_RUN";

/// The variable that names the campaign in the environment of a command.
pub const CAMPAIGN_MARK: &str = "KARVE_CAMPAIGN";

/// How the names of all variables of karve start.
const OWN_VARIABLES: &str = "KARVE_";

/// A command to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// What to execute.
    pub program: Program,
    /// The working directory; a relative program path with a slash is resolved from here.
    pub dir: PathBuf,
    /// Variables to set, on top of karve's environment.
    pub env: Vec<(String, String)>,
    /// Variables to remove from karve's environment, before others are set.
    pub env_remove: Vec<String>,
    /// Which variables of karve's environment it gets if it is not confined; all if absent.
    pub variables: Option<EnvPolicy>,
    /// Whether it must not notice karve by its environment.
    pub unaware: bool,
    /// The contents of its standard input; empty if absent.
    pub stdin: Option<Vec<u8>>,
    /// How long it may run.
    pub limit: Duration,
    /// How much of each stream is kept.
    pub capture_bytes: usize,
    /// The campaign it belongs to, for [`end_tagged`]; may be empty.
    pub tag: String,
    /// The CPUs it and its descendants may run on; karve's own if empty.
    pub cpus: Vec<usize>,
    /// What it may do; the same as karve if absent.
    pub confinement: Option<Confinement>,
    /// Memory limit in bytes if it is not confined; no limit if absent.
    pub memory_bytes: Option<u64>,
    /// The file that its output is also written to while it runs, for whoever watches.
    pub shown_in: Option<PathBuf>,
}

/// What to execute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Program {
    /// A line for `sh -c`.
    Shell(String),
    /// A program, found on the `PATH` of the command, and its arguments.
    Argv(Vec<OsString>),
    /// A line for `sh -c`, run without a shell if none is needed.
    Line(String),
}

impl Command {
    /// A line for `sh -c`.
    pub fn shell(line: impl Into<String>, dir: &Path) -> Self {
        Self::new(Program::Shell(line.into()), dir)
    }

    /// A line for `sh -c` that is started without a shell if it is only a program with arguments.
    /// The effect is the same; a signal that killed the program is reported as such, not as a code.
    pub fn line(line: impl Into<String>, dir: &Path) -> Self {
        Self::new(Program::Line(line.into()), dir)
    }

    /// A program and its arguments.
    pub fn argv<A: Into<OsString>>(args: impl IntoIterator<Item = A>, dir: &Path) -> Self {
        Self::new(Program::Argv(args.into_iter().map(Into::into).collect()), dir)
    }

    fn new(program: Program, dir: &Path) -> Self {
        Self {
            program,
            dir: dir.to_owned(),
            env: Vec::new(),
            env_remove: Vec::new(),
            variables: None,
            unaware: false,
            stdin: None,
            limit: LIMIT_DEFAULT,
            capture_bytes: CAPTURE_BYTES,
            tag: String::new(),
            cpus: Vec::new(),
            confinement: None,
            memory_bytes: None,
            shown_in: None,
        }
    }

    /// Sets a variable.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// Removes a variable from karve's environment.
    #[must_use]
    pub fn env_remove(mut self, name: impl Into<String>) -> Self {
        self.env_remove.push(name.into());
        self
    }

    /// Passes on no variable of karve, except those that are set. Without namespaces it still gets
    /// the marks by which what it leaves behind is found.
    #[must_use]
    pub fn unaware(mut self) -> Self {
        self.unaware = true;
        self
    }

    /// Sets its standard input.
    #[must_use]
    pub fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = Some(bytes.into());
        self
    }

    /// Sets how long it may run.
    #[must_use]
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Sets the campaign it belongs to.
    #[must_use]
    pub fn tag(mut self, tag: impl Into<String>) -> Self {
        self.tag = tag.into();
        self
    }

    /// Pins it to some CPUs, counted from 0. If one of them does not exist or is not allowed, it
    /// does not start.
    #[must_use]
    pub fn pin(mut self, cpus: &[usize]) -> Self {
        self.cpus = cpus.to_vec();
        self
    }

    /// Confines it.
    #[must_use]
    pub fn confined(mut self, confinement: &Confinement) -> Self {
        self.confinement = Some(confinement.clone());
        self
    }

    /// Sets how much of each stream is kept.
    #[must_use]
    pub fn capture_bytes(mut self, bytes: usize) -> Self {
        self.capture_bytes = bytes;
        self
    }

    /// Also writes its output to a file while it runs; one that cannot be written is left out.
    #[must_use]
    pub fn shown_in(mut self, path: PathBuf) -> Self {
        self.shown_in = Some(path);
        self
    }

    fn bounds(&self) -> ResourceLimits {
        let free =
            ResourceLimits { memory_sum_bytes: self.memory_bytes, ..ResourceLimits::default() };
        self.confinement.as_ref().map_or(free, Confinement::bounds)
    }

    /// Its name in messages.
    fn name(&self) -> String {
        match &self.program {
            Program::Shell(_) | Program::Line(_) => "sh".into(),
            Program::Argv(args) => {
                args.first().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
            }
        }
    }
}

/// How a command went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandOutcome {
    /// How it ended.
    pub exit: Exit,
    /// From just before its start until its exit was noticed, or until karve decided to kill it.
    pub wall: Duration,
    /// User and system time of the command and of the descendants that were waited for.
    pub cpu: Duration,
    /// The largest resident set among them; never below that of karve when it forked.
    pub max_rss_bytes: u64,
    /// What it printed.
    pub stdout: CapturedOutput,
    /// What it printed to stderr.
    pub stderr: CapturedOutput,
    /// Descendants that outlived the command and were killed. Zero if the command itself was
    /// killed, because then all of them were killed together.
    pub orphans: u32,
}

/// Runs a command to its end, and kills any process it leaves behind.
///
/// Any number of threads may call this at once. An error means that the command could not be
/// started or waited for.
pub fn run(command: &Command, stop: &StopFlag) -> Result<CommandOutcome> {
    run_with(command, stop, LAYERS)
}

/// Kills every process on this machine that was started for the tag, and its descendants, which is
/// needed after karve itself was killed; returns how many.
///
/// Never kills this process or an ancestor of it, and does nothing for an empty tag.
pub fn end_tagged(tag: &str) -> u32 {
    if tag.is_empty() { 0 } else { tree::end_tagged(tag) }
}

/// Kills every process that a dead karve process started, and its descendants; returns how many.
/// That karve is identified by its process id and its mark; see [`own_mark`].
pub fn end_of_karve(pid: u32, mark: &str) -> u32 {
    if mark.is_empty() { 0 } else { tree::end_of_karve(pid, mark) }
}

/// A permanent identifier of this karve process, unlike its process id.
pub fn own_mark() -> &'static str {
    launch::own_mark()
}

/// Finds a program on the `PATH`; a name with a slash is taken as a path.
pub fn find_program(name: &str) -> Option<PathBuf> {
    launch::find_program(name)
}

/// The words of a command line, if no shell is needed to split it.
pub fn plain_words(line: &str) -> Option<Vec<String>> {
    line::words(line)
}

/// Whether this process was started to forward a signal.
pub fn ignores(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

/// Which kernel features to use if available; tests disable them.
#[derive(Clone, Copy, Debug)]
struct KernelFeatures {
    cgroup: bool,
    pidfd: bool,
}

/// All kernel features.
const LAYERS: KernelFeatures = KernelFeatures { cgroup: true, pidfd: true };

fn run_with(command: &Command, stop: &StopFlag, layers: KernelFeatures) -> Result<CommandOutcome> {
    match (run_once(command, stop, layers, None), &command.program) {
        // A shell runs a script without a shebang line, and reports what is wrong in its own words.
        (Err(RunError::Refused(_)), Program::Line(line)) => {
            let by_shell = Command { program: Program::Shell(line.clone()), ..command.clone() };
            run_once(&by_shell, stop, layers, None)
        }
        (result, _) => result,
    }
    .map_err(RunError::into_error)
}

/// Why a command did not run to its end.
enum RunError {
    /// The kernel refuses to execute its program.
    Refused(CommandError),
    /// Anything else.
    Other(CommandError),
}

impl RunError {
    fn into_error(self) -> CommandError {
        match self {
            Self::Refused(error) | Self::Other(error) => error,
        }
    }
}

impl From<CommandError> for RunError {
    fn from(error: CommandError) -> Self {
        Self::Other(error)
    }
}

fn run_once(
    command: &Command,
    stop: &StopFlag,
    layers: KernelFeatures,
    tap: Option<OutputTap<'_>>,
) -> std::result::Result<CommandOutcome, RunError> {
    let cannot_prepare = || format!("cannot prepare {}", command.name());
    sys::become_subreaper();
    let mark = launch::fresh_mark();
    let launch = ExecCommand::new(command, &mark)?;
    let stdin = open_stdin(command).context(cannot_prepare)?;
    let (stdout, stdout_end) =
        CapturedStream::new(command.capture_bytes).context(cannot_prepare)?;
    let (stderr, stderr_end) =
        CapturedStream::new(command.capture_bytes).context(cannot_prepare)?;
    let leaf = if layers.cgroup { CommandCgroup::for_tag(&command.tag) } else { None };
    let confinement = command.confinement.as_ref();
    let copy = command.shown_in.as_ref().and_then(|path| OutputCopy::create(path).ok());
    let (stdout, stderr) = (stdout.copied(copy.clone()), stderr.copied(copy));
    let mut watch = OutputWatch::new(stdout.tapped(tap), stderr);
    let before = BeforeStart::look();
    let mut child = sys::spawn(&SpawnSpec {
        program: &launch.program,
        argv: &launch.argv,
        env: &launch.env,
        dir: &launch.dir,
        streams: [stdin.as_fd(), stdout_end.as_fd(), stderr_end.as_fd()],
        cgroup: leaf.as_ref().map(CommandCgroup::fd),
        cpus: launch.cpus.as_deref(),
        death: ParentDeathAction::WithKarve,
        namespace: confinement.and_then(Confinement::namespace),
        profile: confinement.map(Confinement::sandbox_profile),
    })
    .map_err(|error| {
        let why = launch::spawn_error(command, &error);
        match error {
            SpawnError::Execute(_) => RunError::Refused(why),
            _ => RunError::Other(why),
        }
    })?;
    drop((stdin, stdout_end, stderr_end));
    child.pidfd = child.pidfd.filter(|_| layers.pidfd);
    let namespace = confinement.and_then(Confinement::namespace);
    let tree = ProcessTree::new(child, mark, leaf).in_namespace(namespace.map(|of| of.pid));
    let mut tree = tree.after(before);
    let end = watch.until_end(&tree, command.limit, command.bounds(), stop);
    // Before any error is returned: nothing may be left running.
    let orphans = match &end {
        Ok((WatchEnd::Itself, _)) => tree.end_orphans(),
        Ok((WatchEnd::TimedOut | WatchEnd::Stopped | WatchEnd::TooMuch(_), _)) | Err(_) => {
            tree.end();
            0
        }
    };
    let pid = tree.child().pid;
    let (status, usage) = tree.finish().map_err(|cause| cannot_wait(command, pid, &cause))?;
    let (end, wall) = end.map_err(|cause| cannot_wait(command, pid, &cause))?;
    Ok(watch.finish(FinishedProcess { exit: exit(end, status), wall, usage, orphans }))
}

/// Makes the next command that maps a file read it from disk again. How a file is laid out in
/// memory depends on how it was written, and a program written by a linker starts measurably
/// slower than its copy.
pub fn forget_pages(path: &Path) {
    let plain = std::fs::symlink_metadata(path).is_ok_and(|data| data.is_file());
    if plain && let Ok(file) = File::open(path) {
        // Only pages that are already on disk can be dropped.
        let _ = file.sync_data();
        sys::forget_pages(&file);
    }
}

/// Its standard input: a file in memory, so that no thread must feed a pipe that may not be read.
fn open_stdin(command: &Command) -> io::Result<File> {
    match &command.stdin {
        None => File::open("/dev/null"),
        Some(bytes) => sys::file_in_memory(bytes),
    }
}

fn cannot_wait(command: &Command, pid: sys::Pid, cause: &io::Error) -> CommandError {
    CommandError::environment(format!("cannot wait for {}", command.name()))
        .cause(cause)
        .hint(format!("see \"ps -o pid,stat,wchan:32,args -p {pid}\""))
}

fn exit(end: WatchEnd, status: i32) -> Exit {
    match end {
        WatchEnd::TimedOut => Exit::TimedOut,
        WatchEnd::Stopped => Exit::Stopped,
        WatchEnd::TooMuch(what) => Exit::TooMuch(what),
        WatchEnd::Itself => match sys::parse_status(status) {
            Ok(code) => Exit::Code(code),
            Err(signal) => Exit::Signal(signal),
        },
    }
}

#[cfg(test)]
mod tests;
