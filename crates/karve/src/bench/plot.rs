//! Two plots of a bench as SVG: the evidence over the pairs, and the paired ratios.

use super::record::BenchRecord;
use karve_core::bench::{Bench, ClockSigns};
use karve_core::chart::{self, Chart, Stroke};
use karve_os::error::{Result, WithContext};
use std::fs;
use std::path::Path;

/// Colors for faster, slower and the same.
const COLORS: [&str; 3] = chart::COLORS;

/// Writes both plots into a directory.
pub fn write(recorded: &BenchRecord, dir: &Path) -> Result<()> {
    fs::create_dir_all(dir).context(|| format!("cannot create {}", dir.display()))?;
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

/// The evidence after each pair on a logarithmic scale, with its thresholds.
pub fn render_evidence(recorded: &BenchRecord, bench: &Bench) -> String {
    let needed = bench.rule.differs_evidence();
    let enough = bench.rule.guard_evidence();
    let path = |clock: &ClockSigns| clock.overall.path.clone();
    let highest = bench.clocks.iter().flat_map(path).flatten();
    let top = highest.fold(needed, f64::max).log10().ceil().min(308.0) + 0.3;
    let mut chart =
        Chart::new("Evidence over pairs", (0.0, f64::from(bench.n_blocks().max(8))), (0.0, top));
    let step = (top / 6.0).ceil().max(1.0);
    let ticks = (0..=6).map(|k| f64::from(k) * step).filter(|y| *y <= top);
    let ticks = ticks.map(|y| (y, format!("1e{y:.0}").replace("1e0", "1")));
    chart.axes("pairs", "evidence (log scale)", &ticks.collect::<Vec<_>>());
    chart.level(needed.log10(), COLORS[0], &format!("different: {needed:.0}"));
    chart.level(enough.log10(), COLORS[2], &format!("the same: {enough:.0}"));
    for (number, clock) in bench.clocks.iter().enumerate() {
        let name = clock.clock.called(&recorded.metric);
        for (k, what) in ["faster", "slower", "same"].into_iter().enumerate() {
            let points = clock.overall.path.iter().enumerate();
            let points = points.map(|(n, e)| ((n + 1) as f64, e[k].max(1.0).log10()));
            let stroke = if number > 0 { Stroke::Dashed } else { Stroke::Solid };
            chart.line(&points.collect::<Vec<_>>(), COLORS[k], stroke);
            chart.legend(&format!("{what}, {name}"), COLORS[k], stroke);
        }
    }
    chart.finish()
}

/// The ratio of each pair, with the median and its interval.
pub fn render_ratios(recorded: &BenchRecord, bench: &Bench) -> String {
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
        let color = COLORS[number.min(1)];
        let estimate = clock.overall.estimate();
        if let (Some(low), Some(high)) = (estimate.low, estimate.high) {
            chart.band(low.ln(), high.ln(), color);
        }
        for (n, ln) in clock.overall.ln_speedups.iter().enumerate() {
            chart.dot(((n + 1) as f64, ln.clamp(-reach, reach)), color);
        }
        let name = clock.clock.called(&recorded.metric);
        if estimate.ratio.is_finite() {
            chart.level(estimate.ratio.ln(), color, "");
            chart.legend(&format!("{name}: {:.3}x", estimate.ratio), color, Stroke::Solid);
        }
    }
    chart.level(0.0, "#888888", "");
    chart.finish()
}
