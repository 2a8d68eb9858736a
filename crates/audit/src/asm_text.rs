//! The text of assembly in a source: what its strings say, joined.

/// The strings of a text, with nothing between them but quotes and blanks; of assembly, only they
/// are code.
pub(super) fn strings_of(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('"') {
        if !rest[..at].trim().is_empty() && !out.is_empty() {
            out.push_str("\"\\n\"");
        }
        let (string, after) = rest[at..].split_at(quoted(&rest[at..]));
        out.push_str(string);
        rest = after;
    }
    out
}

/// The length of the string at the start of a text.
pub(super) fn quoted(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            '\n' => return at,
            _ => {}
        }
    }
    text.len()
}

/// The text of assembly: adjacent strings are one, and escapes are what they stand for.
pub(super) fn assembly(text: &str) -> String {
    let text = text.replace("\\n", "\n").replace("\\t", "\t").replace("\\\"", "'");
    let mut joined = String::with_capacity(text.len());
    let mut pieces = text.split('"').peekable();
    let mut inside = false;
    while let Some(piece) = pieces.next() {
        // What stands between two strings, if it is nothing.
        if inside || !piece.trim().is_empty() || pieces.peek().is_none() {
            if !inside && !joined.is_empty() {
                joined.push('"');
            }
            joined.push_str(piece);
        }
        inside = !inside;
    }
    joined
}
