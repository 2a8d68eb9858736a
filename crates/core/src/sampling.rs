//! What is sampled: which cases represent all, and which blocks only warm up.

use crate::charter::{ClockRule, Metric};
use crate::comparison::Clock;
use crate::measurement::{BaselineReading, DiscardReason, Pair, Sample};
use crate::policy::WarmUpRule;
use karve_numerics::stats;

/// Up to so many cases are all measured in every round.
const REPRESENTATIVES: usize = 5;
/// CPU time above this share of the wall time means more than one thread.
const SINGLE_THREAD_SHARE: f64 = 1.05;

/// CPU time below this share of the wall time, in the least disturbed run, means that the command
/// waits.
const BUSY_SHARE: f64 = 0.7;

/// The clock that counts alongside the metric, from the incumbent's readings alone.
///
/// With `auto` it is the CPU time of a command that is timed as a whole, runs in one thread and
/// does not wait: there CPU time is the same work read by a clock that a busy host cannot stretch.
pub fn second_clock(metric: &Metric, incumbent: &[Sample]) -> Option<Clock> {
    let other = metric.own_clock().map(Clock::beside);
    let share = |sample: &Sample| sample.cpu_us as f64 / sample.wall_us.max(1) as f64;
    let shares: Vec<f64> = incumbent.iter().map(share).collect();
    let highest = shares.iter().copied().fold(f64::NAN, f64::max);
    match metric.clocks {
        ClockRule::Metric => None,
        ClockRule::Both => Some(other.unwrap_or(Clock::Cpu)),
        ClockRule::Auto => other.filter(|_| is_busy_thread(highest)),
    }
}

/// Whether the highest share of CPU time in wall time that a command showed is that of one thread
/// which does not wait.
pub fn is_busy_thread(highest_share: f64) -> bool {
    (BUSY_SHARE..=SINGLE_THREAD_SHARE).contains(&highest_share)
}

/// The most calls in one batch of a faster incumbent.
const CALLS_MAX: f64 = 4_096.0;

/// Calls in one batch of an incumbent that is this many times as fast as the baseline, so that a
/// batch takes as long as one of the baseline did.
pub fn lengthened(calls: u32, faster: f64) -> u32 {
    let least = f64::from(calls);
    (least * faster).clamp(least, CALLS_MAX.max(least)) as u32
}

/// A sample should take at least this long: a thousand times what the clocks resolve.
const SAMPLE_SECONDS: f64 = 1e-3;

/// Calls of a kernel in one run at most.
const REPEATS_MAX: u32 = 1 << 20;

/// How often the kernel should be called in one run instead, from a run of the incumbent with
/// `repeats` calls; `None` if that is enough. Both arms use the same count.
fn more_repeats(metric: &Metric, sample: &Sample, repeats: u32) -> Option<u32> {
    // A reported time is that of one call; everything else is judged by the whole command.
    let reported = metric.seconds_per_unit().filter(|_| metric.own_clock().is_none());
    let (wanted, enough) = match reported {
        Some(unit) => {
            // Slightly less, so that a whole number does not round up to the next one.
            let calls = (SAMPLE_SECONDS / (sample.value * unit) - 1e-6).ceil();
            (calls.min(f64::from(REPEATS_MAX)) as u32, false)
        }
        None => {
            // Starting a program takes about as long as the shortest sample, so ten times that.
            let seconds = sample.wall_us as f64 * 1e-6;
            (repeats.saturating_mul(2), seconds >= 10.0 * SAMPLE_SECONDS)
        }
    };
    (!enough && wanted > repeats && repeats < REPEATS_MAX).then(|| wanted.min(REPEATS_MAX))
}

/// Consecutive runs that must be long enough: one that the host delayed looks long enough too.
const LONG_RUNS: u32 = 3;

/// The search for how often a case is repeated in one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RepeatSearch {
    /// How often it is repeated in the next run.
    pub repeats: u32,
    long: u32,
}

impl Default for RepeatSearch {
    fn default() -> Self {
        Self { repeats: 1, long: 0 }
    }
}

impl RepeatSearch {
    /// Whether another run is needed.
    pub fn is_due(&self) -> bool {
        self.long < LONG_RUNS
    }

    /// Takes in a run with the current repeats.
    pub fn add(&mut self, metric: &Metric, sample: &Sample) {
        match more_repeats(metric, sample, self.repeats) {
            Some(more) => *self = Self { repeats: more, long: 0 },
            None => self.long += 1,
        }
    }
}

/// Readings of each case that the baseline takes.
pub const BASELINE_READINGS: u32 = 5;

/// Blocks of a warm-up at most.
const WARM_UP_BLOCKS_MAX: u32 = 5;

/// A block that takes less than this share of the one before it shows that the host still warms up.
const WARMING_SHARE: f64 = 0.9;

/// The warm-up of a duel: which blocks at its start do not count.
///
/// The first loads caches and pages. Whether more are needed is seen from the time of both arms
/// together, which says nothing about which is faster, so leaving blocks out favors neither.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WarmUp {
    rule: WarmUpRule,
    blocks: u32,
    last_us: Option<f64>,
    over: bool,
}

impl WarmUp {
    /// The warm-up of a duel before its first block.
    pub fn new(rule: WarmUpRule) -> Self {
        Self { rule, blocks: 0, last_us: None, over: false }
    }

    /// Why the next block, with these pairs, does not count; `None` if it does.
    pub fn discards(&self, pairs: &[Pair]) -> Option<DiscardReason> {
        let warming = match (self.over, self.last_us) {
            (true, _) => false,
            (false, None) => true,
            (false, Some(last_us)) => {
                self.rule == WarmUpRule::Detected
                    && self.blocks < WARM_UP_BLOCKS_MAX
                    && both_arms_us(pairs) < last_us * WARMING_SHARE
            }
        };
        warming.then_some(DiscardReason::WarmUp)
    }

    /// Takes in a block with these pairs.
    pub fn record_block(&mut self, pairs: &[Pair]) {
        self.over = self.discards(pairs).is_none();
        self.blocks = self.blocks.saturating_add(1);
        self.last_us = Some(both_arms_us(pairs));
    }
}

fn both_arms_us(pairs: &[Pair]) -> f64 {
    let both = |pair: &Pair| pair.parent.wall_us as f64 + pair.candidate.wall_us as f64;
    pairs.iter().map(both).sum()
}

/// Cases that represent all: the smallest, the middle and the largest by time, and the two with
/// the highest spread. All cases, if there are at most five.
pub fn representative(
    cases: &[usize],
    readings: &[BaselineReading],
    metric: &Metric,
) -> Vec<usize> {
    if cases.len() <= REPRESENTATIVES {
        return cases.to_vec();
    }
    let of_case = |case: usize| -> Vec<f64> {
        // As times, so that small means small whichever direction is better.
        let values = readings.iter().filter(|reading| reading.case == case);
        values.map(|reading| metric.ln_speedup(reading.sample.value, 1.0)).collect()
    };
    let mut by_time: Vec<(usize, f64, f64)> = cases
        .iter()
        .map(|case| {
            let values = of_case(*case);
            let spread = stats::mean_and_deviation(&values).map_or(0.0, |(_, deviation)| deviation);
            (*case, stats::median(&values).unwrap_or(0.0), spread)
        })
        .collect();
    by_time.sort_by(|a, b| a.1.total_cmp(&b.1));
    let last = by_time.len() - 1;
    let mut chosen = vec![by_time[0].0, by_time[last / 2].0, by_time[last].0];
    by_time.sort_by(|a, b| b.2.total_cmp(&a.2));
    let spread_most = by_time.iter().map(|(case, _, _)| *case);
    let missing: Vec<usize> = spread_most.filter(|case| !chosen.contains(case)).take(2).collect();
    chosen.extend(missing);
    chosen.sort_unstable();
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurement::FirstArm;
    use crate::testing::charter;

    #[test]
    fn a_batch_of_a_faster_incumbent_has_more_calls_and_never_fewer() {
        assert_eq!([1.0, 5.5, 0.5].map(|faster| lengthened(18, faster)), [18, 99, 18]);
        assert_eq!(lengthened(3_000, 4.0), 4_096);
        assert_eq!(lengthened(5_000, 4.0), 5_000);
    }

    #[test]
    fn a_second_clock_counts_where_a_command_of_one_thread_is_timed_as_a_whole() {
        let sample =
            |cpu_us| Sample { value: 1.0, wall_us: 100, cpu_us, passes: None, snr_db: None };
        let check = |name: &str, clocks, shares: &[u64], want| {
            let metric = Metric { name: name.into(), clocks, ..charter().metric };
            let samples: Vec<Sample> = shares.iter().map(|cpu| sample(*cpu)).collect();
            assert_eq!(second_clock(&metric, &samples), want, "{name} {shares:?}");
        };
        use ClockRule::{Auto, Both, Metric as Alone};
        check("wall_time", Auto, &[40, 98], Some(Clock::Cpu));
        check("cpu_time", Auto, &[98], Some(Clock::Wall));
        check("wall_time", Auto, &[98, 190], None);
        check("wall_time", Auto, &[10, 30], None);
        check("wall_time", Auto, &[], None);
        check("time_ms", Auto, &[98], None);
        check("time_ms", Both, &[198], Some(Clock::Cpu));
        check("wall_time", Alone, &[98], None);
    }

    #[test]
    fn the_warm_up_lasts_while_both_arms_together_become_faster() {
        let check = |rule, times: &[u64], want: usize| {
            let mut warm_up = WarmUp::new(rule);
            let counted = times.iter().skip_while(|time| {
                let sample =
                    |wall_us| Sample { value: 1.0, wall_us, cpu_us: 1, passes: None, snr_db: None };
                let pairs = [Pair {
                    case: 0,
                    first: FirstArm::Parent,
                    parent: sample(**time),
                    candidate: sample(100),
                    turns: None,
                }];
                let discarded = warm_up.discards(&pairs).is_some();
                warm_up.record_block(&pairs);
                discarded
            });
            assert_eq!(times.len() - counted.count(), want, "{times:?}");
        };
        check(WarmUpRule::Detected, &[900, 880, 100, 90], 1);
        check(WarmUpRule::Detected, &[900, 400, 200, 190, 50], 3);
        check(WarmUpRule::Detected, &[900, 950, 100], 1);
        check(WarmUpRule::Detected, &[9_000, 5_000, 3_000, 2_000, 1_000, 500, 200], 5);
        check(WarmUpRule::First, &[900, 400, 200, 190], 1);
    }

    #[test]
    fn a_sample_is_made_long_enough_for_the_clock() {
        let sample =
            |value, wall_us| Sample { value, wall_us, cpu_us: wall_us, passes: None, snr_db: None };
        // Four microseconds a call as the benchmark reports it, in milliseconds.
        let reported = charter().metric;
        assert_eq!(more_repeats(&reported, &sample(0.004, 3_000), 1), Some(250));
        assert_eq!(more_repeats(&reported, &sample(0.004, 3_000), 250), None);
        assert_eq!(more_repeats(&reported, &sample(5.0, 6_000), 1), None);
        assert_eq!(more_repeats(&reported, &sample(1e-12, 3_000), 1), Some(1 << 20));
        assert_eq!(more_repeats(&reported, &sample(1e-12, 3_000), 1 << 20), None);
        let own = Metric { name: "wall_time".into(), ..charter().metric };
        assert_eq!(more_repeats(&own, &sample(1.5, 1_500), 4), Some(8));
        assert_eq!(more_repeats(&own, &sample(12.0, 12_000), 64), None);
    }

    #[test]
    fn repeats_grow_until_several_runs_in_a_row_are_long_enough() {
        let own = Metric { name: "wall_time".into(), ..charter().metric };
        let run =
            |wall_us| Sample { value: 1.0, wall_us, cpu_us: wall_us, passes: None, snr_db: None };
        let mut search = RepeatSearch::default();
        for (wall_us, repeats) in [(6_000, 2), (12_000, 2), (12_000, 2), (9_000, 4)] {
            search.add(&own, &run(wall_us));
            assert!(search.is_due());
            assert_eq!(search.repeats, repeats);
        }
        for left in [true, true, false] {
            search.add(&own, &run(12_000));
            assert_eq!((search.is_due(), search.repeats), (left, 4));
        }
    }

    fn readings(values: &[(usize, f64)]) -> Vec<BaselineReading> {
        let sample = |value| Sample { value, wall_us: 1, cpu_us: 1, passes: None, snr_db: None };
        values.iter().map(|(case, v)| BaselineReading { case: *case, sample: sample(*v) }).collect()
    }

    #[test]
    fn few_cases_all_stand_for_themselves() {
        let metric = charter().metric;
        assert_eq!(representative(&[0, 1, 2], &[], &metric), vec![0, 1, 2]);
    }

    #[test]
    fn small_middle_large_and_the_two_unsteady_ones_are_chosen() {
        let metric = charter().metric;
        let mut values: Vec<(usize, f64)> = Vec::new();
        for case in 0..9_usize {
            let wobble = if case == 2 || case == 6 { 1.5 } else { 1.001 };
            values.push((case, (case + 1) as f64));
            values.push((case, (case + 1) as f64 * wobble));
        }
        let all: Vec<usize> = (0..9).collect();
        assert_eq!(representative(&all, &readings(&values), &metric), vec![0, 2, 4, 6, 8]);
    }
}
