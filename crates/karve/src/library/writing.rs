//! Changes to a library: one karve writes at a time, and a change is atomic.
//!
//! A writer holds `.lock` in the root it writes to: the staged layer's root for a project, the
//! user's own root for a user. A change is first written under temporary names next to the files
//! that it changes, then moved into place. `.change.json` records its progress, so the next
//! command can recover what a killed karve left behind:
//!
//! ```text
//! staging    incomplete: the staged files are removed, and nothing has changed
//! moving     complete: the rest is moved into place, and everything has changed
//! undoing    a move failed: the files that were moved are moved back
//! ```

mod plan;

use super::markdown::render_entry;
use super::{Layer, LibraryLayers, read_entry};
use karve_core::knowledge::{Entry, is_id};
use karve_harness::store;
use karve_os::error::{CommandError, ErrorKind, Result, WithContext};
use karve_os::files;
use plan::{FileOperation, PLAN, PlannedFile, RootWrite, settle};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The file that a writer locks in a root.
const LOCK: &str = ".lock";
/// How long to wait for another writer.
const WAIT: Duration = Duration::from_secs(20);
/// How often to check whether it is done.
const POLL: Duration = Duration::from_millis(40);
/// Bytes of the lock file that are read, to name the holder.
const HOLDER_BYTES_MAX: u64 = 100;

/// A lock on some layers for writing; released when its process ends.
#[derive(Debug)]
pub struct LayerLock {
    roots: BTreeMap<PathBuf, File>,
}

/// Changes to some files, made together on commit.
#[derive(Debug)]
pub struct LibraryChange<'a> {
    layers: &'a LibraryLayers,
    lock: &'a LayerLock,
    roots: BTreeMap<PathBuf, RootWrite<'a>>,
    changed: BTreeSet<PathBuf>,
    files_by_layer: BTreeMap<Layer, BTreeMap<String, PathBuf>>,
}

impl LibraryLayers {
    /// Locks some layers for writing: waits a bounded time for other writers, and recovers what a
    /// killed karve left behind.
    pub fn hold(&self, layers: &[Layer]) -> Result<LayerLock> {
        self.hold_within(layers, WAIT)
    }

    fn hold_within(&self, layers: &[Layer], wait: Duration) -> Result<LayerLock> {
        let roots: Result<Vec<PathBuf>> = layers.iter().map(|layer| self.root(*layer)).collect();
        let mut roots = roots?;
        // Always in the same order, to avoid deadlocks.
        roots.sort();
        roots.dedup();
        let mut held = BTreeMap::new();
        for root in roots {
            fs::create_dir_all(&root).context(|| format!("cannot create {}", root.display()))?;
            if let (true, Some(campaigns)) = (self.is_staged(&root), root.parent()) {
                store::ignore_in_git(campaigns)?;
            }
            let lock = take(&root.join(LOCK), wait)?;
            files::remove_temporary(&root);
            settle(self, &root)?;
            held.insert(root, lock);
        }
        Ok(LayerLock { roots: held })
    }

    /// A change to locked layers.
    pub fn change<'a>(&'a self, held: &'a LayerLock) -> LibraryChange<'a> {
        LibraryChange {
            layers: self,
            lock: held,
            roots: BTreeMap::new(),
            changed: BTreeSet::new(),
            files_by_layer: BTreeMap::new(),
        }
    }

    /// Writes one entry to a layer; returns its path.
    pub fn write(&self, layer: Layer, entry: &Entry) -> Result<PathBuf> {
        let held = self.hold(&[layer])?;
        let mut change = self.change(&held);
        let path = change.put(layer, entry)?;
        change.commit()?;
        Ok(path)
    }

    /// Recovers what a killed karve left behind, if there is no writer now; says what it was.
    pub(super) fn settle_leftover(&self) -> Vec<Result<String>> {
        let mut reported = Vec::new();
        for root in self.roots() {
            if !root.join(PLAN).exists() {
                continue;
            }
            // The holder of the lock recovers it and continues.
            if let Ok(_lock) = take(&root.join(LOCK), Duration::ZERO) {
                reported.extend(settle(self, &root).transpose());
            }
        }
        reported
    }

    /// The roots of all existing layers.
    fn roots(&self) -> Vec<PathBuf> {
        let layers = self.dirs.keys();
        let mut roots: Vec<PathBuf> = layers.filter_map(|layer| self.root(*layer).ok()).collect();
        roots.sort();
        roots.dedup();
        roots
    }

    /// The path of a layer's lock: one per project, and one per user.
    fn root(&self, layer: Layer) -> Result<PathBuf> {
        let own = self.usable_dir(layer)?;
        let of_project = match layer {
            Layer::Project | Layer::Staged => self.dir(Layer::Staged).is_some(),
            Layer::BuiltIn | Layer::User => false,
        };
        let root = match of_project {
            true => self.usable_dir(Layer::Staged)?,
            false => own,
        };
        Ok(root.to_owned())
    }

    fn is_staged(&self, root: &Path) -> bool {
        self.dir(Layer::Staged).is_some_and(|dir| dir == root)
    }
}

/// Opens and locks a file; waits for its holder, up to a limit.
fn take(path: &Path, wait: Duration) -> Result<File> {
    let cannot = || format!("cannot lock {}", path.display());
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).read(true).write(true);
    // A symlink could point to someone else's file, and a pipe would never open.
    options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    let opened = options.open(path).context(cannot);
    let mut file = opened.map_err(|error| {
        error.hint(format!("{} must be a regular file that you can write to", path.display()))
    })?;
    let start = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => break,
            Err(TryLockError::WouldBlock) if start.elapsed() < wait => std::thread::sleep(POLL),
            Err(TryLockError::WouldBlock) => return Err(busy(path, &mut file)),
            Err(TryLockError::Error(error)) => return Err(error).context(cannot),
        }
    }
    file.set_len(0).context(cannot)?;
    file.write_all(format!("process {}", std::process::id()).as_bytes()).context(cannot)?;
    Ok(file)
}

fn busy(path: &Path, file: &mut File) -> CommandError {
    let mut holder = String::new();
    let _ = file.take(HOLDER_BYTES_MAX).read_to_string(&mut holder);
    let plain = |c: char| c.is_ascii_alphanumeric() || c == ' ';
    let holder = match holder.is_empty() || !holder.chars().all(plain) {
        true => "another karve".to_owned(),
        false => format!("another karve ({holder})"),
    };
    CommandError::new(ErrorKind::Busy, "another process is writing to the library")
        .cause(format!("{holder} holds {}", path.display()))
        .hint("run the command again when that one is done; \"karve list\" shows what runs")
}

impl LibraryChange<'_> {
    /// The entry of this layer, even if a nearer one overrides it.
    pub fn there(&mut self, layer: Layer, id: &str) -> Result<Option<Entry>> {
        let path = self.path_of(layer, id)?;
        Ok(read_entry(&path).ok().filter(|entry| entry.id == id))
    }

    /// Adds writing an entry to the change; returns its path.
    pub fn put(&mut self, layer: Layer, entry: &Entry) -> Result<PathBuf> {
        let path = self.path_of(layer, &entry.id)?;
        let text = render_entry(entry).map_err(|why| {
            CommandError::usage(format!("cannot write the entry {:?}", entry.id))
                .cause(why)
                .hint("fix it, then check it with \"karve knowledge lint FILE\"")
        })?;
        let deed = match path.exists() {
            true => FileOperation::Replace,
            false => FileOperation::Make,
        };
        self.add(layer, &path, deed, text)?;
        Ok(path)
    }

    /// Adds removing a file of a layer to the change.
    pub fn remove(&mut self, layer: Layer, path: &Path) -> Result<()> {
        self.add(layer, path, FileOperation::Remove, String::new())
    }

    /// Makes the whole change or nothing. Project files and user files are two changes; the one
    /// that only removes comes last, so that nothing is lost between them.
    pub fn commit(self) -> Result<()> {
        let removes = |one: &PlannedFile| one.deed == FileOperation::Remove;
        let mut roots: Vec<RootWrite<'_>> = self.roots.into_values().collect();
        roots.sort_by_key(|write| write.plan.moves.iter().all(removes));
        roots.into_iter().try_for_each(RootWrite::commit)
    }

    fn add(&mut self, layer: Layer, path: &Path, deed: FileOperation, text: String) -> Result<()> {
        let root = self.layers.root(layer)?;
        assert!(self.lock.roots.contains_key(&root), "a layer is locked before it is changed");
        let dir = self.layers.usable_dir(layer)?;
        let below = path.strip_prefix(dir).unwrap_or(path).to_owned();
        assert!(self.changed.insert(path.to_owned()), "a change contains each file once");
        let write = self.roots.entry(root.clone());
        let write = write.or_insert_with(|| RootWrite::new(self.layers, root));
        write.plan.moves.push(PlannedFile { layer: layer.name().to_owned(), path: below, deed });
        write.texts.push(text);
        Ok(())
    }

    /// The path of an entry in a layer, whether or not it exists. A file that was put elsewhere in
    /// the layer keeps its path.
    fn path_of(&mut self, layer: Layer, id: &str) -> Result<PathBuf> {
        if !is_id(id) {
            return Err(CommandError::usage(format!("{id:?} is not a valid id"))
                .hint("use lower-case letters, digits and hyphens; see docs/knowledge.md"));
        }
        let dir = self.layers.usable_dir(layer)?;
        let named = dir.join(format!("{id}.md"));
        let moves = matches!(layer, Layer::Project | Layer::User);
        if !moves || named.exists() {
            return Ok(named);
        }
        if !self.files_by_layer.contains_key(&layer) {
            let layered = self.layers.files_by_id(layer)?;
            self.files_by_layer.insert(layer, layered);
        }
        let layered = self.files_by_layer.get(&layer);
        let moved = layered.and_then(|layered| layered.get(id)).cloned();
        Ok(moved.unwrap_or(named))
    }
}

#[cfg(test)]
mod tests;
