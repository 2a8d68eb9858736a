//! Cached facts about objects, so that git need not be called again.
//!
//! The name of an object determines its contents, so cached facts never become stale. The cache
//! is optional: it is lost with the process, and a miss is looked up.

use karve_os::sync::locked;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

use sha2::{Digest, Sha256};

use super::Oid;
use super::history::RawEntry;

/// How many listings and indexes are cached, and how large each may be.
const TREES_MAX: usize = 4;
const ENTRIES_MAX: usize = 50_000;
const INDEX_BYTES_MAX: usize = 8 << 20;

/// For how many files the contents are cached.
const FILES_MAX: usize = 200_000;

/// A short name for contents.
pub(super) type ContentDigest = [u8; 32];

/// The cache of a repository, shared by all its clones.
#[derive(Clone, Default)]
pub(super) struct GitCache(Arc<Mutex<GitCacheState>>);

#[derive(Default)]
struct GitCacheState {
    listings: RecentCache<Arc<Vec<RawEntry>>>,
    indexes: RecentCache<Arc<Vec<u8>>>,
    /// The contents of files that were compared with what git stores.
    prints: HashMap<Oid, ContentDigest>,
    /// Paths whose file was found to be checked out exactly as stored.
    plain: HashSet<(Vec<u8>, Oid)>,
}

/// The most recently used items, newest last.
struct RecentCache<T>(Vec<(Oid, T)>);

impl<T> Default for RecentCache<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: Clone> RecentCache<T> {
    fn get(&mut self, oid: &Oid) -> Option<T> {
        let at = self.0.iter().position(|(known, _)| known == oid)?;
        let found = self.0.remove(at);
        let value = found.1.clone();
        self.0.push(found);
        Some(value)
    }

    fn put(&mut self, oid: &Oid, value: T) {
        self.0.retain(|(known, _)| known != oid);
        if self.0.len() >= TREES_MAX {
            self.0.remove(0);
        }
        self.0.push((oid.clone(), value));
    }
}

impl GitCache {
    fn known(&self) -> MutexGuard<'_, GitCacheState> {
        locked(&self.0)
    }

    /// The files of a commit or tree.
    pub(super) fn listing(&self, oid: &Oid) -> Option<Arc<Vec<RawEntry>>> {
        self.known().listings.get(oid)
    }

    pub(super) fn keep_listing(&self, oid: &Oid, entries: &Arc<Vec<RawEntry>>) {
        if entries.len() <= ENTRIES_MAX {
            self.known().listings.put(oid, entries.clone());
        }
    }

    /// The bytes of an index that holds a commit or tree.
    pub(super) fn index(&self, oid: &Oid) -> Option<Arc<Vec<u8>>> {
        self.known().indexes.get(oid)
    }

    pub(super) fn keep_index(&self, oid: &Oid, bytes: Vec<u8>) {
        if bytes.len() <= INDEX_BYTES_MAX {
            self.known().indexes.put(oid, Arc::new(bytes));
        }
    }

    /// The contents of a stored file.
    pub(super) fn print(&self, oid: &Oid) -> Option<ContentDigest> {
        self.known().prints.get(oid).copied()
    }

    pub(super) fn keep_print(&self, oid: &Oid, print: ContentDigest) {
        let mut known = self.known();
        if known.prints.len() < FILES_MAX {
            known.prints.insert(oid.clone(), print);
        }
    }

    /// Whether the file at a path was found to be checked out as stored, without conversion.
    pub(super) fn is_plain(&self, path: &[u8], oid: &Oid) -> bool {
        let key = (path.to_vec(), oid.clone());
        self.known().plain.contains(&key)
    }

    pub(super) fn keep_plain(&self, path: &[u8], oid: &Oid) {
        let mut known = self.known();
        if known.plain.len() < FILES_MAX {
            known.plain.insert((path.to_vec(), oid.clone()));
        }
    }
}

/// Two clones of a repository are equal whatever they have cached.
impl PartialEq for GitCache {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for GitCache {}

impl fmt::Debug for GitCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Memory")
    }
}

/// Reads a file that should be a plain one; none if it cannot be read.
pub(super) fn print_of(path: &Path) -> Option<ContentDigest> {
    let mut file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
        .open(path)
        .ok()?;
    let mut digest = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Some(digest.finalize().into()),
            Ok(n) => digest.update(&buffer[..n]),
            Err(_) => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn oid(n: usize) -> Oid {
        Oid(format!("{n:040x}"))
    }

    #[test]
    fn what_was_used_last_is_forgotten_last() {
        let memory = GitCache::default();
        for n in 0..TREES_MAX {
            memory.keep_index(&oid(n), vec![n as u8]);
        }
        assert_eq!(memory.index(&oid(0)).as_deref(), Some(&vec![0]));
        memory.clone().keep_index(&oid(9), vec![9]);
        assert_eq!(memory.index(&oid(1)), None);
        for n in [0, 2, 3, 9] {
            assert_eq!(memory.index(&oid(n)).as_deref(), Some(&vec![n as u8]));
        }
    }

    #[test]
    fn what_is_too_large_is_not_kept() {
        let memory = GitCache::default();
        memory.keep_index(&oid(0), vec![0; INDEX_BYTES_MAX + 1]);
        assert_eq!(memory.index(&oid(0)), None);
    }
}
