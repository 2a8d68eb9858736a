//! How much of a campaign's gain is real: kernel gains count in full, cached weights up to their
//! bound, other caches not at all.
//!
//! Gains multiply, so they are summed as logarithms and reported in percent:
//!
//! ```text
//! S_real  all K1 to K4 together
//! W_real  all W1 together, but at most what preparing the weights costs per step
//! R_real  what W2 and W3 are worth in real use: nothing
//! gap     the benchmark's gain minus that of S_real and W_real together
//! ```

use crate::campaign::Campaign;
use crate::integrity::{Bucket, GainProof, Transfer, classify};
use crate::verdict::{DropReason, Verdict};
use serde::{Deserialize, Serialize};

/// A gap above this, in percentage points, is called inflated.
pub const GAP_MAX_PERCENT: f64 = 1.0;
/// The whole may show this many times the sum of its parts; the rest beyond that is a gap.
const SCALE_MAX: f64 = 2.0;

/// One gain and where it comes from.
#[derive(Clone, Debug, PartialEq)]
pub struct AttributedGain {
    /// Its name, such as `round 3: tiling`.
    pub source: String,
    /// The buckets found in it.
    pub buckets: Vec<Bucket>,
    /// The speedup in the benchmark, if it was measured.
    pub ratio: Option<f64>,
    /// What shows that the work was done, if anything does.
    pub proof: Option<GainProof>,
    /// Whether it is part of the result.
    pub kept: bool,
}

impl AttributedGain {
    fn ln(&self) -> f64 {
        self.ratio.map_or(0.0, ln)
    }

    fn transfer(&self) -> Transfer {
        let worst = self.buckets.iter().map(|bucket| bucket.transfer()).max();
        match worst.unwrap_or(Transfer::AsReal) {
            Transfer::AsReal if self.proof.is_none() => Transfer::Unknown,
            transfer => transfer,
        }
    }
}

/// The conclusion of the attribution for a campaign.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Honesty {
    /// Everything that was kept transfers.
    Clean,
    /// The benchmark shows more than transfers.
    Inflated,
    /// Caches were found and dropped; what is left transfers.
    RolledBack,
    /// Nothing shows whether what was kept transfers.
    Unknown,
}

impl Honesty {
    /// In a word or two.
    pub fn name(self) -> &'static str {
        match self {
            Self::Clean => "clean",
            Self::Inflated => "inflated",
            Self::RolledBack => "rolled back",
            Self::Unknown => "unknown",
        }
    }
}

/// One row of the audit table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AttributionRow {
    /// Where the gain comes from.
    pub source: String,
    /// Its buckets.
    pub buckets: Vec<Bucket>,
    /// What the benchmark showed, in percent; `None` if it was dropped before that.
    pub benchmark_percent: Option<f64>,
    /// The real part of it, in percent.
    pub real_percent: f64,
    /// Whether nothing shows how much of it is real.
    #[serde(default)]
    pub is_unknown: bool,
}

/// A campaign's gain, broken down.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Attribution {
    /// One row for each gain that was kept, or that was dropped because it is a cache.
    pub rows: Vec<AttributionRow>,
    /// The gain of K1 to K4, in percent.
    pub s_real_percent: f64,
    /// The gain of which nothing shows whether it transfers, in percent.
    #[serde(default)]
    pub unknown_percent: f64,
    /// The gain of W1 within its bound, in percent.
    pub w_real_percent: f64,
    /// What W1 shows in the benchmark, in percent.
    #[serde(default)]
    pub w_benchmark_percent: f64,
    /// The gain of W2 and W3 in real use, in percent: always 0.
    pub r_real_percent: f64,
    /// What W2 and W3 show in the benchmark of the result, in percent; must be removed if above 0.
    pub overfit_percent: f64,
    /// S_real and W_real together, in percent.
    pub real_percent: f64,
    /// The benchmark's gain, in percent.
    pub benchmark_percent: f64,
    /// The benchmark's gain minus the real one, in percentage points.
    pub gap_percent: f64,
    /// The conclusion.
    pub honesty: Honesty,
}

/// Breaks down a gain. `weight_share` is the time to prepare the weights over the time of a step,
/// 0 to 1; without it no part of a W1 gain counts. `benchmark` is the measured speedup of the
/// result over the original; without it the product of the kept gains is used.
pub fn attribute(
    gains: &[AttributedGain],
    benchmark: Option<f64>,
    weight_share: Option<f64>,
) -> Attribution {
    let kept = |wanted: Transfer| -> f64 {
        let those = gains.iter().filter(|g| g.kept && g.transfer() == wanted);
        those.map(AttributedGain::ln).sum()
    };
    let share = weight_share.filter(|share| share.is_finite());
    let cap = share.unwrap_or(0.0).clamp(0.0, 1.0).ln_1p();
    let claimed = GainParts {
        s: kept(Transfer::AsReal),
        unknown: kept(Transfer::Unknown),
        w: kept(Transfer::WithAsterisk),
        overfit: kept(Transfer::Overfit),
    };
    let is_unknown = gains.iter().any(|g| g.kept && g.transfer() == Transfer::Unknown);
    let shown = benchmark.map_or(claimed.sum(), ln);
    let parts = claimed.scaled_to(shown);
    let w = parts.w.min(cap);
    let gap_percent = percent(shown) - percent(parts.s + parts.unknown + w);
    let cache = |kept: bool| {
        let those = gains.iter().filter(|gain| gain.kept == kept);
        those.into_iter().any(|gain| gain.transfer() == Transfer::Overfit)
    };
    Attribution {
        rows: gains.iter().map(|gain| row(gain, claimed.w, cap)).collect(),
        s_real_percent: percent(parts.s),
        unknown_percent: percent(parts.unknown),
        w_real_percent: percent(w),
        w_benchmark_percent: percent(parts.w),
        r_real_percent: 0.0,
        overfit_percent: percent(parts.overfit),
        real_percent: percent(parts.s + w),
        benchmark_percent: percent(shown),
        gap_percent,
        honesty: if cache(true) || gap_percent > GAP_MAX_PERCENT {
            Honesty::Inflated
        } else if is_unknown {
            Honesty::Unknown
        } else if cache(false) {
            Honesty::RolledBack
        } else {
            Honesty::Clean
        },
    }
}

/// The kept gains by how they count, as logarithms.
#[derive(Clone, Copy, Debug)]
struct GainParts {
    s: f64,
    unknown: f64,
    w: f64,
    overfit: f64,
}

impl GainParts {
    fn sum(self) -> f64 {
        self.s + self.unknown + self.w + self.overfit
    }

    /// Gains that were selected for being high are biased a little high, so the parts are scaled to
    /// the gain of the whole.
    fn scaled_to(self, shown: f64) -> Self {
        if self.w == 0.0 && self.overfit == 0.0 && self.unknown == 0.0 {
            return Self { s: shown, ..self };
        }
        if self.w == 0.0 && self.overfit == 0.0 && self.s == 0.0 {
            return Self { unknown: shown, ..self };
        }
        let sum = self.sum();
        let scale = if sum > 0.0 { shown / sum } else { 1.0 };
        let scale = scale.clamp(0.0, SCALE_MAX);
        Self {
            s: self.s * scale,
            unknown: self.unknown * scale,
            w: self.w * scale,
            overfit: self.overfit * scale,
        }
    }
}

fn row(gain: &AttributedGain, w_claimed: f64, cap: f64) -> AttributionRow {
    // Each W1 gain is scaled by the same factor, so that the rows add up to the whole.
    let w_scale = if w_claimed > cap { cap / w_claimed } else { 1.0 };
    let real = match gain.transfer() {
        Transfer::AsReal => gain.ln(),
        Transfer::WithAsterisk => gain.ln() * w_scale,
        Transfer::Unknown | Transfer::Overfit => 0.0,
    };
    AttributionRow {
        source: gain.source.clone(),
        buckets: gain.buckets.clone(),
        benchmark_percent: gain.ratio.map(|ratio| percent(ln(ratio))),
        real_percent: if gain.kept { percent(real) } else { 0.0 },
        is_unknown: gain.kept && gain.transfer() == Transfer::Unknown,
    }
}

fn ln(ratio: f64) -> f64 {
    if ratio.is_finite() && ratio > 0.0 { ratio.ln() } else { 0.0 }
}

fn percent(ln_ratio: f64) -> f64 {
    ln_ratio.exp_m1() * 100.0
}

/// The same for the rounds of a campaign; `benchmark` is the speedup of its final duel. Without
/// one, it is what was last checked against the original, times the gains since then.
pub fn attribute_rounds(campaign: &Campaign, benchmark: Option<f64>) -> Attribution {
    let gains = campaign.rounds().iter().filter_map(|round| {
        let proof = campaign.standing_proof();
        let classified = classify(&round.findings, proof);
        let dropped_cache =
            matches!(&round.verdict, Verdict::Drop { reason: DropReason::Gate { .. } })
                && classified.transfer() == Transfer::Overfit;
        let kept = round.verdict.keeps();
        (kept || dropped_cache).then(|| AttributedGain {
            source: format!("round {}: {}", round.number, round.title()),
            buckets: classified.buckets,
            proof,
            ratio: round.ratio(),
            kept,
        })
    });
    let share = campaign.charter().and_then(|charter| charter.audit.weight_share);
    let lineage = campaign.lineage();
    let so_far = lineage.best().map(|_| lineage.cumulative_ratio());
    attribute(&gains.collect::<Vec<_>>(), benchmark.or(so_far), share)
}
