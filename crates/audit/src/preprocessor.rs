//! C before it is parsed: what its directives take in or ask for, the names that macros paste
//! together, and assembly with the text of its macros.

use super::asm_text::{quoted, strings_of};
use super::names::{LanguageFamily, NameUse, is_listed};
use super::reading::{AsmScope, FileFacts};
use super::{asm_reads, shadowing};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::iter::Peekable;
use std::str::CharIndices;

/// Definitions of one macro that are read.
const DEFINITIONS_MAX: usize = 6;
/// Macros within macros that are followed.
const DEPTH_MAX: usize = 8;
/// Maximum length of one macro's text, and of all of them together, in bytes.
const TEXT_MAX: usize = 64 << 10;
const ALL_MAX: usize = 4 << 20;
/// Stands where two tokens are pasted together.
const PASTED: char = '\u{1}';
/// What asks whether a file is there.
const ASKS: [&str; 3] = ["__has_include_next", "__has_include", "__has_embed"];

/// Words that start assembly.
const ASM: [&str; 3] = ["asm", "__asm__", "__asm"];

fn has_asm(text: &str) -> bool {
    text.split(|c| !is_word(c)).any(|word| ASM.contains(&word))
}

/// Whether a text ends in the start of assembly: `asm volatile`.
fn is_asm_head(text: &str) -> bool {
    let mut words = text.split(|c| !is_word(c)).filter(|word| !word.is_empty()).rev();
    let is_more =
        |word: &&str| ["volatile", "__volatile__", "__volatile", "goto", "inline"].contains(word);
    words.by_ref().find(|word| !is_more(word)).is_some_and(|word| ASM.contains(&word))
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Scans the text of a file. Returns it with its macros replaced by their text, line by line, if it
/// uses any: once for each of their definitions.
pub(super) fn read(text: &str, reading: &mut FileFacts) -> Vec<String> {
    let (mut macros, mut code, mut kept) = (Macros::default(), String::new(), Vec::new());
    note_trigraphs(text, reading);
    let plain = without_comments(text);
    for (one, line) in plain.split_inclusive('\n').zip(1..) {
        let trimmed = one.trim_start();
        let of_directive = trimmed.strip_prefix('#').or_else(|| trimmed.strip_prefix("%:"));
        match of_directive {
            Some(directive) => {
                let directive = directive.replace("%:%:", "##");
                read_directive(directive.trim(), line, &mut macros, reading);
                kept.push((line, one));
                code.push('\n');
            }
            None => {
                asked(one, line, reading);
                code.push_str(one);
            }
        }
    }
    macros.read_code(&code, reading);
    let variants = macros.definitions.values().map(Vec::len).max().unwrap_or_default();
    if variants > DEFINITIONS_MAX {
        let what = "a macro with too many definitions; some were not read".to_owned();
        reading.note("unaudited", "macro", 0, what);
    }
    let mut found = Vec::new();
    for variant in 0..variants.min(DEFINITIONS_MAX) {
        let Some(expanded) = macros.variant(variant).replaced(&code) else {
            continue;
        };
        let mut lines: Vec<&str> = expanded.split_inclusive('\n').collect();
        for (line, directive) in &kept {
            let place = usize::try_from(*line).ok().and_then(|line| lines.get_mut(line - 1));
            if let Some(place) = place {
                *place = directive;
            }
        }
        found.push(lines.concat());
    }
    found
}

/// The text with its lines spliced as a compiler does, before it sees comments and names. What
/// follows a splice moves to the first of the lines; all later lines stay where they are.
pub(super) fn spliced(text: &str) -> Cow<'_, str> {
    if !text.contains('\\') {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut moved = 0;
    for line in text.split_inclusive('\n') {
        let end = line.trim_end();
        // Compilers allow blanks after the backslash.
        if let Some(start) = end.strip_suffix('\\').filter(|_| line.ends_with('\n')) {
            out.push_str(start);
            moved += 1;
            continue;
        }
        out.push_str(line);
        out.push_str(&"\n".repeat(std::mem::take(&mut moved)));
    }
    out.push_str(&"\n".repeat(moved));
    Cow::Owned(out)
}

/// Reports trigraphs: some compilers read them as other characters, so that one text has two
/// meanings.
fn note_trigraphs(text: &str, reading: &mut FileFacts) {
    for (line, number) in text.lines().zip(1..) {
        let mut after =
            line.match_indices("??").filter_map(|(at, _)| line[at + 2..].chars().next());
        if after.any(|c| "=/'()!<>-".contains(c)) {
            let what = "a trigraph, which hides what is compiled".to_owned();
            reading.note("dynamic-code", "trigraph", number, what);
        }
    }
}

/// The text with blanks instead of comments; lines stay where they are.
fn without_comments(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['/', '"', '\'']) {
        plain.push_str(&rest[..at]);
        rest = &rest[at..];
        let length = match rest.as_bytes() {
            [b'/', b'/', ..] => rest.find('\n').unwrap_or(rest.len()),
            [b'/', b'*', ..] => rest[2..].find("*/").map_or(rest.len(), |end| end + 4),
            [b'"', ..] => quoted(rest),
            _ => 1,
        };
        let (piece, after) = rest.split_at(length);
        if piece.starts_with('/') && length > 1 {
            plain.push(' ');
            plain.push_str(&"\n".repeat(piece.matches('\n').count()));
        } else {
            plain.push_str(piece);
        }
        rest = after;
    }
    plain.push_str(rest);
    plain
}

/// The first string, word or character of a text, and the rest.
fn next_token(text: &str) -> (&str, &str) {
    let length = match text.chars().next().unwrap_or_default() {
        '"' => quoted(text),
        c if is_word(c) => text.find(|c| !is_word(c)).unwrap_or(text.len()),
        c => c.len_utf8(),
    };
    text.split_at(length)
}

fn read_directive(text: &str, line: u32, macros: &mut Macros, reading: &mut FileFacts) {
    let (word, rest) = text.split_at(text.find(|c| !is_word(c)).unwrap_or(text.len()));
    let rest = rest.trim();
    match word {
        "include" | "include_next" | "import" | "embed" => {
            let path = rest.get(1..).and_then(|path| path.split(['"', '>']).next());
            let given = rest.starts_with(['"', '<']);
            if !given || path.is_some_and(|path| reading.is_outside(path)) {
                let what = format!("`#{word} {rest}` takes in what is not of the project");
                reading.note("env-read", word, line, what);
            }
        }
        "ifdef" | "ifndef" | "undef" => {}
        "pragma" if rest.starts_with("weak") || rest.starts_with("redefine_extname") => {
            for name in rest.split(|c| !is_word(c)).filter(|name| is_listed("c-library", name)) {
                reading.note("patching", name, line, format!("`#pragma {rest}`"));
            }
        }
        "define" => {
            macros.define(rest);
            shadowing::in_macro(rest, line, reading);
            asked(rest, line, reading);
        }
        _ => asked(rest, line, reading),
    }
}

/// Questions whether a file is there, except for well-known headers.
fn asked(text: &str, line: u32, reading: &mut FileFacts) {
    let mut rest = text;
    while let Some(at) = rest.find("__has_") {
        rest = &rest[at..];
        let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        rest = after;
        if !ASKS.contains(&word) {
            continue;
        }
        let inner = after.trim_start().strip_prefix('(').map(str::trim_start);
        let header = inner.and_then(|inner| inner.strip_prefix('<')?.split('>').next());
        // `defined(__has_include)` asks the compiler.
        let only_defined = after.trim_start().starts_with(')');
        if !only_defined && !header.is_some_and(|header| is_listed("c-known-headers", header)) {
            let what = format!("`{word}` asks which files are there");
            reading.note("env-read", word, line, what);
        }
    }
}

#[derive(Debug)]
struct Macro {
    params: Option<Vec<String>>,
    body: String,
}

/// The macros of a file.
#[derive(Debug, Default)]
struct Macros {
    by_name: BTreeMap<String, Macro>,
    /// All different definitions.
    definitions: BTreeMap<String, Vec<String>>,
}

/// What is left of the limits, and what was pasted together.
struct Expansion {
    left: usize,
    pasted: Vec<String>,
}

type Characters<'a> = Peekable<CharIndices<'a>>;

impl Macros {
    fn define(&mut self, text: &str) {
        let (name, rest) = text.split_at(text.find(|c| !is_word(c)).unwrap_or(text.len()));
        let all = self.definitions.entry(name.to_owned()).or_default();
        if !all.iter().any(|known| known == text) {
            all.push(text.to_owned());
        }
        let (params, body) = match rest.strip_prefix('(').and_then(|rest| rest.split_once(')')) {
            Some((params, body)) => {
                (Some(params.split(',').map(|name| name.trim().to_owned()).collect()), body)
            }
            None => (None, rest),
        };
        let new = Macro { params, body: body.trim().to_owned() };
        // Of several definitions, the one that pastes.
        if !self.by_name.get(name).is_some_and(|old| old.body.contains('#')) {
            self.by_name.insert(name.to_owned(), new);
        }
    }

    fn read_code(&self, code: &str, reading: &mut FileFacts) {
        let mut expansion = Expansion { left: ALL_MAX, pasted: Vec::new() };
        let (mut at, mut line) = (0, 1);
        while let Some(start) = code[at..].find(is_word).map(|start| at + start) {
            let end = code[start..].find(|c| !is_word(c)).map_or(code.len(), |end| start + end);
            line += u32::try_from(code[at..start].matches('\n').count()).unwrap_or_default();
            let word = &code[start..end];
            at = end;
            let is_asm = ASM.contains(&word);
            let Some(of) =
                self.by_name.get(word).map(|of| of.params.is_some()).or(is_asm.then_some(true))
            else {
                continue;
            };
            let from = code[end..].find('(').map_or(end, |open| end + open);
            let length = if of { balanced(&code[from..]) } else { 0 };
            let text = &code[start..from + length];
            let text = if of { text } else { word };
            let expanded = self.expand(
                if is_asm { &code[from..from + length] } else { text },
                0,
                &mut expansion,
            );
            if is_asm {
                reading.note_symbols(&expanded, AsmScope::Inline, line);
            }
            for (at, _) in expanded.match_indices('(').filter(|_| is_asm || has_asm(&expanded)) {
                let start = &expanded[..at];
                if is_asm == (at == 0) && (is_asm || is_asm_head(start)) {
                    reading.note_asm_reads(asm_reads::in_c(&expanded[at..]), line);
                }
            }
            // Assembly that a macro makes; what stands there without one is found in the tree.
            let raw = if is_asm { &code[from..from + length] } else { text };
            if expanded != raw && (is_asm || has_asm(&expanded)) {
                reading.note_asm(LanguageFamily::C, &strings_of(&expanded), line);
            }
            for name in expansion.pasted.drain(..) {
                let found = NameUse { path: &name, called: true };
                reading.note_name(LanguageFamily::C, found, line);
                if is_listed("c-library", &name) {
                    let what = format!("`{name}` is pasted together by macros");
                    reading.note("patching", &name, line, what);
                }
            }
            if !is_asm && of {
                line += u32::try_from(text.matches('\n').count()).unwrap_or_default();
                at = from + length;
            }
        }
    }

    /// The macros with the definition of this number, or with their last one.
    fn variant(&self, number: usize) -> Self {
        let mut macros = Self::default();
        for all in self.definitions.values() {
            if let Some(text) = all.get(number).or(all.last()) {
                macros.define(text);
            }
        }
        macros
    }

    /// The code with its macros replaced; lines stay where they are.
    fn replaced(&self, code: &str) -> Option<String> {
        let mut expansion = Expansion { left: ALL_MAX, pasted: Vec::new() };
        let mut out = String::with_capacity(code.len());
        let (mut rest, mut is_changed) = (code, false);
        while !rest.is_empty() {
            let (token, after) = next_token(rest);
            let Some(of) = self.by_name.get(token) else {
                out.push_str(token);
                rest = after;
                continue;
            };
            let gap = after.len() - after.trim_start().len();
            let length = if of.params.is_some() { balanced(&after[gap..]) } else { 0 };
            let used = if length > 0 { gap + length } else { 0 };
            let text = &rest[..token.len() + used];
            if of.params.is_some() && length == 0 {
                out.push_str(token);
            } else {
                out.push_str(&self.expand(text, 0, &mut expansion).replace('\n', " "));
                is_changed = true;
            }
            out.push_str(&"\n".repeat(text.matches('\n').count()));
            rest = &rest[text.len()..];
        }
        is_changed.then_some(out)
    }

    /// A text with the text of its macros.
    fn expand(&self, text: &str, depth: usize, expansion: &mut Expansion) -> String {
        let mut out = String::new();
        let mut rest = text;
        while !rest.is_empty() && out.len() < TEXT_MAX {
            let (token, after) = next_token(rest);
            rest = after;
            let known = self.by_name.get(token).filter(|_| depth < DEPTH_MAX && expansion.left > 0);
            let Some(known) = known else {
                out.push_str(token);
                continue;
            };
            let mut arguments = Vec::new();
            if known.params.is_some() {
                let gap = rest.len() - rest.trim_start().len();
                let length = balanced(&rest[gap..]);
                arguments = split_arguments(&rest[gap..gap + length]);
                rest = &rest[gap + length..];
            }
            let inner = self.substitute(known, &arguments, depth, expansion);
            expansion.left = expansion.left.saturating_sub(inner.len() + 1);
            out.push_str(&self.expand(&inner, depth + 1, expansion));
        }
        out
    }

    fn substitute(
        &self,
        of: &Macro,
        arguments: &[&str],
        depth: usize,
        expansion: &mut Expansion,
    ) -> String {
        let params = of.params.as_deref().unwrap_or_default();
        let mut out = String::new();
        let mut rest = of.body.as_str();
        while !rest.is_empty() && out.len() < TEXT_MAX {
            if let Some(after) = rest.trim_start().strip_prefix("##") {
                out.truncate(out.trim_end().len());
                out.push(PASTED);
                rest = after.trim_start();
                continue;
            }
            let (token, after) = next_token(rest);
            rest = after;
            let argument = |name: &str| {
                let at = params.iter().position(|param| param == name);
                let more = || (name == "__VA_ARGS__").then(|| params.len().saturating_sub(1));
                at.or_else(more).map(|at| arguments.get(at..).unwrap_or_default())
            };
            if token == "#" {
                let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
                let given = argument(&rest[..end]).and_then(|given| given.first());
                out.push_str(&format!("\"{}\"", given.map_or("", |text| text.trim())));
                rest = &rest[end..];
                continue;
            }
            match argument(token) {
                Some(given) if token == "__VA_ARGS__" => out.push_str(&given.join(",")),
                Some(given) => {
                    let given = given.first().map_or("", |text| text.trim());
                    out.push_str(&self.expand(given, depth + 1, expansion));
                }
                None => out.push_str(token),
            }
        }
        for run in out.split(|c: char| !(is_word(c) || c == PASTED)) {
            if run.contains(PASTED) {
                expansion.pasted.push(run.replace(PASTED, ""));
            }
        }
        out.replace(PASTED, "")
    }
}

/// The length of the parentheses at the start of a text; 0 if there are none.
fn balanced(text: &str) -> usize {
    let mut depth = 0_usize;
    let mut characters: Characters<'_> = text.char_indices().peekable();
    while let Some((at, c)) = characters.next() {
        match c {
            '(' => depth += 1,
            ')' if depth <= 1 => return at + 1,
            ')' => depth -= 1,
            '"' => {
                let end = at + quoted(&text[at..]);
                while characters.next_if(|(next, _)| *next < end).is_some() {}
            }
            _ if depth == 0 => return 0,
            _ => {}
        }
        if at > TEXT_MAX {
            return 0;
        }
    }
    0
}

/// The arguments in parentheses.
fn split_arguments(text: &str) -> Vec<&str> {
    let inner = text.strip_prefix('(').and_then(|text| text.strip_suffix(')')).unwrap_or_default();
    let (mut found, mut depth, mut start, mut in_string) = (Vec::new(), 0_i32, 0, false);
    for (at, c) in inner.char_indices() {
        match c {
            '"' => in_string = !in_string,
            '(' if !in_string => depth += 1,
            ')' if !in_string => depth -= 1,
            ',' if depth == 0 && !in_string => {
                found.push(&inner[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    found.push(&inner[start..]);
    found
}
