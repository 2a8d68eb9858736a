//! `karve.toml` as far as files are concerned: its name, its globs, and what of it is secret.

use globset::{Glob, GlobBuilder, GlobSet, GlobSetBuilder};
use karve_os::error::{CommandError, Result};
use karve_os::text::shown;

/// The usual name of the file.
pub const FILE_NAME: &str = "karve.toml";

/// The same text without the hidden cases, and without comments, which may reveal them too; none
/// if there are no hidden cases in it.
pub fn without_hidden(text: &str) -> Option<String> {
    let mut file: toml::Table = text.parse().ok()?;
    file.get_mut("cases")?.as_table_mut()?.remove("hidden")?;
    toml::to_string(&file).ok()
}

/// A set of globs with karve's meaning: `*` and `?` stay inside one directory, `**` does not.
pub fn glob_set(globs: &[String]) -> Result<GlobSet> {
    let mut set = GlobSetBuilder::new();
    for text in globs {
        set.add(compile_glob(text).map_err(|reason| glob_error(text, &reason))?);
    }
    set.build().map_err(|_| glob_error(&globs.join(", "), "together they are too large"))
}

fn glob_error(text: &str, reason: &str) -> CommandError {
    CommandError::usage(format!("the glob `{}` cannot be used: {reason}", shown(text)))
        .hint("write it like \"src/*.c\" in karve.toml")
}

/// A glob as karve means it, or why it cannot be used.
pub fn compile_glob(text: &str) -> Result<Glob, String> {
    GlobBuilder::new(text).literal_separator(true).build().map_err(|error| error.kind().to_string())
}
