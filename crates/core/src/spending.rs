//! What agents used, by what they were asked for, and what a percent of kept gain cost.

mod answers;

pub use answers::{AnswerTurns, EndedTurns, TurnAnswer, UnreadableAnswer, last_usage};

use serde::{Deserialize, Serialize};

/// Most bytes per token: no text has fewer tokens than this implies, so a lower report is not
/// believed. Runs of spaces and long words take up to a dozen bytes per token.
const BYTES_PER_TOKEN_MAX: u64 = 16;

/// Bytes per token where karve does the counting, as in a brief.
const BYTES_PER_TOKEN: u64 = 4;

/// How many tokens of a text to count instead of the reported number; `None` if the report is
/// plausible.
pub fn tokens_instead(reported: u64, bytes: usize) -> Option<u64> {
    let bytes = bytes as u64;
    (reported < bytes / BYTES_PER_TOKEN_MAX).then_some(bytes / BYTES_PER_TOKEN)
}

/// What an agent was asked for in a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnPurpose {
    /// To state a hypothesis.
    Propose,
    /// To implement it.
    Implement,
    /// To fix what the gate rejected or a reviewer doubts.
    Repair,
    /// To review another agent's change.
    Review,
    /// To say what a round taught.
    Learn,
    /// To report a profile.
    Profile,
}

impl TurnPurpose {
    /// All of them, in the order of a round.
    pub const ALL: [Self; 6] =
        [Self::Profile, Self::Propose, Self::Implement, Self::Repair, Self::Review, Self::Learn];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Propose => "propose",
            Self::Implement => "implement",
            Self::Repair => "repair",
            Self::Review => "review",
            Self::Learn => "learn",
            Self::Profile => "profile",
        }
    }
}

/// Shown money is rounded to this many parts of a dollar: sums of decimal fractions are not exact.
const SHOWN_PARTS: f64 = 1e6;

/// US dollars as they are shown.
pub fn shown_usd(usd: f64) -> f64 {
    (usd * SHOWN_PARTS).round() / SHOWN_PARTS
}

/// Usage, rounded for display.
pub fn shown(usage: AgentUsage) -> AgentUsage {
    AgentUsage { usd: shown_usd(usage.usd), ..usage }
}

/// What the turns of one kind used together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct TurnTotals {
    /// Turns.
    pub turns: u32,
    /// Tokens in and out, as far as reported.
    pub tokens: u64,
    /// US dollars, as far as reported.
    pub usd: f64,
}

impl TurnTotals {
    fn add(&mut self, usage: AgentUsage) {
        self.turns = self.turns.saturating_add(1);
        self.tokens = self.tokens.saturating_add(usage.tokens);
        // `max` also turns NaN into 0.
        self.usd += usage.usd.max(0.0);
    }
}

/// What all turns used, kind by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spending {
    propose: TurnTotals,
    implement: TurnTotals,
    repair: TurnTotals,
    review: TurnTotals,
    learn: TurnTotals,
    profile: TurnTotals,
}

impl Spending {
    /// Counts a turn.
    pub fn count(&mut self, asked: TurnPurpose, usage: AgentUsage) {
        // Most rounds are settled without asking an agent what they taught.
        if asked == TurnPurpose::Learn && usage.is_none() {
            return;
        }
        let spent = match asked {
            TurnPurpose::Propose => &mut self.propose,
            TurnPurpose::Implement => &mut self.implement,
            TurnPurpose::Repair => &mut self.repair,
            TurnPurpose::Review => &mut self.review,
            TurnPurpose::Learn => &mut self.learn,
            TurnPurpose::Profile => &mut self.profile,
        };
        spent.add(usage);
    }

    /// What the turns of a kind used.
    pub fn of(&self, asked: TurnPurpose) -> TurnTotals {
        match asked {
            TurnPurpose::Propose => self.propose,
            TurnPurpose::Implement => self.implement,
            TurnPurpose::Repair => self.repair,
            TurnPurpose::Review => self.review,
            TurnPurpose::Learn => self.learn,
            TurnPurpose::Profile => self.profile,
        }
    }
}

/// What a percent of gain cost; `None` if nothing was reported or nothing was gained.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct CostPerPercent {
    /// The gain that is counted: (speedup - 1) in percent.
    pub gain_percent: f64,
    /// US dollars per percent.
    pub usd: Option<f64>,
    /// Tokens per percent.
    pub tokens: Option<f64>,
}

/// What each percent of a speedup cost, failed rounds included: everything that was used, divided
/// by the gain.
pub fn per_percent(used: AgentUsage, speedup: f64) -> Option<CostPerPercent> {
    let gain_percent = (speedup - 1.0) * 100.0;
    if used.is_none() || !gain_percent.is_finite() || gain_percent <= 0.0 {
        return None;
    }
    let price = |amount: f64| (amount > 0.0).then_some(amount / gain_percent);
    Some(CostPerPercent { gain_percent, usd: price(used.usd), tokens: price(used.tokens as f64) })
}

/// What a turn of an agent cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AgentUsage {
    /// Tokens in and out, if reported.
    pub tokens: u64,
    /// US dollars, if reported.
    pub usd: f64,
    /// Whether karve counted some of it, because the reported numbers were implausible.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
}

impl AgentUsage {
    /// Whether it is empty.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            tokens: self.tokens.saturating_add(other.tokens),
            usd: self.usd + other.usd,
            estimated: self.estimated || other.estimated,
        }
    }

    /// What is left without `other`.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        Self {
            tokens: self.tokens.saturating_sub(other.tokens),
            usd: (self.usd - other.usd).max(0.0),
            estimated: self.estimated,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_that_can_be_true_are_believed_and_too_few_are_not() {
        for (reported, bytes, want) in [
            (0, 0, None),
            (0, 15, None),
            (0, 16, Some(4)),
            (0, 8_000, Some(2_000)),
            (499, 8_000, Some(2_000)),
            (500, 8_000, None),
            (2_500, 8_000, None),
            (u64::MAX, 8_000, None),
        ] {
            assert_eq!(tokens_instead(reported, bytes), want, "{reported} of {bytes}");
        }
    }

    fn usage(tokens: u64, usd: f64) -> AgentUsage {
        AgentUsage { tokens, usd, estimated: false }
    }

    fn check(used: AgentUsage, speedup: f64, want: Option<(Option<f64>, Option<f64>)>) {
        let got = per_percent(used, speedup).map(|price| (price.usd, price.tokens));
        let close = |a: Option<f64>, b: Option<f64>| match (a, b) {
            (Some(a), Some(b)) => (a - b).abs() < 1e-9 * b.abs().max(1.0),
            (a, b) => a == b,
        };
        let agree = match (got, want) {
            (Some(got), Some(want)) => close(got.0, want.0) && close(got.1, want.1),
            (got, want) => got == want,
        };
        assert!(agree, "{got:?} {want:?}");
    }

    #[test]
    fn a_percent_costs_all_that_was_used_divided_by_the_gain() {
        check(usage(5_000, 0.5), 1.25, Some((Some(0.02), Some(200.0))));
        check(usage(5_000, 0.0), 1.5, Some((None, Some(100.0))));
        check(usage(0, 3.0), 4.0, Some((Some(0.01), None)));
    }

    #[test]
    fn money_is_shown_without_what_sums_of_fractions_leave() {
        let sum = 0.05 + 0.05 + 0.1 - 1e-17;
        for (usd, want) in [(sum, "0.2"), (0.1 + 0.2, "0.3"), (0.0847, "0.0847"), (0.0, "0")] {
            assert_eq!(shown_usd(usd).to_string(), want);
        }
        assert_eq!(shown(usage(3, 0.1 + 0.2)), usage(3, 0.3));
    }

    #[test]
    fn nothing_is_said_where_nothing_was_told_or_gained() {
        check(usage(0, 0.0), 1.25, None);
        check(usage(5_000, 0.5), 1.0, None);
        check(usage(5_000, 0.5), 0.9, None);
        check(usage(5_000, 0.5), f64::NAN, None);
    }

    #[test]
    fn turns_are_counted_by_what_they_were_for() {
        let mut spending = Spending::default();
        spending.count(TurnPurpose::Propose, usage(10, 0.1));
        spending.count(TurnPurpose::Propose, usage(0, 0.0));
        spending.count(TurnPurpose::Repair, usage(u64::MAX, f64::NAN));
        spending.count(TurnPurpose::Repair, usage(1, -5.0));
        spending.count(TurnPurpose::Review, usage(7, 0.0));
        spending.count(TurnPurpose::Learn, usage(0, 0.0));
        let spent = |turns, tokens, usd| TurnTotals { turns, tokens, usd };
        let want = [
            TurnTotals::default(),
            spent(2, 10, 0.1),
            TurnTotals::default(),
            spent(2, u64::MAX, 0.0),
            spent(1, 7, 0.0),
            TurnTotals::default(),
        ];
        assert_eq!(TurnPurpose::ALL.map(|asked| spending.of(asked)), want);
    }
}
