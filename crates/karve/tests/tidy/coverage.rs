//! docs/coverage.md: every requirement of the workflows has one row, what works is shown by a test
//! or a command that exists, and the counts are those of the rows.

use super::assert_none;
use super::source::{files, read};

const PAGE: &str = "docs/coverage.md";

/// The sections of the page: what their ids begin with, and how many rows they have.
const SECTIONS: [(&str, usize); 5] = [("A", 46), ("B", 50), ("C", 80), ("D", 46), ("L", 38)];

/// The statuses as the rows and as the summary name them.
const STATUSES: [(&str, &str); 4] =
    [("works", "work"), ("partly", "partly"), ("missing", "missing"), ("deviates", "deviate")];

struct Row<'page> {
    id: &'page str,
    requirement: &'page str,
    status: &'page str,
    evidence: &'page str,
}

/// The rows of the page's tables; a line that is no row of four cells is a complaint.
fn rows<'page>(page: &'page str, complaints: &mut Vec<String>) -> Vec<Row<'page>> {
    let mut rows = Vec::new();
    for line in page.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| id ")) {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let [id, requirement, status, evidence] = cells[..] else {
            complaints.push(format!("not a row of four cells: {line}"));
            continue;
        };
        rows.push(Row { id, requirement, status, evidence });
    }
    rows
}

/// The parts of a text in backquotes.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// Whether a quoted part names a test below `crates/` or a command of karve.
fn is_evidence(quoted: &str, read: &impl Fn(&str) -> Option<String>) -> bool {
    if let Some((file, function)) = quoted.split_once("::") {
        let text = read(&format!("crates/{file}")).unwrap_or_default();
        return text.match_indices(&format!("fn {function}(")).any(|(at, _)| {
            let before = text[..at].trim_end();
            before
                .lines()
                .rev()
                .take_while(|line| line.starts_with("#[") || line.starts_with("    #["))
                .any(|line| line.trim() == "#[test]")
        });
    }
    let mut words = quoted.split_whitespace();
    words.next() == Some("karve")
        && words.next().is_some_and(|command| {
            let listed = read("crates/karve/src/commands/help.rs").unwrap_or_default();
            listed.contains(&format!("\"{command}\""))
        })
}

/// What is wrong with the page, given the other files of the repository.
pub(super) fn faults(page: &str, read: &impl Fn(&str) -> Option<String>) -> Vec<String> {
    let mut complaints = Vec::new();
    let rows = rows(page, &mut complaints);
    let ids: Vec<&str> = rows.iter().map(|row| row.id).collect();
    let due: Vec<String> = SECTIONS
        .iter()
        .flat_map(|(section, count)| (1..=*count).map(move |number| format!("{section}{number}")))
        .collect();
    if ids != due {
        let missing: Vec<_> = due.iter().filter(|id| !ids.contains(&id.as_str())).collect();
        complaints
            .push(format!("the ids are not complete, in order and unique; absent: {missing:?}"));
    }
    for Row { id, requirement, status, evidence } in &rows {
        if requirement.is_empty() || evidence.is_empty() {
            complaints.push(format!("{id} has an empty cell"));
        }
        if !STATUSES.iter().any(|(word, _)| word == status) {
            complaints.push(format!("{id} has the status {status:?}"));
        }
        if *status == "works" && !quoted(evidence).any(|part| is_evidence(part, read)) {
            complaints.push(format!("{id} works, but names no test and no command: {evidence}"));
        }
        for part in quoted(evidence).filter(|part| part.contains(".rs::")) {
            if !is_evidence(part, read) {
                complaints.push(format!("{id} names {part}, which is no test"));
            }
        }
    }
    let counts = STATUSES.map(|(word, plural)| {
        format!("{} {plural}", rows.iter().filter(|row| row.status == word).count())
    });
    let summary = format!("{} rows: {}.", rows.len(), counts.join(", "));
    if !page.lines().any(|line| line == summary) {
        complaints.push(format!("the summary line must be: {summary}"));
    }
    complaints
}

#[test]
fn every_requirement_of_the_workflows_has_its_row_and_its_evidence() {
    let files = files();
    let page = read(PAGE);
    assert_none(faults(&page, &|path| files.iter().any(|file| file == path).then(|| read(path))));
    let summary = page.lines().find(|line| line.contains(" rows: ")).unwrap();
    println!("{PAGE}: {summary}");
}
