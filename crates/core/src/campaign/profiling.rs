//! When the kernel is profiled, how deeply, and what waits for the first verdict.

use super::Campaign;
use crate::charter::{Charter, EXTERNAL};
use crate::policy::{FirstVerdict, ProfileWhen, StreakAction};
use crate::profile::{Profile, ProfileDepth};

impl Campaign {
    pub(super) fn profile_depth(&self) -> ProfileDepth {
        match self.charter().and_then(|c| c.policy.streak_action(self.streak())) {
            Some(StreakAction::Reprofile) => ProfileDepth::Full,
            Some(StreakAction::InspectCode | StreakAction::CompareOrAsk) => ProfileDepth::Code,
            Some(StreakAction::Diagnose | StreakAction::Review) | None => ProfileDepth::Light,
        }
    }

    /// Whether the first verdict comes before everything that it can do without.
    pub(super) fn settles_first(&self) -> bool {
        self.charter().is_some_and(|charter| match charter.policy.first_verdict {
            FirstVerdict::Soon | FirstVerdict::AtOnce => true,
            FirstVerdict::AfterChecks => false,
        })
    }

    /// Whether the first round does without a profile: its agent cannot make use of one, or can ask
    /// for it. Where karve calls the kernel itself, a profile takes little.
    fn proposes_unseen(&self, charter: &Charter) -> bool {
        let is_slow = charter.contract.is_none();
        let can_ask =
            charter.policy.first_verdict == FirstVerdict::AtOnce && charter.agent == EXTERNAL;
        let does_without = charter.has_fixed_agent() || can_ask;
        self.settles_first() && does_without && is_slow && charter.agenda.is_none()
    }

    /// The full profile of this commit, if only its code is missing: profilers show no more of it.
    pub fn profile_but_code(&self, commit: &str, depth: ProfileDepth) -> Option<&Profile> {
        let is_full = |seen: &&Profile| seen.depth == ProfileDepth::Full && seen.skipped.is_none();
        let seen = self.profile().filter(|seen| seen.commit == commit).filter(is_full);
        seen.filter(|_| depth == ProfileDepth::Code)
    }

    pub(super) fn profile_due(&self) -> bool {
        let can = |charter: &&Charter| charter.commands.profile.is_some();
        let Some(charter) = self.charter().filter(can) else {
            return false;
        };
        let first = self.must_look_first();
        let changed = match self.rounds.last() {
            Some(round) => round.verdict.keeps() || self.profile().is_none(),
            None => !self.proposes_unseen(charter),
        };
        let depth = self.profile_depth();
        // A second look at the same kernel, as deep as the last one, shows nothing new.
        let is_known =
            self.profile().is_some_and(|p| p.commit == self.incumbent() && p.depth >= depth);
        let escalated = depth != ProfileDepth::Light && (charter.policy.profile_again || !is_known);
        match charter.policy.profile_when {
            ProfileWhen::EveryRound => true,
            ProfileWhen::OnChange => first || changed || escalated,
            ProfileWhen::OnEscalation => first || escalated,
        }
    }
}
