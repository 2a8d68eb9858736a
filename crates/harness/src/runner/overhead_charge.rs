//! What a candidate is charged for the time around its batches: preparing the calls, and returning
//! outputs from a device.
//!
//! This time is not part of a batch, so work could be moved there. Whatever a candidate takes more
//! of it than the incumbent is added to its turns. What it takes less is never credited: the code
//! around a batch is karve's, so a candidate that makes it faster has changed something that is not
//! its own.

use std::time::Duration;

/// How much longer than the incumbent's longest preparation wall time may be before it is charged,
/// as a share of that: transfers to a device vary.
const TRANSFERS_VARY: f64 = 0.1;

/// The clock of the time around a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OverheadClock {
    /// CPU time, which a busy host cannot stretch.
    Cpu,
    /// Wall time, for transfers to and from a device.
    Wall,
}

/// What is added to each turn of the candidate, from the time around the turns of both arms.
///
/// By CPU time every turn bears what the candidate takes more on average, so that work that is
/// moved in some of the turns only is charged in full; and no turn bears less than what it took
/// beyond the longest of the incumbent.
pub(super) fn charges(
    parent: &[Duration],
    candidate: &[Duration],
    clock: OverheadClock,
) -> Vec<Duration> {
    let longest = parent.iter().max().copied().unwrap_or_default();
    let (on_average, may) = match clock {
        OverheadClock::Cpu => (mean(candidate).saturating_sub(mean(parent)), longest),
        OverheadClock::Wall => (Duration::ZERO, longest.mul_f64(1.0 + TRANSFERS_VARY)),
    };
    candidate.iter().map(|own| own.saturating_sub(may).max(on_average)).collect()
}

fn mean(times: &[Duration]) -> Duration {
    let n = u32::try_from(times.len()).unwrap_or(u32::MAX).max(1);
    times.iter().sum::<Duration>() / n
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn us(times: &[u64]) -> Vec<Duration> {
        times.iter().copied().map(Duration::from_micros).collect()
    }

    #[track_caller]
    fn check(parent: &[u64], candidate: &[u64], clock: OverheadClock, want: &[u64]) {
        assert_eq!(charges(&us(parent), &us(candidate), clock), us(want));
    }

    #[test]
    fn what_takes_longer_is_charged_to_the_candidate() {
        check(&[100, 100], &[150, 150], OverheadClock::Cpu, &[50, 50]);
        check(&[100], &[350], OverheadClock::Wall, &[240]);
    }

    #[test]
    fn what_takes_less_is_not_credited() {
        check(&[100, 100], &[10, 0], OverheadClock::Cpu, &[0, 0]);
        check(&[100], &[10], OverheadClock::Wall, &[0]);
    }

    #[test]
    fn work_that_is_moved_in_some_turns_is_charged_in_full() {
        check(&[100; 4], &[100, 500, 100, 100], OverheadClock::Cpu, &[100, 400, 100, 100]);
        check(&[100, 100], &[500, 100], OverheadClock::Cpu, &[400, 200]);
    }

    #[test]
    fn transfers_that_vary_are_not_charged() {
        check(&[1_000, 1_040], &[1_100, 990], OverheadClock::Wall, &[0, 0]);
        check(&[1_000, 1_000], &[1_300, 990], OverheadClock::Wall, &[200, 0]);
    }

    #[test]
    fn nothing_is_charged_without_turns() {
        check(&[], &[], OverheadClock::Cpu, &[]);
        check(&[], &[30], OverheadClock::Cpu, &[30]);
    }

    proptest! {
        #[test]
        fn less_overhead_never_costs_more_and_nothing_is_ever_credited(
            parent in prop::collection::vec(0_u64..10_000, 1..25),
            candidate in prop::collection::vec(0_u64..10_000, 1..25),
            less in 0_u64..10_000,
        ) {
            for clock in [OverheadClock::Cpu, OverheadClock::Wall] {
                let (parent, own) = (us(&parent), us(&candidate));
                let charged = charges(&parent, &own, clock);
                prop_assert_eq!(charged.len(), own.len());
                let less = Duration::from_micros(less);
                let lighter: Vec<Duration> =
                    own.iter().map(|time| time.saturating_sub(less)).collect();
                let lighter = charges(&parent, &lighter, clock);
                prop_assert!(lighter.iter().zip(&charged).all(|(one, other)| one <= other));
                // By CPU time, all that is moved is charged.
                let all = |of: &[Duration]| of.iter().sum::<Duration>();
                if clock == OverheadClock::Cpu && parent.len() == own.len() {
                    let slack = Duration::from_micros(1);
                    prop_assert!(all(&charged) + slack >= all(&own).saturating_sub(all(&parent)));
                }
            }
        }
    }
}
