//! A bench for people: text for a terminal, and a Markdown table for a pull request.

use super::record::BenchSide;
use super::view::{BenchView, CaseView, ClockView, percent_text};
use crate::ui::style::{Tone, toned};
use karve_core::comparison::Estimate;
pub use karve_core::score::{count, figure};
use karve_core::verdict::{BenchFinding, LimitVerdict};
pub use karve_os::text::safe;

/// Columns for the name of a case or a side.
const NAME_CHARS: usize = 60;

/// The result as text.
pub fn render_text(view: &BenchView, color: bool) -> String {
    let tone = match view.finding {
        BenchFinding::Faster { .. } => Tone::Good,
        BenchFinding::Slower { .. } | BenchFinding::ClocksDisagree { .. } => Tone::Bad,
        BenchFinding::NoDifference { .. } | BenchFinding::CouldNotTell => Tone::Strong,
    };
    let telling = view.deciding_clock();
    let mut lines = vec![
        toned(&view.words, tone, color),
        format!("A         {}", side(&view.a)),
        format!("B         {}", side(&view.b)),
        format!(
            "ratio     {} by {}, {} pairs in {:.1} s",
            estimate(&telling.estimate),
            telling.name,
            view.pairs,
            view.seconds
        ),
    ];
    for clock in &view.clocks {
        lines.push(format!("clock     {}", clock_line(clock, view)));
    }
    lines.push(String::new());
    lines.extend(case_table(view));
    lines.push(String::new());
    lines.push(format!("smallest  {}", smallest(view)));
    if let Some(limit) = &view.limit {
        let state = limit_words(limit.state);
        lines.push(format!("limit     {} slower: {state}", percent_text(limit.percent)));
    }
    lines.push(format!("host      {}", host(view)));
    for warning in &view.warnings {
        lines.push(format!("note      {warning}"));
    }
    lines.join("\n") + "\n"
}

/// The result as Markdown.
pub fn render_markdown(view: &BenchView) -> String {
    let mut lines = vec![
        format!("**{}**", cell(&view.words)),
        String::new(),
        format!("- A: `{}`", code(&view.a)),
        format!("- B: `{}`", code(&view.b)),
        String::new(),
        format!(
            "| case | finding | ratio A/B | 95% interval | A ({0}) | B ({0}) |",
            cell(format!("{} {}", view.metric, view.unit).trim())
        ),
        "|---|---|---|---|---|---|".to_owned(),
    ];
    for case in &view.cases {
        lines.push(format!(
            "| {} | {} | {:.3}x{} | {} | {} | {} |",
            cell(&case.case),
            case.finding.word_beside(&case.estimate),
            case.estimate.ratio,
            by_another(case, view),
            interval(&case.estimate),
            figure(case.a_median),
            figure(case.b_median),
        ));
    }
    let telling = view.deciding_clock();
    lines.push(format!(
        "| **overall** ({}) | {} | {:.3}x | {} | | |",
        telling.name,
        view.finding.word(),
        telling.estimate.ratio,
        interval(&telling.estimate),
    ));
    lines.push(String::new());
    lines.push(format!(
        "{} interleaved pairs in random order, {:.1} s, alpha {}. {}. Host: {}.",
        view.pairs,
        view.seconds,
        view.rule.alpha,
        capital(&smallest(view)),
        cell(&host(view)),
    ));
    lines.extend(view.warnings.iter().map(|text| format!("\nNote: {text}.")));
    lines.join("\n") + "\n"
}

fn capital(text: &str) -> String {
    let mut characters = text.chars();
    let first = characters.next().map(|c| c.to_uppercase().to_string());
    first.unwrap_or_default() + characters.as_str()
}

fn cell(text: &str) -> String {
    safe(text, 200).replace('\\', "\\\\").replace('|', "\\|")
}

fn code(side: &BenchSide) -> String {
    // A backtick would end the code, and a bar the cell.
    let text = self::side(side);
    text.replace('`', "'")
}

fn side(side: &BenchSide) -> String {
    let label = safe(&side.label, NAME_CHARS);
    let Some(commit) = &side.commit else {
        return label;
    };
    let short = commit.get(..10).unwrap_or(commit);
    let changed = match side.changed.len() {
        0 => String::new(),
        _ => format!(" with changes to {}", safe(&side.changed.join(", "), 100)),
    };
    format!("{label} ({short}){changed}")
}

fn estimate(estimate: &Estimate) -> String {
    match (estimate.low, estimate.high) {
        (Some(low), Some(high)) => {
            format!("{:.3}x, 95% interval {low:.3}x to {high:.3}x", estimate.ratio)
        }
        _ if estimate.ratio.is_finite() => format!("{:.3}x", estimate.ratio),
        _ => "none yet".to_owned(),
    }
}

fn interval(estimate: &Estimate) -> String {
    match (estimate.low, estimate.high) {
        (Some(low), Some(high)) => format!("{low:.3} to {high:.3}"),
        _ => "-".to_owned(),
    }
}

fn clock_line(clock: &ClockView, view: &BenchView) -> String {
    if !clock.counts {
        return format!(
            "{:<10} {}; does not count: no run showed a single thread that never waits (see \
             --clocks of \"karve bench\")",
            clock.name,
            estimate(&clock.estimate)
        );
    }
    format!(
        "{:<10} {}; evidence faster {}, slower {} (needs {}), same {} (needs {})",
        clock.name,
        estimate(&clock.estimate),
        count(clock.evidence_faster),
        count(clock.evidence_slower),
        count(view.rule.evidence_needed),
        count(clock.evidence_same),
        count(view.rule.same_needed),
    )
}

fn case_table(view: &BenchView) -> Vec<String> {
    let width = view.cases.iter().map(|case| case.case.chars().count());
    let width = width.max().unwrap_or(4).clamp(4, NAME_CHARS);
    let unit = safe(&view.unit, 12);
    let ratios: Vec<String> = view.cases.iter().map(|c| case_ratio(c, view)).collect();
    let widest = ratios.iter().map(|ratio| ratio.chars().count()).max();
    let wide = widest.unwrap_or(0).clamp(24, NAME_CHARS);
    let mut lines = vec![format!(
        "{:<width$}  {:<14}  {:<wide$}  {:>12}  {:>12}  {:>12}  {:>12}",
        "case", "finding", "ratio", "A median", "B median", "A mean", "B mean"
    )];
    for (case, ratio) in view.cases.iter().zip(&ratios) {
        let with_unit = |value: f64| format!("{} {unit}", figure(value));
        lines.push(
            format!(
                "{:<width$}  {:<14}  {ratio:<wide$}  {:>12}  {:>12}  {:>12}  {:>12}",
                safe(&case.case, NAME_CHARS),
                case.finding.word_beside(&case.estimate),
                with_unit(case.a_median).trim(),
                with_unit(case.b_median).trim(),
                with_unit(case.a_mean).trim(),
                with_unit(case.b_mean).trim(),
            )
            .trim_end()
            .to_owned(),
        );
    }
    lines
}

/// The ratio of a case with its interval.
fn case_ratio(case: &CaseView, view: &BenchView) -> String {
    let Estimate { ratio, low, high } = case.estimate;
    let shown = match (low, high) {
        (Some(low), Some(high)) => format!("{ratio:.3}x [{low:.3}, {high:.3}]"),
        _ if ratio.is_finite() => format!("{ratio:.3}x"),
        _ => "-".to_owned(),
    };
    shown + &by_another(case, view)
}

/// The clock of a case, if it is not the one that the medians come from.
fn by_another(case: &CaseView, view: &BenchView) -> String {
    match view.clocks.first() {
        Some(main) if main.name != case.by => format!(" by {}", case.by),
        Some(_) | None => String::new(),
    }
}

fn smallest(view: &BenchView) -> String {
    match view.smallest_percent {
        Some(percent) => format!(
            "this host shows a difference of {} four times out of five, within {} pairs",
            percent_text(percent),
            view.rule.pairs_max
        ),
        None if view.pairs < 8 => "too few pairs to say which difference would show".to_owned(),
        None => "not even a 2x speedup shows reliably on this host".to_owned(),
    }
}

fn limit_words(state: LimitVerdict) -> &'static str {
    match state {
        LimitVerdict::Beyond => "proven",
        LimitVerdict::Within => "disproven",
        LimitVerdict::NotProven => "neither proven nor disproven",
    }
}

fn host(view: &BenchView) -> String {
    let fact = |name: &str| view.environment.get(name).cloned();
    let mut parts: Vec<String> = fact("cpu").into_iter().collect();
    parts.extend(fact("cores").map(|cores| format!("{cores} cores")));
    parts.extend(fact("kernel").map(|kernel| format!("kernel {kernel}")));
    parts.extend(fact("governor").map(|governor| format!("governor {governor}")));
    if let Some(load) = fact("load") {
        let three: Vec<&str> = load.split(' ').take(3).collect();
        parts.push(format!("load {}", three.join(" ")));
    }
    parts.extend(fact("sandbox").map(|layers| format!("sandbox: {layers}")));
    safe(&parts.join(", "), 300)
}
