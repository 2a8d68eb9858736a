//! The arithmetic of scores and tables: percentages, Combined Step, shares of the peak.
//!
//! karve owns every figure. The published documents compute theirs by hand and are off in the
//! third decimal here and there; the tests name those places.

use crate::charter::{Better, Metric};
use karve_numerics::case::Case;
use karve_numerics::expr::parse_expr;

impl Better {
    /// A reading in the project's metric: readings are stored so that lower is better.
    pub fn as_metric(self, reading: f64) -> f64 {
        match self {
            Self::Lower => reading,
            Self::Higher => 1.0 / reading,
        }
    }
}

/// Combined Step of a forward and a backward rate: `6/(2/fwd + 4/bwd)`, same unit.
pub fn combined_step(forward: f64, backward: f64) -> f64 {
    6.0 / (2.0 / forward + 4.0 / backward)
}

/// The change from `old` to `new` in percent.
pub fn percent_change(old: f64, new: f64) -> f64 {
    (new / old - 1.0) * 100.0
}

/// A speedup above this is shown as a factor, a smaller one in percent. Twice as fast is 100%
/// faster, however that was rounded.
const FACTOR_ABOVE: f64 = 2.000_1;

/// A factor with three figures: `2.34x`, `11.2x`, `112x`.
pub fn factor_text(ratio: f64) -> String {
    let decimals = match ratio.abs() {
        ratio if ratio < 10.0 => 2,
        ratio if ratio < 100.0 => 1,
        _ => 0,
    };
    format!("{ratio:.decimals$}x")
}

/// How much faster `b` is than `a`, from a speedup: in percent, or as a factor above 2x.
pub fn faster_text(ratio: f64, [a, b]: [&str; 2]) -> String {
    match ratio <= FACTOR_ABOVE {
        true => format!("{b} is {:.1}% faster than {a}", percent_change(1.0, ratio)),
        false => format!("{b} is {} as fast as {a}", factor_text(ratio)),
    }
}

/// How much slower `b` is than `a`, from a speedup below 1.
pub fn slower_text(ratio: f64, [a, b]: [&str; 2]) -> String {
    let longer = 1.0 / ratio;
    match longer <= FACTOR_ABOVE {
        true => format!("{b} is {:.1}% slower than {a}", percent_change(1.0, longer)),
        false => format!("{b} takes {} as long as {a}", factor_text(longer)),
    }
}

/// The scale of a unit of work per second, such as 1e9 for `GFLOPS` and `GB/s`.
pub fn rate_scale(unit: &str) -> Option<f64> {
    let of_unit = Metric { unit: unit.to_owned(), ..Metric::default() };
    let scaled = match unit {
        "kB/s" => Some(1e3),
        "MB/s" => Some(1e6),
        "GB/s" => Some(1e9),
        "TB/s" => Some(1e12),
        _ if unit.ends_with("/s") && unit.len() > 3 => Some(1.0),
        _ => None,
    };
    of_unit.rate_per_unit().or(scaled)
}

/// How long one call took by a reading of the metric, in seconds, if that is known: from a time,
/// or from a rate whose work is known.
pub fn implied_seconds(metric: &Metric, value: f64, case: &Case) -> Option<f64> {
    if let Some(per_unit) = metric.seconds_per_unit() {
        return Some(value * per_unit);
    }
    let work = metric.work.as_deref()?;
    // The work of a case is in operations, unless the metric itself divides it by a time.
    let divides = |expr: &String| expr.starts_with(&format!("({work})/("));
    let scale = match &metric.expr {
        Some(expr) if divides(expr) => rate_scale(&metric.unit),
        Some(_) | None => metric.rate_per_unit(),
    };
    let work = parse_expr(work).ok()?.evaluate_params(&case.params).ok()?;
    Some(work / (value * scale?)).filter(|seconds| seconds.is_finite())
}

/// A number with four significant digits.
pub fn figure(value: f64) -> String {
    if !value.is_finite() {
        return "-".to_owned();
    }
    if value == 0.0 {
        return "0".to_owned();
    }
    let digits = value.abs().max(1e-12).log10().floor() as i32;
    let decimals = usize::try_from((3 - digits).clamp(0, 9)).unwrap_or(0);
    format!("{value:.decimals$}")
}

/// A percentage without needless zeros; above 100% the factor that it stands for.
pub fn percent_text(percent: f64) -> String {
    if percent > 100.0 {
        return factor_text(1.0 + percent / 100.0);
    }
    share_text(percent / 100.0)
}

/// A share as a percentage without needless zeros. It may be above 1: a limit that was measured
/// while others kept the machine busy is too low.
pub fn share_text(share: f64) -> String {
    let text = format!("{:.2}", 100.0 * share);
    let text = text.trim_end_matches('0').trim_end_matches('.');
    format!("{text}%")
}

/// Evidence in short form.
pub fn count(value: f64) -> String {
    if value >= 1e6 {
        format!("{value:.0e}")
    } else if value >= 10.0 {
        format!("{value:.0}")
    } else {
        format!("{value:.1}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use karve_numerics::stats;
    use std::collections::BTreeMap;

    fn check(value: f64, want: &str) {
        assert_eq!(format!("{value:.3}"), want);
    }

    #[test]
    fn combined_step_of_the_published_examples() {
        check(combined_step(500.0, 250.0), "300.000");
        check(combined_step(520.0, 258.0), "310.077");
        check(combined_step(480.0, 240.0), "288.000");
        // The document prints 327.116.
        check(combined_step(550.0, 272.0), "327.114");
    }

    #[test]
    fn the_worked_example_of_three_shapes() {
        let steps: Vec<f64> = [(320.0, 160.0), (305.0, 152.0), (290.0, 145.0)]
            .map(|(forward, backward)| combined_step(forward, backward))
            .to_vec();
        check(steps[0], "192.000");
        // The document prints 182.515.
        check(steps[1], "182.520");
        check(steps[2], "174.000");
        let mean = stats::geometric_mean(&steps).unwrap();
        check(mean, "182.692");
        let before = combined_step(285.0, 140.0);
        check(before, "168.592");
        // The document prints 8.363.
        let gain = percent_change(before, mean);
        assert!((8.3635..8.3655).contains(&gain), "{gain}");
    }

    #[test]
    fn the_step_expression_of_a_charter_gives_the_same() {
        let expr = parse_expr("6/(2/fwd+4/bwd)").unwrap();
        let value = expr.evaluate(&|name| Some(if name == "fwd" { 500.0 } else { 250.0 }));
        check(value.unwrap(), "300.000");
        // The older metric gives another number for the same rates: they must not be mixed.
        let old = parse_expr("sqrt(fwd*bwd)").unwrap();
        let value = old.evaluate(&|name| Some(if name == "fwd" { 500.0 } else { 250.0 }));
        check(value.unwrap(), "353.553");
    }

    #[test]
    fn a_rate_of_known_work_implies_a_time() {
        let mut case = crate::testing::charter().cases[0].clone();
        case.params = BTreeMap::from([("n".to_owned(), "1000".to_owned())]);
        let implied = |unit: &str, work: Option<&str>, expr: Option<&str>, value: f64| {
            let metric = Metric {
                unit: unit.into(),
                work: work.map(str::to_owned),
                expr: expr.map(str::to_owned),
                ..Metric::default()
            };
            implied_seconds(&metric, value, &case).map(|seconds| format!("{seconds:.6}"))
        };
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(implied("ms", None, None, 2.0), some("0.002000"));
        assert_eq!(implied("GFLOPS", Some("2*n*n"), None, 2.0), some("0.001000"));
        let named = Some("(n)/(`t_ms`*1e-3)/1e3");
        assert_eq!(implied("kB/s", Some("n"), named, 10.0), some("0.100000"));
        assert_eq!(implied("rows/s", Some("n"), named, 10.0), some("100.000000"));
        // The work may be in operations while the rate is of something else.
        assert_eq!(implied("rows/s", Some("n"), None, 10.0), None);
        assert_eq!(implied("GFLOPS", None, None, 2.0), None);
        assert_eq!(implied("GFLOPS", Some("m"), None, 2.0), None);
        assert_eq!(implied("x", Some("n"), None, 2.0), None);
    }

    #[test]
    fn the_noise_record_has_the_published_centre_and_spread() {
        let scores = [
            696.0, 693.0, 696.0, 692.0, 694.0, 691.0, 695.0, 697.0, 692.0, 695.0, 691.0, 695.0,
            690.0, 696.0, 697.0, 690.0, 696.0, 696.0, 698.0, 696.0, 693.0, 694.0, 694.0, 696.0,
            695.0, 694.0, 692.0, 697.0, 691.0, 697.0,
        ];
        assert_eq!(stats::median(&scores), Some(695.0));
        let (_, deviation) = stats::mean_and_deviation(&scores).unwrap();
        assert!((deviation - 2.27).abs() < 0.05, "{deviation}");
    }

    #[test]
    fn a_large_gain_is_a_factor_and_a_large_share_is_not() {
        assert_eq!(percent_text(128.4), "2.28x");
        assert_eq!(percent_text(53.5), "53.5%");
        assert_eq!(share_text(1.284), "128.4%");
        assert_eq!(share_text(0.0033), "0.33%");
    }

    #[test]
    fn large_speedups_are_told_as_factors() {
        let sides = ["A", "B"];
        for (ratio, want) in [
            (1.053, "B is 5.3% faster than A"),
            (1.999, "B is 99.9% faster than A"),
            (2.0, "B is 100.0% faster than A"),
            (2.01, "B is 2.01x as fast as A"),
            (11.21, "B is 11.2x as fast as A"),
            (112.332, "B is 112x as fast as A"),
        ] {
            assert_eq!(faster_text(ratio, sides), want);
        }
        assert_eq!(slower_text(0.8, sides), "B is 25.0% slower than A");
        assert_eq!(slower_text(0.25, sides), "B takes 4.00x as long as A");
    }
}
