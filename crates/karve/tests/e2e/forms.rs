//! The form of a file that a workflow asks for: its headings, fields and columns in order.

use serde_json::Value;
use std::fs;
use std::path::Path;

/// The longest name of a field.
const FIELD_MAX: usize = 60;

/// The headings, the names of the fields (`- Name: value`, `**Name**: value`) and the heads of the
/// tables of a page.
pub(crate) fn form(text: &str) -> Vec<String> {
    let mut seen = Vec::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let is_head = line.starts_with('|')
            && lines.peek().is_some_and(|next| next.starts_with("| -") || next.starts_with("|-"));
        if line.starts_with('#') || is_head {
            seen.push(line.to_owned());
            continue;
        }
        // A line like `**Bottleneck**: Memory-bound`.
        if let Some((name, _)) = line.strip_prefix("**").and_then(|rest| rest.split_once("**")) {
            seen.push(format!("**{name}**"));
            continue;
        }
        let field = line.strip_prefix("- ").filter(|field| !field.starts_with('['));
        let name = field.and_then(|field| field.split_once(": ")).map(|(name, _)| name);
        seen.extend(name.filter(|n| n.len() <= FIELD_MAX).map(|name| format!("- {name}:")));
    }
    seen
}

/// The keys of a JSON object, by name.
pub(crate) fn keys(object: &Value) -> String {
    let mut keys: Vec<&str> = object.as_object().unwrap().keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys.join(" ")
}

/// All files of a campaign that are in one of these folders or have one of these names, sorted.
pub(crate) fn files_in(campaign: &Path, own: &[&str]) -> Vec<String> {
    let mut files = files_below(campaign);
    files.retain(|path| own.iter().any(|own| path.starts_with(own)));
    files
}

/// All files below a directory, sorted.
pub(crate) fn files_below(root: &Path) -> Vec<String> {
    let (mut folders, mut files) = (vec![root.to_owned()], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false => files.push(path.strip_prefix(root).unwrap().display().to_string()),
            }
        }
    }
    files.sort();
    files
}
