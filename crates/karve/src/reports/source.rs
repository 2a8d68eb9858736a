//! The source of every report: the campaign and its charter.
//!
//! An agent may read everything rendered here: as a file of a campaign, through the server, or by
//! running `karve report`. An agent must not learn the hidden cases, even after the campaign is
//! finished, because the next one is judged on the same cases: such a case has a number instead of
//! its name (`Campaign::case_name`), and what ran on it is told without details (`Gate::on`). A
//! person finds the names in `karve.toml`.

use super::text::{line, one_line};
use karve_core::campaign::{Campaign, RoundSummary, StopReason};
use karve_core::charter::Charter;
use karve_core::hypothesis::Direction;
use karve_core::measurement::Gate;

/// A campaign with its charter.
pub(super) struct ReportSource<'a> {
    /// The campaign.
    pub(super) campaign: &'a Campaign,
    /// Its charter.
    pub(super) charter: &'a Charter,
}

impl<'a> ReportSource<'a> {
    /// The source of a campaign; `None` before the target is defined.
    pub(super) fn of(campaign: &'a Campaign) -> Option<Self> {
        Some(Self { campaign, charter: campaign.charter()? })
    }

    /// One line, bounded.
    pub(super) fn line(&self, text: &str, max: usize) -> String {
        line(text, max)
    }

    /// The name of a case; for a hidden one, its number among the hidden ones.
    pub(super) fn case(&self, case: usize) -> String {
        one_line(&self.campaign.case_name(case))
    }

    /// How many cases are hidden.
    pub(super) fn n_hidden(&self) -> usize {
        self.charter.hidden_cases().len()
    }

    /// The log of a failed gate, if it has one.
    pub(super) fn excerpt<'b>(&self, gate: &'b Gate) -> Option<&'b str> {
        let excerpt = match gate {
            Gate::BuildFailed { excerpt, .. } | Gate::WrongResult { excerpt, .. } => excerpt,
            Gate::Passed
            | Gate::OutOfScope { .. }
            | Gate::TimedOut { .. }
            | Gate::SlowerElsewhere { .. }
            | Gate::Dishonest { .. } => return None,
        };
        (!excerpt.trim().is_empty()).then_some(excerpt)
    }

    /// Why a round ended as it did, as one bounded line.
    pub(super) fn why(&self, round: &RoundSummary, max: usize) -> String {
        line(&round.why(&|case| self.case(case)), max)
    }

    /// Why the campaign ended, as one bounded line.
    pub(super) fn stop(&self, reason: &StopReason, max: usize) -> String {
        let why = match reason {
            StopReason::BaselineFailed { gate } => {
                format!("the unchanged kernel fails: {}", gate.describe())
            }
            StopReason::MutationCheckFailed => self.campaign.stop_text().unwrap_or_default(),
            reason => reason.describe(),
        };
        line(&why, max)
    }

    /// The title of a round's hypothesis, one bounded line.
    pub(super) fn title(&self, round: &RoundSummary, max: usize) -> String {
        line(round.title(), max)
    }

    /// What a round taught, as one bounded line; empty if it taught nothing.
    pub(super) fn lesson(&self, round: &RoundSummary, max: usize) -> String {
        line(&round.lesson.text, max)
    }

    /// The round with that number, if it is finished.
    pub(super) fn round(&self, number: u32) -> Option<&'a RoundSummary> {
        let rounds = self.campaign.rounds();
        rounds.iter().find(|round| round.number == number)
    }

    /// Directions that no hypothesis has taken yet.
    pub(super) fn unexplored(&self) -> Vec<Direction> {
        let taken = |direction: &Direction| {
            let rounds = self.campaign.rounds().iter();
            let mut hypotheses = rounds.filter_map(|round| round.hypothesis.as_ref());
            hypotheses.any(|hypothesis| hypothesis.direction == *direction)
        };
        let all = Direction::ALL.into_iter();
        all.filter(|direction| !taken(direction)).collect()
    }
}
