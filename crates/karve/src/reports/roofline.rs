//! The roofline of a campaign: how close each case was to the device limit, before and after.
//!
//! Only the events are used: the roof that was measured with the baseline, and the times.

use super::source::ReportSource;
use karve_core::chart::Stroke;
use karve_core::roofline::{CaseUnderRoof, Ceiling, CeilingLimit, ceilings, shown_cores};
use karve_numerics::roof::{Cores, Roof};
use karve_profile::roofline::cases::CaseTimes;
use karve_profile::roofline::plot::{PlotPoint, RoofLine};
use karve_profile::roofline::text::{rate, time};
use karve_profile::roofline::{cases, plot};
use minijinja::{Value, context};

/// The path of the plot.
pub(super) const PLOT: &str = "roofline.svg";

/// One case, before and after.
struct RooflineRow {
    case: usize,
    level: Option<String>,
    cores: Cores,
    before: Ceiling,
    after: Ceiling,
}

/// The cases whose ceiling is known, if the peaks were measured.
fn rows(source: &ReportSource<'_>) -> Vec<RooflineRow> {
    let campaign = source.campaign;
    let roof = campaign.baseline().and_then(|baseline| baseline.roof.as_ref());
    let Some(roof) = roof else {
        return Vec::new();
    };
    let cases = cases::visible(campaign);
    let (first, last) = (cases::at_baseline(campaign), cases::of_incumbent(campaign));
    let cores = shown_cores(source.charter, &cases, roof, &[&first, &last]);
    let of = |times: &CaseTimes| ceilings(source.charter, &cases, roof, cores, times);
    let pairs = of(&first).into_iter().zip(of(&last));
    let row = |(before, after): (CaseUnderRoof, CaseUnderRoof)| RooflineRow {
        case: before.case,
        level: before.level,
        cores,
        before: before.ceiling,
        after: after.ceiling,
    };
    pairs.map(row).collect()
}

/// What the final report shows; nothing if no ceiling is known.
pub(super) fn section(source: &ReportSource<'_>) -> Option<Value> {
    let rows = rows(source);
    let first = rows.first()?;
    let cores = first.level.as_ref().map(|_| first.cores.name());
    let cells = rows.iter().map(|row| {
        let limit = match (row.before.limit, &row.level) {
            (CeilingLimit::Compute, _) => "compute".to_owned(),
            (CeilingLimit::Bandwidth, Some(level)) => format!("{level} bandwidth"),
            (CeilingLimit::Bandwidth, None) => "bandwidth".to_owned(),
        };
        context! {
            case => source.case(row.case),
            intensity => row.before.intensity,
            ceiling => rate(row.before.ceiling, "FLOP/s"),
            limit,
            floor => time(row.before.floor_s),
            before => row.before.share,
            after => row.after.share,
        }
    });
    Some(context! { cores, rows => cells.collect::<Vec<_>>() })
}

/// The plot; none if no ceiling is known.
pub(super) fn render_plot(source: &ReportSource<'_>) -> Option<String> {
    let rows = rows(source);
    let roof = source.campaign.baseline()?.roof.as_ref()?;
    if rows.is_empty() {
        return None;
    }
    let point = |name: String, ceiling: &Ceiling, sort: usize| {
        Some(PlotPoint { name, intensity: ceiling.intensity, reached: ceiling.reached?, sort })
    };
    let mut points = Vec::new();
    for row in &rows {
        let name = source.case(row.case);
        points.extend(point(String::new(), &row.before, 0));
        points.extend(point(name, &row.after, 1));
    }
    let cores = rows.first().map_or(Cores::All, |row| row.cores);
    let lines = match roof.levels.is_empty() {
        true => lines(roof),
        false => lines_on(roof, cores),
    };
    plot::render("Baseline and result", &lines, &points)
}

/// The roofs of the levels for some cores, memory first.
fn lines_on(roof: &Roof, cores: Cores) -> Vec<RoofLine> {
    let flops = match cores {
        Cores::One => roof.flops_one,
        Cores::All => roof.flops,
    };
    let Some(flops) = flops else {
        return Vec::new();
    };
    let levels = roof.levels.iter().rev().map(|level| RoofLine {
        name: format!("{}, {}", cores.name(), level.name),
        flops,
        per_s: cores.of(level).per_s,
        stroke: Stroke::Solid,
    });
    levels.collect()
}

fn lines(roof: &Roof) -> Vec<RoofLine> {
    let Some(flops) = roof.flops else {
        return Vec::new();
    };
    let line = |(index, rate): (usize, &karve_numerics::roof::ByteRate)| RoofLine {
        name: match rate.bytes {
            0 => "few bytes".to_owned(),
            bytes => format!("{} and more", size(bytes)),
        },
        flops,
        per_s: rate.per_s,
        stroke: if index == 0 { Stroke::Solid } else { Stroke::Dashed },
    };
    roof.rates.iter().enumerate().map(line).collect()
}

/// Bytes with a unit.
fn size(bytes: u64) -> String {
    match bytes {
        b if b >= 1 << 20 => format!("{} MiB", b >> 20),
        b if b >= 1 << 10 => format!("{} KiB", b >> 10),
        b => format!("{b} bytes"),
    }
}
