//! A profile for people: karve's own page, the hyper-mla contract, and the trtllm and primus forms.

mod contract;

use super::template;
use super::text::{bounded, one_line};
use karve_core::profile::compare::compare_kernels;
use karve_core::profile::{Diagnosis, KernelProfile, Opportunity};
use karve_profile::profilers::contract::{ConfigPlacement, pairs};
use minijinja::value::Serde;
use minijinja::{Value, context};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// The most characters of the counters behind an opportunity.
const TRIGGER_MAX: usize = 160;

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
        ReportFormat::Karve => template::render("profile.txt", &profile_page(page)),
        ReportFormat::HyperMla => contract::render(ConfigPlacement::Title, page),
        ReportFormat::HyperMlaTable => contract::render(ConfigPlacement::Table, page),
        ReportFormat::Trtllm => template::render("trtllm/profile.md", &profile_page(page)),
        ReportFormat::Primus => template::render("primus/profile.md", &profile_page(page)),
    }
}

/// The context of the templates about a profile.
fn profile_page(page: &ProfilePage<'_>) -> Value {
    context! {
        title => page.title,
        against => page.against,
        notes => page.notes.to_vec(),
        kernels => page.shown.iter().map(kernel_page).collect::<Vec<_>>(),
        opportunities => best_opportunities(page.shown),
    }
}

fn kernel_page(shown: &KernelReport) -> Value {
    let KernelReport { kernel, diagnosis, entries, against } = shown;
    let counters = kernel.counters.iter().map(|(name, counter)| {
        context! { name, value => counter.value, source => counter.source.describe() }
    });
    let reads = kernel.counters.iter().map(|(name, counter)| (name.as_str(), counter.value));
    let opportunities = diagnosis.opportunities.iter().map(|opportunity| {
        let known = entries.iter().find(|entry| Some(&entry.id) == opportunity.entry.as_ref());
        context! {
            name => &opportunity.name,
            gain_pct => opportunity.gain_pct,
            trigger => &opportunity.trigger,
            has_counters => pairs(&bounded(&one_line(&opportunity.trigger), TRIGGER_MAX)).is_some(),
            entry => opportunity.entry.as_ref(),
            impact => known.and_then(|entry| entry.impact.as_ref()),
        }
    });
    let unhealthy = diagnosis.health.iter().filter(|health| !health.healthy);
    context! {
        name => &kernel.name,
        counters => counters.collect::<Vec<_>>(),
        reads => reads.collect::<BTreeMap<_, _>>(),
        diagnosis => context! {
            kernel => &diagnosis.kernel,
            bottleneck => diagnosis.bottleneck.name(),
            rules => diagnosis.rules.name(),
            requested => diagnosis.requested.map(|rules| rules.name()),
            because => &diagnosis.because,
            root_cause => &diagnosis.root_cause,
            unhealthy => Serde(unhealthy.collect::<Vec<_>>()),
        },
        opportunities => opportunities.collect::<Vec<_>>(),
        entries => Serde(entries),
        against => against.as_ref().map(comparison_page),
        stage => contract::stage(shown),
    }
}

/// The counters that changed, the time first, and how many did not.
fn comparison_page(against: &KernelComparison) -> Value {
    let counters = || against.counters.iter();
    let mut moved: Vec<&CounterComparison> = counters().filter(|c| c.has_moved).collect();
    moved.sort_by_key(|change| change.counter != "duration_us");
    let once: Vec<&CounterComparison> = counters().filter(|c| c.is_one_reading).collect();
    context! {
        kernel => &against.kernel,
        n_still => against.counters.len() - moved.len() - once.len(),
        moved => Serde(moved),
        once => Serde(once),
    }
}

/// Each piece of advice once, for the kernel where it promises most.
fn best_opportunities(shown: &[KernelReport]) -> Vec<Value> {
    let mut all: Vec<(&str, &Opportunity)> = shown
        .iter()
        .flat_map(|shown| {
            let tries = shown.diagnosis.opportunities.iter();
            tries.map(|opportunity| (shown.kernel.name.as_str(), opportunity))
        })
        .collect();
    all.sort_by(|a, b| b.1.gain_pct.total_cmp(&a.1.gain_pct));
    let mut seen = BTreeSet::new();
    all.retain(|(_, opportunity)| seen.insert(&opportunity.name));
    let page = |(kernel, opportunity): (&str, &Opportunity)| {
        context! {
            kernel,
            name => &opportunity.name,
            gain_pct => opportunity.gain_pct,
            trigger => &opportunity.trigger,
        }
    };
    all.into_iter().map(page).collect()
}
