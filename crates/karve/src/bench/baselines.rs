//! Our kernel against every named baseline, one bench for each: `karve bench --baselines`.

use super::record::BenchSide;
use super::sides::BenchSetup;
use super::text::{figure, safe};
use super::view::{BenchView, CaseView};
use super::{BenchPlan, run};
use karve_core::comparison::Estimate;
use karve_core::view::{BaselineView, over_baselines};
use karve_harness::outcome::split;
use karve_harness::runner::check_baselines;
use karve_numerics::contract::NamedBaseline;
use karve_numerics::stats;
use karve_os::error::{CommandError, Result};
use karve_os::process::StopFlag;
use serde::Serialize;
use std::collections::BTreeMap;

/// Columns for the reason why a baseline does not count.
const WHY_CHARS: usize = 160;

/// Columns for a speedup with its interval.
const SPEEDUP_CHARS: usize = 24;

/// What all baselines showed. The rows are those of a campaign.
#[derive(Debug, Serialize)]
pub struct BaselineBench {
    /// The version of this shape.
    pub version: u32,
    /// Our side.
    pub side: BenchSide,
    /// The fastest baseline that is correct.
    pub fastest: Option<String>,
    /// Our speedup over it.
    pub headline: Option<Estimate>,
    /// The unit of the readings.
    pub unit: String,
    /// Each of them, in the order of karve.toml.
    pub baselines: Vec<BaselineView>,
    /// The bench with each that was measured, by its name: A is the baseline, B is ours.
    pub benches: BTreeMap<String, BenchView>,
}

/// Measures every baseline against our kernel; `say` receives progress messages.
pub fn measure(
    setup: &mut BenchSetup,
    plan: BenchPlan,
    stop: &StopFlag,
    say: &dyn Fn(&str),
) -> Result<BaselineBench> {
    let baselines = setup.charter.baselines.clone();
    if baselines.is_empty() {
        return Err(CommandError::usage("karve.toml names no baselines").hint(
            "add one, such as [baselines.eager] with python = \"reference.py\", to karve.toml",
        ));
    }
    let tree = setup.pair_runner.parent.tree.join(&setup.charter.workdir);
    check_baselines(&tree, &baselines)?;
    let side = setup.b.clone();
    let (mut rows, mut benches) = (Vec::new(), BTreeMap::new());
    for baseline in &baselines {
        // What an interrupted bench did not come to is in the table all the same.
        let row = match stop.finish_step() {
            true => BaselineView::new(baseline),
            false => {
                let (row, bench) = measured(setup, baseline, (plan, stop), say)?;
                benches.extend(bench.map(|bench| (baseline.name.clone(), bench)));
                row
            }
        };
        rows.push(row);
    }
    BaselineView::mark_fastest(&mut rows);
    let fastest = BaselineView::fastest(&rows);
    Ok(BaselineBench {
        version: 2,
        side,
        fastest: fastest.map(|row| row.name.clone()),
        headline: fastest.and_then(|row| row.speedup),
        unit: setup.charter.metric.unit.clone(),
        baselines: rows,
        benches,
    })
}

fn measured(
    setup: &mut BenchSetup,
    baseline: &NamedBaseline,
    (plan, stop): (BenchPlan, &StopFlag),
    say: &dyn Fn(&str),
) -> Result<(BaselineView, Option<BenchView>)> {
    let row = BaselineView::new(baseline);
    setup.face_baseline(baseline);
    say(&format!("checking the baseline {}", baseline.name));
    let cases: Vec<_> = setup.cases.iter().map(|(_, case)| case.clone()).collect();
    let arm = &setup.pair_runner.parent;
    if let Err(gate) = split(arm.harness.check_kernel(&arm.tree, &cases))? {
        return Ok((row.refused(gate.describe()), None));
    }
    say(&format!("measuring the baseline {}", baseline.name));
    let view = BenchView::of(&run(setup, plan, stop, &mut |_| {})?)?;
    let Some(clock) = view.clocks.first().filter(|_| view.pairs > 0) else {
        return Ok((row, None));
    };
    let mean = |of: fn(&CaseView) -> f64| {
        stats::geometric_mean(&view.cases.iter().map(of).collect::<Vec<_>>())
    };
    let values = [mean(|case| case.a_median), mean(|case| case.b_median)];
    Ok((row.measured(clock.estimate, values), Some(view)))
}

impl BaselineBench {
    /// The bench with the fastest correct baseline.
    pub fn deciding(&self) -> Option<&BenchView> {
        self.benches.get(self.fastest.as_ref()?)
    }

    /// One line: our speedup over the fastest baseline.
    pub fn words(&self) -> String {
        over_baselines(&self.baselines)
    }

    /// The cells of each row: name, result, speedup, its reading, ours.
    fn cells(&self) -> Vec<[String; 5]> {
        let reading = |value: Option<f64>| match value {
            Some(value) => format!("{} {}", figure(value), self.unit).trim().to_owned(),
            None => "-".to_owned(),
        };
        let of = |row: &BaselineView| {
            let result = match self.benches.get(&row.name) {
                Some(bench) => bench.finding.word(),
                None if row.is_open() => "not measured",
                None => row.state,
            };
            let speedup = match (&row.speedup, &row.why) {
                (Some(speedup), _) => speedup.describe(),
                (None, Some(why)) => safe(why, WHY_CHARS),
                (None, None) => "-".to_owned(),
            };
            let (value, ours) = (reading(row.value), reading(row.ours));
            [row.name.clone(), result.to_owned(), speedup, value, ours]
        };
        self.baselines.iter().map(of).collect()
    }

    /// For a terminal.
    pub fn render_text(&self) -> String {
        let mut lines = vec![self.words(), String::new()];
        let rows = self.cells();
        let wide = |at: usize, least: usize| {
            rows.iter().map(|row| row[at].chars().count()).max().unwrap_or(0).max(least)
        };
        let (name, word, speed) = (wide(0, 8), wide(1, 7), SPEEDUP_CHARS);
        lines.push(format!(
            "{:<name$}  {:<word$}  {:<speed$}  {:>12}  {:>12}",
            "baseline", "ours is", "speedup", "baseline", "ours"
        ));
        for [baseline, result, speedup, time, ours] in &rows {
            // A reason has the rest of the line.
            let times = match time.as_str() {
                "-" => String::new(),
                _ => format!("  {time:>12}  {ours:>12}"),
            };
            lines.push(format!("{baseline:<name$}  {result:<word$}  {speedup:<speed$}{times}"));
        }
        lines.join("\n") + "\n"
    }

    /// For a pull request.
    pub fn render_markdown(&self) -> String {
        let mut lines = vec![
            format!("**{}**", self.words()),
            String::new(),
            "| baseline | ours is | speedup, 95% interval | baseline | ours |".to_owned(),
            "|---|---|---|---|---|".to_owned(),
        ];
        for row in self.cells() {
            lines.push(format!("| {} |", row.map(|cell| cell.replace('|', "\\|")).join(" | ")));
        }
        lines.join("\n") + "\n"
    }
}
