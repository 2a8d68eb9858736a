//! Which language a file is written in, and whether its author was asked for that one.

use super::{Language, RoleTable};
use crate::measurement::WrongLanguageFile;

/// Maximum number of lines of a file to look at.
const LINES_MAX: usize = 20_000;
/// Maximum length of a quoted line, in characters.
const QUOTE_CHARS: usize = 80;

/// The line that identifies the language of a text.
fn shown_by<'a>(language: &Language, text: &'a str) -> Option<&'a str> {
    let begins = |line: &&str| {
        let line = line.trim_start();
        language.marks.iter().any(|mark| {
            let rest = line.strip_prefix(mark.as_str());
            let ends = |c: char| !(c.is_alphanumeric() || c == '_');
            rest.is_some_and(|rest| rest.chars().next().is_none_or(ends))
        })
    };
    text.lines().take(LINES_MAX).find(begins)
}

/// The changed files that are now in another language than requested, but were not before: path,
/// old text, new text.
pub fn wrong_language_files(
    role_table: &RoleTable,
    asked: &str,
    files: &[(String, String, String)],
) -> Vec<WrongLanguageFile> {
    let Some(own) = role_table.language(asked).filter(|own| !own.marks.is_empty()) else {
        return Vec::new();
    };
    let is_near = |other: &Language| {
        other.name == own.name
            || own.built_on.as_ref() == Some(&other.name)
            || other.marks == own.marks
    };
    let mut found = Vec::new();
    for (path, before, after) in files {
        for other in role_table.language.iter().filter(|other| !is_near(other)) {
            if shown_by(other, before).is_some() {
                continue;
            }
            if let Some(line) = shown_by(other, after) {
                found.push(WrongLanguageFile {
                    path: path.clone(),
                    speaks: other.name.clone(),
                    asked: own.name.clone(),
                    line: line.trim().chars().take(QUOTE_CHARS).collect(),
                });
            }
        }
    }
    found
}
