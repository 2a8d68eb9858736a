//! No modules import each other in a circle, neither at the top of a crate nor side by side in
//! another module. A module and those inside it are one.

use super::house::{CRATES, crate_of};
use super::source::Source;
use super::{assert_none, modules};
use std::collections::{BTreeMap, BTreeSet};

/// The names from the top of a crate to a module.
type ModulePath = Vec<String>;

/// Which modules use which beside them, by the module that they are in.
type ImportArrows = BTreeMap<ModulePath, BTreeMap<String, BTreeSet<String>>>;

#[test]
fn no_modules_import_each_other_in_a_circle() {
    let complaints = CRATES.iter().flat_map(|(name, _)| {
        let of = modules().filter(|s| crate_of(&s.path) == Some(name));
        cycles(name, &imports(of))
    });
    assert_none(complaints.collect());
}

/// The module of a file.
fn module_of(path: &str) -> Option<ModulePath> {
    let inside = path.split_once("/src/")?.1.strip_suffix(".rs")?;
    let names = inside.split('/').map(str::to_owned);
    Some(names.filter(|name| !["lib", "main"].contains(&name.as_str())).collect())
}

/// What the modules of a crate use of each other, tests aside.
pub(super) fn imports<'a>(sources: impl Iterator<Item = &'a Source>) -> ImportArrows {
    let sources: Vec<(ModulePath, &Source)> =
        sources.filter_map(|source| Some((module_of(&source.path)?, source))).collect();
    let all: BTreeSet<&[String]> = sources.iter().map(|(path, _)| path.as_slice()).collect();
    let mut arrows = ImportArrows::new();
    for (from, source) in &sources {
        if from.iter().any(|name| ["tests", "testing"].contains(&name.as_str())) {
            continue;
        }
        for start in ["crate::", "super::", "self::"] {
            for at in source.uses(start).into_iter().filter(|at| is_start(&source.code[..*at])) {
                for named in paths_in(&source.code[at..]) {
                    let to = resolved(from, &named, &all);
                    let same = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
                    if let (Some(user), Some(used)) = (from.get(same), to.get(same)) {
                        let side_by_side = arrows.entry(from[..same].to_vec()).or_default();
                        side_by_side.entry(user.clone()).or_default().insert(used.clone());
                    }
                }
            }
        }
    }
    arrows
}

/// Whether a path starts here: `super` of `super::super` does so only once.
fn is_start(before: &str) -> bool {
    !before.ends_with("::")
}

/// The innermost module that a path leads to.
fn resolved(from: &[String], named: &[String], all: &BTreeSet<&[String]>) -> ModulePath {
    let ups = named.iter().take_while(|name| *name == "super").count();
    let mut at = match named.first().map(String::as_str) {
        Some("crate") => Vec::new(),
        _ => from[..from.len().saturating_sub(ups)].to_vec(),
    };
    for name in &named[ups.max(usize::from(named[0] != "super"))..] {
        at.push(name.clone());
        if !all.contains(at.as_slice()) {
            at.pop();
            break;
        }
    }
    at
}

/// The paths that a text starts with: one, or those of its lists in braces.
fn paths_in(text: &str) -> Vec<ModulePath> {
    let end = text.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    let Some(rest) = rest.strip_prefix("::") else {
        return vec![vec![name.to_owned()]];
    };
    let tails: Vec<ModulePath> = match rest.strip_prefix('{') {
        Some(list) => list_items(list).into_iter().flat_map(paths_in).collect(),
        None => paths_in(rest),
    };
    tails.into_iter().map(|tail| [vec![name.to_owned()], tail].concat()).collect()
}

/// The items of a list that ends with a brace.
fn list_items(list: &str) -> Vec<&str> {
    let (mut items, mut depth, mut start) = (Vec::new(), 0_i32, 0);
    for (at, c) in list.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => {
                items.push(list[start..at].trim_start());
                break;
            }
            '}' => depth -= 1,
            ',' if depth == 0 => {
                items.push(list[start..at].trim_start());
                start = at + 1;
            }
            _ => {}
        }
    }
    items
}

/// Modules that can be reached from themselves.
pub(super) fn cycles(name: &str, arrows: &ImportArrows) -> Vec<String> {
    let mut complaints = Vec::new();
    for (within, arrows) in arrows {
        let reaches = |from: &String| {
            let mut seen = BTreeSet::new();
            let mut next: Vec<&String> = arrows.get(from).into_iter().flatten().collect();
            while let Some(module) = next.pop() {
                if seen.insert(module) {
                    next.extend(arrows.get(module).into_iter().flatten());
                }
            }
            seen.contains(from)
        };
        for module in arrows.keys().filter(|module| reaches(module)) {
            let path = [within.as_slice(), std::slice::from_ref(module)].concat().join("::");
            complaints.push(format!("crates/{name}: {path} is part of an import cycle"));
        }
    }
    complaints
}
