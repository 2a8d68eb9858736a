//! What a running campaign shows below its lines: the best so far, the last verdicts, the device.

use super::gauges::{device_text, time_text, trend_text};
use karve_core::campaign::Campaign;
use karve_core::measurement::Conditions;
use karve_core::payload;
use karve_os::text::safe;

/// Rounds in the small trend.
const TREND_ROUNDS: usize = 30;
/// Verdicts that are shown.
const VERDICTS: usize = 4;

/// The lines of the panel; empty before the baseline is measured.
pub(super) fn lines(campaign: &Campaign, conditions: Option<&Conditions>) -> Vec<String> {
    let mut lines = Vec::new();
    if campaign.baseline().is_some() {
        lines.push(best_line(campaign));
    }
    let rounds = campaign.rounds();
    let last: Vec<String> = rounds[rounds.len().saturating_sub(VERDICTS)..]
        .iter()
        .map(|round| {
            let ratio = round.ratio().map_or_else(String::new, |ratio| format!(" {ratio:.3}x"));
            format!("{} {}{ratio} {}", round.number, round.verdict.word(), safe(round.title(), 24))
        })
        .collect();
    if !last.is_empty() {
        lines.push(format!("  last    {}", last.join(" | ")));
    }
    let device = conditions.map(device_text).filter(|text| !text.is_empty());
    lines.extend(device.map(|text| format!("  device  {text}")));
    lines
}

fn best_line(campaign: &Campaign) -> String {
    let trend = payload::trend(campaign);
    let best_round = campaign.lineage().best().map(|kept| kept.round);
    let of_best = trend.iter().find(|row| Some(row.round) == best_round);
    let best = match of_best.and_then(|row| row.estimate) {
        Some(estimate) => estimate.describe(),
        None => "nothing kept yet".to_owned(),
    };
    let series: Vec<f64> = trend.iter().map(|row| row.best).collect();
    let series = match best_round {
        Some(_) => format!("  {}", trend_text(&series, TREND_ROUNDS)),
        None => String::new(),
    };
    let limits = campaign.charter().map(|charter| charter.limits);
    let rounds = limits.map_or(0, |limits| limits.rounds);
    let time = match limits.and_then(|limits| limits.wall_s) {
        Some(wall_s) => format!(" of {}", time_text(wall_s as f64)),
        None => String::new(),
    };
    let (done, kept) = (campaign.rounds().len(), campaign.lineage().kept().len());
    let spent = time_text((campaign.spent_ms() / 1_000) as f64);
    format!("  best    {best}{series}  {done} of {rounds} rounds, {kept} kept, {spent}{time}")
}
