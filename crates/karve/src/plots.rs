//! The plots of a campaign as SVG, from its payload: the same pictures are on the live page, in
//! the reports, and in the files that `karve report --svg` writes. Pure: no file, no clock.

mod cost;
mod duel;
mod families;
mod forest;
mod heatmap;
mod kernels;
mod lineage;
mod sheet;
mod stacked;
mod ticks;
mod timeline;
mod trend;

pub use duel::{ecdf, evidence, pairs};
pub use families::families;
pub use forest::forest;
pub use kernels::{kernels, treemap};
pub use timeline::{TurnUrl, timeline};

use karve_core::chart::COLORS;
use karve_core::payload::Payload;

/// The color of what was not kept.
const GRAY: &str = "#8a8a8a";

/// A plot with its name, which is also the name of its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plot {
    /// Its name.
    pub name: &'static str,
    /// The picture.
    pub svg: String,
}

/// The plots of a whole campaign that there is something to draw for.
pub fn of_campaign(payload: &Payload) -> Vec<Plot> {
    let cases = payload.final_comparison.as_ref();
    let all = [
        ("trend", trend::trend(payload)),
        ("cases", cases.and_then(|shown| forest(payload, shown, "Original against final"))),
        ("heatmap", heatmap::heatmap(payload)),
        ("lineage", lineage::lineage(payload)),
        ("timeline", timeline(payload, None)),
        ("cost", cost::cost(payload)),
        ("families", families(&payload.profiles)),
    ];
    all.into_iter().filter_map(|(name, svg)| Some(Plot { name, svg: svg? })).collect()
}

/// The color of a verdict.
fn color_of(verdict: &str) -> &'static str {
    match verdict {
        kept if kept.starts_with("keep") => COLORS[2],
        "undecided" => COLORS[1],
        _ => GRAY,
    }
}
