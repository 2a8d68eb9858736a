//! Python: functions, broken down for `flow`.

use super::analyzed::{AddressAliases, AnalyzedFile, AnalyzedFunction, Grammar};
use super::names::{LanguageFamily, NameUse, is_hash, is_listed, known, suggests};
use super::numbers::is_size;
use super::passing::pass_on;
use super::python_names::{PythonNames, arguments};
use super::python_state::{add_stores, note_imported, returns, stateful, targets, views};
use super::reading::FileFacts;
use super::tree::{NodeIndex, SyntaxTree};
use std::collections::BTreeSet;

pub(super) fn examine(tree: &SyntaxTree<'_>, weights: &[String], reading: &mut FileFacts) {
    let names = PythonNames::of(tree);
    let functions = tree.find(0, &["function_definition", "lambda"]);
    let inside = |node: NodeIndex| tree.enclosing(node, &["function_definition"]).is_some();
    // A lambda in a function is part of it.
    let functions = functions.filter(|node| tree.kind(*node) != "lambda" || !inside(*node));
    let mut functions: Vec<_> = functions.map(|node| function(tree, node)).collect();
    pass_on(tree, &mut functions, |node| {
        let list = tree.child(node, "parameters");
        (tree.child_text(node, "name"), list)
    });
    note_imported(tree, &functions, &names, reading);
    let program = AnalyzedFile {
        tree,
        grammar: &PythonGrammar { names: &names },
        functions,
        kept: stateful(tree),
        declared: None,
        helpers: helpers(tree),
        members: BTreeSet::new(),
        returns: returns(tree, &names),
        made_once: BTreeSet::new(),
        views: views(tree),
        scalars: BTreeSet::new(),
        weights,
    };
    program.examine(reading);
}

/// Functions of the file that return the identity of a parameter, and names for `id`.
fn helpers(tree: &SyntaxTree<'_>) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for node in tree.find(0, &["function_definition"]) {
        let inner = tree.find(node, &["return_statement"]);
        if inner.into_iter().any(|statement| takes_identity(tree, statement)) {
            found.insert(tree.child_text(node, "name").to_owned());
        }
    }
    for node in tree.find(0, &["assignment"]) {
        let (name, value) = (tree.child_text(node, "left"), tree.child(node, "right"));
        let of = value.filter(|value| {
            tree.text(*value) == "id"
                || (tree.kind(*value) == "lambda" && takes_identity(tree, *value))
        });
        if of.is_some() {
            found.insert(name.to_owned());
        }
    }
    found
}

fn takes_identity(tree: &SyntaxTree<'_>, expression: NodeIndex) -> bool {
    tree.within(expression).any(|node| names_identity(tree, node))
}

/// Whether a call or an attribute is the identity of something.
fn names_identity(tree: &SyntaxTree<'_>, node: NodeIndex) -> bool {
    match tree.kind(node) {
        "call" => tree.child_text(node, "function") == "id",
        "attribute" => is_listed("python-identities", tree.child_text(node, "attribute")),
        _ => false,
    }
}

struct PythonGrammar<'a> {
    names: &'a PythonNames<'a>,
}

impl PythonGrammar<'_> {
    /// Whether a name is a module that computes, which is no state.
    fn computes(&self, tree: &SyntaxTree<'_>, name: NodeIndex) -> bool {
        let path = self.names.resolved(tree, name);
        path.is_some_and(|path| {
            is_listed("python-numeric-modules", path.split('.').next().unwrap_or_default())
        })
    }
}

fn is_self(tree: &SyntaxTree<'_>, node: NodeIndex) -> bool {
    ["self", "cls"].contains(&tree.text(node))
}

impl Grammar for PythonGrammar<'_> {
    fn name<'t>(&self, tree: &SyntaxTree<'t>, node: NodeIndex) -> Option<&'t str> {
        match tree.kind(node) {
            "identifier" => {
                let attribute = tree.place(node) == Some("attribute");
                // The target of `:=` is a variable, though its place is called a name.
                let up = tree.parent(node).map_or("", |up| tree.kind(up));
                let place = tree.place(node).filter(|_| up != "named_expression");
                let keyword = ["name", "function"].map(Some).contains(&place);
                let plain = !attribute && !keyword && !self.computes(tree, node);
                (plain && !is_self(tree, node)).then(|| tree.text(node))
            }
            "attribute" => {
                let of = tree.child(node, "object")?;
                let of_module = self.names.resolved(tree, of).is_some_and(|of| !of.contains('.'))
                    && tree.place(node) != Some("function")
                    && !self.computes(tree, of);
                let of_self = is_self(tree, of);
                (tree.kind(of) == "identifier" && (of_self || of_module)).then(|| tree.text(node))
            }
            _ => None,
        }
    }

    fn identities(
        &self,
        tree: &SyntaxTree<'_>,
        addresses: &AddressAliases,
        expression: NodeIndex,
    ) -> Vec<String> {
        let mut found = Vec::new();
        for node in tree.within(expression) {
            let of = match tree.kind(node) {
                "call" => tree
                    .child(node, "function")
                    .filter(|callee| tree.text(*callee) == "id")
                    .and_then(|callee| arguments(tree, callee).first().copied()),
                "attribute" => tree
                    .child(node, "attribute")
                    .filter(|name| is_listed("python-identities", tree.text(*name)))
                    .and_then(|_| tree.child(node, "object")),
                _ => None,
            };
            if let Some(of) = of {
                found.push(tree.text(of).to_owned());
            }
            if tree.kind(node) == "identifier" {
                found.extend(addresses.get(tree.text(node)).into_iter().flatten().cloned());
            }
        }
        // `is` compares identities; the parser of functions marks its sides as compared.
        let parent = tree.parent(expression).filter(|p| tree.kind(*p) == "comparison_operator");
        let by_is = parent.is_some_and(|parent| {
            tree.children(parent).any(|child| ["is", "is not"].contains(&tree.text(child)))
        });
        if by_is && tree.kind(expression) == "identifier" {
            found.push(tree.text(expression).to_owned());
        }
        found
    }

    fn makes_number(&self, tree: &SyntaxTree<'_>, _: &AddressAliases, node: NodeIndex) -> bool {
        names_identity(tree, node)
    }

    fn hashes(&self, tree: &SyntaxTree<'_>, expression: NodeIndex) -> bool {
        tree.find(expression, &["call"]).any(|call| {
            let Some(callee) = tree.child(call, "function") else {
                return false;
            };
            let last = tree.text(callee).rsplit('.').next().unwrap_or_default();
            let library = self.names.resolved(tree, callee).is_some_and(|path| {
                let found = NameUse { path: &path, called: true };
                known(LanguageFamily::Python, found).iter().any(|(rule, _)| *rule == "hash")
            });
            library || is_listed("python-digests", last) || is_hash(last)
        })
    }

    fn reads(
        &self,
        tree: &SyntaxTree<'_>,
        function: &AnalyzedFunction,
        expression: NodeIndex,
    ) -> bool {
        tree.find(expression, &["subscript"]).any(|node| {
            let of = tree.child(node, "value").filter(|of| tree.kind(*of) == "identifier");
            of.is_some_and(|of| function.params.contains_key(tree.text(of)))
        })
    }
}

/// Whether the function `name` is called with a parameter that the caller treats as a tensor, or
/// its result is an operand of a matrix product.
pub(super) fn is_given_tensors(tree: &SyntaxTree<'_>, name: &str) -> bool {
    tree.all().filter(|node| tree.kind(*node) == "call").any(|call| {
        if tree.child_text(call, "function") != name {
            return false;
        }
        let is_product = tree.parent(call).is_some_and(|outer| {
            tree.kind(outer) == "binary_operator" && tree.child_text(outer, "operator") == "@"
        });
        let caller = tree.enclosing(call, &["function_definition"]);
        let is_passed = |caller: NodeIndex| {
            let passed = tree.arguments(call).into_iter();
            let passed: Vec<&str> = passed.map(|argument| tree.text(argument)).collect();
            treats_as_tensor(tree, caller, &|param| passed.contains(&param))
        };
        is_product || caller.is_some_and(is_passed)
    })
}

/// Whether a function treats one of its parameters as a tensor.
pub(super) fn takes_tensors(tree: &SyntaxTree<'_>, definition: NodeIndex) -> bool {
    treats_as_tensor(tree, definition, &|_| true)
}

/// The same for those parameters that are asked for.
fn treats_as_tensor(
    tree: &SyntaxTree<'_>,
    definition: NodeIndex,
    asked: &dyn Fn(&str) -> bool,
) -> bool {
    let params = function(tree, definition).params;
    let Some(body) = tree.child(definition, "body") else {
        return false;
    };
    let is_param = |node: NodeIndex| {
        let is_one = params.get(tree.text(node)) == Some(&true) && asked(tree.text(node));
        tree.kind(node) == "identifier" && is_one
    };
    tree.within(body).any(|node| match tree.kind(node) {
        "subscript" => {
            let of = tree.child(node, "value").filter(|of| is_param(*of));
            of.is_some_and(|of| !suggests("python-plain-values", tree.text(of)))
        }
        "attribute" => {
            let name = tree.child_text(node, "attribute");
            is_listed("python-tensor-members", name)
                && tree.child(node, "object").is_some_and(is_param)
        }
        "binary_operator" => {
            let operator = tree.child_text(node, "operator");
            operator == "@" && tree.children(node).any(is_param)
        }
        "call" => {
            let callee = tree.child_text(node, "function");
            let numeric = ["np.", "numpy.", "torch.", "cp."].iter().any(|m| callee.starts_with(m));
            let made = ["empty", "zeros", "ones", "arange", "full", "device", "tensor"];
            let makes = made.iter().any(|name| callee.ends_with(name));
            let list = tree.child(node, "arguments");
            numeric && !makes && list.is_some_and(|list| tree.children(list).any(is_param))
        }
        _ => false,
    })
}

fn function(tree: &SyntaxTree<'_>, node: NodeIndex) -> AnalyzedFunction {
    let mut function = AnalyzedFunction { node, ..AnalyzedFunction::default() };
    let name = tree.child_text(node, "name");
    function.prepares = ["__init__", "__new__", "__post_init__", "reset", "setup"].contains(&name);
    let list = tree.child(node, "parameters");
    for parameter in list.into_iter().flat_map(|list| tree.children(list)) {
        let Some(name) = tree.find(parameter, &["identifier"]).next() else {
            continue;
        };
        // A default outlives the call, and may be changed unless it is a plain value.
        let default = tree.child(parameter, "value");
        if default.is_none_or(|default| is_plain(tree, default)) {
            let plain = tree.child_text(parameter, "type");
            let tensor = !["int", "float", "bool", "str", "tl.constexpr"].contains(&plain);
            function.params.insert(tree.text(name).to_owned(), tensor);
        }
    }
    let outer: BTreeSet<String> = tree
        .find(node, &["global_statement", "nonlocal_statement"])
        .flat_map(|statement| tree.find(statement, &["identifier"]))
        .map(|name| tree.text(name).to_owned())
        .collect();
    for inner in tree.within(node) {
        statement(tree, inner, &mut function);
        add_stores(tree, inner, &outer, &mut function);
    }
    if tree.kind(node) == "lambda" {
        function.given.extend(tree.child(node, "body"));
    }
    let tensors = function.params.iter().filter(|(name, tensor)| **tensor && !is_size(name));
    function.tensors = tensors.map(|(name, _)| name.clone()).collect();
    let targets: Vec<NodeIndex> = function.assigned.iter().map(|(target, _)| *target).collect();
    for target in targets {
        bind(tree, target, &outer, &mut function);
    }
    for clause in tree.find(node, &["for_statement", "for_in_clause"]) {
        if let Some(target) = tree.child(clause, "left") {
            bind(tree, target, &outer, &mut function);
        }
    }
    function
}

/// Whether a default cannot be changed: no name, call or container in it, except for members of
/// modules and numbers in tuples.
fn is_plain(tree: &SyntaxTree<'_>, default: NodeIndex) -> bool {
    let kinds = ["identifier", "call", "list", "dictionary", "set", "lambda", "list_comprehension"];
    let mut inner = tree.find(default, &kinds);
    tree.kind(default) == "attribute" || inner.next().is_none()
}

/// The names that an assignment makes local.
fn bind(
    tree: &SyntaxTree<'_>,
    target: NodeIndex,
    outer: &BTreeSet<String>,
    function: &mut AnalyzedFunction,
) {
    let kinds = ["identifier", "pattern_list", "tuple_pattern", "list_pattern"];
    if !kinds.contains(&tree.kind(target)) {
        return;
    }
    for name in tree.find(target, &["identifier"]) {
        let direct = name == target || tree.parent(name) == Some(target);
        let name = tree.text(name);
        if direct && !outer.contains(name) && !function.params.contains_key(name) {
            function.locals.insert(name.to_owned());
        }
    }
}

fn statement(tree: &SyntaxTree<'_>, node: NodeIndex, function: &mut AnalyzedFunction) {
    match tree.kind(node) {
        "assignment" | "named_expression" => {
            let left = tree.child(node, "left").or_else(|| tree.child(node, "name"));
            let right = tree.child(node, "right").or_else(|| tree.child(node, "value"));
            if let (Some(left), Some(right)) = (left, right) {
                let single = targets(tree, left).into_iter();
                function.assigned.extend(single.map(|target| (target, right)));
            }
        }
        "augmented_assignment" => function.add_change(tree, node, &[]),
        "comparison_operator" => {
            let children: Vec<NodeIndex> = tree.children(node).collect();
            let [left, operator, right] = children.as_slice() else {
                return;
            };
            match tree.text(*operator) {
                "==" | "!=" | "is" | "is not" => function.compared.push((*left, *right)),
                "in" | "not in" => function.looked_up.push((*right, *left)),
                _ => {}
            }
        }
        "subscript" => {
            let key = tree.child(node, "subscript");
            function.looked_up.extend(tree.child(node, "value").zip(key));
        }
        "if_statement" | "elif_clause" | "while_statement" => {
            function.tested.extend(tree.child(node, "condition"));
        }
        "conditional_expression" => function.tested.extend(tree.children(node).nth(2)),
        "return_statement" | "yield" => function.given.extend(tree.children(node).nth(1)),
        "call" => call(tree, node, function),
        _ => {}
    }
}

fn call(tree: &SyntaxTree<'_>, node: NodeIndex, function: &mut AnalyzedFunction) {
    // What `next` is called on is another one afterwards.
    if tree.child_text(node, "function") == "next" {
        let first = tree.arguments(node).first().copied();
        let advanced = first.filter(|of| ["identifier", "attribute"].contains(&tree.kind(*of)));
        function.changed.extend(advanced);
        function.counted.extend(advanced);
    }
    let callee = tree.child(node, "function").filter(|callee| tree.kind(*callee) == "attribute");
    let object = callee.and_then(|callee| tree.child(callee, "object"));
    let (Some(callee), Some(object)) = (callee, object) else {
        return;
    };
    let (method, arguments) = (tree.child_text(callee, "attribute"), tree.arguments(node));
    function.add_method_call("python", object, method, &arguments[..arguments.len().min(1)]);
    let literals = ["integer", "none", "true", "false", "float", "string"];
    let dropped = tree.parent(node).is_some_and(|p| tree.kind(p) == "expression_statement");
    let counts = match method {
        "send" | "__next__" | "__anext__" | "asend" => true,
        "append" | "add" | "appendleft" => {
            arguments.iter().all(|a| literals.contains(&tree.kind(*a)))
        }
        "pop" | "popleft" | "popitem" => dropped,
        _ => false,
    };
    if counts {
        function.changed.push(object);
        function.counted.push(object);
    }
}
