//! Where the axis of a speedup is marked: at round values, also when all of it is close to 1.

/// From this ratio between both ends on, marks at even distances would crowd at one end.
const EVEN_MAX: f64 = 2.5;
/// Steps between both ends, at most.
const STEPS_MAX: f64 = 7.0;
/// Decades on an axis before some are left out.
const DECADES_MAX: i32 = 8;

/// Round speedups between two of them, with what is written there.
pub(super) fn ratio_ticks(low: f64, high: f64) -> Vec<(f64, String)> {
    if high / low < EVEN_MAX { even_ticks(low, high) } else { log_ticks(low, high) }
}

/// As 0.95, 1.00, 1.05.
fn even_ticks(low: f64, high: f64) -> Vec<(f64, String)> {
    // Steps of 1/2, 1/5, 1/10, …: each mark is a whole number of them, so one is exactly at 1.
    let parts = (0..6).flat_map(|decade| [2, 5, 10].map(|part| part * 10_i64.pow(decade)));
    let fitting = parts.take_while(|per_one| (high - low) * *per_one as f64 <= STEPS_MAX);
    let per_one = fitting.last().unwrap_or(1);
    let decimals = (per_one as f64).log10().ceil() as usize;
    let marks = (low * per_one as f64).ceil() as i64..=(high * per_one as f64).floor() as i64;
    marks
        .map(|mark| mark as f64 / per_one as f64)
        .map(|ratio| (ratio, format!("{ratio:.decimals$}x")))
        .collect()
}

/// As 1, 2, 5, 10.
fn log_ticks(low: f64, high: f64) -> Vec<(f64, String)> {
    let (first, last) = (low.log10(), high.log10());
    let parts: &[f64] = match last - first {
        range if range > 4.0 => &[1.0],
        range if range > 0.6 => &[1.0, 2.0, 5.0],
        _ => &[1.0, 1.2, 1.5, 2.0, 3.0, 5.0, 7.0, 9.0],
    };
    let every = (last - first).ceil() as i32 / DECADES_MAX + 1;
    let decades = (first.floor() as i32)..=(last.ceil() as i32);
    let decades = decades.filter(|decade| decade % every == 0);
    let marks = decades.flat_map(|decade| parts.iter().map(move |part| part * 10_f64.powi(decade)));
    let marks = marks.map(|ratio| (ratio, shown(ratio)));
    marks.filter(|(ratio, _)| (low..=high).contains(ratio)).collect()
}

/// As short as it can be: `0.5x`, `1x`, `1.2x`, `100x`.
fn shown(ratio: f64) -> String {
    if ratio >= 10.0 {
        return format!("{ratio:.0}x");
    }
    let decimals = if ratio < 1.0 { -ratio.log10().floor() as usize } else { 1 };
    let text = format!("{ratio:.decimals$}");
    format!("{}x", text.strip_suffix(".0").unwrap_or(&text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_round_and_few_for_small_and_large_gains() {
        let check = |low: f64, high: f64, want: &str| {
            let marks = ratio_ticks(low, high);
            let texts: Vec<&str> = marks.iter().map(|(_, text)| text.as_str()).collect();
            assert_eq!(texts.join(" "), want, "{low} to {high}");
            assert!(marks.iter().any(|(ratio, _)| *ratio == 1.0), "{marks:?}");
        };
        check(0.9999, 1.00005, "0.99990x 0.99995x 1.00000x 1.00005x");
        check(0.994, 1.0031, "0.994x 0.996x 0.998x 1.000x 1.002x");
        check(0.93, 1.35, "1.0x 1.1x 1.2x 1.3x");
        check(0.9, 2.1, "1.0x 1.2x 1.4x 1.6x 1.8x 2.0x");
        check(0.8, 3.0, "0.9x 1x 1.2x 1.5x 2x 3x");
        check(0.3, 200.0, "0.5x 1x 2x 5x 10x 20x 50x 100x 200x");
        check(0.001, 2e4, "0.01x 1x 100x 10000x");
        assert!(ratio_ticks(1e-30, 1e30).len() <= 10);
    }
}
