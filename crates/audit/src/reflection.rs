//! Python that looks behind names and arrays: members by names that are made at run time, who owns
//! or may write an array, and memory beyond it.

use super::names::is_listed;
use super::python_names::{PythonNames, arguments};
use super::reading::FileFacts;
use super::tree::{NodeIndex, SyntaxTree};

/// What may be asked about the memory of an array: how it is laid out.
const LAYOUT: [&str; 8] =
    ["c_contiguous", "f_contiguous", "contiguous", "c", "f", "forc", "fnc", "aligned"];

pub(super) fn read(
    tree: &SyntaxTree<'_>,
    node: NodeIndex,
    names: &PythonNames<'_>,
    reading: &mut FileFacts,
) {
    match tree.kind(node) {
        "identifier" => renamed(tree, node, names, reading),
        "attribute" => owner(tree, node, names, reading),
        "binary_operator" => beyond(tree, node, reading),
        "comparison_operator" => own_name(tree, node, reading),
        "call" => {
            strided(tree, node, reading);
            by_name(tree, node, names, reading);
        }
        _ => {}
    }
}

/// A function that looks up names, used as a value: `look = getattr`.
fn renamed(
    tree: &SyntaxTree<'_>,
    node: NodeIndex,
    names: &PythonNames<'_>,
    reading: &mut FileFacts,
) {
    let called = ["function", "attribute", "name"].map(Some).contains(&tree.place(node));
    let text = tree.text(node);
    if !called && is_listed("python-reflection", text) && !names.is_own(text) {
        let what = format!("`{text}` is used under another name");
        reading.note("dynamic-code", text, tree.line(node), what);
    }
}

/// `getattr(x, name)` with a name that is not written there.
fn by_name(
    tree: &SyntaxTree<'_>,
    call: NodeIndex,
    names: &PythonNames<'_>,
    reading: &mut FileFacts,
) {
    let callee = tree.child(call, "function");
    let of_names = ["getattr", "setattr", "delattr", "hasattr"];
    let Some(callee) = callee.filter(|callee| of_names.contains(&tree.text(*callee))) else {
        return;
    };
    let arguments = arguments(tree, callee);
    let [object, name, ..] = arguments.as_slice() else {
        return;
    };
    let made = tree.find(*name, &["interpolation"]).next().is_some();
    let literal = tree.kind(*name) == "string" && !made;
    // A type by its name, and the options of an object of one's own.
    let module = names.resolved(tree, *object);
    let numeric = module.is_some_and(|module| is_listed("python-numeric-modules", &module));
    let plain = tree.kind(*name) == "identifier" && is_bound(tree, *name);
    let own = ["self", "cls"].contains(&tree.text(*object));
    if !(literal || (plain && (own || (numeric && tree.text(callee) == "getattr")))) {
        let what = format!("`{}` finds a member by a name made at run time", tree.excerpt(call));
        reading.note("dynamic-code", "getattr", tree.line(call), what);
    }
}

/// Whether a name is a parameter or the variable of a loop, not something put together.
fn is_bound(tree: &SyntaxTree<'_>, name: NodeIndex) -> bool {
    let Some(function) = tree.enclosing(name, &["function_definition"]) else {
        return false;
    };
    let text = tree.text(name);
    let lists = [tree.child(function, "parameters")].into_iter().flatten();
    let loops = tree.find(function, &["for_statement"]).filter_map(|each| tree.child(each, "left"));
    let mut bound = lists.chain(loops).flat_map(|list| tree.find(list, &["identifier"]));
    let mut assigned = tree.find(function, &["assignment", "augmented_assignment"]);
    bound.any(|of| tree.text(of) == text) && !assigned.any(|of| tree.child_text(of, "left") == text)
}

/// `x.flags.writeable` and `x.base`: who called with what.
fn owner(tree: &SyntaxTree<'_>, node: NodeIndex, names: &PythonNames<'_>, reading: &mut FileFacts) {
    let member = tree.child_text(node, "attribute");
    let Some(object) = tree.child(node, "object").filter(|_| ["flags", "base"].contains(&member))
    else {
        return;
    };
    let own = ["self", "cls"].contains(&tree.text(object));
    if own || names.resolved(tree, object).is_some() || tree.place(node) == Some("function") {
        return;
    }
    let parent = tree.parent(node).filter(|_| member == "flags");
    // Protecting an array tells nothing.
    let statement = parent.and_then(|parent| tree.parent(parent));
    let is_protected = statement.is_some_and(|statement| {
        tree.kind(statement) == "assignment"
            && tree.child(statement, "left") == parent
            && tree.child_text(statement, "right") == "False"
    });
    if is_protected {
        return;
    }
    let asked = parent.map(|parent| match tree.kind(parent) {
        "attribute" => tree.child_text(parent, "attribute").to_owned(),
        "subscript" => {
            let key = tree.child_text(parent, "subscript").trim_matches(['"', '\'']);
            key.to_ascii_lowercase()
        }
        _ => String::new(),
    });
    if !asked.is_some_and(|asked| LAYOUT.contains(&asked.as_str())) {
        let what = format!("`{}` says whose memory it is", tree.excerpt(node));
        reading.note("env-read", member, tree.line(node), what);
    }
}

/// A module that asks under which name it was imported, unless it is a script.
fn own_name(tree: &SyntaxTree<'_>, node: NodeIndex, reading: &mut FileFacts) {
    let asks = tree.children(node).any(|side| tree.text(side) == "__name__");
    if asks && !tree.text(node).contains("__main__") {
        let what = format!("`{}` asks who imports it", tree.excerpt(node));
        reading.note("env-read", "__name__", tree.line(node), what);
    }
}

/// An address before or after an array.
fn beyond(tree: &SyntaxTree<'_>, node: NodeIndex, reading: &mut FileFacts) {
    let Some((left, right)) = tree.sides(node) else {
        return;
    };
    let address = |side: NodeIndex| {
        let text = tree.text(side);
        text.ends_with(".ctypes.data") || text.ends_with("data_ptr()")
    };
    let past = match tree.child_text(node, "operator") {
        "-" => address(left),
        "+" => {
            let whole = |side: NodeIndex| tree.text(side).contains("nbytes");
            (address(left) && whole(right)) || (address(right) && whole(left))
        }
        _ => false,
    };
    if past {
        let what = format!("`{}` is beyond an array", tree.excerpt(node));
        reading.note("memory-tamper", "address", tree.line(node), what);
    }
}

/// A view that is larger than the array.
fn strided(tree: &SyntaxTree<'_>, call: NodeIndex, reading: &mut FileFacts) {
    let callee = tree.child(call, "function");
    let Some(callee) = callee.filter(|c| tree.text(*c).rsplit('.').next() == Some("as_strided"))
    else {
        return;
    };
    let all = arguments(tree, callee);
    let keyword = |node: &&NodeIndex, names: &[&str]| {
        tree.kind(**node) == "keyword_argument" && names.contains(&tree.child_text(**node, "name"))
    };
    let by_name = all.iter().find(|node| keyword(node, &["shape", "size"]));
    let by_name = by_name.and_then(|node| tree.child(*node, "value"));
    let is_plain = |node: &&NodeIndex| tree.kind(**node) != "keyword_argument";
    let at = usize::from(!tree.text(all.first().copied().unwrap_or(call)).starts_with(['(', '[']));
    let shape = by_name.or_else(|| all.iter().filter(is_plain).nth(at).copied());
    let shape = shape.map(|shape| value_of(tree, shape));
    let fresh = all.first().is_some_and(|of| tree.text(*of).contains("empty"));
    if fresh || shape.is_some_and(|shape| grows(tree, shape)) {
        let what = format!("`{}` may be beyond the array", tree.excerpt(call));
        reading.note("memory-tamper", "as_strided", tree.line(call), what);
    }
}

/// The value of a local, if it is assigned where it can be seen.
fn value_of(tree: &SyntaxTree<'_>, node: NodeIndex) -> NodeIndex {
    let function = tree.enclosing(node, &["function_definition"]).unwrap_or(0);
    let text = tree.text(node);
    for assignment in tree.find(function, &["assignment"]) {
        let Some((left, right)) = tree.sides(assignment) else {
            continue;
        };
        if tree.text(left) == text {
            return right;
        }
        let names: Vec<NodeIndex> = tree.find(left, &["identifier"]).collect();
        let at = names.iter().position(|name| tree.text(*name) == text);
        let lists = ["pattern_list", "tuple_pattern"];
        if let Some(at) = at.filter(|_| lists.contains(&tree.kind(left))) {
            let inner = ["(", ")", ","];
            let mut values = tree.children(right).filter(|v| !inner.contains(&tree.kind(*v)));
            return values.nth(at).unwrap_or(node);
        }
    }
    node
}

/// Whether a shape has more elements than what it is made of: `(x.size * 2,)`, `(1024,)`.
fn grows(tree: &SyntaxTree<'_>, shape: NodeIndex) -> bool {
    let is_value = |node: &NodeIndex| !["(", ")", ",", "[", "]"].contains(&tree.kind(*node));
    let elements: Vec<NodeIndex> = match tree.kind(shape) {
        "tuple" | "list" => tree.children(shape).filter(is_value).collect(),
        _ => vec![shape],
    };
    let named = |node: &NodeIndex| tree.find(*node, &["identifier"]).next().is_some();
    let larger = |node: &NodeIndex| {
        let operators: Vec<&str> = tree
            .find(*node, &["binary_operator"])
            .map(|inner| tree.child_text(inner, "operator"))
            .collect();
        let more = operators.iter().any(|of| ["+", "*", "<<", "**"].contains(of));
        let less = operators.iter().any(|of| ["-", "//", "/", ">>", "%"].contains(of));
        more && !less && tree.find(*node, &["integer"]).next().is_some()
    };
    !elements.iter().any(named) || elements.iter().any(larger)
}
