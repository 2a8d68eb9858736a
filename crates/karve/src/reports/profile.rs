//! A profile for people: karve's own page, the hyper-mla contract, and the trtllm and primus forms.

use super::contract;
use super::text::{bounded, escaped, one_line};
use karve_core::profile::compare::compare_kernels;
use karve_core::profile::predicate::short;
use karve_core::profile::{Diagnosis, KernelProfile, Opportunity};
use karve_profile::profilers::contract::ConfigPlacement;
use serde::Serialize;
use std::collections::BTreeSet;
use std::fmt::Write;

/// How many kernels are shown in full.
const KERNELS_SHOWN: usize = 4;

/// The report format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum ReportFormat {
    /// karve's own report
    Karve,
    /// The hyper-mla profiler contract, with the configuration in the title
    HyperMla,
    /// The hyper-mla profiler contract, with the configuration in a table
    HyperMlaTable,
    /// The trtllm analysis: summary, metrics, findings, recommendations
    Trtllm,
    /// The primus profile summary
    Primus,
}

/// A kernel with its diagnosis.
#[derive(Clone, Debug, Serialize)]
pub struct KernelReport {
    /// The kernel and its counters.
    pub kernel: KernelProfile,
    /// What limits it.
    pub diagnosis: Diagnosis,
    /// Matching entries of the library.
    pub entries: Vec<FittingEntry>,
    /// The changes since an earlier profile, if there is one of this kernel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub against: Option<KernelComparison>,
}

/// A kernel compared with an earlier profile of it.
#[derive(Clone, Debug, Serialize)]
pub struct KernelComparison {
    /// The kernel there.
    pub kernel: String,
    /// The counters that the same tool reported for both.
    pub counters: Vec<CounterComparison>,
}

/// A counter before and after.
#[derive(Clone, Debug, Serialize)]
pub struct CounterComparison {
    /// The counter.
    pub counter: String,
    /// Before.
    pub before: f64,
    /// After.
    pub after: f64,
    /// The change in percent; nothing if it was zero before.
    pub change_pct: Option<f64>,
    /// Whether that is good; nothing if it is unchanged, or neither good nor bad.
    pub is_better: Option<bool>,
    /// Whether it changed by more than a minimal amount.
    pub has_moved: bool,
    /// Whether it depends on a time that was read only once on each side: then it is inconclusive.
    pub is_one_reading: bool,
}

/// Counters that depend on the time of one run.
const OF_ONE_RUN: [&str; 9] = [
    "duration_us",
    "ceiling_pct",
    "cpu_busy_pct",
    "clock_hz",
    "ipc",
    "cycles",
    "context_switches",
    "migrations",
    "page_faults",
];
/// The tools that read them once, on a host that may be busy.
const READ_ONCE: [&str; 3] = ["perf", "benchmark", "roofline"];

impl ReportFormat {
    /// Whether it is the hyper-mla contract, in either variant.
    pub fn is_contract(self) -> bool {
        match self {
            Self::HyperMla | Self::HyperMlaTable => true,
            Self::Karve | Self::Trtllm | Self::Primus => false,
        }
    }
}

impl KernelComparison {
    /// Whether the two have no counter in common.
    pub fn is_empty(&self) -> bool {
        self.counters.is_empty()
    }

    /// Compares what the same tool reported for both: figures of different tools are not
    /// comparable.
    pub fn of(before: &KernelProfile, after: &KernelProfile) -> Self {
        let tool = |kernel: &KernelProfile, name: &str| {
            let counter = kernel.counters.get(name);
            counter.map(|counter| counter.source.tool.clone())
        };
        let moved = compare_kernels(before, after).into_iter();
        let same = moved.filter(|m| tool(before, &m.counter) == tool(after, &m.counter));
        let once = |name: &str| {
            let by = tool(after, name).unwrap_or_default();
            OF_ONE_RUN.contains(&name) && READ_ONCE.contains(&by.as_str())
        };
        let change = same.map(|moved| CounterComparison {
            change_pct: moved.change_pct(),
            is_better: moved.is_better().filter(|_| !once(&moved.counter)),
            has_moved: moved.way().is_some() && !once(&moved.counter),
            is_one_reading: once(&moved.counter),
            counter: moved.counter,
            before: moved.before,
            after: moved.after,
        });
        Self { kernel: before.name.clone(), counters: change.collect() }
    }
}

impl CounterComparison {
    /// As `150 -> 128 (-14.7%), better`.
    fn describe(&self) -> String {
        let (before, after) = (short(self.before), short(self.after));
        let change = self.change_pct.map(|change| format!(" ({change:+.1}%)"));
        let word = match self.is_better {
            Some(true) => ", better",
            Some(false) => ", worse",
            None => "",
        };
        format!("{before} -> {after}{}{word}", change.unwrap_or_default())
    }
}

/// The contents of a report.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProfilePage<'a> {
    /// What was profiled.
    pub title: &'a str,
    /// The operation or kernel; the name of the first kernel if it is empty.
    pub kernel: &'a str,
    /// Which version of it.
    pub version: &'a str,
    /// The known parameters of the case.
    pub configuration: &'a [(String, String)],
    /// The kernels, the one that takes longest first.
    pub shown: &'a [KernelReport],
    /// What else a reader should know.
    pub notes: &'a [String],
    /// What the kernels are compared with.
    pub against: Option<&'a str>,
}

/// A matching entry of the library.
#[derive(Clone, Debug, Serialize)]
pub struct FittingEntry {
    /// The entry.
    pub id: String,
    /// One line.
    pub title: String,
    /// The gain that it claims, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub impact: Option<String>,
    /// Why it matches.
    pub why: String,
}

/// A profile as text.
pub fn render(form: ReportFormat, page: &ProfilePage<'_>) -> String {
    match form {
        ReportFormat::Karve => render_own(page),
        ReportFormat::HyperMla => contract::render(ConfigPlacement::Title, page),
        ReportFormat::HyperMlaTable => contract::render(ConfigPlacement::Table, page),
        ReportFormat::Trtllm => render_analysis(page.title, page.shown),
        ReportFormat::Primus => render_summary(page.title, page.shown, page.notes),
    }
}

fn render_own(page: &ProfilePage<'_>) -> String {
    let mut text = format!("profile   {}\n", line(page.title, 200));
    if let Some(earlier) = page.against {
        let _ = writeln!(text, "against   {}", line(earlier, 200));
    }
    for note in page.notes {
        let _ = writeln!(text, "note      {}", line(note, 300));
    }
    for shown in page.shown.iter().take(KERNELS_SHOWN) {
        render_kernel(shown, &mut text);
    }
    let more = page.shown.len().saturating_sub(KERNELS_SHOWN);
    if more > 0 {
        let _ = writeln!(text, "\nand {more} more kernels; --json shows all");
    }
    text
}

fn render_kernel(shown: &KernelReport, text: &mut String) {
    let KernelReport { kernel, diagnosis, entries, against } = shown;
    let asked = diagnosis.requested.map_or_else(String::new, |asked| {
        format!(", because the {} rules are inconclusive here", asked.name())
    });
    let _ = writeln!(
        text,
        "\nkernel    {}\nlimit     {} (rules of {}{asked})\nbecause   {}\ncause     {}",
        line(&kernel.name, 160),
        diagnosis.bottleneck.name(),
        diagnosis.rules.name(),
        diagnosis.because,
        diagnosis.root_cause
    );
    for opportunity in &diagnosis.opportunities {
        let entry = opportunity.entry.as_ref();
        let entry = entry.map_or_else(String::new, |id| {
            let known = entries.iter().find(|entry| entry.id == *id);
            let impact = known.and_then(|entry| entry.impact.as_ref());
            let impact = impact.map(|range| format!(", which reports {range}"));
            format!("; see {id}{}", impact.unwrap_or_default())
        });
        let _ = writeln!(
            text,
            "try       {}: could save about {:.0}% of the time by these counters ({}){entry}",
            line(&opportunity.name, 200),
            opportunity.gain_pct,
            line(&opportunity.trigger, 160)
        );
    }
    for health in diagnosis.health.iter().filter(|health| !health.healthy) {
        let _ = writeln!(
            text,
            "unhealthy {} = {}, healthy is {}: {}",
            health.counter,
            short(health.value),
            health.want,
            health.hint
        );
    }
    for entry in entries {
        let why = line(&entry.why, 160);
        let _ = writeln!(text, "library   {}: {} ({why})", entry.id, entry.title);
    }
    if let Some(against) = against {
        render_against(against, &kernel.name, text);
    }
    for (name, counter) in &kernel.counters {
        let _ = writeln!(
            text,
            "  {name:<24} {:>14}  {}",
            short(counter.value),
            line(&counter.source.describe(), 120)
        );
    }
}

/// The counters that changed, the time first, and how many did not.
fn render_against(against: &KernelComparison, kernel: &str, text: &mut String) {
    if against.kernel != kernel {
        let _ = writeln!(text, "before    {}", line(&against.kernel, 160));
    }
    let mut moved: Vec<&CounterComparison> =
        against.counters.iter().filter(|c| c.has_moved).collect();
    moved.sort_by_key(|change| change.counter != "duration_us");
    for change in &moved {
        let _ = writeln!(text, "moved     {}: {}", change.counter, change.describe());
    }
    let once = against.counters.iter().filter(|c| c.is_one_reading);
    let once: Vec<&CounterComparison> = once.collect();
    for change in &once {
        let _ = writeln!(
            text,
            "once      {}: {}, only one reading each: not comparable",
            change.counter,
            change.describe()
        );
    }
    let still = against.counters.len() - moved.len() - once.len();
    let _ = writeln!(text, "unchanged {still} counters that both profiles have");
}

/// Untrusted text as one line of at most this many characters.
pub(super) fn line(text: &str, max: usize) -> String {
    bounded(&one_line(text), max)
}

/// Text that fits into a cell of a table.
pub(super) fn cell(text: &str) -> String {
    escaped(&line(text, 160))
}

fn percent(kernel: &KernelProfile, name: &str) -> String {
    kernel.value(name).map_or_else(|| "-".to_owned(), short)
}

/// The trtllm analysis.
fn render_analysis(title: &str, shown: &[KernelReport]) -> String {
    let mut text = format!("## Summary\n\n{}\n", line(title, 160));
    for KernelReport { diagnosis, .. } in shown.iter().take(KERNELS_SHOWN) {
        let _ = writeln!(
            text,
            "\n- {}: {}-bound (thresholds of {})",
            line(&diagnosis.kernel, 120),
            diagnosis.bottleneck.name(),
            diagnosis.rules.name()
        );
    }
    text.push_str("\n## Metrics\n\n| Kernel | Metric | Value | Source |\n|---|---|---|---|\n");
    for KernelReport { kernel, .. } in shown.iter().take(KERNELS_SHOWN) {
        for (name, counter) in &kernel.counters {
            let _ = writeln!(
                text,
                "| {} | {name} | {} | {} |",
                cell(&kernel.name),
                short(counter.value),
                cell(&counter.source.describe())
            );
        }
    }
    text.push_str("\n## Findings\n");
    for KernelReport { diagnosis, .. } in shown.iter().take(KERNELS_SHOWN) {
        let kernel = line(&diagnosis.kernel, 120);
        let _ = writeln!(text, "\n- {kernel}: {}", diagnosis.root_cause);
    }
    text.push_str("\n## Recommendations\n\n");
    // Each piece of advice once, for the kernel where it promises most.
    let of_kernel = |shown: &'_ KernelReport| {
        let tries = shown.diagnosis.opportunities.clone().into_iter();
        let kernel = line(&shown.kernel.name, 80);
        tries.map(move |opportunity| (kernel.clone(), opportunity))
    };
    let mut all: Vec<(String, Opportunity)> = shown.iter().flat_map(of_kernel).collect();
    all.sort_by(|a, b| b.1.gain_pct.total_cmp(&a.1.gain_pct));
    let mut seen = BTreeSet::new();
    all.retain(|(_, opportunity)| seen.insert(opportunity.name.clone()));
    for (number, (kernel, opportunity)) in all.iter().take(6).enumerate() {
        let level = match opportunity.gain_pct {
            gain if gain >= 30.0 => "High",
            gain if gain >= 10.0 => "Medium",
            _ => "Low",
        };
        let _ = writeln!(
            text,
            "{}. [{level}] {} ({kernel}: {})",
            number + 1,
            line(&opportunity.name, 200),
            line(&opportunity.trigger, 160)
        );
    }
    text
}

/// The primus profile summary.
fn render_summary(title: &str, shown: &[KernelReport], notes: &[String]) -> String {
    let mut text = format!("# Profile summary: {}\n\n## Top kernels\n\n", line(title, 160));
    text.push_str(
        "| Kernel | Time (us) | MFMA/TC % | HBM % | Occupancy % | Registers | Spill (B) |\n",
    );
    text.push_str("|---|---|---|---|---|---|---|\n");
    for KernelReport { kernel, .. } in shown {
        let of = |name: &str| percent(kernel, name);
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | {} |",
            cell(&kernel.name),
            of("duration_us"),
            of("tensor_pct"),
            of("dram_pct"),
            of("occupancy_pct"),
            of("registers"),
            of("spill_bytes")
        );
    }
    text.push_str("\n## Observations\n\n");
    for KernelReport { diagnosis, .. } in shown.iter().take(KERNELS_SHOWN) {
        let _ = writeln!(
            text,
            "- bottleneck_class: {} ({}): {}",
            diagnosis.bottleneck.name(),
            diagnosis.rules.name(),
            diagnosis.root_cause
        );
    }
    for note in notes {
        let _ = writeln!(text, "- {}", line(note, 300));
    }
    text
}
