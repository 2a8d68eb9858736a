//! Copies on this machine: what they take, and how they are removed.
//!
//! A worker holds a shared lock on the copy that it uses, and on its own program; the lock ends
//! with the process. What is locked is never removed.

use crate::refs::refs_of;
use crate::remote::NO_PROJECT;
use crate::remote::copies::{CopyName, FarCopy};
use karve_harness::git;
use karve_harness::store::{self, CampaignDir};
use karve_os::error::{CommandError, ErrorKind, Result, WithContext as _};
use karve_os::files;
use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// The most copies that are listed.
const COPIES_MAX: usize = 1_000;
/// How long a worker waits for a copy that is being looked at or removed.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often it looks.
const PAUSE: Duration = Duration::from_millis(50);
/// How the name of a program starts.
const PROGRAM: &str = "karve-";

/// Whether a name is one that karve gives.
pub(super) fn is_plain(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    !name.is_empty() && !name.starts_with('.') && name.chars().all(plain)
}

/// Keeps the copy of a project from being removed.
pub(super) fn hold(root: &Path, project: &str) -> Result<File> {
    let (lock, start) = (lock_of(root, project)?, Instant::now());
    loop {
        match lock.try_lock_shared() {
            Ok(()) => return Ok(lock),
            // Whoever only looks holds it for a moment.
            Err(_) if start.elapsed() < PATIENCE => thread::sleep(PAUSE),
            Err(error) => {
                let message = "the copy of this project is being removed";
                return Err(CommandError::new(ErrorKind::Busy, message)
                    .cause(error)
                    .hint("try it again when \"karve clean --on\" is done"));
            }
        }
    }
}

/// Keeps this program from being removed.
pub(super) fn hold_program() -> Result<File> {
    let own = File::open("/proc/self/exe").context(|| "cannot open karve".into())?;
    // If it is being removed, it is copied again the next time.
    let _ = own.try_lock_shared();
    Ok(own)
}

/// The lock is beside the copy, so that it stays when the copy goes.
fn lock_of(root: &Path, project: &str) -> Result<File> {
    let dir = root.join("locks");
    let path = dir.join(project);
    let cannot = || format!("cannot lock {}", path.display());
    fs::create_dir_all(&dir).context(cannot)?;
    OpenOptions::new().create(true).truncate(false).write(true).open(&path).context(cannot)
}

fn is_free(file: &Result<File>) -> bool {
    file.as_ref().is_ok_and(|file| file.try_lock().is_ok())
}

/// The names in a directory, in order.
fn names_in(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.retain(|name| is_plain(name));
    names.sort();
    names
}

/// Where a copy is.
fn path_of(root: &Path, name: &CopyName) -> PathBuf {
    match name {
        CopyName::Campaign { project, campaign } => campaigns_of(root, project).join(campaign),
        CopyName::Project { project } => root.join("projects").join(project),
        CopyName::Program { digest } => root.join("bin").join(format!("{PROGRAM}{digest}")),
    }
}

fn campaigns_of(root: &Path, project: &str) -> PathBuf {
    root.join("projects").join(project).join("campaigns")
}

fn found(root: &Path, name: CopyName) -> FarCopy {
    let path = path_of(root, &name);
    let is_used = match &name {
        CopyName::Campaign { project, campaign } => {
            let dir = CampaignDir::new(&campaigns_of(root, project), campaign);
            // Without a worker for the project there is none for the campaign.
            !is_free(&lock_of(root, project)) && store::lock(&dir, "karve clean\n").is_err()
        }
        CopyName::Project { project } => !is_free(&lock_of(root, project)),
        CopyName::Program { .. } => {
            !is_free(&File::open(&path).context(|| "cannot open a program".into()))
        }
    };
    let changed = fs::metadata(&path).and_then(|meta| meta.modified()).ok();
    let idle_s = changed.and_then(|at| at.elapsed().ok()).map_or(0, |time| time.as_secs());
    FarCopy { name, bytes: files::bytes_of(&path), is_used, idle_s }
}

/// Everything that is here.
pub(super) fn list(root: &Path) -> Vec<FarCopy> {
    let mut names = Vec::new();
    for project in names_in(&root.join("projects")) {
        if project == NO_PROJECT {
            continue;
        }
        for campaign in names_in(&campaigns_of(root, &project)) {
            // What campaigns share is part of the project.
            if campaigns_of(root, &project).join(&campaign).join("artifacts").is_dir() {
                names.push(CopyName::Campaign { project: project.clone(), campaign });
            }
        }
        names.push(CopyName::Project { project });
    }
    for program in names_in(&root.join("bin")) {
        if let Some(digest) = program.strip_prefix(PROGRAM).filter(|digest| digest.len() == 64) {
            names.push(CopyName::Program { digest: digest.to_owned() });
        }
    }
    names.truncate(COPIES_MAX);
    names.into_iter().map(|name| found(root, name)).collect()
}

/// Removes copies, and returns what they took. One that is used stops it.
pub(super) fn remove(root: &Path, names: &[CopyName]) -> Result<Vec<FarCopy>> {
    let mut removed = Vec::new();
    for name in names {
        let parts: Vec<&String> = match name {
            CopyName::Campaign { project, campaign } => vec![project, campaign],
            CopyName::Project { project } => vec![project],
            CopyName::Program { digest } => vec![digest],
        };
        let path = path_of(root, name);
        if !parts.into_iter().all(|part| is_plain(part)) || !path.exists() {
            continue;
        }
        let copy = found(root, name.clone());
        remove_one(root, name, &path)?;
        removed.push(copy);
    }
    Ok(removed)
}

fn remove_one(root: &Path, name: &CopyName, path: &Path) -> Result<()> {
    let cannot = || format!("cannot remove {}", path.display());
    match name {
        CopyName::Campaign { project, campaign } => {
            let dir = CampaignDir::new(&campaigns_of(root, project), campaign);
            let _lock = store::lock(&dir, "karve clean\n")?;
            let repo = git::mirror(&root.join("projects").join(project).join("repo"))?;
            repo.prune_under(&dir.worktrees())?;
            for (name, _) in repo.list_refs(&refs_of(campaign))? {
                repo.delete_ref(&name)?;
            }
            fs::remove_dir_all(path).context(cannot)
        }
        CopyName::Project { project } => {
            let lock = lock_of(root, project)?;
            lock.try_lock().map_err(|error| in_use(path).cause(error))?;
            fs::remove_dir_all(path).context(cannot)
        }
        CopyName::Program { .. } => {
            let program = File::open(path).context(cannot)?;
            program.try_lock().map_err(|error| in_use(path).cause(error))?;
            fs::remove_file(path).context(cannot)
        }
    }
}

fn in_use(path: &Path) -> CommandError {
    CommandError::new(ErrorKind::Busy, format!("{} is in use", path.display()))
        .hint("\"karve clean --on NAME\" shows what is in use; try it again later")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_is_not_removed_and_nothing_outside_is() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().join("karve");
        let project = |name: &str| CopyName::Project { project: name.to_owned() };
        for name in ["used", "idle"] {
            let dir = root.join("projects").join(name).join("campaigns/toy/artifacts");
            fs::create_dir_all(&dir).unwrap();
            fs::write(dir.join("a"), [0; 1_000]).unwrap();
        }
        let digest = "a".repeat(64);
        fs::create_dir_all(root.join("bin")).unwrap();
        fs::write(root.join("bin").join(format!("karve-{digest}")), "old").unwrap();
        fs::write(scratch.path().join("precious"), "mine").unwrap();
        let held = hold(&root, "used").unwrap();
        let all = list(&root);
        let used: Vec<&CopyName> =
            all.iter().filter(|copy| copy.is_used).map(|copy| &copy.name).collect();
        assert_eq!(used, [&project("used")]);
        assert_eq!(all.len(), 5, "{all:#?}");
        assert!(all.iter().all(|copy| copy.bytes >= 3), "{all:#?}");
        let odd = ["..", "../../precious", "", "nobody", "."].map(project);
        assert_eq!(remove(&root, &odd).unwrap(), []);
        assert!(remove(&root, &[project("used")]).unwrap_err().message.contains("in use"));
        let removed = remove(&root, &[project("idle"), CopyName::Program { digest }]).unwrap();
        assert_eq!(removed.len(), 2);
        drop(held);
        assert_eq!(remove(&root, &[project("used")]).unwrap().len(), 1);
        assert!(list(&root).is_empty() && scratch.path().join("precious").exists());
        // While one is being removed, no worker starts with it.
        let lock = lock_of(&root, "used").unwrap();
        lock.try_lock().unwrap();
        assert!(hold(&root, "used").is_err());
    }
}
