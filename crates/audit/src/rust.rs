//! Rust: paths and `use` aliases, macros, foreign functions.

use super::asm_reads;
use super::names::{LanguageFamily, NameUse};
use super::reading::{AsmScope, FileFacts};
use super::rust_flow;
use super::shadowing;
use super::tree::{NodeIndex, SyntaxTree};
use std::collections::BTreeMap;

/// Scans a file.
pub(super) fn read(tree: &SyntaxTree<'_>, weights: &[String], reading: &mut FileFacts) {
    let aliases = aliases(tree);
    let globs = globs(tree);
    for node in tree.all() {
        path(tree, node, (&aliases, &globs), reading);
        expression(tree, node, reading);
    }
    rust_flow::examine(tree, weights, reading);
}

fn dotted(text: &str) -> String {
    let text: String = text.split_whitespace().collect();
    text.split('<').next().unwrap_or(&text).trim_start_matches("::").replace("::", ".")
}

/// What the names in a file refer to, by its `use` declarations.
fn aliases<'a>(tree: &SyntaxTree<'a>) -> BTreeMap<&'a str, String> {
    let mut found = BTreeMap::new();
    for declaration in tree.find(0, &["use_declaration"]) {
        let names = ["identifier", "scoped_identifier", "use_as_clause"];
        for node in tree.find(declaration, &names) {
            if tree.parent(node).is_some_and(|parent| {
                let kind = tree.kind(parent);
                names[1..].contains(&kind) || tree.place(node) == Some("path")
            }) {
                continue;
            }
            let lists = tree.ancestors(node).take_while(|up| *up != declaration);
            let mut prefix: Vec<String> = lists
                .filter(|up| tree.kind(*up) == "scoped_use_list")
                .filter_map(|up| Some(dotted(tree.text(tree.child(up, "path")?))))
                .collect();
            prefix.reverse();
            let (path, alias) = if tree.kind(node) == "use_as_clause" {
                (tree.child(node, "path"), tree.child(node, "alias"))
            } else {
                let last = tree.find(node, &["identifier"]).last();
                (Some(node), last)
            };
            if let (Some(path), Some(alias)) = (path, alias) {
                prefix.push(dotted(tree.text(path)));
                found.insert(tree.text(alias), prefix.join("."));
            }
        }
    }
    found
}

/// The modules of which a file uses everything.
fn globs(tree: &SyntaxTree<'_>) -> Vec<String> {
    let all = tree.find(0, &["use_wildcard"]).filter_map(|node| tree.children(node).next());
    all.map(|module| dotted(tree.text(module))).filter(|path| path.starts_with("std")).collect()
}

fn path(
    tree: &SyntaxTree<'_>,
    node: NodeIndex,
    (aliases, globs): (&BTreeMap<&str, String>, &[String]),
    reading: &mut FileFacts,
) {
    let parent = tree.parent(node).map_or("", |parent| tree.kind(parent));
    let kinds = ["identifier", "scoped_identifier", "type_identifier", "scoped_type_identifier"];
    if !kinds.contains(&tree.kind(node)) || parent.starts_with("scoped_") {
        return;
    }
    let line = tree.line(node);
    let text = dotted(tree.text(node));
    let called = tree.place(node) == Some("function");
    let last = text.rsplit('.').next().unwrap_or_default().to_owned();
    if parent == "function_signature_item" || text.starts_with("libc.") {
        let found = NameUse { path: &last, called: true };
        reading.note_name(LanguageFamily::C, found, line);
    }
    let (root, rest) = text.split_once('.').unwrap_or((&text, ""));
    let path = match aliases.get(root) {
        Some(of) if rest.is_empty() => of.clone(),
        Some(of) => format!("{of}.{rest}"),
        None => text.clone(),
    };
    // What everything in a module may be.
    let unknown = !aliases.contains_key(root) && parent != "use_wildcard";
    for module in globs.iter().filter(|_| unknown) {
        let found = NameUse { path: &format!("{module}.{text}"), called };
        reading.note_name(LanguageFamily::Rust, found, line);
    }
    if parent == "macro_invocation" && tree.place(node) == Some("macro") {
        let found = NameUse { path: &format!("{last}!"), called: true };
        reading.note_name(LanguageFamily::Rust, found, line);
    }
    // A single word that is not imported is a name of the file itself.
    if path.contains('.') || ["f16"].contains(&path.as_str()) {
        let found = NameUse { path: &path, called };
        reading.note_name(LanguageFamily::Rust, found, line);
    }
    if called {
        reading.note_call(&last, line);
    }
}

fn expression(tree: &SyntaxTree<'_>, node: NodeIndex, reading: &mut FileFacts) {
    let line = tree.line(node);
    shadowing::in_rust(tree, node, reading);
    match tree.kind(node) {
        "string_literal" | "raw_string_literal" => {
            reading.note_string(LanguageFamily::Rust, tree.text(node), line);
        }
        "macro_invocation" => macro_call(tree, node, reading),
        "match_pattern" => {
            for number in tree.find(node, &["integer_literal"]) {
                reading.note_number(tree.text(number), line);
            }
        }
        "binary_expression" => {
            let operator = tree.child_text(node, "operator");
            let sides = [tree.child(node, "left"), tree.child(node, "right")];
            for side in sides.into_iter().flatten() {
                let number = tree.kind(side) == "integer_literal";
                if number && ["==", "!="].contains(&operator) {
                    reading.note_number(tree.text(side), line);
                }
            }
        }
        "const_item" | "static_item" | "let_declaration" => {
            let name = tree.child(node, "name").or_else(|| tree.child(node, "pattern"));
            if let (Some(name), Some(value)) = (name, tree.child(node, "value")) {
                reading.note_constant(tree.text(name), tree.text(value), line);
            }
        }
        "attribute" => {
            let text = tree.text(node);
            attribute(text, line, reading);
            for word in ["link_section", "ctor", "global_allocator", "dtor"] {
                if text.contains(word) {
                    reading.note("load-hook", word, line, format!("attribute `{word}`"));
                }
            }
        }
        "function_item" => {
            let mangled = tree.child_text(node, "name");
            let own = tree.enclosing(node, &["impl_item", "trait_item"]).is_some();
            let before = tree
                .parent(node)
                .and_then(|parent| tree.children(parent).take_while(|child| *child < node).last());
            let exported = before.is_some_and(|before| tree.text(before).contains("no_mangle"));
            if exported && !own {
                reading.note_definition(mangled, line);
            }
        }
        "foreign_mod_item" => {
            let what = "foreign functions are declared".to_owned();
            reading.note("foreign-call", "extern", line, what);
        }
        "call_expression" => {
            let callee = tree.child_text(node, "function");
            if callee.ends_with("catch_unwind") {
                let what = "panics are caught".to_owned();
                reading.note("fallback", "catch_unwind", line, what);
            }
        }
        _ => {}
    }
}

/// Attributes that name symbols and files, or change what a function is.
fn attribute(text: &str, line: u32, reading: &mut FileFacts) {
    let quoted = text.split('"').nth(1).unwrap_or_default();
    if ["export_name", "link_name"].iter().any(|word| text.contains(word)) {
        reading.note_definition(quoted, line);
    }
    if text.starts_with("path") && reading.is_outside(quoted) {
        let what = format!("`{text}` takes in what is not of the project");
        reading.note("env-read", "path", line, what);
    }
    let mut words = text.split(|c: char| !(c.is_alphanumeric() || c == '_'));
    if words.any(|word| word == "naked") {
        reading.note("patching", "naked", line, "a function without a frame".to_owned());
    }
}

/// The tokens of a macro are not parsed: paths are joined again.
fn macro_call(tree: &SyntaxTree<'_>, node: NodeIndex, reading: &mut FileFacts) {
    let line = tree.line(node);
    let name = tree.child_text(node, "macro");
    let text = tree.text(node);
    let last = name.rsplit(':').next().unwrap_or_default();
    if name.ends_with("asm") {
        reading.note_asm(LanguageFamily::Rust, text, line);
        reading.note_asm_reads(asm_reads::in_rust(text), line);
        reading.note_symbols(text, AsmScope::Inline, line);
        if ["global_asm", "naked_asm"].contains(&last) {
            let what = "assembly outside of functions".to_owned();
            reading.note("patching", "asm", line, what);
        }
        return;
    }
    if ["include", "include_str", "include_bytes"].contains(&last) {
        let path = tree.find(node, &["string_literal", "raw_string_literal"]).next();
        let path = path.map_or("/", |path| tree.text(path)).trim_matches(['r', '#', '"']);
        let made = text.matches('!').count() > 1;
        if made || reading.is_outside(path) {
            let what = format!("`{}` takes in what is not of the project", tree.excerpt(node));
            reading.note("env-read", last, line, what);
        }
    }
    for (at, _) in text.match_indices('!').skip(1) {
        let inner = text[..at].rsplit(|c: char| !(c.is_alphanumeric() || c == '_')).next();
        let path = format!("{}!", inner.unwrap_or_default());
        let found = NameUse { path: &path, called: true };
        reading.note_name(LanguageFamily::Rust, found, line);
    }
    let words = text.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':'));
    for word in words.filter(|word| word.contains("::")) {
        let found = NameUse { path: &dotted(word.trim_matches(':')), called: true };
        reading.note_name(LanguageFamily::Rust, found, line);
    }
}
