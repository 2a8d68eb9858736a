//! A roofline as SVG: operations per second over operations per byte, both on a logarithmic scale.
//!
//! Pure: the same figures yield the same picture. A roof is a slope, a ridge and a flat part.

use karve_core::chart::{self, Chart, Stroke, escaped};

/// Color-blind safe colors of roofs and points.
const COLORS: [&str; 6] =
    [chart::COLORS[0], chart::COLORS[1], chart::COLORS[2], "#cc79a7", "#56b4e9", "#e69f00"];

/// The most roofs and points; more would be indistinguishable.
const ROOFS_MAX: usize = 8;
const POINTS_MAX: usize = 40;
/// The lines that fit next to the plot, and their spacing in pixels.
const LINES_MAX: usize = 16;
const LINE: f64 = 20.0;
/// The widest range of a scale, in powers of ten.
const SPAN_MAX: f64 = 12.0;

/// One roof.
#[derive(Clone, Debug, PartialEq)]
pub struct RoofLine {
    /// Its name in the legend.
    pub name: String,
    /// Operations per second.
    pub flops: f64,
    /// Bytes per second.
    pub per_s: f64,
    /// How it is drawn.
    pub stroke: Stroke,
}

/// One call under the roofs.
#[derive(Clone, Debug, PartialEq)]
pub struct PlotPoint {
    /// Its name.
    pub name: String,
    /// Operations per byte.
    pub intensity: f64,
    /// Operations per second.
    pub reached: f64,
    /// The index of its color: calls of the same kind share one.
    pub sort: usize,
}

fn usable(value: f64) -> bool {
    value.is_finite() && value > 0.0
}

/// The picture; none if there is no roof.
pub fn render(title: &str, roofs: &[RoofLine], points: &[PlotPoint]) -> Option<String> {
    let sound = |roof: &&RoofLine| usable(roof.flops) && usable(roof.per_s);
    let roofs: Vec<&RoofLine> = roofs.iter().filter(sound).take(ROOFS_MAX).collect();
    let sound = |point: &&PlotPoint| usable(point.intensity) && usable(point.reached);
    let points: Vec<&PlotPoint> = points.iter().filter(sound).take(POINTS_MAX).collect();
    if roofs.is_empty() {
        return None;
    }
    let ridges = roofs.iter().map(|roof| roof.flops / roof.per_s);
    let across = span(ridges.chain(points.iter().map(|p| p.intensity)), 1.0);
    let flops = roofs.iter().map(|roof| roof.flops);
    let low = roofs.iter().map(|roof| roof.per_s * 10_f64.powf(across.0));
    let heights = flops.chain(low).chain(points.iter().map(|p| p.reached));
    let up = span(heights, 0.2);
    let mut chart = Chart::new(&escaped(title), across, up);
    chart.marked_axes(
        "operations per byte (log scale)",
        &decade_ticks(across, intensity),
        "operations per second (log scale)",
        &decade_ticks(up, rate),
    );
    for (number, roof) in roofs.iter().enumerate() {
        let color = COLORS[number % COLORS.len()];
        chart.line(&roof_points(roof, across, up), color, roof.stroke);
        chart.legend(&roof.name, color, roof.stroke);
        let ridge = roof.flops.log10() - roof.per_s.log10();
        chart.dot((ridge, roof.flops.log10()), color);
    }
    name_points(&mut chart, roofs.len(), &points);
    Some(chart.finish())
}

/// Dots with numbers, and next to the plot the case of each number. A point without a name has
/// no number.
fn name_points(chart: &mut Chart, n_roofs: usize, points: &[&PlotPoint]) {
    let mut n_named = 0;
    for point in points {
        let color = COLORS[point.sort % COLORS.len()];
        let (x, y) = (point.intensity.log10(), point.reached.log10());
        chart.dot((x, y), color);
        if point.name.is_empty() {
            continue;
        }
        n_named += 1;
        let (x, y) = chart.at((x, y));
        // Alternate between right and left: neighbors are often close.
        let (x, anchor) = match n_named % 2 {
            1 => (x + 6.0, "start"),
            _ => (x - 6.0, "end"),
        };
        chart.text((x, y + 4.0), anchor, &n_named.to_string());
        let line = n_roofs + n_named;
        if line <= LINES_MAX {
            let at = (chart::WIDTH - chart::RIGHT + 14.0, chart::TOP + LINE * line as f64);
            let name = format!("{n_named}: {}", escaped(&point.name));
            chart.text(at, "start", &name);
        }
    }
}

/// The slope from the left edge to the ridge, and from there to the right edge.
fn roof_points(roof: &RoofLine, across: (f64, f64), up: (f64, f64)) -> Vec<(f64, f64)> {
    let (flat, rate) = (roof.flops.log10(), roof.per_s.log10());
    // A slope that starts below the plot enters it from below.
    let start = across.0.max(up.0 - rate).min(across.1);
    let ridge = (flat - rate).clamp(start, across.1);
    let top = |x: f64| (x, (x + rate).min(flat));
    vec![top(start), top(ridge), (across.1, top(across.1).1)]
}

/// From one power of ten to another, around all values.
fn span(values: impl Iterator<Item = f64>, margin: f64) -> (f64, f64) {
    let logs: Vec<f64> = values.filter(|v| usable(*v)).map(f64::log10).collect();
    let low = logs.iter().copied().fold(f64::INFINITY, f64::min);
    let high = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if logs.is_empty() {
        return (0.0, 1.0);
    }
    let (low, high) = ((low - margin).floor(), (high + margin).ceil());
    (low.max(high - SPAN_MAX), high.max(low + 1.0))
}

fn decade_ticks((low, high): (f64, f64), label: fn(i32) -> String) -> Vec<(f64, String)> {
    let (low, high) = (low as i32, high as i32);
    let capabilities = (low..=high).take(SPAN_MAX as usize + 2);
    capabilities.map(|k| (f64::from(k), label(k))).collect()
}

fn intensity(power: i32) -> String {
    match power {
        -3..=3 => format!("{}", 10_f64.powi(power)),
        _ => format!("1e{power}"),
    }
}

/// 1e9 as `1 G`, 1e13 as `10 T`.
fn rate(power: i32) -> String {
    const PREFIXES: [&str; 6] = ["", "k", "M", "G", "T", "P"];
    let prefix = usize::try_from(power / 3).ok().and_then(|k| PREFIXES.get(k));
    match prefix {
        Some(prefix) if power >= 0 => format!("{} {prefix}", 10_u32.pow((power % 3) as u32)),
        Some(_) | None => format!("1e{power}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn roof(flops: f64, per_s: f64) -> RoofLine {
        RoofLine { name: "one <core>".into(), flops, per_s, stroke: Stroke::Solid }
    }

    fn point(intensity: f64, reached: f64) -> PlotPoint {
        PlotPoint { name: "n=1".into(), intensity, reached, sort: 0 }
    }

    #[test]
    fn a_roof_is_a_slope_and_a_flat_part() {
        let duel_cases = roof_points(&roof(1e11, 1e10), (-1.0, 3.0), (8.0, 12.0));
        assert_eq!(duel_cases, [(-1.0, 9.0), (1.0, 11.0), (3.0, 11.0)]);
        // The slope enters from below.
        let below = super::roof_points(&roof(1e11, 1e7), (-1.0, 5.0), (8.0, 12.0));
        assert_eq!(below, [(1.0, 8.0), (4.0, 11.0), (5.0, 11.0)]);
    }

    #[test]
    fn a_picture_is_whole_whatever_the_figures_are() {
        let svg = render("A & B", &[roof(1e11, 1e10)], &[point(16.0, 5e9)]).expect("a picture");
        assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n"));
        assert!(svg.contains("one &lt;core&gt;") && svg.contains("A &amp; B"));
        assert!(svg.contains("100 G"), "{svg}");
        assert_eq!(render("", &[], &[]), None);
        assert_eq!(render("", &[roof(f64::NAN, 1.0), roof(1.0, 0.0)], &[]), None);
        for value in [1e-300, 1e300, f64::INFINITY, -1.0, 0.0, f64::NAN] {
            let points = [point(value, 1e9), point(1.0, value)];
            let svg = render("", &[roof(1e11, 1e10), roof(1e300, 1e-300)], &points);
            let svg = svg.expect("a picture");
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        }
    }

    #[test]
    fn marks_are_named_as_people_say_them() {
        assert_eq!(rate(9), "1 G");
        assert_eq!(rate(13), "10 T");
        assert_eq!(rate(-2), "1e-2");
        assert_eq!(rate(30), "1e30");
        assert_eq!(intensity(-1), "0.1");
        assert_eq!(intensity(4), "1e4");
    }
}
