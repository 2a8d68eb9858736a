//! The notes directory of an agent: its brief, its answer, and files for its next turn.

use karve_core::campaign::ImplementStep;
use karve_os::error::{Result, WithContext};
use karve_os::sandbox;
use std::path::{Path, PathBuf};

/// When several agents implement the same hypothesis, each starts with empty notes; `kept` names
/// what its program needs.
pub(super) fn clear(notes: &Path, step: &ImplementStep, kept: &[&str]) -> Result<()> {
    match step.of > 1 && notes.exists() {
        true => empty(notes, kept),
        false => Ok(()),
    }
}

fn empty(notes: &Path, kept: &[&str]) -> Result<()> {
    let kept: Vec<PathBuf> = kept.iter().map(|name| notes.join(name)).collect();
    sandbox::empty(notes, &kept).context(|| format!("cannot empty {}", notes.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn what_was_left_is_gone_and_nothing_behind_a_link_is() {
        let dir = tempfile::tempdir().unwrap();
        let (notes, other) = (dir.path().join("notes"), dir.path().join("other"));
        for made in [notes.join("left/deep"), notes.join("state/of"), other.clone()] {
            fs::create_dir_all(made).unwrap();
        }
        for file in [notes.join("answer"), notes.join("left/deep/x"), other.join("x")] {
            fs::write(file, "x").unwrap();
        }
        symlink(&other, notes.join("link")).unwrap();
        empty(&notes, &["state"]).unwrap();
        let left: Vec<_> = fs::read_dir(&notes).unwrap().flatten().collect();
        let left: Vec<_> = left.iter().map(|entry| entry.file_name()).collect();
        assert_eq!(left, ["state"]);
        assert!(notes.join("state/of").is_dir() && other.join("x").is_file());
        empty(&notes, &[]).unwrap();
        assert_eq!(fs::read_dir(&notes).unwrap().count(), 0);
    }
}
