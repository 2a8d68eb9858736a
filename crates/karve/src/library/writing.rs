//! Changes of a library: one karve writes at a time, and a change is whole or nothing.
//!
//! Who writes holds `.lock` in the root of what is written: the staged layer's for what belongs to
//! a project, the user's own for what belongs to a user. A change is staged under other names
//! beside the files that it is about, and then moved into place. `.change.json` says how far it is,
//! so that the next command can tell what a karve left that was killed:
//!
//! ```text
//! staging    not all of it is there: what was staged is removed, and nothing has changed
//! moving     all of it is there: the rest is moved into place, and all has changed
//! undoing    something could not be moved: what was moved is moved back
//! ```

mod plan;

use super::markdown::render_entry;
use super::{Layer, Shelves, read_entry};
use karve_core::knowledge::{Entry, is_id};
use karve_harness::store;
use karve_os::error::{CommandError, Context, ErrorKind, Result};
use karve_os::files;
use plan::{Batch, Deed, Move, PLAN, Site, settle};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Who writes holds this file of a root.
const LOCK: &str = ".lock";
/// How long to wait for another writer.
const WAIT: Duration = Duration::from_secs(20);
/// How often to look whether it is through.
const POLL: Duration = Duration::from_millis(40);
/// Bytes of the lock file that are read, to name who holds it.
const HOLDER_BYTES_MAX: u64 = 100;

/// The right to write to some layers; it ends with the process that has it.
#[derive(Debug)]
pub struct Held {
    roots: BTreeMap<PathBuf, File>,
}

/// Changes of some files, until they are made together.
#[derive(Debug)]
pub struct Change<'a> {
    shelves: &'a Shelves,
    held: &'a Held,
    roots: BTreeMap<PathBuf, Batch>,
    changed: BTreeSet<PathBuf>,
    shelved: BTreeMap<Layer, BTreeMap<String, PathBuf>>,
}

impl Shelves {
    /// Takes the right to write to some layers: waits for others that do, for a bounded time, and
    /// settles what a karve left that was killed.
    pub fn hold(&self, layers: &[Layer]) -> Result<Held> {
        self.hold_within(layers, WAIT)
    }

    fn hold_within(&self, layers: &[Layer], wait: Duration) -> Result<Held> {
        let roots: Result<Vec<PathBuf>> = layers.iter().map(|layer| self.root(*layer)).collect();
        let mut roots = roots?;
        // Always in the same order, so that no two wait for each other.
        roots.sort();
        roots.dedup();
        let mut held = BTreeMap::new();
        for root in roots {
            fs::create_dir_all(&root).context(|| format!("cannot make {}", root.display()))?;
            if let (true, Some(campaigns)) = (self.is_staged(&root), root.parent()) {
                store::ignore_in_git(campaigns)?;
            }
            let lock = take(&root.join(LOCK), wait)?;
            files::remove_temporary(&root);
            settle(self, &root)?;
            held.insert(root, lock);
        }
        Ok(Held { roots: held })
    }

    /// A change of layers that are held.
    pub fn change<'a>(&'a self, held: &'a Held) -> Change<'a> {
        Change {
            shelves: self,
            held,
            roots: BTreeMap::new(),
            changed: BTreeSet::new(),
            shelved: BTreeMap::new(),
        }
    }

    /// Writes one entry to a layer; gives its path.
    pub fn write(&self, layer: Layer, entry: &Entry) -> Result<PathBuf> {
        let held = self.hold(&[layer])?;
        let mut change = self.change(&held);
        let path = change.put(layer, entry)?;
        change.commit()?;
        Ok(path)
    }

    /// Settles what a karve left that was killed, where nobody writes now; says what it was.
    pub(super) fn settle_left(&self) -> Vec<Result<String>> {
        let mut told = Vec::new();
        for root in self.roots() {
            if !root.join(PLAN).exists() {
                continue;
            }
            // Who has the lock settles it, and goes on.
            if let Ok(_lock) = take(&root.join(LOCK), Duration::ZERO) {
                told.extend(settle(self, &root).transpose());
            }
        }
        told
    }

    /// The roots of all layers that are there.
    fn roots(&self) -> Vec<PathBuf> {
        let layers = self.dirs.values().map(|(layer, _)| *layer);
        let mut roots: Vec<PathBuf> = layers.filter_map(|layer| self.root(layer).ok()).collect();
        roots.sort();
        roots.dedup();
        roots
    }

    /// Where the lock of a layer is: one for all of a project, and one for all of a user.
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

/// Opens and locks a file; waits for who has it, so long at most.
fn take(path: &Path, wait: Duration) -> Result<File> {
    let cannot = || format!("cannot lock {}", path.display());
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).read(true).write(true);
    // A link would lead to a file of somebody else, and a pipe would never open.
    options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    let opened = options.open(path).context(cannot);
    let mut file = opened.map_err(|error| {
        error.hint(format!(
            "{} must be a plain file that you may write to",
            path.display()
        ))
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
    file.write_all(format!("process {}", std::process::id()).as_bytes())
        .context(cannot)?;
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
    CommandError::new(ErrorKind::Busy, "the knowledge here is being written")
        .cause(format!("{holder} holds {}", path.display()))
        .hint("run the command again when that one is through; \"karve list\" shows what runs")
}

impl Change<'_> {
    /// The entry of a layer itself, also where a nearer one hides it.
    pub fn there(&mut self, layer: Layer, id: &str) -> Result<Option<Entry>> {
        let path = self.path_of(layer, id)?;
        Ok(read_entry(&path).ok().filter(|entry| entry.id == id))
    }

    /// Writes an entry to a layer with the rest; gives its path.
    pub fn put(&mut self, layer: Layer, entry: &Entry) -> Result<PathBuf> {
        let path = self.path_of(layer, &entry.id)?;
        let text = render_entry(entry).map_err(|why| {
            CommandError::usage(format!("cannot write the entry {:?}", entry.id))
                .cause(why)
                .hint("mend it, then check it with \"karve knowledge lint FILE\"")
        })?;
        let deed = match path.exists() {
            true => Deed::Replace,
            false => Deed::Make,
        };
        self.add(layer, &path, (deed, text))?;
        Ok(path)
    }

    /// Removes a file of a layer with the rest.
    pub fn remove(&mut self, layer: Layer, path: &Path) -> Result<()> {
        self.add(layer, path, (Deed::Remove, String::new()))
    }

    /// Makes all of it, or nothing. What belongs to a project and what belongs to a user are two
    /// changes; the one that only removes comes last, so that nothing is lost between them.
    pub fn commit(self) -> Result<()> {
        let removes = |one: &Move| one.deed == Deed::Remove;
        let mut roots: Vec<(PathBuf, Batch)> = self.roots.into_iter().collect();
        roots.sort_by_key(|(_, batch)| batch.plan.moves.iter().all(removes));
        for (root, batch) in roots {
            Site {
                shelves: self.shelves,
                root,
                batch,
            }
            .commit()?;
        }
        Ok(())
    }

    fn add(&mut self, layer: Layer, path: &Path, (deed, text): (Deed, String)) -> Result<()> {
        let root = self.shelves.root(layer)?;
        assert!(
            self.held.roots.contains_key(&root),
            "a layer is held before it is changed"
        );
        let dir = self.shelves.usable_dir(layer)?;
        let below = path.strip_prefix(dir).unwrap_or(path).to_owned();
        assert!(
            self.changed.insert(path.to_owned()),
            "a file is changed once in a change"
        );
        let batch = self.roots.entry(root).or_insert_with(Batch::new);
        batch.plan.moves.push(Move {
            layer: layer.name().to_owned(),
            path: below,
            deed,
        });
        batch.texts.push(text);
        Ok(())
    }

    /// Where an entry of a layer lies, or would. A file that was put elsewhere in the layer stays
    /// where it is.
    fn path_of(&mut self, layer: Layer, id: &str) -> Result<PathBuf> {
        if !is_id(id) {
            return Err(CommandError::usage(format!("{id:?} is no id"))
                .hint("use lower-case letters, digits and hyphens; see docs/knowledge.md"));
        }
        let dir = self.shelves.usable_dir(layer)?;
        let named = dir.join(format!("{id}.md"));
        let moves = matches!(layer, Layer::Project | Layer::User);
        if !moves || named.exists() {
            return Ok(named);
        }
        if !self.shelved.contains_key(&layer) {
            let shelved = self.shelves.shelved(layer)?;
            self.shelved.insert(layer, shelved);
        }
        let shelved = self.shelved.get(&layer);
        let moved = shelved.and_then(|shelved| shelved.get(id)).cloned();
        Ok(moved.unwrap_or(named))
    }
}

#[cfg(test)]
mod tests;
