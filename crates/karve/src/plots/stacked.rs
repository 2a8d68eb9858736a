//! Rows of bars that stand one after the other, such as the steps of a round.

use super::sheet::Sheet;

const WIDTH: f64 = 840.0;
const LEFT: f64 = 110.0;
const TOP: f64 = 40.0;
const ROW: f64 = 18.0;
/// Room for the text at the end of a row.
const RIGHT: f64 = 80.0;
/// The radius of a link, and how far apart links are at least.
const LINK: f64 = 4.5;
const LINK_STEP: f64 = 10.0;

/// A row.
#[derive(Clone, Debug)]
pub(super) struct StackedRow {
    /// What stands before it.
    pub(super) name: String,
    /// Its bars, in order.
    pub(super) bars: Vec<StackedBar>,
    /// What stands after it.
    pub(super) total: String,
}

/// A bar.
#[derive(Clone, Debug)]
pub(super) struct StackedBar {
    /// Its length; all rows have the same scale.
    pub(super) length: f64,
    /// Its color.
    pub(super) color: &'static str,
    /// What it is, for the pointer.
    pub(super) about: String,
    /// Where the mark on it leads, if there is one.
    pub(super) link: Option<String>,
}

/// The plot; none if every bar is empty.
pub(super) fn stacked(title: &str, legend: &[(&str, &str)], rows: &[StackedRow]) -> Option<String> {
    let length = |row: &StackedRow| row.bars.iter().map(|bar| bar.length).sum::<f64>();
    let longest = rows.iter().map(length).fold(0.0, f64::max);
    if longest <= 0.0 {
        return None;
    }
    let mut places = Vec::new();
    let (mut x, mut y) = (14.0, TOP);
    for (name, color) in legend {
        let wide = 30.0 + 6.6 * name.chars().count() as f64;
        if x + wide > WIDTH {
            (x, y) = (14.0, y + ROW);
        }
        places.push((x, y, *name, *color));
        x += wide;
    }
    let top = y + ROW + 6.0;
    let mut sheet = Sheet::new(title, (WIDTH, top + ROW * rows.len() as f64 + 12.0));
    for (x, y, name, color) in places {
        sheet.bar((x, y - 6.0), (12.0, 12.0), (&format!("fill=\"{color}\""), name));
        sheet.text((x + 16.0, y + 4.0), "start", name);
    }
    let scale = (WIDTH - LEFT - RIGHT) / longest;
    for (at, row) in rows.iter().enumerate() {
        draw_row(&mut sheet, row, top + ROW * at as f64, scale);
    }
    Some(sheet.finish())
}

fn draw_row(sheet: &mut Sheet, row: &StackedRow, y: f64, scale: f64) {
    sheet.text((LEFT - 8.0, y + 13.0), "end", &row.name);
    let mut x = LEFT;
    let mut links = Vec::new();
    let mut free = LEFT;
    for bar in &row.bars {
        let wide = bar.length * scale;
        let style = format!("fill=\"{}\"", bar.color);
        sheet.bar((x, y + 2.0), (wide.max(0.4), ROW - 4.0), (&style, &bar.about));
        if bar.link.is_some() {
            // Marks of short bars stand side by side.
            let middle = (x + wide / 2.0).max(free);
            free = middle + LINK_STEP;
            links.push((middle, bar));
        }
        x += wide;
    }
    sheet.text((x.max(free) + 6.0, y + 13.0), "start", &row.total);
    for (x, bar) in links {
        let link = bar.link.as_deref().unwrap_or_default();
        sheet.link((x, y + ROW / 2.0), LINK, (bar.color, link, &bar.about));
    }
}
