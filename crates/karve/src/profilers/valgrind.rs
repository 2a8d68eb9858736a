//! Valgrind's cachegrind and callgrind: what each function cost, in simulated events.
//!
//! Both files say what all functions cost together. What was read must add up to that, so that a
//! line that is lost, doubled or misread is noticed.

pub(super) mod cachegrind;
pub(super) mod callgrind;

use super::gather::{Notes, Weighed, heaviest};
use super::number::whole;
use super::{Parsed, Unreadable};
use karve_core::profile::{KernelProfile, Source};
use std::collections::BTreeMap;

/// Events that a file may name.
const EVENTS_MAX: usize = 64;
/// Functions that a file may name.
const FUNCTIONS_MAX: usize = 500_000;

/// What a function cost itself, without those that it calls.
#[derive(Debug)]
struct Cost {
    /// The line that names it first.
    line: usize,
    /// One count for each event.
    counts: Vec<u64>,
}

/// What all functions cost.
#[derive(Debug, Default)]
struct Costs {
    events: Vec<String>,
    functions: BTreeMap<String, Cost>,
}

impl Costs {
    /// Reads the names of events.
    fn name_events(&mut self, names: &str, line: usize) -> Result<(), Unreadable> {
        let events: Vec<String> = names.split_whitespace().map(str::to_owned).collect();
        let mut sorted = events.clone();
        sorted.sort();
        sorted.dedup();
        let usable = !events.is_empty() && events.len() <= EVENTS_MAX;
        if !usable || sorted.len() != events.len() || !self.events.is_empty() {
            return Err(Unreadable::at(line, "the events are not named once each"));
        }
        self.events = events;
        Ok(())
    }

    /// Adds counts to a function; those that are not written are zero.
    fn add(&mut self, function: &str, counts: &[u64], line: usize) -> Result<(), Unreadable> {
        let n = self.events.len();
        if counts.len() > n {
            return Err(Unreadable::at(
                line,
                format!("there are more than {n} counts"),
            ));
        }
        if !self.functions.contains_key(function) {
            if self.functions.len() == FUNCTIONS_MAX {
                return Err(Unreadable::at(line, "there are too many functions"));
            }
            let counts = vec![0; n];
            self.functions
                .insert(function.to_owned(), Cost { line, counts });
        }
        let Some(cost) = self.functions.get_mut(function) else {
            return Ok(());
        };
        for (sum, count) in cost.counts.iter_mut().zip(counts) {
            let too_large = || Unreadable::at(line, "the counts are too large");
            *sum = sum.checked_add(*count).ok_or_else(too_large)?;
        }
        Ok(())
    }

    /// Whether all functions together cost what the file says.
    fn check(&self, totals: &[u64], line: usize) -> Result<(), Unreadable> {
        for (at, event) in self.events.iter().enumerate() {
            let parts = self.functions.values().map(|cost| cost.counts[at]);
            let sum = parts.fold(0_u64, u64::saturating_add);
            let total = totals.get(at).copied().unwrap_or(0);
            if sum != total {
                let reason = format!(
                    "the file says that {event} is {total} in all, but its lines add up to {sum}"
                );
                return Err(Unreadable::at(line, reason));
            }
        }
        Ok(())
    }

    /// The functions as kernels, those with most instructions first.
    fn parsed(self, tool: &str, mut notes: Notes) -> Result<Parsed, Unreadable> {
        let Some(ir) = self.events.iter().position(|event| event == "Ir") else {
            return Err(Unreadable::at(
                1,
                "the file does not count instructions (Ir)",
            ));
        };
        let all = self.functions.values().map(|cost| cost.counts[ir]);
        let all = all.fold(0, u64::saturating_add);
        let mut kernels = Vec::new();
        for (name, cost) in self.functions {
            let instructions = float(cost.counts[ir]);
            let mut profile = KernelProfile::named(&name);
            let said = |quote: &str| Source::at(tool, cost.line, quote);
            let quote = format!("Ir {}", cost.counts[ir]);
            profile.set("instructions", instructions, said(&quote));
            if all > 0 {
                let quote = format!("Ir {} of {all}", cost.counts[ir]);
                let share = 100.0 * instructions / float(all);
                profile.set("inst_share_pct", share, said(&quote));
            }
            for (counter, parts, wholes) in RATIOS {
                let found = (
                    sum(&self.events, &cost, parts),
                    sum(&self.events, &cost, wholes),
                );
                if let (Some(part), Some(whole @ 1..)) = found {
                    let (parts, wholes) = (parts.join(" + "), wholes.join(" + "));
                    let quote = format!("{parts} = {part}, {wholes} = {whole}");
                    profile.set(counter, 100.0 * float(part) / float(whole), said(&quote));
                }
            }
            kernels.push(Weighed {
                name,
                weight: instructions,
                profile,
            });
        }
        notes.add("the events are simulated; functions of one name are taken together");
        Ok(Parsed {
            kernels: heaviest(kernels, &mut notes),
            timeline: None,
            notes: notes.finish(),
        })
    }
}

/// Counters that are some events in percent of others.
const RATIOS: &[(&str, &[&str], &[&str])] = &[
    ("l1_miss_pct", &["D1mr"], &["Dr"]),
    ("llc_miss_pct", &["DLmr", "DLmw"], &["D1mr", "D1mw"]),
    ("branch_miss_pct", &["Bcm", "Bim"], &["Bc", "Bi"]),
];

/// The sum of some events of a function, if all are counted.
fn sum(events: &[String], cost: &Cost, names: &[&str]) -> Option<u64> {
    let mut counts = names.iter().map(|name| {
        let at = events.iter().position(|event| event == name)?;
        cost.counts.get(at).copied()
    });
    counts.try_fold(0_u64, |sum, count| sum.checked_add(count?))
}

/// Counts that stand on a line.
fn counts<'a>(words: impl Iterator<Item = &'a str>, line: usize) -> Result<Vec<u64>, Unreadable> {
    let wrong = |word: &str| Unreadable::at(line, format!("{word:?} is no count"));
    words
        .take(EVENTS_MAX + 1)
        .map(|word| whole(word).ok_or_else(|| wrong(word)))
        .collect()
}

#[allow(
    clippy::cast_precision_loss,
    reason = "a share of a count needs no more digits"
)]
fn float(n: u64) -> f64 {
    n as f64
}
