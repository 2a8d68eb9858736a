//! Best of several: variants are built, tested and measured, interleaved.

use super::audit::audit_commits;
use super::gate::tested_visibly;
use super::review::out_of_scope;
use super::{World, refs_of};
use crate::tuner::evaluator::SettingResult;
use karve_core::campaign::{Campaign, ChooseStep, Event};
use karve_core::hypothesis::Candidate;
use karve_core::integrity;
use karve_core::measurement::Gate;
use karve_core::variants::{self, VariantTrial};
use karve_harness::commands::CommandVariant;
use karve_harness::git::{ExpectedRef, Oid};
use karve_harness::worktrees::BuiltTree;
use karve_numerics::case::CaseSet;
use karve_os::error::Result;

impl World {
    pub(super) fn choose(&mut self, step: &ChooseStep, campaign: &Campaign) -> Result<Event> {
        let mut tryouts = Vec::with_capacity(step.candidates.len());
        let mut standing: Vec<(usize, BuiltTree)> = Vec::new();
        for (place, (variant, candidate)) in step.candidates.iter().enumerate() {
            let gate = match self.variant_built(candidate, campaign)? {
                Ok(built) => {
                    standing.push((place, built));
                    Gate::Passed
                }
                Err(gate) => gate,
            };
            tryouts.push(VariantTrial {
                variant: *variant,
                gate,
                values: Vec::new(),
            });
        }
        // If only one passed, it needs no measurement.
        if standing.len() > 1 {
            self.read_interleaved(step, (&standing, &mut tryouts), campaign)?;
        }
        let first = variants::first(&tryouts).unwrap_or(0);
        let kept = step
            .candidates
            .iter()
            .find(|(variant, _)| *variant == first);
        let kept = kept.map_or("", |(_, candidate)| &candidate.commit);
        self.trees
            .keep_only(&self.repo, &[campaign.incumbent(), kept])?;
        Ok(Event::Chosen {
            round: step.round,
            first,
            tryouts,
        })
    }

    /// A variant, built and correct on the visible cases, or its gate failure.
    fn variant_built(
        &mut self,
        candidate: &Candidate,
        campaign: &Campaign,
    ) -> Result<std::result::Result<BuiltTree, Gate>> {
        let commits = (
            &Oid::named(campaign.incumbent())?,
            &Oid::named(&candidate.commit)?,
        );
        if let Some(gate) = out_of_scope(&self.repo, campaign, commits, candidate)? {
            return Ok(Err(gate));
        }
        let findings = audit_commits(&self.repo, &self.charter, commits, &candidate.files)?;
        if let Some(gate) = integrity::forbids(&findings) {
            return Ok(Err(gate));
        }
        let harness = self.harness();
        let built = match self.trees.built(&self.repo, &harness, &candidate.commit)? {
            Ok(built) => built,
            Err(gate) => return Ok(Err(gate)),
        };
        let parent = self
            .trees
            .built(&self.repo, &harness, campaign.incumbent())?;
        let harness = match &parent {
            Ok(parent) => harness.beside(&parent.path),
            Err(_) => harness,
        };
        let on = (CaseSet::Full, CommandVariant::Usual);
        let (gate, _) = tested_visibly(&harness, &built.path, on, campaign)?;
        Ok(gate.map(|()| built))
    }

    /// Measures each variant as often as the step says; each pass starts with a different one.
    fn read_interleaved(
        &mut self,
        step: &ChooseStep,
        (standing, tryouts): (&[(usize, BuiltTree)], &mut [VariantTrial]),
        campaign: &Campaign,
    ) -> Result<()> {
        let base = Oid::named(campaign.incumbent())?;
        let workshop = match self.evaluator(&base, campaign)? {
            Ok(workshop) => workshop,
            // Without readings the first that passed is chosen.
            Err(why) => {
                self.notices.mention(&why);
                return Ok(());
            }
        };
        let mut unread = Vec::new();
        for turn in 0..step.turns as usize {
            for number in 0..standing.len() {
                let (place, built) = &standing[(number + turn) % standing.len()];
                match workshop.read(built, &mut self.device())? {
                    SettingResult::Read { value, .. } => tryouts[*place].values.push(value),
                    SettingResult::Failed { .. } => unread.push(*place),
                }
            }
        }
        // A variant that cannot be measured every time is not wanted.
        for place in unread {
            tryouts[place].values.clear();
        }
        Ok(())
    }

    /// Keeps the commit of a variant from being collected.
    pub(super) fn keep_variant(
        &self,
        candidate: &Candidate,
        (round, variant): (u32, u32),
    ) -> Result<()> {
        let name = variant_ref(&self.charter.name, (round, variant));
        let oid = Oid::named(&candidate.commit)?;
        self.repo.update_ref(&name, &oid, ExpectedRef::Any)
    }

    /// The ref of a round names the candidate that is judged, not the one that was made last.
    pub(super) fn name_candidate(&self, round: u32, commit: &Oid) -> Result<()> {
        let name = format!("{}/round-{round}", refs_of(&self.charter.name));
        self.repo.update_ref(&name, commit, ExpectedRef::Any)
    }
}

/// The hidden ref of a variant.
pub(super) fn variant_ref(campaign: &str, (round, variant): (u32, u32)) -> String {
    format!(
        "{}/round-{round}-variant-{}",
        refs_of(campaign),
        variant + 1
    )
}
