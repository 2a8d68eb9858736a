//! Whether a kernel works ahead: computes in one call what later calls of its batch will need.
//!
//! The inputs of a whole batch are in memory before its first call, so a kernel that finds them can
//! compute all results at once. A batch of fewer calls then takes far more for each of them. In a
//! duel such short turns come at random, with a random number of calls, in the same processes as
//! the timed ones: a kernel learns that a batch is short when it is over.

use super::batch_timing::BatchTiming;
use karve_core::measurement::Gate;
use karve_os::error::Result;
use karve_os::random::secret;

/// How much more than the incumbent a call may take beyond one in a full batch: as a factor of the
/// incumbent's, and as a share of its call.
const AHEAD_FACTOR_MAX: f64 = 1.5;
const AHEAD_SHARE_MAX: f64 = 0.5;

/// One turn in this many has a short one before it, if the batch has enough calls.
const SHORT_ONE_IN: u64 = 4;
const BATCH_MIN: u32 = 8;

/// How many short turns must show work for later calls, and which share of all of them: a kernel
/// may start with any call, and a busy host may stretch a few.
const AHEAD_MIN: u32 = 4;
const AHEAD_ONE_IN: u32 = 3;

/// Seconds of work of a call: alone or among few, and as one of a batch.
#[derive(Clone, Copy, Debug)]
pub(super) struct CallTimes {
    pub(super) alone: f64,
    pub(super) batched: f64,
}

impl CallTimes {
    /// Whether what a single call takes beyond one in a batch is far more than the incumbent's, and
    /// more than a call in a batch takes. A kernel that is not faster there gains nothing by that:
    /// it may start threads, for example.
    pub(super) fn is_ahead(self, incumbent: Self) -> bool {
        let more = |times: Self| (times.alone - times.batched).max(0.0);
        let may = AHEAD_FACTOR_MAX * more(incumbent) + AHEAD_SHARE_MAX * incumbent.alone;
        more(self) > may.max(self.batched) && self.batched < incumbent.batched
    }
}

/// What the short turns on a case showed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ShortTurns {
    n: u32,
    ahead: u32,
}

impl ShortTurns {
    /// The calls of a short turn: a half of a batch, a quarter, an eighth, and so on; usually none.
    pub(super) fn calls(batch: u32) -> Result<Option<u32>> {
        if batch < BATCH_MIN || !secret()?.is_multiple_of(SHORT_ONE_IN) {
            return Ok(None);
        }
        let halvings = 1 + secret()? % u64::from(batch.ilog2());
        Ok(Some(batch >> halvings))
    }

    /// Adds short turns of both arms, the incumbent first, with their calls; and the full ones of
    /// this many calls beside them.
    pub(super) fn add(
        &mut self,
        short: &[([BatchTiming; 2], usize)],
        full: &[[BatchTiming; 2]],
        calls: usize,
    ) {
        let each =
            |turn: &BatchTiming, calls: usize| turn.work().as_secs_f64() / calls.max(1) as f64;
        let batched = |arm: usize| {
            full.iter().map(|both| each(&both[arm], calls)).fold(f64::INFINITY, f64::min)
        };
        for (both, few) in short {
            let times =
                |arm: usize| CallTimes { alone: each(&both[arm], *few), batched: batched(arm) };
            self.count(times(0), times(1));
        }
    }

    fn count(&mut self, incumbent: CallTimes, candidate: CallTimes) {
        self.n += 1;
        self.ahead += u32::from(candidate.is_ahead(incumbent));
    }

    /// Fails if enough of them took far longer for each call.
    pub(super) fn check(self) -> std::result::Result<(), Gate> {
        if self.ahead < AHEAD_MIN || self.ahead * AHEAD_ONE_IN < self.n {
            return Ok(());
        }
        let why = "a call takes much longer in a short batch than in a long one: it works ahead";
        Err(Gate::Dishonest { why: why.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_for_later_calls_is_told_from_the_cost_of_a_hand_over() {
        let times = |alone, batched| CallTimes { alone, batched };
        let incumbent = times(15e-6, 9.4e-6);
        for honest in [times(15e-6, 9e-6), times(8e-6, 1e-6), times(20e-6, 8e-6)] {
            assert!(!honest.is_ahead(incumbent), "{honest:?}");
        }
        for ahead in [times(50e-6, 7e-6), times(31e-6, 8.5e-6)] {
            assert!(ahead.is_ahead(incumbent), "{ahead:?}");
        }
        assert!(!times(2.0e-3, 1.9e-3).is_ahead(times(9e-3, 8.9e-3)));
        assert!(!times(90e-6, 60e-6).is_ahead(incumbent), "it starts threads");
        assert!(!times(200e-6, 10e-6).is_ahead(incumbent), "no gain");
    }

    #[test]
    fn a_few_slow_turns_are_luck_and_many_are_not() {
        let incumbent = CallTimes { alone: 12e-6, batched: 10e-6 };
        let honest = CallTimes { alone: 6e-6, batched: 5e-6 };
        let ahead = CallTimes { alone: 80e-6, batched: 2e-6 };
        let says = |slow: u32, usual: u32| {
            let mut turns = ShortTurns::default();
            (0..slow).for_each(|_| turns.count(incumbent, ahead));
            (0..usual).for_each(|_| turns.count(incumbent, honest));
            turns.check().is_ok()
        };
        assert!(says(0, 20) && says(3, 0) && says(4, 20));
        assert!(!says(4, 4) && !says(20, 0) && !says(10, 20));
    }

    #[test]
    fn short_turns_have_fewer_calls_and_few_are_short() {
        assert_eq!(ShortTurns::calls(7).expect("a secret"), None);
        let drawn = || ShortTurns::calls(300).expect("a secret");
        let short: Vec<u32> = (0..2_000).filter_map(|_| drawn()).collect();
        assert!((300..700).contains(&short.len()), "{}", short.len());
        assert_eq!((short.iter().min(), short.iter().max()), (Some(&1), Some(&150)));
    }
}
