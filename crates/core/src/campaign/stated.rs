//! What the end of a log states about its duels, compared with what their blocks show: whoever
//! changes a reading afterwards, and not all that follows from it, is noticed.

use super::out_of_order::{EventResult, not_due};
use super::{BaselineDuel, Campaign, CampaignPhase, Event, Step, StopReason};
use crate::comparison::{CaseComparison, Comparison, Estimate};
use crate::score::figure;
use serde::{Deserialize, Serialize};

/// What the duels of a campaign showed, as its last event states it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StatedFigures {
    /// What the final duel showed.
    pub headline: Option<Estimate>,
    /// What every duel with a baseline showed, in order.
    pub baselines: Vec<StatedBaseline>,
}

/// What a duel with a named baseline showed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StatedBaseline {
    /// The name of the baseline.
    pub name: String,
    /// Rounds that were settled before.
    pub after: u32,
    /// Our speedup over it; none if it was not correct.
    pub speedup: Option<Estimate>,
    /// Its reading and ours: geometric means over the visible cases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub values: Option<[f64; 2]>,
}

/// A figure that the log states, and that its blocks do not show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misstatement {
    /// Which duel.
    pub duel: String,
    /// What the log states.
    pub stated: String,
    /// What the blocks show.
    pub shown: String,
}

/// How the ends of a log agree with its blocks.
#[derive(Clone, Debug, Default)]
pub(super) struct EndCheck {
    misstated: Vec<Misstatement>,
    unstated: Vec<String>,
}

impl StatedFigures {
    /// The event that ends a campaign and states them.
    pub fn finished(&self, reason: &StopReason) -> Event {
        Event::Finished {
            reason: reason.clone(),
            headline: self.headline,
            baselines: self.baselines.clone(),
        }
    }
}

impl StatedBaseline {
    fn describe(&self) -> String {
        let speedup = self.speedup.map(|speedup| speedup.describe());
        let speedup = speedup.unwrap_or_else(|| "not correct".to_owned());
        match self.values {
            Some([its, ours]) => format!("{speedup}, {} and {}", figure(its), figure(ours)),
            None => speedup,
        }
    }

    fn duel(&self) -> String {
        format!("duel with baseline {} after round {}", self.name, self.after)
    }

    fn agrees(&self, shown: &Self) -> bool {
        let speedup = match (&self.speedup, &shown.speedup) {
            (Some(a), Some(b)) => a.is_near(b),
            (a, b) => a.is_none() && b.is_none(),
        };
        let plain = |value| Estimate { ratio: value, low: None, high: None };
        let values = match (self.values, shown.values) {
            (Some(a), Some(b)) => a.iter().zip(b).all(|(a, b)| plain(*a).is_near(&plain(b))),
            (a, b) => a.is_none() && b.is_none(),
        };
        speedup && values && self.name == shown.name && self.after == shown.after
    }
}

impl Misstatement {
    /// One sentence.
    pub fn describe(&self) -> String {
        let Self { duel, stated, shown } = self;
        format!("{duel}: stored \"{stated}\", the samples say \"{shown}\"")
    }
}

impl Campaign {
    /// Original against final, once it was measured at the end.
    pub fn final_comparison(&self) -> Option<&Comparison> {
        self.final_comparison.as_ref()
    }

    /// What the log states about its duels and its blocks do not show: one of them was changed
    /// afterwards.
    pub fn misstatements(&self) -> &[Misstatement] {
        &self.end_check.misstated
    }

    /// The duels about which the log states nothing, because it has no end or is an older one: a
    /// changed reading would not be noticed.
    pub fn unstated_duels(&self) -> Vec<String> {
        match self.is_finished() {
            true => self.end_check.unstated.clone(),
            false => unstated(&StatedFigures::default(), &self.stated_figures()),
        }
    }

    fn stated_figures(&self) -> StatedFigures {
        StatedFigures {
            headline: self.final_comparison().map(|shown| shown.overall),
            baselines: self
                .baseline_duels()
                .iter()
                .map(|duel| self.stated_baseline(duel))
                .collect(),
        }
    }

    fn stated_baseline(&self, duel: &BaselineDuel) -> StatedBaseline {
        let named = self.charter().and_then(|c| c.baselines.get(duel.baseline as usize));
        let shown = duel.result.as_ref().ok();
        let mean = |of: fn(&CaseComparison) -> f64| self.visible_mean(shown?, of);
        let values = mean(|case| case.parent_median).zip(mean(|case| case.candidate_median));
        StatedBaseline {
            name: named.map(|baseline| baseline.name.clone()).unwrap_or_default(),
            after: duel.after,
            speedup: shown.map(|shown| shown.overall),
            values: values.map(|(its, ours)| [its, ours]),
        }
    }

    pub(super) fn end_step(&self, reason: &StopReason) -> Step {
        Step::Finish { reason: reason.clone(), stated: self.stated_figures() }
    }

    /// Older logs end without a final profile, and without what their duels show.
    pub(super) fn take_end(&mut self, reason: &StopReason, stated: &StatedFigures) -> EventResult {
        match &self.phase {
            CampaignPhase::Closing(due) | CampaignPhase::LookingBack(due) if due == reason => {}
            _ => return not_due(),
        }
        // A campaign that was extended ends again; what was misstated before still is.
        let shown = self.stated_figures();
        for misstated in misstatements(stated, &shown) {
            if !self.end_check.misstated.contains(&misstated) {
                self.end_check.misstated.push(misstated);
            }
        }
        self.end_check.unstated = unstated(stated, &shown);
        self.phase = CampaignPhase::Finished(reason.clone());
        Ok(())
    }
}

/// What is stated and not shown. A log that states nothing about a kind of duel misstates none.
fn misstatements(stated: &StatedFigures, shown: &StatedFigures) -> Vec<Misstatement> {
    let none = || "nothing".to_owned();
    let mut found = Vec::new();
    if let Some(said) = &stated.headline
        && !shown.headline.is_some_and(|shown| shown.is_near(said))
    {
        let shown = shown.headline.map(|shown| shown.describe());
        let (duel, stated) = ("final duel".to_owned(), said.describe());
        found.push(Misstatement { duel, stated, shown: shown.unwrap_or_else(none) });
    }
    if stated.baselines.is_empty() {
        return found;
    }
    for at in 0..stated.baselines.len().max(shown.baselines.len()) {
        let pair = (stated.baselines.get(at), shown.baselines.get(at));
        if matches!(pair, (Some(said), Some(shown)) if said.agrees(shown)) {
            continue;
        }
        let describe = |one: Option<&StatedBaseline>| one.map_or_else(none, |one| one.describe());
        let duel = pair.0.or(pair.1).map(StatedBaseline::duel).unwrap_or_default();
        let (stated, shown) = (describe(pair.0), describe(pair.1));
        found.push(Misstatement { duel, stated, shown });
    }
    found
}

/// What was measured, and nothing is stated about.
fn unstated(stated: &StatedFigures, shown: &StatedFigures) -> Vec<String> {
    let is_silent = stated.headline.is_none() && shown.headline.is_some();
    let mut duels: Vec<String> = is_silent.then(|| "final duel".to_owned()).into_iter().collect();
    if stated.baselines.is_empty() {
        duels.extend(shown.baselines.iter().map(StatedBaseline::duel));
    }
    duels
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(ratio: f64, baselines: &[(&str, Option<f64>)]) -> StatedFigures {
        let estimate = |ratio| Estimate { ratio, low: Some(ratio * 0.9), high: Some(ratio * 1.1) };
        let of = |(name, speedup): &(&str, Option<f64>)| StatedBaseline {
            name: (*name).to_owned(),
            after: 2,
            speedup: speedup.map(estimate),
            values: speedup.map(|speedup| [speedup, 1.0]),
        };
        let baselines = baselines.iter().map(of).collect();
        StatedFigures { headline: Some(estimate(ratio)), baselines }
    }

    #[test]
    fn every_figure_that_differs_is_named() {
        let shown = figures(2.0, &[("eager", Some(0.83)), ("wrong", None)]);
        let check = |stated: StatedFigures, want: &[&str]| {
            let found = misstatements(&stated, &shown);
            let found: Vec<String> = found.iter().map(Misstatement::describe).collect();
            assert_eq!(found.len(), want.len(), "{found:?}");
            for (found, want) in found.iter().zip(want) {
                assert!(found.starts_with(want), "{found}");
            }
        };
        check(shown.clone(), &[]);
        check(
            figures(2.1, &[("eager", Some(0.83)), ("wrong", None)]),
            &["final duel: stored \"2.1"],
        );
        check(
            figures(2.0, &[("eager", Some(1.66)), ("wrong", Some(1.0))]),
            &[
                "duel with baseline eager after round 2: stored \"1.660x",
                "duel with baseline wrong after round 2: stored \"1.000x",
            ],
        );
        // Another name, one more, one less.
        check(figures(2.0, &[("slow", Some(0.83)), ("wrong", None)]), &["duel with baseline slow"]);
        check(figures(2.0, &[("eager", Some(0.83))]), &["duel with baseline wrong"]);
        let mut more = shown.clone();
        more.baselines.push(more.baselines[0].clone());
        check(more, &["duel with baseline eager"]);
        // Both readings halved leave the speedup as it was.
        let mut halved = shown.clone();
        halved.baselines[0].values = Some([0.415, 0.5]);
        check(halved, &["duel with baseline eager"]);
        check(StatedFigures::default(), &[]);
        assert_eq!(unstated(&StatedFigures::default(), &shown).len(), 3);
        assert!(unstated(&shown, &shown).is_empty());
    }
}
