//! State that the process keeps: it may be saved and restored, and nothing else.
//!
//! `names.txt` lists the functions that read and set it, under `static-state` and `hidden-state`.

use super::names::is_listed;
use super::tree::{NodeIndex, SyntaxTree};

const WRAPS: [&str; 4] =
    ["parenthesized_expression", "binary_expression", "pointer_expression", "cast_expression"];

/// Whether a name only saves state of the process in a local that only restores it:
/// `unsigned csr = _mm_getcsr(); _mm_setcsr(csr | 0x8040); ... _mm_setcsr(csr);`
pub(super) fn is_restored(tree: &SyntaxTree<'_>, node: NodeIndex) -> bool {
    let name = tree.text(node);
    if !is_listed("c-saving", name) {
        return false;
    }
    let Some(function) = tree.enclosing(node, &["function_definition"]) else {
        return false;
    };
    let call = tree.parent(node).filter(|up| tree.kind(*up) == "call_expression");
    let value = call.unwrap_or(node);
    if is_set(tree, value) || is_restoring(tree, value) {
        return true;
    }
    // The local that gets the value, or whose address is passed.
    let holder = match call.map(|call| tree.arguments(call)).as_deref() {
        Some([to]) if tree.kind(*to) == "pointer_expression" => tree.child(*to, "argument"),
        _ => tree.parent(value).and_then(|up| match tree.kind(up) {
            "init_declarator" => tree.child(up, "declarator"),
            "assignment_expression" => tree.child(up, "left").filter(|left| *left != value),
            _ => None,
        }),
    };
    let Some(holder) = holder.filter(|holder| tree.kind(*holder) == "identifier") else {
        return false;
    };
    let local = tree.text(holder);
    let mut uses = tree.find(function, &["identifier"]).filter(|of| tree.text(*of) == local);
    uses.all(|of| {
        let declared = tree.place(of) == Some("declarator") || of == holder;
        declared || is_restoring(tree, of)
    })
}

/// Whether `errno` or the like is assigned to.
fn is_set(tree: &SyntaxTree<'_>, node: NodeIndex) -> bool {
    let top = top_of(tree, node);
    tree.place(top) == Some("left")
        && tree.parent(top).is_some_and(|up| {
            let alone = tree.parent(up).map_or("", |up| tree.kind(up)) == "expression_statement";
            tree.kind(up) == "assignment_expression" && alone
        })
}

/// Whether a value only goes to what restores it.
fn is_restoring(tree: &SyntaxTree<'_>, node: NodeIndex) -> bool {
    let top = top_of(tree, node);
    let Some(up) = tree.parent(top) else {
        return false;
    };
    match tree.kind(up) {
        "argument_list" => tree.parent(up).is_some_and(|call| {
            is_listed("c-restoring", tree.child_text(call, "function"))
                || is_listed("c-saving", tree.child_text(call, "function"))
        }),
        "assignment_expression" => {
            tree.place(top) == Some("right") && tree.child_text(up, "left") == "errno"
        }
        _ => false,
    }
}

/// The expression that a value is part of, through arithmetic and casts.
fn top_of(tree: &SyntaxTree<'_>, node: NodeIndex) -> NodeIndex {
    let mut top = node;
    while let Some(up) = tree.parent(top).filter(|up| WRAPS.contains(&tree.kind(*up))) {
        top = up;
    }
    top
}
