//! What a model request costs, and whether the next one fits into the remaining budget.

use crate::spending::AgentUsage;

/// Tokens per byte of a request, before any reply has shown the real ratio.
const TOKENS_PER_BYTE: f64 = 1.0 / 3.0;
/// Safety factor for requests that have more tokens than their size suggests.
const MARGIN: f64 = 1.1;
/// No language has fewer or more tokens per byte than this.
const TOKENS_PER_BYTE_RANGE: (f64, f64) = (0.125, 1.0);
/// The price of writing a token into the model's cache, relative to an input token.
const WRITTEN_FACTOR: f64 = 1.25;
/// Prices are per this many tokens.
const PER: f64 = 1e6;

/// Token prices, in US dollars per million.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TokenPrice {
    /// Input.
    pub input: f64,
    /// Output.
    pub output: f64,
    /// Input read from the model's cache.
    pub cached: f64,
}

/// Whether input is written into the model's cache, at a price.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PromptCaching {
    /// It is.
    Written,
    /// It is not, or costs nothing.
    Free,
}

/// Tokens of one reply, as counted by the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenCounts {
    /// Input that was not cached.
    pub input: u64,
    /// Input read from the cache.
    pub cached: u64,
    /// Input written into the cache.
    pub written: u64,
    /// Output.
    pub output: u64,
}

impl TokenCounts {
    /// The most that a request can use: its input and the maximum output.
    pub fn at_most(input: u64, output: u64, caching: PromptCaching) -> Self {
        let (input, written) = match caching {
            PromptCaching::Written => (0, input),
            PromptCaching::Free => (input, 0),
        };
        Self { input, written, output, ..Self::default() }
    }

    /// All input.
    pub fn all_input(&self) -> u64 {
        let cached = self.cached.saturating_add(self.written);
        self.input.saturating_add(cached)
    }

    /// Adds the counts of another reply.
    pub fn add(&mut self, more: Self) {
        self.input = self.input.saturating_add(more.input);
        self.cached = self.cached.saturating_add(more.cached);
        self.written = self.written.saturating_add(more.written);
        self.output = self.output.saturating_add(more.output);
    }

    /// Their cost; zero if no price is known.
    pub fn usage(&self, price: Option<TokenPrice>) -> AgentUsage {
        let usd = price.map_or(0.0, |price| {
            (self.input as f64 * price.input
                + self.written as f64 * price.input * WRITTEN_FACTOR
                + self.cached as f64 * price.cached
                + self.output as f64 * price.output)
                / PER
        });
        AgentUsage { tokens: self.all_input().saturating_add(self.output), usd, estimated: false }
    }
}

/// Estimates the tokens of a request from its size and from earlier replies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TokenGauge(f64);

impl Default for TokenGauge {
    fn default() -> Self {
        Self(TOKENS_PER_BYTE)
    }
}

impl TokenGauge {
    /// Learns from a reply.
    pub fn learn(&mut self, bytes: usize, tokens: u64) {
        if tokens > 0 && bytes > 0 {
            let (least, most) = TOKENS_PER_BYTE_RANGE;
            self.0 = (tokens as f64 / bytes as f64).clamp(least, most);
        }
    }

    /// Tokens in this many bytes, overestimating rather than underestimating.
    pub fn tokens(&self, bytes: usize) -> u64 {
        (bytes as f64 * self.0 * MARGIN).ceil() as u64
    }

    /// Bytes in this many tokens.
    pub fn bytes(&self, tokens: u64) -> usize {
        (tokens as f64 / (self.0 * MARGIN)) as usize
    }
}

/// The remaining budget.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RemainingBudget {
    /// US dollars; unlimited if `None`.
    pub usd: Option<f64>,
    /// Tokens; unlimited if `None`.
    pub tokens: Option<u64>,
}

/// Why a request does not fit into the remaining budget.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum BudgetShortfall {
    /// It may cost more.
    Usd {
        /// The maximum cost.
        next: f64,
        /// What is left.
        left: f64,
    },
    /// It may take more tokens.
    Tokens {
        /// The maximum.
        next: u64,
        /// What is left.
        left: u64,
    },
}

impl RemainingBudget {
    /// Why the next request is not sent, if so: a budget is never exceeded, so the request must fit
    /// even with the maximum output.
    pub fn refuses(&self, next: TokenCounts, price: Option<TokenPrice>) -> Option<BudgetShortfall> {
        let next = next.usage(price);
        if let Some(left) = self.usd.filter(|left| next.usd > *left) {
            return Some(BudgetShortfall::Usd { next: next.usd, left: left.max(0.0) });
        }
        let left = self.tokens.filter(|left| next.tokens > *left)?;
        Some(BudgetShortfall::Tokens { next: next.tokens, left })
    }

    /// What is left after that use.
    #[must_use]
    pub fn after(&self, used: AgentUsage) -> Self {
        Self {
            usd: self.usd.map(|left| left - used.usd),
            tokens: self.tokens.map(|left| left.saturating_sub(used.tokens)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PRICE: TokenPrice = TokenPrice { input: 3.0, output: 15.0, cached: 0.3 };

    #[test]
    fn a_question_that_may_cost_more_than_is_left_is_not_asked() {
        let counted = TokenCounts {
            input: 1_000_000,
            cached: 1_000_000,
            written: 1_000_000,
            output: 1_000_000,
        };
        let usage = counted.usage(Some(PRICE));
        assert_eq!(usage.tokens, 4_000_000);
        let want = 3.0 + 0.3 + 3.75 + 15.0;
        assert!((usage.usd - want).abs() < 1e-9, "{usage:?}");
        let next = TokenCounts::at_most(1_000, 1_000, PromptCaching::Free);
        let check = |usd, tokens, price, is_asked: bool| {
            let refused = RemainingBudget { usd, tokens }.refuses(next, price);
            assert_eq!(refused.is_none(), is_asked, "{usd:?} {tokens:?} {refused:?}");
        };
        check(None, None, None, true);
        check(Some(0.018), Some(2_000), Some(PRICE), true);
        check(Some(0.017), None, Some(PRICE), false);
        check(None, Some(1_999), None, false);
        check(Some(-1.0), None, Some(PRICE), false);
        let left = RemainingBudget { usd: Some(1.0), tokens: Some(10) };
        let rest = left.after(usage);
        assert!(rest.usd.unwrap() < 0.0 && rest.tokens == Some(0));
        let cached = TokenCounts::at_most(1_000, 1_000, PromptCaching::Written);
        assert!(cached.usage(Some(PRICE)).usd > next.usage(Some(PRICE)).usd);
    }

    #[test]
    fn tokens_are_guessed_from_bytes_and_learned_from_answers() {
        let mut gauge = TokenGauge::default();
        assert!(gauge.tokens(300) >= 100);
        gauge.learn(1_000, 500);
        assert_eq!(gauge.tokens(1_000), 550);
        // Impossible ratios are clamped, and empty requests or replies teach nothing.
        gauge.learn(1_000, 1_000_000);
        assert_eq!(gauge.tokens(1_000), 1_100);
        gauge.learn(0, 5);
        gauge.learn(5, 0);
        assert_eq!(gauge.tokens(1_000), 1_100);
    }

    proptest! {
        #[test]
        fn a_budget_is_never_passed(
            (usd, tokens) in (0.0..1.0_f64, 0_u64..200_000),
            questions in prop::collection::vec((1_u64..20_000, 1_u64..20_000, 0.0..1.0_f64), 1..40),
        ) {
            // Whatever each request returns, up to its maximum: all of it fits.
            let all = RemainingBudget { usd: Some(usd), tokens: Some(tokens) };
            let mut used = TokenCounts::default();
            for (input, most, share) in questions {
                let left = all.after(used.usage(Some(PRICE)));
                let next = TokenCounts::at_most(input, most, PromptCaching::Written);
                if left.refuses(next, Some(PRICE)).is_none() {
                    let output = (most as f64 * share) as u64;
                    used.add(TokenCounts { cached: input, output, ..TokenCounts::default() });
                }
            }
            let used = used.usage(Some(PRICE));
            prop_assert!(used.usd <= usd + 1e-9 && used.tokens <= tokens, "{used:?}");
        }
    }
}
