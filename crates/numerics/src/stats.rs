//! The statistics of a duel: exact sequential evidence on signs, and robust estimates.
//!
//! For each block the harness tosses a private fair coin for the order of the two arms. If both
//! arms are the same program, the sign of the log ratio is then a fair coin whatever the drift,
//! the tails or the autocorrelation of the host. The evidence below is a martingale under that
//! null, so it may be looked at after every block.

use std::sync::OnceLock;

/// Log-factorials are tabulated up to here; beyond, Stirling's series is just as exact.
const FACTORIALS: usize = 4_096;

fn ln_factorial(n: u32) -> f64 {
    static TABLE: OnceLock<Vec<f64>> = OnceLock::new();
    let table = TABLE.get_or_init(|| {
        let mut sum = 0.0;
        let mut table = vec![0.0];
        for k in 1..FACTORIALS {
            sum += (k as f64).ln();
            table.push(sum);
        }
        table
    });
    table.get(n as usize).copied().unwrap_or_else(|| stirling(f64::from(n)))
}

/// `ln n!` to the last digits for the large n that are not tabulated.
fn stirling(n: f64) -> f64 {
    n * n.ln() - n + (std::f64::consts::TAU * n).ln() / 2.0 + 1.0 / (12.0 * n)
        - 1.0 / (360.0 * n.powi(3))
}

/// Natural log of the evidence E for `successes` among `successes + failures` signs.
///
/// `E = S!·F!/(n+1)! · Σ_{j=0..S} C(n+1, j)`: the uniform mixture over p in (½, 1) of the
/// sequential sign test. `P(sup E ≥ 1/α) ≤ α` when a success has probability at most ½.
pub fn ln_evidence(successes: u32, failures: u32) -> f64 {
    let n = successes + failures;
    let front = ln_factorial(successes) + ln_factorial(failures) - ln_factorial(n + 1);
    let choose = |j: u32| ln_factorial(n + 1) - ln_factorial(j) - ln_factorial(n + 1 - j);
    // The largest term of the sum is factored out so that the rest cannot overflow. From there each
    // term is its neighbor times a fraction, until the rest is too small to count.
    let peak = successes.min(n.div_ceil(2));
    let all = f64::from(n + 1);
    let downwards = (1..=peak).rev().map(f64::from).map(|j| j / (all - j + 1.0));
    let upwards = (peak..successes).map(f64::from).map(|j| (all - j) / (j + 1.0));
    let sum = 1.0 + tail_sum(downwards) + tail_sum(upwards);
    front + choose(peak) + sum.ln()
}

/// The sum of the products of the first, the first two, the first three, … fractions.
fn tail_sum(fractions: impl Iterator<Item = f64>) -> f64 {
    let (mut term, mut sum) = (1.0, 0.0);
    for fraction in fractions {
        term *= fraction;
        sum += term;
        if term < f64::EPSILON * 1e-3 {
            break;
        }
    }
    sum
}

/// The highest evidence so far for one statement, kept as signs arrive.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SignEvidence {
    /// Signs for the statement.
    pub successes: u32,
    /// All other signs, ties included.
    pub failures: u32,
    /// The maximum of `ln E` over all prefixes; 0 before the first sign.
    pub ln_max: f64,
}

impl SignEvidence {
    /// Takes in one sign.
    pub fn see(&mut self, success: bool) {
        if success {
            self.successes += 1;
            self.ln_max = self.ln_max.max(ln_evidence(self.successes, self.failures));
        } else {
            // A failure can only lower E, so the maximum stays.
            self.failures += 1;
        }
    }

    /// Whether E reached `threshold` at any time.
    pub fn reached(&self, threshold: f64) -> bool {
        self.ln_max >= threshold.ln()
    }

    /// The highest E so far.
    pub fn max(&self) -> f64 {
        self.ln_max.exp()
    }
}

/// The Hodges–Lehmann estimate: the median of all pairwise means. `None` without values.
pub fn hodges_lehmann(values: &[f64]) -> Option<f64> {
    let mut means = Vec::with_capacity(values.len() * (values.len() + 1) / 2);
    for (i, a) in values.iter().enumerate() {
        for b in &values[i..] {
            means.push((a + b) / 2.0);
        }
    }
    quantile_of(means, 0.5)
}

/// Sums of weights that differ by less are the same, apart from rounding.
const TIE: f64 = 1e-9;

/// The Hodges–Lehmann estimate of values that come from several strata: only values of one stratum
/// are averaged, and each stratum counts by the number of its values. `None` without values.
pub fn stratified_location(strata: &[Vec<f64>]) -> Option<f64> {
    let mut filled = strata.iter().filter(|values| !values.is_empty());
    if let (Some(only), None) = (filled.next(), filled.next()) {
        return hodges_lehmann(only);
    }
    let mut means = Vec::new();
    for values in strata {
        let weight = 2.0 / (values.len() + 1) as f64;
        for (i, a) in values.iter().enumerate() {
            means.extend(values[i..].iter().map(|b| ((a + b) / 2.0, weight)));
        }
    }
    means.sort_by(|a, b| a.0.total_cmp(&b.0));
    let half = strata.iter().map(Vec::len).sum::<usize>() as f64 / 2.0;
    let mut seen = 0.0;
    for (at, (mean, weight)) in means.iter().enumerate() {
        seen += weight;
        if (seen - half).abs() < TIE {
            let next = means.get(at + 1).map_or(*mean, |(next, _)| *next);
            return Some((mean + next) / 2.0);
        }
        if seen > half {
            return Some(*mean);
        }
    }
    None
}

/// Two strata whose medians differ, the lower one first. `P(ever) ≤ α` if all medians are equal,
/// although it is looked at after every value: each stratum has its share of α, and strata that
/// come later have smaller ones.
pub fn differing_strata(strata: &[Vec<f64>], alpha: f64) -> Option<(usize, usize)> {
    let known = strata.iter().enumerate().filter_map(|(at, values)| {
        let share = alpha / ((at + 1) * (at + 2)) as f64;
        interval(values, share).map(|(low, high)| (at, low, high))
    });
    let known: Vec<(usize, f64, f64)> = known.collect();
    let lower = known.iter().min_by(|a, b| a.2.total_cmp(&b.2))?;
    let upper = known.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    (lower.2 < upper.1).then_some((lower.0, upper.0))
}

/// The median, `None` without values.
pub fn median(values: &[f64]) -> Option<f64> {
    quantile(values, 0.5)
}

/// The q-quantile with linear interpolation, `None` without values.
pub fn quantile(values: &[f64], q: f64) -> Option<f64> {
    quantile_of(values.to_vec(), q)
}

/// The same by selection: a duel asks for it after every block, and sorting would be slow.
fn quantile_of(mut values: Vec<f64>, q: f64) -> Option<f64> {
    let last = values.len().checked_sub(1)?;
    let position = q.clamp(0.0, 1.0) * last as f64;
    let below = position.floor();
    let (_, low, rest) = values.select_nth_unstable_by(below as usize, f64::total_cmp);
    let low = *low;
    let high = rest.iter().copied().min_by(f64::total_cmp).unwrap_or(low);
    Some(low + (high - low) * (position - below))
}

/// The geometric mean, `None` without values or with one that is not positive.
pub fn geometric_mean(values: &[f64]) -> Option<f64> {
    if values.is_empty() || values.iter().any(|v| !(v.is_finite() && *v > 0.0)) {
        return None;
    }
    Some((values.iter().map(|v| v.ln()).sum::<f64>() / values.len() as f64).exp())
}

/// The arithmetic mean and the sample standard deviation, `None` below two values.
pub fn mean_and_deviation(values: &[f64]) -> Option<(f64, f64)> {
    if values.len() < 2 {
        return None;
    }
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0);
    Some((mean, variance.sqrt()))
}

/// The sequential confidence interval for the median at level `1 − alpha`.
///
/// The smallest `S*` with `E(S*, n − S*) ≥ 2/α` gives `[D_(n−S*+1), D_(S*)]`. `None` while n is
/// too small for any interval.
pub fn interval(values: &[f64], alpha: f64) -> Option<(f64, f64)> {
    let n = u32::try_from(values.len()).ok()?;
    let bound = (2.0 / alpha).ln();
    let needed = (n.div_ceil(2)..=n).find(|s| ln_evidence(*s, n - s) >= bound)?;
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let low = sorted.get((n - needed) as usize)?;
    let high = sorted.get(needed as usize - 1)?;
    Some((*low, *high))
}

/// A small generator for draws from a given seed (xorshift64*); never for a coin of a duel.
#[derive(Clone, Debug)]
pub struct DrawRng(u64);

impl DrawRng {
    /// The draws that belong to a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// The next number in [0, 1).
    pub fn next_f64(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// The next index below `n`; 0 when `n` is 0.
    pub fn below(&mut self, n: usize) -> usize {
        (self.next_f64() * n as f64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn all_successes_give_the_closed_form() {
        for n in 1_u32..40 {
            let want = (2_f64.powi(n as i32 + 1) - 1.0) / f64::from(n + 1);
            assert!((ln_evidence(n, 0).exp() / want - 1.0).abs() < 1e-9, "n = {n}");
        }
    }

    #[test]
    fn an_accept_at_2400_needs_fifteen_pairs() {
        let first = (1..30).find(|n| ln_evidence(*n, 0) >= 2400_f64.ln());
        assert_eq!(first, Some(15));
    }

    #[test]
    fn a_fair_coin_rarely_reaches_twenty() {
        let mut draws = DrawRng::new(7);
        let reached = (0..2_000)
            .filter(|_| {
                let mut evidence = SignEvidence::default();
                (0..200).for_each(|_| evidence.see(draws.next_f64() < 0.5));
                evidence.reached(20.0)
            })
            .count();
        assert!(reached <= 100, "{reached} of 2000, at most 5% are allowed");
    }

    #[test]
    fn medians_and_quantiles_of_known_values() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(quantile(&[1.0, 2.0, 3.0, 4.0, 5.0], 0.9), Some(4.6));
        assert_eq!(hodges_lehmann(&[1.0, 5.0, 9.0]), Some(5.0));
        assert_eq!(median(&[]), None);
        assert_eq!(geometric_mean(&[1.0, 0.0]), None);
    }

    #[test]
    fn log_factorials_go_on_beyond_the_table() {
        for n in [4_095, 4_096, 4_097, 10_000] {
            let want: f64 = (1..=n).map(|k| f64::from(k).ln()).sum();
            assert!((ln_factorial(n) - want).abs() < 1e-7, "n = {n}");
        }
        let next = (ln_evidence(3_001, 3_000).exp() + ln_evidence(3_000, 3_001).exp()) / 2.0;
        assert!((next / ln_evidence(3_000, 3_000).exp() - 1.0).abs() < 1e-6);
    }

    #[test]
    fn what_is_not_a_number_does_not_panic() {
        for values in [vec![], vec![f64::NAN], vec![1.0, f64::NAN], vec![f64::INFINITY; 3]] {
            let _ = (median(&values), quantile(&values, f64::NAN), hodges_lehmann(&values));
            let _ = (interval(&values, 0.05), interval(&values, 0.0), interval(&values, 9.0));
            let _ = (geometric_mean(&values), mean_and_deviation(&values));
        }
        assert_eq!(interval(&[], 9.0), None);
    }

    #[test]
    fn the_interval_covers_the_median_at_all_times_at_once() {
        let mut draws = DrawRng::new(5);
        let missed = (0..200)
            .filter(|_| {
                let values: Vec<f64> = (0..60).map(|_| draws.next_f64() - 0.5).collect();
                (8..=60).any(|n| {
                    interval(&values[..n], 0.05).is_some_and(|(low, high)| low > 0.0 || high < 0.0)
                })
            })
            .count();
        assert!(missed <= 10, "{missed} of 200, at most 5% are allowed");
    }

    #[test]
    fn the_interval_begins_when_all_signs_alike_would_prove_it() {
        // E(n, 0) = (2^(n+1) − 1)/(n + 1) first reaches 40 at n = 8.
        let values: Vec<f64> = (1..=9).map(f64::from).collect();
        assert_eq!(interval(&values[..7], 0.05), None);
        assert_eq!(interval(&values[..8], 0.05), Some((1.0, 8.0)));
        assert_eq!(interval(&values, 0.05), Some((1.0, 9.0)));
    }

    /// Strata of noise around a location each.
    fn drawn(draws: &mut DrawRng, locations: &[f64], n: usize) -> Vec<Vec<f64>> {
        let stratum = |at: &f64| (0..n).map(|_| at + draws.next_f64() - 0.5).collect();
        locations.iter().map(stratum).collect()
    }

    #[test]
    fn equal_strata_rarely_differ_and_unequal_ones_do() {
        let mut draws = DrawRng::new(11);
        let mut found = |locations: &[f64]| {
            let differs = |_: &i32| {
                let strata = drawn(&mut draws, locations, 60);
                (8..=60).any(|n| {
                    let seen: Vec<Vec<f64>> = strata.iter().map(|s| s[..n].to_vec()).collect();
                    differing_strata(&seen, 0.05).is_some()
                })
            };
            (0..200).filter(differs).count()
        };
        let equal = found(&[0.3, 0.3, 0.3]);
        assert!(equal <= 10, "{equal} of 200, at most 5% are allowed");
        assert_eq!(found(&[0.0, 2.0, 1.0]), 200);
        let apart = drawn(&mut DrawRng::new(1), &[2.0, 0.0, 1.0], 40);
        assert_eq!(differing_strata(&apart, 0.05), Some((1, 0)));
        assert_eq!(differing_strata(&apart[..1], 0.05), None);
        assert_eq!(differing_strata(&[], 0.05), None);
        assert_eq!(stratified_location(&[Vec::new(), Vec::new()]), None);
    }

    proptest! {
        #![proptest_config(crate::testing::fixed(256))]

        /// One stratum is the usual estimate; strata of the same values change nothing; the order
        /// of strata and of their values does not count; and it moves with the values.
        #[test]
        fn strata_are_sets_that_count_by_their_values(
            values in prop::collection::vec(-1.0..1.0_f64, 1..20),
            other in prop::collection::vec(-1.0..1.0_f64, 1..20),
            shift in -3.0..3.0_f64,
        ) {
            let of = |strata: &[&Vec<f64>]| {
                stratified_location(&strata.iter().map(|s| (*s).clone()).collect::<Vec<_>>())
            };
            prop_assert_eq!(of(&[&values]), hodges_lehmann(&values));
            prop_assert_eq!(of(&[&values, &vec![]]), hodges_lehmann(&values));
            let both = of(&[&values, &other]).unwrap();
            prop_assert!((of(&[&other, &values]).unwrap() - both).abs() < 1e-9);
            let backwards: Vec<f64> = values.iter().rev().copied().collect();
            prop_assert!((of(&[&backwards, &other]).unwrap() - both).abs() < 1e-9);
            let all = values.iter().chain(&other).copied();
            let (least, most) = all.fold((9.0_f64, -9.0_f64), |(a, b), v| (a.min(v), b.max(v)));
            prop_assert!((least..=most).contains(&both));
            let moved = |s: &[f64]| s.iter().map(|v| v + shift).collect::<Vec<f64>>();
            let after = of(&[&moved(&values), &moved(&other)]).unwrap();
            prop_assert!((after - both - shift).abs() < 1e-9);
        }

        #[test]
        fn quantiles_are_those_of_the_sorted_values(
            values in prop::collection::vec(-9.0..9.0_f64, 1..40), q in 0.0..=1.0_f64,
        ) {
            let mut sorted = values.clone();
            sorted.sort_by(f64::total_cmp);
            let place = q * (sorted.len() - 1) as f64;
            let (below, above) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
            let want = below + (above - below) * place.fract();
            prop_assert!((quantile(&values, q).unwrap() - want).abs() < 1e-12);
        }

        /// Section 8: the smallest S* with E(S*, n − S*) ≥ 2/α gives [D_(n−S*+1), D_(S*)].
        #[test]
        fn the_interval_is_what_no_sign_count_disproves(
            values in prop::collection::vec(-1.0..1.0_f64, 8..50),
        ) {
            let (low, high) = interval(&values, 0.05).unwrap();
            let disproved = |theta: f64| {
                let n = values.len() as u32;
                let above = values.iter().filter(|v| **v > theta).count() as u32;
                let below = values.iter().filter(|v| **v < theta).count() as u32;
                let bound = 40_f64.ln();
                ln_evidence(above, n - above) >= bound || ln_evidence(below, n - below) >= bound
            };
            prop_assert!(!disproved(low) && !disproved(high) && !disproved((low + high) / 2.0));
            prop_assert!(disproved(low - 1e-12) && disproved(high + 1e-12));
        }

        #[test]
        fn evidence_is_a_martingale(s in 0_u32..200, f in 0_u32..200) {
            let next = (ln_evidence(s + 1, f).exp() + ln_evidence(s, f + 1).exp()) / 2.0;
            let now = ln_evidence(s, f).exp();
            prop_assert!((next / now - 1.0).abs() < 1e-9);
        }

        #[test]
        fn the_interval_holds_the_median(values in prop::collection::vec(-1.0..1.0_f64, 12..60)) {
            let (low, high) = interval(&values, 0.05).unwrap();
            let middle = median(&values).unwrap();
            prop_assert!(low <= middle && middle <= high);
        }

        #[test]
        fn the_estimate_moves_with_the_values(
            values in prop::collection::vec(-1.0..1.0_f64, 1..40), shift in -3.0..3.0_f64,
        ) {
            let moved: Vec<f64> = values.iter().map(|v| v + shift).collect();
            let (a, b) = (hodges_lehmann(&values).unwrap(), hodges_lehmann(&moved).unwrap());
            prop_assert!((b - a - shift).abs() < 1e-9);
        }
    }
}
