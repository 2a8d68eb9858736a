//! Which files a candidate may change: globs relative to the directory of `karve.toml`.

use super::source::ConfigSource;
use karve_harness::project_file::compile_glob;
use karve_os::error::Result;
use karve_os::text::shown;
use std::path::Path;

/// Rejects globs that leave the directory or do not compile.
pub(super) fn check_globs(source: &ConfigSource<'_>, path: &str, globs: &[String]) -> Result<()> {
    for (index, text) in globs.iter().enumerate() {
        let Some(reason) = invalid_reason(text) else {
            continue;
        };
        let message = format!("the glob `{}` of {path} cannot be used: {reason}", shown(text));
        let line = source.item_line(path, index);
        return Err(source.error(line, message).hint(format!(
            "write {path} relative to the directory of {}, like \"src/*.c\"",
            source.name
        )));
    }
    Ok(())
}

fn invalid_reason(text: &str) -> Option<String> {
    let has = |part: &str| text.split(['/', '\\']).any(|piece| piece == part);
    if text.trim().is_empty() {
        Some("it is empty".into())
    } else if text.starts_with(['/', '~']) || Path::new(text).is_absolute() {
        Some("it is absolute".into())
    } else if has("..") {
        Some("it leaves the directory with `..`".into())
    } else if text.starts_with("./") || has(".") {
        Some("it contains `.` as a directory, which never matches".into())
    } else if text.contains(char::is_control) {
        Some("it contains a control character".into())
    } else {
        compile_glob(text).err()
    }
}

/// Rejects globs that match what must never change: the file itself, git, and the campaigns.
pub(super) fn check_editable(
    source: &ConfigSource<'_>,
    editable: &[String],
    root: &str,
) -> Result<()> {
    check_globs(source, "sources.editable", editable)?;
    let root = root.trim_start_matches("./").trim_end_matches('/');
    let protected = [
        (source.name, vec![source.name.to_owned()]),
        (".git", [".git", ".git/config", ".git/hooks/pre-commit"].map(str::to_owned).into()),
        (root, vec![root.to_owned(), format!("{root}/c"), format!("{root}/c/events.jsonl")]),
    ];
    for (index, text) in editable.iter().enumerate() {
        let Ok(glob) = compile_glob(text) else {
            continue;
        };
        let glob = glob.compile_matcher();
        let covered =
            protected.iter().find(|(_, paths)| paths.iter().any(|path| glob.is_match(path)));
        if let Some((what, _)) = covered {
            let message = format!("the glob `{}` would make {what} editable", shown(text));
            return Err(source
                .error(source.item_line("sources.editable", index), message)
                .hint("list only the kernel's own files in sources.editable, like \"src/*.c\""));
        }
    }
    Ok(())
}
