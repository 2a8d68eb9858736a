//! Python, including Triton: imports and their aliases, decorators, classes, patches.

use super::c;
use super::names::{LanguageFamily, NameUse, is_listed, known, word_list};
use super::preprocessor;
use super::python_flow;
use super::python_names::{PythonNames, arguments, imports};
use super::reading::FileFacts;
use super::reflection;
use super::shadowing;
use super::tree::{AuditLanguage, NodeIndex, SyntaxTree};
use super::unwritten;

/// Words of a library whose operators count as calls.
const MATMUL: &str = "@";
/// What a string contains that is compiled as CUDA or C++ at run time.
const EMBEDDED: [&str; 3] = ["__global__", "__device__", "#include"];

/// Scans a file.
pub(super) fn read(tree: &SyntaxTree<'_>, weights: &[String], reading: &mut FileFacts) {
    let names = PythonNames::of(tree);
    for node in tree.all() {
        imported(tree, node, reading);
        named(tree, node, &names, reading);
        patch(tree, node, &names, reading);
        shape(tree, node, reading);
        statement(tree, node, &names, reading);
        class(tree, node, &names, reading);
        embedded(tree, node, weights, reading);
        reflection::read(tree, node, &names, reading);
    }
    shadowing::in_python(tree, reading);
    unwritten::examine(tree, reading);
    python_flow::examine(tree, weights, reading);
}

/// Scans CUDA in a string like a file of its own.
fn embedded(tree: &SyntaxTree<'_>, node: NodeIndex, weights: &[String], reading: &mut FileFacts) {
    let text = tree.text(node);
    if tree.kind(node) != "string_content" || !EMBEDDED.iter().any(|word| text.contains(word)) {
        return;
    }
    let (first, before) = (reading.seen.len(), tree.line(node).saturating_sub(1));
    let text = preprocessor::spliced(text);
    if !c::read_text(AuditLanguage::Cuda, &text, weights, reading) {
        reading.note("unaudited", "string", 1, "a string takes too long to read".into());
    }
    for seen in reading.seen.iter_mut().skip(first) {
        seen.line += before;
    }
}

fn imported(tree: &SyntaxTree<'_>, node: NodeIndex, reading: &mut FileFacts) {
    let line = tree.line(node);
    let mut found = |path: &str| {
        let found = NameUse { path, called: false };
        reading.note_name(LanguageFamily::Python, found, line);
        reading.note_import(path, line);
    };
    match tree.kind(node) {
        "import_statement" => {
            for name in tree.find(node, &["dotted_name"]) {
                found(tree.text(name));
            }
        }
        "import_from_statement" => {
            let module = tree.child_text(node, "module_name");
            found(module.trim_start_matches('.'));
            for (_, path) in imports(tree, node) {
                found(&path);
            }
            // Everything in a module: as if its worst name were used.
            if tree.text(node).trim_end().ends_with('*') {
                for name in ["perf_counter", "system", "environ", "sleep", "lru_cache", "matmul"] {
                    found(&format!("{module}.{name}"));
                }
            }
        }
        _ => {}
    }
}

fn named(tree: &SyntaxTree<'_>, node: NodeIndex, names: &PythonNames<'_>, reading: &mut FileFacts) {
    let line = tree.line(node);
    let kind = tree.kind(node);
    if kind == "string_content" {
        reading.note_string(LanguageFamily::Python, tree.text(node), line);
    }
    if kind == "identifier" && tree.text(node).chars().any(is_other_form) {
        let what = format!("`{}` is read as another name", tree.text(node));
        reading.note("dynamic-code", "letters", line, what);
    }
    if !["identifier", "attribute"].contains(&kind) || is_inner(tree, node) {
        return;
    }
    let called = tree.place(node) == Some("function");
    let text: String = tree.text(node).split_whitespace().collect();
    let path = names.resolved(tree, node);
    let builtin = kind == "identifier" && path.is_none() && !names.own.contains(text.as_str());
    let magic = text.starts_with("__");
    if is_library_path(tree, node) {
        return;
    }
    if let Some(path) = &path {
        let found = NameUse { path, called };
        reading.note_name(LanguageFamily::Python, found, line);
        // A module of another module: `torch.os.environ`.
        for (at, _) in path.match_indices('.') {
            let inner = path[at + 1..].trim_start_matches('_');
            if is_listed("python-inner-modules", inner.split('.').next().unwrap_or_default()) {
                let found = NameUse { path: inner, called };
                reading.note_name(LanguageFamily::Python, found, line);
            }
        }
    } else if (builtin && called) || magic {
        let found = NameUse { path: &text, called };
        reading.note_name(LanguageFamily::Python, found, line);
    } else if kind == "attribute" {
        // For an unknown object, only methods are known.
        let method = format!("?.{}", text.rsplit('.').next().unwrap_or_default());
        let found = NameUse { path: &method, called };
        reading.note_name(LanguageFamily::Python, found, line);
    }
    // What lies on the way: `generator.gi_frame.f_lineno`.
    let parts: Vec<&str> = text.split('.').collect();
    for part in parts.iter().skip(1).take(parts.len().saturating_sub(2)) {
        let found = NameUse { path: &format!("?.{part}"), called: false };
        reading.note_name(LanguageFamily::Python, found, line);
    }
    if called {
        reading.note_call(text.rsplit('.').next().unwrap_or_default(), line);
        found_by_name(tree, node, names, reading);
        own_process(tree, node, path.as_deref(), reading);
    }
}

/// Whether Python reads a character in a name as a plain letter or digit.
fn is_other_form(c: char) -> bool {
    matches!(c, 'ª' | 'º' | 'ſ' | '\u{2b0}'..='\u{2b8}' | '\u{2e0}'..='\u{2e4}'
        | '\u{1d2c}'..='\u{1d6a}' | '\u{1d78}' | '\u{1d9b}'..='\u{1dbf}'
        | '\u{2070}'..='\u{209c}' | '\u{2100}'..='\u{218b}' | '\u{2460}'..='\u{24ff}'
        | '\u{2c7c}' | '\u{2c7d}' | '\u{a7f0}'..='\u{a7f9}' | '\u{fb00}'..='\u{fb06}'
        | '\u{ff10}'..='\u{ff5a}' | '\u{1d400}'..='\u{1d7ff}' | '\u{1f100}'..='\u{1f1ff}'
        | '\u{1fbf0}'..='\u{1fbf9}')
}

/// Whether `__file__` only says where a library is that is loaded there.
fn is_library_path(tree: &SyntaxTree<'_>, node: NodeIndex) -> bool {
    let loads = |up: NodeIndex| {
        let callee = tree.child_text(up, "function");
        tree.kind(up) == "call" && is_listed("python-loading", callee)
    };
    tree.text(node) == "__file__" && tree.ancestors(node).any(loads)
}

/// `ctypes.CDLL(None)` is the process itself, with the interpreter.
fn own_process(
    tree: &SyntaxTree<'_>,
    callee: NodeIndex,
    path: Option<&str>,
    reading: &mut FileFacts,
) {
    let loads = matches!(path, Some("ctypes.CDLL" | "ctypes.cdll.LoadLibrary"));
    let first = arguments(tree, callee).first().copied();
    if loads && first.is_none_or(|first| tree.kind(first) == "none") {
        let what = "functions of the process itself are loaded".to_owned();
        reading.note("dynamic-load", "CDLL(None)", tree.line(callee), what);
    }
}

/// Whether a name is part of a longer one, or is being assigned.
fn is_inner(tree: &SyntaxTree<'_>, node: NodeIndex) -> bool {
    let Some(parent) = tree.parent(node) else {
        return true;
    };
    let kind = tree.kind(parent);
    kind == "attribute"
        || kind == "dotted_name"
        || kind == "aliased_import"
        || (tree.place(node) == Some("name") && kind != "named_expression")
}

/// `getattr(time, "perf_counter")` is `time.perf_counter`.
fn found_by_name(
    tree: &SyntaxTree<'_>,
    callee: NodeIndex,
    names: &PythonNames<'_>,
    reading: &mut FileFacts,
) {
    if tree.text(callee) != "getattr" {
        return;
    }
    let arguments = arguments(tree, callee);
    let [object, name, ..] = arguments.as_slice() else {
        return;
    };
    let line = tree.line(callee);
    let is_literal = tree.kind(*name) == "string";
    let module = match names.resolved(tree, *object) {
        Some(module) => module,
        None if is_literal => "?".to_owned(),
        None => return,
    };
    if is_literal {
        let path = format!("{module}.{}", tree.text(*name).trim_matches(['"', '\'']));
        let found = NameUse { path: &path, called: true };
        reading.note_name(LanguageFamily::Python, found, line);
    }
}

/// Assignments to names that belong to other modules.
fn patch(tree: &SyntaxTree<'_>, node: NodeIndex, names: &PythonNames<'_>, reading: &mut FileFacts) {
    let line = tree.line(node);
    let target = match tree.kind(node) {
        "assignment" | "augmented_assignment" | "for_statement" | "for_in_clause" => {
            tree.child(node, "left")
        }
        "as_pattern_target" => tree.children(node).next(),
        "delete_statement" => tree.find(node, &["attribute"]).next(),
        "call" => {
            let callee = tree.child(node, "function");
            callee
                .filter(|callee| ["setattr", "delattr"].contains(&tree.text(*callee)))
                .and_then(|callee| arguments(tree, callee).first().copied())
        }
        _ => None,
    };
    let Some(target) = target else {
        return;
    };
    let sets = tree.kind(node) == "call";
    if tree.kind(target) == "subscript" {
        let of = tree.child(target, "value").and_then(|of| names.resolved(tree, of));
        if of.as_deref() == Some("os.environ") {
            let what = format!("`{}` is set", tree.excerpt(target));
            reading.note("env-write", "os.environ", line, what);
        }
        return;
    }
    if !(tree.kind(target) == "attribute" || sets) {
        return;
    }
    let changed = match sets {
        true => arguments(tree, tree.child(node, "function").unwrap_or(node)).get(1).copied(),
        false => tree.child(target, "attribute"),
    };
    let changed = changed.map_or("", |name| tree.text(name).trim_matches(['"', '\'']));
    // A module in any object: `scheduler.time.sleep = ...`.
    let inner = tree.text(target).split('.').skip(1);
    let parts = inner.clone().count();
    let of_module =
        inner.take(parts.saturating_sub(1)).any(|p| is_listed("python-inner-modules", p));
    let internal = is_listed("python-internals", changed) || is_listed("python-clocks", changed);
    if internal || of_module {
        let what = format!("`{}` is changed", tree.excerpt(target));
        reading.note("patching", changed, line, what);
        return;
    }
    let Some(path) = names.resolved(tree, target) else {
        return;
    };
    // Settings are also assigned to.
    let settings = ["backends", "config", "knobs"];
    if path.split('.').any(|part| settings.contains(&part)) {
        reading.note("env-write", &path, line, format!("`{path}` is set"));
    } else {
        reading.note("patching", &path, line, format!("`{path}` is changed"));
    }
}

fn shape(tree: &SyntaxTree<'_>, node: NodeIndex, reading: &mut FileFacts) {
    let numbers = |of: NodeIndex, reading: &mut FileFacts| {
        for number in tree.find(of, &["integer"]) {
            reading.note_number(tree.text(number), tree.line(number));
        }
    };
    match tree.kind(node) {
        "comparison_operator" => {
            let equals = |child: NodeIndex| ["==", "!=", "in"].contains(&tree.text(child));
            if tree.children(node).any(equals) {
                let direct = ["integer", "tuple", "list", "set"];
                let sides: Vec<NodeIndex> = tree.children(node).collect();
                for side in sides.into_iter().filter(|s| direct.contains(&tree.kind(*s))) {
                    numbers(side, reading);
                }
            }
        }
        "case_pattern" => numbers(node, reading),
        "pair" => {
            let key = tree.child(node, "key");
            if let Some(key) = key.filter(|k| ["tuple", "integer"].contains(&tree.kind(*k))) {
                numbers(key, reading);
            }
        }
        "assignment" | "default_parameter" | "keyword_argument" => {
            let (name, value) = match tree.kind(node) {
                "assignment" => ("left", "right"),
                _ => ("name", "value"),
            };
            let text = |field| tree.child_text(node, field);
            reading.note_constant(text(name), text(value), tree.line(node));
        }
        _ => {}
    }
}

fn statement(
    tree: &SyntaxTree<'_>,
    node: NodeIndex,
    names: &PythonNames<'_>,
    reading: &mut FileFacts,
) {
    let line = tree.line(node);
    match tree.kind(node) {
        "try_statement" => fallback(tree, node, reading),
        "call" => {
            let callee = tree.child(node, "function");
            if callee.is_some_and(|callee| tree.kind(callee) == "subscript") {
                reading.launches += 1;
            }
        }
        "binary_operator" => {
            let operator = tree.child_text(node, "operator");
            if operator == MATMUL {
                let what = format!("`{}`", tree.excerpt(node));
                reading.note("library-call", MATMUL, line, what);
            }
        }
        "decorator" => decorator(tree, node, names, reading),
        _ => {}
    }
}

fn fallback(tree: &SyntaxTree<'_>, node: NodeIndex, reading: &mut FileFacts) {
    for clause in tree.children(node).filter(|child| tree.kind(*child) == "except_clause") {
        let caught = tree.child_text(clause, "value");
        let ordinary =
            word_list("python-ordinary-errors").iter().any(|error| caught.contains(error));
        let raises = tree.find(clause, &["raise_statement"]).next().is_some();
        let calls =
            tree.child(node, "body").is_some_and(|b| tree.find(b, &["call"]).next().is_some());
        if !ordinary && !raises && calls {
            let what = "errors are caught and something else is done".to_owned();
            reading.note("fallback", "except", tree.line(clause), what);
        }
    }
}

/// The arguments of a memoized function decide which kind of cache it is.
fn decorator(
    tree: &SyntaxTree<'_>,
    node: NodeIndex,
    names: &PythonNames<'_>,
    reading: &mut FileFacts,
) {
    let mut parts = tree.find(node, &["attribute", "identifier"]);
    let Some(path) = parts.next().and_then(|part| names.resolved(tree, part)) else {
        return;
    };
    let found = NameUse { path: &path, called: true };
    if !known(LanguageFamily::Python, found).iter().any(|(rule, _)| *rule == "memo") {
        return;
    }
    let definition = tree.parent(node).and_then(|parent| tree.child(parent, "definition"));
    let Some(definition) = definition else {
        return;
    };
    let name = tree.child_text(definition, "name");
    let takes_tensors =
        python_flow::takes_tensors(tree, definition) || python_flow::is_given_tensors(tree, name);
    let (rule, what) = if takes_tensors {
        ("tensor-memo", format!("{path} on {name}, which takes tensors"))
    } else {
        ("value-memo", format!("{path} on {name}"))
    };
    reading.note(rule, name, tree.line(node), what);
}

fn class(tree: &SyntaxTree<'_>, node: NodeIndex, names: &PythonNames<'_>, reading: &mut FileFacts) {
    let line = tree.line(node);
    match tree.kind(node) {
        "function_definition" => {
            let name = tree.child_text(node, "name");
            let inside = tree.enclosing(node, &["class_definition"]).is_some();
            if inside && is_listed("python-inspected", name) {
                reading.note("output-object", name, line, format!("a class defines {name}"));
            }
        }
        "class_definition" => {
            let parents = tree.child(node, "superclasses");
            let parents = parents.into_iter().flat_map(|list| tree.children(list));
            for parent in parents {
                let path = names.resolved(tree, parent);
                let path = path.unwrap_or_else(|| tree.text(parent).to_owned());
                if is_listed("python-results", &path) {
                    let what = format!("a class derives from {path}");
                    reading.note("output-object", &path, line, what);
                }
                // The reference of a well-known layout: `class ModelNew(Model)`.
                if path.rsplit('.').next() == Some("Model") {
                    let what = "the kernel inherits from the reference".to_owned();
                    reading.note("reference-call", "Model", line, what);
                }
            }
        }
        _ => {}
    }
}
