//! A sheet of any size to draw rows, cells and bars on.

use karve_core::chart::{escaped, picture};

/// Elements that are drawn so far.
#[derive(Clone, Debug)]
pub(super) struct Sheet {
    width: f64,
    height: f64,
    body: String,
}

impl Sheet {
    /// An empty sheet with a title.
    pub(super) fn new(title: &str, (width, height): (f64, f64)) -> Self {
        let mut sheet = Self { width, height, body: String::new() };
        sheet.put(&format!("<text x=\"14\" y=\"24\" font-size=\"16\">{}</text>", told(title)));
        sheet
    }

    /// Adds an element.
    pub(super) fn put(&mut self, element: &str) {
        self.body.push_str(element);
        self.body.push('\n');
    }

    /// Text at a position; it is escaped and bounded.
    pub(super) fn text(&mut self, at: (f64, f64), anchor: &str, text: &str) {
        self.words(at, anchor, &escaped(text));
    }

    /// Text that may be longer than a label.
    pub(super) fn sentence(&mut self, at: (f64, f64), text: &str) {
        self.words(at, "start", &told(text));
    }

    fn words(&mut self, (x, y): (f64, f64), anchor: &str, text: &str) {
        self.put(&format!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>"
        ));
    }

    /// A line.
    pub(super) fn line(&mut self, from: (f64, f64), to: (f64, f64), style: &str) {
        self.put(&format!(
            "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" {style}/>",
            from.0, from.1, to.0, to.1
        ));
    }

    /// A rectangle with a text that is shown when the pointer is on it.
    pub(super) fn bar(&mut self, at: (f64, f64), size: (f64, f64), (style, about): (&str, &str)) {
        self.put(&format!(
            "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" {style}><title>{}\
             </title></rect>",
            at.0,
            at.1,
            size.0.max(0.0),
            size.1.max(0.0),
            told(about)
        ));
    }

    /// A ring that leads elsewhere.
    pub(super) fn link(
        &mut self,
        at: (f64, f64),
        radius: f64,
        (color, to, about): (&str, &str, &str),
    ) {
        self.put(&format!(
            "<a href=\"{}\"><circle class=\"turn\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"{radius}\" \
             stroke=\"{color}\" fill=\"#ffffff\" stroke-width=\"2\"><title>{}</title></circle></a>",
            told(to).replace('"', "&quot;"),
            at.0,
            at.1,
            told(about)
        ));
    }

    /// The picture.
    pub(super) fn finish(self) -> String {
        picture(self.width, self.height, &self.body)
    }
}

/// Text for a title element, escaped and bounded, but longer than a label.
pub(super) fn told(text: &str) -> String {
    let clean: String = text.chars().filter(|c| !c.is_control()).take(200).collect();
    clean.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// A share of a color from white to full, as an opacity.
pub(super) fn opacity(share: f64) -> f64 {
    if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 }
}
