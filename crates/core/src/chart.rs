//! Charts as SVG.
//!
//! Written by hand: a few charts with axes take fewer lines than configuring a plotting crate.

/// The width of a picture, in pixels.
pub const WIDTH: f64 = 840.0;
/// Its height.
pub const HEIGHT: f64 = 420.0;
/// The space to the left of the chart.
pub const LEFT: f64 = 84.0;
/// The space to the right of it, for the legend.
pub const RIGHT: f64 = 210.0;
/// The space above it.
pub const TOP: f64 = 44.0;
/// The space below it.
pub const BOTTOM: f64 = 52.0;

/// The height of a label, and how many find a place of their own.
const LABEL: f64 = 14.0;
const LABELS_MAX: u32 = 20;
/// A color-blind safe palette.
pub const COLORS: [&str; 3] = ["#0072b2", "#d55e00", "#009e73"];

/// A chart under construction, with its ranges.
#[derive(Clone, Debug)]
pub struct Chart {
    x: (f64, f64),
    y: (f64, f64),
    body: String,
    legends: u32,
    /// How high the labels of levels are.
    labels: Vec<f64>,
}

impl Chart {
    /// An empty chart with a title and the ranges of both axes.
    pub fn new(title: &str, x: (f64, f64), y: (f64, f64)) -> Self {
        let mut chart = Self { x, y, body: String::new(), legends: 0, labels: Vec::new() };
        chart.text(
            (LEFT, TOP - 18.0),
            "start",
            &format!("<tspan font-size=\"16\">{title}</tspan>"),
        );
        chart
    }

    /// Where a point lies, in pixels.
    pub fn at(&self, (x, y): (f64, f64)) -> (f64, f64) {
        let across = (x - self.x.0) / (self.x.1 - self.x.0);
        let up = (y - self.y.0) / (self.y.1 - self.y.0);
        let (width, height) = (WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM);
        (LEFT + across * width, TOP + (1.0 - up) * height)
    }

    /// Adds an element.
    pub fn put(&mut self, element: &str) {
        self.body.push_str(element);
        self.body.push('\n');
    }

    /// Text at a position in pixels; the caller escapes it.
    pub fn text(&mut self, (x, y): (f64, f64), anchor: &str, text: &str) {
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

    /// Both axes with their names, and the ticks of the vertical one; the horizontal one counts.
    pub fn axes(&mut self, x_name: &str, y_name: &str, ticks: &[(f64, String)]) {
        let step = ((self.x.1 / 8.0).ceil()).max(1.0);
        let counts = (0..=8).map(|k| f64::from(k) * step);
        let counts = counts.map(|x| (x, format!("{x:.0}"))).collect::<Vec<_>>();
        self.marked_axes(x_name, &counts, y_name, ticks);
    }

    /// Both axes with their names and ticks.
    pub fn marked_axes(
        &mut self,
        x_name: &str,
        x_ticks: &[(f64, String)],
        y_name: &str,
        ticks: &[(f64, String)],
    ) {
        for (y, label) in ticks {
            let (x0, at) = self.at((self.x.0, *y));
            let x1 = self.at((self.x.1, *y)).0;
            self.stroke([(x0, at), (x1, at)], "class=\"grid\" stroke=\"#e4e4e4\"");
            self.text((x0 - 8.0, at + 4.0), "end", label);
        }
        let right = self.x.1;
        for (x, label) in x_ticks.iter().filter(|(x, _)| *x <= right) {
            let (at, bottom) = self.at((*x, self.y.0));
            self.stroke([(at, bottom), (at, bottom + 5.0)], "class=\"axis\" stroke=\"#333333\"");
            self.text((at, bottom + 19.0), "middle", label);
        }
        let (duel_case, end) = (self.at((self.x.0, self.y.0)), self.at((self.x.1, self.y.1)));
        self.stroke([duel_case, (end.0, duel_case.1)], "class=\"axis\" stroke=\"#333333\"");
        self.stroke([duel_case, (duel_case.0, end.1)], "class=\"axis\" stroke=\"#333333\"");
        let middle = f64::midpoint(duel_case.0, end.0);
        self.text((middle, HEIGHT - 12.0), "middle", x_name);
        let y = f64::midpoint(duel_case.1, end.1);
        self.put(&format!(
            "<text transform=\"translate(16 {y:.1}) rotate(-90)\" text-anchor=\"middle\">{y_name}\
             </text>"
        ));
    }

    /// A horizontal line with a label.
    pub fn level(&mut self, y: f64, color: &str, label: &str) {
        let (from, to) = (self.at((self.x.0, y)), self.at((self.x.1, y)));
        self.stroke([from, to], &format!("stroke=\"{color}\" stroke-dasharray=\"2 3\""));
        let y = self.free_label(to.1 - 5.0);
        self.labels.push(y);
        self.text((to.0 - 4.0, y), "end", label);
    }

    /// The nearest height for a label where no other label is.
    fn free_label(&self, wanted: f64) -> f64 {
        let inside = |y: &f64| (TOP + LABEL..HEIGHT - BOTTOM).contains(y);
        let is_free = |y: &f64| self.labels.iter().all(|taken| (taken - y).abs() >= LABEL);
        let steps = (1..=LABELS_MAX).flat_map(|step| [f64::from(step), -f64::from(step)]);
        let others = steps.map(|step| wanted + step * LABEL).filter(inside);
        std::iter::once(wanted).chain(others).find(is_free).unwrap_or(wanted)
    }

    /// The band between two levels.
    pub fn band(&mut self, low: f64, high: f64, color: &str) {
        let clamp = |y: f64| y.clamp(self.y.0, self.y.1);
        let (a, b) = (self.at((self.x.0, clamp(high))), self.at((self.x.1, clamp(low))));
        self.put(&format!(
            "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"{color}\" \
             fill-opacity=\"0.15\"/>",
            a.0,
            a.1,
            b.0 - a.0,
            b.1 - a.1
        ));
    }

    /// A shape with a text that is shown when the pointer is on it; the caller escapes it.
    pub fn mark(&mut self, point: (f64, f64), shape: Shape, (color, about): (&str, &str)) {
        let (x, y) = self.at(point);
        let drawn = shape.element((x, y), color);
        self.put(&format!("<g><title>{about}</title>{drawn}</g>"));
    }

    /// A dot.
    pub fn dot(&mut self, point: (f64, f64), color: &str) {
        let (x, y) = self.at(point);
        self.put(&format!(
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2.6\" fill=\"{color}\" fill-opacity=\"0.7\"/>"
        ));
    }

    /// Many dots as one element.
    pub fn dots(&mut self, points: &[(f64, f64)], color: &str) {
        let place = |point: &(f64, f64)| {
            let (x, y) = self.at(*point);
            format!("M{x:.1} {y:.1}h0")
        };
        let path: String = points.iter().map(place).collect();
        self.put(&format!(
            "<path d=\"{path}\" stroke=\"{color}\" stroke-width=\"5\" stroke-opacity=\"0.7\" \
             stroke-linecap=\"round\" fill=\"none\"/>"
        ));
    }

    /// A line through points.
    pub fn line(&mut self, points: &[(f64, f64)], color: &str, stroke: Stroke) {
        let place = |point: &(f64, f64)| {
            let (x, y) = self.at(*point);
            format!("{x:.1},{y:.1}")
        };
        let places: Vec<String> = points.iter().map(place).collect();
        let dash = stroke.attribute();
        self.put(&format!(
            "<polyline fill=\"none\" stroke=\"{color}\" stroke-width=\"1.8\"{dash} \
             points=\"{}\"/>",
            places.join(" ")
        ));
    }

    /// One entry of the legend.
    pub fn legend(&mut self, label: &str, color: &str, stroke: Stroke) {
        let y = TOP + 10.0 + f64::from(self.legends) * 20.0;
        let x = WIDTH - RIGHT + 14.0;
        self.legends += 1;
        let dash = stroke.attribute();
        let style = format!("stroke=\"{color}\" stroke-width=\"2.4\"{dash}");
        self.stroke([(x, y), (x + 24.0, y)], &style);
        self.text((x + 30.0, y + 4.0), "start", &escaped(label));
    }

    /// The whole picture.
    pub fn finish(self) -> String {
        picture(WIDTH, HEIGHT, &self.body)
    }
}

/// What replaces the colors in a dark environment.
const DARK: &str = "<style>@media (prefers-color-scheme: dark) {\
    .karve-plot { fill: #d9dce1; } .karve-plot .paper { fill: #15181d; } \
    .karve-plot .grid { stroke: #2b3038; } .karve-plot .axis { stroke: #8c939e; } \
    .karve-plot .halo { stroke: #15181d; } .karve-plot .on-cell { fill: #15181d; } \
    .karve-plot [stroke='#0072b2'] { stroke: #56b4e9; } \
    .karve-plot [fill='#0072b2'] { fill: #56b4e9; } }</style>";

/// The same picture for a page that sets the colors itself.
pub fn inlined(svg: &str) -> String {
    svg.replacen(DARK, "", 1)
}

/// A picture around elements that are drawn already.
pub fn picture(width: f64, height: f64, body: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"karve-plot\" width=\"{width}\" \
         height=\"{height}\" viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" \
         font-size=\"12\" fill=\"#222222\">\n{DARK}\n<rect class=\"paper\" width=\"{width}\" \
         height=\"{height}\" fill=\"#ffffff\"/>\n{body}</svg>\n"
    )
}

/// The shape of a mark: what it stands for must be visible without its color.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A filled circle.
    Disc,
    /// A cross.
    Cross,
    /// An empty circle.
    Ring,
    /// A filled diamond.
    Diamond,
}

impl Shape {
    /// The shape around a position in pixels.
    pub fn element(self, (x, y): (f64, f64), color: &str) -> String {
        match self {
            Self::Disc => format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\" fill=\"{color}\"/>"),
            Self::Ring => format!(
                "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.6\" fill=\"none\" stroke=\"{color}\" \
                 stroke-width=\"1.6\"/>"
            ),
            Self::Cross => format!(
                "<path d=\"M{:.1} {:.1}l7 7m0 -7l-7 7\" stroke=\"{color}\" stroke-width=\"1.6\" \
                 fill=\"none\"/>",
                x - 3.5,
                y - 3.5
            ),
            Self::Diamond => {
                format!("<path d=\"M{x:.1} {:.1}l5 5l-5 5l-5 -5z\" fill=\"{color}\"/>", y - 5.0)
            }
        }
    }
}

/// How a line is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stroke {
    /// Solid.
    Solid,
    /// Dashed.
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

/// Text escaped for use between tags.
pub fn escaped(text: &str) -> String {
    let clean: String = text.chars().filter(|c| !c.is_control()).take(40).collect();
    let clean = clean.replace('&', "&amp;").replace('<', "&lt;");
    clean.replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_of_near_levels_do_not_overlap() {
        let mut chart = Chart::new("levels", (0.0, 1.0), (0.0, 1.0));
        for n in 0..6 {
            chart.level(0.98 + f64::from(n) / 1_000.0, "#000", "near the top");
            chart.level(f64::from(n) / 1_000.0, "#000", "near the bottom");
        }
        let mut heights = chart.labels.clone();
        heights.sort_by(f64::total_cmp);
        assert!(heights.windows(2).all(|two| two[1] - two[0] >= LABEL), "{heights:?}");
        assert!(heights.iter().all(|y| (0.0..HEIGHT - BOTTOM).contains(y)), "{heights:?}");
    }
}
