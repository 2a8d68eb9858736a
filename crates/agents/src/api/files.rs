//! Files of a worktree, as a model may read and change them: nothing outside, nothing behind a
//! symlink, and only editable files are written.
//!
//! Anything that a model, or a build that it started, puts into the worktree is checked without
//! following symlinks. No build process is running when files are accessed, so the checked file is
//! the opened file.

use crate::secrets::Secrets;
use globset::GlobSet;
use karve_harness::project_file;
use karve_os::files;
use regex::RegexBuilder;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};

/// The largest file that is read or written.
const FILE_BYTES_MAX: u64 = 4 << 20;
/// Characters that one read or search returns.
const SHOWN_CHARS_MAX: usize = 24_000;
/// Lines that one read returns, unless fewer are requested.
const LINES_MAX: usize = 2_000;
/// Entries of one directory that are listed.
const LISTED_MAX: usize = 500;
/// Files and directories that one search visits.
const ENTRIES_MAX: usize = 20_000;
/// Bytes that one search reads.
const SEARCHED_BYTES_MAX: u64 = 64 << 20;
/// Lines that one search returns.
const SEARCH_LINES_MAX: usize = 200;
/// Characters of one such line.
const SEARCH_LINE_CHARS_MAX: usize = 300;
/// Memory limit for a pattern.
const PATTERN_BYTES_MAX: usize = 1 << 20;

/// The result, or an error for the model to read.
pub(super) type FileResult<T> = std::result::Result<T, String>;

/// The files of a turn.
#[derive(Debug)]
pub(super) struct WorkspaceFiles<'a> {
    tree: &'a Path,
    editable: GlobSet,
    /// The editable files, in words.
    named: String,
    secrets: &'a Secrets,
}

impl<'a> WorkspaceFiles<'a> {
    /// The files of a worktree, some of them editable.
    pub(super) fn new(
        tree: &'a Path,
        editable: &[String],
        secrets: &'a Secrets,
    ) -> karve_os::error::Result<Self> {
        Ok(Self {
            tree,
            editable: project_file::glob_set(editable)?,
            named: editable.join(", "),
            secrets,
        })
    }

    /// Some lines of a file, or the contents of a directory.
    pub(super) fn read(&self, path: &str, from: usize, lines: usize) -> FileResult<String> {
        let at = self.inside(path)?;
        let kind = fs::symlink_metadata(&at).map_err(|error| format!("{path}: {error}"))?;
        if kind.is_dir() {
            return self.list(&at);
        }
        let text = self.text(path, &at)?;
        let n_lines = text.lines().count();
        let from = from.max(1);
        let wanted = text.split_inclusive('\n').skip(from - 1);
        let mut shown = String::new();
        let mut last = from - 1;
        for line in wanted.take(lines.clamp(1, LINES_MAX)) {
            if shown.chars().count() + line.chars().count() > SHOWN_CHARS_MAX {
                if shown.is_empty() {
                    shown = line.chars().take(SHOWN_CHARS_MAX).collect();
                    last += 1;
                }
                break;
            }
            shown.push_str(line);
            last += 1;
        }
        Ok(match from == 1 && last == n_lines {
            true => shown,
            false => format!("[lines {from} to {last} of {n_lines}]\n{shown}"),
        })
    }

    fn list(&self, dir: &Path) -> FileResult<String> {
        let entries = fs::read_dir(dir).map_err(|error| error.to_string())?;
        let mut names = Vec::new();
        for entry in entries.flatten().take(LISTED_MAX) {
            let name = entry.file_name().to_string_lossy().into_owned();
            match entry.file_type() {
                Ok(_) if name == ".git" => {}
                Ok(kind) if kind.is_dir() => names.push(format!("{name}/")),
                Ok(kind) if kind.is_symlink() => names.push(format!("{name} (a link)")),
                Ok(_) | Err(_) => names.push(name),
            }
        }
        names.sort();
        Ok(names.join("\n"))
    }

    /// Lines that match a pattern, each with its file and number.
    pub(super) fn search(&self, pattern: &str, below: &str) -> FileResult<String> {
        let mut builder = RegexBuilder::new(pattern);
        let pattern = builder.size_limit(PATTERN_BYTES_MAX).build();
        let pattern = pattern.map_err(|error| format!("the pattern is not valid: {error}"))?;
        let mut stack = vec![self.inside(below)?];
        let (mut entries, mut bytes) = (0, 0);
        let mut found = Vec::new();
        while let Some(at) = stack.pop() {
            entries += 1;
            let Ok(data) = fs::symlink_metadata(&at) else {
                continue;
            };
            if data.is_dir() {
                let mut below: Vec<PathBuf> = fs::read_dir(&at)
                    .into_iter()
                    .flatten()
                    .flatten()
                    .filter(|entry| entry.file_name() != ".git")
                    .take(ENTRIES_MAX)
                    .map(|entry| entry.path())
                    .collect();
                below.sort_by(|a, b| b.cmp(a));
                stack.extend(below);
            } else if data.is_file() && data.len() <= FILE_BYTES_MAX {
                bytes += data.len();
                self.search_in(&at, &pattern, &mut found);
            }
            let enough = entries >= ENTRIES_MAX || bytes >= SEARCHED_BYTES_MAX;
            if enough || found.len() >= SEARCH_LINES_MAX {
                found.push("[there may be more]".into());
                break;
            }
        }
        Ok(match found.is_empty() {
            true => "nothing matches".into(),
            false => found.join("\n").chars().take(SHOWN_CHARS_MAX).collect(),
        })
    }

    fn search_in(&self, at: &Path, pattern: &regex::Regex, found: &mut Vec<String>) {
        let name = at.strip_prefix(self.tree).unwrap_or(at).to_string_lossy();
        let Ok(text) = self.text(&name, at) else {
            return;
        };
        for (n, line) in text.lines().enumerate() {
            if found.len() >= SEARCH_LINES_MAX {
                return;
            }
            if pattern.is_match(line) {
                let line: String = line.chars().take(SEARCH_LINE_CHARS_MAX).collect();
                found.push(format!("{name}:{}: {line}", n + 1));
            }
        }
    }

    /// Replaces a text that occurs once.
    pub(super) fn edit(&self, path: &str, old: &str, new: &str) -> FileResult<String> {
        let at = self.may_write(path)?;
        let text = self.text(path, &at)?;
        if old.is_empty() {
            return Err("old is empty; use write to replace a whole file".into());
        }
        match text.matches(old).count() {
            1 => self.put(path, &at, &text.replacen(old, new, 1)),
            0 => Err(format!("{path} does not contain this text; old must match exactly")),
            n => Err(format!("{path} contains it {n} times; make old longer")),
        }
    }

    /// Writes a whole file, which may be new.
    pub(super) fn write(&self, path: &str, text: &str) -> FileResult<String> {
        let at = self.may_write(path)?;
        self.put(path, &at, text)
    }

    /// An editable file, whether it exists or not.
    pub(super) fn may_write(&self, path: &str) -> FileResult<PathBuf> {
        let at = self.inside(path)?;
        let name = at.strip_prefix(self.tree).unwrap_or(&at);
        match self.editable.is_match(name) {
            true => Ok(at),
            false => Err(format!("{path} is not editable; the editable files are: {}", self.named)),
        }
    }

    fn put(&self, path: &str, at: &Path, text: &str) -> FileResult<String> {
        if text.len() as u64 > FILE_BYTES_MAX {
            return Err(format!("{path} would exceed {FILE_BYTES_MAX} bytes"));
        }
        if self.secrets.are_in(text.as_bytes()) {
            return Err(format!("{path} would contain the value of a key"));
        }
        let reported = |error: std::io::Error| format!("{path}: {error}");
        let dir = at.parent().unwrap_or(self.tree);
        fs::create_dir_all(dir).map_err(reported)?;
        let mode = match fs::symlink_metadata(at) {
            Ok(data) if data.is_file() => Some(data.permissions().mode()),
            Ok(_) => return Err(format!("{path} is not a regular file")),
            Err(_) => None,
        };
        // A new file replaces it: a hard link to the old one keeps its content.
        let mut fresh = tempfile::NamedTempFile::new_in(dir).map_err(reported)?;
        std::io::Write::write_all(&mut fresh, text.as_bytes()).map_err(reported)?;
        let mode = fs::Permissions::from_mode(mode.unwrap_or(0o644) & 0o777);
        fs::set_permissions(fresh.path(), mode).map_err(reported)?;
        fresh.persist(at).map_err(|error| reported(error.error))?;
        Ok(format!("wrote {path}"))
    }

    /// The text of a regular file, without hidden cases.
    fn text(&self, path: &str, at: &Path) -> FileResult<String> {
        let plain = fs::symlink_metadata(at).is_ok_and(|data| data.is_file());
        if !plain {
            return Err(format!("{path} is not a regular file"));
        }
        let text = files::read_text(at, FILE_BYTES_MAX);
        let text = text.map_err(|error| format!("{path}: {error}"))?;
        let is_config = at.file_name().is_some_and(|name| name == project_file::FILE_NAME);
        let less = is_config.then(|| project_file::without_hidden(&text)).flatten();
        Ok(less.unwrap_or(text))
    }

    /// The location of a path in the worktree; no component of it is a symlink.
    fn inside(&self, path: &str) -> FileResult<PathBuf> {
        let mut at = self.tree.to_owned();
        for part in Path::new(path).components() {
            match part {
                Component::CurDir => continue,
                Component::Normal(name) if name != ".git" => at.push(name),
                Component::Normal(_)
                | Component::ParentDir
                | Component::RootDir
                | Component::Prefix(_) => {
                    return Err(format!("{path} is not a path in the project"));
                }
            }
            if fs::symlink_metadata(&at).is_ok_and(|data| data.is_symlink()) {
                return Err(format!("{path} goes through a symlink"));
            }
        }
        Ok(at)
    }
}
