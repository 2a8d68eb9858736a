//! What the clocks of both arms showed, turn by turn, and whether the candidate's are consistent.
//!
//! A check of clocks must not mistake a busy host, nor a kernel that is fifty times faster, for a
//! cheat. On a busy host most turns may be delayed on one side, so the candidate's best turn
//! counts: even that must exceed the incumbent's usual one, and by a good part of the incumbent's
//! turn, since the cost of handing over a batch does not depend on the kernel. Little is lost by
//! that. What a worker reports about its time is not trusted anyway, and work before the request
//! is added to the time, and so is CPU time that no allowed thread can have used until the reply,
//! which is also checked over all turns together. For work moved outside the timed part, see
//! [`BatchOverhead`].

use super::batch_timing::BatchTiming;
use karve_core::measurement::Gate;
use karve_numerics::stats::{self, SignEvidence};
use std::collections::VecDeque;
use std::time::Duration;

/// How many readings a check needs: this many turns are hardly ever all delayed.
const READINGS_MIN: usize = 20;

/// How much more than the incumbent a candidate may show, as a share of the incumbent's turn;
/// and how much its CPU time may exceed what its threads can use.
const SHARE_MAX: f64 = 0.25;

/// The share of a turn, and of what it saves in a turn, that a candidate may take longer than the
/// incumbent around its batch.
const AROUND_SHARE_MAX: f64 = 0.1;
const AROUND_SAVED_MAX: f64 = 0.5;

/// Evidence that it takes longer.
const AROUND_EVIDENCE: f64 = 20.0;

/// How much even its shortest reading may exceed the incumbent's usual one, as a share of that.
const AROUND_LEAST_MAX: f64 = 0.1;

/// Turns whose gaps are remembered.
const GAPS_MAX: usize = 200;

/// Standard errors by which the means of both gaps may differ, and seconds: requests and replies of
/// two processes are never equally fast, and a turn with a warm cache takes a fraction of a
/// millisecond.
const GAP_ERRORS: f64 = 2.0;
const GAP_JITTER: f64 = 10e-6;

/// How much longer than the work on a device karve's clock shows: requests, launches, replies.
///
/// The device's clock is precise, but read by the candidate's process. karve's clock is trusted,
/// but includes what a process does around its work. So a turn takes as long as on the device, and
/// a candidate is charged for what karve's clock shows on average beyond the incumbent's gap.
#[derive(Clone, Debug, Default)]
pub(super) struct DeviceGap {
    /// Of the last turns of each arm, in seconds.
    gaps: [VecDeque<f64>; 2],
    /// How long work of these turns still ran after the reply, in seconds.
    left: [VecDeque<f64>; 2],
    /// How long the incumbent's turns took around their batches.
    around: VecDeque<Duration>,
}

impl DeviceGap {
    /// Adds a turn of each arm.
    pub(super) fn add(&mut self, turns: &[BatchTiming; 2]) {
        if self.around.len() >= GAPS_MAX {
            self.around.pop_front();
        }
        self.around.push_back(turns[0].around());
        for (arm, turn) in turns.iter().enumerate() {
            let gap = turn.wall.saturating_sub(device_time(turn) + turn.cover);
            for (times, time) in [(&mut self.gaps, gap), (&mut self.left, turn.left)] {
                if times[arm].len() >= GAPS_MAX {
                    times[arm].pop_front();
                }
                times[arm].push_back(time.as_secs_f64());
            }
        }
    }

    /// How long the incumbent's last turns took around their batches.
    pub(super) fn around(&self) -> Vec<Duration> {
        self.around.iter().copied().collect()
    }

    /// How long the work of a turn of each arm took.
    pub(super) fn times_of(&self, turns: &[BatchTiming; 2]) -> [Duration; 2] {
        let [parent, candidate] = turns;
        [device_time(parent), device_time(candidate) + self.charge()]
    }

    /// What a candidate is charged for: its gap beyond the incumbent's, and what it left running.
    fn charge(&self) -> Duration {
        let gap = (excess(&self.gaps) - GAP_JITTER).max(0.0);
        Duration::from_secs_f64(gap + excess(&self.left))
    }
}

/// By how much times of the candidate are larger on average, beyond what chance explains. That is
/// taken from the incumbent: a candidate could make its own times vary.
fn excess(times: &[VecDeque<f64>; 2]) -> f64 {
    let n = times[0].len() as f64;
    let [parent, candidate] = times.each_ref().map(|own| own.iter().sum::<f64>() / n.max(1.0));
    let squares = times[0].iter().map(|time| (time - parent).powi(2)).sum::<f64>();
    let chance = GAP_ERRORS * (2.0 * squares / (n * (n - 1.0)).max(1.0)).sqrt();
    (candidate - parent - chance).max(0.0)
}

fn device_time(turn: &BatchTiming) -> Duration {
    Duration::from_nanos(turn.worker_timing.device_ns).min(turn.wall)
}

/// What the clocks of one arm showed.
#[derive(Clone, Debug, Default)]
pub(super) struct ArmClocks {
    /// The time of a turn, in seconds.
    time: Vec<f64>,
    /// How much less the worker's own clock shows than karve's, in seconds.
    gap: Vec<f64>,
    /// CPU time before the request, in seconds.
    woken: Vec<f64>,
    /// CPU time of all turns, and their time until the reply, in seconds.
    cpu_total: f64,
    until_reply: f64,
    /// The time on the device over karve's.
    device: Vec<f64>,
}

impl ArmClocks {
    /// Adds a turn.
    pub(super) fn add(&mut self, turn: &BatchTiming) {
        let time = turn.time().as_secs_f64();
        self.time.push(time);
        self.gap.push(turn.wall.as_secs_f64() - turn.worker_timing.wall_ns as f64 * 1e-9);
        self.woken.push(turn.woken.as_secs_f64());
        self.cpu_total += turn.cpu.as_secs_f64();
        self.until_reply += (turn.wall + turn.woken).as_secs_f64();
        self.device
            .push(turn.worker_timing.device_ns as f64 * 1e-9 / turn.wall.as_secs_f64().max(1e-9));
    }

    /// Whether these clocks of a candidate with this many threads are consistent, compared with
    /// the incumbent's.
    pub(super) fn check(&self, parent: &Self, threads: u32) -> Result<(), Gate> {
        let dishonest = |why: String| Err(Gate::Dishonest { why });
        if self.time.len() < READINGS_MIN || parent.time.len() < READINGS_MIN {
            return Ok(());
        }
        let turn = stats::median(&parent.time).unwrap_or_default();
        let beyond = |own: &[f64], usual: &[f64]| {
            least(own) > stats::median(usual).unwrap_or_default() + SHARE_MAX * turn
        };
        let negative = |of: &[f64]| of.iter().map(|gap| -gap).collect::<Vec<f64>>();
        let ahead = beyond(&negative(&self.gap), &negative(&parent.gap));
        if beyond(&self.gap, &parent.gap) || ahead {
            return dishonest(
                "the clock of its own process does not agree with karve's clock".into(),
            );
        }
        if beyond(&self.woken, &parent.woken) {
            return dishonest("it works before the request, outside the timed part".into());
        }
        if calm(&self.device) > 1.0 + SHARE_MAX {
            return dishonest("the clock of the device does not agree with karve's clock".into());
        }
        // All turns together: one honest turn in eight must not outweigh the others.
        if self.cpu_total > (f64::from(threads.max(1)) + SHARE_MAX) * self.until_reply {
            let may = threads_in_words(threads);
            return dishonest(format!(
                "it uses more CPU time than {may} can: work continues in other threads"
            ));
        }
        Ok(())
    }
}

/// How long both arms take around their batches, outside the timed part: to prepare, and to return
/// outputs. An honest candidate takes as long as the incumbent, because these are the same bytes.
/// Processes differ, so each pair of them is one piece of evidence; only an excess beyond any
/// difference between processes is detected immediately.
#[derive(Clone, Debug, Default)]
pub(super) struct BatchOverhead {
    /// Readings of the live processes, case by case.
    now: Vec<OverheadTimes>,
    before: SignEvidence,
    after: SignEvidence,
}

/// Seconds of the turns of both arms on one case: before and after their batches, and in them.
#[derive(Clone, Debug, Default)]
struct OverheadTimes {
    before: [Vec<f64>; 2],
    after: [Vec<f64>; 2],
    time: [Vec<f64>; 2],
}

/// Where work was hidden.
const EARLY: &str = "it works before the request: preparing takes too long";
const LATE: &str = "it defers its work: its outputs arrive too late";

impl BatchOverhead {
    /// Adds the turns of both arms on one of the cases.
    pub(super) fn add(&mut self, case: usize, cases: usize, turns: &[[BatchTiming; 2]]) {
        self.now.resize_with(cases, OverheadTimes::default);
        let Some(sides) = self.now.get_mut(case) else {
            return;
        };
        for (arm, turn) in turns.iter().flat_map(|both| both.iter().enumerate()) {
            sides.before[arm].push(turn.before.as_secs_f64());
            sides.after[arm].push(turn.after.as_secs_f64());
            sides.time[arm].push(turn.time().as_secs_f64());
        }
    }

    /// Whether even the shortest reading of the candidate is too long.
    pub(super) fn check(&self) -> Result<(), Gate> {
        let beyond = |sides: &OverheadTimes, [parent, candidate]: &[Vec<f64>; 2]| {
            let usual = usual(parent);
            let may = sides.may(SHARE_MAX).max(AROUND_LEAST_MAX * usual);
            candidate.len() >= READINGS_MIN && least(candidate) > usual + may
        };
        if self.now.iter().any(|sides| beyond(sides, &sides.before)) {
            return hides(EARLY);
        }
        match self.now.iter().any(|sides| beyond(sides, &sides.after)) {
            true => hides(LATE),
            false => Ok(()),
        }
    }

    /// Records the readings of the processes as evidence, before they are replaced.
    pub(super) fn end_processes(&mut self) -> Result<(), Gate> {
        let now = std::mem::take(&mut self.now);
        let all = |of: fn(&OverheadTimes) -> f64| now.iter().map(of).sum::<f64>();
        let may = all(|sides| sides.may(AROUND_SHARE_MAX));
        self.before.see(all(|sides| longer(&sides.before)) > may);
        self.after.see(all(|sides| longer(&sides.after)) > may);
        if self.before.reached(AROUND_EVIDENCE) {
            return hides(EARLY);
        }
        match self.after.reached(AROUND_EVIDENCE) {
            true => hides(LATE),
            false => Ok(()),
        }
    }
}

impl OverheadTimes {
    /// How much longer a candidate may take: a share of the incumbent's turn, or of its gain.
    fn may(&self, share: f64) -> f64 {
        let saved = -longer(&self.time);
        (share * usual(&self.time[0])).max(AROUND_SAVED_MAX * saved)
    }
}

fn hides(why: &str) -> Result<(), Gate> {
    Err(Gate::Dishonest { why: why.into() })
}

/// How much longer the candidate usually takes.
fn longer([parent, candidate]: &[Vec<f64>; 2]) -> f64 {
    usual(candidate) - usual(parent)
}

fn usual(readings: &[f64]) -> f64 {
    stats::median(readings).unwrap_or_default()
}

/// The lower quartile of some readings: a busy host makes single ones longer.
fn calm(readings: &[f64]) -> f64 {
    stats::quantile(readings, 0.25).unwrap_or_default()
}

fn least(of: &[f64]) -> f64 {
    of.iter().copied().fold(f64::INFINITY, f64::min)
}

/// The number of threads, in words.
pub(super) fn threads_in_words(threads: u32) -> String {
    match threads {
        0 | 1 => "one thread".into(),
        n => format!("{n} threads"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runner::protocol::WorkerTiming;

    /// Some turns: their times by karve's clock and by their own, while waking, and in total, in
    /// microseconds; a delay of the host is added to all but every tenth.
    fn clocks(times: [u64; 4], delay: u64) -> ArmClocks {
        let mut clocks = ArmClocks::default();
        for turn in 0..READINGS_MIN {
            clocks.add(&turn_of(times, if turn % 10 == 3 { 0 } else { delay }));
        }
        clocks
    }

    fn turn_of([wall, reported, woken, cpu]: [u64; 4], delay: u64) -> BatchTiming {
        BatchTiming {
            wall: Duration::from_micros(wall + delay),
            woken: Duration::from_micros(woken),
            cpu: Duration::from_micros(cpu),
            late: Duration::ZERO,
            worker_timing: WorkerTiming {
                wall_ns: reported * 1_000,
                launch_ns: 0,
                flags: 0,
                device_ns: 0,
            },
            before: Duration::ZERO,
            after: Duration::ZERO,
            cover: Duration::ZERO,
            left: Duration::ZERO,
        }
    }

    fn usual() -> ArmClocks {
        clocks([5_050, 5_000, 20, 5_030], 0)
    }

    #[track_caller]
    fn check(candidate: &ArmClocks, threads: u32, want: Option<&str>) {
        let found = candidate.check(&usual(), threads);
        match (found, want) {
            (Ok(()), None) => {}
            (Err(Gate::Dishonest { why }), Some(part)) => assert!(why.contains(part), "{why}"),
            (found, want) => panic!("{found:?} instead of {want:?}"),
        }
    }

    #[test]
    fn honest_turns_pass_however_fast_the_kernel_or_busy_the_host() {
        check(&usual(), 1, None);
        check(&clocks([150, 100, 20, 130], 0), 1, None);
        check(&clocks([60, 10, 25, 60], 0), 1, None);
        check(&clocks([5_050, 5_000, 20, 5_030], 30_000), 1, None);
        check(&clocks([2_600, 2_500, 60, 5_200], 0), 2, None);
    }

    #[test]
    fn a_clock_that_runs_slow_fast_or_not_at_all_is_noticed() {
        let clock = Some("own process");
        check(&clocks([5_050, 50, 20, 5_030], 0), 1, clock);
        check(&clocks([5_050, 0, 20, 5_030], 0), 1, clock);
        check(&clocks([5_050, 9_000, 20, 5_030], 0), 1, clock);
    }

    #[test]
    fn work_before_the_question_is_noticed() {
        check(&clocks([60, 10, 6_000, 6_030], 0), 1, Some("before the request"));
    }

    #[test]
    fn work_in_more_threads_than_allowed_is_noticed() {
        check(&clocks([2_550, 2_500, 20, 5_100], 0), 1, Some("other threads"));
        check(&clocks([2_550, 2_500, 20, 7_600], 0), 2, Some("other threads"));
    }

    #[test]
    fn one_honest_turn_in_eight_does_not_hide_the_others() {
        let mut mixed = clocks([2_550, 2_500, 20, 5_100], 0);
        for _ in 0..READINGS_MIN.div_ceil(8) {
            mixed.add(&turn_of([5_050, 5_000, 20, 5_030], 0));
        }
        check(&mixed, 1, Some("other threads"));
    }

    #[test]
    fn a_turn_takes_at_least_as_long_as_its_cpu_time() {
        let time = |[wall, cpu]: [u64; 2], threads: u32| {
            let mut turn = turn_of([wall, wall, 20, cpu], 0);
            turn.charge_late(threads);
            turn.time().as_micros()
        };
        assert_eq!(time([5_000, 5_010], 1), 5_020);
        // A second thread was in a system call that went on for 4 ms after the reply.
        assert_eq!(time([1_000, 5_000], 1), 5_000);
        assert_eq!(time([1_000, 5_000], 2), 2_500);
        assert_eq!(time([30_000, 5_000], 1), 30_020);
    }

    /// Processes: the candidate's takes this long to prepare, in its batch, and to return its
    /// outputs, in microseconds, compared with 1,000, 200 and 1,000; every second pair takes 300
    /// more to return them. A process lives for this many turns.
    fn around(candidate: [u64; 3], processes: u64, turns: u32) -> Result<(), Gate> {
        let turn = |[before, wall, after]: [u64; 3], late: u64| BatchTiming {
            wall: Duration::from_micros(wall),
            woken: Duration::ZERO,
            cpu: Duration::from_micros(wall),
            late: Duration::ZERO,
            worker_timing: WorkerTiming { wall_ns: 0, launch_ns: 0, flags: 0, device_ns: 0 },
            before: Duration::from_micros(before),
            after: Duration::from_micros(after + late),
            cover: Duration::ZERO,
            left: Duration::ZERO,
        };
        let mut around = BatchOverhead::default();
        for process in 0..processes {
            let late = process % 2 * 300;
            let both = [turn([1_000, 200, 1_000], late), turn(candidate, late)];
            for _ in 0..turns {
                around.add(0, 1, &[both]);
                around.check()?;
            }
            around.end_processes()?;
        }
        Ok(())
    }

    #[track_caller]
    fn hidden(found: Result<(), Gate>, part: &str) {
        match found {
            Err(Gate::Dishonest { why }) => assert!(why.contains(part), "{why}"),
            found => panic!("{found:?}"),
        }
    }

    #[test]
    fn what_is_saved_in_a_batch_may_not_be_spent_around_it() {
        for honest in [[1_000, 200, 1_000], [1_015, 100, 900], [1_070, 50, 1_000]] {
            assert!(around(honest, 100, 3).is_ok(), "{honest:?}");
        }
        // One or two odd pairs of processes are not evidence.
        assert!(around([1_090, 100, 1_000], 2, 100).is_ok());
        hidden(around([1_100, 100, 1_000], 20, 3), "preparing");
        hidden(around([1_000, 100, 1_060], 20, 3), "too late");
        hidden(around([1_025, 180, 1_000], 20, 3), "preparing");
    }

    #[test]
    fn what_no_processes_differ_by_is_seen_at_once() {
        hidden(around([1_150, 50, 1_000], 1, 20), "preparing");
        hidden(around([1_000, 50, 1_150], 1, 20), "too late");
        assert!(around([1_150, 50, 1_000], 1, 19).is_ok());
    }

    /// A turn on a device, with what karve's clock and the device's show, in microseconds.
    fn on_device(wall: u64, device: u64) -> BatchTiming {
        BatchTiming {
            wall: Duration::from_micros(wall),
            woken: Duration::ZERO,
            cpu: Duration::ZERO,
            late: Duration::ZERO,
            worker_timing: WorkerTiming { device_ns: device * 1_000, ..WorkerTiming::default() },
            before: Duration::ZERO,
            after: Duration::ZERO,
            cover: Duration::ZERO,
            left: Duration::ZERO,
        }
    }

    #[test]
    fn work_that_an_event_does_not_wait_for_is_charged_however_the_cover_varies() {
        let mut gap = DeviceGap::default();
        let mut charged = Duration::ZERO;
        for at in 0..8 {
            // The first batches have no cover.
            let cover = Duration::from_micros([0, 0, 5_000, 4_000][at.min(3)]);
            let turns = [3_000, 100].map(|shown| {
                let turn = on_device(3_200, shown);
                BatchTiming { wall: turn.wall + cover, cover, ..turn }
            });
            gap.add(&turns);
            charged = gap.times_of(&turns)[1];
        }
        assert!((2_950..3_050).contains(&charged.as_micros()), "{charged:?}");
    }

    #[test]
    fn a_turn_takes_as_long_as_on_the_device_and_a_clock_that_shows_less_is_charged() {
        // Requests and replies take 100 to 300 us, and once in a while a millisecond.
        let more = |at: u64| 100 + at * 37 % 200 + if at % 20 == 7 { 1_000 } else { 0 };
        // What the candidate's clock shows of 5 ms, and how long that counts as taking.
        let counted = |shown: fn(u64) -> u64| {
            let mut gap = DeviceGap::default();
            let (mut parent, mut candidate) = (Duration::ZERO, Duration::ZERO);
            for at in 0..200 {
                let turns = [
                    on_device(5_000 + more(at), 5_000),
                    on_device(5_000 + more(at + 3), shown(at)),
                ];
                gap.add(&turns);
                let times = gap.times_of(&turns);
                (parent, candidate) = (parent + times[0], candidate + times[1]);
            }
            assert_eq!(parent.as_micros(), 200 * 5_000);
            candidate.as_micros() / 200
        };
        let honest = counted(|_| 5_000);
        assert!((5_000..5_010).contains(&honest), "{honest}");
        assert!(counted(|_| 9_000) > 5_100);
        // Always, or in some of the turns.
        for shown in [|_| 100, |at| if at % 5 == 0 { 100 } else { 5_000 }] {
            let counted = counted(shown);
            assert!((4_850..5_100).contains(&counted), "{counted}");
        }
    }
}
