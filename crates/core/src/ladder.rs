//! The tuning ladder: how far the knobs of a candidate are tuned before its duel.
//!
//! ```text
//! hand-picked  the candidate untuned, and the incumbent
//! few          a few settings, to see the trend
//! coarse       a model-based search
//! fine         more of it, where there is clear potential
//! ```
//!
//! Design matters more than tuning, so each rung is only climbed if the one below was promising,
//! and all of them together have a bounded share of the time. Readings of a ladder choose a
//! setting but prove nothing: the duel does.

use crate::hypothesis::Candidate;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A candidate that is slower than this before tuning is not tuned.
const FEW_MIN: f64 = 0.5;
/// From here on a coarse search is worth its time.
const COARSE_MIN: f64 = 0.9;
/// Below that it still is if a few settings made this much of a difference and the candidate is
/// close enough.
const TREND_MIN: f64 = 1.05;
const TREND_COARSE_MIN: f64 = 0.7;
/// From here on there is clear potential.
const FINE_MIN: f64 = 1.05;
/// What a model must expect of the next setting for a fine search.
const EXPECTED_MIN: f64 = 0.005;

/// Readings of the incumbent that a candidate is compared with; their median counts.
pub const INCUMBENT_READINGS: usize = 3;

/// Characters of the values that a sweep set, when shown on one line.
const VALUES_CHARS: usize = 400;

/// How much tuning is allowed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LadderRule {
    /// The share of the campaign's hours that tuning may take; 0 turns it off.
    pub share: f64,
    /// Minutes for one candidate.
    pub minutes: f64,
    /// Settings of the second rung.
    pub few: u32,
    /// Settings up to the third.
    pub coarse: u32,
    /// Settings up to the fourth.
    pub fine: u32,
}

/// One of the rungs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum Rung {
    #[default]
    HandPicked,
    Few,
    Coarse,
    Fine,
}

impl Rung {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Self::HandPicked => "hand-picked",
            Self::Few => "few",
            Self::Coarse => "coarse",
            Self::Fine => "fine",
        }
    }
}

/// What the ladder showed so far. Values are times: less is better.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LadderResult {
    /// The highest rung that was climbed.
    pub rung: Rung,
    /// Settings that were tried.
    pub settings: u32,
    /// Those that failed.
    pub failed: u32,
    /// The incumbent's time.
    pub incumbent: Option<f64>,
    /// The candidate's time before tuning.
    pub first: Option<f64>,
    /// The best setting's time.
    pub best: Option<f64>,
    /// The factor by which the next setting is expected to be faster, minus one.
    pub expected_gain: Option<f64>,
    /// Whether no valid setting is left.
    pub exhausted: bool,
    /// The values of the best setting that differ from the candidate's.
    pub config: BTreeMap<String, String>,
    /// The candidate with the best setting, if it differs.
    pub candidate: Option<Candidate>,
    /// The slowest over the fastest of the incumbent's readings: what noise alone can show.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise: Option<f64>,
    /// Why it was not tuned, if it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped: Option<String>,
}

impl LadderResult {
    /// The apparent speedup of the best setting over the incumbent.
    pub fn ratio(&self) -> Option<f64> {
        Some(self.incumbent? / self.best?)
    }

    /// How much tuning improved the candidate.
    pub fn trend(&self) -> Option<f64> {
        Some(self.first? / self.best?)
    }

    /// Whether noise alone could make the best setting look better than the first.
    pub fn is_within_noise(&self) -> bool {
        self.trend().zip(self.noise).is_some_and(|(trend, noise)| trend <= noise)
    }

    /// The same, with the first setting as the best one.
    #[must_use]
    pub fn with_first(self) -> Self {
        Self { best: self.first, config: BTreeMap::new(), candidate: None, ..self }
    }

    /// In one line.
    pub fn describe(&self) -> String {
        if let Some(why) = &self.skipped {
            return format!("not tuned: {why}");
        }
        let settings = match self.settings {
            1 => "1 setting".to_owned(),
            many => format!("{many} settings"),
        };
        let mut text = format!("{settings} ({})", self.rung.name());
        if self.failed > 0 {
            text += &format!(", {} failed", self.failed);
        }
        if let Some(ratio) = self.ratio() {
            text += &format!(", the best looks {ratio:.2}x as fast as the incumbent");
        }
        if let Some(trend) = self.trend().filter(|trend| *trend > 1.005) {
            text += &format!(" and {trend:.2}x as fast as the first");
        }
        text
    }

    /// The values that were set, on one line; `None` if the candidate stays unchanged.
    pub fn values(&self) -> Option<String> {
        if self.config.is_empty() {
            return None;
        }
        let mut text = String::new();
        for (at, (name, value)) in self.config.iter().enumerate() {
            let one = format!("{name}={value}");
            if text.chars().count() + one.chars().count() > VALUES_CHARS {
                let left = self.config.len() - at;
                return Some(format!("{text} and {left} more").trim_start().to_owned());
            }
            let comma = if at > 0 { ", " } else { "" };
            text += &format!("{comma}{one}");
        }
        Some(text)
    }
}

impl LadderRule {
    /// Settings up to a rung.
    pub fn settings(&self, rung: Rung) -> u32 {
        match rung {
            Rung::HandPicked => 1,
            Rung::Few => self.few,
            Rung::Coarse => self.coarse.max(self.few),
            Rung::Fine => self.fine.max(self.coarse).max(self.few),
        }
    }

    /// The next rung, if what was seen is promising.
    pub fn next(&self, seen: &LadderResult) -> Option<Rung> {
        let (ratio, trend) = (seen.ratio()?, seen.trend().unwrap_or(1.0));
        if seen.exhausted || seen.skipped.is_some() {
            return None;
        }
        let (next, promising) = match seen.rung {
            Rung::HandPicked => (Rung::Few, ratio >= FEW_MIN),
            Rung::Few => {
                let trending = trend >= TREND_MIN && ratio >= TREND_COARSE_MIN;
                (Rung::Coarse, ratio >= COARSE_MIN || trending)
            }
            Rung::Coarse => {
                let hopeful = seen.expected_gain.is_none_or(|gain| gain >= EXPECTED_MIN);
                (Rung::Fine, ratio >= FINE_MIN && hopeful)
            }
            Rung::Fine => return None,
        };
        let more = self.settings(next) > self.settings(seen.rung);
        (promising && more).then_some(next)
    }

    /// Milliseconds that are left for a candidate, given those spent on it and on all candidates.
    pub fn left_ms(&self, on_this: u64, on_all: u64, wall_s: Option<u64>) -> u64 {
        if self.share <= 0.0 || self.share.is_nan() {
            return 0;
        }
        // NaN becomes 0 minutes.
        let of_this = ((self.minutes * 60_000.0) as u64).saturating_sub(on_this);
        let of_all = wall_s.map_or(u64::MAX, |wall_s| {
            let whole = wall_s as f64 * 1e3 * self.share.min(1.0);
            (whole as u64).saturating_sub(on_all)
        });
        of_this.min(of_all)
    }

    /// What is wrong with it.
    pub fn errors(&self) -> Vec<String> {
        let mut faults = Vec::new();
        if !(0.0..=1.0).contains(&self.share) {
            faults.push("tune.share must be between 0 and 1".to_owned());
        }
        if self.share > 0.0 && self.few == 0 {
            faults.push("tune.few must be at least 1".to_owned());
        }
        let some = self.minutes.is_finite() && self.minutes > 0.0;
        if self.share > 0.0 && !some {
            faults.push("tune.minutes must be above 0".to_owned());
        }
        faults
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const RULE: LadderRule =
        LadderRule { share: 0.25, minutes: 60.0, few: 6, coarse: 40, fine: 120 };

    fn seen(rung: Rung, first: f64, best: f64) -> LadderResult {
        LadderResult {
            rung,
            incumbent: Some(1.0),
            first: Some(first),
            best: Some(best),
            ..LadderResult::default()
        }
    }

    #[test]
    fn each_rung_is_climbed_only_if_the_one_below_was_promising() {
        for (rung, first, best, next) in [
            (Rung::HandPicked, 1.9, 1.9, Some(Rung::Few)),
            (Rung::HandPicked, 2.1, 2.1, None),
            (Rung::Few, 1.5, 1.05, Some(Rung::Coarse)),
            (Rung::Few, 1.6, 1.4, Some(Rung::Coarse)),
            (Rung::Few, 1.42, 1.4, None),
            (Rung::Few, 3.0, 1.6, None),
            (Rung::Coarse, 1.0, 0.9, Some(Rung::Fine)),
            (Rung::Coarse, 1.0, 0.99, None),
            (Rung::Fine, 1.0, 0.1, None),
        ] {
            let what = format!("{rung:?} {first} {best}");
            assert_eq!(RULE.next(&seen(rung, first, best)), next, "{what}");
        }
        let dull = LadderResult { expected_gain: Some(0.001), ..seen(Rung::Coarse, 1.0, 0.5) };
        assert_eq!(RULE.next(&dull), None);
        let all = LadderResult { exhausted: true, ..seen(Rung::Few, 1.0, 0.5) };
        assert_eq!(RULE.next(&all), None);
        assert_eq!(RULE.next(&LadderResult::default()), None, "nothing was read");
        let short = LadderRule { fine: 40, ..RULE };
        assert_eq!(short.next(&seen(Rung::Coarse, 1.0, 0.5)), None);
    }

    #[test]
    fn a_setting_that_is_better_by_less_than_the_noise_does_not_replace_the_first() {
        let noisy = LadderResult { noise: Some(1.2), ..seen(Rung::Few, 1.0, 0.9) };
        assert!(noisy.is_within_noise());
        assert_eq!(noisy.with_first().best, Some(1.0));
        let quiet = LadderResult { noise: Some(1.02), ..seen(Rung::Few, 1.0, 0.9) };
        assert!(!quiet.is_within_noise());
        assert!(!seen(Rung::Few, 1.0, 0.9).is_within_noise(), "nothing is known about the noise");
    }

    #[test]
    fn the_values_of_a_sweep_are_named_and_their_number_is_bounded() {
        let tuned = |count: u32| LadderResult {
            config: (0..count).map(|at| (format!("KNOB_{at:04}"), "x".repeat(12))).collect(),
            ..LadderResult::default()
        };
        assert_eq!(tuned(0).values(), None);
        let two = "KNOB_0000=xxxxxxxxxxxx, KNOB_0001=xxxxxxxxxxxx";
        assert_eq!(tuned(2).values().as_deref(), Some(two));
        let many = tuned(1_000).values().unwrap();
        assert!(many.starts_with(two) && many.ends_with(" more"), "{many}");
        assert!(many.len() < VALUES_CHARS + 80);
    }

    #[test]
    fn time_is_bounded_for_one_and_for_all() {
        assert_eq!(RULE.left_ms(0, 0, None), 3_600_000);
        assert_eq!(RULE.left_ms(3_000_000, 0, None), 600_000);
        assert_eq!(RULE.left_ms(0, 0, Some(400)), 100_000);
        assert_eq!(RULE.left_ms(0, 90_000, Some(400)), 10_000);
        assert_eq!(RULE.left_ms(0, 200_000, Some(400)), 0);
        assert_eq!(LadderRule::default().left_ms(0, 0, None), 0);
        let short = LadderRule { minutes: 0.5, ..RULE };
        assert_eq!(short.left_ms(10_000, 0, None), 20_000);
        assert!(short.errors().is_empty());
        for minutes in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let rule = LadderRule { minutes, ..RULE };
            assert_eq!(rule.errors().len(), 1, "{minutes}");
        }
    }

    proptest! {
        #![proptest_config(crate::testing::fixed(128))]

        #[test]
        fn a_ladder_ends_and_a_better_reading_never_ends_it_sooner(
            first in 0.2..4.0_f64, best in 0.2..4.0_f64, better in 0.5..1.0_f64,
        ) {
            for rung in [Rung::HandPicked, Rung::Few, Rung::Coarse, Rung::Fine] {
                let one = RULE.next(&seen(rung, first, best));
                let two = RULE.next(&seen(rung, first, best * better));
                prop_assert!(one.is_none() || two == one);
                prop_assert!(one.is_none_or(|next| next > rung));
            }
        }
    }
}
