//! Grouped kernels that rely on how a benchmark distributes rows among groups: sizes that are fixed
//! when compiling, or that must be divisible.
//!
//! Real routing gives every expert another number of tokens, and some none at all.

use super::names::words;
use super::reading::FileFacts;

/// What is counted for each group.
const COUNTED: [&str; 4] = ["m", "tokens", "rows", "token"];
/// What a group is called.
const GROUPS: [&str; 4] = ["group", "expert", "groups", "experts"];
/// Words that make a name a constant of the build.
const CONSTANT: [&str; 4] = ["constexpr", "define", "template", "static_assert"];

/// Reports the sizes of groups that a line fixes or assumes to be divisible.
pub(super) fn examine(text: &str, reading: &mut FileFacts) {
    for (line, number) in text.lines().zip(1..) {
        let code = line.split(['#', '"']).next().filter(|code| !code.trim().is_empty());
        // A definition of the preprocessor begins with what is a comment elsewhere.
        let code = code.unwrap_or(line).split("//").next().unwrap_or_default();
        let is_name = |c: char| c.is_alphanumeric() || c == '_';
        let names: Vec<&str> = code.split(|c| !is_name(c)).collect();
        let Some(size) = names.iter().find(|name| is_group_size(name)) else {
            continue;
        };
        let asserts = names.iter().any(|name| name.contains("assert"));
        let is_fixed = names.iter().any(|name| CONSTANT.contains(name));
        let what = match (asserts && code.contains('%'), is_fixed) {
            (true, _) => format!("{size} is assumed to be divisible"),
            (false, true) => format!("{size} is fixed when compiling"),
            (false, false) => continue,
        };
        reading.note("fixed-groups", size, number, what);
    }
}

/// Whether a name is a number of rows for each group, such as `M_per_group`.
fn is_group_size(name: &str) -> bool {
    let words = words(name);
    words.windows(3).any(|three| {
        let [counted, per, group] = three else {
            return false;
        };
        COUNTED.contains(&counted.as_str()) && per == "per" && GROUPS.contains(&group.as_str())
    })
}
