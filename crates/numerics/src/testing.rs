//! What the tests of this crate share.

use proptest::test_runner::{Config, RngSeed};

/// Properties are tried on the same cases in every run.
pub(crate) fn fixed(cases: u32) -> Config {
    Config { cases, rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..Config::default() }
}
