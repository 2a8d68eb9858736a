//! A roofline for people: the measurements, the entry of the device file, and the cases.

use super::{CorePeaks, GpuRoofline, HostRoofline, LevelBandwidth, Peak};
use crate::devices::{DeviceFigure, DeviceSpec};
use karve_core::roofline::{Ceiling, CeilingLimit};
use karve_core::score::figure;
use karve_numerics::roof::Cores;
use karve_os::text::safe;
use serde::Serialize;

/// The most characters of a case's name.
const NAME_MAX: usize = 32;

/// One case under the roof.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CaseCeiling {
    /// Its name.
    pub case: String,
    /// Which cache level holds its bytes, or `memory`; none for a device from the file.
    pub level: Option<String>,
    /// Intensity, ceiling, and the share of it that is reached.
    pub ceiling: Ceiling,
}

/// Everything that `karve roofline` shows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RooflineView {
    /// The measurement of this host; nothing if a device was named.
    pub host: Option<HostRoofline>,
    /// Whether it was measured just now or loaded from a saved record.
    pub fresh: bool,
    /// What was measured on the GPU.
    pub gpu: Option<GpuRoofline>,
    /// A device from the file: the requested one, or the detected one.
    pub device: Option<DeviceSpec>,
    /// The roof of the cases.
    pub roof: String,
    /// Whose times are shown, if there are any.
    pub times: Option<String>,
    /// The cases of the project whose work and bytes are known.
    pub cases: Vec<CaseCeiling>,
    /// Other notes.
    pub notes: Vec<String>,
}

/// A rate with its unit: `62.4 GFLOP/s`.
pub fn rate(value: f64, unit: &str) -> String {
    const STEPS: [(f64, &str); 4] = [(1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M")];
    let step = STEPS.iter().find(|(least, _)| value >= *least);
    let (scale, prefix) = step.copied().unwrap_or((1.0, ""));
    format!("{} {prefix}{unit}", short(value / scale))
}

/// Three digits; extreme values with a power of ten, so that columns stay aligned.
fn short(value: f64) -> String {
    match value {
        v if v >= 1e6 || (v > 0.0 && v < 0.005) => format!("{v:.1e}"),
        v if v >= 100.0 => format!("{v:.0}"),
        v if v >= 10.0 => format!("{v:.1}"),
        v => format!("{v:.2}"),
    }
}

/// Operations per byte.
fn intensity(value: f64) -> String {
    match (1e-4..1e6).contains(&value) {
        true => figure(value),
        false => format!("{value:.2e}"),
    }
}

/// A time with its unit.
pub fn time(seconds: f64) -> String {
    match seconds {
        s if s >= 1.0 => format!("{} s", short(s)),
        s if s >= 1e-3 => format!("{} ms", short(s * 1e3)),
        s if s >= 1e-6 => format!("{} us", short(s * 1e6)),
        s => format!("{} ns", short(s * 1e9)),
    }
}

/// The whole text.
pub fn render(view: &RooflineView) -> String {
    let host = view.host.as_ref();
    let mut lines = host.map_or_else(Vec::new, |host| host_lines(host, view.fresh));
    if let Some(gpu) = &view.gpu {
        lines.extend(gpu_lines(gpu));
    }
    if let Some(device) = &view.device {
        // An empty line separates two parts, with none at the start.
        let between = usize::from(lines.is_empty());
        lines.extend(device_lines(device).into_iter().skip(between));
    }
    if !view.cases.is_empty() {
        lines.push(String::new());
        lines.extend(case_lines(view));
    }
    if !view.notes.is_empty() {
        lines.push(String::new());
        lines.extend(view.notes.iter().map(|note| format!("note      {note}")));
    }
    lines.join("\n") + "\n"
}

fn host_lines(host: &HostRoofline, fresh: bool) -> Vec<String> {
    let when = if fresh { "" } else { " (saved; measure again with --fresh)" };
    let mut lines = vec![
        format!("host      {}, {} cores{when}", safe(&host.cpu, 80), host.cores),
        format!("fp32      one core {}", peak(&host.flops.one, "FLOP/s")),
        format!("          all cores {}", peak(&host.flops.all, "FLOP/s")),
        String::new(),
        format!("{:<8} {:<10} {:>14} {:>14} {:>14}", "level", "cores", "read", "copy", "triad"),
    ];
    for level in &host.levels {
        let row = |name: &str, of: fn(&CorePeaks) -> Peak, level: &LevelBandwidth| {
            let cell = |pair: &CorePeaks| rate(of(pair).best, "B/s");
            let (read, copy, triad) = (cell(&level.read), cell(&level.copy), cell(&level.triad));
            format!("{:<8} {name:<10} {read:>14} {copy:>14} {triad:>14}", level.level)
        };
        lines.push(row("one", |pair| pair.one, level));
        lines.push(row("all", |pair| pair.all, level));
    }
    let ridge = |cores: Cores| {
        let memory = host.levels.last().map_or(f64::NAN, |level| level.best(cores));
        figure(host.flops(cores) / memory)
    };
    lines.push(String::new());
    lines.push(format!(
        "ridge     {} operations per byte of memory for one core, {} for all",
        ridge(Cores::One),
        ridge(Cores::All)
    ));
    lines
}

fn peak(peak: &Peak, unit: &str) -> String {
    format!(
        "{}, best of {} runs, the median {:.0}% below",
        rate(peak.best, unit),
        peak.runs,
        peak.spread * 100.0
    )
}

fn gpu_lines(gpu: &GpuRoofline) -> Vec<String> {
    let mut lines = vec![String::new(), format!("gpu       {}", safe(&gpu.name, 80))];
    let rows =
        [("fp32", &gpu.fp32, "FLOP/s"), ("fp16", &gpu.fp16, "FLOP/s"), ("copy", &gpu.copy, "B/s")];
    for (name, found, unit) in rows {
        if let Some(found) = found {
            lines.push(format!("{name:<9} {}", peak(found, unit)));
        }
    }
    lines
}

fn device_lines(device: &DeviceSpec) -> Vec<String> {
    let mut lines = vec![
        String::new(),
        format!("device    {} ({})", safe(&device.name, 80), safe(&device.arch, 40)),
    ];
    let shown = [
        (DeviceFigure::Fp64, "FLOP/s"),
        (DeviceFigure::Fp32, "FLOP/s"),
        (DeviceFigure::Tf32, "FLOP/s"),
        (DeviceFigure::Bf16, "FLOP/s"),
        (DeviceFigure::Fp8, "FLOP/s"),
        (DeviceFigure::Fp4, "FLOP/s"),
        (DeviceFigure::MemoryRate, "B/s"),
    ];
    for (name, unit) in shown {
        if let Some(known) = device.figure(name) {
            let value = rate(known.value, unit);
            lines.push(format!("{:<12} {value:<14} {}", name.name(), safe(&known.source, 90)));
        }
    }
    lines
}

fn case_lines(view: &RooflineView) -> Vec<String> {
    let of = match &view.times {
        Some(times) => format!("; times of {}", safe(times, 80)),
        None => "; no times (see --time)".to_owned(),
    };
    let mut lines = vec![
        format!("cases     under {}{of}", view.roof),
        format!(
            "{:<NAME_MAX$} {:>9} {:>14} {:>16} {:>10} {:>10} {:>7}",
            "case", "op/byte", "ceiling", "limit", "floor", "time", "share"
        ),
    ];
    for row in &view.cases {
        let ceiling = &row.ceiling;
        let limit = match (&row.level, ceiling.limit) {
            (Some(level), CeilingLimit::Bandwidth) => format!("{level} {}", ceiling.limit.name()),
            (Some(_), CeilingLimit::Compute) | (None, _) => ceiling.limit.name().to_owned(),
        };
        let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        lines.push(format!(
            "{:<NAME_MAX$} {:>9} {:>14} {:>16} {:>10} {:>10} {:>7}",
            safe(&row.case, NAME_MAX),
            intensity(ceiling.intensity),
            rate(ceiling.ceiling, "FLOP/s"),
            limit,
            time(ceiling.floor_s),
            or_dash(ceiling.time_s.map(time)),
            or_dash(ceiling.share.map(|share| format!("{:.1}%", share * 100.0)))
        ));
    }
    let impossible = view.cases.iter().filter(|row| row.ceiling.is_impossible());
    let names: Vec<String> = impossible.map(|row| safe(&row.case, NAME_MAX)).collect();
    if let Some(first) = names.first() {
        let more = match names.len() {
            1 => String::new(),
            n => format!(" and {} more", n - 1),
        };
        lines.push(format!(
            "note      {first}{more}: far above the ceiling, so metric.work or metric.bytes of \
             karve.toml is wrong"
        ));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_and_times_have_three_digits_and_a_unit() {
        assert_eq!(rate(62.44e9, "FLOP/s"), "62.4 GFLOP/s");
        assert_eq!(rate(1.2834e15, "FLOP/s"), "1.28 PFLOP/s");
        assert_eq!(rate(4.8e12, "B/s"), "4.80 TB/s");
        assert_eq!(rate(12.0, "B/s"), "12.0 B/s");
        assert_eq!(time(1.77e-5), "17.7 us");
        assert_eq!(time(2.5), "2.50 s");
        assert_eq!(time(3e-9), "3.00 ns");
        // Impossible values do not break a column.
        for (text, most) in [
            (rate(1e30, "FLOP/s"), 14),
            (rate(1e-30, "FLOP/s"), 14),
            (time(1e30), 10),
            (time(1e-30), 10),
            (intensity(1e30), 9),
            (intensity(1e-30), 9),
            (intensity(12.5), 9),
        ] {
            assert!(text.len() <= most, "{text}");
        }
    }
}
