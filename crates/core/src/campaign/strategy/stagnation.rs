//! Whether rounds have stagnated, and where to turn then.

use super::StagnationTrigger;
use crate::campaign::RoundSummary;
use crate::hypothesis::Direction;
use std::collections::BTreeSet;

/// A change below this, up or down, is a micro-adjustment.
const MICRO_RATIO: f64 = 1.02;
/// This many similar rounds make a trigger.
const ALIKE_ROUNDS: usize = 3;

/// The four signs of stagnation.
pub(super) fn triggers(rounds: &[RoundSummary], streak: u32) -> Vec<StagnationTrigger> {
    let mut triggers = Vec::new();
    if streak >= 2 {
        triggers.push(StagnationTrigger::DropsInARow { rounds: streak });
    }
    let in_vain = rounds.len().min(streak as usize);
    let last = &rounds[rounds.len() - in_vain..];
    if last.len() < ALIKE_ROUNDS {
        return triggers;
    }
    let last = &last[last.len() - ALIKE_ROUNDS..];
    let micro = |round: &RoundSummary| {
        round.ratio().is_some_and(|ratio| ratio.ln().abs() < MICRO_RATIO.ln())
    };
    if last.iter().all(micro) {
        triggers.push(StagnationTrigger::MicroAdjustments { rounds: ALIKE_ROUNDS as u32 });
    }
    let bottleneck = |round: &RoundSummary| {
        round.hypothesis.as_ref().map(|h| h.bottleneck.trim().to_lowercase())
    };
    let first = bottleneck(&last[0]).filter(|name| !name.is_empty());
    if let Some(name) = first
        && last.iter().all(|round| bottleneck(round).as_deref() == Some(&name))
    {
        triggers.push(StagnationTrigger::SameBottleneck { bottleneck: name });
    }
    if let Some(knob) = jittered(last) {
        triggers.push(StagnationTrigger::ParameterJitter { knob });
    }
    triggers
}

/// The only knob that differs between these rounds, if there is exactly one. A round that set no
/// knob changed none.
fn jittered(last: &[RoundSummary]) -> Option<String> {
    let config = |round: &'_ RoundSummary| Some(round.hypothesis.as_ref()?.config.clone());
    let configs: Option<Vec<_>> =
        last.iter().map(|round| config(round).filter(|config| !config.is_empty())).collect();
    let configs = configs?;
    let knobs: BTreeSet<&String> = configs.iter().flat_map(|config| config.keys()).collect();
    let mut differing = knobs.into_iter().filter(|knob| {
        let values: BTreeSet<_> = configs.iter().map(|config| config.get(*knob)).collect();
        values.len() > 1
    });
    match (differing.next(), differing.next()) {
        (Some(knob), None) => Some(knob.clone()),
        _ => None,
    }
}

/// The direction that the fewest rounds since the last keep have taken, except the last one.
pub(super) fn least_explored(rounds: &[RoundSummary]) -> Option<Direction> {
    let of = |round: &RoundSummary| round.hypothesis.as_ref().map(|h| h.direction);
    let last = rounds.last().and_then(of);
    let since: Vec<Direction> =
        rounds.iter().rev().take_while(|r| !r.verdict.keeps()).filter_map(of).collect();
    Direction::ALL
        .into_iter()
        .filter(|direction| Some(*direction) != last)
        .min_by_key(|direction| since.iter().filter(|d| *d == direction).count())
}
