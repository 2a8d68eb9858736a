//! Whether a change is one change: its hunks are joined to parts by the functions and names that
//! they share, and each part is held against the hypothesis.
//!
//! Two parts that share no name are two changes. A part counts as stated if the hypothesis uses one
//! of its words. The rule is careful: it calls a change a bundle only if one part is stated and
//! another is not.

use crate::hypothesis::{ChangePart, Hypothesis};
use std::collections::BTreeSet;

/// Hunks of one change that are looked at.
const HUNKS_MAX: usize = 400;
/// Most parts that are told.
const PARTS_MAX: usize = 12;
/// Shorter names join nothing: loop variables and the like.
const NAME_CHARS_MIN: usize = 3;
/// Words that have fewer letters state nothing.
const WORD_CHARS_MIN: usize = 4;

/// Words of programming languages, which join nothing.
const KEYWORDS: &str = "and assert auto bool break case char class const constexpr continue def \
    define defined double elif else endif except extern false float for from fun global half if \
    ifdef ifndef import include inline int int32_t int64_t let long mut none not nullptr null pass \
    pragma pub raise range restrict return self short signed size size_t sizeof static struct \
    switch template then this true try type typedef uint32_t uint64_t uint8_t undef unsigned use \
    using void volatile while with yield f32 f64 i32 i64 u32 u64 usize elements index value result";

/// A hunk: where it is, and the names on the lines that differ; with its own text and the lines
/// of the patch that name its file.
#[derive(Clone, Debug, Default)]
struct ChangedHunk {
    place: String,
    names: BTreeSet<String>,
    header: String,
    text: String,
}

/// A part of a change that can be taken out of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeparatePart {
    /// Where it is, and the names that it is about.
    pub what: String,
    /// Its hunks, as a patch. All lines count from the start of the changed files.
    pub patch: String,
}

/// The parts of a change, from its patch in the unified format.
pub fn parts_of(patch: &str, hypothesis: &Hypothesis) -> Vec<ChangePart> {
    let stated = format!("{} {}", hypothesis.title, hypothesis.mechanism);
    let stated = [stated.as_str()].into_iter().chain(hypothesis.steps.iter().map(String::as_str));
    let stated: BTreeSet<String> = stated.flat_map(words).collect();
    let parts = joined(patch);
    parts.iter().take(PARTS_MAX).map(|hunks| part(hunks, &stated)).collect()
}

/// The same parts, each as a patch of its own.
pub fn separate_parts(patch: &str) -> Vec<SeparatePart> {
    let separate = |hunks: &Vec<ChangedHunk>| SeparatePart {
        what: part(hunks, &BTreeSet::new()).what,
        patch: patch_of(hunks),
    };
    joined(patch).iter().take(PARTS_MAX).map(separate).collect()
}

/// The hunks as a patch, each file once.
fn patch_of(hunks: &[ChangedHunk]) -> String {
    let mut files: Vec<(&str, String)> = Vec::new();
    for hunk in hunks {
        match files.iter_mut().find(|(header, _)| *header == hunk.header) {
            Some((_, text)) => text.push_str(&hunk.text),
            None => files.push((&hunk.header, hunk.text.clone())),
        }
    }
    files.into_iter().map(|(header, text)| format!("{header}{text}")).collect()
}

/// The hunks of a patch, joined by the places and names that they share.
fn joined(patch: &str) -> Vec<Vec<ChangedHunk>> {
    let mut parts: Vec<Vec<ChangedHunk>> = Vec::new();
    for hunk in hunks(patch) {
        let joins = |part: &Vec<ChangedHunk>| {
            let shares = |other: &ChangedHunk| {
                other.place == hunk.place || !other.names.is_disjoint(&hunk.names)
            };
            part.iter().any(shares)
        };
        let (joined, apart): (Vec<_>, Vec<_>) = parts.into_iter().partition(joins);
        parts = apart;
        parts.push(joined.into_iter().flatten().chain([hunk]).collect());
    }
    parts
}

fn part(hunks: &[ChangedHunk], stated: &BTreeSet<String>) -> ChangePart {
    let places: BTreeSet<&str> = hunks.iter().map(|hunk| hunk.place.as_str()).collect();
    let names: BTreeSet<&str> =
        hunks.iter().flat_map(|hunk| hunk.names.iter().map(String::as_str)).collect();
    let is_stated = places.iter().chain(&names).flat_map(|name| words(name)).any(|word| {
        let is_near = |of: &String| of.starts_with(&word) || word.starts_with(of.as_str());
        stated.iter().any(is_near)
    });
    let places: Vec<&str> = places.into_iter().take(3).collect();
    let names: Vec<&str> = names.into_iter().take(4).collect();
    ChangePart { what: format!("{} ({})", places.join(", "), names.join(", ")), stated: is_stated }
}

/// The words of a text or a name, in lower case: `TILE_M` has `tile`.
fn words(text: &str) -> Vec<String> {
    let parts = text.split(|c: char| !c.is_alphanumeric());
    let long = parts.filter(|word| word.chars().count() >= WORD_CHARS_MIN);
    long.map(str::to_lowercase).filter(|word| !is_keyword(word)).collect()
}

fn is_keyword(word: &str) -> bool {
    KEYWORDS.split_whitespace().any(|keyword| keyword == word)
}

/// How a line begins that only makes names of other files known: it belongs to what uses them.
const IMPORTS: [&str; 4] = ["#include", "import ", "from ", "use "];

/// The names of a line of code, without its comment.
fn names_in(line: &str) -> impl Iterator<Item = String> + '_ {
    let code = line.split("//").next().unwrap_or_default();
    let start = code.trim_start();
    let is_import = IMPORTS.iter().any(|import| start.starts_with(import));
    let code = if is_import || start.starts_with("# ") { "" } else { code };
    let names = code.split(|c: char| !(c.is_alphanumeric() || c == '_'));
    let is_name = |name: &&str| {
        name.len() >= NAME_CHARS_MIN
            && name.starts_with(|c: char| c.is_alphabetic() || c == '_')
            && !is_keyword(&name.to_lowercase())
    };
    names.filter(is_name).map(str::to_owned)
}

/// The hunks of a patch that change a name; comments and blank lines are no change.
fn hunks(patch: &str) -> Vec<ChangedHunk> {
    let mut hunks: Vec<ChangedHunk> = Vec::new();
    let mut file = "";
    let mut header = String::new();
    let mut open: Option<ChangedHunk> = None;
    for raw in patch.split_inclusive('\n') {
        let line = raw.trim_end_matches(['\n', '\r']);
        if let Some(rest) = line.strip_prefix("@@ ") {
            hunks.extend(open.take());
            let function = rest.split_once("@@").map_or("", |(_, header)| header.trim());
            open = Some(ChangedHunk {
                place: place(file, function),
                names: BTreeSet::new(),
                header: header.clone(),
                text: raw.to_owned(),
            });
        } else if line.starts_with("diff ") {
            hunks.extend(open.take());
            header = raw.to_owned();
        } else if let Some(hunk) = &mut open {
            hunk.text.push_str(raw);
            hunk.names.extend(line.strip_prefix(['+', '-']).into_iter().flat_map(names_in));
        } else {
            header.push_str(raw);
            if let Some(path) = line.strip_prefix("+++ ") {
                file = path.strip_prefix("b/").unwrap_or(path);
            }
        }
    }
    hunks.extend(open);
    hunks.retain(|hunk| !hunk.names.is_empty());
    hunks.truncate(HUNKS_MAX);
    hunks
}

/// A file, and the function whose header a hunk names.
fn place(file: &str, function: &str) -> String {
    let name = function.split('(').next().unwrap_or_default();
    let name = name.rsplit(|c: char| !(c.is_alphanumeric() || c == '_')).next();
    match name.filter(|name| !name.is_empty()) {
        Some(name) => format!("{file}: {name}"),
        None => file.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{BundleRule, Policy, Preset};

    fn patch(hunks: &[(&str, &str, &[&str])]) -> String {
        let one = |(file, function, lines): &(&str, &str, &[&str])| {
            format!(
                "diff --git a/{file} b/{file}\n--- a/{file}\n+++ b/{file}\n@@ -1,2 +1,2 @@ \
                     {function}\n{}\n",
                lines.join("\n")
            )
        };
        hunks.iter().map(one).collect()
    }

    fn claim(title: &str, mechanism: &str) -> Hypothesis {
        Hypothesis { title: title.into(), mechanism: mechanism.into(), ..Hypothesis::default() }
    }

    /// The parts of a change, and what one-change policies refuse of it.
    fn check(title: &str, hunks: &[(&str, &str, &[&str])], parts: usize, refused: &[&str]) {
        let found = parts_of(&patch(hunks), &claim(title, "I expect it"));
        assert_eq!(found.len(), parts, "{found:#?}");
        for preset in [Preset::Primus, Preset::Tilegym, Preset::Trtllm] {
            let said = preset.policy().unstated(&found);
            let is = |place: &&str| said.iter().any(|what| what.starts_with(*place));
            assert!(said.len() == refused.len() && refused.iter().all(is), "{said:?}");
        }
        for preset in [Preset::Strict, Preset::HyperMla] {
            assert_eq!(preset.policy().unstated(&found), Vec::<String>::new());
        }
    }

    #[test]
    fn a_second_change_that_nobody_stated_is_a_bundle() {
        let tiles: (&str, &str, &[&str]) =
            ("k.c", "void attend(float *x)", &["-#define TILE 64", "+#define TILE 128"]);
        let flags: (&str, &str, &[&str]) =
            ("launch.c", "int launch(void)", &["-  flags = OLD_FLAGS;", "+  flags = FAST_MATH;"]);
        check("larger tiles", &[tiles, flags], 2, &["launch.c: launch"]);
        // What the hypothesis names is stated, and one change alone always is.
        check("larger tiles and fast math", &[tiles, flags], 2, &[]);
        check("something else entirely", &[tiles], 1, &[]);
        // Two macros share no name because both are defined.
        let unroll: (&str, &str, &[&str]) =
            ("k.h", "", &["-#define UNROLL 2", "+#define UNROLL 8", "+#undef OLD"]);
        check("larger tiles", &[tiles, unroll], 2, &["k.h"]);
        // A header belongs to the call that needs it.
        let header: (&str, &str, &[&str]) = ("k.c", "", &["+#include <string.h>"]);
        let zeros: (&str, &str, &[&str]) =
            ("k.c", "void attend(float *x)", &["-  clear(x);", "+  memset(x, 0, 64);"]);
        check("write the zeros with memset", &[header, zeros], 1, &[]);
        // Where nothing is stated there is nothing to hold it against.
        check("something else entirely", &[tiles, flags], 2, &[]);
    }

    #[test]
    fn what_shares_a_function_or_a_name_is_one_change() {
        let kernel: (&str, &str, &[&str]) =
            ("k.py", "def attend(q, k):", &["-    load(q)", "+    load_block(q, BLOCK)"]);
        let wrapper: (&str, &str, &[&str]) = (
            "k.py",
            "def launch(q, k):",
            &["-    attend[grid](q)", "+    attend[grid](q, BLOCK=64)"],
        );
        let same: (&str, &str, &[&str]) =
            ("k.py", "def attend(q, k):", &["-    store(out)", "+    store(out, mask)"]);
        check("load in blocks", &[kernel, wrapper, same], 1, &[]);
        // Comments, blank lines and keywords are no change of their own.
        let comment: (&str, &str, &[&str]) =
            ("other.py", "def f():", &["-# a word", "+# other words", "+", "+    return"]);
        check("load in blocks", &[kernel, comment], 1, &[]);
    }

    #[test]
    fn a_version_may_bundle_five_changes_and_its_parts_are_told() {
        let hunk = |name: &str| {
            let line = format!("+  {name} = {name}_new;");
            format!(
                "diff --git a/{name}.c b/{name}.c\n--- a/{name}.c\n+++ b/{name}.c\n\
                     @@ -1 +1 @@ void {name}_fn(int a)\n{line}\n"
            )
        };
        let names = ["alpha", "bravo", "carol", "delta", "eagle", "foxes"];
        let text: String = names.iter().map(|name| hunk(name)).collect();
        let parts = parts_of(&text, &claim("alpha and bravo", "because"));
        assert_eq!(parts.iter().filter(|part| part.stated).count(), 2);
        assert_eq!(parts[0].what, "alpha.c: alpha_fn (alpha, alpha_new)");
        let refused = Policy { bundles: BundleRule::Refuse, ..Preset::HyperMla.policy() };
        assert_eq!(refused.unstated(&parts).len(), 4, "more than five");
        assert_eq!(refused.unstated(&parts[..5]), Vec::<String>::new());
    }

    #[test]
    fn parts_are_patches_of_their_own() {
        let file =
            |name: &str| format!("diff --git a/{name} b/{name}\n--- a/{name}\n+++ b/{name}\n");
        let hunk =
            |at: u32, function: &str, lines: &str| format!("@@ -{at} +{at} @@ {function}\n{lines}");
        let rows = hunk(1, "void rows(int a)", "-  rows = 1;\n+  rows = 2;\r\n");
        let warps = hunk(9, "void warps(int a)", "-  warps = 1;\n+  warps = 2;\n");
        let more =
            hunk(20, "void rows(int a)", "--- rows;\n+  rows++;\n\\ No newline at end of file\n");
        let launch = hunk(1, "", "-WARPS=4\n+WARPS=warps\n");
        let (k, l) = (file("k.c"), file("l.c"));
        let parts = separate_parts(&format!("{k}{rows}{warps}{more}{l}{launch}"));
        let patches: Vec<&str> = parts.iter().map(|part| part.patch.as_str()).collect();
        let want = [format!("{k}{rows}{more}"), format!("{k}{warps}{l}{launch}")];
        assert_eq!(patches, want);
    }

    #[test]
    fn no_text_is_too_much() {
        let long = "+++ b/x\n@@ -1 +1 @@ f(\n".to_owned() + &"+aaa bbb\n".repeat(10_000);
        assert_eq!(parts_of(&long, &claim("t", "m")).len(), 1);
        for text in ["", "@@", "@@ @@", "+", "+++ ", "\u{feff}@@ -1 @@ é(\n+é_é"] {
            parts_of(text, &Hypothesis::default());
        }
    }
}
