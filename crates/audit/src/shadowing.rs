//! Names that a harness uses, and to which a kernel gives another meaning. A benchmark that
//! includes a header or imports everything reads its clock through them.
//!
//! ```text
//! #define tv_nsec tv_nsec / 4      what the benchmark reads from its clock is a fourth
//! pub struct Vec<T>(...);          `use kernel::*` in the benchmark, and its vectors do the work
//! def min(times): ...              `from kernel import *`, and the least time is another
//! ```

use super::names::is_listed;
use super::reading::FileFacts;
use super::tree::{NodeIndex, SyntaxTree};

const RULE: &str = "shadowing";
/// Items of Rust that have a name.
const ITEMS: [&str; 7] = [
    "struct_item",
    "enum_item",
    "union_item",
    "type_item",
    "trait_item",
    "function_item",
    "macro_definition",
];

/// The directive `#define`, without its word: macros that use their own name for something else.
pub(super) fn in_macro(text: &str, line: u32, reading: &mut FileFacts) {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let (name, rest) = text.split_at(text.find(|c| !is_word(c)).unwrap_or(text.len()));
    let body = match rest.strip_prefix('(') {
        Some(list) => list.split_once(')').map_or("", |(_, body)| body),
        None => rest,
    };
    let uses_itself = body.split(|c| !is_word(c)).any(|word| word == name);
    // `#define stdin stdin` says that there is such a name.
    if !name.is_empty() && uses_itself && body.trim() != name {
        reading.note(RULE, name, line, format!("the macro `{name}` uses what it replaces"));
    }
}

/// Functions, classes and variables of a module that hide those of the language.
pub(super) fn in_python(tree: &SyntaxTree<'_>, reading: &mut FileFacts) {
    let is_inner = |node: NodeIndex| {
        tree.enclosing(node, &["function_definition", "class_definition", "lambda"]).is_some()
    };
    for node in tree.find(0, &["function_definition", "class_definition", "assignment"]) {
        let of_definition = tree.child(node, "name");
        let name = of_definition.or_else(|| tree.child(node, "left")).map(|name| tree.text(name));
        if let Some(name) = name.filter(|name| is_listed("python-builtins", name))
            && !is_inner(node)
        {
            let what = format!("`{name}` of the language is another one here");
            reading.note(RULE, name, tree.line(node), what);
        }
    }
}

/// Public items that hide those of every Rust program.
pub(super) fn in_rust(tree: &SyntaxTree<'_>, node: NodeIndex, reading: &mut FileFacts) {
    if !ITEMS.contains(&tree.kind(node)) {
        return;
    }
    let is_public = tree.children(node).any(|child| tree.kind(child) == "visibility_modifier");
    let name = tree.child_text(node, "name");
    let is_method = tree.enclosing(node, &["impl_item", "trait_item"]).is_some();
    if is_method {
        return;
    }
    if (is_public || tree.kind(node) == "macro_definition") && is_listed("rust-prelude", name) {
        let what = format!("`{name}` of the language is another one here");
        reading.note(RULE, name, tree.line(node), what);
    }
}
