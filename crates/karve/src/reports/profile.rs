//! A profile for people: our own page, A's contract, and the report forms of B and C.

use super::text::{bounded, escaped, one_line};
use karve_core::profile::predicate::short;
use karve_core::profile::{Diagnosis, KernelProfile};
use serde::Serialize;
use std::fmt::Write;

/// Kernels that are shown in full.
const KERNELS_SHOWN: usize = 4;

/// Whose report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Form {
    /// Ours
    Karve,
    /// A's contract between profiler and orchestrator
    HyperMla,
    /// B's analysis: summary, metrics, findings, recommendations
    Coordinator,
    /// C's profile summary
    Primus,
}

/// A kernel with what follows from its counters.
#[derive(Clone, Debug, Serialize)]
pub struct Shown {
    /// The kernel and its counters.
    pub kernel: KernelProfile,
    /// What limits it.
    pub diagnosis: Diagnosis,
    /// Entries of the library that fit.
    pub entries: Vec<Fitting>,
}

/// An entry of the library that fits.
#[derive(Clone, Debug, Serialize)]
pub struct Fitting {
    /// The entry.
    pub id: String,
    /// One line.
    pub title: String,
    /// Why it fits.
    pub why: String,
}

/// A profile as text.
pub fn render(form: Form, title: &str, shown: &[Shown], notes: &[String]) -> String {
    match form {
        Form::Karve => render_own(title, shown, notes),
        Form::HyperMla => render_contract(title, shown),
        Form::Coordinator => render_analysis(title, shown),
        Form::Primus => render_summary(title, shown, notes),
    }
}

fn render_own(title: &str, shown: &[Shown], notes: &[String]) -> String {
    let mut text = format!("profile   {}\n", line(title, 200));
    for note in notes {
        let _ = writeln!(text, "note      {}", line(note, 300));
    }
    for Shown {
        kernel,
        diagnosis,
        entries,
    } in shown.iter().take(KERNELS_SHOWN)
    {
        let asked = diagnosis.asked.map_or_else(String::new, |asked| {
            format!(
                ", since those of {} say nothing of these counters",
                asked.name()
            )
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
            let _ = writeln!(
                text,
                "try       {}: up to {:.0}% of the time ({})",
                line(&opportunity.name, 120),
                opportunity.gain_pct,
                line(&opportunity.trigger, 160)
            );
        }
        for health in diagnosis.health.iter().filter(|health| !health.healthy) {
            let _ = writeln!(
                text,
                "unwell    {} = {}, healthy is {}: {}",
                health.counter,
                short(health.value),
                health.want,
                health.hint
            );
        }
        for entry in entries {
            let why = line(&entry.why, 160);
            let _ = writeln!(text, "knows     {}: {} ({why})", entry.id, entry.title);
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
    let more = shown.len().saturating_sub(KERNELS_SHOWN);
    if more > 0 {
        let _ = writeln!(text, "\nand {more} more kernels; --json shows all");
    }
    text
}

/// Text from elsewhere as one line of at most so many characters.
fn line(text: &str, max: usize) -> String {
    bounded(&one_line(text), max)
}

/// Text that fits into a cell of a table.
fn cell(text: &str) -> String {
    escaped(&line(text, 160))
}

fn percent(kernel: &KernelProfile, name: &str) -> String {
    kernel.value(name).map_or_else(|| "-".to_owned(), short)
}

/// A's contract.
fn render_contract(title: &str, shown: &[Shown]) -> String {
    let mut text = format!("## Profile: {}\n\n### Stages\n\n", line(title, 160));
    text.push_str(
        "| Stage | Duration (us) | TC% | DRAM% | Occ% | Bottleneck | Key Issue |\n\
         |---|---|---|---|---|---|---|\n",
    );
    for Shown {
        kernel, diagnosis, ..
    } in shown
    {
        let issue = diagnosis.opportunities.first().map(|o| o.name.as_str());
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | {} |",
            cell(&kernel.name),
            percent(kernel, "duration_us"),
            percent(kernel, "tensor_pct"),
            percent(kernel, "dram_pct"),
            percent(kernel, "occupancy_pct"),
            diagnosis.bottleneck.name(),
            cell(issue.unwrap_or("-"))
        );
    }
    let Some(first) = shown.first() else {
        return text;
    };
    let class = first.diagnosis.bottleneck.name();
    let mut capital = class.to_owned();
    capital[..1].make_ascii_uppercase();
    let _ = write!(
        text,
        "\n### Bottleneck: {capital}-bound\n\n{}\n\n### Top 3 Opportunities\n\n",
        first.diagnosis.root_cause
    );
    for (number, opportunity) in first.diagnosis.opportunities.iter().enumerate() {
        let _ = writeln!(
            text,
            "{}. {} — est. {:.0}% gain — trigger: {}",
            number + 1,
            line(&opportunity.name, 120),
            opportunity.gain_pct,
            line(&opportunity.trigger, 160)
        );
    }
    text
}

/// B's analysis.
fn render_analysis(title: &str, shown: &[Shown]) -> String {
    let mut text = format!("## Summary\n\n{}\n", line(title, 160));
    for Shown { diagnosis, .. } in shown.iter().take(KERNELS_SHOWN) {
        let _ = writeln!(
            text,
            "\n- {}: {}-bound (thresholds of {})",
            line(&diagnosis.kernel, 120),
            diagnosis.bottleneck.name(),
            diagnosis.rules.name()
        );
    }
    text.push_str("\n## Metrics\n\n| Kernel | Metric | Value | Source |\n|---|---|---|---|\n");
    for Shown { kernel, .. } in shown.iter().take(KERNELS_SHOWN) {
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
    for Shown { diagnosis, .. } in shown.iter().take(KERNELS_SHOWN) {
        let _ = writeln!(text, "\n- {}", diagnosis.root_cause);
    }
    text.push_str("\n## Recommendations\n\n");
    let all = shown.iter().flat_map(|s| &s.diagnosis.opportunities);
    for (number, opportunity) in all.take(6).enumerate() {
        let level = match opportunity.gain_pct {
            gain if gain >= 30.0 => "High",
            gain if gain >= 10.0 => "Medium",
            _ => "Low",
        };
        let _ = writeln!(
            text,
            "{}. [{level}] {} ({})",
            number + 1,
            line(&opportunity.name, 120),
            line(&opportunity.trigger, 160)
        );
    }
    text
}

/// C's profile summary.
fn render_summary(title: &str, shown: &[Shown], notes: &[String]) -> String {
    let mut text = format!(
        "# Profile summary: {}\n\n## Top kernels\n\n",
        line(title, 160)
    );
    text.push_str(
        "| Kernel | Time (us) | MFMA/TC % | HBM % | Occupancy % | Registers | Spill (B) |\n",
    );
    text.push_str("|---|---|---|---|---|---|---|\n");
    for Shown { kernel, .. } in shown {
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
    for Shown { diagnosis, .. } in shown.iter().take(KERNELS_SHOWN) {
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
