//! Names and words that benchmarks use: metrics and their aliases, axes, checks, units.

use std::collections::BTreeMap;

/// Names that state correctness, in lower case.
const CHECK_NAMES: [&str; 4] = ["check", "correct", "check_pass", "correctness"];

/// Names of the case if none is configured; the first that exists is used.
pub(super) const CASE_NAMES: [&str; 3] = ["label", "case", "name"];

/// Geometry axes in their order in a case key; any other single letter follows.
const AXES: [&str; 13] = [
    "B",
    "M",
    "N",
    "K",
    "D",
    "H",
    "W",
    "seq_len",
    "num_heads",
    "num_kv_heads",
    "head_dim",
    "batch",
    "batch_size",
];

/// Canonical metrics with their aliases in lower case.
pub(super) const METRICS: [(&str, [&str; 3]); 4] = [
    ("Forward TFLOPS", ["fwd_tflops_mean", "forward_tflops_mean", "fwd_tflops"]),
    ("Backward TFLOPS", ["bwd_tflops_mean", "backward_tflops_mean", "bwd_tflops"]),
    ("Forward Time (ms)", ["fwd_ms_mean", "forward_ms_mean", "fwd_ms"]),
    ("Backward Time (ms)", ["bwd_ms_mean", "backward_ms_mean", "bwd_ms"]),
];

/// Suffixes of a spread, the longer ones first.
const SPREADS: [(&str, SpreadUnit); 4] = [
    ("_stddev_pct", SpreadUnit::Percent),
    ("_std_pct", SpreadUnit::Percent),
    ("_stddev", SpreadUnit::Absolute),
    ("_std", SpreadUnit::Absolute),
];

/// Units that people write after a number, in lower case.
const UNITS: [&str; 24] = [
    "ns", "us", "µs", "μs", "ms", "s", "sec", "secs", "seconds", "min", "%", "flops", "gflops",
    "tflops", "gflop/s", "tflop/s", "gb/s", "gib/s", "tb/s", "mb", "mib", "gb", "gib", "db",
];

/// The unit of a spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SpreadUnit {
    Absolute,
    Percent,
}

/// Units in which tools state times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TimeUnit {
    Nanoseconds,
    Microseconds,
    Milliseconds,
    Seconds,
}

impl TimeUnit {
    /// The unit with that name.
    pub(super) fn by_word(word: &str) -> Option<Self> {
        [Self::Nanoseconds, Self::Microseconds, Self::Milliseconds, Self::Seconds]
            .into_iter()
            .find(|unit| unit.word() == word)
    }

    /// Its written form.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Nanoseconds => "ns",
            Self::Microseconds => "us",
            Self::Milliseconds => "ms",
            Self::Seconds => "s",
        }
    }

    /// Its length in seconds.
    pub(super) fn seconds(self) -> f64 {
        match self {
            Self::Nanoseconds => 1e-9,
            Self::Microseconds => 1e-6,
            Self::Milliseconds => 1e-3,
            Self::Seconds => 1.0,
        }
    }
}

/// The metric whose spread this is, and the unit.
pub(super) fn split_spread(name: &str) -> Option<(&str, SpreadUnit)> {
    SPREADS.iter().find_map(|(suffix, unit)| Some((name.strip_suffix(suffix)?, *unit)))
}

/// The canonical name of a known metric.
pub(super) fn canonical(name: &str) -> Option<&'static str> {
    METRICS
        .iter()
        .find(|(metric, aliases)| {
            metric.eq_ignore_ascii_case(name)
                || aliases.iter().any(|alias| alias.eq_ignore_ascii_case(name))
        })
        .map(|(metric, _)| *metric)
}

/// Whether the name states correctness.
pub(super) fn states_check(name: &str) -> bool {
    CHECK_NAMES.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// Whether the name names a case.
pub(super) fn names_case(name: &str) -> bool {
    CASE_NAMES.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// Whether the name is a geometry axis: a listed one, or a single letter.
pub(super) fn is_axis(name: &str) -> bool {
    AXES.contains(&name) || matches!(name.as_bytes(), [letter] if letter.is_ascii_alphabetic())
}

/// Whether the name is a signal-to-noise ratio: a value, never part of the case.
pub(super) fn is_snr(name: &str) -> bool {
    name.to_ascii_lowercase().contains("snr")
}

/// The case key made of the geometry axes among the parameters, such as `B=1,M=256`.
pub(super) fn axes_key(params: &BTreeMap<String, String>) -> Option<String> {
    let rank = |name: &str| AXES.iter().position(|axis| *axis == name).unwrap_or(AXES.len());
    let mut axes: Vec<_> = params.iter().filter(|(name, _)| is_axis(name)).collect();
    axes.sort_by_key(|(name, _)| (rank(name), name.as_str()));
    let parts: Vec<String> = axes.iter().map(|(name, value)| format!("{name}={value}")).collect();
    (!parts.is_empty()).then(|| parts.join(","))
}

/// Whether the text is a number followed by a unit, such as `3.2 ms`.
pub(super) fn has_unit(text: &str) -> bool {
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit() || "+-.eE".contains(c));
    let number = &text[..text.len() - unit.len()];
    number.parse::<f64>().is_ok() && UNITS.contains(&unit.trim().to_lowercase().as_str())
}

/// Whether the name means a time or a rate of work.
pub(super) fn is_never_negative(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let is_unit = |word: &str| matches!(word, "ns" | "us" | "ms" | "s" | "sec" | "seconds");
    ["time", "latency", "duration", "flops"].iter().any(|part| name.contains(part))
        || name.split(|c: char| !c.is_alphanumeric()).any(is_unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks one property of many names.
    fn check(question: fn(&str) -> bool, yes: &[&str], no: &[&str]) {
        let is_yes = |name: &&&str| question(name);
        assert_eq!(yes.iter().filter(is_yes).count(), yes.len(), "{yes:?}");
        assert_eq!(no.iter().filter(is_yes).count(), 0, "{no:?}");
    }

    #[test]
    fn axes_are_listed_names_and_single_letters() {
        check(is_axis, &["B", "b", "t", "seq_len", "head_dim"], &["", "é", "1", "ms", "SEQ_LEN"]);
    }

    #[test]
    fn a_unit_is_seen_only_behind_a_number() {
        let yes = ["3.2 ms", "3.2ms", "-1e3 us", "12.5%", "900 TFLOPS", "7 µs"];
        check(has_unit, &yes, &["ms", "3.2", "64x64", "2 stages", "fast ms", "1-2 ms", ""]);
    }

    #[test]
    fn times_and_rates_are_never_negative() {
        let yes = ["Forward Time (ms)", "fwd_us", "mean_s", "Latency", "dense_TFLOPS"];
        check(is_never_negative, &yes, &["out_snr", "gain", "items", "ratio_grouped_over_dense"]);
    }

    #[test]
    fn any_name_with_snr_is_a_signal_to_noise_ratio() {
        check(is_snr, &["out_snr", "SNR (dB)", "da_snr"], &["sn_r", "Check"]);
    }

    #[test]
    fn a_metric_and_its_spread_are_told_apart() {
        assert_eq!(split_spread("fwd_ms_std"), Some(("fwd_ms", SpreadUnit::Absolute)));
        assert_eq!(split_spread("fwd_ms_stddev_pct"), Some(("fwd_ms", SpreadUnit::Percent)));
        assert_eq!(split_spread("fwd_ms"), None);
        assert_eq!(canonical("BWD_MS"), Some("Backward Time (ms)"));
        assert_eq!(canonical("bwd"), None);
    }
}
