//! Python: what is stored where, however it is written, and objects that change when they are used.

use super::analyzed::AnalyzedFunction;
use super::names::{LanguageFamily, NameUse, is_listed, known};
use super::python_names::PythonNames;
use super::reading::FileFacts;
use super::tree::{NodeIndex, SyntaxTree};
use std::collections::{BTreeMap, BTreeSet};

const LISTS: [&str; 7] = [
    "pattern_list",
    "tuple_pattern",
    "list_pattern",
    "list_splat_pattern",
    "as_pattern_target",
    "expression_list",
    "tuple",
];
const PARTS: [&str; 2] = ["subscript", "attribute"];

/// The single targets of a target: `a, (b, c[0])` has three.
pub(super) fn targets(tree: &SyntaxTree<'_>, target: NodeIndex) -> Vec<NodeIndex> {
    let (mut open, mut found) = (vec![target], Vec::new());
    while let Some(node) = open.pop() {
        if LISTS.contains(&tree.kind(node)) {
            open.extend(tree.children(node));
        } else if !tree.is_leaf(node) || tree.kind(node) == "identifier" {
            found.push(node);
        }
    }
    found.reverse();
    found
}

/// Adds what a statement stores to other than by an assignment; `outer` names are declared as
/// global or nonlocal.
pub(super) fn add_stores(
    tree: &SyntaxTree<'_>,
    node: NodeIndex,
    outer: &BTreeSet<String>,
    function: &mut AnalyzedFunction,
) {
    let is_outer = |of: &NodeIndex| outer.contains(tree.text(*of));
    match tree.kind(node) {
        "for_statement" | "for_in_clause" => {
            let left = tree.child(node, "left").map_or(Vec::new(), |left| targets(tree, left));
            function.changed.extend(
                left.into_iter().filter(|of| PARTS.contains(&tree.kind(*of)) || is_outer(of)),
            );
            let right = tree.child(node, "right");
            function.steered.extend(right);
            let names = tree.child(node, "left").map_or(Vec::new(), |left| targets(tree, left));
            let names = names.into_iter().filter(|of| tree.kind(*of) == "identifier");
            function.assigned.extend(names.zip(right.into_iter().cycle()));
        }
        "as_pattern" => {
            let target = tree.child(node, "alias").map_or(Vec::new(), |of| targets(tree, of));
            let value = tree.children(node).next();
            let names = target.into_iter().filter(|of| tree.kind(*of) == "identifier");
            function.assigned.extend(names.zip(value.into_iter().cycle()));
        }
        "try_statement" => {
            let body = tree.child(node, "body");
            let asked = body.into_iter().flat_map(|body| tree.find(body, &["subscript"]));
            function.steered.extend(asked.filter_map(|of| tree.child(of, "value")));
        }
        "as_pattern_target" => {
            let those = targets(tree, node).into_iter();
            function
                .changed
                .extend(those.filter(|of| PARTS.contains(&tree.kind(*of)) || is_outer(of)));
        }
        "delete_statement" => {
            let those = tree.children(node).skip(1).flat_map(|of| targets(tree, of));
            function.changed.extend(those.filter(|of| PARTS.contains(&tree.kind(*of))));
        }
        "import_statement" | "import_from_statement" | "case_pattern" => {
            function.changed.extend(tree.find(node, &["identifier"]).filter(is_outer));
        }
        "function_definition" | "class_definition" if node != function.node => {
            function.changed.extend(tree.child(node, "name").filter(is_outer));
        }
        "boolean_operator" => function.steered.extend(tree.child(node, "left")),
        "if_clause" | "assert_statement" => function.steered.extend(tree.children(node).nth(1)),
        "match_statement" => function.steered.extend(tree.child(node, "subject")),
        "subscript" => {
            let keys = tree.children(node).filter(|of| tree.place(*of) == Some("subscript"));
            function.steered.extend(keys);
        }
        "keyword_argument" if tree.child_text(node, "name") == "out" => {
            let value = tree.child(node, "value");
            function.changed.extend(value.into_iter().flat_map(|value| targets(tree, value)));
        }
        "attribute" if is_changing(tree.child_text(node, "attribute")) => {
            // A method under another name: `push = seen.append`.
            let called = tree.place(node) == Some("function");
            let object = tree.child(node, "object").filter(|_| !called);
            function.changed.extend(object.filter(|of| !is_operators(tree, *of)));
        }
        "call" => add_call(tree, node, function),
        "raise_statement" => function.changed.extend(raised_again(tree, node)),
        _ => {}
    }
}

/// What is raised, if it was made once, outside of functions: an exception keeps where it was
/// raised, and while which other one was handled.
fn raised_again(tree: &SyntaxTree<'_>, node: NodeIndex) -> Option<NodeIndex> {
    let raised = tree.children(node).find(|of| tree.kind(*of) == "identifier")?;
    let mut made = tree.find(0, &["assignment"]).filter(|of| {
        tree.enclosing(*of, &["function_definition", "lambda"]).is_none()
            && tree
                .child(*of, "right")
                .is_some_and(|right| tree.find(right, &["call"]).next().is_some())
    });
    let names = |of: NodeIndex| tree.child(of, "left").map_or(Vec::new(), |l| targets(tree, l));
    let is_it = |target: &NodeIndex| tree.text(*target) == tree.text(raised);
    made.any(|of| names(of).iter().any(is_it)).then_some(raised)
}

/// Whether a name is the module `operator`, whose functions change what they are given at most:
/// `reduce(operator.add, terms)`.
fn is_operators(tree: &SyntaxTree<'_>, object: NodeIndex) -> bool {
    let name = tree.text(object);
    let mut imports = tree.find(0, &["import_statement"]);
    let mut bound = tree.find(0, &["assignment"]).filter_map(|of| tree.child(of, "left"));
    name == "operator"
        && imports.any(|of| tree.text(of).split([' ', ',']).any(|word| word == name))
        && !bound.any(|left| targets(tree, left).iter().any(|of| tree.text(*of) == name))
}

fn add_call(tree: &SyntaxTree<'_>, call: NodeIndex, function: &mut AnalyzedFunction) {
    let Some(callee) = tree.child(call, "function") else {
        return;
    };
    let last = tree.text(callee).rsplit('.').next().unwrap_or_default();
    let arguments = tree.arguments(call);
    function.steered.extend((tree.kind(callee) == "subscript").then_some(callee));
    let of_array =
        ["np.", "numpy.", "torch.", "cp."].iter().any(|m| tree.text(callee).starts_with(m));
    let in_place = of_array && (is_changing(last) && last.ends_with('_') || last == "at");
    if is_listed("python-storing", last) || in_place {
        function.changed.extend(arguments);
        return;
    }
    // `np.add(x, y, to)`, `np.exp(x, to)`.
    let place = if is_listed("python-unary", last) { 1 } else { 2 };
    let to = arguments.get(place).filter(|of| of_array && tree.kind(**of) == "identifier");
    function.changed.extend(to);
    if let ("getattr", [object, method, ..]) = (tree.text(callee), arguments.as_slice())
        && is_changing(tree.text(*method).trim_matches(['"', '\'']))
    {
        function.changed.push(*object);
    }
    let object = tree.child(callee, "object").filter(|_| tree.kind(callee) == "attribute");
    let Some(object) = object.filter(|_| is_changing(last)) else {
        return;
    };
    // `list.append(seen, 1)`.
    let type_name = tree.text(object).rsplit('.').next().unwrap_or_default();
    if is_listed("python-types", type_name) {
        function.changed.extend(arguments.first());
    } else {
        function.changed.push(object);
    }
}

/// Whether a method changes its object, by a list or by a convention of PyTorch.
pub(super) fn is_changing(method: &str) -> bool {
    let in_place = method.ends_with('_') && !method.ends_with("__") && method.len() > 1;
    in_place || method.starts_with("register") || is_listed("python-changing", method)
}

/// Functions that return a name which they do not bind, or always the same object.
pub(super) fn returns(tree: &SyntaxTree<'_>, names: &PythonNames<'_>) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for node in tree.find(0, &["function_definition"]) {
        let name = tree.child_text(node, "name").to_owned();
        let mut around = tree.parent(node).into_iter().flat_map(|up| tree.children(up));
        let is_memo = |of: NodeIndex| {
            let path = tree.find(of, &["attribute", "identifier"]).next();
            let path = path.and_then(|path| names.resolved(tree, path)).unwrap_or_default();
            let found = NameUse { path: &path, called: true };
            known(LanguageFamily::Python, found).iter().any(|(rule, _)| *rule == "memo")
        };
        if around.any(|of| tree.kind(of) == "decorator" && is_memo(of)) {
            found.insert(name.clone(), name);
            continue;
        }
        let bound: BTreeSet<&str> = tree
            .find(node, &["assignment"])
            .filter_map(|of| tree.child(of, "left"))
            .flat_map(|left| targets(tree, left))
            .map(|target| tree.text(target))
            .collect();
        let list = tree.child(node, "parameters");
        let plain = list.into_iter().flat_map(|list| tree.children(list));
        let plain: BTreeSet<&str> = plain
            .filter(|of| tree.child(*of, "value").is_none())
            .filter_map(|of| tree.find(of, &["identifier"]).next())
            .map(|of| tree.text(of))
            .collect();
        for statement in tree.find(node, &["return_statement"]) {
            let value = tree.children(statement).nth(1);
            let root = value.and_then(|value| tree.find(value, &["identifier"]).next());
            let kinds = ["identifier", "subscript", "attribute"];
            let is_name = value.is_some_and(|value| kinds.contains(&tree.kind(value)));
            let root = root.map(|root| tree.text(root)).filter(|_| is_name);
            let outer = root.filter(|root| !bound.contains(root) && !plain.contains(root));
            if let Some(outer) = outer.filter(|of| !["self", "cls"].contains(of)) {
                found.insert(name.clone(), outer.to_owned());
            }
        }
    }
    found
}

/// Whether an attribute is a function of a library that keeps no state: `np.add`.
fn is_library(tree: &SyntaxTree<'_>, names: &PythonNames<'_>, node: NodeIndex) -> bool {
    let path = (tree.kind(node) == "attribute").then(|| names.resolved(tree, node)).flatten();
    let parts = path.as_deref().and_then(|path| path.split_once('.'));
    parts.is_some_and(|(module, name)| {
        ["numpy", "math", "torch"].contains(&module) && !name.contains('.')
    })
}

/// Names outside of functions that are views or methods of others: `keys = seen.keys()`.
pub(super) fn views(tree: &SyntaxTree<'_>) -> Vec<(String, String)> {
    let (names, mut found) = (PythonNames::of(tree), Vec::new());
    for node in tree.find(0, &["assignment"]) {
        if tree.enclosing(node, &["function_definition", "lambda"]).is_some() {
            continue;
        }
        let Some((left, right)) = tree.sides(node) else {
            continue;
        };
        let own = tree.find(right, &["attribute", "subscript", "call"]);
        let views = own.filter(|of| !is_library(tree, &names, *of)).filter(|of| {
            let method = tree.child_text(*of, "attribute");
            let partial = tree.child_text(*of, "function").ends_with("partial");
            is_changing(method)
                || is_listed("python-views", method)
                || tree.find(*of, &["slice"]).next().is_some()
                || partial
        });
        let roots = views.flat_map(|of| tree.find(of, &["identifier"]));
        for root in roots.filter(|of| tree.place(*of) != Some("attribute")) {
            for name in targets(tree, left) {
                found.push((tree.text(name).to_owned(), tree.text(root).to_owned()));
            }
        }
    }
    found
}

/// Names outside of functions, and defaults, that hold what changes when it is used: an iterator, a
/// queue, a lock.
pub(super) fn stateful(tree: &SyntaxTree<'_>) -> BTreeSet<String> {
    let is_generator = |node: &NodeIndex| tree.find(*node, &["yield"]).next().is_some();
    let functions = tree.find(0, &["function_definition"]).filter(is_generator);
    let generators: BTreeSet<&str> = functions.map(|of| tree.child_text(of, "name")).collect();
    let holds = |value: NodeIndex| {
        tree.find(value, &["call", "generator_expression"]).any(|node| {
            let callee = tree.child_text(node, "function");
            let last = callee.rsplit('.').next().unwrap_or_default();
            tree.kind(node) == "generator_expression"
                && tree.parent(node).is_none_or(|up| tree.kind(up) != "call")
                || is_listed("python-stateful", last)
                || generators.contains(callee)
        })
    };
    let mut found = BTreeSet::new();
    for node in tree.find(0, &["attribute"]) {
        let inside = tree.enclosing(node, &["function_definition", "lambda"]).is_some();
        let called = tree.place(node) == Some("function");
        if !inside && !called && is_changing(tree.child_text(node, "attribute")) {
            // The object, or what a method of its type is given: `partial(list.append, seen)`.
            let call = tree.enclosing(node, &["call"]);
            let names = tree.find(call.unwrap_or(node), &["identifier"]);
            let names = names.filter(|of| tree.place(*of) != Some("attribute"));
            let names = names.map(|of| tree.text(of)).filter(|of| !is_listed("python-types", of));
            found.extend(names.map(str::to_owned));
        }
    }
    for node in tree.find(0, &["assignment", "default_parameter", "typed_default_parameter"]) {
        let is_default = tree.kind(node) != "assignment";
        let inside = tree.enclosing(node, &["function_definition", "lambda"]).is_some();
        let (name, value) = match is_default {
            true => (tree.child(node, "name"), tree.child(node, "value")),
            false => (tree.child(node, "left"), tree.child(node, "right")),
        };
        if (is_default || !inside) && value.is_some_and(holds) {
            let names = name.into_iter().flat_map(|name| targets(tree, name));
            found.extend(names.map(|name| tree.text(name).to_owned()));
        }
    }
    found
}

/// Functions of NumPy that return the setting which they replace.
const SETTING: [&str; 2] = ["numpy.seterr", "numpy.setbufsize"];

/// Reports calls of functions that keep something for the process, by the module they are in.
fn note_keeping(tree: &SyntaxTree<'_>, names: &PythonNames<'_>, reading: &mut FileFacts) {
    for call in tree.find(0, &["call"]) {
        let inside = tree.enclosing(call, &["function_definition", "lambda"]);
        let path = tree.child(call, "function").and_then(|of| names.resolved(tree, of));
        let (Some(inside), Some(path)) = (inside, path) else {
            continue;
        };
        let root = path.split('.').next().unwrap_or_default();
        let keeps = is_listed("python-modules", root) && !is_listed("python-ordinary", root);
        if keeps {
            let what = format!("`{path}` may keep what it is given, and no kernel needs it");
            reading.note("static-state", &path, tree.line(call), what);
        } else if SETTING.contains(&path.as_str()) && is_looked_at(tree, call, inside) {
            let what = format!("`{path}` returns what an earlier call set");
            reading.note("static-state", &path, tree.line(call), what);
        }
    }
}

/// Whether the value of a call is more than restored: `np.seterr(**old)`.
fn is_looked_at(tree: &SyntaxTree<'_>, call: NodeIndex, inside: NodeIndex) -> bool {
    let Some(up) = tree.parent(call) else {
        return false;
    };
    let left = tree.child(up, "left").filter(|_| tree.kind(up) == "assignment");
    let Some(left) = left else {
        return tree.kind(up) != "expression_statement";
    };
    let uses = tree.find(inside, &["identifier"]).filter(|of| tree.text(*of) == tree.text(left));
    let is_restored = |of: NodeIndex| {
        let around = tree.parent(of).map_or("", |around| tree.kind(around));
        ["dictionary_splat", "argument_list"].contains(&around)
    };
    tree.kind(left) != "identifier" || uses.into_iter().any(|of| of != left && !is_restored(of))
}

/// Reports stores in functions to objects that are reached from an imported module.
pub(super) fn note_imported(
    tree: &SyntaxTree<'_>,
    functions: &[AnalyzedFunction],
    names: &PythonNames<'_>,
    reading: &mut FileFacts,
) {
    for call in tree.find(0, &["call"]) {
        let path = tree.child(call, "function").and_then(|of| names.resolved(tree, of));
        let records = tree.child_text(call, "arguments").contains("record");
        if path.as_deref() == Some("warnings.catch_warnings") && records {
            let what = "which warnings were shown before is asked for".to_owned();
            reading.note("static-state", "warnings", tree.line(call), what);
        }
    }
    note_keeping(tree, names, reading);
    let mut seen = BTreeSet::new();
    for function in functions {
        let assigned = function.assigned.iter().map(|(target, _)| (*target, true));
        let changed = function.changed.iter().map(|target| (*target, false));
        for (target, is_store) in assigned.chain(changed) {
            let binds =
                ["function_definition", "class_definition", "aliased_import", "dotted_name"];
            let up = tree.parent(target).map_or("", |up| tree.kind(up));
            if !is_store && binds.contains(&up) {
                let what = format!("`{}` is another one after a call", tree.text(target));
                reading.note("static-state", tree.text(target), tree.line(target), what);
                continue;
            }
            let mut object = target;
            while tree.kind(object) == "subscript" {
                object = tree.child(object, "value").unwrap_or(object + 1);
            }
            if is_store && object == target {
                // Names are bound, and attributes are patched, which is another rule.
                continue;
            }
            let Some(path) = names.resolved(tree, object) else {
                continue;
            };
            let root = path.split('.').next().unwrap_or_default();
            let last = path.rsplit('.').next().unwrap_or_default();
            // What a function of such a module returns is a value, not the module's.
            let submodule = is_listed("python-numeric-modules", root)
                && (path == root
                    || is_listed("python-submodules", last)
                    || tree.kind(object) == "call");
            let shadowed = function.locals.contains(tree.text(object))
                || function.params.contains_key(tree.text(object));
            let known = path == "os.environ" || submodule || shadowed;
            if !known && seen.insert(target) {
                let what = format!("`{path}` of another module is changed");
                reading.note("static-state", &path, tree.line(target), what);
            }
        }
    }
}
