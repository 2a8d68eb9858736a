//! The files of a project that `karve init` and `karve contract` look at.

use crate::detect::{self, ProjectFiles};
use karve_harness::git::Repo;
use karve_os::files;
use std::fs;
use std::io::Read;
use std::path::Path;

/// Most files that are read.
const FILES_MAX: usize = 2_000;

/// The project's files with the beginning of each: those tracked by git, or all of them.
pub(super) fn look(dir: &Path) -> ProjectFiles {
    let mut files = Vec::new();
    let committed = Repo::discover(dir)
        .and_then(|repo| Ok((repo.list_files(repo.head()?.oid())?, repo.root().to_owned())));
    let names: Vec<String> = match committed {
        Ok((names, root)) if root == dir => names,
        _ => plain_files(dir),
    };
    for name in names.into_iter().take(FILES_MAX) {
        let mut text = Vec::new();
        let Ok(file) = files::open(&dir.join(&name)) else {
            continue;
        };
        if file.take(detect::TEXT_MAX as u64).read_to_end(&mut text).is_ok() {
            files.push((name, String::from_utf8_lossy(&text).into_owned()));
        }
    }
    ProjectFiles { files, kernel: None }
}

/// Regular files down to three levels, except hidden ones.
pub(super) fn plain_files(dir: &Path) -> Vec<String> {
    let mut names = Vec::new();
    let mut open = vec![(dir.to_owned(), 0)];
    while let Some((folder, depth)) = open.pop() {
        let Ok(entries) = fs::read_dir(&folder) else {
            continue;
        };
        for entry in entries.flatten() {
            let hidden = entry.file_name().to_string_lossy().starts_with('.');
            let Ok(kind) = entry.file_type() else {
                continue;
            };
            if hidden || names.len() >= FILES_MAX {
                continue;
            }
            if kind.is_dir() && depth < 3 {
                open.push((entry.path(), depth + 1));
            } else if kind.is_file()
                && let Ok(relative) = entry.path().strip_prefix(dir)
            {
                names.push(relative.to_string_lossy().into_owned());
            }
        }
    }
    names.sort();
    names
}
