//! The bands of primus for a pull request: how each case and the whole changed against the
//! original. They describe what the final duel measured; the verdicts were made before.

use crate::comparison::{Comparison, Estimate};

/// A case that loses more than this is worth a warning.
const WARN_LOSS: f64 = 0.05;
/// A case that loses more than this fails.
const FAIL_LOSS: f64 = 0.10;
/// The geometric mean may not lose more than this.
const MEAN_LOSS: f64 = 0.02;
/// A gain above this deserves a second look.
const SUSPICIOUS_GAIN: f64 = 0.50;

/// How a figure changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RegressionBand {
    /// Within five percent, or faster.
    Pass,
    /// Faster by more than half: to be looked at.
    Suspicious,
    /// Slower by five to ten percent.
    Warn,
    /// Slower by more.
    Fail,
}

impl RegressionBand {
    /// Its word in a table.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pass => "PASS",
            Self::Suspicious => "SUSPICIOUS",
            Self::Warn => "WARN",
            Self::Fail => "FAIL",
        }
    }
}

/// The band of one case.
pub fn case_band(estimate: &Estimate) -> RegressionBand {
    let ratio = estimate.ratio;
    if ratio < 1.0 - FAIL_LOSS || ratio.is_nan() {
        RegressionBand::Fail
    } else if ratio < 1.0 - WARN_LOSS {
        RegressionBand::Warn
    } else if ratio > 1.0 + SUSPICIOUS_GAIN {
        RegressionBand::Suspicious
    } else {
        RegressionBand::Pass
    }
}

/// The band of a whole comparison: that of its worst case, and of its geometric mean.
pub fn overall_band(comparison: &Comparison) -> RegressionBand {
    let worst = comparison.cases.iter().map(|case| case_band(&case.estimate)).max();
    let mean = match comparison.overall.ratio {
        ratio if ratio < 1.0 - MEAN_LOSS => RegressionBand::Fail,
        _ => case_band(&comparison.overall),
    };
    worst.unwrap_or(mean).max(mean)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bands_are_those_of_primus() {
        let check = |ratio: f64, want: &str| {
            let estimate = Estimate { ratio, low: None, high: None };
            assert_eq!(case_band(&estimate).name(), want, "{ratio}");
        };
        check(1.2, "PASS");
        check(0.96, "PASS");
        check(0.93, "WARN");
        check(0.85, "FAIL");
        check(1.6, "SUSPICIOUS");
        check(f64::NAN, "FAIL");
    }
}
