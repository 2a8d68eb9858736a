//! Whether a change leaves the code as it is: only comments and white space differ.

use super::FileChange;
use super::tree::{AuditLanguage, SyntaxTree, parse};

/// Declarations that karve reads from comments start like this.
const DECLARATION: &str = "karve:";

/// Whether only comments and white space of these files differ. What cannot be read is different.
pub fn is_same_code(changes: &[FileChange]) -> bool {
    !changes.is_empty() && changes.iter().all(|change| is_same(change) == Some(true))
}

fn is_same(change: &FileChange) -> Option<bool> {
    let language = AuditLanguage::of(&change.path)?;
    let text = |bytes: &Option<Vec<u8>>| String::from_utf8(bytes.clone()?).ok();
    let (before, after) = (text(&change.before)?, text(&change.after)?);
    let (before, after) = (parse(language, &before)?, parse(language, &after)?);
    Some(before.broken.is_none() && after.broken.is_none() && code(&before) == code(&after))
}

/// Each node with its depth, because in Python depth is meaning, and the text of what has no nodes
/// of its own.
fn code<'a>(tree: &SyntaxTree<'a>) -> Vec<(usize, &'static str, &'a str)> {
    let mut depths = Vec::with_capacity(tree.all().len());
    let mut code = Vec::new();
    let mut comment_end = 0;
    for node in tree.all() {
        depths.push(tree.parent(node).map_or(0, |parent: usize| depths[parent] + 1));
        let (kind, text) = (tree.kind(node), tree.text(node));
        if kind.ends_with("comment") && !text.contains(DECLARATION) {
            comment_end = comment_end.max(tree.within(node).end);
        }
        if node < comment_end {
            continue;
        }
        let is_whole = tree.is_leaf(node) || kind.contains("string") || kind.contains("char");
        code.push((depths[node], kind, if is_whole { text } else { "" }));
    }
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, before: &str, after: &str, want: bool) {
        let change = FileChange {
            path: path.into(),
            before: Some(before.into()),
            after: Some(after.into()),
        };
        assert_eq!(is_same_code(&[change]), want, "{path}: {before:?} and {after:?}");
    }

    #[test]
    fn comments_and_white_space_are_not_code() {
        check(
            "k.c",
            "int f(int a) { return a + 1; }",
            "// b\nint f(int a)\n{ return a+1; /* c */ }",
            true,
        );
        check(
            "k.cu",
            "__global__ void f(float *x) { x[0] = 1; }",
            "__global__ void f(float *x) {\n  x[0] = 1; // c\n}",
            true,
        );
        check(
            "k.h",
            "#ifndef A\n#define A 1\n#endif\n",
            "#ifndef A\n// a\n#define A 1\n\n#endif\n",
            true,
        );
        check("k.rs", "fn f() -> u32 { 1 }", "/// One.\nfn f() -> u32 {\n    1 // c\n}\n", true);
        check("k.py", "def f(x):\n  return x\n", "# c\ndef f(x):\n    return x  # d\n", true);
        check("k.c", "int f(int a) { return a + 1; }", "int f(int a) { return a + 2; }", false);
        check("k.c", "int f(int a) { return a - -1; }", "int f(int a) { return a + 1; }", false);
    }

    #[test]
    fn text_and_depth_are_code() {
        check("k.py", "for i in x:\n  f(i)\n  g()\n", "for i in x:\n  f(i)\ng()\n", false);
        check("k.py", "a = 'x y'\n", "a = 'x  y'\n", false);
        check("k.py", "a = f'{x} y'\n", "a = f'{x}  y'\n", false);
        check("k.c", "const char *a = \"x // y\";", "const char *a = \"x // z\";", false);
        check("k.rs", "const A: &str = \"x  y\";", "const A: &str = \"x y\";", false);
        check("k.c", "#define A 1\n", "#define A 2\n", false);
    }

    #[test]
    fn a_declared_knob_or_a_file_that_cannot_be_read_differs() {
        let knob = "// karve: knob A in 1,2\n#define A 1\n";
        check("k.c", "#define A 1\n", knob, false);
        check("k.c", "int f( {", "int f( { // c", false);
        check("CMakeLists.txt", "set(A 1)", "set(A 1) # c", false);
        let new = FileChange { path: "k.c".into(), after: Some(Vec::new()), before: None };
        assert!(!is_same_code(&[new]) && !is_same_code(&[]));
    }
}
