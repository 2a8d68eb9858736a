//! Our kernel against every named baseline, one bench for each: `karve bench --baselines`.

use super::record::{BenchEnd, BenchSide};
use super::sides::BenchSetup;
use super::text::{figure, safe};
use super::view::BenchView;
use super::{BenchPlan, run};
use karve_core::comparison::Estimate;
use karve_core::score::factor_text;
use karve_core::verdict;
use karve_harness::outcome::split;
use karve_numerics::contract::NamedBaseline;
use karve_numerics::stats;
use karve_os::error::{CommandError, Result};
use karve_os::process::StopFlag;
use serde::Serialize;

/// Columns for the reason why a baseline does not count.
const WHY_CHARS: usize = 160;

/// Columns for a speedup with its interval.
const SPEEDUP_CHARS: usize = 24;

/// What all baselines showed.
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
    /// The unit of the times.
    pub unit: String,
    /// Each of them, in the order of karve.toml.
    pub baselines: Vec<BaselineRow>,
}

/// One baseline.
#[derive(Debug, Serialize)]
pub struct BaselineRow {
    /// Its name.
    pub name: String,
    /// What is called.
    pub what: String,
    /// Whether it passes the correctness check.
    pub correct: bool,
    /// Why not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Our speedup over it.
    pub speedup: Option<Estimate>,
    /// Its time, and ours beside it: geometric means over the cases.
    pub time: Option<f64>,
    /// See `time`.
    pub ours: Option<f64>,
    /// The bench: A is the baseline, B is ours.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bench: Option<BenchView>,
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
    let side = setup.b.clone();
    let mut rows = Vec::new();
    for baseline in &baselines {
        if stop.finish_step() {
            break;
        }
        rows.push(row(setup, baseline, (plan, stop), say)?);
    }
    let speedups: Vec<Option<Estimate>> = rows.iter().map(|row| row.speedup).collect();
    let fastest = verdict::fastest_baseline(&speedups).map(|at| &rows[at]);
    Ok(BaselineBench {
        version: 1,
        side,
        fastest: fastest.map(|row| row.name.clone()),
        headline: fastest.and_then(|row| row.speedup),
        unit: setup.charter.metric.unit.clone(),
        baselines: rows,
    })
}

fn row(
    setup: &mut BenchSetup,
    baseline: &NamedBaseline,
    (plan, stop): (BenchPlan, &StopFlag),
    say: &dyn Fn(&str),
) -> Result<BaselineRow> {
    let mut row = BaselineRow {
        name: baseline.name.clone(),
        what: baseline.kernel.describe(),
        correct: true,
        why: None,
        speedup: None,
        time: None,
        ours: None,
        bench: None,
    };
    setup.face_baseline(baseline);
    say(&format!("checking the baseline {}", baseline.name));
    let cases: Vec<_> = setup.cases.iter().map(|(_, case)| case.clone()).collect();
    let arm = &setup.pair_runner.parent;
    if let Err(gate) = split(arm.harness.check_kernel(&arm.tree, &cases))? {
        return Ok(BaselineRow { correct: false, why: Some(gate.describe()), ..row });
    }
    say(&format!("measuring the baseline {}", baseline.name));
    let view = BenchView::of(&run(setup, plan, stop, &mut |_| {})?)?;
    if view.end == BenchEnd::Stopped && view.pairs == 0 {
        return Ok(row);
    }
    let mean = |of: fn(&super::view::CaseView) -> f64| {
        stats::geometric_mean(&view.cases.iter().map(of).collect::<Vec<_>>())
    };
    row.time = mean(|case| case.a_median);
    row.ours = mean(|case| case.b_median);
    row.speedup = view.clocks.first().map(|clock| clock.estimate);
    row.bench = Some(view);
    Ok(row)
}

impl BaselineBench {
    /// One line: our speedup over the fastest baseline.
    pub fn words(&self) -> String {
        match (&self.fastest, &self.headline) {
            (Some(name), Some(speedup)) => {
                format!("{} over {name}, the fastest correct baseline", spoken(speedup))
            }
            _ => "no baseline is correct".to_owned(),
        }
    }

    /// The cells of each row: name, result, speedup, its time, ours.
    fn cells(&self) -> Vec<[String; 5]> {
        let time = |value: Option<f64>| match value {
            Some(value) => format!("{} {}", figure(value), self.unit).trim().to_owned(),
            None => "-".to_owned(),
        };
        let of = |row: &BaselineRow| {
            let result = match (&row.bench, row.correct) {
                (Some(bench), _) => bench.finding.word().to_owned(),
                (None, true) => "not measured".to_owned(),
                (None, false) => "not correct".to_owned(),
            };
            let speedup = match (&row.speedup, &row.why) {
                (Some(speedup), _) => spoken(speedup),
                (None, Some(why)) => safe(why, WHY_CHARS),
                (None, None) => "-".to_owned(),
            };
            [row.name.clone(), result, speedup, time(row.time), time(row.ours)]
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

/// A speedup with its interval.
fn spoken(speedup: &Estimate) -> String {
    match (speedup.low, speedup.high) {
        (Some(low), Some(high)) => {
            format!("{} [{low:.3}, {high:.3}]", factor_text(speedup.ratio))
        }
        _ => factor_text(speedup.ratio),
    }
}
