//! Best of several: the variants of a round, from the first one implemented to the one chosen.

use super::out_of_order::{EventResult, not_due};
use super::round::{RoundPhase, RoundState};
use super::{Campaign, Event};
use crate::hypothesis::{Candidate, Hypothesis};
use crate::variants::{BEST_OF_MAX, ImplementedVariant, TURNS};
use crate::{variants, verdict};

/// The variants of a round to choose from.
#[derive(Clone, Debug, PartialEq)]
pub struct ChooseStep {
    /// The round.
    pub round: u32,
    /// The incumbent.
    pub parent: String,
    /// The variants with their numbers; no source twice.
    pub candidates: Vec<(u32, Candidate)>,
    /// How often each is timed.
    pub turns: u32,
}

impl Campaign {
    /// How often a hypothesis is implemented. Values of knobs can be set in one way only.
    pub(super) fn variants_of(&self, hypothesis: &Hypothesis) -> u32 {
        let one_way = hypothesis.sweep || !hypothesis.config.is_empty();
        let wanted = self.charter().map_or(1, |charter| charter.policy.best_of);
        if one_way { 1 } else { wanted.clamp(1, BEST_OF_MAX) }
    }

    /// The same at a step: a repair attempt makes one variant only.
    pub(super) fn realizations(&self, hypothesis: &Hypothesis, repairs: bool) -> u32 {
        match repairs {
            true => 1,
            false => self.variants_of(hypothesis),
        }
    }

    /// Takes in a variant; after the last one, decides which one continues.
    pub(super) fn take_variant(
        &mut self,
        round: &mut RoundState,
        hypothesis: Box<Hypothesis>,
        made: ImplementedVariant,
    ) {
        round.variants.push(made);
        let done = u32::try_from(round.variants.len()).unwrap_or(u32::MAX);
        if done < self.variants_of(&hypothesis) {
            round.phase = RoundPhase::Implementing {
                hypothesis,
                retry: 0,
                variant: done,
                repair: None,
                review: None,
            };
            return;
        }
        let contenders = self.contenders(round);
        if contenders.len() > 1 {
            round.phase = RoundPhase::Choosing { hypothesis };
            return;
        }
        let any = || {
            let mut made = round.variants.iter();
            made.find_map(|made| Some((made.variant, made.candidate.clone()?)))
        };
        match contenders.into_iter().next().or_else(any) {
            Some(first) => self.take_first(round, hypothesis, &first),
            None => {
                let why = round.variants.first().map_or("", |made| &made.why);
                round.phase = RoundPhase::Settling { verdict: verdict::judge_absent(why) };
            }
        }
    }

    fn contenders(&self, round: &RoundState) -> Vec<(u32, Candidate)> {
        let is_new = |candidate: &Candidate| {
            let tree = &candidate.tree;
            let tried = self.judged_in(&round.parent, tree);
            verdict::judge_source(tree, self.incumbent_tree(), tried).is_none()
        };
        variants::contenders(&round.variants, is_new)
    }

    /// The step that chooses a variant.
    pub(super) fn choose_step(&self, round: &RoundState) -> ChooseStep {
        ChooseStep {
            round: round.number,
            parent: round.parent.clone(),
            candidates: self.contenders(round),
            turns: TURNS,
        }
    }

    fn take_first(
        &mut self,
        round: &mut RoundState,
        hypothesis: Box<Hypothesis>,
        (variant, candidate): &(u32, Candidate),
    ) {
        round.chosen = Some(*variant);
        self.take_candidate(round, 0, hypothesis, candidate);
    }

    pub(super) fn take_choice(&mut self, round: &mut RoundState, event: &Event) -> EventResult {
        let (Event::Chosen { round: of, first, tryouts }, RoundPhase::Choosing { hypothesis }) =
            (event, &round.phase)
        else {
            return not_due();
        };
        if *of != round.number {
            return not_due();
        }
        let contenders = self.contenders(round);
        let numbers = contenders.iter().map(|(number, _)| *number);
        if !tryouts.iter().map(|tryout| tryout.variant).eq(numbers) {
            return Err("these are not the variants of this round".into());
        }
        if variants::first(tryouts) != Some(*first) {
            return Err("by these readings another variant is the fastest".into());
        }
        let Some(chosen) = contenders.iter().find(|(number, _)| number == first) else {
            return not_due();
        };
        let hypothesis = hypothesis.clone();
        round.tryouts.clone_from(tryouts);
        self.take_first(round, hypothesis, chosen);
        Ok(())
    }
}
