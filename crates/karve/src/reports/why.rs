//! Why the kernel was slow, and what the library knew and learned about it: two sections of the
//! final report.

use super::page::MarkdownPage;
use super::profile::{CounterComparison, KernelComparison};
use super::source::ReportSource;
use super::text::{CELL_MAX, PARAGRAPH_MAX, TITLE_MAX, code, escaped, ratio};
use karve_core::campaign::RoundSummary;
use karve_core::knowledge::{EvidenceEffect, effect_of};
use karve_core::profile::predicate::short;
use karve_core::profile::{KernelProfile, Profile};
use std::collections::BTreeSet;

/// How many counters are shown before and after.
const COUNTERS_SHOWN: usize = 12;
/// How many characters of a commit are shown.
const COMMIT_CHARS: usize = 10;
/// How many rounds are shown with their predictions.
const PREDICTED_SHOWN: usize = 20;

/// The first and the last profile; nothing if nothing was profiled.
pub(super) fn profile_section(source: &ReportSource<'_>, page: &mut MarkdownPage) {
    let campaign = source.campaign;
    let (Some(first), Some(last)) = (campaign.first_profile(), campaign.profile()) else {
        return;
    };
    page.section("Profile");
    let same = first.commit == last.commit;
    let is_final = last.commit == campaign.incumbent();
    let when = if is_final { "At the end" } else { "Last profile" };
    let whose = if same { "The kernel" } else { "At the start" };
    let mut lines = vec![diagnosis(source, whose, first)];
    if !same {
        lines.push(diagnosis(source, when, last));
    }
    if !is_final {
        lines.push(format!(
            "The final kernel, {}, was not profiled: the campaign ended before the next profile.",
            code(&short_of(campaign.incumbent()))
        ));
    }
    for note in &last.notes {
        let note = source.markdown(note, PARAGRAPH_MAX);
        lines.push(format!("{}: {note}", if same { whose } else { when }));
    }
    for opportunity in last.diagnosis.iter().flat_map(|d| &d.opportunities) {
        let entry = opportunity.entry.as_ref();
        let entry = entry
            .map_or_else(String::new, |id| format!("; see {}", code(&source.line(id, CELL_MAX))));
        lines.push(format!(
            "Left to try: {}, could save about {:.0}% of the time by these counters ({}){entry}",
            source.markdown(&opportunity.name, CELL_MAX),
            opportunity.gain_pct,
            source.markdown(&opportunity.trigger, CELL_MAX)
        ));
    }
    if let (false, Some(first), Some(last)) = (same, first.main_kernel(), last.main_kernel()) {
        if first.name == last.name {
            page.list(&lines);
            compared((first, last), when, page);
        } else {
            lines.push(format!(
                "Not compared, because the kernels differ: {} and {}.",
                code(&source.line(&first.name, CELL_MAX)),
                code(&source.line(&last.name, CELL_MAX))
            ));
            page.list(&lines);
        }
    } else {
        page.list(&lines);
    }
    push_predictions(source, page);
}

/// The counters that changed, as reported by the same tool for the same function.
fn compared((first, last): (&KernelProfile, &KernelProfile), when: &str, page: &mut MarkdownPage) {
    let moved = KernelComparison::of(first, last).counters.into_iter();
    let rows: Vec<Vec<String>> = moved
        .filter(|change| change.has_moved)
        .take(COUNTERS_SHOWN)
        .map(|change| row(&change))
        .collect();
    if !rows.is_empty() {
        page.table(&["Counter", "At the start", when, "Change"], &rows);
    }
}

fn short_of(commit: &str) -> String {
    commit.chars().take(COMMIT_CHARS).collect()
}

/// The commit, function and tools of a profile, what limits the kernel and why.
fn diagnosis(source: &ReportSource<'_>, when: &str, profile: &Profile) -> String {
    let text = |text: &str| source.markdown(text, PARAGRAPH_MAX);
    let commit = code(&short_of(&profile.commit));
    let of = match profile.main_kernel() {
        Some(kernel) => {
            let tools = kernel.counters.values().map(|c| c.source.tool.as_str());
            let tools: BTreeSet<&str> = tools.collect();
            let tools: Vec<&str> = tools.into_iter().collect();
            let name = code(&source.line(&kernel.name, CELL_MAX));
            format!("{when} ({commit}, {name}, by {})", text(&tools.join(", ")))
        }
        None => format!("{when} ({commit})"),
    };
    match (&profile.diagnosis, &profile.skipped) {
        (Some(found), _) => format!(
            "{of}: {}-bound by the {} rules. {} ({})",
            found.bottleneck.name(),
            found.rules.name(),
            text(&found.root_cause),
            text(&found.because)
        ),
        (None, Some(why)) if why.trim().is_empty() => format!("{of}: no profile"),
        (None, Some(why)) => format!("{of}: no profile, because {}", text(why)),
        (None, None) => format!("{of}: {}", profile.bottleneck.name()),
    }
}

fn row(moved: &CounterComparison) -> Vec<String> {
    let change = moved.change_pct;
    vec![
        code(&moved.counter),
        short(moved.before),
        short(moved.after),
        change.map_or_else(|| "-".to_owned(), |change| format!("{change:+.1}%")),
    ]
}

/// The counter predictions of the hypotheses, and what was measured.
fn push_predictions(source: &ReportSource<'_>, page: &mut MarkdownPage) {
    let rounds = source.campaign.rounds().iter();
    let reported = rounds.filter(|round| !round.lesson.predicted.is_empty());
    let lines: Vec<String> = reported
        .take(PREDICTED_SHOWN)
        .map(|round| {
            let all: Vec<String> = round.lesson.predicted.iter().map(|f| f.describe()).collect();
            let all = source.markdown(&all.join("; "), PARAGRAPH_MAX);
            format!("Round {} predicted: {all}", round.number)
        })
        .collect();
    if !lines.is_empty() {
        page.list(&lines);
    }
}

/// Which entries of the library were read and applied, and what they gained.
pub(super) fn knowledge_section(source: &ReportSource<'_>, page: &mut MarkdownPage) {
    let campaign = source.campaign;
    let known = campaign.known();
    let learned: Vec<&RoundSummary> =
        campaign.rounds().iter().filter(|round| round.lesson.learning.is_some()).collect();
    if known.is_empty() && learned.is_empty() {
        return;
    }
    page.section("Knowledge");
    let held = match known.len() {
        1 => "1 library entry matched this target.".to_owned(),
        n => format!("{n} library entries matched this target."),
    };
    page.block(held);
    let rows: Vec<Vec<String>> = learned.iter().filter_map(|round| entry(source, round)).collect();
    if rows.is_empty() {
        page.block("No round was evidence for or against an entry.");
        return;
    }
    page.table(&["Round", "Entry", "Change", "Measured", "Result"], &rows);
    page.block(
        "Each row is staged as evidence in `.karve/knowledge`; `karve knowledge show ENTRY` shows \
         the state of the entry, `karve knowledge promote ENTRY` adds it to the project.",
    );
}

fn entry(source: &ReportSource<'_>, round: &RoundSummary) -> Option<Vec<String>> {
    let learning = round.lesson.learning.as_ref()?;
    let says = match (effect_of(&learning.evidence), learning.is_new) {
        (EvidenceEffect::Supports, true) => "new finding",
        (EvidenceEffect::Supports, false) => "supports it",
        (EvidenceEffect::Refutes, _) => "refutes it",
        (EvidenceEffect::Open, _) => "open",
    };
    Some(vec![
        round.number.to_string(),
        code(&learning.entry),
        escaped(&source.title(round, TITLE_MAX)),
        ratio((learning.evidence.ratio > 0.0).then_some(learning.evidence.ratio)),
        says.to_owned(),
    ])
}
