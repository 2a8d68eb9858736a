//! What a number depends on; numbers with different bases are not compared.
//!
//! Two readings compare two kernels only if everything else is the same: what is measured, which
//! clock times it, the build tools, the device, and the harness. What changes from minute to
//! minute, such as the load, is not part of a basis; the duel takes care of that.

use crate::charter::{Better, Metric, OutputRule};
use std::collections::BTreeMap;
use std::fmt;

/// What a number depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Basis {
    /// What is measured.
    pub metric: Metric,
    /// What takes the time: `wall_time`, `cpu_time`, or `reported:<format>`.
    pub engine: String,
    /// Compilers and other tools, with their versions.
    pub tools: BTreeMap<String, String>,
    /// The device and its system.
    pub device: BTreeMap<String, String>,
    /// Digest of the read-only files.
    pub harness_hash: String,
}

/// One difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BasisDifference {
    /// What it is, in words.
    pub what: String,
    /// The first value.
    pub first: String,
    /// The current value.
    pub second: String,
}

/// All differences; never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BasisMismatch {
    /// In the order of a basis.
    pub differences: Vec<BasisDifference>,
}

impl fmt::Display for BasisDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}, now {}", self.what, self.first, self.second)
    }
}

impl fmt::Display for BasisMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<String> = self.differences.iter().map(ToString::to_string).collect();
        f.write_str(&parts.join("; "))
    }
}

/// What takes the time of a metric.
pub fn engine_of(metric: &Metric, output: &OutputRule) -> String {
    let is_own = metric.own_clock().is_some() && metric.seconds_per_unit().is_some();
    if is_own { metric.name.clone() } else { format!("reported:{}", output.format) }
}

/// Whether numbers on the second basis may be compared with those on the first.
///
/// A value that only the second basis has, such as the version of a tool that was not recorded
/// before, is not a difference; one that only the first has is.
pub fn comparable(first: &Basis, second: &Basis) -> Result<(), BasisMismatch> {
    let mut differences = Vec::new();
    let mut compare = |what: &str, first: &str, second: &str| {
        if first != second {
            differences.push(BasisDifference {
                what: what.to_owned(),
                first: or_unknown(first),
                second: or_unknown(second),
            });
        }
    };
    let (one, other) = (&first.metric, &second.metric);
    compare("the metric", &one.name, &other.name);
    compare("the unit", &one.unit, &other.unit);
    compare("better", way(one.better), way(other.better));
    let text = |expr: &Option<String>| expr.clone().unwrap_or_default();
    compare("the expression", &text(&one.expr), &text(&other.expr));
    compare("the timing engine", &first.engine, &second.engine);
    for (one, other) in [(&first.tools, &second.tools), (&first.device, &second.device)] {
        for (name, value) in one {
            let now = other.get(name).map_or("", String::as_str);
            compare(name, value, now);
        }
    }
    compare("the harness", &first.harness_hash, &second.harness_hash);
    if differences.is_empty() { Ok(()) } else { Err(BasisMismatch { differences }) }
}

fn or_unknown(value: &str) -> String {
    if value.is_empty() { "none".into() } else { value.into() }
}

fn way(better: Better) -> &'static str {
    match better {
        Better::Lower => "lower",
        Better::Higher => "higher",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn basis() -> Basis {
        let facts = |pairs: &[(&str, &str)]| {
            let pairs = pairs.iter();
            pairs.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        Basis {
            metric: Metric { name: "time_ms".into(), unit: "ms".into(), ..Metric::default() },
            engine: "reported:csv".into(),
            tools: facts(&[("cc", "cc 12.2"), ("make", "make 4.3")]),
            device: facts(&[("cpu", "a CPU"), ("kernel", "6.1")]),
            harness_hash: "aa".into(),
        }
    }

    /// Changes one thing and checks the reported difference.
    fn check(change: impl Fn(&mut Basis), want: &str) {
        let mut second = basis();
        change(&mut second);
        let said = comparable(&basis(), &second).map_err(|mismatch| mismatch.to_string());
        assert_eq!(said, Err(want.to_owned()));
    }

    #[test]
    fn the_same_basis_is_comparable() {
        assert_eq!(comparable(&basis(), &basis()), Ok(()));
    }

    #[test]
    fn another_metric_is_not() {
        check(|b| b.metric.name = "time".into(), "the metric: time_ms, now time");
        check(|b| b.metric.unit = "us".into(), "the unit: ms, now us");
        check(|b| b.metric.better = Better::Higher, "better: lower, now higher");
        check(|b| b.metric.expr = Some("a+b".into()), "the expression: none, now a+b");
    }

    #[test]
    fn another_engine_is_not() {
        check(|b| b.engine = "wall_time".into(), "the timing engine: reported:csv, now wall_time");
    }

    #[test]
    fn another_tool_or_none_is_not() {
        let newer = |b: &mut Basis| {
            b.tools.insert("cc".into(), "cc 13.1".into());
        };
        check(newer, "cc: cc 12.2, now cc 13.1");
        let gone = |b: &mut Basis| {
            b.tools.remove("make");
        };
        check(gone, "make: make 4.3, now none");
    }

    #[test]
    fn another_device_is_not() {
        let other = |b: &mut Basis| {
            b.device.insert("cpu".into(), "b CPU".into());
            b.device.insert("kernel".into(), "6.2".into());
        };
        check(other, "cpu: a CPU, now b CPU; kernel: 6.1, now 6.2");
    }

    #[test]
    fn another_harness_is_not() {
        check(|b| b.harness_hash = "bb".into(), "the harness: aa, now bb");
    }

    #[test]
    fn what_was_not_known_before_is_no_difference() {
        let mut second = basis();
        second.tools.insert("ninja".into(), "1.11".into());
        assert_eq!(comparable(&basis(), &second), Ok(()));
        assert!(comparable(&second, &basis()).is_err());
    }

    #[test]
    fn the_engine_is_the_clock_or_the_format() {
        let output = OutputRule { format: "csv".into(), from_file: false, ..OutputRule::default() };
        let engine = |name: &str, unit: &str| {
            let metric = Metric { name: name.into(), unit: unit.into(), ..Metric::default() };
            engine_of(&metric, &output)
        };
        assert_eq!(engine("wall_time", "ms"), "wall_time");
        assert_eq!(engine("cpu_time", "s"), "cpu_time");
        assert_eq!(engine("cpu_time", "ticks"), "reported:csv");
        assert_eq!(engine("time_ms", "ms"), "reported:csv");
    }
}
