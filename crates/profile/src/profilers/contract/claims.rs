//! A report of an agent as claims under karve's own names, so that they can be held against its
//! counters.

use super::{BottleneckClass, ProfilerReport, parse};
use karve_core::markdown::message_from;
use karve_core::profile::counters::known;
use karve_core::profile::{Bottleneck, REPORT_CHARS_MAX, ReportClaims, ReportedValue};

/// The start of a report.
const TITLE: &str = "## Profile:";

/// What the answer of an agent claims, or everything that is wrong with it. Text around the report
/// and a fence are ignored.
pub fn claims_of(answer: &str) -> Result<ReportClaims, Vec<String>> {
    let Some(text) = message_from(answer, TITLE) else {
        return Err(vec![format!("there is no line \"{TITLE} <kernel> <version>\"")]);
    };
    if text.chars().count() > REPORT_CHARS_MAX {
        return Err(vec![format!("the report has more than {REPORT_CHARS_MAX} characters")]);
    }
    let report = parse(&text)?;
    Ok(ReportClaims { bottleneck: class_of(report.bottleneck), values: values_of(&report), text })
}

fn class_of(class: BottleneckClass) -> Bottleneck {
    match class {
        BottleneckClass::Memory => Bottleneck::Memory,
        BottleneckClass::Compute => Bottleneck::Compute,
        BottleneckClass::Latency => Bottleneck::Latency,
    }
}

/// The figures of the stages, and the triggers that name a counter.
fn values_of(report: &ProfilerReport) -> Vec<ReportedValue> {
    let value = |stage: &str, counter: &str, value: f64| ReportedValue {
        stage: stage.to_owned(),
        counter: counter.to_owned(),
        value,
    };
    let stages = report.stages.iter().flat_map(|stage| {
        let figures = [
            ("duration_us", stage.duration_us),
            ("tensor_pct", stage.tensor_pct),
            ("dram_pct", stage.dram_pct),
            ("occupancy_pct", stage.occupancy_pct),
        ];
        let told = figures.into_iter().filter_map(|(counter, figure)| Some((counter, figure?)));
        told.map(|(counter, figure)| value(&stage.name, counter, figure)).collect::<Vec<_>>()
    });
    let triggers = report.opportunities.iter().flat_map(|opportunity| &opportunity.trigger);
    let triggers = triggers.filter_map(|(name, text)| {
        let number = text.strip_suffix('%').unwrap_or(text).parse().ok()?;
        known(name).map(|counter| value("", counter.name, number))
    });
    stages.chain(triggers).collect()
}
