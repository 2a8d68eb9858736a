//! Judges a would-be keep by what is left of its gain while the allocator overwrites memory that it
//! hands out and takes back. A kernel that finds its last result there is fast only without that.

use karve_numerics::stats::SignEvidence;

/// The share of the time saved by the candidate that it must save here. Both arms pay for the
/// overwriting, so ratios shrink; an honest kernel that allocates more in every call pays more.
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

/// Judges blocks with overwritten memory: what each saves, as a share of what the candidate saved
/// in its duel.
pub fn judge_stale_memory(saved: &[f64]) -> StaleMemoryRuling {
    let (mut left, mut gone) = (SignEvidence::default(), SignEvidence::default());
    for share in saved {
        left.see(*share > LEFT_SHARE);
        gone.see(*share < LEFT_SHARE);
        if gone.reached(GONE_EVIDENCE) {
            return StaleMemoryRuling::Dependent;
        }
        if left.reached(LEFT_EVIDENCE) {
            return StaleMemoryRuling::Independent;
        }
    }
    match saved.len() < BLOCKS_MAX {
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

    /// The ruling if overwriting leaves this share, and after how many blocks.
    fn check(left: f64, noise: f64, seed: u64) -> (StaleMemoryRuling, usize) {
        let mut draws = DrawRng::new(seed);
        let mut blocks = Vec::new();
        loop {
            match judge_stale_memory(&blocks) {
                StaleMemoryRuling::Continue => {
                    blocks.push(left + noise * (draws.next_f64() - 0.5));
                }
                ruling => return (ruling, blocks.len()),
            }
        }
    }

    #[test]
    fn a_gain_that_is_left_takes_four_blocks_and_one_that_is_gone_seven() {
        for (left, want) in [
            (1.0, (StaleMemoryRuling::Independent, 4)),
            (0.7, (StaleMemoryRuling::Independent, 4)),
            (3.0, (StaleMemoryRuling::Independent, 4)),
            (0.3, (StaleMemoryRuling::Dependent, 7)),
            (0.0, (StaleMemoryRuling::Dependent, 7)),
            (-2.0, (StaleMemoryRuling::Dependent, 7)),
        ] {
            assert_eq!(check(left, 0.2, 1), want, "{left}");
        }
    }

    #[test]
    fn what_noise_hides_is_not_held_against_a_candidate() {
        let coin = [1.0, 0.0].repeat(BLOCKS_MAX / 2);
        assert_eq!(judge_stale_memory(&coin), StaleMemoryRuling::Independent);
        assert_eq!(judge_stale_memory(&[f64::NAN; BLOCKS_MAX]), StaleMemoryRuling::Independent);
    }

    proptest! {
        #![proptest_config(fixed(200))]

        /// Noise as large as the gain hides neither.
        #[test]
        fn a_gain_that_is_left_or_gone_is_told_apart(noise in 0.0_f64..1.0, seed: u64) {
            prop_assert_eq!(check(1.0, noise, seed).0, StaleMemoryRuling::Independent);
            prop_assert_eq!(check(0.0, noise, seed).0, StaleMemoryRuling::Dependent);
        }
    }
}
