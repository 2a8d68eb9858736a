//! What the clocks of both arms showed, turn by turn, and whether the candidate's fit together.
//!
//! A check of clocks must not mistake a busy host, nor a kernel that is fifty times faster, for a
//! cheat. On a busy host most turns may be delayed on one side, so the candidate's best turn
//! speaks for it: even that must lie beyond the incumbent's usual one, and by a good part of what
//! the incumbent's turn takes, since what a hand-over costs does not depend on the kernel. Little
//! is lost by that. What a worker says of its time is not believed anyway, and work before the
//! question is added to the time.

use super::arm::Turn;
use karve_core::measurement::Gate;
use karve_core::stats;

/// Readings that a check needs: so many turns are hardly ever all delayed.
const READINGS_MIN: usize = 20;

/// By how much more than the incumbent a candidate may show, as a share of the incumbent's turn;
/// and by how much its CPU time may exceed what its threads can use.
const SHARE_MAX: f64 = 0.25;

/// The share of a turn that a candidate may take longer than the incumbent around its batch.
const AROUND_SHARE_MAX: f64 = 0.1;

/// The share by which what is around a batch differs between equal kernels at most.
const AROUND_NOISE: f64 = 0.05;

/// What the clocks of one arm showed.
#[derive(Clone, Debug, Default)]
pub(super) struct Clocks {
    /// What a turn took, in seconds.
    time: Vec<f64>,
    /// By how much the worker's own clock shows less than karve's, in seconds.
    gap: Vec<f64>,
    /// CPU time before the question, in seconds.
    woken: Vec<f64>,
    /// CPU time over the time of the turn.
    cpu: Vec<f64>,
    /// Seconds of getting ready before the batch.
    before: Vec<f64>,
    /// Seconds of bringing outputs after it.
    after: Vec<f64>,
    /// The time on the device over karve's.
    device: Vec<f64>,
}

impl Clocks {
    /// Takes in a turn.
    pub(super) fn add(&mut self, turn: &Turn) {
        let time = turn.time().as_secs_f64();
        self.time.push(time);
        self.gap
            .push(turn.wall.as_secs_f64() - turn.told.wall_ns as f64 * 1e-9);
        self.woken.push(turn.woken.as_secs_f64());
        self.cpu.push(turn.cpu.as_secs_f64() / time.max(1e-9));
        self.before.push(turn.before.as_secs_f64());
        self.after.push(turn.after.as_secs_f64());
        self.device
            .push(turn.told.device_ns as f64 * 1e-9 / turn.wall.as_secs_f64().max(1e-9));
    }

    /// Whether these clocks of a candidate with so many threads fit together, beside the
    /// incumbent's.
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
            return dishonest("it works before it is asked, when nobody takes the time".into());
        }
        if let Some(why) = self.hides_beside(parent) {
            return dishonest(why.into());
        }
        if least(&self.cpu) > f64::from(threads.max(1)) + SHARE_MAX {
            let may = threads_in_words(threads);
            return dishonest(format!(
                "it uses more CPU time than {may} may: work goes on in other threads"
            ));
        }
        Ok(())
    }

    /// Where a candidate hides work, if it does: an honest one takes as long as the incumbent to
    /// get ready and to give its outputs, for these are the same bytes.
    fn hides_beside(&self, parent: &Self) -> Option<&'static str> {
        let turn = calm(&parent.time);
        let longer = |own: &[f64], usual: &[f64]| {
            let usual = calm(usual);
            calm(own) - usual > (AROUND_SHARE_MAX * turn).max(AROUND_NOISE * usual)
        };
        if longer(&self.before, &parent.before) {
            return Some("it works before it is asked to: getting ready takes too long");
        }
        if longer(&self.after, &parent.after) {
            return Some("it puts its work off: its outputs come too late");
        }
        let beyond = calm(&self.device) > 1.0 + SHARE_MAX;
        beyond.then_some("the clock of the device does not agree with karve's clock")
    }
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
    use crate::ring::protocol::Told;
    use std::time::Duration;

    /// Some turns: what each took by karve's clock and by its own, while waking, and in all, in
    /// microseconds; a delay of the host is added to all but every tenth.
    fn clocks([wall, told, woken, cpu]: [u64; 4], delay: u64) -> Clocks {
        let mut clocks = Clocks::default();
        for turn in 0..READINGS_MIN {
            let late = if turn % 10 == 3 { 0 } else { delay };
            clocks.add(&Turn {
                wall: Duration::from_micros(wall + late),
                woken: Duration::from_micros(woken),
                cpu: Duration::from_micros(cpu),
                told: Told {
                    wall_ns: told * 1_000,
                    cpu_ns: 0,
                    flags: 0,
                    device_ns: 0,
                },
                before: Duration::ZERO,
                after: Duration::ZERO,
            });
        }
        clocks
    }

    fn usual() -> Clocks {
        clocks([5_050, 5_000, 20, 5_030], 0)
    }

    #[track_caller]
    fn check(candidate: &Clocks, threads: u32, want: Option<&str>) {
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
        check(
            &clocks([60, 10, 6_000, 6_030], 0),
            1,
            Some("before it is asked"),
        );
    }

    #[test]
    fn work_in_more_threads_than_allowed_is_noticed() {
        check(
            &clocks([2_550, 2_500, 20, 5_100], 0),
            1,
            Some("other threads"),
        );
        check(
            &clocks([2_550, 2_500, 20, 7_600], 0),
            2,
            Some("other threads"),
        );
    }
}
