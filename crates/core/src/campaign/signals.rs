//! The five signals of a review, from the figures of a round alone. Advice: no verdict reads them.

use super::RoundSummary;
use crate::comparison::Estimate;
use crate::roles::{ReviewSignal, SignalAssessment, Stance};

/// The share of the predicted gain that must be measured.
const ALIGNED_SHARE: f64 = 0.25;
/// How far the gain may fall short of the prediction, in percentage points.
const ALIGNED_POINTS: f64 = 1.0;
/// A gain counts from this many standard errors on.
const SIGMAS: f64 = 2.0;
/// Standard errors between the ends of a 95% interval.
const INTERVAL_SIGMAS: f64 = 3.92;
/// The minimum signal-to-noise ratio of bit-identical results, in decibels.
const SAME_BITS_DB: f64 = 80.0;
/// Words that claim bit-identical results.
const SAME_BITS: [&str; 4] = ["bit-identical", "bitwise", "bit identical", "bit-exact"];

/// The five signals of a measured round, from its figures alone.
pub fn signals_of(round: &RoundSummary) -> Vec<SignalAssessment> {
    let Some(comparison) = round.shown() else {
        return Vec::new();
    };
    let seen = &comparison.overall;
    let said = |signal, (stance, why)| SignalAssessment { signal, stance, why };
    vec![
        said(ReviewSignal::HypothesisMetricAlignment, alignment(round, seen)),
        said(ReviewSignal::OffTargetGain, off_target(round)),
        said(ReviewSignal::QuickVsFull, quick_vs_full(round)),
        said(ReviewSignal::NoiseBand, noise_band(seen)),
        said(ReviewSignal::BitIdentity, bit_identity(round)),
    ]
}

fn percent(ratio: f64) -> f64 {
    (ratio - 1.0) * 100.0
}

/// The standard error of a log speedup, from its interval.
fn sigma(seen: &Estimate) -> Option<f64> {
    let width = seen.high?.ln() - seen.low?.ln();
    (width.is_finite() && width >= 0.0).then_some(width / INTERVAL_SIGMAS)
}

fn alignment(round: &RoundSummary, seen: &Estimate) -> (Stance, String) {
    let Some(hypothesis) = &round.hypothesis else {
        return (Stance::Unknown, "there is no hypothesis".into());
    };
    let (predicted, observed) = (percent(hypothesis.expected_ratio), percent(seen.ratio));
    let least = (ALIGNED_SHARE * predicted).min(predicted - ALIGNED_POINTS);
    let figures = format!("expected {predicted:+.1}%, measured {observed:+.1}%");
    let Some(sigma) = sigma(seen) else {
        return (Stance::Unknown, format!("{figures}, without an interval"));
    };
    let stance = match observed >= least && seen.ratio.ln() >= SIGMAS * sigma {
        true => Stance::Pass,
        false => Stance::Fail,
    };
    (stance, format!("{figures}; it needs at least {least:+.1}% and two standard errors"))
}

fn off_target(round: &RoundSummary) -> (Stance, String) {
    let named = round.hypothesis.as_ref().map_or(&[][..], |h| &h.files);
    let changed = round.candidate.as_ref().map_or(&[][..], |c| &c.files);
    if named.is_empty() || changed.is_empty() {
        return (Stance::Unknown, "no files were named".into());
    }
    let others: Vec<&str> =
        changed.iter().filter(|file| !named.contains(file)).map(String::as_str).collect();
    match others.is_empty() {
        true => (Stance::Pass, "only named files changed".into()),
        false => (Stance::Fail, format!("not named, but changed: {}", others.join(", "))),
    }
}

fn quick_vs_full(round: &RoundSummary) -> (Stance, String) {
    let (Some(quick), Some(full)) = (&round.quick, &round.comparison) else {
        return (Stance::Unknown, "only one set was measured".into());
    };
    let (quick, full) = (quick.overall.ratio, full.overall.ratio);
    let stance = match (quick > 1.0) == (full > 1.0) {
        true => Stance::Pass,
        false => Stance::Fail,
    };
    (stance, format!("{quick:.3}x on the quick set, {full:.3}x on all cases"))
}

fn noise_band(seen: &Estimate) -> (Stance, String) {
    match (seen.low, seen.high) {
        (Some(low), Some(high)) if low > 1.0 || high < 1.0 => {
            (Stance::Pass, format!("[{low:.3}, {high:.3}] does not contain 1"))
        }
        (Some(low), Some(high)) => (Stance::Fail, format!("[{low:.3}, {high:.3}] contains 1")),
        _ => (Stance::Unknown, "there is no interval".into()),
    }
}

fn bit_identity(round: &RoundSummary) -> (Stance, String) {
    let claimed = round.hypothesis.as_ref().map(|h| format!("{} {}", h.title, h.mechanism));
    let summary = round.candidate.as_ref().map(|c| c.summary.clone());
    let text = format!("{} {}", claimed.unwrap_or_default(), summary.unwrap_or_default());
    let text = text.to_lowercase();
    if !SAME_BITS.iter().any(|word| text.contains(word)) {
        return (Stance::Pass, "bit-identical results are not claimed".into());
    }
    let worst = round.errors.iter().map(|seen| seen.error.snr_db);
    let worst = worst.fold(f64::INFINITY, f64::min);
    if !worst.is_finite() {
        let why = "bit-identical results are claimed, but no error was measured";
        return (Stance::Unknown, why.into());
    }
    let stance = match worst >= SAME_BITS_DB {
        true => Stance::Pass,
        false => Stance::Fail,
    };
    (stance, format!("bit-identical results are claimed, and {worst:.0} dB was measured"))
}
