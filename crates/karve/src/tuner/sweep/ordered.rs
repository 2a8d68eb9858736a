//! A sweep on several machines: the same settings are tried in the same order, whichever machine
//! is faster, and one that is lost costs only the setting that it was trying.
//!
//! Every try has a number. A try is asked for when the results of all but the last few tries before
//! it are known, and the search has been told exactly those, in the order of their numbers. Another
//! reading of a setting is left to the machine that built it, if that is still there.

use super::{FinishedTrial, ReadingPass, SettingTrier, SweepEnd, SweepState, SweepStep};
use crate::tuner::at_once;
use karve_numerics::grid::GridPoint;
use karve_os::error::Result;
use karve_os::process::StopFlag;
use karve_os::sync::locked;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

/// Tries that may be open for each machine: one that it works on, and one so that a fast machine
/// need not wait for a slow one.
const OPEN_TRIES: usize = 2;
/// How often an idle machine checks for new work.
const IDLE: Duration = Duration::from_millis(5);

/// A try with its number.
type NumberedTry = (usize, GridPoint, ReadingPass);

/// The tries in the order in which they were asked for.
#[derive(Default)]
struct TryOrder {
    asked: usize,
    merged: usize,
    finished: BTreeMap<usize, (GridPoint, ReadingPass, FinishedTrial)>,
    /// Tries of machines that were lost.
    orphans: VecDeque<NumberedTry>,
    /// The machine that built a setting.
    builders: BTreeMap<GridPoint, usize>,
    /// Tries that wait for the machine that built their setting.
    reserved: VecDeque<(usize, NumberedTry)>,
}

impl TryOrder {
    /// Gives a new try to this machine, or keeps it for the one that built its setting.
    fn assign(&mut self, number: usize, (point, turn): (GridPoint, ReadingPass)) -> OrderedStep {
        let numbered = (self.asked, point, turn);
        self.asked += 1;
        let builder = *self.builders.entry(point).or_insert(number);
        if builder != number {
            self.reserved.push_back((builder, numbered));
            return OrderedStep::Wait;
        }
        OrderedStep::Try(numbered)
    }

    /// A try that this machine must do before new ones.
    fn waiting_for(&mut self, number: usize) -> Option<NumberedTry> {
        let orphan = self.orphans.pop_front();
        if let Some((_, point, _)) = orphan {
            self.builders.insert(point, number);
            return orphan;
        }
        let at = self.reserved.iter().position(|(builder, _)| *builder == number)?;
        self.reserved.remove(at).map(|(_, numbered)| numbered)
    }

    /// A machine does no more tries; what waits for it may be done by any other.
    fn leave(&mut self, number: usize) {
        self.builders.retain(|_, builder| *builder != number);
        let (its, others) = self.reserved.drain(..).partition(|(builder, _)| *builder == number);
        self.reserved = others;
        let its: VecDeque<(usize, NumberedTry)> = its;
        self.orphans.extend(its.into_iter().map(|(_, numbered)| numbered));
    }
}

/// What a machine does next.
#[derive(Debug, PartialEq, Eq)]
enum OrderedStep {
    Try(NumberedTry),
    Wait,
    End(SweepEnd),
}

/// Runs a sweep on all machines.
pub(super) fn run(
    shared: &SweepState<'_>,
    workers: &mut [&mut dyn SettingTrier],
) -> Vec<Result<SweepEnd>> {
    let window = workers.len() * OPEN_TRIES;
    let order = Mutex::new(TryOrder::default());
    let over = StopFlag::new();
    let mut ended = at_once(workers, &|number, worker| {
        let ready = worker.get_ready(&over);
        let end = match ready {
            Ok(()) => {
                let end = work(shared, &order, window, number, &mut **worker);
                locked(&order).leave(number);
                end
            }
            Err(_) if shared.rule.stop.at_once() => Ok(SweepEnd::Stopped),
            Err(error) => Err(error),
        };
        if end.is_ok() {
            // Nobody needs to get ready any more.
            over.request();
            over.request();
        }
        end
    });
    if ended.iter().any(Result::is_ok) {
        // One that was lost has had its work done by the others.
        ended.retain(Result::is_ok);
    }
    ended
}

fn work(
    shared: &SweepState<'_>,
    order: &Mutex<TryOrder>,
    window: usize,
    number: usize,
    worker: &mut dyn SettingTrier,
) -> Result<SweepEnd> {
    loop {
        let next = next(shared, &mut locked(order), window, number)?;
        let (at, point, turn) = match next {
            OrderedStep::End(end) => return Ok(end),
            OrderedStep::Wait => {
                thread::sleep(IDLE);
                continue;
            }
            OrderedStep::Try(numbered) => numbered,
        };
        let tried = shared.try_one(point, turn, worker);
        let waited = worker.waited();
        if shared.rule.stop.at_once() {
            return Ok(SweepEnd::Stopped);
        }
        let mut order = locked(order);
        match tried {
            Ok(mut done) => {
                // So that all lines add up to the elapsed time.
                done.spent = done.spent.saturating_sub(waited) / shared.workers;
                order.finished.insert(at, (point, turn, done));
            }
            Err(error) => {
                order.orphans.push_back((at, point, turn));
                return Err(error);
            }
        }
    }
}

fn next(
    shared: &SweepState<'_>,
    order: &mut TryOrder,
    window: usize,
    number: usize,
) -> Result<OrderedStep> {
    if let Some(numbered) = order.waiting_for(number) {
        return Ok(OrderedStep::Try(numbered));
    }
    // Exactly the tries before the window are merged.
    while order.merged + window <= order.asked {
        if !merge_next(shared, order)? {
            return Ok(OrderedStep::Wait);
        }
    }
    let step = shared.sweep().next(&shared.rule, shared.started, number);
    match step {
        SweepStep::Try(point, turn) => {
            // Who reads it again is decided here.
            shared.sweep().built_by.clear();
            Ok(order.assign(number, (point, turn)))
        }
        SweepStep::End(SweepEnd::Stopped) => Ok(OrderedStep::End(SweepEnd::Stopped)),
        // Results that are still out may change what is next.
        SweepStep::Wait | SweepStep::End(SweepEnd::Done) if order.merged < order.asked => {
            merge_next(shared, order)?;
            Ok(OrderedStep::Wait)
        }
        SweepStep::Wait => Ok(OrderedStep::Wait),
        SweepStep::End(end) => Ok(OrderedStep::End(end)),
    }
}

/// Tells the search the next result, if it is there.
fn merge_next(shared: &SweepState<'_>, order: &mut TryOrder) -> Result<bool> {
    let Some((point, turn, done)) = order.finished.remove(&order.merged) else {
        return Ok(false);
    };
    order.merged += 1;
    let mut sweep = shared.sweep();
    sweep.at_work.remove(&point);
    let mut watch = locked(&shared.watch);
    sweep.record_artifacts(point, done.artifacts.as_ref());
    sweep.takes((point, turn), &done, &shared.rule, &mut **watch)?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: ReadingPass = ReadingPass::First;
    const AGAIN: ReadingPass = ReadingPass::Again;

    #[test]
    fn another_reading_is_left_to_the_machine_that_built_the_setting() {
        let (mut order, point) = (TryOrder::default(), GridPoint(7));
        assert_eq!(order.assign(0, (point, FIRST)), OrderedStep::Try((0, point, FIRST)));
        assert_eq!(order.assign(1, (point, AGAIN)), OrderedStep::Wait);
        assert_eq!(order.waiting_for(1), None);
        assert_eq!(order.waiting_for(0), Some((1, point, AGAIN)));
        assert_eq!(order.waiting_for(0), None);
        assert_eq!(order.assign(0, (point, AGAIN)), OrderedStep::Try((2, point, AGAIN)));
    }

    #[test]
    fn what_waits_for_a_machine_that_left_is_done_by_another() {
        let (mut order, point) = (TryOrder::default(), GridPoint(7));
        order.assign(0, (point, FIRST));
        assert_eq!(order.assign(1, (point, AGAIN)), OrderedStep::Wait);
        order.leave(0);
        assert_eq!(order.waiting_for(2), Some((1, point, AGAIN)));
        // The machine that took it over has built the setting now.
        assert_eq!(order.assign(1, (point, AGAIN)), OrderedStep::Wait);
        assert_eq!(order.waiting_for(2), Some((2, point, AGAIN)));
    }
}
