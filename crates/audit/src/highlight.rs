//! The words of a source text by what they are, for showing it in color.

use super::tree::{AuditLanguage, SyntaxTree, parse};
use std::ops::Range;

/// What a word of a source text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum TokenKind {
    Comment,
    Text,
    Number,
    Keyword,
    Type,
    Directive,
}

/// The words that have a color, in order, without overlaps. Nothing for a text that is too large
/// or in an unknown language; text that does not parse is colored as far as possible.
pub fn highlight(path: &str, source: &str) -> Vec<(Range<usize>, TokenKind)> {
    let Some(tree) = AuditLanguage::of(path).and_then(|language| parse(language, source)) else {
        return Vec::new();
    };
    let mut words: Vec<(Range<usize>, TokenKind)> = Vec::new();
    for node in tree.all() {
        let bytes = tree.bytes(node);
        let is_past = words.last().is_none_or(|(last, _)| bytes.start >= last.end);
        if let (true, Some(kind)) = (is_past && !bytes.is_empty(), kind_of(&tree, node)) {
            words.push((bytes, kind));
        }
    }
    words
}

fn kind_of(tree: &SyntaxTree<'_>, node: usize) -> Option<TokenKind> {
    Some(match tree.kind(node) {
        "comment" | "line_comment" | "block_comment" => TokenKind::Comment,
        "string"
        | "string_literal"
        | "char_literal"
        | "raw_string_literal"
        | "system_lib_string"
        | "concatenated_string" => TokenKind::Text,
        "number_literal" | "integer" | "float" | "integer_literal" | "float_literal" | "true"
        | "false" | "none" | "null" => TokenKind::Number,
        "primitive_type" | "type_identifier" | "sized_type_specifier" => TokenKind::Type,
        kind if kind.starts_with('#') => TokenKind::Directive,
        // A leaf that is named like what it says is a word of the language.
        kind if tree.is_leaf(node) && kind == tree.text(node) && is_word(kind) => {
            TokenKind::Keyword
        }
        _ => return None,
    })
}

fn is_word(kind: &str) -> bool {
    kind.chars().all(|c| c.is_ascii_alphabetic() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words<'a>(path: &str, source: &'a str) -> Vec<(&'a str, TokenKind)> {
        let words = highlight(path, source);
        words.into_iter().map(|(bytes, kind)| (&source[bytes], kind)).collect()
    }

    #[test]
    fn words_have_colors_in_every_language() {
        let c = words("k.cu", "#include <a.h>\n// hi\nint f(void) { return 4; }\n");
        assert!(c.contains(&("// hi", TokenKind::Comment)), "{c:?}");
        assert!(c.contains(&("return", TokenKind::Keyword)), "{c:?}");
        assert!(c.contains(&("4", TokenKind::Number)), "{c:?}");
        assert!(c.contains(&("int", TokenKind::Type)), "{c:?}");
        let python = words("k.py", "def f(x):\n    return 'a'  # b\n");
        assert!(python.contains(&("def", TokenKind::Keyword)), "{python:?}");
        assert!(python.contains(&("'a'", TokenKind::Text)), "{python:?}");
        let rust = words("k.rs", "fn f() -> u32 { 1 }");
        assert!(rust.contains(&("fn", TokenKind::Keyword)), "{rust:?}");
    }

    #[test]
    fn broken_and_unknown_text_has_fewer_colors_and_no_error() {
        assert!(words("k.txt", "int x;").is_empty());
        let broken = words("k.c", "+ } int <<<< \u{1b}[31m \"");
        assert!(broken.windows(2).all(|pair| pair[0].0 != "never"));
    }
}
