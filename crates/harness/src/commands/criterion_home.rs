//! Where criterion writes its estimates during one run of a benchmark.
//!
//! A directory of its own for each run: nothing stale is read, and the command need not print
//! what criterion keeps in files.

use super::Harness;
use super::output::OutputFormat;
use karve_os::error::{Result, WithContext};
use karve_os::files;
use std::fs;
use std::path::{Path, PathBuf};

/// The variable that names the directory.
pub(super) const VARIABLE: &str = "CRITERION_HOME";

/// The directory of the latest estimates of a benchmark.
const LATEST: &str = "new";

/// What is there for each benchmark: its name, then its estimates.
const FILES: [&str; 2] = ["benchmark.json", "estimates.json"];

/// How deep the directories of groups, functions and values are nested.
const DEPTH_MAX: usize = 8;

/// The largest file, in bytes, and the most directories.
const FILE_BYTES_MAX: u64 = 1 << 20;
const DIRS_MAX: usize = 10_000;

/// A directory that is removed with everything in it.
#[derive(Debug)]
pub(super) struct CriterionHome(PathBuf);

impl Drop for CriterionHome {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl Harness {
    /// A fresh directory for criterion, if the benchmark uses it.
    pub(super) fn criterion_home(&self, seed: u64) -> Result<Option<CriterionHome>> {
        if !self.uses_criterion() {
            return Ok(None);
        }
        let home = self.out_dir().join(format!("criterion-{seed:016x}"));
        fs::create_dir_all(&home).context(|| format!("cannot create {}", home.display()))?;
        Ok(Some(CriterionHome(home)))
    }

    /// Whether the results are in criterion's files.
    pub(super) fn uses_criterion(&self) -> bool {
        self.output.format == OutputFormat::Criterion.name() && !self.output.from_file
    }
}

impl CriterionHome {
    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// All estimates that were written, each after its name; nothing if there are none.
    pub(super) fn into_text(self) -> Option<String> {
        let mut text = String::new();
        let mut open = vec![(self.0.clone(), 0)];
        let mut n_dirs = 0;
        while let Some((dir, depth)) = open.pop() {
            n_dirs += 1;
            if n_dirs > DIRS_MAX {
                break;
            }
            if dir.ends_with(LATEST) {
                text.push_str(&estimates_in(&dir).unwrap_or_default());
                continue;
            }
            let entries = fs::read_dir(&dir).into_iter().flatten().flatten();
            let dirs = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
            let mut dirs: Vec<PathBuf> = dirs.map(|entry| entry.path()).collect();
            dirs.sort_by(|one, other| other.cmp(one));
            if depth < DEPTH_MAX {
                open.extend(dirs.into_iter().map(|dir| (dir, depth + 1)));
            }
        }
        (!text.is_empty()).then_some(text)
    }
}

fn estimates_in(dir: &Path) -> Option<String> {
    let mut text = String::new();
    for name in FILES {
        let path = dir.join(name);
        // A pipe would never end, and a link could point anywhere.
        let is_plain = fs::symlink_metadata(&path).is_ok_and(|meta| meta.is_file());
        text.push_str(&is_plain.then(|| files::read_text(&path, FILE_BYTES_MAX).ok()).flatten()?);
        text.push('\n');
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimates_are_read_in_order_and_removed() {
        let scratch = tempfile::tempdir().unwrap();
        let home = CriterionHome(scratch.path().join("home"));
        for (path, text) in [
            ("sum/b/new/benchmark.json", "B"),
            ("sum/b/new/estimates.json", "2"),
            ("sum/b/base/estimates.json", "old"),
            ("sum/a/new/benchmark.json", "A"),
            ("sum/a/new/estimates.json", "1"),
            ("sum/half/new/benchmark.json", "no estimates"),
        ] {
            let path = home.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        assert_eq!(home.into_text().as_deref(), Some("A\n1\nB\n2\n"));
        assert!(!scratch.path().join("home").exists());
    }

    #[test]
    fn links_are_not_followed() {
        let scratch = tempfile::tempdir().unwrap();
        fs::write(scratch.path().join("secret"), "secret").unwrap();
        let home = CriterionHome(scratch.path().join("home"));
        let dir = home.path().join("x/new");
        fs::create_dir_all(&dir).unwrap();
        for name in FILES {
            std::os::unix::fs::symlink(scratch.path().join("secret"), dir.join(name)).unwrap();
        }
        assert_eq!(home.into_text(), None);
    }
}
