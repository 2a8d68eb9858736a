//! How a script answers when a hypothesis is implemented more than once.

use super::script::{CampaignScript, ScriptedAttempt};
use crate::campaign::{ChooseStep, Event};
use crate::hypothesis::Candidate;
use crate::variants::{self, VariantTrial};

/// Which further implementation a commit is, by its name.
pub(super) fn variant_of(commit: &str) -> Option<usize> {
    let numbers = commit.strip_prefix('v')?;
    numbers.split('.').nth(3)?.parse().ok()
}

impl CampaignScript {
    /// What an attempt is, by the commit's name.
    pub(super) fn attempt_of(&self, commit: &str, retry: u32) -> &ScriptedAttempt {
        let idea = self.idea_of(commit);
        match variant_of(commit) {
            Some(variant) if retry == 0 => &idea.variants[variant - 1].1,
            _ => idea.attempt(retry),
        }
    }

    pub(super) fn choose(&self, step: &ChooseStep) -> Event {
        let tryout = |(variant, candidate): &(u32, Candidate)| {
            let gate = self.attempt_of(&candidate.commit, 0).quick.clone();
            let value = 10.0 / self.speed(&candidate.commit, 0);
            let turns = if gate.passed() { step.turns } else { 0 };
            let values = vec![value; turns as usize];
            VariantTrial { values, ..VariantTrial::new(*variant, gate) }
        };
        let tryouts: Vec<VariantTrial> = step.candidates.iter().map(tryout).collect();
        Event::Chosen { round: step.round, first: variants::first(&tryouts).unwrap(), tryouts }
    }
}
