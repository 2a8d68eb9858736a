//! The goal of a campaign: when the kernel is fast enough.

use serde::{Deserialize, Serialize};

/// When the kernel is fast enough.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Goal {
    /// The metric's aggregate is at least this.
    AtLeast {
        /// In the metric's unit.
        value: f64,
    },
    /// The metric's aggregate is at most this.
    AtMost {
        /// In the metric's unit.
        value: f64,
    },
    /// The share of the measured peak, 0 to 1.
    PeakShare {
        /// 0 to 1.
        share: f64,
    },
    /// The speedup over the baseline.
    Speedup {
        /// 2 means twice as fast.
        ratio: f64,
    },
}

impl Goal {
    /// Reads `>500`, `>500 TFLOPS`, `<1.2 ms`, `>60% peak`, `>5x`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let usage = "write a goal like \">500 TFLOPS\", \"<1.2 ms\", \">60% peak\" or \">5x\"";
        let text = text.trim();
        let at_most = text.starts_with('<');
        let rest = text.trim_start_matches(['<', '>', '=']).trim();
        let end = rest.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(rest.len());
        let value: f64 = rest[..end].parse().map_err(|_| usage.to_owned())?;
        let unit = rest[end..].trim();
        if !value.is_finite() || value <= 0.0 {
            return Err(usage.to_owned());
        }
        Ok(match (at_most, unit) {
            (false, "x") => Self::Speedup { ratio: value },
            (false, _) if unit.starts_with('%') => Self::PeakShare { share: value / 100.0 },
            (true, _) if unit.starts_with('%') || unit == "x" => return Err(usage.to_owned()),
            (true, _) => Self::AtMost { value },
            (false, _) => Self::AtLeast { value },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goals_are_read_as_people_write_them() {
        assert_eq!(Goal::parse(">500 TFLOPS"), Ok(Goal::AtLeast { value: 500.0 }));
        assert_eq!(Goal::parse("<1.2 ms"), Ok(Goal::AtMost { value: 1.2 }));
        assert_eq!(Goal::parse(">60% peak"), Ok(Goal::PeakShare { share: 0.6 }));
        assert_eq!(Goal::parse(">= 5x"), Ok(Goal::Speedup { ratio: 5.0 }));
        for wrong in ["", "fast", ">", "<5x", ">0", "<60% peak"] {
            assert!(Goal::parse(wrong).is_err(), "{wrong}");
        }
    }
}
