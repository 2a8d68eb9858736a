//! Build files: flags that change what is computed, what is linked, or what the harness sees.

use super::AuditContext;
use super::names::{is_listed, word_list};
use super::reading::FileFacts;

/// Whether a file is a build file.
pub fn is_build_file(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    is_listed("build-files", name)
        || word_list("build-file-ends").iter().any(|end| name.ends_with(end))
}

/// Scans a build file, line by line.
pub(super) fn read(text: &str, scene: &AuditContext<'_>, reading: &mut FileFacts) {
    for (line, number) in text.lines().zip(1..) {
        let code = line.split(" #").next().unwrap_or(line);
        if code.trim_start().starts_with('#') || code.trim_start().starts_with("//") {
            continue;
        }
        let splits = |c: char| c.is_whitespace() || "\"'`,;()[]{}".contains(c);
        for word in code.split(splits).filter(|word| !word.is_empty()) {
            flag(word, number, reading);
            define(word, number, scene, reading);
        }
        // Linker flags are joined by commas.
        for trick in word_list("linker-tricks").iter().filter(|trick| trick.contains(',')) {
            if code.contains(trick) {
                note_trick(trick, number, reading);
            }
        }
        constant(code, number, reading);
    }
}

fn note_trick(flag: &str, line: u32, reading: &mut FileFacts) {
    reading.note("linker-trick", flag, line, format!("`{flag}`"));
}

fn flag(word: &str, line: u32, reading: &mut FileFacts) {
    // A word may follow `CFLAGS=` or `-C link-arg=`.
    let last = word.rsplit_once("=-").map_or(word, |(_, flag)| flag);
    let forms = [word, last, &format!("-{last}")].map(str::to_owned);
    for form in &forms {
        if let Some(loose) = word_list("fast-math-flags").iter().find(|flag| *flag == form) {
            reading.note("fast-math", loose, line, format!("`{loose}`"));
            return;
        }
    }
    let is = |trick: &&&str| {
        let with_value = |word: &str| {
            word.strip_prefix(**trick).is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
        };
        forms.iter().any(|form| with_value(form)) || word.split('=').any(with_value)
    };
    if let Some(trick) = word_list("linker-tricks").iter().find(is) {
        note_trick(trick, line, reading);
    }
    let fetches = |name: &&str| word == *name || word.starts_with(&format!("{name}:"));
    if word_list("fetching").iter().any(fetches) {
        reading.note("network", word, line, format!("`{word}` in a build"));
    }
}

/// `-DNAME`, `-DNAME=1`, `-UNAME`, and names in a list of definitions.
fn define(word: &str, line: u32, scene: &AuditContext<'_>, reading: &mut FileFacts) {
    let flagged = ["-D", "-U", "/D"].iter().find_map(|flag| word.strip_prefix(flag));
    let named = flagged.unwrap_or(word);
    let name = named.split('=').next().unwrap_or(named);
    if scene.reads.contains(name) {
        let what = format!("the build defines {name}, which the harness reads");
        reading.note("harness-define", name, line, what);
    }
    if let (Some(_), Some((name, value))) = (flagged, named.split_once('=')) {
        reading.note_constant(name, value, line);
    }
}

/// `NAME = number` and `set(NAME number)`.
fn constant(code: &str, line: u32, reading: &mut FileFacts) {
    if let Some((name, value)) = code.split_once('=') {
        let name = name.trim().trim_end_matches([':', '?', '+']).trim();
        reading.note_tolerance(name, value.trim_matches([' ', '"', '\'']), line);
    }
    if let Some(set) = code.trim().strip_prefix("set(") {
        let mut words = set.trim_end_matches(')').split_whitespace();
        if let (Some(name), Some(value)) = (words.next(), words.next()) {
            reading.note_tolerance(name, value, line);
        }
    }
}
