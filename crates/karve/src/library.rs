//! Knowledge on disk: entries as Markdown with front matter, reviewed like code.
//!
//! There are four layers. The nearest one that has an entry wins, and the others are named:
//!
//! ```text
//! built in    ships with karve
//! user        $XDG_CONFIG_HOME/karve/knowledge    applies to all of a user's projects
//! project     knowledge/ next to karve.toml       reviewed with the project
//! staged      .karve/knowledge                    found by campaigns, not promoted yet
//! ```
//!
//! The project and staged directories must not be symlinks that point outside their parent; the
//! user's own directory may be anywhere.

pub mod catalog;
pub mod dialects;
pub mod difference;
pub mod learn;
pub mod markdown;
pub mod recall;
pub mod situation;
mod writing;

pub use writing::{LayerLock, LibraryChange};

use karve_core::knowledge::{Entry, Library, is_id};
use karve_os::error::{CommandError, Result};
use karve_os::files;
use markdown::{ENTRY_BYTES_MAX, parse_entry};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Most files in one layer.
const FILES_MAX: usize = 20_000;
/// How many levels of subdirectories are searched.
const DEPTH_MAX: u32 = 4;
/// The directory of a project's own entries.
pub const PROJECT_DIR: &str = "knowledge";

/// The layer an entry was read from. Later variants are nearer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Layer {
    /// In karve itself.
    BuiltIn,
    /// In the user's own layer.
    User,
    /// In the project.
    Project,
    /// Found by a campaign, not promoted yet.
    Staged,
}

impl Layer {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::BuiltIn => "built in",
            Self::User => "user",
            Self::Project => "project",
            Self::Staged => "staged",
        }
    }
}

/// The directories of the layers.
#[derive(Clone, Debug, Default)]
pub struct LibraryLayers {
    dirs: BTreeMap<Layer, PathBuf>,
}

/// An entry, and where it was read from.
#[derive(Clone, Debug)]
pub struct LoadedEntry {
    /// The entry.
    pub entry: Entry,
    /// The layer that won.
    pub layer: Layer,
    /// Its file; none for built-in entries.
    pub path: Option<PathBuf>,
    /// Farther layers that also have it.
    pub hides: Vec<Layer>,
}

/// All entries of all layers.
#[derive(Debug)]
pub struct LoadedLibrary {
    /// The entries that won, by id.
    pub placed: BTreeMap<String, LoadedEntry>,
    /// Files that are not entries, and why.
    pub unreadable: Vec<(PathBuf, String)>,
    /// What happened to changes left behind by a karve that was killed.
    pub settled: Vec<String>,
    /// The entries, ready to be searched.
    pub library: Library,
}

impl LibraryLayers {
    /// The layers of a project: beside its `karve.toml`, and in the directory of its campaigns.
    pub fn of_project(config: &Path, campaigns: &Path) -> Self {
        let mut layers = Self::of_user();
        let beside = config.parent().unwrap_or(Path::new("."));
        layers.put(Layer::Project, beside.join(PROJECT_DIR));
        layers.put(Layer::Staged, campaigns.join(PROJECT_DIR));
        layers
    }

    /// Only the built-in and user layers.
    pub fn of_user() -> Self {
        let mut library_layers = Self::default();
        if let Some(dir) = user_dir() {
            library_layers.put(Layer::User, dir);
        }
        library_layers
    }

    /// Adds or moves a layer.
    pub fn put(&mut self, layer: Layer, dir: PathBuf) {
        self.dirs.insert(layer, dir);
    }

    /// The directory of a layer.
    pub fn dir(&self, layer: Layer) -> Option<&Path> {
        self.dirs.get(&layer).map(PathBuf::as_path)
    }

    /// Reads all layers.
    pub fn load(&self) -> Result<LoadedLibrary> {
        let mut placed: BTreeMap<String, LoadedEntry> = BTreeMap::new();
        let mut unreadable = Vec::new();
        let mut settled = Vec::new();
        for left in self.settle_leftover() {
            settled.push(left.unwrap_or_else(|error| error.to_string()));
        }
        for entry in catalog::built_in() {
            add(&mut placed, entry, Layer::BuiltIn, None);
        }
        for (layer, dir) in &self.dirs {
            if let Err(error) = self.usable_dir(*layer) {
                unreadable.push((dir.clone(), error.message));
                continue;
            }
            let (files, strange) = walk(dir)?;
            let why = "it is a symlink or not a regular file".to_owned();
            unreadable.extend(strange.into_iter().map(|path| (path, why.clone())));
            let mut read = Vec::new();
            for path in files {
                match read_entry(&path) {
                    Ok(entry) => read.push((!is_named_after(&path, &entry.id), path, entry)),
                    Err(why) => unreadable.push((path, why)),
                }
            }
            // Of two entries with the same id, the one whose file name matches wins.
            read.sort_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
            for (_, path, entry) in read {
                let twin = placed.get(&entry.id).filter(|twin| twin.layer == *layer);
                match twin.and_then(|twin| twin.path.as_ref()) {
                    Some(twin) => {
                        let why = format!("its id {} is also used by {}", entry.id, twin.display());
                        unreadable.push((path, why));
                    }
                    None => add(&mut placed, entry, *layer, Some(path)),
                }
            }
        }
        let entries = placed.values().map(|placed| placed.entry.clone());
        Ok(LoadedLibrary { library: Library::new(entries.collect()), placed, unreadable, settled })
    }

    /// The directory of a layer, if it may be used. A cloned repository may contain a symlink that
    /// points anywhere: files of a project must stay inside it.
    fn usable_dir(&self, layer: Layer) -> Result<&Path> {
        let dir = self.dir(layer).ok_or_else(|| {
            CommandError::usage(format!("there is no {} layer here", layer.name()))
                .hint("run it in a project with karve.toml, or use --to user")
        })?;
        match layer {
            Layer::Project | Layer::Staged if leads_out(dir) => Err(CommandError::usage(format!(
                "{} is a symlink that points outside {}",
                dir.display(),
                dir.parent().unwrap_or(dir).display()
            ))
            .hint("make it a directory; use --to user for what all your projects share")),
            Layer::BuiltIn | Layer::User | Layer::Project | Layer::Staged => Ok(dir),
        }
    }

    /// The files of a layer by the id of their entry; the first one if an id is used twice.
    fn files_by_id(&self, layer: Layer) -> Result<BTreeMap<String, PathBuf>> {
        let mut layered = BTreeMap::new();
        for path in markdown_below(self.usable_dir(layer)?)? {
            if let Ok(entry) = read_entry(&path) {
                layered.entry(entry.id).or_insert(path);
            }
        }
        Ok(layered)
    }
}

/// Whether a directory is a symlink that points outside its parent directory.
fn leads_out(dir: &Path) -> bool {
    let is_link = fs::symlink_metadata(dir).is_ok_and(|data| data.is_symlink());
    let ends = |path: &Path| fs::canonicalize(path).ok();
    let stays = match (ends(dir), dir.parent().and_then(ends)) {
        (Some(end), Some(parent)) => end.starts_with(parent),
        (_, _) => false,
    };
    is_link && !stays
}

impl LoadedLibrary {
    /// The entry with that id or alias, and where it was read from.
    pub fn get(&self, id: &str) -> Result<&LoadedEntry> {
        let found = self.library.get(id);
        found.and_then(|entry| self.placed.get(&entry.id)).ok_or_else(|| {
            CommandError::usage(format!("there is no entry {id:?}"))
                .hint("\"karve knowledge search WORDS\" finds entries")
        })
    }
}

/// A nearer entry replaces a farther one and records that it did.
fn add(
    placed: &mut BTreeMap<String, LoadedEntry>,
    entry: Entry,
    layer: Layer,
    path: Option<PathBuf>,
) {
    let id = entry.id.clone();
    let mut hides = Vec::new();
    if let Some(before) = placed.remove(&id) {
        hides = before.hides;
        hides.push(before.layer);
    }
    let nearest = LoadedEntry { entry, layer, path, hides };
    placed.insert(id, nearest);
}

/// Where a person's own entries are.
fn user_dir() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let config = set("XDG_CONFIG_HOME")
        .map(PathBuf::from)
        .or_else(|| set("HOME").map(|home| PathBuf::from(home).join(".config")))?;
    config.is_absolute().then(|| config.join("karve").join(PROJECT_DIR))
}

/// Reads a file as an entry.
pub fn read_entry(path: &Path) -> Result<Entry, String> {
    let text = files::read_text(path, ENTRY_BYTES_MAX as u64).map_err(|e| e.to_string())?;
    let entry = parse_entry(&text)?;
    // An id becomes a file name.
    match is_id(&entry.id) {
        true => Ok(entry),
        false => Err(format!("{:?} is not a valid id", entry.id)),
    }
}

fn is_named_after(path: &Path, id: &str) -> bool {
    path.file_stem().is_some_and(|stem| stem == id)
}

/// The Markdown files of a layer, in order; none if it does not exist. Symlinks are not followed.
pub fn markdown_below(dir: &Path) -> Result<Vec<PathBuf>> {
    Ok(walk(dir)?.0)
}

/// The Markdown files of a layer, and the paths with such a name that are not regular files.
fn walk(dir: &Path) -> Result<(Vec<PathBuf>, Vec<PathBuf>)> {
    let (mut files, mut strange) = (Vec::new(), Vec::new());
    let mut next = vec![(dir.to_owned(), 0)];
    while let Some((dir, depth)) = next.pop() {
        let Ok(entries) = fs::read_dir(&dir) else {
            continue;
        };
        for entry in entries.flatten() {
            let path = entry.path();
            let Ok(kind) = entry.file_type() else {
                continue;
            };
            let is_entry = path.extension().is_some_and(|end| end == "md")
                && path.file_name().is_some_and(|name| name != "README.md");
            if kind.is_dir() && depth < DEPTH_MAX {
                next.push((path, depth + 1));
            } else if kind.is_file() && is_entry {
                files.push(path);
            } else if is_entry {
                strange.push(path);
            }
            if files.len() + strange.len() > FILES_MAX {
                return Err(CommandError::usage(format!(
                    "there are more than {FILES_MAX} files in {}",
                    dir.display()
                ))
                .hint("keep fewer entries there; see docs/knowledge.md"));
            }
        }
    }
    files.sort();
    strange.sort();
    Ok((files, strange))
}

#[cfg(test)]
mod tests;
