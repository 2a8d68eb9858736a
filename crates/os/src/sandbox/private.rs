//! A home, temporary files and shared memory that only confined commands see, empty before each
//! command.

use crate::error::{Result, WithContext};
use crate::process::{NamespaceSandbox, NamespaceView};
use karve_core::charter::Caches;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

/// Directories in the home that programs find through a variable: its name, and the path.
const TOOLS: [(&str, &str); 6] = [
    ("CARGO_HOME", ".cargo"),
    ("RUSTUP_HOME", ".rustup"),
    ("PYTHONUSERBASE", ".local"),
    ("PYENV_ROOT", ".pyenv"),
    ("GOPATH", "go"),
    ("JULIA_DEPOT_PATH", ".julia"),
];

/// Variables that set where programs store things, and the path in the home.
const KEPT: [(&str, &str); 14] = [
    ("HOME", ""),
    ("XDG_CACHE_HOME", ".cache"),
    ("XDG_CONFIG_HOME", ".config"),
    ("XDG_DATA_HOME", ".local/share"),
    ("XDG_STATE_HOME", ".local/state"),
    ("CCACHE_DIR", ".ccache"),
    ("TRITON_CACHE_DIR", ".triton"),
    ("CUDA_TILE_CACHE_DIR", ".cutile"),
    ("CUTE_DSL_CACHE_DIR", ".cute-dsl"),
    ("TORCHINDUCTOR_CACHE_DIR", ".torchinductor"),
    ("TORCH_EXTENSIONS_DIR", ".torch-extensions"),
    ("CUDA_CACHE_PATH", ".cuda-cache"),
    ("NUMBA_CACHE_DIR", ".numba"),
    ("GOCACHE", ".go-cache"),
];

/// The private directories of confined commands.
#[derive(Debug)]
pub struct PrivateDirs {
    dir: PathBuf,
    /// The commands' temporary directory; in a namespace sandbox it is the usual one.
    tmp_seen: PathBuf,
    /// The shared memory of each sandbox, as karve sees it.
    shm: Vec<(PathBuf, Arc<NamespaceSandbox>)>,
    /// What is in the temporary directory because something below it is visible.
    kept: Vec<PathBuf>,
}

impl PrivateDirs {
    /// Creates the directories, empty, in their own directory.
    pub fn make(dir: &Path) -> Result<Self> {
        let cannot = || format!("cannot create {}", dir.display());
        let _ = fs::remove_dir_all(dir);
        for name in ["tmp", "vartmp", "homes"] {
            fs::create_dir_all(dir.join(name)).context(cannot)?;
        }
        Ok(Self {
            dir: dir.to_owned(),
            tmp_seen: dir.join("tmp"),
            shm: Vec::new(),
            kept: Vec::new(),
        })
    }

    /// The `/tmp` of a sandbox.
    pub(super) fn tmp(&self) -> PathBuf {
        self.dir.join("tmp")
    }

    /// The `/var/tmp` of a sandbox.
    pub(super) fn vartmp(&self) -> PathBuf {
        self.dir.join("vartmp")
    }

    /// The directory of all homes.
    pub(super) fn homes(&self) -> PathBuf {
        self.dir.join("homes")
    }

    /// An empty directory for what a test writes in its worktree.
    pub(super) fn fresh_layer(&self) -> Result<PathBuf> {
        let layer = self.dir.join("layer");
        let cannot = || format!("cannot create {}", layer.display());
        if layer.exists() {
            remove_dir(&layer).context(cannot)?;
        }
        for name in ["upper", "work"] {
            fs::create_dir_all(layer.join(name)).context(cannot)?;
        }
        Ok(layer)
    }

    /// Registers a sandbox in which they are visible.
    pub(super) fn mount_in(&mut self, room: &Arc<NamespaceSandbox>, view: &NamespaceView) {
        self.tmp_seen = "/tmp".into();
        let shm = room.root().join("dev/shm");
        let usual = [("/tmp", self.tmp()), ("/var/tmp", self.vartmp()), ("/dev/shm", shm.clone())];
        for (usual, own) in usual {
            let below = view.shown.iter().filter_map(|one| one.at.strip_prefix(usual).ok());
            let below = below.filter(|path| path.components().next().is_some());
            self.kept.extend(below.map(|path| own.join(path)));
        }
        self.shm.push((shm, room.clone()));
    }

    /// Where a confined command with this home may write.
    pub(super) fn places(&self, home: &str) -> Vec<PathBuf> {
        vec![self.homes().join(home), self.tmp(), self.vartmp()]
    }

    /// Variables that point a command to its private directories.
    pub(super) fn variables(&self, home: &str) -> Vec<(String, String)> {
        let home = self.homes().join(home);
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let mut set: Vec<(String, String)> = KEPT
            .iter()
            .map(|(name, at)| {
                let at = if at.is_empty() { home.clone() } else { home.join(at) };
                ((*name).to_owned(), text(&at))
            })
            .collect();
        set.push(("TMPDIR".into(), text(&self.tmp_seen)));
        set.push(("PYTHONDONTWRITEBYTECODE".into(), "1".into()));
        let real = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
        for (name, at) in TOOLS {
            let there = real.join(at);
            if std::env::var_os(name).is_none() && real.is_absolute() && there.is_dir() {
                set.push((name.to_owned(), text(&there)));
            }
        }
        set
    }

    /// Removes everything that commands left; with per-worktree caches, homes stay.
    pub(super) fn clean(&self, home: &str, caches: Caches) -> Result<()> {
        let cannot = || format!("cannot empty {}", self.dir.display());
        empty(&self.tmp(), &self.kept).context(cannot)?;
        empty(&self.vartmp(), &self.kept).context(cannot)?;
        for (shm, _) in &self.shm {
            empty(shm, &self.kept).context(cannot)?;
        }
        let home = self.homes().join(home);
        match fs::create_dir(&home) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                Err(error).context(cannot)
            }
            Err(_) if caches == Caches::Tree => Ok(()),
            Err(_) => empty(&home, &[]).context(cannot),
        }
    }
}

/// Removes everything in a directory except what is kept, and its parents.
pub fn empty(dir: &Path, kept: &[PathBuf]) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let path = entry.path();
        if kept.contains(&path) {
            continue;
        }
        if kept.iter().any(|one| one.starts_with(&path)) {
            empty(&path, kept)?;
        } else if entry.file_type()?.is_dir() {
            remove_dir(&path)?;
        } else {
            fs::remove_file(&path)?;
        }
    }
    Ok(())
}

/// Removes a directory, even if a command removed its own permissions.
fn remove_dir(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    if fs::remove_dir_all(path).is_ok() {
        return Ok(());
    }
    let mut stack = vec![path.to_owned()];
    while let Some(dir) = stack.pop() {
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o700))?;
        let dirs = fs::read_dir(&dir)?.filter_map(io::Result::ok);
        let dirs = dirs.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        stack.extend(dirs.map(|entry| entry.path()));
    }
    fs::remove_dir_all(path)
}
