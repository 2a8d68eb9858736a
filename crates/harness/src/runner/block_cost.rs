//! How long processes live, how many turns both arms take in a block, which turn represents them,
//! and what all of them show.
//!
//! A block starts with fresh processes, which cost time in which no kernel runs. The shorter a
//! turn, the more turns are needed to make that worthwhile. Single turns of a block are not
//! evidence, because they share the luck of their processes; the usual one of them is. Only
//! processes that start slowly, such as Python, stay for more than one block.

use super::batch_timing::BatchTiming;
use karve_core::charter::{Metric, OwnClock};
use karve_core::measurement::{FirstArm, PairTurns, Sample, SlowTurns, TurnTimes};
use karve_numerics::contract::{CacheState, Contract, DeviceTiming, LaunchMode};
use karve_numerics::stats;
use std::time::Duration;

/// The turns of a block take at least this many times as long as preparing.
const BATCHES_OVER_START: f64 = 15.0;

/// How long processes live.
#[derive(Clone, Copy, Debug)]
struct ProcessLife {
    /// The share of each block that starting both of them may cost.
    start: Duration,
    /// Maximum number of their blocks.
    blocks: u32,
    /// Turns of each arm in a block, and in the first one, when nothing is known yet.
    batches_max: u32,
    batches_first: u32,
    /// Which arm begins.
    order: TurnOrder,
    /// Pairs of them at the same time, which take turns from block to block.
    pairs: usize,
}

/// Which arm begins a pair of turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TurnOrder {
    /// A coin decides.
    Tossed,
    /// A coin decides, and the next time the other one begins. After some work the clocks of a
    /// device are lower than after a pause, so the second turn takes up to a tenth longer.
    Balanced,
}

/// On the host, and on a device, where a block takes only milliseconds.
const ON_HOST: ProcessLife = ProcessLife {
    start: Duration::from_millis(250),
    blocks: 25,
    batches_max: 25,
    batches_first: 1,
    order: TurnOrder::Tossed,
    pairs: 1,
};
const ON_DEVICE: ProcessLife = ProcessLife {
    start: Duration::from_millis(5),
    blocks: 200,
    batches_max: 6,
    batches_first: 2,
    order: TurnOrder::Balanced,
    pairs: 2,
};

/// For kernels of a few microseconds, from graphs or in the cache of a device. What one process is
/// given there makes up to 2% of their time, so a decision needs more of them.
const SHORT_ON_DEVICE: ProcessLife =
    ProcessLife { start: Duration::from_millis(15), blocks: 96, pairs: 4, ..ON_DEVICE };

/// An aged process has lived this many times longer than usual when its block begins; aging both
/// processes of a block on one case takes at most this much CPU time, and on a busy host or with a
/// device at most this long.
pub(super) const AGED_FACTOR: u32 = 50;
pub(super) const AGING_CPU_MAX: Duration = Duration::from_secs(2);
pub(super) const AGING_WALL_MAX: Duration = Duration::from_secs(60);

/// What blocks cost so far.
#[derive(Clone, Copy, Debug)]
pub(super) struct BlockCost {
    life: ProcessLife,
    /// Starting both processes.
    start: Duration,
    /// Calls before the timed ones.
    around: Duration,
    /// One turn of both arms on every case.
    turn: Duration,
}

impl BlockCost {
    /// For the kernels of a contract.
    pub(super) fn new(contract: &Contract) -> Self {
        Self::with(match contract.timing {
            _ if !contract.is_on_device() => ON_HOST,
            DeviceTiming { launch: LaunchMode::Stream, cache: CacheState::Cold } => ON_DEVICE,
            DeviceTiming { .. } => SHORT_ON_DEVICE,
        })
    }

    fn with(life: ProcessLife) -> Self {
        let nothing = Duration::ZERO;
        Self { life, start: nothing, around: nothing, turn: nothing }
    }

    /// Records how long it took to start both processes.
    pub(super) fn started(&mut self, took: Duration) {
        self.start = took;
    }

    /// Blocks for which processes live.
    pub(super) fn blocks(&self) -> u32 {
        let blocks = self.start.as_secs_f64() / self.life.start.as_secs_f64();
        (blocks.ceil() as u32).clamp(1, self.life.blocks)
    }

    /// Records a block: how long preparing took, how long the turns, and how many there were.
    pub(super) fn add(&mut self, around: Duration, all: Duration, turns: u32) {
        self.around = around;
        self.turn = all / turns.max(1);
    }

    /// Pairs of processes at the same time: if they live long, their luck must not decide.
    pub(super) fn process_pairs(&self) -> usize {
        self.life.pairs
    }

    /// Which arm begins a pair of turns.
    pub(super) fn order(&self) -> TurnOrder {
        self.life.order
    }

    /// Turns of each arm in the next block: odd, so that one of them is in the middle, or even, so
    /// that each arm begins as often as the other.
    pub(super) fn n_batches(&self) -> u32 {
        if self.turn.is_zero() {
            return self.life.batches_first;
        }
        let around = match self.blocks() {
            1 => self.around + self.start,
            // More blocks are worth more than more turns.
            _ => self.around,
        };
        let worth = BATCHES_OVER_START * around.as_secs_f64() / self.turn.as_secs_f64();
        let worth = (worth as u32).min(self.life.batches_max);
        match self.life.order {
            TurnOrder::Tossed => worth | 1,
            TurnOrder::Balanced => worth.max(self.life.batches_first) & !1,
        }
    }
}

/// What both clocks showed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ClockTimes {
    /// karve's clock.
    pub(super) time: Duration,
    /// CPU time of all threads.
    pub(super) cpu: Duration,
}

impl ClockTimes {
    /// The clocks of one turn.
    pub(super) fn of(turn: &BatchTiming) -> Self {
        Self { time: turn.time(), cpu: turn.cpu }
    }
}

/// The usual turn of both arms: for each clock, the one with the median ratio. Consecutive turns
/// of both share what the host does, which cancels out in a ratio. If both arms begin in turn, it
/// is the mean of the usual ones that each begins.
pub(super) fn usual(
    turns: &[[BatchTiming; 2]],
    first: &[FirstArm],
    order: TurnOrder,
) -> [ClockTimes; 2] {
    let of = |begins: Option<FirstArm>| -> Vec<[ClockTimes; 2]> {
        let chosen =
            turns.iter().zip(first).filter(|(_, first)| begins.is_none_or(|b| b == **first));
        chosen.map(|(both, _)| both.each_ref().map(ClockTimes::of)).collect()
    };
    let of_order = match order {
        TurnOrder::Tossed => vec![of(None)],
        TurnOrder::Balanced => {
            [FirstArm::Parent, FirstArm::Candidate].map(|begins| of(Some(begins))).into()
        }
    };
    let middles: Vec<[ClockTimes; 2]> = of_order
        .iter()
        .filter(|clocked| !clocked.is_empty())
        .map(|clocked| {
            let by_time = middle(clocked, |clocked| clocked.time);
            let by_cpu = middle(clocked, |clocked| clocked.cpu);
            [0, 1].map(|arm| ClockTimes { time: by_time[arm].time, cpu: by_cpu[arm].cpu })
        })
        .collect();
    let n = middles.len().max(1) as u32;
    [0, 1].map(|arm| ClockTimes {
        time: middles.iter().map(|both| both[arm].time).sum::<Duration>() / n,
        cpu: middles.iter().map(|both| both[arm].cpu).sum::<Duration>() / n,
    })
}

fn middle(turns: &[[ClockTimes; 2]], clock: fn(&ClockTimes) -> Duration) -> [ClockTimes; 2] {
    let ratio = |[parent, candidate]: &[ClockTimes; 2]| {
        clock(candidate).as_secs_f64() / clock(parent).as_secs_f64().max(1e-9)
    };
    let mut sorted: Vec<&[ClockTimes; 2]> = turns.iter().collect();
    sorted.sort_by(|one, other| ratio(one).total_cmp(&ratio(other)));
    sorted.get(sorted.len() / 2).copied().copied().unwrap_or_default()
}

/// What all turns of both arms show, of this many calls each.
pub(super) fn all_turns(metric: &Metric, turns: &[[BatchTiming; 2]], calls: usize) -> PairTurns {
    let seconds_of = |arm: usize| -> (Vec<f64>, Vec<f64>) {
        let own = turns.iter().map(|both| ClockTimes::of(&both[arm]));
        own.map(|own| (own.time.as_secs_f64(), own.cpu.as_secs_f64())).unzip()
    };
    let incumbent = seconds_of(0);
    let of_arm = |arm: usize| {
        let (times, cpus) = seconds_of(arm);
        let sample = |of: &dyn Fn(&[f64]) -> f64| {
            let seconds = |values: &[f64]| Duration::from_secs_f64(of(values).max(0.0));
            sample_of(metric, ClockTimes { time: seconds(&times), cpu: seconds(&cpus) }, calls)
        };
        let quantile = |q: f64| move |values: &[f64]| stats::quantile(values, q).unwrap_or(0.0);
        TurnTimes {
            mean: sample(&|values| values.iter().sum::<f64>() / values.len().max(1) as f64),
            p90: sample(&quantile(0.9)),
            worst: sample(&quantile(1.0)),
            slow: SlowTurns {
                time: SlowTurns::count(&times, &incumbent.0),
                cpu: SlowTurns::count(&cpus, &incumbent.1),
            },
        }
    };
    PairTurns {
        n: u32::try_from(turns.len()).unwrap_or(u32::MAX),
        parent: of_arm(0),
        candidate: of_arm(1),
    }
}

/// The clocks of a turn as a sample: the time of one call, and both clocks for all of them.
pub(super) fn sample_of(metric: &Metric, clocks: ClockTimes, calls: usize) -> Sample {
    let unit = metric.seconds_per_unit().unwrap_or(1e-6);
    let time = match metric.own_clock() {
        Some(OwnClock::Cpu) => clocks.cpu,
        Some(OwnClock::Wall) | None => clocks.time,
    };
    Sample {
        value: time.as_secs_f64() / unit / calls.max(1) as f64,
        wall_us: clocks.time.as_micros() as u64,
        cpu_us: clocks.cpu.as_micros() as u64,
        passes: None,
        snr_db: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runner::protocol::WorkerTiming;

    fn turn(time: u64, cpu: u64) -> BatchTiming {
        BatchTiming {
            wall: Duration::from_micros(time),
            woken: Duration::ZERO,
            cpu: Duration::from_micros(cpu),
            late: Duration::ZERO,
            worker_timing: WorkerTiming { wall_ns: 0, launch_ns: 0, flags: 0, device_ns: 0 },
            before: Duration::ZERO,
            after: Duration::ZERO,
            cover: Duration::ZERO,
            left: Duration::ZERO,
        }
    }

    /// Starts, calls before the timed ones, and turns that take this many microseconds.
    fn pace([start, around, turn]: [u64; 3]) -> BlockCost {
        let mut pace = BlockCost::with(ON_HOST);
        pace.started(Duration::from_micros(start));
        let all = Duration::from_micros(turn) * 3;
        pace.add(Duration::from_micros(around), all, 3);
        pace
    }

    #[test]
    fn short_turns_are_taken_more_often_and_always_an_odd_number_of_times() {
        assert_eq!(BlockCost::with(ON_HOST).n_batches(), 1);
        assert_eq!(pace([4_000, 4_000, 1_000_000]).n_batches(), 1);
        assert_eq!(pace([4_000, 4_000, 10_000]).n_batches(), 13);
        assert_eq!(pace([200_000, 10_000, 1_000]).n_batches(), ON_HOST.batches_max);
        assert_eq!(ON_HOST.batches_max % 2, 1);
    }

    #[test]
    fn only_processes_that_start_slowly_stay_for_more_than_a_block() {
        assert_eq!(BlockCost::with(ON_HOST).blocks(), 1);
        assert_eq!(pace([200_000, 4_000, 1_000]).blocks(), 1);
        assert_eq!(pace([600_000, 4_000, 1_000]).blocks(), 3);
        assert_eq!(pace([12_000_000, 4_000, 1_000]).blocks(), ON_HOST.blocks);
        assert_eq!(pace([12_000_000, 10_000, 500_000]).n_batches(), 1);
        let mut on_device = BlockCost::with(ON_DEVICE);
        on_device.started(Duration::from_millis(200));
        assert_eq!(on_device.blocks(), 40);
        let mut short = BlockCost::with(SHORT_ON_DEVICE);
        short.started(Duration::from_millis(600));
        assert_eq!((short.blocks(), short.process_pairs()), (40, 4));
    }

    #[test]
    fn all_turns_show_what_the_usual_one_does_not() {
        let slow = |at: usize| if at.is_multiple_of(4) { 600 } else { 90 };
        let turns: Vec<_> = (0..16).map(|at| [turn(100, 100), turn(slow(at), slow(at))]).collect();
        let usual = tossed(&turns).map(|clocked| clocked.time.as_micros());
        assert_eq!(usual, [100, 90]);
        let metric = Metric { unit: "us".into(), ..karve_core::charter::Metric::default() };
        let all = all_turns(&metric, &turns, 1);
        assert_eq!((all.n, all.parent.mean.cpu_us, all.candidate.mean.cpu_us), (16, 100, 217));
        assert_eq!((all.candidate.p90.wall_us, all.candidate.worst.wall_us), (600, 600));
        assert_eq!((all.parent.slow.time, all.candidate.slow.time), ([0; 4], [4, 4, 0, 0]));
    }

    fn tossed(turns: &[[BatchTiming; 2]]) -> [ClockTimes; 2] {
        usual(turns, &vec![FirstArm::Parent; turns.len()], TurnOrder::Tossed)
    }

    #[test]
    fn a_device_that_gets_slower_in_a_pair_does_not_favor_an_arm_if_both_begin() {
        // The second one takes a tenth longer.
        let (begins, follows) = (turn(100, 100), turn(110, 110));
        let turns = [[begins, follows], [follows, begins]];
        let first = [FirstArm::Parent, FirstArm::Candidate];
        let [parent, candidate] = usual(&turns, &first, TurnOrder::Balanced);
        assert_eq!((parent.time, candidate.time), (candidate.time, parent.time));
        assert_eq!(parent.time, Duration::from_micros(105));
        // A single pair is better than none.
        let [parent, candidate] = usual(&turns[..1], &first[..1], TurnOrder::Balanced);
        assert_eq!((parent.time, candidate.time), (begins.wall, follows.wall));
        let mut cost = BlockCost::with(ON_DEVICE);
        assert_eq!(cost.n_batches(), 2);
        cost.add(Duration::from_secs(1), Duration::from_millis(20), 2);
        assert_eq!(cost.n_batches(), ON_DEVICE.batches_max);
    }

    #[test]
    fn the_middle_is_found_for_each_clock_and_does_not_favor_an_arm() {
        let turns = [
            [turn(100, 90), turn(300, 80)],
            [turn(200, 100), turn(200, 95)],
            [turn(900, 110), turn(450, 111)],
        ];
        let clocked = |time, cpu| ClockTimes {
            time: Duration::from_micros(time),
            cpu: Duration::from_micros(cpu),
        };
        assert_eq!(tossed(&turns), [clocked(200, 100), clocked(200, 95)]);
        let mirrored = turns.map(|[parent, candidate]| [candidate, parent]);
        assert_eq!(tossed(&mirrored), [clocked(200, 95), clocked(200, 100)]);
    }
}
