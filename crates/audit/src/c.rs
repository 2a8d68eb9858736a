//! C, C++ and CUDA: names, macros, pragmas, attributes and inline assembly.

use super::asm_reads;
use super::asm_text::strings_of;
use super::c_flow::{self, declared};
use super::kept_state;
use super::names::{LanguageFamily, NameUse, is_listed};
use super::preprocessor;
use super::reading::{FileFacts, RuleMatch};
use super::tree::{self, AuditLanguage, NodeIndex, SyntaxTree};
use karve_harness::cuda_source::LAUNCH;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// Scans a text: as it is written, and state also as the preprocessor leaves it. Returns whether it
/// could be read.
pub(super) fn read_text(
    language: AuditLanguage,
    text: &str,
    weights: &[String],
    reading: &mut FileFacts,
) -> bool {
    let expanded = preprocessor::read(text, reading);
    let Some(tree) = tree::parse(language, text) else {
        return false;
    };
    read(&tree, weights, reading);
    for text in expanded {
        let Some(tree) = tree::parse(language, &text) else {
            return false;
        };
        let known = reading.seen.len();
        c_flow::examine(&tree, weights, reading);
        let (before, after) = reading.seen.split_at(known);
        let is_new = |found: &&RuleMatch| {
            !before.iter().any(|old| old.rule == found.rule && old.key == found.key)
        };
        let new: Vec<RuleMatch> = after.iter().filter(is_new).cloned().collect();
        reading.seen.truncate(known);
        reading.seen.extend(new);
    }
    true
}

/// Scans a tree.
fn read(tree: &SyntaxTree<'_>, weights: &[String], reading: &mut FileFacts) {
    let known = DeclaredNames::of(tree);
    for node in tree.all() {
        name(tree, node, &known, reading);
        directive(tree, node, reading);
        expression(tree, node, reading);
    }
    c_flow::examine(tree, weights, reading);
}

/// Where names declared inside of something end to be known.
const SCOPES: [&str; 5] = [
    "namespace_definition",
    "class_specifier",
    "struct_specifier",
    "function_definition",
    "lambda_expression",
];

/// Names that a file declares itself.
struct DeclaredNames<'a> {
    variables: BTreeSet<&'a str>,
    /// Functions, and variables that are one, each with what it is declared in.
    functions: BTreeMap<&'a str, Vec<Option<NodeIndex>>>,
}

impl<'a> DeclaredNames<'a> {
    fn of(tree: &SyntaxTree<'a>) -> Self {
        let mut known = Self { variables: BTreeSet::new(), functions: BTreeMap::new() };
        for node in tree.all() {
            match tree.kind(node) {
                "function_definition" => {
                    known.add_function(tree, tree.child(node, "declarator"));
                }
                "declaration"
                | "parameter_declaration"
                | "field_declaration"
                | "for_range_loop"
                | "optional_parameter_declaration" => {
                    let all = tree.children(node).filter(|c| tree.place(*c) == Some("declarator"));
                    for variable in all.filter(|d| !is_prototype(tree, *d)) {
                        known.variables.extend(declared(tree, variable));
                        let value = tree.child(variable, "value").map(|value| tree.kind(value));
                        if value == Some("lambda_expression") {
                            known.add_function(tree, Some(variable));
                        }
                    }
                }
                _ => {}
            }
        }
        known
    }

    fn add_function(&mut self, tree: &SyntaxTree<'a>, declarator: Option<NodeIndex>) {
        let Some((node, name)) = declarator.and_then(|d| Some((d, declared(tree, d)?))) else {
            return;
        };
        // A definition is not inside of itself.
        let outer = match tree.kind(node) {
            "init_declarator" => Some(node),
            _ => tree.enclosing(node, &["function_definition"]),
        };
        let ends = |of: &NodeIndex| {
            let kind = tree.kind(*of);
            let is_nameless = kind == "namespace_definition" && tree.child(*of, "name").is_none();
            SCOPES.contains(&kind) && !is_nameless
        };
        let scope = outer.and_then(|outer| tree.ancestors(outer).find(ends));
        self.functions.entry(name).or_default().push(scope);
    }

    /// Whether a name that is called here is a function of this file, and not of the library.
    fn has_function(&self, tree: &SyntaxTree<'_>, name: &str, node: NodeIndex) -> bool {
        let scopes = self.functions.get(name);
        let is_global = tree.text(node).starts_with("::");
        scopes.into_iter().flatten().any(|scope| match scope {
            None => true,
            Some(scope) => !is_global && tree.holds(*scope, node),
        })
    }
}

fn is_prototype(tree: &SyntaxTree<'_>, declarator: NodeIndex) -> bool {
    let mut inner = tree.within(declarator).map(|node| tree.kind(node));
    inner.find(|kind| ["function_declarator", "init_declarator"].contains(kind))
        == Some("function_declarator")
}

fn name(
    tree: &SyntaxTree<'_>,
    node: NodeIndex,
    known: &DeclaredNames<'_>,
    reading: &mut FileFacts,
) {
    let parent = tree.parent(node).map_or("", |parent| tree.kind(parent));
    if parent == "qualified_identifier" {
        return;
    }
    let path = match tree.kind(node) {
        "qualified_identifier" => qualified(tree.text(node)),
        "identifier" | "type_identifier" | "primitive_type" => tree.text(node).to_owned(),
        // Members of structures of the library.
        "field_identifier" if tree.text(node).starts_with('_') => tree.text(node).to_owned(),
        _ => return,
    };
    let called = parent == "call_expression" && tree.place(node) == Some("function");
    let own = known.has_function(tree, &path, node);
    let foreign = !own && !known.variables.contains(path.as_str());
    // A function may be called through another name: `f = time`.
    let taken = ["value", "right"].map(Some).contains(&tree.place(node))
        || (parent == "pointer_expression" && tree.place(node) == Some("argument"));
    let value = foreign && tree.kind(node) == "identifier" && taken;
    if (path == "__FILE__" && is_printed(tree, node)) || kept_state::is_restored(tree, node) {
        return;
    }
    let found = NameUse { path: &path, called: (called && !own) || value };
    reading.note_name(LanguageFamily::C, found, tree.line(node));
    if called {
        let last = path.rsplit('.').next().unwrap_or(&path);
        reading.note_call(last, tree.line(node));
        if ["hipLaunchKernelGGL", "cudaLaunchKernel", "hipLaunchKernel"].contains(&last) {
            reading.launches += 1;
        }
    }
}

/// Whether something is an argument of a function that prints.
fn is_printed(tree: &SyntaxTree<'_>, node: NodeIndex) -> bool {
    tree.enclosing(node, &["call_expression"])
        .is_some_and(|call| is_listed("c-printing", tree.child_text(call, "function")))
}

/// `std::chrono::duration<double>` as `std.chrono.duration`.
fn qualified(text: &str) -> String {
    let start = text.split(['<', '(']).next().unwrap_or(text);
    let parts = start.split("::").map(str::trim).filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join(".")
}

fn directive(tree: &SyntaxTree<'_>, node: NodeIndex, reading: &mut FileFacts) {
    let line = tree.line(node);
    match tree.kind(node) {
        "preproc_include" => {
            let path = tree.child(node, "path").map(|path| tree.text(path));
            let path = path.unwrap_or_default().trim_matches(['"', '<', '>']);
            reading.note_import(path, line);
        }
        "preproc_def" => {
            let text = |field| tree.child_text(node, field);
            reading.note_constant(text("name"), text("value"), line);
        }
        "preproc_arg" => macro_text(tree.text(node), line, reading),
        "preproc_call" => {
            let argument = tree.child_text(node, "argument");
            let mut words = argument.split(|c: char| !c.is_ascii_alphanumeric());
            if words.next() == Some("omp") && words.any(|word| ["parallel", "task"].contains(&word))
            {
                reading.note("threads", "omp", line, format!("`#pragma {argument}`"));
            }
        }
        "attribute_specifier" | "attribute_declaration" | "attribute" => {
            for word in tree.find(node, &["identifier"]) {
                hook(tree.text(word), line, reading);
                promise(tree.text(word), line, reading);
            }
            let weak = tree
                .find(node, &["identifier"])
                .any(|word| ["weak", "weakref"].contains(&tree.text(word).trim_matches('_')));
            let defined = tree.enclosing(node, &["function_definition"]).is_some();
            if weak && !defined {
                let what = "asks which symbols the program has".to_owned();
                reading.note("env-read", "weak", line, what);
            }
            let alias = tree.text(node).contains("alias").then(|| tree.parent(node)).flatten();
            for word in alias.into_iter().flat_map(|of| tree.find(of, &["identifier"])) {
                reading.note_definition(tree.text(word), line);
            }
            if tree.text(node).contains("_array") {
                let what = "a section that the loader calls".to_owned();
                reading.note("load-hook", "section", line, what);
            }
        }
        _ => {}
    }
}

/// The body of a macro is not parsed: a name is called if a parenthesis follows, or if it is the
/// whole body.
fn macro_text(text: &str, line: u32, reading: &mut FileFacts) {
    let code = without_comments(text);
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut rest = code.as_str();
    while let Some(start) = rest.find(is_word) {
        rest = &rest[start..];
        let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        let word = &rest[..end];
        rest = &rest[end..];
        let before = &code[..code.len() - rest.len() - word.len()];
        if word == "__FILE__" && is_in_print(before) {
            continue;
        }
        let found = NameUse {
            path: word,
            called: rest.trim_start().starts_with('(') || code.trim() == word,
        };
        reading.note_name(LanguageFamily::C, found, line);
        hook(word, line, reading);
        if code.contains("attribute") || code.contains("[[") {
            promise(word, line, reading);
        }
    }
    reading.note_string(LanguageFamily::C, &code, line);
    if code.contains("asm") {
        reading.note_asm(LanguageFamily::C, &strings_of(&code), line);
    }
}

/// Whether the last open parenthesis of a text is that of a function that prints.
fn is_in_print(before: &str) -> bool {
    let mut closed = 0_usize;
    for (at, c) in before.char_indices().rev() {
        match c {
            ')' => closed += 1,
            '(' if closed > 0 => closed -= 1,
            '(' => {
                let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
                let name = before[..at].trim_end().rsplit(|c| !is_word(c)).next();
                return name.is_some_and(|name| is_listed("c-printing", name));
            }
            _ => {}
        }
    }
    false
}

fn without_comments(text: &str) -> String {
    let mut code = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("/*") {
        code.push_str(&rest[..at]);
        code.push(' ');
        rest = rest[at..].split_once("*/").map_or("", |(_, after)| after);
    }
    code.push_str(rest);
    code.split("//").next().unwrap_or_default().to_owned()
}

/// Attributes by which a compiler may use the result of an earlier call.
fn promise(word: &str, line: u32, reading: &mut FileFacts) {
    if ["pure", "const", "reproducible", "unsequenced"].contains(&word.trim_matches('_')) {
        let what = format!("attribute `{word}`: a result of an earlier call may be used again");
        reading.note("replay", word, line, what);
    }
}

fn hook(word: &str, line: u32, reading: &mut FileFacts) {
    match word.trim_matches('_') {
        "constructor" | "ifunc" | "init_priority" => {
            reading.note("load-hook", word, line, format!("attribute `{word}`"));
        }
        "naked" => {
            reading.note("patching", word, line, "a function without a frame".to_owned());
        }
        "destructor" => {
            reading.note("exit-hook", word, line, format!("attribute `{word}`"));
        }
        _ => {}
    }
}

fn expression(tree: &SyntaxTree<'_>, node: NodeIndex, reading: &mut FileFacts) {
    let line = tree.line(node);
    match tree.kind(node) {
        "string_literal" | "raw_string_literal" | "concatenated_string" => {
            reading.note_string(LanguageFamily::C, tree.text(node), line);
        }
        "function_definition" => definition(tree, node, reading),
        "gnu_asm_expression" | "ms_asm_expression" => {
            // Operands are expressions, not assembly; the Microsoft form has no strings.
            let text = match tree.kind(node) {
                "gnu_asm_expression" => Cow::Owned(strings_of(tree.text(node))),
                _ => Cow::Borrowed(tree.text(node)),
            };
            reading.note_asm(LanguageFamily::C, &text, line);
            let declares = tree.enclosing(node, &["declaration"]);
            let set = declares.is_some_and(|of| tree.child_text(of, "declarator").contains('='));
            let register = text.trim_matches(['"', '%', ' ']);
            if declares.is_some() && !set && asm_reads::canonical(register).is_some() {
                let read = format!("{register} as a variable, which nothing set before");
                reading.note_asm_reads(Some(read), line);
            }
            let inner = ["function_definition", "declaration", "parameter_list"];
            if tree.enclosing(node, &inner).is_none() {
                let what = "assembly outside of functions".to_owned();
                reading.note("patching", "asm", line, what);
            }
        }
        "argument_list" if tree.text(node).starts_with(LAUNCH[0]) => reading.launches += 1,
        "lambda_expression"
            if tree.text(node).contains("mutable")
                && tree.enclosing(node, &["function_definition"]).is_none() =>
        {
            let what = "a function that keeps state of its own".to_owned();
            reading.note("static-state", "mutable", line, what);
        }
        "try_statement" => {
            let what = "errors are caught around a call".to_owned();
            reading.note("fallback", "try", line, what);
        }
        "case_statement" => {
            if let Some(value) = tree.child(node, "value") {
                reading.note_number(tree.text(value), line);
            }
        }
        "binary_expression" => {
            compared(tree, node, reading);
            before_array(tree, node, reading);
        }
        "init_declarator" | "enumerator" | "assignment_expression" => constant(tree, node, reading),
        "field_expression" => {
            let field = tree.child_text(node, "field");
            let of = tree.child_text(node, "argument").rsplit("::").next().unwrap_or_default();
            if ["cout", "cerr", "clog", "cin", "wcout", "wcerr"].contains(&of) {
                let what = format!("`{}` is state of a stream", tree.excerpt(node));
                reading.note("static-state", of, line, what);
            }
            let parent = tree.parent(node).filter(|p| tree.kind(*p) == "call_expression");
            if field == "detach" && parent.is_some_and(|call| tree.text(call).ends_with("detach()"))
            {
                let what = format!("nothing waits for `{}`", tree.excerpt(node));
                reading.note("background", "detach", line, what);
            }
        }
        _ => {}
    }
}

/// A function with a name of the C library that other files can see.
fn definition(tree: &SyntaxTree<'_>, node: NodeIndex, reading: &mut FileFacts) {
    let own = ["class_specifier", "struct_specifier", "namespace_definition"];
    let hidden = tree.children(node).any(|child| ["static", "inline"].contains(&tree.text(child)));
    let declarator = tree.child(node, "declarator");
    let name = declarator.filter(|_| !hidden && tree.enclosing(node, &own).is_none());
    if let Some(name) = name.and_then(|name| declared(tree, name)) {
        reading.note_definition(name, tree.line(node));
    }
}

/// What lies before an array of the caller: `(double *)x - 2`.
fn before_array(tree: &SyntaxTree<'_>, node: NodeIndex, reading: &mut FileFacts) {
    let is_offset = tree.child_text(node, "operator") == "-"
        && tree.child(node, "right").is_some_and(|right| tree.kind(right) == "number_literal");
    let mut left = tree.child(node, "left").filter(|_| is_offset);
    while let Some(inner) = left.filter(|left| tree.kind(*left) == "cast_expression") {
        left = tree.child(inner, "value");
    }
    let (Some(left), Some(function)) = (left, tree.enclosing(node, &["function_definition"]))
    else {
        return;
    };
    let is_array = |param: NodeIndex| {
        let declared = tree.child_text(param, "declarator");
        declared.contains(['*', '['])
            && declared
                .split(|c: char| !(c.is_alphanumeric() || c == '_'))
                .any(|word| word == tree.text(left))
    };
    if tree.kind(left) == "identifier"
        && tree.find(function, &["parameter_declaration"]).any(is_array)
    {
        let what = format!("`{}` is before an array of the caller", tree.excerpt(node));
        reading.note("replay", "before", tree.line(node), what);
    }
}

fn compared(tree: &SyntaxTree<'_>, node: NodeIndex, reading: &mut FileFacts) {
    let operator = tree.child_text(node, "operator");
    if !["==", "!="].contains(&operator) {
        return;
    }
    for field in ["left", "right"] {
        let side = tree.child(node, field);
        if let Some(side) = side.filter(|side| tree.kind(*side) == "number_literal") {
            reading.note_number(tree.text(side), tree.line(side));
        }
    }
}

/// A name that is set to a number: `const int N = 1024`.
fn constant(tree: &SyntaxTree<'_>, node: NodeIndex, reading: &mut FileFacts) {
    let (name, value) = match tree.kind(node) {
        "init_declarator" => ("declarator", "value"),
        "enumerator" => ("name", "value"),
        _ => ("left", "right"),
    };
    let (Some(name), Some(value)) = (tree.child(node, name), tree.child(node, value)) else {
        return;
    };
    if tree.kind(value) != "number_literal" {
        return;
    }
    let (text, number, line) = (tree.text(name), tree.text(value), tree.line(node));
    if tree.kind(node) == "assignment_expression" {
        reading.note_tolerance(text, number, line);
    } else {
        reading.note_constant(text, number, line);
    }
}
