//! The trtllm casebook: one page per precedent, with front matter.

use super::{SourcePage, mark, renamed};
use crate::library::markdown::{front_matter_error, parse_sections, split_front_matter};
use karve_core::knowledge::{
    Entry, EntryBasis, EntryKind, EntrySection, Evidence, Interactions, Risk, Scope,
};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The front matter of a case. Either all figures are present or none.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct CaseFrontMatter {
    id: String,
    #[serde(rename = "type")]
    kind: String,
    family: String,
    maturity: String,
    bottleneck: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    signals: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    architectures: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    phase: Vec<String>,
    accuracy_risk: String,
    #[serde(skip_serializing_if = "Interactions::is_empty")]
    interactions: Interactions,
    #[serde(skip_serializing_if = "Option::is_none")]
    measured: Option<CaseMeasurement>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct CaseMeasurement {
    metric: String,
    value: String,
    gpu: String,
    workload: String,
    run_ref: String,
    date: String,
}

const HEADINGS: [(&str, &str); 2] = [("Applies when", "Applies when"), ("Apply via", "Recipe")];

pub(super) fn parse(text: &str) -> Result<Entry, String> {
    let (head, body) = split_front_matter(text)?;
    let head: CaseFrontMatter =
        serde_saphyr::from_str(head).map_err(|error| front_matter_error(head, &error))?;
    let (title, mut sections) = parse_sections(body);
    let is = |name: &'static str| move |s: &EntrySection| s.heading.eq_ignore_ascii_case(name);
    let counter = sections.iter().position(is("Counter-signals"));
    let counter_signals = counter.map(|at| bullets(&sections.remove(at).text));
    let applies = sections.iter().find(|s| is("Applies when")(s));
    let triggers = applies.map(|s| super::triggers_in(&s.text));
    sections.push(facts(&head));
    let mut entry = Entry {
        id: super::slug(&head.id),
        kind: EntryKind::Case,
        title: if title.is_empty() { head.id.clone() } else { title },
        basis: match head.maturity.as_str() {
            "verified-locally" => EntryBasis::Measured,
            _ => EntryBasis::Reported,
        },
        risk: match head.accuracy_risk.as_str() {
            "lossless" | "" => Risk::Lossless,
            "mixed" => Risk::Rounding,
            _ => Risk::Lossy,
        },
        scope: Scope { device: head.architectures, phase: head.phase, ..Scope::default() },
        triggers: triggers.unwrap_or_default(),
        counter_signals: counter_signals.unwrap_or_default(),
        interactions: head.interactions,
        date: head.measured.as_ref().map_or_else(String::new, |m| m.date.clone()),
        evidence: head.measured.and_then(evidence).into_iter().collect(),
        sections: renamed(sections, &HEADINGS),
        ..Entry::default()
    };
    if let Some(mark) = mark::of_page(body) {
        mark.put(&mut entry);
    }
    Ok(entry)
}

fn bullets(text: &str) -> Vec<String> {
    let lines = text.lines().map(|line| line.trim().trim_start_matches(['-', '*', ' ']));
    lines.filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

/// What an entry cannot store.
fn facts(head: &CaseFrontMatter) -> EntrySection {
    let facts = [
        format!("family: {}", head.family),
        format!("maturity: {}", head.maturity),
        format!("bottleneck: {}", head.bottleneck),
        format!("signals: {}", head.signals.join(", ")),
    ];
    EntrySection { heading: "Casebook".into(), text: facts.join("\n") }
}

/// One of those facts.
fn fact(entry: &Entry, name: &str) -> Option<String> {
    let mut lines = entry.section("Casebook").unwrap_or_default().lines();
    let found = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    found.filter(|text| !text.is_empty()).map(str::to_owned)
}

/// A value such as `1.23x` or `+12.5%` is a ratio; anything else is not usable.
fn evidence(measured: CaseMeasurement) -> Option<Evidence> {
    let value = measured.value.trim();
    let ratio = match value.strip_suffix(['x', '×']) {
        Some(ratio) => ratio.trim().parse().ok(),
        None => value
            .strip_suffix('%')
            .and_then(|percent| percent.trim().parse::<f64>().ok())
            .map(|percent| 1.0 + percent / 100.0),
    };
    Some(Evidence {
        metric: measured.metric,
        ratio: ratio.filter(|ratio: &f64| ratio.is_finite() && *ratio > 0.0)?,
        device: measured.gpu,
        workload: measured.workload,
        run: measured.run_ref,
        date: measured.date,
        n: 1,
        toolchain: "not reported".into(),
        ..Evidence::default()
    })
}

pub(super) fn render(entry: &Entry) -> Result<SourcePage, String> {
    let head = head_of(entry);
    let folder = super::slug(&head.family);
    let head = serde_saphyr::to_string(&head).map_err(|error| error.to_string())?;
    let (head, mark) = (head.trim_end(), mark::render(entry));
    let mut text = format!("---\n{head}\n---\n\n# {}\n\n{mark}\n", entry.title);
    let counters = entry.counter_signals.iter().map(|s| format!("- {s}"));
    let counters = counters.collect::<Vec<_>>().join("\n");
    for (heading, ours, otherwise) in BODY {
        let own = ours.iter().find_map(|name| entry.section(name));
        let body = match *heading {
            "Counter-signals" => counters.as_str(),
            _ => own.unwrap_or(otherwise).trim(),
        };
        if !body.is_empty() {
            text.push_str(&format!("\n## {heading}\n\n{body}\n"));
        }
    }
    Ok(SourcePage { path: PathBuf::from(folder).join(format!("{}.md", entry.id)), text })
}

/// The sections of a case, our names for them, and their default text.
const BODY: &[(&str, &[&str], &str)] = &[
    ("Applies when", &["Applies when", "When to apply"], ""),
    ("Counter-signals", &[], ""),
    ("Mechanism", &["Mechanism"], ""),
    ("Generalizes to", &["Generalizes to", "Generalization"], ""),
    ("Apply via", &["Recipe", "Apply via"], ""),
    ("Expected effect", &["Expected effect", "Affected metrics"], ""),
    ("Accuracy risk", &["Accuracy risk", "Accuracy"], ""),
    ("Verify", &["Verify"], "Test and measure against the parent: `karve bench`."),
    ("Rollback", &["Rollback"], "Undo it when it is more than 5% slower."),
    ("Prior art", &["Prior art"], ""),
];

fn head_of(entry: &Entry) -> CaseFrontMatter {
    let measured = entry.evidence.last().map(|e| CaseMeasurement {
        metric: e.metric.clone(),
        value: format!("{:.3}x", e.ratio),
        gpu: e.device.clone(),
        workload: e.workload.clone(),
        run_ref: e.run.clone(),
        date: e.date.clone(),
    });
    let maturity = match (&measured, entry.basis) {
        (Some(_), EntryBasis::Measured) => "verified-locally",
        _ => "full",
    };
    CaseFrontMatter {
        id: entry.id.clone(),
        kind: "case".into(),
        maturity: maturity.into(),
        bottleneck: fact(entry, "bottleneck").unwrap_or_else(|| "unknown".into()),
        signals: match fact(entry, "signals") {
            None => entry.triggers.iter().take(5).cloned().collect(),
            Some(signals) => signals.split(", ").map(str::to_owned).collect(),
        },
        architectures: entry.scope.device.clone(),
        phase: entry.scope.phase.clone(),
        accuracy_risk: match entry.risk {
            Risk::Lossless => "lossless".into(),
            Risk::Rounding => "mixed".into(),
            Risk::Lossy => "lossy".into(),
        },
        interactions: entry.interactions.clone(),
        measured,
        family: fact(entry, "family").unwrap_or_else(|| "kernel-and-fusion".into()),
    }
}
