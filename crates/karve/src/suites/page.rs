//! The page of a suite as Markdown.

use super::{SuitePage, SuiteRow, TaskFigures, TaskState};
use karve_core::score::{figure, share_text};
use karve_os::text::safe;

/// Characters of a reason in the table.
const WHY_MAX: usize = 300;

/// The page: the figures of all tasks together, and a table with a line for each.
pub fn render_markdown(page: &SuitePage) -> String {
    let mut text = format!("# {}\n\n{}\n\n", cell(&page.suite), summary(page));
    text.push_str(
        "| task | state | baselines | ours | speedup | roofline | SOL | rounds (kept) | device | \
         minutes | tokens |\n|---|---|---|---:|---|---:|---:|---:|---|---:|---:|\n",
    );
    for row in &page.rows {
        text.push_str(&line(row));
    }
    let failed = page.rows.iter().filter_map(|row| Some((row, row.why.as_ref()?)));
    let failed: String =
        failed.map(|(row, why)| format!("- {}: {}\n", cell(&row.task), cell(why))).collect();
    if !failed.is_empty() {
        text.push_str(&format!("\n## Failed\n\n{failed}"));
    }
    text.push_str(
        "\nA speedup is over the fastest correct baseline, or over the kernel that the campaign \
         started from, with its 95% interval. fast_p is the share of all tasks that are right and \
         more than p times as fast; a gain that the final duel does not confirm counts as none. \
         The SOL score is 0.5 at the start and 1 at the roofline.\n",
    );
    text
}

/// All tasks in one paragraph.
pub(super) fn summary(page: &SuitePage) -> String {
    let score = &page.score;
    let done = page.n(TaskState::Finished);
    let mut parts = vec![format!("{done} of {} tasks finished", page.rows.len())];
    for (state, word) in [
        (TaskState::Failed, "failed"),
        (TaskState::Open, "unfinished"),
        (TaskState::Waiting, "not started"),
    ] {
        match page.n(state) {
            0 => {}
            n => parts.push(format!("{n} {word}")),
        }
    }
    if let Some(speedup) = score.speedup {
        parts.push(format!("geometric mean {speedup:.3}x over {}", score.right));
    }
    for fast in &score.fast {
        parts.push(format!("fast_{} {:.2}", fast.p, fast.share));
    }
    if let Some(sol) = score.sol {
        parts.push(format!("mean SOL score {sol:.3} over {}", score.sol_tasks));
    }
    format!("{}.", parts.join(", "))
}

fn line(row: &SuiteRow) -> String {
    let none = || "–".to_owned();
    let state = match row.state {
        TaskState::Waiting => "not started",
        TaskState::Open => "unfinished",
        TaskState::Finished => "finished",
        TaskState::Failed => "failed",
    };
    let name = cell(&row.task);
    let Some(figures) = &row.figures else {
        return format!("| {name} | {state} | – | – | – | – | – | – | – | – | – |\n");
    };
    let of =
        |value: Option<f64>| value.map_or_else(none, |v| format!("{} {}", figure(v), figures.unit));
    format!(
        "| {name} | {state} | {} | {} | {} | {} | {} | {} ({}) | {} | {:.1} | {} |\n",
        baselines_text(figures),
        of(figures.ours),
        speedup_text(figures),
        figures.share.map_or_else(none, share_text),
        figures.sol.map_or_else(none, |sol| format!("{sol:.3}")),
        figures.rounds,
        figures.kept,
        cell(&figures.device),
        figures.device_min,
        figures.tokens,
    )
}

fn speedup_text(figures: &TaskFigures) -> String {
    let text = figures.speedup.describe();
    if figures.is_unconfirmed() { format!("{text}, not confirmed") } else { text }
}

/// The kernel at the start and the named baselines, each with its reading.
fn baselines_text(figures: &TaskFigures) -> String {
    let start = figures.start.map(|value| ("start", Some(value)));
    let named = figures.baselines.iter().map(|one| (one.name.as_str(), one.value));
    let all = start.into_iter().chain(named).map(|(name, value)| match value {
        Some(value) => format!("{} {} {}", cell(name), figure(value), figures.unit),
        None => format!("{} –", cell(name)),
    });
    all.collect::<Vec<_>>().join(", ")
}

/// Text for a cell of a table.
fn cell(text: &str) -> String {
    safe(text, WHY_MAX).replace('|', "\\|").replace('<', "&lt;")
}
