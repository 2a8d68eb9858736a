//! Refs: read exactly, moved only from their expected position, never while the user has them
//! checked out.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io, thread};

use karve_os::error::{CommandError, Result, WithContext};

use super::call::{one_line, text};
use super::{Oid, Repo};

/// How long to wait for a lock on a ref to go away.
const LOCK_PAUSE: Duration = Duration::from_millis(300);

/// Where a ref must point for it to be moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpectedRef<'a> {
    /// It must not exist.
    Absent,
    /// It must point to this object.
    At(&'a Oid),
    /// It may point anywhere, or not exist.
    Any,
}

impl Repo {
    /// The object that a ref points to, by its full name.
    pub fn read_ref(&self, name: &str) -> Result<Option<Oid>> {
        // Not rev-parse, which would also find a tag named "refs/heads/x".
        let refs = self.list_refs(name)?;
        Ok(refs.into_iter().find(|(found, _)| found == name).map(|(_, oid)| oid))
    }

    /// The refs with a name, or below it as in a directory.
    pub fn list_refs(&self, prefix: &str) -> Result<Vec<(String, Oid)>> {
        let answer = self
            .call()
            .args(["for-each-ref", "--format=%(objectname) %(refname)", prefix])
            .output()?;
        let refs: Option<Vec<(String, Oid)>> = text(&answer)
            .lines()
            .map(|line| {
                let (oid, name) = line.split_once(' ')?;
                Some((name.to_owned(), Oid::parse(oid)?))
            })
            .collect();
        refs.ok_or_else(|| CommandError::environment("git for-each-ref printed unexpected output"))
    }

    /// Moves a ref, if it is at its expected position; nothing to do if it was moved already. A
    /// branch that is checked out somewhere is not moved, since its checkout would seem to undo it.
    pub fn update_ref(&self, name: &str, new: &Oid, expected: ExpectedRef<'_>) -> Result<()> {
        // If any position is fine, skip the check: each one starts a process.
        if expected != ExpectedRef::Any {
            let found = self.read_ref(name)?;
            if found.as_ref() == Some(new) {
                return Ok(());
            }
            if !expected.allows(found.as_ref()) {
                return Err(moved(name, expected, found.as_ref()));
            }
        }
        self.refuse_checked_out(name)?;
        let zero = new.zero();
        let call = self.call().args(["update-ref", "--no-deref", "-m", "karve", name]);
        let call = match expected {
            ExpectedRef::Absent => call.args([new.as_str(), zero.as_str()]),
            ExpectedRef::At(old) => call.args([new.as_str(), old.as_str()]),
            ExpectedRef::Any => call.arg(new.as_str()),
        };
        let answer = call.ask()?;
        if answer.code == 0 {
            return Ok(());
        }
        // Another process may have been faster; check the ref, not git's message.
        let found = self.read_ref(name)?;
        match &found {
            Some(found) if found == new => Ok(()),
            _ if !expected.allows(found.as_ref()) => Err(moved(name, expected, found.as_ref())),
            _ => Err(answer
                .into_error(format!("cannot move {name} to {}", new.short()))
                .hint(format!("\"git update-ref {name} {new}\" shows what is in the way"))),
        }
    }

    /// Deletes a ref, if it exists; a branch that is checked out somewhere stays.
    pub fn delete_ref(&self, name: &str) -> Result<()> {
        self.release_refs(name)?;
        self.refuse_checked_out(name)?;
        self.call().args(["update-ref", "--no-deref", "-d", name]).effect()
    }

    /// Removes the locks that a killed git left on a ref, or on the refs under a name.
    pub fn release_refs(&self, name: &str) -> Result<()> {
        let locks = locks_at(&self.common_dir.join(name));
        if locks.is_empty() {
            return Ok(());
        }
        // Such a lock is never held for long, so one that stays is a leftover.
        thread::sleep(LOCK_PAUSE);
        for lock in locks {
            match fs::remove_file(&lock) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(error).context(|| format!("cannot remove {}", lock.display()));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Refuses a name that git does not allow for a branch.
    pub fn check_branch_name(&self, branch: &str) -> Result<()> {
        let refused = || {
            CommandError::usage(format!("{branch:?} is not a valid branch name")).hint(
                "use letters, digits, \"-\", \"_\" and \"/\"; \"git help check-ref-format\" has \
                 the rules",
            )
        };
        if branch.starts_with('-') || branch.contains('\0') {
            return Err(refused());
        }
        let answer = self.call().args(["check-ref-format", "--branch", branch]).ask()?;
        // Git expands "@{-1}" to the previous branch; such a name means something else later.
        if answer.code != 0 || one_line(answer.stdout) != branch.as_bytes() {
            return Err(refused());
        }
        Ok(())
    }

    /// The checkout or worktree in which a branch, given by its short name, is checked out.
    pub fn checked_out(&self, branch: &str) -> Result<Option<PathBuf>> {
        let name = format!("refs/heads/{branch}");
        let answer = self
            .call()
            .args(["for-each-ref", "--format=%(refname)%00%(worktreepath)", &name])
            .output()?;
        let mut want = name.into_bytes();
        want.push(0);
        // The line of another ref below this name cannot start like this.
        let path =
            answer.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(&want[..]));
        Ok(path.filter(|path| !path.is_empty()).map(|path| OsStr::from_bytes(path).into()))
    }

    fn refuse_checked_out(&self, name: &str) -> Result<()> {
        let Some(branch) = name.strip_prefix("refs/heads/") else {
            return Ok(());
        };
        let Some(path) = self.checked_out(branch)? else {
            return Ok(());
        };
        let message = format!("the branch {branch} is checked out in {}", path.display());
        Err(CommandError::usage(message)
            .hint(format!("detach it: git -C {} switch --detach", path.display())))
    }
}

/// The lock of the ref at a path, and the locks of the refs in the directory there.
fn locks_at(path: &Path) -> Vec<PathBuf> {
    let mut locks = Vec::new();
    let mut own = path.as_os_str().to_owned();
    own.push(".lock");
    if Path::new(&own).is_file() {
        locks.push(own.into());
    }
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        if entry.file_name().as_bytes().ends_with(b".lock") {
            locks.push(entry.path());
        }
    }
    locks
}

impl ExpectedRef<'_> {
    fn allows(self, found: Option<&Oid>) -> bool {
        match self {
            Self::Absent => found.is_none(),
            Self::At(old) => found == Some(old),
            Self::Any => true,
        }
    }
}

fn moved(name: &str, expected: ExpectedRef<'_>, found: Option<&Oid>) -> CommandError {
    let found = found.map_or("is gone".to_owned(), |oid| format!("is at {}", oid.short()));
    let expected = match expected {
        ExpectedRef::Absent => "was expected not to exist".to_owned(),
        ExpectedRef::At(oid) => format!("was expected at {}", oid.short()),
        ExpectedRef::Any => "could be anywhere".to_owned(),
    };
    CommandError::environment(format!("another process moved {name}"))
        .cause(format!("it {expected} and {found}"))
        .hint(format!("\"git log -3 {name}\" shows the move; undo it, or start a new campaign"))
}
