//! The entries that karve comes with: the files of `crates/karve/knowledge`, built in.
//!
//! A new file is named in the list below. The tests read every file of the directory, lint all of
//! them, and write the index `docs/catalog.md`.

use super::markdown::parse_entry;
use karve_core::knowledge::Entry;

#[cfg(test)]
mod tests;

macro_rules! files {
    ($($id:literal),+ $(,)?) => {
        &[$(($id, include_str!(concat!("../../knowledge/", $id, ".md")))),+]
    };
}

/// The ids and the texts of all built-in entries.
pub const FILES: &[(&str, &str)] = files![
    "cache-tiling",
    "fast-math-flags",
    "float-literals",
    "link-time-optimization",
    "loop-order",
    "multiple-accumulators",
    "no-math-errno",
    "optimize-level-3",
    "pack-operands",
    "pow-to-multiply",
    "profile-guided",
    "reciprocal-multiply",
    "register-blocking",
    "restrict-pointers",
    "simd-inner-loop",
    "target-cpu",
    "unroll-inner-loop",
    "wide-vectors",
];

/// All built-in entries. That each of them is read is tested, so none is left out.
pub fn built_in() -> Vec<Entry> {
    let entries = FILES.iter().filter_map(|(_, text)| parse_entry(text).ok());
    entries.collect()
}
