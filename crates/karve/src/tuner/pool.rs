//! Pieces of work that several machines share: a machine that is lost gives its piece to another,
//! and the results come in the order of the pieces, whichever machine is faster.

use super::at_once;
use karve_os::error::{CommandError, ErrorKind, Result};
use karve_os::process::StopFlag;
use karve_os::sync::locked;
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// How often an idle machine checks whether another one was lost.
const IDLE: Duration = Duration::from_millis(5);

/// What the machines have left and have done.
struct PoolState<R> {
    open: VecDeque<usize>,
    done: Vec<Option<R>>,
}

/// What a machine does with the pieces.
pub(crate) struct PoolWork<'a, M, T, R> {
    /// What the user asked for with Ctrl-C.
    pub(crate) stop: &'a StopFlag,
    /// Waits for the machine, until the flag says that nothing is left to do.
    pub(crate) ready: &'a (dyn Fn(&mut M, &StopFlag) -> Result<()> + Sync),
    /// Does a piece.
    pub(crate) piece: &'a (dyn Fn(&mut M, &T) -> Result<R> + Sync),
}

/// Does each piece once.
pub(crate) fn share<M: Send, T: Sync, R: Send>(
    machines: &mut [M],
    pieces: &[T],
    work: &PoolWork<'_, M, T, R>,
) -> Result<Vec<R>> {
    let state = PoolState {
        open: (0..pieces.len()).collect(),
        done: pieces.iter().map(|_| None).collect(),
    };
    let (state, over) = (Mutex::new(state), StopFlag::new());
    let ended = at_once(machines, &|_, machine| {
        let ended =
            (work.ready)(machine, &over).and_then(|()| do_pieces(machine, pieces, work, &state));
        if ended.is_ok() || work.stop.at_once() {
            // Nobody needs to get ready any more.
            over.request();
            over.request();
        }
        ended
    });
    let state = state.into_inner().unwrap_or_else(PoisonError::into_inner);
    let done: Option<Vec<R>> = state.done.into_iter().collect();
    match (done, ended.into_iter().find_map(Result::err)) {
        (Some(done), _) => Ok(done),
        (None, Some(error)) => Err(error),
        (None, None) => Err(CommandError::new(ErrorKind::Bug, "a piece of work was forgotten")),
    }
}

/// Does pieces until there are no more; one that fails is left to another machine.
fn do_pieces<M, T, R>(
    machine: &mut M,
    pieces: &[T],
    work: &PoolWork<'_, M, T, R>,
    state: &Mutex<PoolState<R>>,
) -> Result<()> {
    while let Some(at) = next(state) {
        match (work.piece)(machine, &pieces[at]) {
            Ok(result) => locked(state).done[at] = Some(result),
            Err(error) => {
                locked(state).open.push_front(at);
                return Err(error);
            }
        }
    }
    Ok(())
}

/// The next piece; none when all are done. Waits while others work: one may be lost.
fn next<R>(state: &Mutex<PoolState<R>>) -> Option<usize> {
    loop {
        let mut state = locked(state);
        if let Some(at) = state.open.pop_front() {
            return Some(at);
        }
        if state.done.iter().all(Option::is_some) {
            return None;
        }
        drop(state);
        thread::sleep(IDLE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    fn lost() -> CommandError {
        CommandError::environment("lost")
    }

    #[test]
    fn results_come_in_order_and_a_lost_machine_costs_only_its_own_work() {
        // The first machine is lost in its first piece, and only once the other has done one.
        let (done, wait) = mpsc::channel();
        let (done, wait) = (Mutex::new(done), Mutex::new(wait));
        let work = PoolWork {
            stop: &StopFlag::new(),
            ready: &|_: &mut usize, _| Ok(()),
            piece: &|machine: &mut usize, piece: &u32| match *machine {
                0 => {
                    wait.lock().unwrap().recv().unwrap();
                    Err(lost())
                }
                _ => {
                    let _ = done.lock().unwrap().send(());
                    Ok(piece * 10)
                }
            },
        };
        let all = share(&mut [0, 1], &[1, 2, 3, 4], &work).unwrap();
        assert_eq!(all, [10, 20, 30, 40]);
    }

    #[test]
    fn nobody_waits_for_a_machine_that_is_not_ready() {
        let work = PoolWork {
            stop: &StopFlag::new(),
            ready: &|machine: &mut usize, over: &StopFlag| {
                while *machine == 1 && !over.at_once() {
                    thread::yield_now();
                }
                if *machine == 1 { Err(lost()) } else { Ok(()) }
            },
            piece: &|_: &mut usize, piece: &u32| Ok(*piece),
        };
        assert_eq!(share(&mut [0, 1], &[7, 8], &work).unwrap(), [7, 8]);
    }

    #[test]
    fn a_user_who_stops_waits_for_no_machine() {
        let stop = StopFlag::new();
        let work = PoolWork {
            stop: &stop,
            ready: &|machine: &mut usize, over: &StopFlag| {
                while *machine == 1 && !over.at_once() {
                    thread::yield_now();
                }
                Ok(())
            },
            piece: &|_: &mut usize, _: &u32| {
                stop.request();
                stop.request();
                Err::<u32, _>(lost())
            },
        };
        assert_eq!(share(&mut [0, 1], &[1], &work).unwrap_err().message, "lost");
    }

    #[test]
    fn if_all_machines_are_lost_the_reason_is_given() {
        let work = PoolWork {
            stop: &StopFlag::new(),
            ready: &|_: &mut usize, _| Ok(()),
            piece: &|_: &mut usize, _: &u32| Err::<u32, _>(lost()),
        };
        assert_eq!(share(&mut [0, 1], &[1, 2, 3], &work).unwrap_err().message, "lost");
        let nothing: Vec<u32> = share(&mut [0, 1], &[], &work).unwrap();
        assert!(nothing.is_empty());
    }
}
