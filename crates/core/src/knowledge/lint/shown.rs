//! Text that would not be shown as written: control characters, terminal escapes, and marks that
//! change the direction of a text.

use super::super::{Action, Entry};
use super::LintFindings;

/// Every text of an entry is checked; each field is named once.
pub(super) fn lint(entry: &Entry, list: &mut LintFindings<'_>) {
    for (field, text) in lines_of(entry) {
        if let Some(c) = text.chars().find(|c| hides(*c)) {
            list.error(hidden_character(field, c));
        }
    }
    for section in &entry.sections {
        let heading = section.heading.chars().find(|c| hides(*c));
        let mut text = section.text.chars();
        let within = text.find(|c| hides(*c) && !matches!(c, '\n' | '\t' | '\r'));
        if let Some(c) = heading.or(within) {
            let name: String = section.heading.chars().filter(|c| !hides(*c)).collect();
            list.error(hidden_character(&format!("the section \"{name}\""), c));
        }
    }
}

fn hidden_character(field: &str, c: char) -> String {
    let code = u32::from(c);
    format!("{field} contains the character U+{code:04X}, which hides or changes what is shown")
}

/// Whether a character is invisible, or changes how others look.
fn hides(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
        || matches!(c, '\u{2060}'..='\u{2069}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}

/// Lines of all texts but the sections, with the name of their field.
fn lines_of(entry: &Entry) -> Vec<(&'static str, &str)> {
    let mut lines =
        vec![("the id", entry.id.as_str()), ("the title", &entry.title), ("the date", &entry.date)];
    let lists: [(&'static str, &[String]); 3] = [
        ("an alias", &entry.aliases),
        ("a trigger", &entry.triggers),
        ("a counter-signal", &entry.counter_signals),
    ];
    for (name, list) in lists {
        lines.extend(list.iter().map(|text| (name, text.as_str())));
    }
    let scopes = entry.except.iter().chain([&entry.scope]);
    let words = scopes.flat_map(|scope| scope.words());
    lines.extend(words.map(|word| ("a scope", word.as_str())));
    for of in &entry.evidence {
        let texts = [
            &of.metric,
            &of.device,
            &of.workload,
            &of.run,
            &of.date,
            &of.toolchain,
            &of.parent,
            &of.disputed,
        ];
        lines.extend(texts.map(|text| ("evidence", text.as_str())));
        let note = of.note.lines().map(|line| ("a note of evidence", line));
        lines.extend(note);
    }
    let named = entry.interactions.ids().chain(&entry.superseded_by);
    lines.extend(named.map(|id| ("the name of another entry", id.as_str())));
    let taken_back = entry.retracted.iter();
    let taken_back = taken_back.flat_map(|back| [&back.date, &back.why]);
    lines.extend(taken_back.map(|text| ("the retraction", text.as_str())));
    for action in &entry.apply {
        let lines_of_it = texts_of(action).flat_map(|text| text.lines());
        lines.extend(lines_of_it.map(|line| ("an action of \"apply\"", line)));
    }
    lines
}

fn texts_of(action: &Action) -> impl Iterator<Item = &String> {
    let (texts, list): (Vec<&String>, &[String]) = match action {
        Action::Knob { name, values } => (vec![name], values),
        Action::Top { line, files } | Action::BeforeInnerLoops { line, files } => {
            (vec![line], files)
        }
        Action::Rewrite { pattern, to, files } => (vec![pattern, to], files),
        Action::Flag { flag, variable, files } => (vec![flag, variable], files),
    };
    texts.into_iter().chain(list)
}
