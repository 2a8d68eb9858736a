//! The results of an evaluator: `metrics.json` for OpenEvolve and ShinkaEvolve.

use super::{ExportFile, ExportResult, ExportSource};
use karve_core::charter::Better;
use karve_core::comparison::Estimate;
use karve_numerics::stats;
use karve_os::error::{CommandError, Result};
use serde_json::{Map, Value as Json, json};

/// `metrics.json`: numbers by name; `combined_score` is what is compared, and higher is better.
pub(super) fn openevolve(source: &ExportSource<'_>) -> Result<ExportResult> {
    let mut metrics = public_metrics(source)?;
    metrics.insert("combined_score".into(), combined_score(source)?.into());
    Ok(ExportResult::one("metrics.json", pretty(&Json::Object(metrics))))
}

/// `metrics.json` with public and private parts, and `correct.json`.
pub(super) fn shinka(source: &ExportSource<'_>) -> Result<ExportResult> {
    let campaign = source.campaign;
    let round = campaign.rounds().iter().find(|round| round.number == source.figures.round);
    let title = round.map_or("the kernel that the campaign started from", |round| round.title());
    let metrics = json!({
        "combined_score": combined_score(source)?,
        "public": public_metrics(source)?,
        "private": {},
        "text_feedback": title,
    });
    let file = |path: &str, value: &Json| ExportFile { path: path.into(), text: pretty(value) };
    let correct = json!({ "correct": true, "error": null });
    Ok(ExportResult {
        files: vec![file("metrics.json", &metrics), file("correct.json", &correct)],
        notes: Vec::new(),
    })
}

/// The score of the task itself where that is what was measured, else the speedup over the
/// original, which every version has.
fn combined_score(source: &ExportSource<'_>) -> Result<f64> {
    let values: Vec<f64> = source.figures.cases.iter().map(|case| case.value).collect();
    let score = match source.charter.metric.better {
        Better::Higher => stats::geometric_mean(&values),
        Better::Lower => source.figures.speedup(),
    };
    score.ok_or_else(|| not_measured(source.figures.round))
}

fn public_metrics(source: &ExportSource<'_>) -> Result<Map<String, Json>> {
    let figures = &source.figures;
    let mut metrics = Map::new();
    let speedup = figures.speedup().ok_or_else(|| not_measured(figures.round))?;
    let plain = Estimate { ratio: speedup, low: None, high: None };
    let measured = [
        ("speedup_over_original", Some(figures.overall.unwrap_or(plain))),
        ("speedup_over_baseline", figures.over_baseline),
    ];
    for (name, speedup) in measured.into_iter().filter_map(|(name, one)| Some((name, one?))) {
        metrics.insert(name.into(), speedup.ratio.into());
        if let Some((low, high)) = speedup.low.zip(speedup.high) {
            metrics.insert(format!("{name}_low"), low.into());
            metrics.insert(format!("{name}_high"), high.into());
        }
    }
    let name = &source.charter.metric.name;
    for case in &figures.cases {
        metrics.insert(format!("{name} {}", case.name), case.value.into());
    }
    Ok(metrics)
}

/// What is said of a version without figures.
pub(super) fn not_measured(round: u32) -> CommandError {
    CommandError::usage(format!("version {round} was not measured"))
        .hint("\"karve log\" lists the rounds with their speedups; choose one with --round N")
}

pub(super) fn pretty(value: &Json) -> String {
    format!("{value:#}\n")
}
