//! New arrays of Python whose content is read before anything is written: it is whatever an earlier
//! call left in that memory.
//!
//! ```text
//! work = np.empty_like(x)
//! if np.array_equal(work, x): return ...    the work array of the last call, and its input
//! ```

use super::names::is_listed;
use super::numbers::callee;
use super::reading::FileFacts;
use super::tree::{NodeIndex, SyntaxTree};
use std::collections::BTreeSet;

/// What only describes an array or is another view of it.
const NEUTRAL: [&str; 15] = [
    "shape",
    "dtype",
    "size",
    "ndim",
    "strides",
    "nbytes",
    "itemsize",
    "ctypes",
    "data_ptr",
    "device",
    "stride",
    "flags",
    "numel",
    "element_size",
    "data",
];
const VIEWS: [&str; 11] = [
    "operands",
    "reshape",
    "view",
    "ravel",
    "T",
    "transpose",
    "squeeze",
    "unsqueeze",
    "flatten",
    "permute",
    "swapaxes",
];
/// Functions that compare arrays.
pub(super) const COMPARES: [&str; 6] =
    ["array_equal", "array_equiv", "allclose", "isclose", "equal", "not_equal"];

/// Reductions leave out the elements that `where` leaves out.
const REDUCTIONS: [&str; 9] = ["sum", "mean", "min", "max", "std", "var", "all", "any", "prod"];

/// Whether a function of NumPy writes only some elements of a new array.
fn leaves_out(tree: &SyntaxTree<'_>, call: NodeIndex) -> bool {
    let has = |name: &str| {
        let arguments = tree.find(call, &["keyword_argument"]);
        let mut own = arguments.filter(|node| {
            let list = tree.parent(*node);
            list.and_then(|list| tree.parent(list)) == Some(call)
        });
        own.any(|node| tree.child_text(node, "name") == name)
    };
    has("where") && !has("out") && !REDUCTIONS.contains(&callee(tree, call))
}

/// Scans the functions of a file.
pub(super) fn examine(tree: &SyntaxTree<'_>, reading: &mut FileFacts) {
    for node in tree.find(0, &["call"]).filter(|node| leaves_out(tree, *node)) {
        let what = format!("`{}` leaves elements unwritten", tree.excerpt(node));
        reading.note("replay", "where", tree.line(node), what);
    }
    for node in tree.find(0, &["call"]).filter(|node| allocates(tree, *node)) {
        let line = tree.line(node);
        let found = match read_as(tree, node) {
            Some(ArrayUse::Compared) => Some(("result-memo", node)),
            Some(ArrayUse::Read) => Some(("replay", node)),
            _ => target(tree, outermost(tree, node)).and_then(|name| first_read(tree, node, name)),
        };
        if let Some((rule, at)) = found {
            let what = format!("`{}` is read before it is written", tree.excerpt(node));
            let shown = tree.line(at);
            reading.note(rule, "empty", if shown > line { shown } else { line }, what);
        }
    }
}

fn allocates(tree: &SyntaxTree<'_>, call: NodeIndex) -> bool {
    let path = tree.child_text(call, "function");
    let of_arrays = [
        "empty",
        "empty_like",
        "empty_strided",
        "new_empty",
        "masked_all",
        "masked_all_like",
        "chararray",
        "recarray",
    ];
    let plain = of_arrays.contains(&callee(tree, call)) && path.contains('.');
    let bare = ["empty", "empty_like", "ndarray"].contains(&path);
    let with_buffer = tree.text(call).contains("buffer");
    let by_iterator = callee(tree, call) == "nditer" && tree.text(call).contains("\"allocate\"");
    plain || by_iterator || ((bare || callee(tree, call) == "ndarray") && !with_buffer)
}

/// The local that gets a new array.
fn target<'t>(tree: &SyntaxTree<'t>, call: NodeIndex) -> Option<&'t str> {
    let list = tree.parent(call)?;
    let (assignment, at) = match tree.kind(list) {
        "assignment" => (list, None),
        "expression_list" | "tuple" => {
            let values = tree.children(list).filter(|v| ![",", "(", ")"].contains(&tree.kind(*v)));
            let at = values.take_while(|value| *value < call).count();
            (tree.parent(list).filter(|up| tree.kind(*up) == "assignment")?, Some(at))
        }
        _ => return None,
    };
    let left = tree.child(assignment, "left")?;
    let name = match at {
        None => left,
        Some(at) => tree.find(left, &["identifier"]).nth(at)?,
    };
    (tree.kind(name) == "identifier").then(|| tree.text(name))
}

/// What an expression does with an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ArrayUse {
    Written,
    Compared,
    Read,
    Returned,
    /// It is another name or view, or only described.
    Same,
}

/// The first use of a new array that reads what is there.
fn first_read(
    tree: &SyntaxTree<'_>,
    call: NodeIndex,
    name: &str,
) -> Option<(&'static str, NodeIndex)> {
    let function = tree.enclosing(call, &["function_definition"])?;
    let after = tree.enclosing(call, &["expression_statement", "assignment"]).unwrap_or(call);
    let mut names = BTreeSet::from([name]);
    let mut returned = None;
    for node in tree.find(function, &["identifier"]) {
        let ours = node > call && !tree.holds(after, node) && names.contains(tree.text(node));
        if !ours || ["name", "attribute"].map(Some).contains(&tree.place(node)) {
            continue;
        }
        match use_of(tree, node) {
            ArrayUse::Written => return None,
            ArrayUse::Compared => return Some(("result-memo", node)),
            ArrayUse::Read => return Some(("replay", node)),
            ArrayUse::Returned => returned = returned.or(Some(("replay", node))),
            ArrayUse::Same => names.extend(alias(tree, node)),
        }
    }
    // An empty result is returned early; one that nothing ever writes is not empty.
    returned
}

/// Another name that an array gets: `half = work[:n]`.
fn alias<'t>(tree: &SyntaxTree<'t>, node: NodeIndex) -> Option<&'t str> {
    let top = outermost(tree, node);
    let assignment = tree.parent(top).filter(|up| tree.kind(*up) == "assignment")?;
    let left = tree.child(assignment, "left").filter(|left| *left != top)?;
    (tree.kind(left) == "identifier").then(|| tree.text(left))
}

/// The largest expression that is the array itself or a view of it.
fn outermost(tree: &SyntaxTree<'_>, node: NodeIndex) -> NodeIndex {
    let mut top = node;
    while let Some(up) = tree.parent(top) {
        let inner = match tree.kind(up) {
            "subscript" => tree.place(top) == Some("value"),
            "attribute" => VIEWS.contains(&tree.child_text(up, "attribute")),
            "call" => tree.place(top) == Some("function") && VIEWS.contains(&callee(tree, up)),
            "parenthesized_expression" => true,
            _ => false,
        };
        if !inner {
            break;
        }
        top = up;
    }
    top
}

fn use_of(tree: &SyntaxTree<'_>, node: NodeIndex) -> ArrayUse {
    let top = outermost(tree, node);
    if let Some(read) = read_as(tree, top) {
        return read;
    }
    let Some(up) = tree.parent(top) else {
        return ArrayUse::Same;
    };
    match tree.kind(up) {
        "assignment" if tree.place(top) == Some("left") && top != node => ArrayUse::Written,
        "assignment" if tree.place(top) == Some("left") => ArrayUse::Written,
        "pattern_list" | "delete_statement" | "global_statement" => ArrayUse::Written,
        "assignment" => ArrayUse::Same,
        "return_statement" => ArrayUse::Returned,
        "attribute" if is_given_address(tree, up) => ArrayUse::Written,
        "attribute" if NEUTRAL.contains(&tree.child_text(up, "attribute")) => ArrayUse::Same,
        // Everything else may write: a function of the file, a launch, a list of outputs.
        _ => ArrayUse::Written,
    }
}

/// Whether the address of an array is an argument: a launch by address may write there.
fn is_given_address(tree: &SyntaxTree<'_>, attribute: NodeIndex) -> bool {
    let call = tree.parent(attribute).filter(|up| tree.kind(*up) == "call");
    let around = call.and_then(|call| tree.parent(call));
    tree.child_text(attribute, "attribute") == "data_ptr"
        && around.is_some_and(|around| tree.kind(around) == "argument_list")
}

/// How an expression is read, if it certainly is.
fn read_as(tree: &SyntaxTree<'_>, top: NodeIndex) -> Option<ArrayUse> {
    let up = tree.parent(top)?;
    match tree.kind(up) {
        "comparison_operator" => {
            let identity = |child: NodeIndex| ["is", "is not", "in"].contains(&tree.text(child));
            (!tree.children(up).any(identity)).then_some(ArrayUse::Compared)
        }
        "binary_operator" | "unary_operator" => Some(ArrayUse::Read),
        "augmented_assignment" => Some(ArrayUse::Read),
        "attribute" => {
            let method = tree.child_text(up, "attribute");
            is_listed("python-array-readers", method).then_some(ArrayUse::Read)
        }
        "argument_list" => {
            let call = tree.parent(up)?;
            let name = callee(tree, call);
            let arguments = tree.arguments(call);
            let position = arguments.iter().position(|of| *of == top)?;
            if COMPARES.contains(&name) {
                return (position < 2).then_some(ArrayUse::Compared);
            }
            let path = tree.child_text(call, "function");
            let of_library = ["np.", "numpy.", "torch.", "cp."].iter().any(|m| path.starts_with(m));
            let reads = is_listed("python-array-readers", name) && of_library && position == 0;
            (reads || ["float", "bytes", "hash", "sum"].contains(&path)).then_some(ArrayUse::Read)
        }
        _ => None,
    }
}
