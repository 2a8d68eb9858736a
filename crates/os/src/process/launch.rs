//! From a [`Command`] to what the kernel needs: program, arguments and environment as C strings.

use std::collections::BTreeMap;
use std::ffi::{CString, OsStr, OsString};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};
use std::{env, io, path};

use super::sys::{CPUS_MAX, CpuMask, SpawnError};
use super::{CAMPAIGN_MARK, Command, Confinement, OWN_VARIABLES, Program, RUN_MARK, line};
use crate::error::{CommandError, Result};

/// The shell of [`Program::Shell`], which every Linux system has here.
const SHELL: &str = "/bin/sh";

/// Where programs are looked for if there is no `PATH`.
const PATH_DEFAULT: &str = "/usr/local/bin:/usr/bin:/bin";

/// Variables and their values.
type EnvMap = BTreeMap<OsString, OsString>;

/// A command as C strings.
pub(super) struct ExecCommand {
    pub(super) program: CString,
    pub(super) argv: Vec<CString>,
    pub(super) env: Vec<CString>,
    pub(super) dir: CString,
    pub(super) cpus: Option<Box<CpuMask>>,
}

impl ExecCommand {
    /// Prepares a command that carries the mark, or none if the mark is empty.
    pub(super) fn new(command: &Command, mark: &str) -> Result<Self> {
        let mut env = environment(command, mark);
        let (program, argv) = match &command.program {
            Program::Shell(line) => by_shell(line),
            Program::Argv(args) => (locate(args, &env, &command.dir)?, args.clone()),
            Program::Line(line) => match without_shell(line, &env, &command.dir) {
                Some(found) => {
                    set_pwd(&mut env, &command.dir);
                    found
                }
                None => by_shell(line),
            },
        };
        let variables = env.into_iter().map(|(mut variable, value)| {
            variable.push("=");
            variable.push(value);
            variable
        });
        Ok(Self {
            program: c_string(program.into(), command)?,
            argv: argv.into_iter().map(|arg| c_string(arg, command)).collect::<Result<_>>()?,
            env: variables.map(|variable| c_string(variable, command)).collect::<Result<_>>()?,
            dir: c_string(command.dir.clone().into(), command)?,
            cpus: cpu_mask(command)?,
        })
    }
}

fn by_shell(line: &str) -> (PathBuf, Vec<OsString>) {
    let argv = ["sh", "-c", line].map(OsString::from);
    (PathBuf::from(SHELL), argv.to_vec())
}

/// The program and arguments of a line that needs no shell, and whose program exists. If it does
/// not, the shell gives the best error message.
fn without_shell(line: &str, env: &EnvMap, dir: &Path) -> Option<(PathBuf, Vec<OsString>)> {
    // Some shells import functions from there, and a function may have any name.
    let has_functions = |name: &OsString| name.as_encoded_bytes().starts_with(b"BASH_FUNC_");
    if env.keys().any(has_functions) {
        return None;
    }
    let argv: Vec<OsString> = line::words(line)?.into_iter().map(Into::into).collect();
    let program = locate(&argv, env, dir).ok()?;
    is_executable(&dir.join(&program)).then_some((program, argv))
}

/// Sets `PWD` as a shell does when it starts: it is kept if it is another name of the directory.
fn set_pwd(env: &mut EnvMap, dir: &Path) {
    let place = |path: &Path| path.metadata().ok().map(|data| (data.dev(), data.ino()));
    let is_right = env.get(OsStr::new("PWD")).is_some_and(|pwd| {
        let pwd = Path::new(pwd);
        pwd.is_absolute() && place(pwd) == place(dir)
    });
    if !is_right && let Ok(dir) = dir.canonicalize() {
        env.insert("PWD".into(), dir.into());
    }
}

/// karve's environment with the changes of the command; the marks come last, so that nothing
/// can remove them before the command starts.
fn environment(command: &Command, mark: &str) -> EnvMap {
    let mut env: EnvMap = env::vars_os().collect();
    let confined = command.confinement.as_ref().map(Confinement::variables);
    if let Some(variables) = confined.or(command.variables.as_ref()) {
        env.retain(|name, _| name.to_str().is_some_and(|name| variables.pass(name)));
        env.extend(variables.set.iter().map(|(name, value)| (name.into(), value.into())));
    }
    for name in &command.env_remove {
        env.remove(OsStr::new(name));
    }
    if command.unaware {
        env.retain(|name, _| !name.to_string_lossy().starts_with(OWN_VARIABLES));
    }
    for (name, value) in &command.env {
        env.insert(name.into(), value.into());
    }
    let in_namespace = command.confinement.as_ref().is_some_and(|c| c.namespace().is_some());
    if mark.is_empty() || (command.unaware && in_namespace) {
        env.remove(OsStr::new(RUN_MARK));
        env.remove(OsStr::new(CAMPAIGN_MARK));
        return env;
    }
    env.insert(RUN_MARK.into(), mark.into());
    if !command.tag.is_empty() {
        env.insert(CAMPAIGN_MARK.into(), (&command.tag).into());
    }
    env
}

/// A unique mark for a run: that of this karve process and a number. All of them have the same
/// length, so that a forked process can replace its mark.
pub(super) fn fresh_mark() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("{}-{count:08}", own_mark())
}

/// The unique prefix of the marks of all runs of this karve process. Inside another run it starts
/// with that run's mark, so that the outer karve finds what an inner one left behind.
pub(super) fn own_mark() -> &'static str {
    static MARK: OnceLock<String> = OnceLock::new();
    MARK.get_or_init(|| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let own = format!("{}-{:x}", std::process::id(), now.as_nanos());
        match env::var(RUN_MARK) {
            Ok(outer) if !outer.is_empty() => format!("{outer}/{own}"),
            Ok(_) | Err(_) => own,
        }
    })
}

/// Finds the program of an argument list, in the `PATH` that the command will have.
fn locate(args: &[OsString], env: &EnvMap, dir: &Path) -> Result<PathBuf> {
    let Some(name) = args.first().filter(|name| !name.is_empty()) else {
        return Err(CommandError::usage("cannot start a command without a program")
            .hint("name the program in karve.toml"));
    };
    if name.as_encoded_bytes().contains(&b'/') {
        return Ok(name.into());
    }
    let searched = env.get(OsStr::new("PATH")).map_or(OsStr::new(PATH_DEFAULT), |path| path);
    // Absolute, because the child has already changed its directory when it looks.
    let found = find_in(name, searched, dir).and_then(|file| path::absolute(file).ok());
    found.ok_or_else(|| {
        let name = name.to_string_lossy();
        CommandError::environment(format!("cannot start {name}"))
            .cause("no such program on the PATH")
            .hint(format!("install {name}, or write its full path in karve.toml"))
    })
}

/// Looks a program up in the `PATH` of karve; a name with a slash is taken as a path.
pub(super) fn find_program(name: &str) -> Option<PathBuf> {
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(|file| is_executable(file));
    }
    let path = env::var_os("PATH").unwrap_or_else(|| PATH_DEFAULT.into());
    find_in(OsStr::new(name), &path, Path::new("."))
}

/// A relative entry is resolved from `dir`.
fn find_in(name: &OsStr, path: &OsStr, dir: &Path) -> Option<PathBuf> {
    if name.is_empty() {
        return None;
    }
    env::split_paths(path).map(|entry| dir.join(entry).join(name)).find(|file| is_executable(file))
}

fn is_executable(file: &Path) -> bool {
    file.metadata().is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}

/// The CPUs that a command is pinned to; none if it may run where karve may.
fn cpu_mask(command: &Command) -> Result<Option<Box<CpuMask>>> {
    if command.cpus.is_empty() {
        return Ok(None);
    }
    match mask_of(&command.cpus) {
        None => Err(cannot_pin(command)),
        mask => Ok(mask),
    }
}

/// CPUs as the kernel takes them; none if one of them cannot exist.
pub(super) fn mask_of(cpus: &[usize]) -> Option<Box<CpuMask>> {
    let mut mask = Box::new([0; CPUS_MAX / 64]);
    for &cpu in cpus {
        *mask.get_mut(cpu / 64)? |= 1_u64 << (cpu % 64);
    }
    Some(mask)
}

fn cannot_pin(command: &Command) -> CommandError {
    let cpus: Vec<String> = command.cpus.iter().map(usize::to_string).collect();
    CommandError::environment(format!("cannot start {}", command.name()))
        .cause(format!("cannot pin it to CPU {}", cpus.join(", ")))
        .hint("see \"nproc\" and \"grep Cpus_allowed_list /proc/self/status\" for the allowed CPUs")
}

fn c_string(text: OsString, command: &Command) -> Result<CString> {
    CString::new(text.into_vec()).map_err(|cause| {
        CommandError::usage(format!("cannot start {}", command.name()))
            .cause(cause)
            .hint("remove the zero byte from the command or its env in karve.toml")
    })
}

/// Explains why a command did not start, and what to do.
pub(super) fn spawn_error(command: &Command, error: &SpawnError) -> CommandError {
    let name = command.name();
    let dir = command.dir.display();
    let message = format!("cannot start {name}");
    match error {
        SpawnError::Fork(cause) => CommandError::environment(message)
            .cause(cause)
            .hint("see \"ulimit -u\" and \"free -m\": the machine cannot run another process"),
        SpawnError::Prepare(cause) => CommandError::environment(message)
            .cause("its session or streams cannot be set up")
            .cause(cause)
            .hint("see \"man setsid\", \"man prctl\" and \"man dup2\": a sandbox may forbid one"),
        SpawnError::Confine(cause) => CommandError::environment(message)
            .cause("it cannot be confined")
            .cause(cause)
            .hint("run \"karve doctor\" to see what the host offers; sandbox.mode in karve.toml"),
        SpawnError::Pin(cause) => cannot_pin(command).cause(cause),
        SpawnError::Enter(cause) => CommandError::environment(message)
            .cause(format!("cannot enter {dir}"))
            .cause(cause)
            .hint(format!("see \"ls -ld {dir}\"")),
        SpawnError::Execute(cause) => {
            CommandError::environment(message).cause(cause).hint(match cause.kind() {
                io::ErrorKind::NotFound => {
                    format!("check that {name} and the interpreter in its first line exist")
                }
                io::ErrorKind::PermissionDenied => format!("run \"chmod +x {name}\""),
                io::ErrorKind::ArgumentListTooLong => {
                    "pass long input through stdin or a file, not as arguments".into()
                }
                _ => format!("see \"file {name}\"; a script needs a first line like #!/bin/sh"),
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variable<'a>(launch: &'a ExecCommand, name: &str) -> Vec<&'a str> {
        let lines = launch.env.iter().filter_map(|v| v.to_str().ok());
        lines.filter_map(|v| v.strip_prefix(name)?.strip_prefix('=')).collect()
    }

    #[test]
    fn the_marks_cannot_be_overridden() {
        let command = Command::shell("true", Path::new("/"))
            .env(RUN_MARK, "forged")
            .env(CAMPAIGN_MARK, "forged")
            .tag("t");
        let launch = ExecCommand::new(&command, "m").unwrap();
        assert_eq!(variable(&launch, RUN_MARK), ["m"]);
        assert_eq!(variable(&launch, CAMPAIGN_MARK), ["t"]);
    }

    #[test]
    fn a_variable_is_removed_before_others_are_set() {
        let command = Command::shell("true", Path::new("/"))
            .env_remove("PATH")
            .env_remove("HOME")
            .env("HOME", "/nowhere");
        let launch = ExecCommand::new(&command, "m").unwrap();
        assert!(variable(&launch, "PATH").is_empty());
        assert_eq!(variable(&launch, "HOME"), ["/nowhere"]);
    }

    #[test]
    fn marks_differ() {
        assert_ne!(fresh_mark(), fresh_mark());
    }

    #[test]
    fn a_relative_entry_of_the_path_counts_from_the_directory() {
        let found = find_in(OsStr::new("sh"), OsStr::new("nowhere:bin"), Path::new("/"));
        assert_eq!(found, Some(PathBuf::from("/bin/sh")));
    }

    #[test]
    fn a_directory_is_no_program() {
        assert_eq!(find_in(OsStr::new("bin"), OsStr::new("/usr"), Path::new("/")), None);
        assert_eq!(find_in(OsStr::new(""), OsStr::new("/bin"), Path::new("/")), None);
    }
}
