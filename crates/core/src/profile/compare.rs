//! Two profiles of the same kernel: what moved, and whether a hypothesis predicted it.

use super::counters::{CounterPreference, known, named_in};
use super::predicate::short;
use super::{KernelProfile, Profile};
use serde::{Deserialize, Serialize};

/// A counter that changed by a smaller share of its value did not move.
const STILL: f64 = 0.02;
/// Nor did a percentage that changed by fewer points: it is rounded, or based on few events.
const STILL_POINTS: f64 = 0.1;

/// The direction of a counter's change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CounterTrend {
    /// It grows.
    Up,
    /// It shrinks.
    Down,
    /// It changes, either way.
    Any,
}

/// What a hypothesis predicts for a counter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expectation {
    /// The counter.
    pub counter: String,
    /// Which way.
    pub way: CounterTrend,
}

/// The outcome of a prediction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExpectationResult {
    /// As predicted.
    True,
    /// The counter did not move.
    Still,
    /// It moved the other way.
    Opposite,
    /// It was not read before or after.
    Unread,
}

/// A counter before and after a change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CounterChange {
    /// The counter.
    pub counter: String,
    /// Before.
    pub before: f64,
    /// After.
    pub after: f64,
}

impl CounterChange {
    /// The change in percent of the old value; `None` from zero.
    pub fn change_pct(&self) -> Option<f64> {
        let change = (self.after - self.before) / self.before.abs() * 100.0;
        change.is_finite().then_some(change)
    }

    /// The direction it moved, if it did.
    pub fn way(&self) -> Option<CounterTrend> {
        let size = self.before.abs().max(self.after.abs());
        let is_share = known(&self.counter).is_some_and(|known| known.unit == "%");
        let still = if is_share { STILL_POINTS.max(STILL * size) } else { STILL * size };
        if (self.after - self.before).abs() <= still {
            return None;
        }
        Some(if self.after > self.before { CounterTrend::Up } else { CounterTrend::Down })
    }

    /// Whether that is good; `None` if it did not move, or is neither good nor bad.
    pub fn is_better(&self) -> Option<bool> {
        let way = self.way()?;
        match known(&self.counter)?.better {
            CounterPreference::Higher => Some(way == CounterTrend::Up),
            CounterPreference::Lower => Some(way == CounterTrend::Down),
            CounterPreference::Neither => None,
        }
    }

    /// In words.
    pub fn describe(&self) -> String {
        let change =
            self.change_pct().map_or_else(String::new, |change| format!(" ({change:+.1}%)"));
        let (before, after) = (short(self.before), short(self.after));
        format!("{} {before} to {after}{change}", self.counter)
    }
}

/// The counters in both profiles, for the kernel that each one is about. An editable function is
/// not compared with something else, such as the whole program.
pub fn compare(before: &Profile, after: &Profile) -> Vec<CounterChange> {
    match (before.main_kernel(), after.main_kernel()) {
        (Some(before), Some(after)) if before.editable == after.editable => {
            compare_kernels(before, after)
        }
        _ => Vec::new(),
    }
}

/// The counters in both.
pub fn compare_kernels(before: &KernelProfile, after: &KernelProfile) -> Vec<CounterChange> {
    let both = before.counters.iter().filter_map(|(name, was)| {
        Some(CounterChange { counter: name.clone(), before: was.value, after: after.value(name)? })
    });
    both.collect()
}

/// Parses a prediction such as `l2_hit_pct up`, `dram_bytes: fewer` or `more instructions per
/// cycle`; `None` if it names no counter that karve knows.
pub fn parse_expectation(line: &str) -> Option<Expectation> {
    let lower = line.to_lowercase().replace('/', " per ");
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
    let words: Vec<&str> = lower
        .split(|c| !is_word(c))
        .map(|word| word.trim_matches('.'))
        .filter(|word| !word.is_empty())
        .collect();
    let counter = named_in(&words)?;
    let any_of = |list: &[&str]| words.iter().any(|word| list.contains(word));
    let up = any_of(UP) || lower.contains('>') || lower.contains('↑');
    let down = any_of(DOWN) || lower.contains('<') || lower.contains('↓');
    let way = match (up, down) {
        (true, false) => CounterTrend::Up,
        (false, true) => CounterTrend::Down,
        _ => CounterTrend::Any,
    };
    Some(Expectation { counter: counter.to_owned(), way })
}

const UP: &[&str] = &[
    "up",
    "rise",
    "rises",
    "higher",
    "more",
    "increase",
    "increases",
    "grow",
    "grows",
    "above",
    "larger",
];
const DOWN: &[&str] = &[
    "down",
    "fall",
    "falls",
    "lower",
    "less",
    "fewer",
    "decrease",
    "decreases",
    "drop",
    "drops",
    "shrink",
    "shrinks",
    "below",
    "smaller",
];

/// The outcome of a prediction.
pub fn assess(expected: &Expectation, moved: &[CounterChange]) -> ExpectationResult {
    let Some(found) = moved.iter().find(|m| m.counter == expected.counter) else {
        return ExpectationResult::Unread;
    };
    match (found.way(), expected.way) {
        (None, _) => ExpectationResult::Still,
        (Some(_), CounterTrend::Any) => ExpectationResult::True,
        (Some(way), wanted) if way == wanted => ExpectationResult::True,
        (Some(_), _) => ExpectationResult::Opposite,
    }
}

impl ExpectationResult {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::True => "moved as predicted",
            Self::Still => "did not move",
            Self::Opposite => "moved the other way",
            Self::Unread => "was not read before and after",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::ProfileSource;

    fn kernel(values: &[(&str, f64)]) -> KernelProfile {
        let mut kernel = KernelProfile::named("k");
        for (name, value) in values {
            assert!(kernel.set(name, *value, ProfileSource::default()));
        }
        kernel
    }

    #[test]
    fn a_hypothesis_is_told_whether_its_counters_moved() {
        let before = kernel(&[("l2_hit_pct", 50.0), ("dram_bytes", 1e9), ("registers", 64.0)]);
        let after = kernel(&[("l2_hit_pct", 80.0), ("dram_bytes", 1.2e9), ("registers", 64.0)]);
        let moved = compare_kernels(&before, &after);
        let check = |line: &str, want: ExpectationResult| {
            let expected = parse_expectation(line).unwrap();
            assert_eq!(assess(&expected, &moved), want, "{line}");
        };
        check("l2_hit_pct up", ExpectationResult::True);
        check("I expect l2_hit_pct to rise", ExpectationResult::True);
        check("dram_bytes: fewer", ExpectationResult::Opposite);
        check("registers < 64", ExpectationResult::Still);
        check("waves up", ExpectationResult::Unread);
        check("`dram_bytes` changes.", ExpectationResult::True);
        assert_eq!(parse_expectation("it becomes faster"), None);
        assert_eq!(moved[0].describe(), "dram_bytes 1.000e9 to 1.200e9 (+20.0%)");
        assert_eq!(moved[0].is_better(), Some(false));
        assert_eq!(moved[2].is_better(), None);
    }

    #[test]
    fn the_longest_name_of_a_counter_wins() {
        let check = |line: &str, want: Option<(&str, CounterTrend)>| {
            let found = parse_expectation(line);
            let found = found.as_ref().map(|one| (one.counter.as_str(), one.way));
            assert_eq!(found, want, "{line}");
        };
        check("instructions per cycle up", Some(("ipc", CounterTrend::Up)));
        check("more instructions/cycle", Some(("ipc", CounterTrend::Up)));
        check("IPC rises", Some(("ipc", CounterTrend::Up)));
        check("fewer instructions", Some(("instructions", CounterTrend::Down)));
        check("L2 hit rate up", Some(("l2_hit_pct", CounterTrend::Up)));
        check("dram bytes per s fall", Some(("dram_bytes_per_s", CounterTrend::Down)));
        check("DRAM bytes fall", Some(("dram_bytes", CounterTrend::Down)));
        check("cycles per element down", None);
        check("bytes per request, fewer", None);
    }

    #[test]
    fn from_zero_there_is_no_percentage_but_a_way() {
        let moved = CounterChange { counter: "spill_bytes".into(), before: 0.0, after: 64.0 };
        let few = CounterChange { counter: "l1_miss_pct".into(), before: 0.004, after: 0.006 };
        assert_eq!((few.way(), few.is_better()), (None, None));
        assert_eq!((moved.change_pct(), moved.way()), (None, Some(CounterTrend::Up)));
        assert_eq!(moved.is_better(), Some(false));
    }
}
