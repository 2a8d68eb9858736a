//! Numbers and units as profilers write them. Ambiguous text yields no number.

/// The most characters of a number.
const NUMBER_CHARS: usize = 40;

/// What a value measures, which determines its unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quantity {
    /// In microseconds.
    Time,
    /// In percent.
    Percent,
    /// In bytes, also per block or per thread.
    Bytes,
    /// In bytes per second.
    BytesPerSecond,
    /// In hertz.
    Hertz,
    /// A count or a ratio without a unit that matters.
    Count,
}

/// Digits with at most one point.
pub(super) fn plain(text: &str) -> Option<f64> {
    let (whole, rest) = match text.split_once('.') {
        Some((whole, rest)) => (whole, Some(rest)),
        None => (text, None),
    };
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    if text.len() > NUMBER_CHARS || !digits(whole) || rest.is_some_and(|rest| !digits(rest)) {
        return None;
    }
    text.parse().ok().filter(|value: &f64| value.is_finite())
}

/// Digits alone.
pub(super) fn whole(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}

/// A number with commas between thousands, such as `3,176,000` or `97.30`.
///
/// In another locale `1.234` means a thousand times as much, and `0.25` is written `0,25`. Tools
/// that group thousands write two decimals, so three decimals are rejected here.
pub(super) fn grouped(text: &str) -> Option<f64> {
    let (whole, decimals) = match text.split_once('.') {
        Some((whole, decimals)) => (whole, Some(decimals)),
        None => (text, None),
    };
    let strange = |decimals: &str| decimals.len() == 3 && !whole.starts_with('0');
    if decimals.is_some_and(|d| strange(d) || d.contains(',')) {
        return None;
    }
    if !whole.contains(',') {
        return plain(text);
    }
    let mut groups = whole.split(',');
    let first = groups.next().unwrap_or_default();
    let first_is_fine = (1..=3).contains(&first.len()) && !first.starts_with('0');
    if !first_is_fine || !groups.all(|group| group.len() == 3) {
        return None;
    }
    plain(&text.replace(',', ""))
}

/// Whether a text is certainly a number of another locale, such as `97,30` or `3.176.000`.
pub(super) fn is_localized(text: &str) -> bool {
    let only = |c: char| c.is_ascii_digit() || ",.'\u{a0}\u{202f}".contains(c);
    let begins = text.starts_with(|c: char| c.is_ascii_digit());
    let parts = text.contains([',', '\'', '\u{a0}', '\u{202f}']) || text.matches('.').count() > 1;
    text.len() <= NUMBER_CHARS
        && begins
        && parts
        && text.chars().all(only)
        && grouped(text).is_none()
}

/// The factor that converts a unit to the unit of its kind.
pub(super) fn scale(kind: Quantity, unit: &str) -> Option<f64> {
    match kind {
        Quantity::Time => time_scale(unit),
        Quantity::Percent => {
            matches!(unit, "%" | "pct" | "Pct" | "Percent" | "percent").then_some(1.0)
        }
        Quantity::Bytes => {
            let unit = unit
                .strip_suffix("/block")
                .or_else(|| unit.strip_suffix("/thread"))
                .unwrap_or(unit);
            byte_scale(unit)
        }
        Quantity::BytesPerSecond => {
            let unit =
                ["/s", "/second", "/sec", "ps"].iter().find_map(|end| unit.strip_suffix(end))?;
            byte_scale(unit)
        }
        Quantity::Hertz => hertz_scale(unit),
        Quantity::Count => COUNTS.contains(&unit).then_some(1.0),
    }
}

/// Units of counts, as profilers name them.
const COUNTS: &[&str] = &[
    "",
    "register/thread",
    "registers",
    "warp",
    "warps",
    "block",
    "inst",
    "inst/cycle",
    "Instr/cycle",
    "thread",
    "threads",
    "SM",
    "sector",
    "sectors",
    "cycle",
    "branches",
];

fn time_scale(unit: &str) -> Option<f64> {
    Some(match unit {
        "ns" | "nsecond" | "nsec" => 1e-3,
        "us" | "usecond" | "usec" => 1.0,
        "ms" | "msecond" | "msec" => 1e3,
        "s" | "second" | "sec" => 1e6,
        _ => return None,
    })
}

fn byte_scale(unit: &str) -> Option<f64> {
    let prefix =
        ["bytes", "byte", "Bytes", "Byte", "B"].iter().find_map(|end| unit.strip_suffix(end))?;
    Some(match prefix {
        "" => 1.0,
        "k" | "K" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        "T" => 1e12,
        "Ki" => 1024.0,
        "Mi" => 1024.0 * 1024.0,
        "Gi" => 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    })
}

fn hertz_scale(unit: &str) -> Option<f64> {
    Some(match unit {
        "hz" | "Hz" | "cycle/second" | "cycle/s" => 1.0,
        "Khz" | "KHz" | "kHz" | "cycle/msecond" => 1e3,
        "Mhz" | "MHz" | "cycle/usecond" => 1e6,
        "Ghz" | "GHz" | "cycle/nsecond" => 1e9,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_clearly_a_number_is_one() {
        let check = |text: &str, want: Option<f64>| assert_eq!(grouped(text), want, "{text}");
        check("3,176,000", Some(3_176_000.0));
        check("3,199,469,353.48", Some(3_199_469_353.48));
        check("97.30", Some(97.3));
        check("0.2187", Some(0.2187));
        check("0", Some(0.0));
        check("0.001", Some(0.001));
        check("16384", Some(16_384.0));
        for none in [
            "",
            " ",
            "n/a",
            "nan",
            "inf",
            "-1",
            "+1",
            "1e5",
            "1e999",
            "12,34",
            "97,30",
            "0,123",
            "1.234",
            "6,288.139",
            "1,230.897,152",
            "3.176.000",
            "3.176.000,5",
            "1,23,456",
            "1,2345",
            ",1",
            "1,",
            "1.",
            ".5",
            "1 000",
            "1\u{a0}000",
            "1'000",
            "0x10",
            "٣",
            "1_000",
        ] {
            check(none, None);
        }
        check(&"9".repeat(41), None);
        for localized in ["97,30", "3.176.000", "3.176.000,5", "1'000", "1\u{202f}000"] {
            assert!(is_localized(localized), "{localized}");
        }
        for not in ["97.30", "3,176,000", "1.234", "all", "", "nan", "0"] {
            assert!(!is_localized(not), "{not}");
        }
    }

    #[test]
    fn units_are_scaled_and_strange_ones_are_refused() {
        let check = |kind: Quantity, unit: &str, want: Option<f64>| {
            assert_eq!(scale(kind, unit), want, "{kind:?} {unit}");
        };
        check(Quantity::Time, "ns", Some(1e-3));
        check(Quantity::Time, "usecond", Some(1.0));
        check(Quantity::Time, "ms", Some(1e3));
        check(Quantity::Time, "s", Some(1e6));
        check(Quantity::Time, "fortnight", None);
        check(Quantity::Bytes, "byte", Some(1.0));
        check(Quantity::Bytes, "Kbyte/block", Some(1e3));
        check(Quantity::Bytes, "KiB", Some(1024.0));
        check(Quantity::Bytes, "MB", Some(1e6));
        check(Quantity::Bytes, "", None);
        check(Quantity::BytesPerSecond, "Gbyte/s", Some(1e9));
        check(Quantity::BytesPerSecond, "byte", None);
        check(Quantity::Hertz, "hz", Some(1.0));
        check(Quantity::Hertz, "cycle/nsecond", Some(1e9));
        check(Quantity::Percent, "%", Some(1.0));
        check(Quantity::Percent, "", None);
        check(Quantity::Count, "register/thread", Some(1.0));
        check(Quantity::Count, "Kinst", None);
    }
}
