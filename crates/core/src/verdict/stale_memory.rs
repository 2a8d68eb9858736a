//! Judges a would-be keep by what is left of its gain while the allocator overwrites memory that it
//! hands out and takes back. A kernel that finds its last result there is fast only without that.

use karve_numerics::stats::SignEvidence;

/// The share of a log speedup that must be left. An honest kernel that allocates in every call pays
/// for the overwriting, so it may lose some.
const LEFT_SHARE: f64 = 0.5;
/// Evidence that too little is left: seven blocks in a row.
const GONE_EVIDENCE: f64 = 20.0;
/// Evidence that enough is left: four blocks in a row.
const LEFT_EVIDENCE: f64 = 5.0;
/// Most blocks; if they show neither, nothing is held against the candidate.
const BLOCKS_MAX: usize = 20;

/// What blocks with overwritten memory show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StaleMemoryRuling {
    /// Another block is needed.
    Continue,
    /// The gain does not depend on what memory held.
    Independent,
    /// It does: most of it is gone.
    Dependent,
}

/// Judges blocks with overwritten memory, as log speedups, of a candidate with this log speedup.
pub fn judge_stale_memory(gain_ln: f64, ln_speedups: &[f64]) -> StaleMemoryRuling {
    // Without a gain, or with a NaN, there is nothing to lose.
    let has_gain = gain_ln > 0.0;
    if !has_gain {
        return StaleMemoryRuling::Independent;
    }
    let (mut left, mut gone) = (SignEvidence::default(), SignEvidence::default());
    for ln_speedup in ln_speedups {
        left.see(*ln_speedup > LEFT_SHARE * gain_ln);
        gone.see(*ln_speedup < LEFT_SHARE * gain_ln);
        if gone.reached(GONE_EVIDENCE) {
            return StaleMemoryRuling::Dependent;
        }
        if left.reached(LEFT_EVIDENCE) {
            return StaleMemoryRuling::Independent;
        }
    }
    match ln_speedups.len() < BLOCKS_MAX {
        true => StaleMemoryRuling::Continue,
        false => StaleMemoryRuling::Independent,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::fixed;
    use karve_numerics::stats::DrawRng;
    use proptest::prelude::*;

    /// The ruling on a gain, and after how many blocks, if overwriting leaves this speedup.
    fn check(gain: f64, left: f64, noise: f64, seed: u64) -> (StaleMemoryRuling, usize) {
        let mut draws = DrawRng::new(seed);
        let mut blocks = Vec::new();
        loop {
            match judge_stale_memory(gain.ln(), &blocks) {
                StaleMemoryRuling::Continue => {
                    blocks.push((left * (1.0 + noise * (draws.next_f64() - 0.5))).ln());
                }
                ruling => return (ruling, blocks.len()),
            }
        }
    }

    #[test]
    fn a_gain_that_is_left_takes_four_blocks_and_one_that_is_gone_seven() {
        for (gain, left, want) in [
            (2.4, 2.4, (StaleMemoryRuling::Independent, 4)),
            (2.4, 1.6, (StaleMemoryRuling::Independent, 4)),
            (2.4, 9.0, (StaleMemoryRuling::Independent, 4)),
            (1.1, 1.08, (StaleMemoryRuling::Independent, 4)),
            (2.4, 1.0, (StaleMemoryRuling::Dependent, 7)),
            (3.7, 1.8, (StaleMemoryRuling::Dependent, 7)),
            (2.4, 0.5, (StaleMemoryRuling::Dependent, 7)),
            (1.1, 1.0, (StaleMemoryRuling::Dependent, 7)),
        ] {
            assert_eq!(check(gain, left, 0.02, 1), want, "{gain} became {left}");
        }
    }

    #[test]
    fn without_a_gain_nothing_can_be_gone() {
        for gain in [1.0, 0.9, f64::NAN] {
            assert_eq!(check(gain, 0.5, 0.0, 1), (StaleMemoryRuling::Independent, 0));
        }
    }

    proptest! {
        #![proptest_config(fixed(200))]

        #[test]
        fn a_gain_that_is_left_is_not_called_gone(
            gain in 1.02_f64..50.0, noise in 0.0_f64..0.02, seed: u64,
        ) {
            let (ruling, blocks) = check(gain, gain, noise, seed);
            prop_assert_eq!(ruling, StaleMemoryRuling::Independent);
            prop_assert!(blocks <= BLOCKS_MAX);
        }

        #[test]
        fn a_gain_that_is_gone_is_always_noticed(
            gain in 1.1_f64..50.0, noise in 0.0_f64..0.05, seed: u64,
        ) {
            prop_assert_eq!(check(gain, 1.0, noise, seed).0, StaleMemoryRuling::Dependent);
        }
    }
}
