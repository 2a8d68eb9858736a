//! What asking a model costs, and whether the next question fits into what is left. Pure.

use crate::agents::cli::heard::Fault;
use crate::config::Price;
use karve_core::campaign::Usage;

/// Tokens for a byte of a request, before any answer has told it.
const TOKENS_PER_BYTE: f64 = 1.0 / 3.0;
/// What a request may have more than its size tells.
const MARGIN: f64 = 1.1;
/// No language has fewer or more tokens for a byte than that.
const TOKENS_PER_BYTE_RANGE: (f64, f64) = (0.125, 1.0);
/// What it costs to put a token into the model's cache, in prices of a token that goes in.
const WRITTEN_FACTOR: f64 = 1.25;
/// Prices are for so many tokens.
const PER: f64 = 1e6;

/// Tokens of one answer, as the API counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counted {
    /// Went in, and were not cached.
    pub(super) input: u64,
    /// Went in from the cache.
    pub(super) cached: u64,
    /// Went in, and into the cache.
    pub(super) written: u64,
    /// Came out.
    pub(super) output: u64,
}

impl Counted {
    /// All that went in.
    pub(super) fn all_input(&self) -> u64 {
        let cached = self.cached.saturating_add(self.written);
        self.input.saturating_add(cached)
    }

    /// As many more.
    pub(super) fn add(&mut self, more: Self) {
        self.input = self.input.saturating_add(more.input);
        self.cached = self.cached.saturating_add(more.cached);
        self.written = self.written.saturating_add(more.written);
        self.output = self.output.saturating_add(more.output);
    }

    /// What they cost.
    pub(super) fn usage(&self, price: Option<Price>) -> Usage {
        let usd = price.map_or(0.0, |price| {
            let cached = price.cached.unwrap_or(price.input);
            (self.input as f64 * price.input
                + self.written as f64 * price.input * WRITTEN_FACTOR
                + self.cached as f64 * cached
                + self.output as f64 * price.output)
                / PER
        });
        Usage {
            tokens: self.all_input().saturating_add(self.output),
            usd,
        }
    }
}

/// How many tokens a request has, from its size and from what earlier answers told.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Gauge(f64);

impl Default for Gauge {
    fn default() -> Self {
        Self(TOKENS_PER_BYTE)
    }
}

impl Gauge {
    /// Learns from an answer.
    pub(super) fn learn(&mut self, bytes: usize, tokens: u64) {
        if tokens > 0 && bytes > 0 {
            let (least, most) = TOKENS_PER_BYTE_RANGE;
            self.0 = (tokens as f64 / bytes as f64).clamp(least, most);
        }
    }

    /// Tokens of so many bytes, rather too many than too few.
    pub(super) fn tokens(&self, bytes: usize) -> u64 {
        (bytes as f64 * self.0 * MARGIN).ceil() as u64
    }

    /// Bytes of so many tokens.
    pub(super) fn bytes(&self, tokens: u64) -> usize {
        (tokens as f64 / (self.0 * MARGIN)) as usize
    }
}

/// What is left to be used.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Left {
    /// US dollars; no bound if none.
    pub(super) usd: Option<f64>,
    /// Tokens; no bound if none.
    pub(super) tokens: Option<u64>,
}

impl Left {
    /// Why the next question does not fit, if so: what goes in, and the most that may come out.
    pub(super) fn refuses(&self, next: Counted, price: Option<Price>) -> Option<Fault> {
        let next = next.usage(price);
        if let Some(left) = self.usd.filter(|left| next.usd > *left) {
            let left = left.max(0.0);
            return Some(Fault::Budget(format!(
                "the next question may cost ${:.4}, and ${left:.4} of limits.agent_usd is left",
                next.usd
            )));
        }
        let left = self.tokens.filter(|left| next.tokens > *left)?;
        Some(Fault::Budget(format!(
            "the next question may take {} tokens, and {left} of tokens_max are left",
            next.tokens
        )))
    }

    /// What is left after that.
    #[must_use]
    pub(super) fn after(&self, used: Usage) -> Self {
        Self {
            usd: self.usd.map(|left| left - used.usd),
            tokens: self.tokens.map(|left| left.saturating_sub(used.tokens)),
        }
    }
}
