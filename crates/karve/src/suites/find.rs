//! The tasks of a suite: projects below a directory, or those that a list names.

use crate::config::campaign_name;
use crate::project::CONFIG;
use karve_os::error::{CommandError, Result, WithContext};
use karve_os::files;
use karve_os::text::safe;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Most tasks of a suite, and most directories below each other.
const TASKS_MAX: usize = 2_000;
const DEPTH_MAX: usize = 6;
/// Most directories that are looked into.
const DIRS_MAX: usize = 100_000;
/// Characters of the name of a task.
const NAME_MAX: usize = 60;

/// A task of a suite.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SuiteTask {
    /// Its name.
    pub name: String,
    /// The directory with its `karve.toml`.
    pub dir: PathBuf,
    /// The name of its campaign; tasks may share a repository, so it names the task too.
    pub campaign: String,
}

/// The tasks that some paths name, in order.
pub fn find_tasks(paths: &[PathBuf], here: &Path, suite: &str) -> Result<Vec<SuiteTask>> {
    let mut dirs: Vec<(String, PathBuf)> = Vec::new();
    for path in paths {
        let whole = here.join(path);
        let shown = path.display();
        if whole.is_file() {
            dirs.extend(listed(&whole)?);
        } else if whole.join(CONFIG).is_file() {
            dirs.push((last_part(&whole), whole));
        } else {
            let mut budget = DIRS_MAX;
            let found = below(&whole, "", DEPTH_MAX, &mut budget)
                .context(|| format!("cannot read {shown}"))
                .map_err(|error| error.hint("name a directory or a list: karve suite PATH"))?;
            if found.is_empty() {
                let message = format!("there is no {CONFIG} below {shown}");
                return Err(CommandError::usage(message)
                    .hint("each task is a directory with one; \"karve import\" makes them"));
            }
            dirs.extend(found);
        }
    }
    if dirs.len() > TASKS_MAX {
        let message = format!("there are {} tasks, more than {TASKS_MAX}", dirs.len());
        return Err(CommandError::usage(message).hint("name fewer of them as PATH"));
    }
    named(dirs, suite)
}

/// The directories of a list: one for each line, relative to the list.
fn listed(path: &Path) -> Result<Vec<(String, PathBuf)>> {
    let shown = path.display();
    let text = files::read_text(path, files::WRITTEN_BYTES_MAX)
        .context(|| format!("cannot read {shown}"))
        .map_err(|error| {
            error.hint("a list has a directory in each line; see \"karve help suite\"")
        })?;
    let above = path.parent().unwrap_or(Path::new("."));
    let mut dirs = Vec::new();
    for line in text.lines().map(str::trim) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        // A directory that is gone is a task that fails, not a suite that does.
        dirs.push((line.to_owned(), above.join(line)));
    }
    if !dirs.is_empty() && !dirs.iter().any(|(_, dir)| dir.is_dir()) {
        let first = safe(&dirs[0].0, 60);
        return Err(CommandError::usage(format!("{shown} is not a list of tasks"))
            .cause(format!("no line of it names a directory; the first is {first:?}"))
            .hint("write a directory with a karve.toml in each line, relative to the list"));
    }
    if dirs.is_empty() {
        return Err(CommandError::usage(format!("{shown} lists no directory"))
            .hint("write a directory with a karve.toml in each line"));
    }
    Ok(dirs)
}

/// The projects below a directory, sorted; none are looked for inside a project.
fn below(
    dir: &Path,
    prefix: &str,
    depth: usize,
    budget: &mut usize,
) -> std::io::Result<Vec<(String, PathBuf)>> {
    let mut names: Vec<String> = Vec::new();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.file_type()?.is_dir() && !name.starts_with('.') {
            names.push(name);
        }
    }
    names.sort_unstable();
    let mut found = Vec::new();
    for name in names {
        if *budget == 0 {
            break;
        }
        *budget -= 1;
        let path = dir.join(&name);
        let name = if prefix.is_empty() { name } else { format!("{prefix}/{name}") };
        if path.join(CONFIG).is_file() {
            found.push((name, path));
        } else if depth > 1 {
            found.extend(below(&path, &name, depth - 1, budget).unwrap_or_default());
        }
    }
    Ok(found)
}

fn last_part(path: &Path) -> String {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
    name.unwrap_or_else(|| "task".to_owned())
}

/// Tasks whose names differ and can be those of campaigns.
fn named(dirs: Vec<(String, PathBuf)>, suite: &str) -> Result<Vec<SuiteTask>> {
    let mut taken = BTreeSet::new();
    let mut tasks: Vec<SuiteTask> = Vec::new();
    for (name, dir) in dirs {
        let dir = files::settled(&dir);
        if tasks.iter().any(|task| task.dir == dir) {
            continue;
        }
        let plain = plain_name(&name);
        let numbered = (2..).map(|n: u64| format!("{plain}-{n}"));
        let mut names = std::iter::once(plain.clone()).chain(numbered);
        let name = names.find(|name| taken.insert(name.clone())).unwrap_or(plain);
        let campaign = campaign_name(&format!("{suite}-{name}")).map_err(|rule| {
            CommandError::usage(format!("the name of a suite has {rule}"))
                .hint("choose another with --name NAME")
        })?;
        tasks.push(SuiteTask { name, dir, campaign });
    }
    Ok(tasks)
}

/// A path as a name.
fn plain_name(path: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let name: String = path.chars().map(|c| if is_plain(c) { c } else { '-' }).collect();
    let chars: Vec<char> = name.trim_matches('-').chars().collect();
    // The end of a path says more than its start.
    let from = chars.len().saturating_sub(NAME_MAX);
    let name: String = chars[from..].iter().collect();
    let name = name.trim_matches('-');
    if name.is_empty() { "task".to_owned() } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(dir: &Path, path: &str, text: &str) {
        let path = dir.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn names(paths: &[&str], here: &Path) -> Vec<String> {
        let paths: Vec<PathBuf> = paths.iter().map(PathBuf::from).collect();
        let tasks = find_tasks(&paths, here, "s").unwrap();
        tasks.into_iter().map(|task| task.campaign).collect()
    }

    #[test]
    fn tasks_are_found_below_a_directory_and_in_a_list() {
        let home = tempfile::tempdir().unwrap();
        let here = home.path();
        for path in ["all/b", "all/a/one", "all/a/one/inner", "all/.karve/x", "all/a.one"] {
            write(here, &format!("{path}/karve.toml"), "");
        }
        write(here, "all/empty/notes.txt", "");
        assert_eq!(names(&["all"], here), ["s-a-one", "s-a-one-2", "s-b"]);
        assert_eq!(names(&["all/b"], here), ["s-b"]);
        write(here, "list.txt", "# two\nall/b\n\nall/gone\nall/b\n");
        assert_eq!(names(&["list.txt"], here), ["s-all-b", "s-all-gone"]);
        std::os::unix::fs::symlink(here.join("all/b"), here.join("linked")).unwrap();
        assert_eq!(names(&["all/b", "linked", "all/../all/b"], here), ["s-b"]);
        let fails = |path: &str, suite: &str| {
            find_tasks(&[PathBuf::from(path)], here, suite).unwrap_err().to_string()
        };
        assert!(fails("all/empty", "s").contains("there is no karve.toml below all/empty"));
        assert!(fails("nowhere", "s").contains("cannot read nowhere"));
        assert!(fails("all", "a b").contains("--name NAME"));
        write(here, "kernel.c", "int f(void)\n{\n    return 1;\n}\n");
        assert!(fails("kernel.c", "s").contains("kernel.c is not a list of tasks"));
        write(here, "none.txt", "# nothing\n");
        assert!(fails("none.txt", "s").contains("lists no directory"));
    }
}
