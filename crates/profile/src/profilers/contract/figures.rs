//! Figures of the hyper-mla contract: cells with a number or an explicit blank, expected gains,
//! and changes that must match the two values next to them.

use super::{GAIN_PCT_MAX, NONE, ReportOpportunity, quoted};

/// Separators between the parts of an opportunity; the published copies use the first two.
const DASHES: [&str; 4] = [" — ", " -- ", " – ", " - "];
/// Units of a time, in microseconds.
const UNITS: [(&str, f64); 6] =
    [("ns", 1e-3), ("us", 1.0), ("\u{b5}s", 1.0), ("\u{3bc}s", 1.0), ("ms", 1e3), ("s", 1e6)];

/// The number in a cell, with or without a percent sign; nothing if the cell is marked blank.
pub(super) fn figure(cell: &str, most: f64) -> Result<Option<f64>, String> {
    let plain = cell.trim();
    if [NONE, "—", "n/a", "N/A"].contains(&plain) {
        return Ok(None);
    }
    let plain = plain.strip_suffix('%').unwrap_or(plain).trim_end();
    let value = number(plain).ok_or_else(|| format!("{} is not a number", quoted(cell)))?;
    if value > most {
        return Err(format!("{plain} is more than {most}"));
    }
    Ok(Some(value))
}

/// A time in microseconds. Its unit is in the cell or in the header of the column, and if it is
/// in both they agree.
pub(super) fn duration(cell: &str, column: &str) -> Result<Option<f64>, String> {
    let known = column.contains("(us)");
    if cell.contains('%') {
        return Err(format!("{} is not a time", quoted(cell)));
    }
    let unit = UNITS.iter().find(|(unit, _)| {
        let rest = cell.trim_end().strip_suffix(unit);
        rest.is_some_and(|rest| rest.ends_with(|c: char| c.is_ascii_digit() || c == ' '))
    });
    match unit {
        Some((unit, scale)) if !known || *scale == 1.0 => {
            let number = cell.trim_end().strip_suffix(unit).unwrap_or(cell);
            Ok(figure(number, f64::MAX)?.map(|value| value * scale))
        }
        Some((unit, _)) => Err(format!("{unit} is not the unit of the column")),
        None => match figure(cell, f64::MAX)? {
            Some(value) if !known => Err(format!("{value} has no unit, such as us")),
            value => Ok(value),
        },
    }
}

/// An unambiguous number of at least zero: no separators between digits.
fn number(text: &str) -> Option<f64> {
    let (mantissa, exponent) = parts(text);
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, rest) = mantissa.split_once('.').unwrap_or((mantissa, "0"));
    let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    let plain = digits(whole) && digits(rest) && digits(exponent);
    let value: f64 = text.parse().ok().filter(|_| plain)?;
    value.is_finite().then_some(value)
}

/// The parts before and after the exponent sign.
fn parts(text: &str) -> (&str, &str) {
    text.split_once(['e', 'E']).unwrap_or((text, "0"))
}

/// The range of values that round to a number.
fn range(text: &str) -> Option<(f64, f64)> {
    let value = number(text)?;
    let (mantissa, exponent) = parts(text);
    let decimals = mantissa.split_once('.').map_or(0, |(_, rest)| rest.len());
    let place = exponent.parse::<i32>().ok()? - i32::try_from(decimals).ok()?;
    let half = 0.5 * 10_f64.powi(place);
    half.is_finite().then_some((value - half, value + half))
}

/// The true change from one number to another, if the stated percentage is wrong. Values that
/// are not numbers are not compared.
pub(super) fn change_holds(previous: &str, current: &str, change: &str) -> Option<String> {
    let written = change.trim().strip_suffix('%')?.trim_end();
    let (sign, size) = match written.strip_prefix(['-', '−']) {
        Some(size) => (-1.0, size),
        None => (1.0, written.strip_prefix('+').unwrap_or(written)),
    };
    let (size_low, size_high) = range(size.trim_start())?;
    let ((before_low, before_high), (after_low, after_high)) = (range(previous)?, range(current)?);
    if before_low <= 0.0 {
        return None;
    }
    let percent = |ratio: f64| (ratio - 1.0) * 100.0;
    let (low, high) = (percent(after_low / before_high), percent(after_high / before_low));
    let (size_low, size_high) =
        if sign < 0.0 { (-size_high, -size_low) } else { (size_low, size_high) };
    let apart = size_high < low || size_low > high;
    let (before, after) = (number(previous)?, number(current)?);
    apart.then(|| format!("{:+.1}%", percent(after / before)))
}

/// Reads `1. name — est. X% gain — trigger: metric=value` as the opportunity of a rank.
pub(super) fn opportunity(line: &str, rank: usize) -> Result<ReportOpportunity, String> {
    let form = || {
        let form = "name — est. X% gain — trigger: metric=value";
        format!("{} is not \"{rank}. {form}\"", quoted(line))
    };
    let rest = line.strip_prefix(&format!("{rank}. ")).ok_or_else(form)?;
    let parts = DASHES.iter().find_map(|dash| {
        // From the end, so that a name may contain a dash.
        let (rest, trigger) = rest.rsplit_once(dash)?;
        let (name, gain) = rest.rsplit_once(dash)?;
        Some((name.trim(), gain.trim(), trigger.trim()))
    });
    let (name, gain, trigger) = parts.filter(|(name, ..)| !name.is_empty()).ok_or_else(form)?;
    let percent = gain
        .strip_prefix("est.")
        .and_then(|gain| gain.trim_start().strip_suffix("gain")?.trim_end().strip_suffix('%'));
    let gain_pct = percent
        .and_then(|percent| number(percent.trim_end()))
        .filter(|percent| *percent <= GAIN_PCT_MAX)
        .ok_or_else(|| format!("the gain {} is not \"est. X% gain\"", quoted(gain)))?;
    let reported = trigger.strip_prefix("trigger:").ok_or_else(form)?;
    let trigger = pairs(reported);
    Ok(ReportOpportunity {
        name: name.to_owned(),
        gain_pct,
        trigger: trigger
            .ok_or_else(|| format!("the trigger {} is not metric=value", quoted(reported)))?,
    })
}

/// `metric=value`, or several separated by commas; nothing if it is anything else.
pub fn pairs(text: &str) -> Option<Vec<(String, String)>> {
    let pair = |pair: &str| {
        let (metric, value) = pair.split_once('=')?;
        let (metric, value) = (metric.trim(), value.trim());
        let plain = |c: char| c.is_alphanumeric() || "_.%/() -".contains(c);
        let usable = !metric.is_empty() && metric.chars().all(plain);
        let reported = !value.is_empty() && !value.contains('=');
        (usable && reported).then(|| (metric.to_owned(), value.to_owned()))
    };
    text.split(", ").map(pair).collect()
}
