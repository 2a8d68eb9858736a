//! The places of one line where a small bug can be planted.

use super::MutantKind;
use std::ops::Range;

/// One place, and what stands there instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BugPlace {
    pub(super) kind: MutantKind,
    pub(super) range: Range<usize>,
    pub(super) to: String,
}

/// Conditions that end one too early or too late. Spaces tell them from brackets of types.
const BOUNDS: [(&str, &str); 5] =
    [(" <= ", " < "), (" >= ", " > "), (" < ", " <= "), (" > ", " >= "), ("..=", "..")];

/// Operators between two operands.
const OPERATORS: [(&str, &str); 11] = [
    ("+=", "-="),
    ("-=", "+="),
    ("*=", "+="),
    ("/=", "*="),
    (" == ", " != "),
    (" != ", " == "),
    (" * ", " + "),
    (" + ", " - "),
    (" - ", " + "),
    (" / ", " * "),
    (" && ", " || "),
];

/// Functions that keep an index inside, and what stands there instead.
const BORDERS: [(&str, &str); 4] =
    [("min(", "max("), ("max(", "min("), ("minimum(", "maximum("), ("maximum(", "minimum(")];

/// Words that begin a statement which cannot be left out alone.
const KEPT: [&str; 13] = [
    "return", "let", "const", "for", "if", "while", "else", "def", "class", "using", "typedef",
    "static", "auto",
];

/// All places of a line of code.
pub(super) fn in_line(code: &str, is_python: bool) -> Vec<BugPlace> {
    let mut places = clamps(code, is_python);
    let borders = BORDERS.iter().flat_map(|(from, to)| {
        let starts = code.match_indices(from).filter(|(at, _)| {
            code[..*at].chars().next_back().is_none_or(|c| !is_identifier_char(c))
        });
        starts.map(|(at, from)| place(MutantKind::Border, at..at + from.len(), to))
    });
    places.extend(borders);
    let mut taken: Vec<usize> = Vec::new();
    for (kind, pairs) in [(MutantKind::Bound, &BOUNDS[..]), (MutantKind::Operator, &OPERATORS)] {
        for (from, to) in pairs {
            for (at, _) in code.match_indices(from) {
                let sign = at + from.len() - from.trim_start().len();
                if !taken.contains(&sign) && is_between(code, at, from.len()) {
                    taken.push(sign);
                    places.push(place(kind, at..at + from.len(), to));
                }
            }
        }
    }
    places.extend(constants(code));
    places.extend(statement(code, is_python));
    places.extend(swapped(code));
    places
}

fn is_identifier_char(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn place(kind: MutantKind, range: Range<usize>, to: &str) -> BugPlace {
    BugPlace { kind, range, to: to.to_owned() }
}

/// Whether an operator is between two operands.
fn is_between(code: &str, at: usize, length: usize) -> bool {
    let is_operand = |c: char| is_identifier_char(c) || c == '.';
    code[..at].trim_end().ends_with(|c: char| is_operand(c) || c == ')' || c == ']')
        && code[at + length..].trim_start().starts_with(|c: char| is_operand(c) || c == '(')
}

/// `clamp(e, low, high)` with the index mirrored at the border.
fn clamps(code: &str, is_python: bool) -> Vec<BugPlace> {
    let names: &[&str] =
        if is_python { &["np.clip(", "clip("] } else { &["std::clamp(", "clamp("] };
    let mut places = Vec::new();
    for name in names {
        for (at, _) in code.match_indices(name) {
            let is_start = code[..at].chars().next_back();
            if is_start.is_some_and(|c| is_identifier_char(c) || c == ':' || c == '.') {
                continue;
            }
            let Some((args, end)) = arguments(code, at + name.len()) else {
                continue;
            };
            let [e, low, high] = &args[..] else {
                continue;
            };
            let mirrored = match is_python {
                true => format!("abs({e})"),
                false => format!(
                    "(({e}) < ({low}) ? 2 * ({low}) - ({e}) : ({e}) > ({high}) ? \
                     2 * ({high}) - ({e}) : ({e}))"
                ),
            };
            places.push(place(MutantKind::Border, at..end, &mirrored));
        }
    }
    places
}

/// The arguments of a call from after its parenthesis, and where it ends.
fn arguments(code: &str, start: usize) -> Option<(Vec<String>, usize)> {
    let mut depth = 0;
    let mut args = vec![String::new()];
    for (at, c) in code[start..].char_indices() {
        match c {
            ')' if depth == 0 => {
                let args = args.iter().map(|arg| arg.trim().to_owned()).collect();
                return Some((args, start + at + 1));
            }
            ',' if depth == 0 => {
                args.push(String::new());
                continue;
            }
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
        args.last_mut()?.push(c);
    }
    None
}

/// Numbers, each one larger.
fn constants(code: &str) -> Vec<BugPlace> {
    let mut places = Vec::new();
    let mut from = 0;
    while let Some(at) = code[from..].find(|c: char| c.is_ascii_digit()).map(|at| at + from) {
        let rest = &code[at..];
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let word = rest.find(|c: char| !(is_identifier_char(c) || c == '.')).unwrap_or(rest.len());
        from = at + word.max(1);
        let before = code[..at].chars().next_back();
        let is_part = before.is_some_and(|c| is_identifier_char(c) || c == '.');
        let is_hex = rest[digits..].starts_with(['x', 'X', 'b']);
        let number = rest[..digits].parse::<u32>().ok().filter(|number| *number < 10_000);
        if let Some(number) = number.filter(|_| !is_part && !is_hex) {
            let more = (number + 1).to_string();
            places.push(place(MutantKind::Constant, at..at + digits, &more));
        }
    }
    places
}

/// An assignment that is left out.
fn statement(code: &str, is_python: bool) -> Option<BugPlace> {
    let text = code.trim();
    let start = code.len() - code.trim_start().len();
    let end = start + text.len();
    let whole = if is_python { Some(text) } else { text.strip_suffix(';') }?;
    let first = whole.split(|c| !is_identifier_char(c)).next().unwrap_or_default();
    if KEPT.contains(&first) || whole.contains(['{', '}']) {
        return None;
    }
    let equals = whole.find('=').filter(|at| !whole[at + 1..].starts_with('='))?;
    let left = whole[..equals].trim_end_matches(['+', '-', '*', '/', '|', '&', '^']).trim();
    // `float sum` declares, `sum` and `out.at(x, y)` are assigned to.
    let mut depth = 0;
    let declares = left.chars().any(|c| {
        depth += i32::from(matches!(c, '(' | '[')) - i32::from(matches!(c, ')' | ']'));
        c.is_whitespace() && depth == 0
    });
    // A name that Python has not seen would fail for another reason.
    let is_update = whole[..equals].ends_with(['+', '-', '*', '/']);
    let is_new = is_python && left.chars().all(is_identifier_char) && !is_update;
    if left.is_empty() || declares || is_new || depth != 0 {
        return None;
    }
    let to = if is_python { "pass" } else { ";" };
    Some(place(MutantKind::Statement, start..end, to))
}

/// Differences and quotients with their operands swapped.
fn swapped(code: &str) -> Vec<BugPlace> {
    let mut places = Vec::new();
    for sign in [" - ", " / "] {
        for (at, _) in code.match_indices(sign) {
            let is_simple = |c: char| is_identifier_char(c) || c == '.';
            let left = code[..at].trim_end_matches(is_simple).len();
            let right = &code[at + sign.len()..];
            let length = right.find(|c: char| !is_simple(c)).unwrap_or(right.len());
            let end = at + sign.len() + length;
            let (one, other) = (&code[left..at], &right[..length]);
            let is_call = code[end..].starts_with(['(', '[']);
            if !one.is_empty() && !other.is_empty() && one != other && !is_call {
                let to = format!("{other}{sign}{one}");
                places.push(place(MutantKind::Operands, left..end, &to));
            }
        }
    }
    places
}
