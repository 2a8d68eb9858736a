//! Profiles: the kernels before and after, and where the time of a profile goes.

use super::GRAY;
use super::sheet::Sheet;
use karve_core::chart::COLORS;
use karve_core::payload::{ProfileRow, ProfiledKernel};
use karve_core::profile::PROGRAM;
use karve_core::score::figure;

/// The most kernels of a plot.
const KERNELS_MAX: usize = 10;
const WIDTH: f64 = 840.0;
const LEFT: f64 = 260.0;
const TOP: f64 = 46.0;
const ROW: f64 = 34.0;

/// The time of a kernel in microseconds, or its share in percent.
fn weight(kernel: &ProfiledKernel) -> Option<(f64, &'static str)> {
    let of = |name: &str| kernel.counters.get(name).copied().filter(|value| *value > 0.0);
    of("duration_us").map(|us| (us, "us")).or_else(|| of("share_pct").map(|pct| (pct, "%")))
}

/// The longest kernels, before and after; none if no profile has times. A whole program is none of
/// them: how long a profiled run takes says little about its kernel.
pub fn kernels(before: Option<&ProfileRow>, after: Option<&ProfileRow>) -> Option<String> {
    let is_kernel = |kernel: &&ProfiledKernel| kernel.name != PROGRAM;
    let all = |row: Option<&ProfileRow>| -> Vec<ProfiledKernel> {
        row.map_or(Vec::new(), |row| row.kernels.iter().filter(is_kernel).cloned().collect())
    };
    let (first, last) = (all(before), all(after));
    let mut names: Vec<String> = Vec::new();
    for kernel in first.iter().chain(&last).filter(|kernel| weight(kernel).is_some()) {
        if !names.contains(&kernel.name) && names.len() < KERNELS_MAX {
            names.push(kernel.name.clone());
        }
    }
    let of = |list: &[ProfiledKernel], name: &str| {
        list.iter().find(|kernel| kernel.name == name).and_then(weight)
    };
    let both = names.iter().flat_map(|name| [of(&first, name), of(&last, name)]);
    let longest = both.flatten().map(|(value, _)| value).fold(0.0, f64::max);
    if longest <= 0.0 {
        return None;
    }
    let size = (WIDTH, TOP + ROW * names.len() as f64 + 14.0);
    let mut sheet = Sheet::new("Longest kernels (gray: before, blue: after)", size);
    for (row, name) in names.iter().enumerate() {
        let y = TOP + ROW * row as f64;
        sheet.text((LEFT - 10.0, y + 18.0), "end", name);
        for (at, (list, color)) in [(&first, GRAY), (&last, COLORS[0])].into_iter().enumerate() {
            let Some((value, unit)) = of(list, name) else {
                continue;
            };
            let y = y + 14.0 * at as f64;
            let wide = value / longest * (WIDTH - LEFT - 120.0);
            let text = format!("{} {unit}", figure(value));
            sheet.bar((LEFT, y), (wide.max(1.0), 12.0), (&format!("fill=\"{color}\""), &text));
            sheet.text((LEFT + wide + 6.0, y + 10.0), "start", &text);
        }
    }
    Some(sheet.finish())
}

/// The time of all launches of a kernel, or its share.
fn total(kernel: &ProfiledKernel) -> Option<f64> {
    let launches = kernel.counters.get("launches").copied().unwrap_or(1.0);
    weight(kernel).map(|(value, unit)| if unit == "us" { value * launches } else { value })
}

/// Where the time of a profile goes, as areas; none for fewer than two kernels.
pub fn treemap(profile: &ProfileRow) -> Option<String> {
    let timed = profile.kernels.iter().filter_map(|kernel| Some((kernel, total(kernel)?)));
    let mut timed: Vec<(&ProfiledKernel, f64)> = timed.take(KERNELS_MAX * 2).collect();
    timed.sort_by(|a, b| b.1.total_cmp(&a.1));
    if timed.len() < 2 {
        return None;
    }
    let mut sheet = Sheet::new("Time by kernel (blue: editable)", (WIDTH, 300.0));
    let mut rest = (14.0, 40.0, WIDTH - 28.0, 246.0);
    let mut left: f64 = timed.iter().map(|(_, value)| value).sum();
    for (kernel, value) in timed {
        // Slice off the longer side.
        let share = (value / left).clamp(0.0, 1.0);
        let (x, y, wide, high) = rest;
        let size = if wide >= high { (wide * share, high) } else { (wide, high * share) };
        let color = if kernel.editable { COLORS[0] } else { GRAY };
        let style = format!("fill=\"{color}\" fill-opacity=\"0.55\" class=\"cell\"");
        let inner = ((size.0 - 2.0).max(0.5), (size.1 - 2.0).max(0.5));
        sheet.bar((x, y), inner, (&style, &format!("{}: {}", kernel.name, figure(value))));
        if size.0 > 70.0 && size.1 > 16.0 {
            let short: String = kernel.name.chars().take((size.0 / 7.5) as usize).collect();
            sheet.text((x + 5.0, y + 15.0), "start", &short);
        }
        rest = match wide >= high {
            true => (x + size.0, y, wide - size.0, high),
            false => (x, y + size.1, wide, high - size.1),
        };
        left -= value;
    }
    Some(sheet.finish())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn a_whole_program_is_no_kernel() {
        let row = |names: &[&str]| {
            let counters = BTreeMap::from([("duration_us".to_owned(), 5.0)]);
            let kernel = |name: &&str| ProfiledKernel {
                name: (*name).to_owned(),
                editable: true,
                counters: counters.clone(),
            };
            ProfileRow {
                round: None,
                commit: String::new(),
                bottleneck: "memory",
                cause: String::new(),
                skipped: None,
                kernels: names.iter().map(kernel).collect(),
                families: Vec::new(),
            }
        };
        assert_eq!(kernels(Some(&row(&[PROGRAM])), Some(&row(&[PROGRAM]))), None);
        let drawn = kernels(Some(&row(&[PROGRAM, "gemm"])), None).unwrap();
        assert!(drawn.contains("gemm") && !drawn.contains(PROGRAM), "{drawn}");
    }
}
