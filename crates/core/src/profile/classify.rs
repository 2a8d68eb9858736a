//! From counters to a bottleneck, by named rule sets.
//!
//! The published workflows use different thresholds, so a diagnosis says whose rules it followed.
//! Rules are data: a class with the condition under which it holds; the first match decides.

mod rules;
mod signals;

use super::predicate::{CounterValues, Predicate, PredicateValue, short};
use super::{Bottleneck, KernelProfile};
use crate::policy::Preset;
use rules::{CLASSES, ClassRule, HEALTHY};
use serde::{Deserialize, Serialize};
use signals::{CauseSignal, SIGNALS};
use std::collections::BTreeSet;

/// Maximum number of opportunities in a diagnosis.
const OPPORTUNITIES_MAX: usize = 3;
/// No single change is expected to save more of the time than this, in percent.
const GAIN_PCT_MAX: f64 = 95.0;
/// Opportunities with a smaller saving are not listed, in percent.
const GAIN_PCT_MIN: f64 = 1.0;
/// Maximum number of counters to name if no class holds.
const NAMES_MAX: usize = 6;
/// Maximum length of quoted profiler text, in characters.
const QUOTE_CHARS: usize = 160;

/// Whose rules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DiagnosisRuleSet {
    /// Ours: the busier one of compute and memory, from 60% on; CPUs by their roofline.
    #[default]
    Karve,
    /// hyper-mla, the orchestration for MLA kernels.
    HyperMla,
    /// trtllm, the TensorRT-LLM workflow.
    Trtllm,
    /// primus, the Primus-Turbo rules.
    Primus,
    /// tilegym, the TileGym skill.
    Tilegym,
}

impl DiagnosisRuleSet {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Karve, Self::HyperMla, Self::Trtllm, Self::Primus, Self::Tilegym];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Karve => "karve",
            Self::HyperMla => "hyper-mla",
            Self::Trtllm => "trtllm",
            Self::Primus => "primus",
            Self::Tilegym => "tilegym",
        }
    }

    /// The rules that campaigns with this preset use.
    pub fn of(preset: Preset) -> Self {
        match preset {
            Preset::Strict => Self::Karve,
            Preset::Primus => Self::Primus,
            Preset::Tilegym => Self::Tilegym,
            Preset::Trtllm => Self::Trtllm,
            Preset::HyperMla => Self::HyperMla,
        }
    }

    /// The set of that name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|set| set.name() == name)
    }
}

/// The diagnosis from the counters of a kernel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Diagnosis {
    /// The kernel.
    pub kernel: String,
    /// Whose rules decided.
    pub rules: DiagnosisRuleSet,
    /// Whose rules were requested, if those do not cover the counters that were read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested: Option<DiagnosisRuleSet>,
    /// What limits it.
    pub bottleneck: Bottleneck,
    /// The condition that holds, and the values it is based on.
    pub because: String,
    /// At most two sentences.
    pub root_cause: String,
    /// Counters with a healthy range.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub health: Vec<CounterHealth>,
    /// The most promising first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub opportunities: Vec<Opportunity>,
}

/// A counter and its healthy range.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CounterHealth {
    /// The counter.
    pub counter: String,
    /// What was read.
    pub value: f64,
    /// The healthy range, as a condition.
    pub want: String,
    /// Whether it is.
    pub healthy: bool,
    /// What to check if it is not.
    pub hint: String,
}

/// Something to try.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Opportunity {
    /// What.
    pub name: String,
    /// How much of the time it may save, in percent.
    pub gain_pct: f64,
    /// The counters behind it, as `counter=value`.
    pub trigger: String,
    /// The entry that says more, if the library was searched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<String>,
}

/// The diagnosis by some rules. If those do not apply, our own rules are used.
pub fn diagnose(kernel: &KernelProfile, asked: DiagnosisRuleSet) -> Diagnosis {
    let values = with_derived(kernel);
    let found = classify(&values, asked);
    let (rules, found) = match found {
        Some(class) => (asked, Some(class)),
        None => (DiagnosisRuleSet::Karve, classify(&values, DiagnosisRuleSet::Karve)),
    };
    let bottleneck = found.map_or(Bottleneck::Unknown, |class| class.is);
    let because = match found.and_then(|class| Predicate::parse(class.when).ok()) {
        Some(when) => {
            let part = when.holding_part(&values);
            let reported = format!("{} ({})", part.text(), part.quote(&values));
            reported.replace("memory_pct", busiest(&kernel.values()).0)
        }
        None => why_unknown(&values, asked),
    };
    let signals = fired(&values);
    Diagnosis {
        kernel: kernel.name.clone(),
        rules,
        requested: (rules != asked).then_some(asked),
        bottleneck,
        because,
        root_cause: root_cause(found, &signals, &values),
        health: health(&values, asked),
        opportunities: opportunities(kernel, &signals, &values),
    }
}

/// The values of a kernel, with those derived from others.
pub fn with_derived(kernel: &KernelProfile) -> CounterValues {
    let mut values = kernel.values();
    if let (_, Some(busiest)) = busiest(&values) {
        values.insert("memory_pct".to_owned(), busiest);
    }
    values
}

/// The counter of the busiest level of memory, and its value where one was read.
fn busiest(values: &CounterValues) -> (&'static str, Option<f64>) {
    let mut most = ("memory_pct", values.get("memory_pct").copied());
    for name in ["dram_pct", "l2_pct", "l1_pct", "shared_pct"] {
        let value = values.get(name).copied();
        if value > most.1 {
            most = (name, value);
        }
    }
    most
}

/// Why no class holds: no counter that the rules use was read, or those that were do not suffice.
fn why_unknown(values: &CounterValues, asked: DiagnosisRuleSet) -> String {
    let sets = [asked, DiagnosisRuleSet::Karve];
    let of_sets = CLASSES.iter().filter(|class| sets.contains(&class.by));
    let (mut read, mut unread) = (BTreeSet::new(), BTreeSet::new());
    for when in of_sets.filter_map(|class| Predicate::parse(class.when).ok()) {
        let names = || when.names().into_iter().map(str::to_owned);
        if names().any(|name| values.contains_key(&name)) {
            let (known, unknown): (Vec<_>, Vec<_>) = names().partition(|n| values.contains_key(n));
            read.extend(known);
            unread.extend(unknown);
        }
    }
    if read.is_empty() {
        return "no counter that the rules use was read".to_owned();
    }
    let read = read.iter().take(NAMES_MAX);
    let read: Vec<String> =
        read.filter_map(|name| Some(format!("{name}={}", short(*values.get(name)?)))).collect();
    let unread: Vec<String> = unread.into_iter().take(NAMES_MAX).collect();
    let reported = format!("no condition of the rules holds for {}", read.join(", "));
    if unread.is_empty() {
        return reported;
    }
    format!("{reported}; not read: {}", unread.join(", "))
}

fn classify(values: &CounterValues, rules: DiagnosisRuleSet) -> Option<&'static ClassRule> {
    CLASSES.iter().find(|class| {
        class.by == rules
            && Predicate::parse(class.when).is_ok_and(|p| p.truth(values) == PredicateValue::Holds)
    })
}

/// The signals that hold, with the share of the time each may cost, in percent.
fn fired(values: &CounterValues) -> Vec<(&'static CauseSignal, f64)> {
    let mut fired: Vec<(&CauseSignal, f64)> = Vec::new();
    for signal in SIGNALS {
        let holds =
            Predicate::parse(signal.when).is_ok_and(|p| p.truth(values) == PredicateValue::Holds);
        if !holds {
            continue;
        }
        let gain = karve_numerics::expr::parse_expr(signal.gain).ok();
        let gain = gain.and_then(|gain| gain.evaluate(&|name| values.get(name).copied()).ok());
        let gain = gain.filter(|gain| gain.is_finite()).unwrap_or(1.0);
        fired.push((signal, gain.clamp(0.5, GAIN_PCT_MAX)));
    }
    fired.sort_by(|a, b| b.1.total_cmp(&a.1));
    fired
}

/// At most two sentences: what limits it, and the strongest signal why.
fn root_cause(
    class: Option<&ClassRule>,
    signals: &[(&CauseSignal, f64)],
    values: &CounterValues,
) -> String {
    let Some(class) = class else {
        return "The counters that were read do not show what limits the kernel.".to_owned();
    };
    let second = signals.iter().find(|(signal, _)| signal.explains(class.is));
    let second = second.map(|(signal, _)| fill(signal.text, values));
    let mut sentences = vec![fill(class.text, values)];
    sentences.extend(second);
    sentences.retain(|sentence| !sentence.is_empty());
    sentences.join(" ")
}

/// Replaces `{counter}` by its value; `{level}` is the busiest level of memory.
fn fill(text: &str, values: &CounterValues) -> String {
    let mut filled = text.to_owned();
    for (name, value) in values {
        let mark = format!("{{{name}}}");
        if filled.contains(&mark) {
            filled = filled.replace(&mark, &short(*value));
        }
    }
    filled = filled.replace("{level}", busiest_level(values));
    without_unread(filled)
}

/// Removes counters that were not read, with the parentheses or the clause around them.
fn without_unread(mut text: String) -> String {
    while let Some(at) = text.find('{') {
        let (before, after) = (&text[..at], &text[at..]);
        let open = before.rfind('(').filter(|open| !before[*open..].contains(')'));
        if let (Some(open), Some(close)) = (open, after.find(')')) {
            let kept = before[..open].trim_end();
            text = format!("{kept}{}", &after[close + 1..]);
            continue;
        }
        let start = before.rfind(", ").unwrap_or(0);
        let end = after.find(", ").or_else(|| after.rfind('.'));
        let rest = end.map_or("", |end| &after[end..]);
        text = match start {
            0 if rest == "." => String::new(),
            0 => rest.trim_start_matches(", ").to_owned(),
            start => format!("{}{rest}", &before[..start]),
        };
    }
    text
}

/// The level of memory that is used most.
fn busiest_level(values: &CounterValues) -> &'static str {
    let levels = [
        ("dram_pct", "device memory"),
        ("l2_pct", "the second-level cache"),
        ("shared_pct", "shared memory"),
        ("l1_pct", "the first-level cache and shared memory"),
    ];
    let read = levels.iter().filter_map(|(name, words)| Some((values.get(*name)?, *words)));
    let busiest = read.max_by(|a, b| a.0.total_cmp(b.0));
    busiest.map_or("memory", |(_, words)| words)
}

fn health(values: &CounterValues, rules: DiagnosisRuleSet) -> Vec<CounterHealth> {
    let own = HEALTHY.iter().filter(|range| range.by == rules);
    own.filter_map(|range| {
        let value = *values.get(range.counter)?;
        let want = Predicate::parse(range.want).ok()?;
        Some(CounterHealth {
            counter: range.counter.to_owned(),
            value,
            want: range.want.to_owned(),
            healthy: want.truth(values) == PredicateValue::Holds,
            hint: range.hint.to_owned(),
        })
    })
    .collect()
}

/// The most promising opportunities: our signals, and those that the profiler itself reports.
fn opportunities(
    kernel: &KernelProfile,
    signals: &[(&CauseSignal, f64)],
    values: &CounterValues,
) -> Vec<Opportunity> {
    let ours = signals.iter().map(|(signal, gain)| Opportunity {
        name: signal.advice.to_owned(),
        gain_pct: *gain,
        trigger: Predicate::parse(signal.when).map(|when| when.quote(values)).unwrap_or_default(),
        entry: None,
    });
    let reported = kernel.remarks.iter().filter_map(|remark| {
        let says = remark.text.split_whitespace().collect::<Vec<_>>().join(" ");
        let says: String = says.chars().take(QUOTE_CHARS).collect();
        Some(Opportunity {
            name: format!("{} says ({}): {says:?}", remark.source.tool, remark.rule),
            gain_pct: remark.gain_pct.filter(|gain| gain.is_finite())?.min(GAIN_PCT_MAX),
            trigger: remark.source.quote.clone(),
            entry: None,
        })
    });
    let promises = |opportunity: &Opportunity| opportunity.gain_pct >= GAIN_PCT_MIN;
    let most_first = |a: &Opportunity, b: &Opportunity| b.gain_pct.total_cmp(&a.gain_pct);
    let mut all: Vec<Opportunity> = ours.filter(promises).collect();
    let mut reported: Vec<Opportunity> = reported.filter(promises).collect();
    reported.sort_by(most_first);
    all.extend(reported);
    all.truncate(OPPORTUNITIES_MAX);
    all.sort_by(most_first);
    all
}

#[cfg(test)]
mod tests;
