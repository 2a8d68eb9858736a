//! Commands that run in the copy of a project: karve itself, or any line.

use super::Performed;
use super::tools::FarTools;
use crate::remote::wire::{Outcome, TaskEnd};
use karve_harness::git::{Oid, Repo};
use karve_os::device::lease;
use karve_os::error::{CommandError, ErrorKind, Result, WithContext as _};
use karve_os::process::{self, Command, Exit};
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

/// How long a karve command may run.
const KARVE_LIMIT: Duration = Duration::from_secs(24 * 3_600);
/// The largest file that is given back, in bytes.
const FILE_BYTES_MAX: u64 = 64 << 20;
/// The most files that are given back.
const FILES_MAX: usize = 500;

/// Who holds which device.
pub(super) fn leases() -> Outcome {
    Outcome::Leases { leases: lease::held() }
}

/// A command in the copy of a project.
pub(super) struct CopyRun<'a> {
    pub(super) tools: &'a FarTools,
    /// The commit with the files of the checkout.
    pub(super) files: Oid,
    /// Passes output on; the flag is for stderr.
    pub(super) say: &'a dyn Fn(bool, &[u8]),
}

impl CopyRun<'_> {
    /// Runs karve.
    pub(super) fn run_karve(
        &self,
        head: &Oid,
        dir: &str,
        args: &[String],
        end: &mut TaskEnd,
    ) -> Performed {
        let place = show(&self.tools.repo, head, &self.files, dir)?;
        let program = fs::read_link("/proc/self/exe").context(|| "cannot find karve".into())?;
        let argv = std::iter::once(program.into_os_string()).chain(args.iter().map(Into::into));
        self.finish(&Command::argv(argv, &place).limit(KARVE_LIMIT), end)
    }

    /// Runs a line.
    pub(super) fn run_line(
        &self,
        head: &Oid,
        dir: &str,
        (line, limit_s): (&str, u64),
        end: &mut TaskEnd,
    ) -> Performed {
        let place = show(&self.tools.repo, head, &self.files, dir)?;
        self.finish(&Command::shell(line, &place).limit(Duration::from_secs(limit_s)), end)
    }

    /// Runs a command, passes its output on, and attaches the files that it changed.
    fn finish(&self, command: &Command, end: &mut TaskEnd) -> Performed {
        let mut tap = |bytes: &[u8]| {
            (self.say)(false, bytes);
            true
        };
        let ran = process::run_tapped(command, &self.tools.stop, &mut tap)?;
        (self.say)(true, &ran.stderr.bytes);
        let code = match ran.exit {
            Exit::Code(code) => code,
            Exit::Signal(signal) => 128 + signal,
            Exit::TimedOut => 124,
            Exit::Stopped | Exit::TooMuch(_) => 130,
        };
        let repo = &self.tools.repo;
        let mut attached = Vec::new();
        for name in repo.changed_since(&self.files, &index_of(repo))? {
            let path = repo.root().join(&name);
            let is_small = fs::symlink_metadata(&path)
                .is_ok_and(|meta| meta.is_file() && meta.len() <= FILE_BYTES_MAX);
            if is_small && attached.len() < FILES_MAX {
                attached.push(fs::read(&path).context(|| format!("cannot read {name}"))?);
                end.files.push(name);
            }
        }
        Ok((Outcome::Exited { code }, attached))
    }
}

/// Checks the files out, and returns the directory to work in.
pub(super) fn show(repo: &Repo, head: &Oid, files: &Oid, dir: &str) -> Result<PathBuf> {
    let plain = Path::new(dir).components().all(|part| matches!(part, Component::Normal(_)));
    if !plain {
        return Err(CommandError::new(ErrorKind::Bug, "an odd directory"));
    }
    repo.show(head, files, &index_of(repo))?;
    Ok(repo.root().join(dir))
}

fn index_of(repo: &Repo) -> PathBuf {
    repo.common_dir().join("karve-index")
}
