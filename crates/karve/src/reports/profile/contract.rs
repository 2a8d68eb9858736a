//! A profile in the hyper-mla contract, in both published variants: valid for karve's own parser,
//! and explicit if the contract has no class for the finding.

use super::{CounterComparison, KernelReport, ProfilePage, profile_page};
use crate::reports::template;
use crate::reports::text::{bounded, one_line};
use karve_core::profile::Bottleneck;
use karve_core::profile::classify::with_derived;
use karve_profile::profilers::contract::{BottleneckClass, ConfigPlacement, NONE, PERCENT_MAX};
use minijinja::value::Serde;
use minijinja::{Value, context};

/// The most rows of the comparison.
const VERSUS_ROWS: usize = 16;
/// The most characters of a name in the title.
const NAME_CHARS: usize = 120;
/// The counters of the stages, which come first in a comparison.
const STAGE_COUNTERS: [&str; 4] = ["duration_us", "tensor_pct", "dram_pct", "occupancy_pct"];

/// A profile as a report that satisfies the contract.
pub(super) fn render(variant: ConfigPlacement, page: &ProfilePage<'_>) -> String {
    let own = page.shown.first().map(|shown| shown.kernel.name.as_str());
    let own = own.and_then(|name| name.split('(').next());
    let kernel = match page.kernel {
        "" => own.unwrap_or_default(),
        kernel => kernel,
    };
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
    let contract = context! {
        kernel => word(kernel),
        version => word(page.version).replace(' ', "_"),
        is_titled => variant == ConfigPlacement::Title,
        pairs,
    };
    template::render("hyper-mla/profile.md", &context! { contract, ..profile_page(page) })
}

/// A name without the separators of the title.
fn word(name: &str) -> String {
    let parts = |c: char| if "|,=\\".contains(c) { '_' } else { c };
    let name: String = name.chars().map(parts).collect();
    match bounded(&one_line(&name), NAME_CHARS) {
        name if name.is_empty() => NONE.to_owned(),
        name => name,
    }
}

/// What the contract says about one kernel.
pub(super) fn stage(shown: &KernelReport) -> Value {
    let class = class_of(shown).name();
    context! {
        figures => STAGE_COUNTERS.map(|name| figure(shown, name)),
        class,
        has_class => class.eq_ignore_ascii_case(shown.diagnosis.bottleneck.name()),
        versus => Serde(versus(shown)),
    }
}

/// A figure of a stage; a value that is out of range is left blank.
fn figure(shown: &KernelReport, name: &str) -> Option<f64> {
    let most = if name.ends_with("_pct") { PERCENT_MAX } else { f64::MAX };
    shown.kernel.value(name).filter(|value| (0.0..=most).contains(value))
}

/// The figures of the stages first, then the counters that changed.
fn versus(shown: &KernelReport) -> Vec<&CounterComparison> {
    let Some(against) = &shown.against else {
        return Vec::new();
    };
    let of_stage = |name: &&str| {
        let mut counters = against.counters.iter();
        counters.find(|c| c.counter == **name && !c.is_one_reading)
    };
    let mut rows: Vec<&CounterComparison> = STAGE_COUNTERS.iter().filter_map(of_stage).collect();
    let is_new = |change: &&CounterComparison| !STAGE_COUNTERS.contains(&change.counter.as_str());
    rows.extend(against.counters.iter().filter(|c| c.has_moved).filter(is_new));
    rows.truncate(VERSUS_ROWS);
    rows
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

#[cfg(test)]
mod tests;
