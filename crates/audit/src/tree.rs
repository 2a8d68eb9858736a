//! A source file as a flat syntax tree: every node in reading order, with its parent and the end of
//! its subtree. Parsing is bounded in bytes, nodes and time, and never fails on odd text.

use karve_harness::cuda_source;
use std::borrow::Cow;
use std::cell::Cell;
use std::ops::{ControlFlow, Range};
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use tree_sitter::{ParseOptions, Parser, TreeCursor};

/// Maximum size of a file, in bytes.
pub(super) const BYTES_MAX: usize = 1 << 20;
/// Maximum number of nodes of a tree.
const NODES_MAX: usize = 1 << 20;
/// How often each node may be visited on average.
const LOOKS_MAX: usize = 256;
/// Maximum number of parents to visit.
const DEPTH_MAX: usize = 512;
/// Time limit for one file.
const TIME_MAX: Duration = Duration::from_secs(5);

/// A language that the audit parses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditLanguage {
    /// C.
    C,
    /// C++ and what is close to it.
    Cpp,
    /// CUDA and HIP.
    Cuda,
    /// Python, including Triton.
    Python,
    /// Rust.
    Rust,
}

impl AuditLanguage {
    /// By file name.
    pub fn of(path: &str) -> Option<Self> {
        // A template has the language of the file generated from it.
        let path = path.strip_suffix(karve_numerics::space::TEMPLATE_END).unwrap_or(path);
        let (_, extension) = path.rsplit_once('.')?;
        Some(match extension.to_ascii_lowercase().as_str() {
            "c" | "cl" => Self::C,
            "cc" | "cpp" | "cxx" | "h" | "hh" | "hpp" | "hxx" | "inl" | "ipp" | "metal" => {
                Self::Cpp
            }
            "cu" | "cuh" | "hip" => Self::Cuda,
            "py" | "pyi" | "pyx" => Self::Python,
            "rs" => Self::Rust,
            _ => return None,
        })
    }

    fn grammar(self) -> &'static tree_sitter::Language {
        static GRAMMARS: OnceLock<[tree_sitter::Language; 4]> = OnceLock::new();
        let [c, cpp, python, rust] = GRAMMARS.get_or_init(|| {
            [
                tree_sitter_c::LANGUAGE.into(),
                tree_sitter_cpp::LANGUAGE.into(),
                tree_sitter_python::LANGUAGE.into(),
                tree_sitter_rust::LANGUAGE.into(),
            ]
        });
        match self {
            Self::C => c,
            Self::Cpp | Self::Cuda => cpp,
            Self::Python => python,
            Self::Rust => rust,
        }
    }
}

/// The index of a node.
pub(super) type NodeIndex = usize;

#[derive(Clone, Debug)]
struct SyntaxNode {
    kind: &'static str,
    field: Option<&'static str>,
    bytes: Range<usize>,
    line: u32,
    parent: NodeIndex,
    end: NodeIndex,
}

/// A parsed file.
#[derive(Debug)]
pub(super) struct SyntaxTree<'a> {
    source: &'a str,
    nodes: Vec<SyntaxNode>,
    /// The line of the first text that does not parse.
    pub(super) broken: Option<u32>,
    /// Visits that are left.
    fuel: Cell<usize>,
}

/// Parses a file; `None` if it is larger or slower than the limits allow.
pub(super) fn parse(language: AuditLanguage, source: &str) -> Option<SyntaxTree<'_>> {
    if source.len() > BYTES_MAX {
        return None;
    }
    let mut parser = Parser::new();
    let grammar = language.grammar();
    parser.set_language(grammar).ok()?;
    let start = Instant::now();
    let mut in_time = |_: &tree_sitter::ParseState| {
        if start.elapsed() > TIME_MAX { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let bytes = match language {
        AuditLanguage::Cuda => Cow::Owned(cuda_source::as_cpp(source)),
        // The grammar knows this word by its other name, which is as long.
        AuditLanguage::C if source.contains("_Thread_local") => {
            Cow::Owned(source.replace("_Thread_local", "thread_local ").into_bytes())
        }
        AuditLanguage::C | AuditLanguage::Cpp | AuditLanguage::Python | AuditLanguage::Rust => {
            Cow::Borrowed(source.as_bytes())
        }
    };
    let options = ParseOptions::new().progress_callback(&mut in_time);
    let mut rest = |at: usize, _| bytes.get(at..).unwrap_or_default();
    let tree = parser.parse_with_options(&mut rest, None, Some(options))?;
    let broken = tree.root_node().has_error();
    let nodes = flatten(&mut tree.walk(), grammar)?;
    let fault = nodes.iter().find(|node| node.kind == "ERROR");
    let broken = broken.then(|| fault.map_or(1, |node| node.line));
    let fuel = Cell::new((nodes.len() + 1_000) * LOOKS_MAX);
    Some(SyntaxTree { source, nodes, broken, fuel })
}

/// All nodes in reading order. No recursion: text may nest as deep as it is long.
fn flatten(
    cursor: &mut TreeCursor<'_>,
    grammar: &'static tree_sitter::Language,
) -> Option<Vec<SyntaxNode>> {
    let mut nodes: Vec<SyntaxNode> = Vec::new();
    let mut open: Vec<NodeIndex> = Vec::new();
    loop {
        if nodes.len() >= NODES_MAX {
            return None;
        }
        let node = cursor.node();
        nodes.push(SyntaxNode {
            kind: grammar.node_kind_for_id(node.kind_id()).unwrap_or("ERROR"),
            field: cursor.field_id().and_then(|id| grammar.field_name_for_id(id.get())),
            bytes: node.byte_range(),
            line: u32::try_from(node.start_position().row + 1).unwrap_or(u32::MAX),
            parent: open.last().copied().unwrap_or(0),
            end: 0,
        });
        let here = nodes.len() - 1;
        if cursor.goto_first_child() {
            open.push(here);
            continue;
        }
        nodes[here].end = here + 1;
        while !cursor.goto_next_sibling() {
            let Some(done) = open.pop() else {
                return Some(nodes);
            };
            nodes[done].end = nodes.len();
            cursor.goto_parent();
        }
    }
}

impl<'a> SyntaxTree<'a> {
    /// All nodes.
    pub(super) fn all(&self) -> Range<NodeIndex> {
        0..self.nodes.len()
    }

    /// A node and everything below it; empty once too much was visited.
    pub(super) fn within(&self, node: NodeIndex) -> Range<NodeIndex> {
        let end = self.nodes[node].end;
        match self.fuel.get().checked_sub(end - node) {
            Some(left) => {
                self.fuel.set(left);
                node..end
            }
            None => {
                self.fuel.set(0);
                node..node
            }
        }
    }

    /// Whether the limit was reached, so that not everything was visited.
    pub(super) fn is_exhausted(&self) -> bool {
        self.fuel.get() == 0
    }

    /// Whether one node is below another, or is the same.
    pub(super) fn holds(&self, outer: NodeIndex, inner: NodeIndex) -> bool {
        self.fuel.set(self.fuel.get().saturating_sub(1));
        (outer..self.nodes[outer].end).contains(&inner)
    }

    pub(super) fn kind(&self, node: NodeIndex) -> &'static str {
        self.nodes[node].kind
    }

    pub(super) fn line(&self, node: NodeIndex) -> u32 {
        self.nodes[node].line
    }

    /// Where it is in the source.
    pub(super) fn bytes(&self, node: NodeIndex) -> Range<usize> {
        self.nodes[node].bytes.clone()
    }

    pub(super) fn text(&self, node: NodeIndex) -> &'a str {
        self.source.get(self.nodes[node].bytes.clone()).unwrap_or_default()
    }

    /// The text of a node, shortened to one line.
    pub(super) fn excerpt(&self, node: NodeIndex) -> String {
        excerpt(self.text(node))
    }

    pub(super) fn is_leaf(&self, node: NodeIndex) -> bool {
        self.nodes[node].end == node + 1
    }

    /// The name of the field that a node has in its parent.
    pub(super) fn place(&self, node: NodeIndex) -> Option<&'static str> {
        self.nodes[node].field
    }

    pub(super) fn parent(&self, node: NodeIndex) -> Option<NodeIndex> {
        (node > 0).then(|| self.nodes[node].parent)
    }

    /// The ancestors of a node, from near to far.
    pub(super) fn ancestors(&self, node: NodeIndex) -> impl Iterator<Item = NodeIndex> + '_ {
        std::iter::successors(self.parent(node), |node| self.parent(*node)).take(DEPTH_MAX)
    }

    /// The nearest ancestor of one of these kinds.
    pub(super) fn enclosing(&self, node: NodeIndex, kinds: &[&str]) -> Option<NodeIndex> {
        self.ancestors(node).find(|node| kinds.contains(&self.kind(*node)))
    }

    pub(super) fn children(&self, node: NodeIndex) -> impl Iterator<Item = NodeIndex> + '_ {
        let end = self.nodes[node].end;
        let first = (node + 1 < end).then_some(node + 1);
        std::iter::successors(first, move |child| {
            Some(self.nodes[*child].end).filter(|next| *next < end)
        })
    }

    /// The child in a field.
    pub(super) fn child(&self, node: NodeIndex, field: &str) -> Option<NodeIndex> {
        self.children(node).find(|child| self.place(*child) == Some(field))
    }

    /// The text of the child in a field; empty if there is none.
    pub(super) fn child_text(&self, node: NodeIndex, field: &str) -> &'a str {
        self.child(node, field).map_or("", |child| self.text(child))
    }

    /// Both sides of an operator.
    pub(super) fn sides(&self, node: NodeIndex) -> Option<(NodeIndex, NodeIndex)> {
        Some((self.child(node, "left")?, self.child(node, "right")?))
    }

    /// The arguments of a call.
    pub(super) fn arguments(&self, call: NodeIndex) -> Vec<NodeIndex> {
        let list = self.child(call, "arguments");
        let children = list.into_iter().flat_map(|list| self.children(list));
        children.filter(|node| !["(", ")", ",", "comment"].contains(&self.kind(*node))).collect()
    }

    /// Everything below a node that is of one of these kinds, including itself.
    pub(super) fn find<'t>(
        &'t self,
        node: NodeIndex,
        kinds: &'t [&str],
    ) -> impl Iterator<Item = NodeIndex> + 't {
        self.within(node).filter(|node| kinds.contains(&self.kind(*node)))
    }
}

/// Text, shortened to one line.
pub(super) fn excerpt(text: &str) -> String {
    const CHARS: usize = 60;
    let start: String = text.chars().take(4 * CHARS).collect();
    let line = start.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() > CHARS {
        let cut: String = line.chars().take(CHARS).collect();
        return format!("{cut}...");
    }
    line
}
