//! Work on many calls at once, by several threads.

use std::thread;

/// Applies a function to every item, with at most this many threads.
pub(super) fn over<T: Send>(hands: usize, items: Vec<T>, work: impl Fn(T) + Sync) {
    let share = items.len().div_ceil(hands.max(1));
    if share == items.len() {
        return items.into_iter().for_each(work);
    }
    let work = &work;
    let mut items = items.into_iter();
    thread::scope(|scope| {
        loop {
            let some: Vec<T> = items.by_ref().take(share).collect();
            if some.is_empty() {
                break;
            }
            scope.spawn(move || some.into_iter().for_each(work));
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_is_worked_on_once_however_many_hands_there_are() {
        for hands in [0, 1, 2, 3, 16] {
            for n in [0, 1, 5, 16, 40] {
                let mut seen = vec![0; n];
                over(hands, seen.iter_mut().collect(), |at| *at += 1);
                assert!(seen.iter().all(|times| *times == 1), "{hands} {n}");
            }
        }
    }
}
