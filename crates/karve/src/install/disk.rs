//! All files are checked first; then each is written completely or not at all. If one cannot be
//! written, the earlier ones are restored.

use super::edit::{EditRefusal, PlannedWrite};
use super::record::{InstallRecord, WrittenFile};
use super::{InstallSite, OverwritePolicy, edit};
use karve_os::error::{CommandError, Result, WithContext};
use karve_os::files;
use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// What happened to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstallChange {
    /// It was created or changed.
    Wrote,
    /// It was removed.
    Removed,
}

/// What was done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InstallResult {
    /// Each file that changed.
    pub deeds: Vec<(InstallChange, String)>,
    /// Whether anything of karve's was installed before.
    pub was_there: bool,
}

/// Where files are written.
#[derive(Debug)]
pub(super) struct InstallRoot {
    root: PathBuf,
    record: String,
    known: InstallRecord,
    /// What other tools have installed here; some of it may be the same as ours.
    others: Vec<InstallRecord>,
    was_there: bool,
}

/// The text of a file before and after; none if it does not exist.
#[derive(Debug)]
struct PlannedEdit {
    path: String,
    before: Option<String>,
    after: Option<String>,
}

impl InstallRoot {
    /// Reads what was installed there before, for this tool and, by their records, for others.
    pub(super) fn open(site: &InstallSite, others: &[String]) -> Result<Self> {
        let root = fs::canonicalize(&site.root)
            .context(|| format!("cannot open {}", site.root.display()))
            .map_err(|error| error.hint("name an existing directory with --project DIR"))?;
        let mut ground = Self {
            root,
            record: site.record(),
            known: InstallRecord::default(),
            others: Vec::new(),
            was_there: false,
        };
        if let Some(text) = ground.read(&ground.record)? {
            ground.known = InstallRecord::parse(&text, &ground.record)?;
            ground.was_there = true;
        }
        // An unreadable record is reported when that tool is installed.
        let read = |path: &String| {
            let text = ground.read(path).ok().flatten()?;
            InstallRecord::parse(&text, path).ok()
        };
        ground.others = others.iter().filter_map(read).collect();
        Ok(ground)
    }

    /// What is known about a file: from the record of this tool or, if both want the same, of
    /// another; the record that matches the current content is preferred.
    fn known_of(&self, path: &str, text: Option<&str>) -> Option<&WrittenFile> {
        let all = std::iter::once(&self.known).chain(&self.others);
        let all = all.filter_map(|installed| installed.of(path));
        let is_there = |written: &&WrittenFile| text.is_some_and(|text| written.is_in(text));
        all.clone().find(is_there).or_else(|| all.clone().next())
    }

    /// Writes all pieces.
    pub(super) fn put(
        &self,
        pieces: &[PlannedWrite],
        care: OverwritePolicy,
    ) -> Result<InstallResult> {
        let mut steps = Vec::new();
        let mut written = Vec::new();
        for piece in pieces {
            let before = self.read(&piece.path)?;
            let known = self.known_of(&piece.path, before.as_deref());
            let put = piece.put(before.as_deref(), known, care);
            let (after, wrote) = put.map_err(|why| self.refused(&piece.path, why))?;
            written.extend(wrote);
            steps.push(PlannedEdit { path: piece.path.clone(), before, after: Some(after) });
        }
        // Pieces that an earlier version wrote and this one does not.
        let is_new = |old: &&WrittenFile| !pieces.iter().any(|piece| piece.path == old.path);
        for old in self.known.written.iter().filter(is_new) {
            steps.push(self.removal_of(old, care)?);
        }
        let mut dirs: BTreeSet<String> = self.known.dirs.iter().cloned().collect();
        for step in steps.iter().filter(|step| step.before.is_none()) {
            dirs.extend(self.missing_dirs(&step.path));
        }
        if written.is_empty() && !self.was_there {
            return Ok(InstallResult::default());
        }
        let dirs = dirs.into_iter().collect();
        let installed = InstallRecord { dirs, written, ..InstallRecord::default() };
        // The record goes first, so that everything written after it can be removed in any case.
        let record = PlannedEdit {
            path: self.record.clone(),
            before: self.read(&self.record)?,
            after: Some(installed.render()),
        };
        steps.insert(0, record);
        self.carry_out(&steps)
    }

    /// Removes everything that is known to be karve's.
    pub(super) fn take(&self, care: OverwritePolicy) -> Result<InstallResult> {
        let mut steps = Vec::new();
        for written in &self.known.written {
            steps.push(self.removal_of(written, care)?);
        }
        let before = self.read(&self.record)?;
        steps.push(PlannedEdit { path: self.record.clone(), before, after: None });
        let done = self.carry_out(&steps)?;
        // The inner ones first; a directory that is not empty is not karve's.
        let dirs: BTreeSet<&String> = self.known.dirs.iter().collect();
        for dir in dirs.into_iter().rev() {
            let _ = fs::remove_dir(self.root.join(dir));
        }
        Ok(done)
    }

    fn removal_of(&self, written: &WrittenFile, care: OverwritePolicy) -> Result<PlannedEdit> {
        let before = self.read(&written.path)?;
        let is_of_others = self.others.iter().any(|o| o.of(&written.path).is_some());
        let after = match &before {
            // It stays as long as one of them needs it.
            Some(text) if !is_of_others => {
                edit::take(written, text, care).map_err(|why| self.refused(&written.path, why))?
            }
            before => before.clone(),
        };
        Ok(PlannedEdit { path: written.path.clone(), before, after })
    }

    fn refused(&self, path: &str, why: EditRefusal) -> CommandError {
        match why {
            EditRefusal::Changed => {
                CommandError::usage(format!("{path} is not as karve wrote it; nothing was changed"))
                    .hint("check the file; --force overwrites or removes it")
            }
            EditRefusal::Malformed(why) => {
                CommandError::usage(format!("{path} cannot be read, and nothing was changed"))
                    .cause(why)
                    .hint(format!("fix {}", self.root.join(path).display()))
            }
        }
    }

    /// The text of a file; none if it does not exist. A file behind a symlink is not karve's to
    /// change.
    fn read(&self, path: &str) -> Result<Option<String>> {
        let mut at = self.root.clone();
        for part in Path::new(path) {
            at.push(part);
            match fs::symlink_metadata(&at) {
                Ok(meta) if meta.is_symlink() => {
                    return Err(CommandError::usage(format!("{} is a link", at.display())).hint(
                        "karve never follows symlinks: put a file or directory there, or name \
                         another place with --project DIR",
                    ));
                }
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
                Err(error) => {
                    return Err(error).context(|| format!("cannot read {}", at.display()));
                }
            }
        }
        files::read_text(&at, files::WRITTEN_BYTES_MAX)
            .map(Some)
            .context(|| format!("cannot read {}", at.display()))
            .map_err(|error| {
                error.hint("put a text file there, or name another place with --project DIR")
            })
    }

    /// Directories on the path to a file that do not exist yet.
    fn missing_dirs(&self, path: &str) -> Vec<String> {
        let above = Path::new(path).ancestors().skip(1);
        let above = above.filter(|dir| !dir.as_os_str().is_empty());
        let missing = above.filter(|dir| !self.root.join(dir).exists());
        missing.map(|dir| dir.to_string_lossy().into_owned()).collect()
    }

    fn carry_out(&self, steps: &[PlannedEdit]) -> Result<InstallResult> {
        let mut done = InstallResult { was_there: self.was_there, ..InstallResult::default() };
        let made = steps.iter().flat_map(|step| self.missing_dirs(&step.path));
        let made: BTreeSet<String> = made.collect();
        for (at, step) in steps.iter().enumerate() {
            if step.before == step.after {
                continue;
            }
            if let Err(error) = self.set(&step.path, step.after.as_deref()) {
                self.undo(&steps[..at], &made);
                return Err(error.hint(format!(
                    "nothing was changed; free disk space, or check who may write to {}",
                    self.root.display()
                )));
            }
            let deed = match step.after {
                Some(_) => InstallChange::Wrote,
                None => InstallChange::Removed,
            };
            done.deeds.push((deed, step.path.clone()));
        }
        Ok(done)
    }

    /// Restores files as far as possible.
    fn undo(&self, steps: &[PlannedEdit], made: &BTreeSet<String>) {
        for step in steps.iter().rev().filter(|step| step.before != step.after) {
            let _ = self.set(&step.path, step.before.as_deref());
        }
        // In this order the inner ones come last.
        for dir in made.iter().rev() {
            let _ = fs::remove_dir(self.root.join(dir));
        }
    }

    /// Writes or removes a file.
    fn set(&self, path: &str, text: Option<&str>) -> Result<()> {
        match text {
            Some(text) => self.write(path, text),
            None => {
                fs::remove_file(self.root.join(path)).context(|| format!("cannot remove {path}"))
            }
        }
    }

    /// Writes a file atomically, and keeps its permissions.
    fn write(&self, path: &str, text: &str) -> Result<()> {
        let path = self.root.join(path);
        let cannot = || format!("cannot write {}", path.display());
        let dir = path.parent().unwrap_or(&self.root);
        fs::create_dir_all(dir).context(cannot)?;
        let rights = fs::metadata(&path).map(|meta| meta.permissions());
        let mut file = tempfile::Builder::new()
            .prefix(".karve-")
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(dir)
            .context(cannot)?;
        file.write_all(text.as_bytes()).context(cannot)?;
        if let Ok(rights) = rights {
            file.as_file().set_permissions(rights).context(cannot)?;
        }
        file.as_file().sync_all().context(cannot)?;
        file.persist(&path).context(cannot)?;
        Ok(())
    }
}
