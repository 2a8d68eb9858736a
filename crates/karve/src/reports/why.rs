//! Why the kernel was slow, and what was known and learnt about that: two sections of the final
//! report.

use super::page::Page;
use super::source::Source;
use super::text::{CELL_MAX, PARAGRAPH_MAX, TITLE_MAX, code, escaped, ratio};
use karve_core::campaign::RoundSummary;
use karve_core::knowledge::{Effect, effect_of};
use karve_core::profile::Profile;
use karve_core::profile::compare::{Moved, compare};
use karve_core::profile::predicate::short;

/// Counters that are shown before and after.
const COUNTERS_SHOWN: usize = 12;
/// Rounds that are shown with what they foretold.
const FORETOLD_SHOWN: usize = 20;

/// What the profilers said first and last; nothing where nothing was profiled.
pub(super) fn profile_section(source: &Source<'_>, page: &mut Page) {
    let campaign = source.campaign;
    let (Some(first), Some(last)) = (campaign.first_profile(), campaign.profile()) else {
        return;
    };
    page.section("Profile");
    let same = first.commit == last.commit;
    let mut lines = vec![diagnosis(
        source,
        if same { "The kernel" } else { "At first" },
        first,
    )];
    if !same {
        lines.push(diagnosis(source, "At the end", last));
    }
    for opportunity in last.diagnosis.iter().flat_map(|d| &d.opportunities) {
        lines.push(format!(
            "Left to try: {}, up to {:.0}% of the time ({})",
            source.markdown(&opportunity.name, CELL_MAX),
            opportunity.gain_pct,
            source.markdown(&opportunity.trigger, CELL_MAX)
        ));
    }
    page.list(&lines);
    let mut moved = compare(first, last);
    moved.retain(|moved| !same && moved.way().is_some());
    if !moved.is_empty() {
        let rows: Vec<Vec<String>> = moved.iter().take(COUNTERS_SHOWN).map(row).collect();
        page.table(&["Counter", "At first", "At the end", "Change"], &rows);
    }
    foretold(source, page);
}

fn diagnosis(source: &Source<'_>, when: &str, profile: &Profile) -> String {
    let text = |text: &str| source.markdown(text, PARAGRAPH_MAX);
    match (&profile.diagnosis, &profile.skipped) {
        (Some(found), _) => format!(
            "{when}: {}-bound by the rules of {}. {} ({})",
            found.bottleneck.name(),
            found.rules.name(),
            text(&found.root_cause),
            text(&found.because)
        ),
        (None, Some(why)) => format!("{when}: no profile, because {}", text(why)),
        (None, None) => format!("{when}: {}", profile.bottleneck.name()),
    }
}

fn row(moved: &Moved) -> Vec<String> {
    let change = moved.change_pct();
    vec![
        code(&moved.counter),
        short(moved.before),
        short(moved.after),
        change.map_or_else(|| "-".to_owned(), |change| format!("{change:+.1}%")),
    ]
}

/// What hypotheses expected of counters, and what became of it.
fn foretold(source: &Source<'_>, page: &mut Page) {
    let rounds = source.campaign.rounds().iter();
    let told = rounds.filter(|round| !round.lesson.foretold.is_empty());
    let lines: Vec<String> = told
        .take(FORETOLD_SHOWN)
        .map(|round| {
            let all: Vec<String> = round.lesson.foretold.iter().map(|f| f.describe()).collect();
            let all = source.markdown(&all.join("; "), PARAGRAPH_MAX);
            format!("Round {} foretold: {all}", round.number)
        })
        .collect();
    if !lines.is_empty() {
        page.list(&lines);
    }
}

/// Which entries of the library were read and applied, and what they gained.
pub(super) fn knowledge_section(source: &Source<'_>, page: &mut Page) {
    let campaign = source.campaign;
    let known = campaign.known();
    let learnt: Vec<&RoundSummary> = campaign
        .rounds()
        .iter()
        .filter(|round| round.lesson.learning.is_some())
        .collect();
    if known.is_empty() && learnt.is_empty() {
        return;
    }
    page.section("Knowledge");
    let held = match known.len() {
        1 => "1 entry of the library held for this target.".to_owned(),
        n => format!("{n} entries of the library held for this target."),
    };
    page.block(held);
    let rows: Vec<Vec<String>> = learnt
        .iter()
        .filter_map(|round| entry(source, round))
        .collect();
    if rows.is_empty() {
        page.block("No round was evidence for or against an entry.");
        return;
    }
    page.table(&["Round", "Entry", "Change", "Measured", "Says"], &rows);
    page.block(
        "Each row is staged as evidence in `.karve/knowledge`; `karve knowledge show ENTRY` tells \
         how the entry stands, `karve knowledge promote ENTRY` takes it into the project.",
    );
}

fn entry(source: &Source<'_>, round: &RoundSummary) -> Option<Vec<String>> {
    let learning = round.lesson.learning.as_ref()?;
    let says = match (effect_of(&learning.evidence), learning.is_new) {
        (Effect::Supports, true) => "a new finding",
        (Effect::Supports, false) => "for it",
        (Effect::Refutes, _) => "against it",
        (Effect::Open, _) => "open",
    };
    Some(vec![
        round.number.to_string(),
        code(&learning.entry),
        escaped(&source.title(round, TITLE_MAX)),
        ratio((learning.evidence.ratio > 0.0).then_some(learning.evidence.ratio)),
        says.to_owned(),
    ])
}
