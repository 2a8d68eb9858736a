//! The agenda of a campaign: the outcome of each item.

use super::page::MarkdownPage;
use super::source::ReportSource;
use super::text::{CELL_MAX, TITLE_MAX, escaped, ratio};
use karve_core::view::ItemView;

const COLUMNS: [&str; 6] = ["Item", "Asks", "Expected", "Effort", "Became", "Why"];

/// A section with a row for each item, in the order of the agenda.
pub(super) fn section(source: &ReportSource<'_>, page: &mut MarkdownPage) {
    let Some(agenda) = &source.charter.agenda else {
        return;
    };
    page.section("Agenda");
    page.block(format!(
        "{}.",
        super::summary::capital(&source.markdown(&agenda.describe(), CELL_MAX))
    ));
    let rows: Vec<Vec<String>> = source
        .campaign
        .view()
        .agenda
        .iter()
        .map(|item| {
            vec![
                source.markdown(&item.id, TITLE_MAX),
                source.markdown(&item.title, TITLE_MAX),
                ratio(Some(item.expected_ratio)),
                item.effort.to_owned(),
                escaped(&became(item)),
                source.markdown(&why(source, item), CELL_MAX),
            ]
        })
        .collect();
    match rows.is_empty() {
        true => page.block("No item was found."),
        false => page.table(&COLUMNS, &rows),
    }
}

/// The outcome of an item, with its rounds and its figure.
pub(super) fn became(item: &ItemView) -> String {
    let rounds: Vec<String> = item.rounds.iter().map(u32::to_string).collect();
    let rounds = match rounds.len() {
        0 => String::new(),
        1 => format!(" in round {}", rounds[0]),
        _ => format!(" in rounds {}", rounds.join(", ")),
    };
    match item.ratio {
        Some(measured) => format!("{}{rounds}, {}", item.state, ratio(Some(measured))),
        None => format!("{}{rounds}", item.state),
    }
}

/// Why it was dropped or skipped, without the names of hidden cases.
pub(super) fn why(source: &ReportSource<'_>, item: &ItemView) -> String {
    let last = item.rounds.last().filter(|_| item.state == "dropped");
    let mut rounds = source.campaign.rounds().iter();
    match last.and_then(|number| rounds.find(|round| round.number == *number)) {
        Some(round) => source.why(round, CELL_MAX),
        None => item.why.clone(),
    }
}
