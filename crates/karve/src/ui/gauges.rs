//! Figures for screens: times, bars, small trends, and the device.

use karve_core::measurement::Conditions;
use karve_os::text::safe;

/// The heights of a small trend.
const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// A time for people: `12 s`, `3 min 05 s`, `2 h 07 min`.
pub fn time_text(seconds: f64) -> String {
    let seconds = if seconds.is_finite() { seconds.clamp(0.0, 1e9) } else { 0.0 };
    let whole = seconds as u64;
    match whole {
        0..10 if seconds.fract() > 0.0 => format!("{seconds:.1} s"),
        0..60 => format!("{whole} s"),
        60..3_600 => format!("{} min {:02} s", whole / 60, whole % 60),
        _ => format!("{} h {:02} min", whole / 3_600, whole / 60 % 60),
    }
}

/// A bar of `width` characters that is filled to a share.
pub fn bar(share: f64, width: usize) -> String {
    let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 };
    let filled = (share * width as f64).round() as usize;
    "█".repeat(filled.min(width)) + &"░".repeat(width.saturating_sub(filled))
}

/// A trend in one line: the last `width` values, each as a height. Values that are equal have the
/// lowest.
pub fn trend_text(values: &[f64], width: usize) -> String {
    let values = &values[values.len().saturating_sub(width)..];
    let finite = values.iter().copied().filter(|value| value.is_finite());
    let (low, high) = finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
        (low.min(value), high.max(value))
    });
    let height = |value: &f64| {
        let share = (value - low) / (high - low);
        let at = if share.is_finite() { (share * 7.0).round() as usize } else { 0 };
        HEIGHTS[at.min(HEIGHTS.len() - 1)]
    };
    values.iter().map(height).collect()
}

/// The state of the device, as far as it is known.
pub fn device_text(conditions: &Conditions) -> String {
    let mut parts = Vec::new();
    parts.extend(conditions.load.map(|load| format!("load {load:.2}")));
    parts.extend(conditions.pressure.map(|share| format!("CPU pressure {share:.0}%")));
    parts.extend(conditions.cpu_mhz.map(|mhz| format!("CPU {mhz} MHz")));
    if let Some(gpu) = &conditions.gpu {
        parts.push(safe(&gpu.name, 40));
        parts.extend(gpu.temperature_c.map(|celsius| format!("{celsius:.0} °C")));
        parts.extend(gpu.power_w.map(|watts| format!("{watts:.0} W")));
        parts.extend(gpu.sm_clock_mhz.map(|mhz| format!("SM {mhz} MHz")));
        parts.extend(gpu.mem_clock_mhz.map(|mhz| format!("memory {mhz} MHz")));
        if !gpu.throttle.is_empty() {
            parts.push(format!("throttled: {}", safe(&gpu.throttle.join(", "), 60)));
        }
    }
    parts.join(" · ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_trends_and_times_hold_at_their_ends() {
        assert_eq!(
            (bar(0.5, 4), bar(9.0, 3), bar(f64::NAN, 2)),
            ("██░░".into(), "███".into(), "░░".into())
        );
        assert_eq!(trend_text(&[1.0, 1.5, 2.0], 9), "▁▅█");
        assert_eq!(trend_text(&[9.0, 1.0, 1.0], 2), "▁▁");
        assert_eq!(trend_text(&[f64::NAN], 5).chars().count(), 1);
        assert_eq!(trend_text(&[], 5), "");
        let times = [0.25, 12.0, 185.0, 7_620.0, f64::NAN].map(time_text);
        assert_eq!(times, ["0.2 s", "12 s", "3 min 05 s", "2 h 07 min", "0 s"]);
    }
}
