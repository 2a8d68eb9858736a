//! The files that a command line itself needs: its program and files with an absolute path, such as
//! a script. Pure, except for checks whether a file exists.

use karve_os::process;
use karve_os::sandbox::Sandbox;
use std::path::{Path, PathBuf};

/// Most files of a command line that are made visible to it.
const FILES_MAX: usize = 16;

/// The regular files that a command line names by absolute path and that it may see.
pub(super) fn files(line: &str, sandbox: &Sandbox) -> Vec<PathBuf> {
    let named = plain_files(line).into_iter();
    named.filter(|file| sandbox.may_show(file)).collect()
}

/// The paths that a command line names but cannot see, with a hint; empty if there are none.
pub(super) fn unseen(line: &str, sandbox: &Sandbox) -> String {
    let shown = plain_files(line);
    let is_unseen = |path: &PathBuf| {
        path.exists() && sandbox.hides(path) && !(shown.contains(path) && sandbox.may_show(path))
    };
    match paths(line).into_iter().find(is_unseen) {
        Some(path) => {
            format!("; it cannot see {}: add it to sandbox.read in karve.toml", path.display())
        }
        None => String::new(),
    }
}

/// The regular files among the absolute paths. Directories are left out: their contents are not
/// named.
fn plain_files(line: &str) -> Vec<PathBuf> {
    let named = paths(line).into_iter();
    named.filter(|path| path.is_file()).take(FILES_MAX).collect()
}

/// What a command line needs and does not exist: its program, or the script that it runs. A line
/// that only a shell can parse is not checked, and neither are paths in the project.
pub fn lacking(line: &str) -> Option<String> {
    let words = process::plain_words(line)?;
    let mut words = words.into_iter();
    let program = words.next()?;
    let is_inside = program.contains('/') && !program.starts_with('/');
    if !is_inside && process::find_program(&program).is_none() {
        return Some(program);
    }
    // After an option such as `-c` the script is the option's argument.
    let says = |word: &String| !word.starts_with("--") && word.ends_with(['c', 'e']);
    let mut rest = words.skip_while(|word| word.starts_with('-') && !says(word));
    let script = rest.next()?;
    (script.starts_with('/') && !Path::new(&script).exists()).then_some(script)
}

/// The absolute paths among the words, also as the value of an option.
fn paths(line: &str) -> Vec<PathBuf> {
    let words = words(line).into_iter();
    let value = |word: String| match word.split_once('=') {
        Some((_, value)) if !word.starts_with('/') => value.to_owned(),
        _ => word,
    };
    let paths = words.map(value).filter(|word| word.starts_with('/'));
    paths.map(PathBuf::from).collect()
}

/// The words of any line, also of one that only a shell understands: quotes group words, and
/// command separators split them.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    for c in line.chars() {
        match (quote, c) {
            (Some(open), c) if open == c => quote = None,
            (None, '\'' | '"') => quote = Some(c),
            (None, c) if c.is_whitespace() || ";|&()<>".contains(c) => words.push(String::new()),
            (_, c) => {
                if let Some(word) = words.last_mut() {
                    word.push(c);
                }
            }
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn only_plain_files_with_a_whole_path_are_its_own() {
        let dir = tempfile::tempdir().unwrap();
        let dir = fs::canonicalize(dir.path()).unwrap();
        let at = |name: &str| dir.join(name);
        for name in ["agent.sh", "with space.py", "settings"] {
            fs::write(at(name), "").unwrap();
        }
        let (script, spaced) = (at("agent.sh"), at("with space.py"));
        let check = |line: String, want: &[&PathBuf]| {
            let got = plain_files(&line);
            assert_eq!(got.iter().collect::<Vec<_>>(), want, "{line}");
        };
        check(format!("sh {}", script.display()), &[&script]);
        check(format!("python3 -u \"{}\"", spaced.display()), &[&spaced]);
        let settings = at("settings");
        let line = format!("sh {} --with={}", script.display(), settings.display());
        check(line, &[&script, &settings]);
        check(format!("sh {};cat {}/nothing", script.display(), dir.display()), &[&script]);
        check(format!("ls {}", dir.display()), &[]);
        check("sh agent.sh ../agent.sh ~/agent.sh".into(), &[]);
        check(String::new(), &[]);
    }

    #[test]
    fn a_script_that_is_not_there_is_lacking() {
        let check = |line: &str, want: Option<&str>| {
            assert_eq!(lacking(line).as_deref(), want, "{line}");
        };
        check("sh /nowhere/agent.sh", Some("/nowhere/agent.sh"));
        check("sh -x '/nowhere/agent.sh' --log /nowhere/log", Some("/nowhere/agent.sh"));
        check("cd /nowhere && ./agent.sh", None);
        check("./agent.sh", None);
        check("no-such-program-at-all x", Some("no-such-program-at-all"));
        // A project script is looked up in its worktree, and an output file may not exist yet.
        check("sh agent.sh --log /nowhere/log", None);
        check("sh '/nowhere/of mine/a.sh'", Some("/nowhere/of mine/a.sh"));
        check("sh -lc '/nowhere/agent.sh --fast'", None);
        check("sh /etc/passwd", None);
        check("", None);
    }
}
