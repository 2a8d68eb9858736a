//! Cases that are held back: when there is evidence that the others are not enough, they decide
//! too, from then on.

use super::out_of_order::EventResult;
use super::{Campaign, Event, RoundPhase, RoundSummary};
use crate::comparison::{CaseComparison, SpeedChange};
use crate::hypothesis::Hypothesis;
use crate::measurement::Gate;
use crate::profile::{Bottleneck, Profile};
use karve_numerics::case::CaseSet;

/// Cases that were held back and then added, with the evidence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddedCases {
    /// The round from which on they decide.
    pub round: u32,
    /// Indices of the cases in the charter.
    pub cases: Vec<usize>,
    /// Why the others were not enough.
    pub evidence: String,
}

impl Campaign {
    /// The cases that were added so far.
    pub fn added_cases(&self) -> &[AddedCases] {
        &self.added
    }

    /// The event that adds cases now, if there is evidence for it. Nothing is added once a round
    /// has a candidate, so that no duel changes its cases.
    pub fn cases_due(&self) -> Option<Event> {
        let round = self.current_round()?;
        let hypothesis = match &round.phase {
            RoundPhase::Profiling | RoundPhase::Proposing { .. } => None,
            RoundPhase::Implementing { hypothesis, retry: 0, variant: 0, .. } => Some(hypothesis),
            _ => return None,
        };
        let held: Vec<usize> = self.charter()?.stress_cases();
        let first = held.first().copied()?;
        let named = |text: &str| -> Vec<usize> {
            held.iter().copied().filter(|case| mentions(text, &self.case_name(*case))).collect()
        };
        let of_words = hypothesis.map(|hypothesis| {
            let number = round.number;
            (named(&words(hypothesis)), format!("the hypothesis of round {number} is about it"))
        });
        let of_tips = self.tips().iter().map(|tip| {
            (named(&tip.text), format!("an earlier campaign names it ({})", tip.source))
        });
        let spoken = of_words.into_iter().chain(of_tips).find(|(cases, _)| !cases.is_empty());
        let (cases, evidence) =
            spoken.or_else(|| Some((vec![first], self.evidence_of_figures()?)))?;
        Some(Event::CasesAdded { round: round.number, cases, evidence })
    }

    /// What the last round or the profile shows against the cases that decide now. What was
    /// already used as evidence is not used again.
    fn evidence_of_figures(&self) -> Option<String> {
        let used = self.added.last().map_or(0, |added| added.round);
        let last = self.rounds.last().filter(|round| round.number >= used);
        let shown =
            last.and_then(|round| self.disagreement(round).or_else(|| self.surprise(round)));
        shown.or_else(|| self.shift().filter(|_| self.added.is_empty()))
    }

    /// A candidate that is faster on one case and slower on another.
    fn disagreement(&self, round: &RoundSummary) -> Option<String> {
        let cases = &round.shown()?.cases;
        let find = |change| cases.iter().find(|case| case.change == change);
        let (won, lost) = (find(SpeedChange::Improved)?, find(SpeedChange::Regressed)?);
        let say = |case: &CaseComparison| {
            format!("{} {}", self.case_name(case.case), case.estimate.describe())
        };
        Some(format!("the cases disagree in round {}: {}, {}", round.number, say(won), say(lost)))
    }

    /// A candidate that is right on the cases that decide, and wrong on one that is hidden.
    fn surprise(&self, round: &RoundSummary) -> Option<String> {
        let on_hidden = round.gate.as_ref().is_some_and(Gate::is_wrong_on_hidden);
        on_hidden.then(|| format!("round {} was wrong on a hidden case alone", round.number))
    }

    /// A kernel that is limited by something else than the original.
    fn shift(&self) -> Option<String> {
        let class = |profile: Option<&Profile>| {
            profile.map(|p| p.bottleneck).filter(|class| *class != Bottleneck::Unknown)
        };
        let (before, now) = (class(self.first_profile())?, class(self.profile())?);
        let moved = before != now && self.lineage().best().is_some();
        moved.then(|| format!("the bottleneck moved from {} to {}", before.name(), now.name()))
    }

    /// Takes in cases that were added: only those that are due.
    pub(super) fn take_cases(&mut self, event: &Event) -> EventResult {
        let Event::CasesAdded { round, cases, evidence } = event else {
            return super::out_of_order::not_due();
        };
        if self.cases_due().as_ref() != Some(event) {
            return Err("there is no such evidence".into());
        }
        let all_are_quick = self.facts.quick == self.cases_of(CaseSet::Full);
        let charter = self.facts.charter.as_deref_mut();
        let all = charter.map_or(&mut [][..], |charter| &mut charter.cases).iter_mut().enumerate();
        for (_, case) in all.filter(|(index, _)| cases.contains(index)) {
            case.set = CaseSet::Full;
        }
        if all_are_quick {
            self.facts.quick = self.cases_of(CaseSet::Full);
        }
        // What was undecided on fewer cases starts over.
        self.open_duels.retain(|_, open| open.set == CaseSet::Quick && !all_are_quick);
        let added = AddedCases { round: *round, cases: cases.clone(), evidence: evidence.clone() };
        self.added.push(added);
        Ok(())
    }

    /// The visible cases that decided in a round.
    pub fn cases_at(&self, round: u32) -> Vec<usize> {
        let later = self.added.iter().filter(|added| added.round > round);
        let later: Vec<usize> = later.flat_map(|added| added.cases.clone()).collect();
        let mut cases = self.cases_of(CaseSet::Full);
        cases.retain(|case| !later.contains(case));
        cases
    }
}

/// Whether a name occurs in a text as a whole word.
fn mentions(text: &str, name: &str) -> bool {
    let word = |c: char| c.is_alphanumeric() || c == '_';
    !name.is_empty()
        && text.match_indices(name).any(|(start, found)| {
            !text[..start].ends_with(word) && !text[start + found.len()..].starts_with(word)
        })
}

/// Everything that a hypothesis says.
fn words(hypothesis: &Hypothesis) -> String {
    let Hypothesis { title, bottleneck, mechanism, gate, .. } = hypothesis;
    let gate = gate.as_deref().unwrap_or_default();
    format!("{title}\n{bottleneck}\n{mechanism}\n{gate}")
}

#[cfg(test)]
mod tests {
    use super::mentions;

    #[test]
    fn a_name_is_found_only_where_it_stands_as_a_word() {
        for (text, want) in [
            ("wrong on m64: x", true),
            ("m64", true),
            ("m640 and xm64 and m64_b", false),
            ("m640, then m64", true),
            ("", false),
        ] {
            assert_eq!(mentions(text, "m64"), want, "{text}");
        }
        assert!(!mentions("anything", ""));
    }
}
