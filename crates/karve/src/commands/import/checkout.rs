//! Reads the files of a checkout that may hold tasks, within limits.

use crate::tasks::{TaskFiles, TaskFormat};
use karve_os::error::{CommandError, Result, WithContext};
use karve_os::files;
use std::fs;
use std::path::Path;

/// Most files, directories below each other, and bytes of one file and of all.
const FILES_MAX: usize = 50_000;
const DEPTH_MAX: usize = 16;
const FILE_BYTES_MAX: u64 = 16 << 20;
const BYTES_MAX: u64 = 1 << 30;

/// How far above the directory files may be that a task names.
const LEVELS_UP: usize = 2;

/// Directories that hold no tasks.
const SKIPPED: [&str; 6] = [".git", "__pycache__", "node_modules", ".venv", "target", ".karve"];

/// Ends of files that are large and no text; a task can name them all the same.
const BINARY: [&str; 9] =
    [".safetensors", ".pt", ".bin", ".npz", ".npy", ".png", ".so", ".gz", ".parquet"];

/// The files of a path: one file, or all below a directory and those next to it.
pub(super) fn read(path: &Path, format: TaskFormat) -> Result<TaskFiles> {
    let about = fs::metadata(path).context(|| format!("cannot read {}", path.display())).map_err(
        |error| error.hint("name a file or directory as PATH; see \"karve help import\""),
    )?;
    let mut found = CheckoutReader { files: TaskFiles::default(), bytes: 0 };
    if about.is_file() {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        found.file(path, &name)?;
        return Ok(found.files);
    }
    found.directory(path, "", DEPTH_MAX)?;
    if let Some(manifest) = format.manifest() {
        found.named_above(path, manifest)?;
    }
    found.files.root = fs::canonicalize(path).unwrap_or_default().display().to_string();
    Ok(found.files)
}

struct CheckoutReader {
    files: TaskFiles,
    bytes: u64,
}

impl CheckoutReader {
    /// Reads the files above the directory that manifests name, such as `../eval.py`: sources, at
    /// most two levels up.
    fn named_above(&mut self, path: &Path, manifest: &str) -> Result<()> {
        let texts = self.files.files.iter().filter(|(name, _)| name.ends_with(manifest));
        let mut wanted = Vec::new();
        for (name, bytes) in texts {
            let text = String::from_utf8_lossy(bytes);
            let up = name.matches('/').count();
            let words = text.split(['"', '\'', ' ', ',', '{', '}', '\n']);
            for word in words.filter(|word| word.starts_with("../") && is_source(word)) {
                let rest = word.trim_start_matches("../");
                let above = word.matches("../").count().saturating_sub(up);
                if (1..=LEVELS_UP).contains(&above) && !rest.contains("..") {
                    wanted.push(format!("{}{rest}", "../".repeat(above)));
                }
            }
        }
        wanted.sort_unstable();
        wanted.dedup();
        let base = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        for name in wanted {
            let path = base.join(&name);
            if path.symlink_metadata().is_ok_and(|about| about.is_file()) {
                self.file(&path, &name)?;
            }
        }
        Ok(())
    }

    /// Reads a directory, and those below it down to a depth.
    fn directory(&mut self, dir: &Path, prefix: &str, depth: usize) -> Result<()> {
        let entries = fs::read_dir(dir).context(|| format!("cannot read {}", dir.display()))?;
        let mut entries: Vec<_> = entries.filter_map(std::result::Result::ok).collect();
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let name = entry.file_name().to_string_lossy().into_owned();
            // A link is not followed: it may lead anywhere.
            let Ok(kind) = entry.file_type() else {
                continue;
            };
            if kind.is_file() {
                self.file(&entry.path(), &format!("{prefix}{name}"))?;
            } else if kind.is_dir() && depth > 0 && !SKIPPED.contains(&name.as_str()) {
                self.directory(&entry.path(), &format!("{prefix}{name}/"), depth - 1)?;
            }
        }
        Ok(())
    }

    fn file(&mut self, path: &Path, name: &str) -> Result<()> {
        let n_files = self.files.files.len() + self.files.unread.len();
        if n_files >= FILES_MAX || self.bytes > BYTES_MAX {
            let message = format!("there are more than {FILES_MAX} files or 1 GiB in PATH");
            return Err(CommandError::usage(message)
                .hint("name a smaller directory as PATH; see \"karve help import\""));
        }
        let is_binary = BINARY.iter().any(|end| name.ends_with(end));
        match files::read(path, FILE_BYTES_MAX) {
            Ok(bytes) if !is_binary => {
                self.bytes += bytes.len() as u64;
                self.files.files.insert(name.to_owned(), bytes);
            }
            Ok(_) | Err(_) => self.files.unread.push(name.to_owned()),
        }
        Ok(())
    }
}

/// Whether a file is a source of a task.
fn is_source(name: &str) -> bool {
    [".py", ".cu", ".cuh", ".h", ".hpp", ".yml"].iter().any(|end| name.ends_with(end))
}
