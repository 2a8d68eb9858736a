//! Names of projects and cases, and paths, from untrusted text.

use super::ImportedTask;
use karve_harness::placeholders;

/// The longest name of a project or a case.
const CHARS_MAX: usize = 80;

/// A name for a directory: letters, digits, `-`, `_` and `.`.
pub(super) fn plain_name(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let name: String = text.chars().map(|c| if is_plain(c) { c } else { '-' }).collect();
    let name: String = name.trim_matches(['-', '_', '.']).chars().take(CHARS_MAX).collect();
    if name.is_empty() { "task".to_owned() } else { name }
}

/// The same name, or one with a number that no other task has.
pub(super) fn unused(name: &str, others: &[ImportedTask]) -> String {
    let is_free = |name: &str| others.iter().all(|other| other.name != name);
    if is_free(name) {
        return name.to_owned();
    }
    let numbered = (2..).map(|n: u64| format!("{name}-{n}"));
    numbered.into_iter().find(|name| is_free(name)).unwrap_or_default()
}

/// Whether a path stays in its project and names a file there.
pub(super) fn is_inside(path: &str) -> bool {
    let is_part = |part: &str| !part.is_empty() && part != "." && part != ".." && part != ".git";
    !path.contains(['\0', '\\', '\n']) && path.split('/').all(is_part)
}

/// A path relative to a directory, with `..` resolved as far as there is a directory.
pub(super) fn joined(dir: &str, path: &str) -> String {
    let mut parts: Vec<&str> = dir.split('/').filter(|part| !part.is_empty()).collect();
    for part in path.split('/').filter(|part| !part.is_empty() && *part != ".") {
        match part {
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            other => parts.push(other),
        }
    }
    parts.join("/")
}

/// A name for a parameter of a case; some names mean something else in commands.
pub(super) fn param_name(name: &str) -> String {
    let is_taken = placeholders::NAMES.contains(&name);
    if is_taken { format!("{name}_") } else { name.to_owned() }
}

/// The directory of a path, without a slash at its end.
pub(super) fn dir_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(dir, _)| dir)
}

/// The last part of a path without its extension.
pub(super) fn stem_of(path: &str) -> &str {
    let name = path.rsplit_once('/').map_or(path, |(_, name)| name);
    name.rsplit_once('.').map_or(name, |(stem, _)| stem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain_and_paths_stay_inside() {
        assert_eq!(plain_name("1_Square matmul_"), "1_Square-matmul");
        assert_eq!((plain_name("../.."), plain_name("é")), ("task".into(), "task".into()));
        assert_eq!(joined("a/b", "../eval.py"), "a/eval.py");
        assert_eq!(joined("", "../../b/eval.py"), "../../b/eval.py");
        assert_eq!((param_name("seed"), param_name("M")), ("seed_".into(), "M".into()));
        assert!(is_inside("karve/run.py"));
        for path in ["../x", "/x", "a//b", ".git/config", "a/.git/b", "", "a\0"] {
            assert!(!is_inside(path), "{path}");
        }
        assert_eq!((dir_of("a/b/c.py"), stem_of("a/b/c.py")), ("a/b", "c"));
    }
}
