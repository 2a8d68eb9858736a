//! How a change is made, step by step, so that it may be killed after any of them: staged next to
//! the files it changes, recorded in a file, moved into place, and moved back if that fails.

use super::{Layer, LibraryLayers};
use karve_os::error::{CommandError, ErrorKind, Result, WithContext};
use karve_os::files;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::path::{Component, Path, PathBuf};
use std::{fs, io};

/// The progress of a change.
pub(super) const PLAN: &str = ".change.json";
/// Most bytes of a plan.
const PLAN_BYTES_MAX: u64 = 16 << 20;

/// What happens to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum FileOperation {
    /// It is new.
    Make,
    /// It replaces an existing one.
    Replace,
    /// It is removed.
    Remove,
}

/// The progress of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum WritePhase {
    Staging,
    Moving,
    Undoing,
}

/// One file of a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PlannedFile {
    pub(super) layer: String,
    /// Below the directory of the layer.
    pub(super) path: PathBuf,
    #[serde(rename = "do")]
    pub(super) deed: FileOperation,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct WritePlan {
    pub(super) version: u32,
    pub(super) phase: WritePhase,
    pub(super) moves: Vec<PlannedFile>,
}

/// A change under one root, in progress.
#[derive(Debug)]
pub(super) struct RootWrite<'a> {
    pub(super) layers: &'a LibraryLayers,
    pub(super) root: PathBuf,
    pub(super) plan: WritePlan,
    /// The new content of each file; empty for a removed one.
    pub(super) texts: Vec<String>,
}

impl<'a> RootWrite<'a> {
    pub(super) fn new(layers: &'a LibraryLayers, root: PathBuf) -> Self {
        let plan = WritePlan { version: 1, phase: WritePhase::Staging, moves: Vec::new() };
        Self { layers, root, plan, texts: Vec::new() }
    }

    pub(super) fn commit(mut self) -> Result<()> {
        let moved = 2 * self.plan.moves.len() + 2;
        let mut number = 0;
        loop {
            match self.step(number) {
                Ok(true) => number += 1,
                Ok(false) => return Ok(()),
                // Everything is in place: the next command removes the leftovers.
                Err(_) if number >= moved => return Ok(()),
                Err(error) => return Err(self.take_back(error)),
            }
        }
    }

    /// Performs one step of a change; returns whether there is another.
    pub(super) fn step(&mut self, number: usize) -> Result<bool> {
        let n = self.plan.moves.len();
        match number {
            0 => self.write_phase(WritePhase::Staging)?,
            at if at <= n => self.write_beside(at - 1)?,
            at if at == n + 1 => self.write_phase(WritePhase::Moving)?,
            at if at <= 2 * n + 1 => self.move_in(at - n - 2)?,
            at if at <= 3 * n + 1 => self.forget(at - 2 * n - 2)?,
            _ => {
                self.remove_plan()?;
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Undoes a change that failed.
    pub(super) fn take_back(&mut self, error: CommandError) -> CommandError {
        // On a full disk this cannot be recorded, but it is done anyway.
        let _ = self.write_phase(WritePhase::Undoing);
        match self.undo() {
            Ok(()) => {
                error.hint("nothing was changed; docs/knowledge.md explains how changes are made")
            }
            Err(also) => error.cause(also.to_string()).hint(format!(
                "the change is not fully undone: see {}; the next karve command tries again",
                self.root.join(PLAN).display()
            )),
        }
    }

    fn write_phase(&mut self, phase: WritePhase) -> Result<()> {
        self.plan.phase = phase;
        let path = self.root.join(PLAN);
        let text = serde_json::to_vec(&self.plan)
            .context(|| format!("cannot write {}", path.display()))?;
        files::write_atomic(&path, &text)
    }

    fn remove_plan(&self) -> Result<()> {
        let path = self.root.join(PLAN);
        absent(fs::remove_file(&path)).context(|| format!("cannot remove {}", path.display()))
    }

    fn finish(&self) -> Result<()> {
        let all = 0..self.plan.moves.len();
        all.clone().try_for_each(|at| self.move_in(at))?;
        all.clone().try_for_each(|at| self.forget(at))?;
        self.remove_plan()
    }

    /// In reverse order, as far as it got.
    fn undo(&self) -> Result<()> {
        let all = (0..self.plan.moves.len()).rev();
        all.clone().try_for_each(|at| self.move_back(at))?;
        self.remove_plan()
    }

    /// Writes the new content of a file next to it.
    fn write_beside(&self, at: usize) -> Result<()> {
        let (path, deed) = self.target(at)?;
        if deed == FileOperation::Remove {
            return Ok(());
        }
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).context(|| format!("cannot create {}", parent.display()))?;
        }
        let new = beside(&path, "new");
        let write = || -> io::Result<()> {
            // Not through an existing symlink.
            absent(fs::remove_file(&new))?;
            let mut file = File::create_new(&new)?;
            file.write_all(self.texts[at].as_bytes())?;
            file.sync_data()
        };
        write().context(|| format!("cannot write {}", new.display()))
    }

    /// Moves one file into place; the old one is kept next to it. Repeating it changes nothing.
    fn move_in(&self, at: usize) -> Result<()> {
        let (path, deed) = self.target(at)?;
        let (new, old) = (beside(&path, "new"), beside(&path, "old"));
        let cannot = || format!("cannot change {}", path.display());
        match deed {
            FileOperation::Remove if path.exists() && !old.exists() => {
                fs::rename(&path, &old).context(cannot)
            }
            FileOperation::Replace if new.exists() && path.exists() && !old.exists() => {
                let kept = fs::hard_link(&path, &old);
                kept.or_else(|_| fs::copy(&path, &old).map(|_| ()))
                    .and_then(|()| fs::rename(&new, &path))
                    .context(cannot)
            }
            FileOperation::Make | FileOperation::Replace if new.exists() => {
                fs::rename(&new, &path).context(cannot)
            }
            FileOperation::Make | FileOperation::Replace | FileOperation::Remove => Ok(()),
        }
    }

    /// Moves one file back to what it was.
    fn move_back(&self, at: usize) -> Result<()> {
        let (path, deed) = self.target(at)?;
        let (new, old) = (beside(&path, "new"), beside(&path, "old"));
        let cannot = || format!("cannot change {} back", path.display());
        if old.exists() {
            fs::rename(&old, &path).context(cannot)?;
        } else if deed == FileOperation::Make
            && self.plan.phase == WritePhase::Undoing
            && !new.exists()
        {
            // It was already moved into place, or never staged.
            absent(fs::remove_file(&path)).context(cannot)?;
        }
        absent(fs::remove_file(&new)).context(cannot)
    }

    /// Removes the old version of a file.
    fn forget(&self, at: usize) -> Result<()> {
        let old = beside(&self.target(at)?.0, "old");
        absent(fs::remove_file(&old)).context(|| format!("cannot remove {}", old.display()))
    }

    /// The file of a move. A plan may have come with a repository, so its paths must stay inside.
    fn target(&self, at: usize) -> Result<(PathBuf, FileOperation)> {
        let plan = self.root.join(PLAN);
        let one = &self.plan.moves[at];
        let strange = || not_our_plan(&plan, &format!("it names {:?}", one.path));
        let normal = |part: Component<'_>| matches!(part, Component::Normal(_));
        let is_entry = one.path.extension().is_some_and(|end| end == "md");
        let layers = [Layer::User, Layer::Project, Layer::Staged];
        let layer = layers.iter().find(|layer| layer.name() == one.layer);
        let layer = layer.filter(|layer| self.layers.root(**layer).is_ok_and(|r| r == self.root));
        let layer = layer.filter(|_| is_entry && one.path.components().all(normal));
        let mut path = self.layers.usable_dir(*layer.ok_or_else(strange)?)?.to_owned();
        let is_link = |path: &Path| fs::symlink_metadata(path).is_ok_and(|data| data.is_symlink());
        let mut parts = one.path.components().peekable();
        while let Some(part) = parts.next() {
            path.push(part);
            if parts.peek().is_some() && is_link(&path) {
                return Err(strange());
            }
        }
        Ok((path, one.deed))
    }
}

/// A name next to a file that no layer reads as an entry.
fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{end}"));
    path.with_file_name(name)
}

/// A missing file is fine.
fn absent(done: io::Result<()>) -> io::Result<()> {
    match done {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Recovers the change that a killed karve left under a locked root; says what was done.
pub(super) fn settle(library_layers: &LibraryLayers, root: &Path) -> Result<Option<String>> {
    let path = root.join(PLAN);
    let text = match files::read_text(&path, PLAN_BYTES_MAX) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(not_our_plan(&path, &error)),
    };
    let plan: WritePlan =
        serde_json::from_str(&text).map_err(|error| not_our_plan(&path, &error))?;
    let n = plan.moves.len();
    let files = if n == 1 { "file" } else { "files" };
    let phase = plan.phase;
    let texts = vec![String::new(); n];
    let site = RootWrite { layers: library_layers, root: root.to_owned(), plan, texts };
    let done = match phase {
        WritePhase::Moving => site.finish().map(|()| "finished"),
        WritePhase::Staging | WritePhase::Undoing => site.undo().map(|()| "undone"),
    }?;
    Ok(Some(format!("an interrupted change of {n} {files} in the library is now {done}")))
}

fn not_our_plan(path: &Path, why: &dyn std::fmt::Display) -> CommandError {
    CommandError::new(ErrorKind::Environment, format!("cannot read {}", path.display()))
        .cause(why.to_string())
        .hint(format!("karve did not write it; check it, then remove {}", path.display()))
}
