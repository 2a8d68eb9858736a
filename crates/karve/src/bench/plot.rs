//! Two plots of a bench as SVG: the evidence over the pairs, and the paired ratios.
//!
//! Written by hand: two charts with axes are fewer lines than a crate would need to be told.

use super::record::Recorded;
use crate::error::{Context, Result};
use karve_core::bench::{Bench, ClockSigns};
use std::fs;
use std::path::Path;

/// The size of a plot, and of the space around its chart, in pixels.
const WIDTH: f64 = 840.0;
const HEIGHT: f64 = 420.0;
const LEFT: f64 = 84.0;
const RIGHT: f64 = 210.0;
const TOP: f64 = 44.0;
const BOTTOM: f64 = 52.0;
/// Colours that differ also for those who see fewer of them: faster, slower, same.
const COLOURS: [&str; 3] = ["#0072b2", "#d55e00", "#009e73"];

/// Writes both plots into a directory.
pub fn write(recorded: &Recorded, dir: &Path) -> Result<()> {
    fs::create_dir_all(dir).context(|| format!("cannot make {}", dir.display()))?;
    let bench = recorded.bench()?;
    for (name, text) in [
        ("evidence.svg", render_evidence(recorded, &bench)),
        ("ratios.svg", render_ratios(recorded, &bench)),
    ] {
        let path = dir.join(name);
        fs::write(&path, text)
            .context(|| format!("cannot write {}", path.display()))
            .map_err(|error| error.hint("name another directory with --svg DIR"))?;
    }
    Ok(())
}

/// The evidence after each pair on a logarithmic scale, with what it must reach.
pub fn render_evidence(recorded: &Recorded, bench: &Bench) -> String {
    let needed = bench.rule.differs_evidence();
    let enough = bench.rule.guard_evidence();
    let path = |clock: &ClockSigns| clock.overall.path.clone();
    let highest = bench.clocks.iter().flat_map(path).flatten();
    let top = highest.fold(needed, f64::max).log10().ceil().min(308.0) + 0.3;
    let mut chart = Chart::new(
        "Evidence over pairs",
        (0.0, f64::from(bench.n_blocks().max(8))),
        (0.0, top),
    );
    let step = (top / 6.0).ceil().max(1.0);
    let ticks = (0..=6).map(|k| f64::from(k) * step).filter(|y| *y <= top);
    let ticks = ticks.map(|y| (y, format!("1e{y:.0}").replace("1e0", "1")));
    chart.axes("pairs", "evidence (log scale)", &ticks.collect::<Vec<_>>());
    chart.level(
        needed.log10(),
        COLOURS[0],
        &format!("tells apart: {needed:.0}"),
    );
    chart.level(
        enough.log10(),
        COLOURS[2],
        &format!("the same: {enough:.0}"),
    );
    for (number, clock) in bench.clocks.iter().enumerate() {
        let name = clock.clock.called(&recorded.metric);
        for (k, what) in ["faster", "slower", "same"].into_iter().enumerate() {
            let points = clock.overall.path.iter().enumerate();
            let points = points.map(|(n, e)| ((n + 1) as f64, e[k].max(1.0).log10()));
            let stroke = if number > 0 {
                Stroke::Dashed
            } else {
                Stroke::Solid
            };
            chart.line(&points.collect::<Vec<_>>(), COLOURS[k], stroke);
            chart.legend(&format!("{what}, {name}"), COLOURS[k], stroke);
        }
    }
    chart.finish()
}

/// The ratio of each pair, with the median and its interval.
pub fn render_ratios(recorded: &Recorded, bench: &Bench) -> String {
    let all = bench.clocks.iter().flat_map(|c| &c.overall.ln_speedups);
    let reach = all.map(|ln| ln.abs()).fold(0.02, f64::max).min(4.0) * 1.1;
    let mut chart = Chart::new(
        "Ratio A/B of each pair (above 1: B is faster)",
        (0.0, f64::from(bench.n_blocks().max(8))),
        (-reach, reach),
    );
    let ticks = (-3..=3).map(|k| f64::from(k) * reach / 3.3);
    let ticks = ticks.map(|y| (y, format!("{:.3}x", y.exp())));
    chart.axes("pairs", "ratio", &ticks.collect::<Vec<_>>());
    for (number, clock) in bench.clocks.iter().enumerate() {
        let colour = COLOURS[number.min(1)];
        let estimate = clock.overall.estimate();
        if let (Some(low), Some(high)) = (estimate.low, estimate.high) {
            chart.band(low.ln(), high.ln(), colour);
        }
        for (n, ln) in clock.overall.ln_speedups.iter().enumerate() {
            chart.dot(((n + 1) as f64, ln.clamp(-reach, reach)), colour);
        }
        let name = clock.clock.called(&recorded.metric);
        if estimate.ratio.is_finite() {
            chart.level(estimate.ratio.ln(), colour, "");
            chart.legend(
                &format!("{name}: {:.3}x", estimate.ratio),
                colour,
                Stroke::Solid,
            );
        }
    }
    chart.level(0.0, "#888888", "");
    chart.finish()
}

/// A chart under construction, with its ranges.
struct Chart {
    x: (f64, f64),
    y: (f64, f64),
    body: String,
    legends: u32,
}

impl Chart {
    fn new(title: &str, x: (f64, f64), y: (f64, f64)) -> Self {
        let mut chart = Self {
            x,
            y,
            body: String::new(),
            legends: 0,
        };
        chart.text(
            (LEFT, TOP - 18.0),
            "start",
            &format!("<tspan font-size=\"16\">{title}</tspan>"),
        );
        chart
    }

    fn at(&self, (x, y): (f64, f64)) -> (f64, f64) {
        let across = (x - self.x.0) / (self.x.1 - self.x.0);
        let up = (y - self.y.0) / (self.y.1 - self.y.0);
        let (width, height) = (WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM);
        (LEFT + across * width, TOP + (1.0 - up) * height)
    }

    fn put(&mut self, element: &str) {
        self.body.push_str(element);
        self.body.push('\n');
    }

    fn text(&mut self, (x, y): (f64, f64), anchor: &str, text: &str) {
        self.put(&format!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>"
        ));
    }

    fn stroke(&mut self, [from, to]: [(f64, f64); 2], style: &str) {
        self.put(&format!(
            "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" {style}/>",
            from.0, from.1, to.0, to.1
        ));
    }

    fn axes(&mut self, x_name: &str, y_name: &str, ticks: &[(f64, String)]) {
        for (y, label) in ticks {
            let (x0, at) = self.at((self.x.0, *y));
            let x1 = self.at((self.x.1, *y)).0;
            self.stroke([(x0, at), (x1, at)], "stroke=\"#e4e4e4\"");
            self.text((x0 - 8.0, at + 4.0), "end", label);
        }
        let step = ((self.x.1 / 8.0).ceil()).max(1.0);
        for k in 0..=8 {
            let x = f64::from(k) * step;
            if x <= self.x.1 {
                let (at, bottom) = self.at((x, self.y.0));
                self.stroke([(at, bottom), (at, bottom + 5.0)], "stroke=\"#333333\"");
                self.text((at, bottom + 19.0), "middle", &format!("{x:.0}"));
            }
        }
        let (corner, end) = (self.at((self.x.0, self.y.0)), self.at((self.x.1, self.y.1)));
        self.stroke([corner, (end.0, corner.1)], "stroke=\"#333333\"");
        self.stroke([corner, (corner.0, end.1)], "stroke=\"#333333\"");
        let middle = f64::midpoint(corner.0, end.0);
        self.text((middle, HEIGHT - 12.0), "middle", x_name);
        let y = f64::midpoint(corner.1, end.1);
        self.put(&format!(
            "<text transform=\"translate(16 {y:.1}) rotate(-90)\" text-anchor=\"middle\">{y_name}\
             </text>"
        ));
    }

    fn level(&mut self, y: f64, colour: &str, label: &str) {
        let (from, to) = (self.at((self.x.0, y)), self.at((self.x.1, y)));
        self.stroke(
            [from, to],
            &format!("stroke=\"{colour}\" stroke-dasharray=\"2 3\""),
        );
        self.text((to.0 - 4.0, to.1 - 5.0), "end", label);
    }

    fn band(&mut self, low: f64, high: f64, colour: &str) {
        let clamp = |y: f64| y.clamp(self.y.0, self.y.1);
        let (a, b) = (
            self.at((self.x.0, clamp(high))),
            self.at((self.x.1, clamp(low))),
        );
        self.put(&format!(
            "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"{colour}\" \
             fill-opacity=\"0.15\"/>",
            a.0,
            a.1,
            b.0 - a.0,
            b.1 - a.1
        ));
    }

    fn dot(&mut self, point: (f64, f64), colour: &str) {
        let (x, y) = self.at(point);
        self.put(&format!(
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2.6\" fill=\"{colour}\" fill-opacity=\"0.7\"/>"
        ));
    }

    fn line(&mut self, points: &[(f64, f64)], colour: &str, stroke: Stroke) {
        let place = |point: &(f64, f64)| {
            let (x, y) = self.at(*point);
            format!("{x:.1},{y:.1}")
        };
        let places: Vec<String> = points.iter().map(place).collect();
        let dash = stroke.attribute();
        self.put(&format!(
            "<polyline fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.8\"{dash} \
             points=\"{}\"/>",
            places.join(" ")
        ));
    }

    fn legend(&mut self, label: &str, colour: &str, stroke: Stroke) {
        let y = TOP + 10.0 + f64::from(self.legends) * 20.0;
        let x = WIDTH - RIGHT + 14.0;
        self.legends += 1;
        let dash = stroke.attribute();
        let style = format!("stroke=\"{colour}\" stroke-width=\"2.4\"{dash}");
        self.stroke([(x, y), (x + 24.0, y)], &style);
        self.text((x + 30.0, y + 4.0), "start", &escaped(label));
    }

    fn finish(self) -> String {
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{HEIGHT}\" \
             viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"12\" \
             fill=\"#222222\">\n<rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#ffffff\"/>\n\
             {}</svg>\n",
            self.body
        )
    }
}

/// How a line is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stroke {
    Solid,
    Dashed,
}

impl Stroke {
    fn attribute(self) -> &'static str {
        match self {
            Self::Solid => "",
            Self::Dashed => " stroke-dasharray=\"7 4\"",
        }
    }
}

/// Text that is safe between tags.
fn escaped(text: &str) -> String {
    let clean: String = text.chars().filter(|c| !c.is_control()).take(40).collect();
    let clean = clean.replace('&', "&amp;").replace('<', "&lt;");
    clean.replace('>', "&gt;")
}
