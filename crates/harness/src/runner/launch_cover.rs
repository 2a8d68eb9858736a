//! How long a device is kept busy before a batch, so that its calls are launched meanwhile.
//!
//! A short kernel runs faster than its calls can be launched, above all from Python. Without a
//! cover its time would be that of the host. Both arms get the same cover, so that karve's clock
//! still shows what the device's clock hides.

use super::protocol::WorkerTiming;
use karve_numerics::contract::LaunchMode;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// Batches that are remembered: the first ones compile.
const BATCHES: usize = 7;

/// How much longer than usual launching a call may take.
const HEADROOM: f64 = 1.5;

/// How much longer than the incumbent's the launch of a candidate may take, as a factor and per
/// call. What takes longer is not covered, so that work on the host cannot hide there.
const CANDIDATE_FACTOR: f64 = 2.0;
const CANDIDATE_MORE: f64 = 10e-6;

/// The longest cover.
const COVER_MAX: f64 = 40e-3;

/// What launching calls took in the last batches of one arm on a case, and the calls themselves.
#[derive(Clone, Debug, Default)]
pub(super) struct LaunchTimes {
    /// Seconds for one call.
    launch: VecDeque<f64>,
    /// The least time of a call on the device, in seconds.
    device: Option<f64>,
}

impl LaunchTimes {
    /// Adds a batch of some calls.
    pub(super) fn add(&mut self, calls: usize, timing: &WorkerTiming) {
        if calls == 0 || timing.device_ns == 0 {
            return;
        }
        if self.launch.len() >= BATCHES {
            self.launch.pop_front();
        }
        self.launch.push_back(timing.launch_ns as f64 * 1e-9 / calls as f64);
        let device = timing.device_ns as f64 * 1e-9 / calls as f64;
        self.device = Some(self.device.map_or(device, |least| least.min(device)));
    }

    /// The middle one, or the lower one of two.
    fn usual(&self) -> Option<f64> {
        let mut sorted: Vec<f64> = self.launch.iter().copied().collect();
        sorted.sort_by(f64::total_cmp);
        sorted.get(sorted.len().saturating_sub(1) / 2).copied()
    }
}

/// Those of both arms of a duel, for each case.
#[derive(Debug)]
pub(super) struct DuelLaunches {
    mode: LaunchMode,
    times: BTreeMap<usize, [LaunchTimes; 2]>,
}

impl DuelLaunches {
    /// Nothing is known of these yet.
    pub(super) fn new(mode: LaunchMode) -> Self {
        Self { mode, times: BTreeMap::new() }
    }

    /// Those of a case.
    pub(super) fn of(&mut self, case: usize) -> &mut [LaunchTimes; 2] {
        self.times.entry(case).or_default()
    }

    /// The cover of the next batch on a case.
    pub(super) fn cover(&mut self, case: usize, calls: usize) -> Duration {
        let mode = self.mode;
        cover(self.of(case).each_ref(), calls, mode)
    }
}

/// The cover of a batch of this many calls, for an incumbent and a candidate. The first call of a
/// graph starts after the last one was captured.
pub(super) fn cover(
    [parent, candidate]: [&LaunchTimes; 2],
    calls: usize,
    mode: LaunchMode,
) -> Duration {
    let (Some(own), Some(device)) = (parent.usual(), parent.device) else {
        return Duration::ZERO;
    };
    let most = CANDIDATE_FACTOR * own + CANDIDATE_MORE;
    let launch = candidate.usual().map_or(own, |launch| launch.min(most).max(own));
    let device = match mode {
        LaunchMode::Stream => candidate.device.map_or(device, |least| least.min(device)),
        LaunchMode::Graph => 0.0,
    };
    let cover = calls as f64 * (HEADROOM * launch - device);
    Duration::from_secs_f64(cover.clamp(0.0, COVER_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Batches of ten calls, each of which takes this many microseconds to launch, and on the
    /// device.
    fn times(batches: &[[u64; 2]]) -> LaunchTimes {
        let mut times = LaunchTimes::default();
        for [launch, device] in batches {
            let ns = |us: &u64| us * 10_000;
            let (launch_ns, device_ns) = (ns(launch), ns(device));
            times.add(10, &WorkerTiming { launch_ns, device_ns, ..WorkerTiming::default() });
        }
        times
    }

    #[track_caller]
    fn check(parent: &[[u64; 2]], candidate: &[[u64; 2]], want_us: u128) {
        let found = cover([&times(parent), &times(candidate)], 100, LaunchMode::Stream);
        assert_eq!(found.as_micros(), want_us);
    }

    #[test]
    fn a_short_kernel_is_covered_and_a_long_one_is_not() {
        check(&[[40, 30]], &[[40, 30]], 3_000);
        check(&[[40, 180]], &[[40, 180]], 0);
        // A candidate may be much faster than its incumbent.
        check(&[[40, 180]], &[[40, 10]], 5_000);
    }

    #[test]
    fn a_graph_is_covered_until_all_of_it_is_captured() {
        let of = times(&[[40, 30]]);
        assert_eq!(cover([&of, &of], 100, LaunchMode::Graph).as_micros(), 6_000);
    }

    #[test]
    fn compilation_in_the_first_batch_is_forgotten() {
        check(&[[900_000, 30], [40, 30]], &[], 3_000);
        check(&[[900_000, 30]], &[], 40_000);
        check(&[], &[[40, 30]], 0);
    }

    #[test]
    fn a_candidate_that_launches_more_is_covered_up_to_a_bound() {
        check(&[[20, 40]], &[[40, 40]], 2_000);
        check(&[[20, 40]], &[[5_000, 40]], 3_500);
        // One that launches less does not shorten the cover of its incumbent.
        check(&[[40, 30]], &[[5, 30]], 3_000);
    }

    proptest! {
        #[test]
        fn a_cover_is_bounded_whatever_a_worker_reports(
            parent: Vec<(u64, u64)>, candidate: Vec<(u64, u64)>, calls in 0_usize..5_000,
        ) {
            let of = |batches: &[(u64, u64)]| {
                let mut times = LaunchTimes::default();
                for (launch_ns, device_ns) in batches.iter().copied() {
                    let timing = WorkerTiming { launch_ns, device_ns, ..WorkerTiming::default() };
                    times.add(calls, &timing);
                }
                times
            };
            let found = cover([&of(&parent), &of(&candidate)], calls, LaunchMode::Stream);
            prop_assert!(found.as_secs_f64() <= COVER_MAX);
        }
    }
}
