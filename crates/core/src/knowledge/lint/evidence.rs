//! What is wrong with a piece of evidence: missing fields and impossible figures.

use super::super::Evidence;
use super::{LintFindings, RATIO_MAX, is_after, is_date};

/// How far the quotient of the medians may be outside of the interval of the ratio.
const MIDDLES_APART: f64 = 1.1;

/// What is wrong with one piece of evidence.
pub(super) fn lint(number: usize, evidence: &Evidence, today: &str, list: &mut LintFindings<'_>) {
    fields(number, evidence, list);
    if is_date(&evidence.date) && is_after(&evidence.date, today) {
        list.error(format!("evidence {number}: its date {} is in the future", evidence.date));
    }
    times(number, evidence, list);
    ratios(number, evidence, list);
    middles(number, evidence, list);
}

fn fields(number: usize, evidence: &Evidence, list: &mut LintFindings<'_>) {
    let texts = [
        ("metric", &evidence.metric),
        ("device", &evidence.device),
        ("workload", &evidence.workload),
        ("run", &evidence.run),
        ("date", &evidence.date),
        ("toolchain", &evidence.toolchain),
    ];
    let missing: Vec<&str> =
        texts.iter().filter(|(_, text)| text.trim().is_empty()).map(|(name, _)| *name).collect();
    if !missing.is_empty() {
        list.error(format!("evidence {number} lacks {}", missing.join(", ")));
    }
    if !evidence.date.is_empty() && !is_date(&evidence.date) {
        list.error(format!("evidence {number}: {:?} is not a date", evidence.date));
    }
    if evidence.n == 0 {
        list.error(format!("evidence {number} does not say how many readings it rests on (n)"));
    }
}

/// Times are positive. Two zeros mean that none was stored; a failed change has no time after it.
fn times(number: usize, evidence: &Evidence, list: &mut LintFindings<'_>) {
    let (before, after) = (evidence.before, evidence.after);
    let usable = |value: f64| value.is_finite() && value > 0.0;
    let unsaid = before == 0.0 && after == 0.0;
    let failed = evidence.failed && (usable(before) || before == 0.0) && after == 0.0;
    if !(unsaid || failed || (usable(before) && usable(after))) {
        list.error(format!(
            "evidence {number}: before {before} and after {after} cannot both be valid; give two \
            positive times or none"
        ));
    }
}

/// A ratio is positive, plausible, and inside a valid interval.
fn ratios(number: usize, evidence: &Evidence, list: &mut LintFindings<'_>) {
    let has_ratio = evidence.ratio.is_finite() && evidence.ratio > 0.0;
    if !(evidence.failed || has_ratio) {
        list.error(format!("evidence {number} has no ratio"));
    }
    let given = [Some(evidence.ratio), evidence.low, evidence.high];
    if given.iter().flatten().any(|ratio| *ratio > RATIO_MAX) {
        list.error(format!(
            "evidence {number}: a ratio above {RATIO_MAX}x is not plausible; check its unit, and \
            whether the kernel did any work"
        ));
    }
    let ends = [evidence.low, evidence.high];
    let bad = |end: &f64| !(end.is_finite() && *end > 0.0);
    if !evidence.failed && ends.iter().flatten().any(bad) {
        list.error(format!("evidence {number}: the ends of its interval are not positive ratios"));
        return;
    }
    let below = evidence.low.is_some_and(|low| evidence.ratio < low);
    let above = evidence.high.is_some_and(|high| evidence.ratio > high);
    if below || above {
        list.error(format!("evidence {number}: the ratio is outside its interval"));
    }
}

/// The speedup is estimated from paired readings, while before and after are separate medians: they
/// may differ by what the interval allows, and a little more.
fn middles(number: usize, evidence: &Evidence, list: &mut LintFindings<'_>) {
    let quotient = match evidence.more_is_better {
        true => evidence.after / evidence.before,
        false => evidence.before / evidence.after,
    };
    let usable = |value: f64| value.is_finite() && value > 0.0;
    if !(usable(evidence.before) && usable(evidence.after) && usable(evidence.ratio)) {
        return;
    }
    let low = evidence.low.filter(|low| usable(*low));
    let high = evidence.high.filter(|high| usable(*high));
    let low = low.unwrap_or(evidence.ratio) / MIDDLES_APART;
    let high = high.unwrap_or(evidence.ratio) * MIDDLES_APART;
    if quotient < low || quotient > high {
        list.warning(format!(
            "evidence {number}: before and after give {quotient:.2}x, but the ratio is {:.2}x; \
            explain why in its note",
            evidence.ratio
        ));
    }
}
