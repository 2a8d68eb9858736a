//! The pages of the documentation: all of them are in the book, and every link leads somewhere.

use super::{assert_none, read, root};
use std::fs;
use std::path::Path;

const README_LINES_MAX: usize = 120;

/// The pages in `docs`, by their names.
fn pages() -> Vec<String> {
    let names = fs::read_dir(root().join("docs")).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut pages: Vec<String> = names.filter(|name| name.ends_with(".md")).collect();
    pages.sort();
    pages
}

/// The targets of links to files, without their anchors.
pub(super) fn link_targets(text: &str) -> Vec<&str> {
    let mut is_code = false;
    let mut targets = Vec::new();
    for line in text.lines() {
        is_code ^= line.trim_start().starts_with("```");
        let links = line.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        let is_file = |target: &&str| !target.contains("://") && !target.contains(' ');
        let paths = links.filter(is_file).filter_map(|target| target.split('#').next());
        targets.extend(paths.filter(|path| !path.is_empty() && !is_code));
    }
    targets
}

/// The links of a page that lead nowhere.
pub(super) fn dead_links(path: &str, text: &str) -> Vec<String> {
    let path = root().join(path);
    let dir = path.parent().unwrap_or(Path::new(""));
    let is_dead = |target: &&str| !dir.join(target).exists();
    let dead = link_targets(text).into_iter().filter(is_dead);
    dead.map(|target| format!("{}: {target} does not exist", path.display())).collect()
}

#[test]
fn the_readme_is_short_and_every_page_is_in_the_book() {
    let lines = read("README.md").lines().count();
    assert!(lines <= README_LINES_MAX, "README.md has {lines} lines, over {README_LINES_MAX}");
    let summary = read("docs/SUMMARY.md");
    let listed = link_targets(&summary);
    let is_missing = |page: &String| page != "SUMMARY.md" && !listed.contains(&page.as_str());
    let missing: Vec<String> = pages().into_iter().filter(is_missing).collect();
    assert!(missing.is_empty(), "not in docs/SUMMARY.md: {missing:?}");
}

#[test]
fn every_link_leads_to_a_file() {
    let guides = ["README", "ARCHITECTURE", "CONTRIBUTING", "GLOSSARY", "SECURITY", "STYLE"];
    let guides = guides.iter().map(|name| format!("{name}.md"));
    let pages = pages().into_iter().map(|page| format!("docs/{page}"));
    assert_none(guides.chain(pages).flat_map(|path| dead_links(&path, &read(&path))).collect());
    assert_eq!(
        dead_links("docs/a.md", "[a](nowhere.md#x) [b](https://c.d) [e](files.md)").len(),
        1
    );
}
