//! A profile in the hyper-mla contract, in both published variants: valid for karve's own parser,
//! and explicit if the contract has no class for the finding.

use super::profile::{CounterComparison, KernelComparison, KernelReport, ProfilePage, cell, line};
use karve_core::profile::classify::with_derived;
use karve_core::profile::predicate::short;
use karve_core::profile::{Bottleneck, Opportunity};
use karve_profile::profilers::contract::{
    BottleneckClass, ConfigPlacement, NONE, OPPORTUNITIES_MAX, PERCENT_MAX, STAGE_COLUMNS,
    VERSUS_COLUMNS, pairs,
};
use std::fmt::Write;

/// The most rows of the comparison.
const VERSUS_ROWS: usize = 16;
/// The most characters of a name in the title.
const NAME_CHARS: usize = 120;
/// The counters of the stages, which come first in a comparison.
const STAGE_COUNTERS: [&str; 4] = ["duration_us", "tensor_pct", "dram_pct", "occupancy_pct"];

/// A profile as a report that satisfies the contract.
pub(super) fn render(variant: ConfigPlacement, page: &ProfilePage<'_>) -> String {
    let mut text = heading(variant, page);
    text.push_str("### Stages\n");
    push_row(&mut text, &STAGE_COLUMNS);
    push_row(&mut text, &["---"; STAGE_COLUMNS.len()]);
    for shown in page.shown {
        let [duration, tensor, dram, occupancy] = STAGE_COUNTERS.map(|name| figure(shown, name));
        let issue = shown.diagnosis.opportunities.first();
        let issue = issue.map_or_else(String::new, |issue| cell(&issue.name));
        let row = [
            filled(cell(&shown.kernel.name)),
            duration,
            tensor,
            dram,
            occupancy,
            stage_class(shown),
            filled(issue),
        ];
        push_row(&mut text, &row);
    }
    let Some(first) = page.shown.first() else {
        return text;
    };
    let class = class_of(first).name();
    let _ = write!(
        text,
        "\n### Bottleneck: {class}-bound\nRoot cause: {}\n\n\
         ### Top 3 Opportunities (ranked by estimated impact)\n",
        root_cause(first)
    );
    let tries = &first.diagnosis.opportunities;
    for (number, opportunity) in tries.iter().take(OPPORTUNITIES_MAX).enumerate() {
        let _ = writeln!(text, "{}. {}", number + 1, one_try(opportunity));
    }
    if tries.is_empty() {
        text.push_str("none\n");
    }
    if let Some(against) = &first.against {
        push_versus(&mut text, against, &first.kernel.name);
    }
    text
}

fn push_row<T: AsRef<str>>(text: &mut String, cells: &[T]) {
    let cells: Vec<&str> = cells.iter().map(AsRef::as_ref).collect();
    let _ = writeln!(text, "| {} |", cells.join(" | "));
}

fn filled(cell: String) -> String {
    if cell.is_empty() { NONE.to_owned() } else { cell }
}

/// The title with the configuration, or the configuration as a table below it.
fn heading(variant: ConfigPlacement, page: &ProfilePage<'_>) -> String {
    let own = page.shown.first().map(|shown| shown.kernel.name.as_str());
    let own = own.and_then(|name| name.split('(').next());
    let kernel = match page.kernel {
        "" => own.unwrap_or_default(),
        kernel => kernel,
    };
    let word = |name: &str| filled(line(&plain(name), NAME_CHARS));
    let version = word(page.version).replace(' ', "_");
    let title = format!("## Profile: {} {version}", word(kernel));
    let mut pairs: Vec<(String, String)> = Vec::new();
    for (name, value) in page.configuration {
        let (name, value) = (word(name), word(value));
        if pairs.iter().all(|(known, _)| *known != name) {
            pairs.push((name, value));
        }
    }
    if pairs.is_empty() {
        pairs.push(("case".to_owned(), NONE.to_owned()));
    }
    match variant {
        ConfigPlacement::Title => {
            let pairs: Vec<String> = pairs.iter().map(|(n, v)| format!("{n}={v}")).collect();
            format!("{title} | {}\n\n", pairs.join(", "))
        }
        ConfigPlacement::Table => {
            let mut text = format!("{title}\n\n### Configuration\n");
            let (names, values): (Vec<String>, Vec<String>) = pairs.into_iter().unzip();
            push_row(&mut text, &names);
            push_row(&mut text, &vec!["---"; names.len()]);
            push_row(&mut text, &values);
            text.push('\n');
            text
        }
    }
}

/// Without the separators of the title.
fn plain(name: &str) -> String {
    let parts = |c: char| if "|,=\\".contains(c) { '_' } else { c };
    name.chars().map(parts).collect()
}

/// A figure of a stage; a value that is out of range is left blank.
fn figure(shown: &KernelReport, name: &str) -> String {
    let most = if name.ends_with("_pct") { PERCENT_MAX } else { f64::MAX };
    let value = shown.kernel.value(name);
    let reported = value.filter(|value| (0.0..=most).contains(value));
    reported.map_or_else(|| NONE.to_owned(), short)
}

/// The contract's class for a bottleneck. Low utilization counts as latency; a balanced kernel
/// gets the class of the unit that is used more.
fn class_of(shown: &KernelReport) -> BottleneckClass {
    match shown.diagnosis.bottleneck {
        Bottleneck::Memory => BottleneckClass::Memory,
        Bottleneck::Compute => BottleneckClass::Compute,
        Bottleneck::Latency
        | Bottleneck::Occupancy
        | Bottleneck::Launch
        | Bottleneck::Communication
        | Bottleneck::Sync
        | Bottleneck::Unknown => BottleneckClass::Latency,
        Bottleneck::Balanced => {
            let values = with_derived(&shown.kernel);
            let most = |names: [&str; 2]| {
                let read = names.iter().filter_map(|name| values.get(*name)).copied();
                read.reduce(f64::max)
            };
            let memory = most(["memory_pct", "dram_pct"]);
            match (memory, most(["compute_pct", "tensor_pct"])) {
                (Some(memory), Some(compute)) if compute > memory => BottleneckClass::Compute,
                (Some(_), _) => BottleneckClass::Memory,
                (None, Some(_)) => BottleneckClass::Compute,
                (None, None) => BottleneckClass::Latency,
            }
        }
    }
}

/// Whether the contract has exactly this class.
fn has_class(shown: &KernelReport) -> bool {
    let own = shown.diagnosis.bottleneck.name();
    class_of(shown).name().eq_ignore_ascii_case(own)
}

fn stage_class(shown: &KernelReport) -> String {
    let class = class_of(shown).name();
    if has_class(shown) {
        class.to_owned()
    } else {
        format!("{class} ({})", shown.diagnosis.bottleneck.name())
    }
}

/// The root cause, with the original class if the contract does not have it.
fn root_cause(shown: &KernelReport) -> String {
    let class = class_of(shown).name().to_lowercase();
    let own = shown.diagnosis.bottleneck;
    let cause = line(&shown.diagnosis.root_cause, 1_000);
    if has_class(shown) {
        return cause;
    }
    if own == Bottleneck::Unknown {
        return format!("Unknown, reported as {class} because a class is required: {cause}");
    }
    let own = own.name();
    format!("It is {own}, reported as {class} because the contract has no such class: {cause}")
}

fn one_try(opportunity: &Opportunity) -> String {
    let gain = match opportunity.gain_pct {
        gain if gain >= 1.0 => format!("{gain:.0}"),
        gain => short(gain),
    };
    let reported = line(&opportunity.trigger, 160);
    // A profiler's free-text advice is based on the gain that the profiler estimated.
    let trigger = match pairs(&reported) {
        Some(_) => reported,
        None => format!("estimated_gain_pct={}", short(opportunity.gain_pct)),
    };
    let name = filled(line(&opportunity.name, NAME_CHARS));
    format!("{name} — est. {gain}% gain — trigger: {trigger}")
}

/// The figures of the stages first, then the counters that changed.
fn push_versus(text: &mut String, against: &KernelComparison, kernel: &str) {
    let of_stage = |name: &&str| {
        let mut counters = against.counters.iter();
        counters.find(|c| c.counter == **name && !c.is_one_reading)
    };
    let mut rows: Vec<&CounterComparison> = STAGE_COUNTERS.iter().filter_map(of_stage).collect();
    let is_new = |change: &&CounterComparison| !STAGE_COUNTERS.contains(&change.counter.as_str());
    rows.extend(against.counters.iter().filter(|c| c.has_moved).filter(is_new));
    if rows.is_empty() {
        return;
    }
    text.push_str("\n### vs Baseline\n");
    push_row(text, &VERSUS_COLUMNS);
    push_row(text, &["---"; VERSUS_COLUMNS.len()]);
    if against.kernel != kernel {
        let (before, after) = (filled(cell(&against.kernel)), filled(cell(kernel)));
        push_row(text, &["kernel", &before, &after, NONE]);
    }
    for change in rows.into_iter().take(VERSUS_ROWS) {
        let (before, after) = (short(change.before), short(change.after));
        let percent = change.change_pct.map(|change| format!("{change:+.1}%"));
        let percent = percent.unwrap_or_else(|| NONE.to_owned());
        push_row(text, &[change.counter.as_str(), &before, &after, &percent]);
    }
}

#[cfg(test)]
mod tests;
