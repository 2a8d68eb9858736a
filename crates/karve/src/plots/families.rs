//! How much of the time of all kernels each family of kernels takes, profile by profile.

use super::stacked::{StackedBar, StackedRow, stacked};
use karve_core::payload::{FamilyTime, ProfileRow};
use karve_core::profile::families as known;
use karve_core::score::{figure, percent_text};

/// The most rows; the last profiles are shown.
const ROWS_MAX: usize = 50;
/// The colors of the families, in their order; the last one is of those that no name shows.
const FAMILY_COLORS: [&str; 12] = [
    "#cc79a7", "#a6761d", "#f0c340", "#009e73", "#7570b3", "#2b62b0", "#d55e00", "#66a61e",
    "#56b4e9", "#e69f00", "#e7298a", "#8a8a8a",
];

/// The plot; none if all kernels are of one family.
pub fn families(profiles: &[ProfileRow]) -> Option<String> {
    let shown: Vec<&ProfileRow> = profiles.iter().filter(|p| !p.families.is_empty()).collect();
    let shown = &shown[shown.len().saturating_sub(ROWS_MAX)..];
    let has = |name: &str| shown.iter().any(|p| p.families.iter().any(|of| of.family == name));
    let legend = known().zip(FAMILY_COLORS).filter(|(name, _)| has(name));
    let legend: Vec<(&str, &'static str)> = legend.collect();
    if legend.len() < 2 {
        return None;
    }
    let rows: Vec<StackedRow> = shown.iter().map(|profile| row(profile, &legend)).collect();
    let title = "Kernel time by family, as shares of each profile";
    stacked(title, &legend, &rows)
}

fn row(profile: &ProfileRow, legend: &[(&str, &'static str)]) -> StackedRow {
    let total: f64 = profile.families.iter().map(|of| of.us).sum();
    let bar = |(name, color): &(&str, &'static str)| {
        let of: &FamilyTime = profile.families.iter().find(|of| of.family == *name)?;
        let share = of.us / total;
        let kernels = if of.kernels == 1 { "kernel" } else { "kernels" };
        let (percent, us) = (percent_text(share * 100.0), figure(of.us));
        let about = format!("{name}: {percent}, {us} us in {} {kernels}", of.kernels);
        Some(StackedBar { length: share, color, about, link: None })
    };
    StackedRow {
        name: profile.round.map_or("end".to_owned(), |round| format!("before {round}")),
        bars: legend.iter().filter_map(bar).collect(),
        total: format!("{} us", figure(total)),
    }
}
