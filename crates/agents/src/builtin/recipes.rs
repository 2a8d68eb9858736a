//! Library entries with a recipe that karve can apply: one variant of one entry is one hypothesis.

use crate::claim;
use globset::Glob;
use karve_core::campaign::strategy::{LibraryRecall, UsableEntry};
use karve_core::hypothesis::{Direction, Hypothesis};
use karve_core::knowledge::Action;
use karve_harness::cuda_source;
use karve_harness::git::{Oid, Repo};
use karve_harness::project_file;
use karve_numerics::space::Knob;
use karve_os::error::Result;
use regex::{Regex, RegexBuilder};
use tree_sitter::{Node, Parser};

/// The largest file that is changed, in bytes.
const FILE_BYTES_MAX: usize = 1 << 20;
/// The largest compiled regular expression, in bytes.
const PATTERN_BYTES_MAX: usize = 1 << 20;
/// Lines that one action may insert.
const INSERTS_MAX: usize = 500;

/// A text file of the project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SourceText {
    pub(super) file: String,
    pub(super) text: String,
}

/// A recipe that can be applied, with what it changes.
#[derive(Debug)]
pub(super) struct ApplicableRecipe<'a> {
    usable: &'a UsableEntry,
    variant: usize,
    changes: RecipeChange,
    /// Counters that should move, and in which direction.
    predicts: &'a [String],
}

/// What an action changes.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum RecipeChange {
    /// These texts.
    Texts(Vec<SourceText>),
    /// A knob, to this value.
    Knob(String, String),
}

/// The editable files of a commit that are text.
pub(super) fn texts_at(repo: &Repo, commit: &str, editable: &[String]) -> Result<Vec<SourceText>> {
    let globs = project_file::glob_set(editable)?;
    let files = repo.read_matching(&Oid::named(commit)?, &globs)?;
    let texts = files.into_iter().filter_map(|(file, bytes)| {
        let small = bytes.len() <= FILE_BYTES_MAX;
        let text = String::from_utf8(bytes).ok().filter(|_| small)?;
        Some(SourceText { file, text })
    });
    Ok(texts.collect())
}

/// The most promising recipe that was not tried and changes something. If the kernel already has
/// one variant of an entry, its other variants come last.
pub(super) fn next<'a>(
    recall: &'a LibraryRecall,
    texts: &[SourceText],
    knobs: &[Knob],
) -> Option<ApplicableRecipe<'a>> {
    let has = |usable: &&UsableEntry| recall.kept.contains(&usable.known.id);
    let (last, first): (Vec<&UsableEntry>, Vec<&UsableEntry>) = recall.usable.iter().partition(has);
    // An entry that was measured without a gain is not worth a round.
    let is_worth_it = |usable: &&UsableEntry| usable.promise > 0.0 || usable.known.n_evidence == 0;
    let mut usable = first.into_iter().chain(last).filter(is_worth_it);
    usable.find_map(|usable| untried(recall, usable, texts, knobs))
}

/// The next variant of one entry that was not tried and changes something.
pub(super) fn of_entry<'a>(
    recall: &'a LibraryRecall,
    entry: &str,
    texts: &[SourceText],
    knobs: &[Knob],
) -> Option<ApplicableRecipe<'a>> {
    let usable = recall.usable.iter().find(|usable| usable.known.id == entry)?;
    untried(recall, usable, texts, knobs)
}

fn untried<'a>(
    recall: &'a LibraryRecall,
    usable: &'a UsableEntry,
    texts: &[SourceText],
    knobs: &[Knob],
) -> Option<ApplicableRecipe<'a>> {
    let id = &usable.known.id;
    let tried = |variant: usize| {
        recall.applied.iter().any(|(applied, of)| applied == id && *of as usize == variant)
    };
    let mut ways = usable.known.apply.iter().enumerate().filter(|(variant, _)| !tried(*variant));
    ways.find_map(|(variant, action)| {
        Some(ApplicableRecipe {
            usable,
            variant,
            changes: apply(action, texts, knobs)?,
            predicts: recall.predicts.get(id).map_or(&[], Vec::as_slice),
        })
    })
}

impl ApplicableRecipe<'_> {
    /// The log speedup that it promises.
    pub(super) fn promise(&self) -> f64 {
        self.usable.promise
    }

    /// As a hypothesis.
    pub(super) fn state(&self) -> Hypothesis {
        let known = &self.usable.known;
        let expected = self.usable.promise.exp().max(1.01);
        let of = if known.elsewhere { " of other operations" } else { "" };
        let rests = match known.n_evidence {
            0 => "no measurement yet".to_owned(),
            1 => format!("1 run{of}"),
            n => format!("{n} runs{of}"),
        };
        let (files, config) = match &self.changes {
            RecipeChange::Texts(texts) => {
                let files = texts.iter().map(|text| text.file.clone()).collect();
                (files, Default::default())
            }
            RecipeChange::Knob(name, value) => (Vec::new(), [(name.clone(), value.clone())].into()),
        };
        let action = &known.apply[self.variant];
        let title = match (action, known.apply.len()) {
            (Action::Rewrite { .. }, 1) => format!("{}: {}", known.id, known.title),
            (Action::Rewrite { .. }, _) => {
                format!("{}: {}, way {}", known.id, known.title, self.variant + 1)
            }
            _ => format!("{}: {}", known.id, describe(action)),
        };
        let mechanism = format!(
            "I expect {expected:.2}x because of the entry {} ({rests}): {}",
            known.id, known.title
        );
        Hypothesis {
            direction: direction(action),
            high_risk: matches!(action, Action::Rewrite { .. }),
            files,
            counters: self.predicts.to_vec(),
            config,
            entry: Some(known.id.clone()),
            variant: u32::try_from(self.variant).unwrap_or(u32::MAX),
            ..claim(title, mechanism, expected)
        }
    }
}

fn describe(action: &Action) -> String {
    match action {
        Action::Knob { name, values } => format!("set {name} to one of {}", values.join(", ")),
        Action::Top { line, .. } => format!("put {line} at the top"),
        Action::BeforeInnerLoops { line, .. } => format!("put {line} before inner loops"),
        Action::Rewrite { pattern, to, .. } => {
            let short = |text: &str| text.chars().take(40).collect::<String>();
            format!("rewrite {} to {}", short(pattern), short(to))
        }
        Action::Flag { flag, .. } => format!("build with {flag}"),
    }
}

fn direction(action: &Action) -> Direction {
    match action {
        Action::Knob { .. } => Direction::Tile,
        Action::Top { .. } | Action::Flag { .. } => Direction::Backend,
        Action::BeforeInnerLoops { .. } => Direction::Pipeline,
        Action::Rewrite { .. } => Direction::Algorithm,
    }
}

/// What an action changes; none if it changes nothing.
pub(super) fn apply(action: &Action, texts: &[SourceText], knobs: &[Knob]) -> Option<RecipeChange> {
    let each = |files: &[String], change: &dyn Fn(&str, &str) -> Option<String>| {
        let changed = texts.iter().filter(|text| fits(files, &text.file));
        let changed = changed.filter_map(|text| {
            let new = change(&text.file, &text.text)?;
            let fits = new.len() <= FILE_BYTES_MAX && new != text.text;
            fits.then(|| SourceText { file: text.file.clone(), text: new })
        });
        let changed: Vec<SourceText> = changed.collect();
        (!changed.is_empty()).then_some(RecipeChange::Texts(changed))
    };
    match action {
        Action::Knob { name, values } => {
            let knob = knobs.iter().find(|knob| fits_name(name, &knob.name))?;
            let better = values.iter().find(|value| knob.values.contains(value));
            let value = better.filter(|value| **value != knob.current)?;
            Some(RecipeChange::Knob(knob.name.clone(), value.clone()))
        }
        Action::Top { line, files } => each(files, &|_, text| on_top(text, line)),
        Action::BeforeInnerLoops { line, files } => {
            each(files, &|file, text| before_inner_loops(file, text, line))
        }
        Action::Rewrite { pattern, to, files } => {
            let pattern = compiled(pattern)?;
            each(files, &|_, text| Some(pattern.replace_all(text, to.as_str()).into_owned()))
        }
        Action::Flag { flag, variable, files } => {
            each(files, &|_, text| with_flag(text, variable, flag))
        }
    }
}

fn compiled(pattern: &str) -> Option<Regex> {
    RegexBuilder::new(pattern).size_limit(PATTERN_BYTES_MAX).build().ok()
}

/// Whether a path, or its last component, matches one of these globs.
fn fits(files: &[String], path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    files.iter().any(|glob| {
        let glob = Glob::new(glob).ok().map(|glob| glob.compile_matcher());
        glob.is_some_and(|glob| glob.is_match(path) || glob.is_match(name))
    })
}

/// Whether a name matches a pattern, ignoring case.
fn fits_name(pattern: &str, name: &str) -> bool {
    fits(&[pattern.to_lowercase()], &name.to_lowercase())
}

fn on_top(text: &str, line: &str) -> Option<String> {
    let there = text.lines().any(|of| of.trim() == line);
    (!there).then(|| format!("{line}\n{text}"))
}

/// Adds a flag to the first assignment of a variable, such as `CFLAGS = -O2`.
fn with_flag(text: &str, variable: &str, flag: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len() + flag.len() + 1);
    let mut done = false;
    for line in text.split_inclusive('\n') {
        let (name, value) = line.split_once('=').unwrap_or(("", ""));
        let name = name.trim().trim_end_matches([':', '+', '?']).trim();
        let assigns = !name.is_empty() && !name.starts_with('#') && fits_name(variable, name);
        let has =
            value.split_whitespace().any(|word| flag.split_whitespace().any(|part| part == word));
        if assigns && has {
            return None;
        }
        if assigns && !done && !line.trim_end().ends_with('\\') {
            out.push_str(line.trim_end());
            out.push(' ');
            out.push_str(flag);
            out.push_str(&line[line.trim_end().len()..]);
            done = true;
        } else {
            out.push_str(line);
        }
    }
    done.then_some(out)
}

/// Inserts a line before every innermost loop.
fn before_inner_loops(file: &str, text: &str, line: &str) -> Option<String> {
    let ending = file.rsplit('.').next().unwrap_or_default();
    let language = match ending {
        "c" | "h" => tree_sitter_c::LANGUAGE,
        "cc" | "cpp" | "cxx" | "hpp" | "cu" | "cuh" => tree_sitter_cpp::LANGUAGE,
        _ => return None,
    };
    let mut parser = Parser::new();
    parser.set_language(&language.into()).ok()?;
    let tree = parser.parse(cuda_source::as_cpp(text), None)?;
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    for place in inner_loops(tree.root_node()).into_iter().take(INSERTS_MAX) {
        let start = text[..place].rfind('\n').map_or(0, |at| at + 1);
        let before = &text[start..place];
        let above = text[..start].trim_end().lines().next_back().unwrap_or("");
        // A loop after other code on its line, or one that already has such a line, is left alone.
        if !before.trim().is_empty() || above.trim() == line || start < from {
            continue;
        }
        out.push_str(&text[from..start]);
        out.push_str(before);
        out.push_str(line);
        out.push('\n');
        from = start;
    }
    out.push_str(&text[from..]);
    (out != text).then_some(out)
}

/// Where innermost `for` loops start.
fn inner_loops(root: Node<'_>) -> Vec<usize> {
    let mut loops: Vec<(usize, usize, bool)> = Vec::new();
    let mut next = vec![root];
    while let Some(node) = next.pop() {
        let is_for = node.kind() == "for_statement";
        if is_for || matches!(node.kind(), "while_statement" | "do_statement") {
            loops.push((node.start_byte(), node.end_byte(), is_for));
        }
        let mut cursor = node.walk();
        next.extend(node.named_children(&mut cursor));
    }
    loops.sort_unstable();
    let inner = loops.iter().enumerate().filter(|(number, (_, end, is_for))| {
        let holds = loops.get(number + 1).is_some_and(|(start, ..)| start < end);
        *is_for && !holds
    });
    inner.map(|(_, (start, ..))| *start).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use karve_numerics::space;

    const KERNEL: &str = "void f(int n, float *a, const float *b) {\n    \
        for (int i = 0; i < n; i++) {\n        for (int k = 0; k < n; k++)\n    \
        \x20       a[i] += b[k] / 2.0f;\n    }\n}\n";

    fn texts(file: &str, text: &str) -> Vec<SourceText> {
        vec![SourceText { file: file.into(), text: text.into() }]
    }

    fn after(action: &Action, file: &str, text: &str) -> Option<String> {
        match apply(action, &texts(file, text), &[])? {
            RecipeChange::Texts(mut texts) => Some(texts.remove(0).text),
            RecipeChange::Knob(..) => None,
        }
    }

    fn c(files: &[&str]) -> Vec<String> {
        files.iter().map(|file| (*file).to_owned()).collect()
    }

    #[test]
    fn a_line_goes_before_the_innermost_loop_and_only_once() {
        let action =
            Action::BeforeInnerLoops { line: "#pragma GCC unroll 8".into(), files: c(&["*.c"]) };
        let once = after(&action, "src/kernel.c", KERNEL).unwrap();
        let lines: Vec<&str> = once.lines().collect();
        assert_eq!(lines[2], "        #pragma GCC unroll 8");
        assert_eq!(once.matches("#pragma").count(), 1, "{once}");
        assert_eq!(after(&action, "src/kernel.c", &once), None);
        assert_eq!(after(&action, "kernel.py", KERNEL), None);
    }

    #[test]
    fn lines_on_top_rewrites_and_flags_change_what_they_fit_and_nothing_twice() {
        let top = Action::Top { line: "#pragma GCC optimize(\"O3\")".into(), files: c(&["*.c"]) };
        let once = after(&top, "k.c", KERNEL).unwrap();
        assert!(once.starts_with("#pragma GCC optimize(\"O3\")\nvoid"));
        assert_eq!(after(&top, "k.c", &once), None);
        let rewrite =
            Action::Rewrite { pattern: r"/ 2\.0f".into(), to: "* 0.5f".into(), files: c(&["*.c"]) };
        assert!(after(&rewrite, "k.c", KERNEL).unwrap().contains("b[k] * 0.5f"));
        assert_eq!(after(&rewrite, "k.c", "int x;"), None);
        let flag = Action::Flag {
            flag: "-O3".into(),
            variable: "*FLAGS*".into(),
            files: c(&["*.mk", "Makefile"]),
        };
        let make = "# CFLAGS = x\nCFLAGS ?= -Wall\nLDFLAGS = -lm\n";
        let once = after(&flag, "flags.mk", make).unwrap();
        assert_eq!(once, "# CFLAGS = x\nCFLAGS ?= -Wall -O3\nLDFLAGS = -lm\n");
        assert_eq!(after(&flag, "flags.mk", &once), None);
    }

    #[test]
    fn what_cannot_be_read_changes_nothing() {
        let hostile = Action::Rewrite {
            pattern: format!("(a{{1000}}){{1000}}{}", "(".repeat(9)),
            to: "x".into(),
            files: c(&["*.c"]),
        };
        assert_eq!(after(&hostile, "k.c", KERNEL), None);
        let broken = "for (;;) { for (".repeat(200);
        let action = Action::BeforeInnerLoops { line: "#pragma x".into(), files: c(&["*.c"]) };
        let _ = after(&action, "k.c", &broken);
        let grows =
            Action::Rewrite { pattern: ".".into(), to: "x".repeat(100_000), files: c(&["*.c"]) };
        assert_eq!(after(&grows, "k.c", KERNEL), None);
    }

    /// An example of docs/knowledge.md: an action, and a file before and after it.
    fn examples() -> Vec<(Action, SourceText, String)> {
        let page = include_str!("../../../../docs/knowledge.md");
        let mut blocks = page.split("```").skip(1).step_by(2);
        let mut found = Vec::new();
        while let Some(block) = blocks.next() {
            let Some(yaml) = block.strip_prefix("yaml\n") else {
                continue;
            };
            let mut actions: Vec<Action> = serde_saphyr::from_str(yaml).unwrap();
            let diff = blocks.next().and_then(|block| block.strip_prefix("diff\n"));
            let diff = diff.unwrap_or_else(|| panic!("{yaml} has no diff"));
            let (mut file, mut before, mut after) = ("", String::new(), String::new());
            for line in diff.lines() {
                if let Some(name) = line.strip_prefix("--- ") {
                    file = name;
                    continue;
                }
                let (mark, text) = line.split_at(1);
                for (text_of, not) in [(&mut before, "+"), (&mut after, "-")] {
                    if mark != not {
                        text_of.push_str(text);
                        text_of.push('\n');
                    }
                }
            }
            found.push((actions.remove(0), texts(file, &before).remove(0), after));
        }
        found
    }

    #[test]
    fn every_action_has_an_example_in_the_docs_that_does_what_it_shows() {
        let mut names = Vec::new();
        for (action, text, want) in examples() {
            let json = serde_json::to_value(&action).unwrap();
            names.push(json["do"].as_str().unwrap().to_owned());
            let knobs = space::parse_knobs(&text.file, &text.text, &[]).unwrap();
            let got = match apply(&action, std::slice::from_ref(&text), &knobs).unwrap() {
                RecipeChange::Texts(mut texts) => texts.remove(0).text,
                RecipeChange::Knob(name, value) => {
                    assert_eq!(knobs[0].name, name);
                    space::set_knob(&text.text, &knobs[0], &value).unwrap()
                }
            };
            assert_eq!(got, want, "{action:?}");
        }
        names.sort();
        assert_eq!(names, ["before-inner-loops", "flag", "knob", "rewrite", "top"]);
    }
}
