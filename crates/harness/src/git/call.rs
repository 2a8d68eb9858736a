//! One launcher for git: which environment it sees, which options it gets, what its failure means.
//!
//! The user's and the repository's configuration stay in force, because they say how files are
//! checked out (line endings, filters, trusted owners). Everything that would run other programs,
//! write in the background, or make two runs differ is turned off.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use karve_os::error::{CommandError, Result};
use karve_os::process::{Command, Exit, StopFlag, run};

use super::{CommitNote, Oid};

/// The longest a call may take: a checkout of a very large tree on a slow disk.
const LIMIT_S: u64 = 900;

/// The largest output of a call: the patch or the listing of a very large tree.
const ANSWER_BYTES_MAX: usize = 256 << 20;

/// How much of git's own error message is shown.
const COMPLAINT_CHARS_MAX: usize = 2000;

/// Variables that redirect git to another repository, index or configuration, or that change
/// what it prints; a hook or a test that starts karve may have set any of them.
const ENV_REMOVED: [&str; 32] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_INDEX_VERSION",
    "GIT_COMMON_DIR",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_QUARANTINE_PATH",
    "GIT_CONFIG",
    "GIT_CONFIG_PARAMETERS",
    "GIT_CONFIG_COUNT",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
    "GIT_SHALLOW_FILE",
    "GIT_GRAFT_FILE",
    "GIT_REPLACE_REF_BASE",
    "GIT_INTERNAL_SUPER_PREFIX",
    "GIT_ATTR_SOURCE",
    "GIT_EXTERNAL_DIFF",
    "GIT_DIFF_OPTS",
    "GIT_TEMPLATE_DIR",
    "GIT_DEFAULT_HASH",
    "GIT_DEFAULT_REF_FORMAT",
    "GIT_GLOB_PATHSPECS",
    "GIT_NOGLOB_PATHSPECS",
    "GIT_ICASE_PATHSPECS",
    "GIT_TRACE",
    "GIT_TRACE_SETUP",
    "GIT_AUTHOR_DATE",
    "GIT_COMMITTER_DATE",
    "LANGUAGE",
];

/// Variables set for each call.
const ENV: [(&str, &str); 10] = [
    ("LC_ALL", "C"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    // A replaced object would show a different tree than the one named.
    ("GIT_NO_REPLACE_OBJECTS", "1"),
    // Treat file names such as ":(top)x" literally.
    ("GIT_LITERAL_PATHSPECS", "1"),
    ("GIT_PAGER", "cat"),
    ("GIT_AUTHOR_NAME", "karve"),
    ("GIT_AUTHOR_EMAIL", "karve@localhost"),
    ("GIT_COMMITTER_NAME", "karve"),
    ("GIT_COMMITTER_EMAIL", "karve@localhost"),
];

/// Settings given to each call.
const SETTINGS: [&str; 14] = [
    "core.hooksPath=/dev/null",
    // Empty, not "false": before git 2.36 the value is the name of a program.
    "core.fsmonitor=",
    "core.untrackedCache=false",
    "core.splitIndex=false",
    // A worktree always holds the whole tree, even if the user's checkout does not.
    "core.sparseCheckout=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "commit.gpgSign=false",
    "i18n.commitEncoding=UTF-8",
    "submodule.recurse=false",
    "log.showSignature=false",
    "init.defaultBranch=main",
    "worktree.useRelativePaths=false",
    "apply.ignoreWhitespace=no",
];

/// One git call under construction.
pub(super) struct GitCall {
    dir: PathBuf,
    options: Vec<OsString>,
    args: Vec<OsString>,
    env: Vec<(String, String)>,
    stdin: Option<Vec<u8>>,
}

/// The outcome of a call that is allowed to fail.
pub(super) struct GitOutput {
    pub(super) code: i32,
    pub(super) stdout: Vec<u8>,
    pub(super) complaint: String,
}

impl GitCall {
    /// A call that lets git find the repository from a directory.
    pub(super) fn found_from(dir: &Path) -> Self {
        Self { dir: dir.into(), options: vec![], args: vec![], env: vec![], stdin: None }
    }

    /// A call on a named repository, without a checkout or an index.
    pub(super) fn on(git_dir: &Path) -> Self {
        let mut call = Self::found_from(git_dir);
        let mut option = OsString::from("--git-dir=");
        option.push(git_dir);
        call.options.push(option);
        // A file that never exists is an empty index; so no attributes of a checkout apply.
        call.env.push(("GIT_INDEX_FILE".into(), "/karve-has-no-index-here".into()));
        call
    }

    /// Names the checkout and works in it.
    pub(super) fn work_tree(mut self, work_tree: &Path) -> Self {
        let mut option = OsString::from("--work-tree=");
        option.push(work_tree);
        self.options.push(option);
        self.dir = work_tree.into();
        self
    }

    /// Names the index.
    pub(super) fn index(mut self, index: &Path) -> Result<Self> {
        let name = index.to_str().ok_or_else(|| {
            CommandError::environment(format!("the name of {} is not UTF-8", index.display()))
                .hint("set TMPDIR to another directory")
        })?;
        let name = name.to_owned();
        self.env.retain(|(key, _)| key != "GIT_INDEX_FILE");
        Ok(self.env("GIT_INDEX_FILE", name))
    }

    /// Uses the index of the repository itself.
    pub(super) fn own_index(mut self) -> Self {
        self.env.retain(|(key, _)| key != "GIT_INDEX_FILE");
        self
    }

    /// Adds a setting.
    pub(super) fn setting(mut self, setting: impl Into<OsString>) -> Self {
        self.options.push("-c".into());
        self.options.push(setting.into());
        self
    }

    /// Sets a variable, overriding one set for each call.
    pub(super) fn env(mut self, key: &str, value: impl Into<String>) -> Self {
        self.env.push((key.into(), value.into()));
        self
    }

    /// Adds an argument.
    pub(super) fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.args.push(arg.as_ref().into());
        self
    }

    /// Adds arguments.
    pub(super) fn args<const N: usize>(mut self, args: [&str; N]) -> Self {
        self.args.extend(args.iter().map(OsString::from));
        self
    }

    /// Sets its standard input.
    pub(super) fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = Some(bytes.into());
        self
    }

    /// Sets the date of what it writes.
    pub(super) fn dated(self, note: &CommitNote<'_>) -> Self {
        // The sign keeps git from reading a small number as a calendar date.
        let date = format!("@{} +0000", note.date.max(0));
        self.env("GIT_AUTHOR_DATE", date.clone()).env("GIT_COMMITTER_DATE", date)
    }

    /// Runs it; a failure of git is a valid outcome.
    pub(super) fn ask(self) -> Result<GitOutput> {
        let what = self.describe();
        let ran = run(&self.into_command(), &StopFlag::default()).map_err(explain_missing)?;
        if ran.stdout.truncated() {
            return Err(CommandError::environment(format!(
                "{what} printed more than {ANSWER_BYTES_MAX} bytes"
            )));
        }
        let code = match ran.exit {
            Exit::Code(127) if !git_is_on_path() => return Err(missing()),
            Exit::Code(code) => code,
            Exit::Signal(signal) => {
                return Err(CommandError::environment(format!(
                    "{what} was killed by signal {signal}"
                )));
            }
            Exit::TimedOut => {
                let message = format!("{what} did not end within {LIMIT_S} seconds");
                return Err(CommandError::environment(message));
            }
            Exit::Stopped | Exit::TooMuch(_) => {
                return Err(CommandError::environment(format!("{what} was stopped")));
            }
        };
        let complaint = ran.stderr.text().trim().chars().take(COMPLAINT_CHARS_MAX).collect();
        Ok(GitOutput { code, stdout: ran.stdout.bytes, complaint })
    }

    /// Runs it; a failure of git is an error.
    pub(super) fn output(self) -> Result<Vec<u8>> {
        let what = self.describe();
        let answer = self.ask()?;
        if answer.code != 0 {
            return Err(answer.into_error(format!("{what} failed")));
        }
        Ok(answer.stdout)
    }

    /// Runs it for its effect.
    pub(super) fn effect(self) -> Result<()> {
        self.output().map(drop)
    }

    /// Runs it for an object name.
    pub(super) fn oid(self) -> Result<Oid> {
        let what = self.describe();
        let line = one_line(self.output()?);
        Oid::parse(&String::from_utf8_lossy(&line))
            .ok_or_else(|| CommandError::environment(format!("{what} printed no object name")))
    }

    fn describe(&self) -> String {
        let name = self.args.first().map(|arg| arg.to_string_lossy().into_owned());
        format!("git {}", name.unwrap_or_default())
    }

    fn into_command(self) -> Command {
        let mut argv: Vec<OsString> = vec!["git".into(), "--no-pager".into()];
        for setting in SETTINGS {
            argv.push("-c".into());
            argv.push(setting.into());
        }
        argv.extend(self.options);
        argv.extend(self.args);
        let mut command = Command::argv(argv, &self.dir)
            .limit(Duration::from_secs(LIMIT_S))
            .capture_bytes(ANSWER_BYTES_MAX);
        for (key, value) in ENV {
            if !self.env.iter().any(|(own, _)| own == key) {
                command = command.env(key, value);
            }
        }
        for (key, value) in self.env {
            command = command.env(key, value);
        }
        // A name is either set or removed, so the order does not matter.
        command.env_remove = ENV_REMOVED
            .iter()
            .filter(|name| !command.env.iter().any(|(key, _)| key == *name))
            .map(|name| (*name).to_owned())
            .collect();
        if let Some(bytes) = self.stdin {
            command = command.stdin(bytes);
        }
        command
    }
}

impl GitOutput {
    /// The error for a failed call.
    pub(super) fn into_error(self, message: impl Into<String>) -> CommandError {
        let error = CommandError::environment(message);
        if self.complaint.is_empty() {
            return error.cause(format!("exit code {}", self.code));
        }
        error.cause(self.complaint)
    }
}

/// The output without the one newline that git appends.
pub(super) fn one_line(mut bytes: Vec<u8>) -> Vec<u8> {
    if bytes.last() == Some(&b'\n') {
        bytes.pop();
    }
    bytes
}

/// The NUL-terminated parts of the output.
pub(super) fn nul_separated(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split(|byte| *byte == 0).filter(|part| !part.is_empty())
}

/// A path as text; the few names that are not UTF-8 are shown with replacement characters.
pub(super) fn text(path: &[u8]) -> String {
    String::from_utf8_lossy(path).into_owned()
}

/// Distinguishes a missing git from other reasons why a process cannot start, by looking for it.
fn explain_missing(error: CommandError) -> CommandError {
    if git_is_on_path() { error } else { missing() }
}

fn missing() -> CommandError {
    CommandError::environment("git is not installed, or not on the PATH")
        .hint("install git 2.30 or newer; \"git --version\" shows what is installed")
}

fn git_is_on_path() -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join("git").is_file())
}
