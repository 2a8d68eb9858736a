//! The built-in entries: the files of `crates/karve/knowledge`, which `build.rs` lists.
//!
//! The tests lint all of them, and write the index `docs/catalog.md`.

use super::markdown::parse_entry;
use karve_core::knowledge::Entry;
use std::sync::OnceLock;

#[cfg(test)]
mod tests;

/// The ids and the texts of all built-in entries.
pub const FILES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/catalog.rs"));

/// All built-in entries, read once. A test checks that every one of them parses.
pub fn built_in() -> Vec<Entry> {
    static READ: OnceLock<Vec<Entry>> = OnceLock::new();
    let read = || FILES.iter().filter_map(|(_, text)| parse_entry(text).ok());
    READ.get_or_init(|| read().collect()).clone()
}
