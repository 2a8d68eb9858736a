//! Why a round ended as it did: the condition, the numbers behind it, and what would change it.

use crate::campaign::{Campaign, RoundSummary, strategy};
use crate::comparison::{Comparison, SpeedChange};
use crate::verdict::{DropReason, Verdict};
use serde::Serialize;

/// Most numbers that are listed.
const NUMBERS_MAX: usize = 24;

/// Why a round ended as it did.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RoundWhy {
    /// The round.
    pub round: u32,
    /// The hypothesis.
    pub title: String,
    /// `keep`, `keep (gated)`, `drop` or `undecided`.
    pub verdict: &'static str,
    /// The condition that decided.
    pub condition: String,
    /// The numbers that it was decided by.
    pub numbers: Vec<String>,
    /// What would change the verdict; empty for a keep.
    pub would_change: Vec<String>,
}

impl Campaign {
    /// Why a settled round ended as it did; hidden cases have no names here.
    pub fn why(&self, number: u32) -> Option<RoundWhy> {
        let round = self.rounds().iter().find(|round| round.number == number)?;
        let name = |case: usize| strategy::visible_name(self, case);
        Some(RoundWhy {
            round: number,
            title: round.title().to_owned(),
            verdict: round.verdict.word(),
            condition: round.why(&name),
            numbers: self.numbers(round),
            would_change: would_change(round),
        })
    }

    fn numbers(&self, round: &RoundSummary) -> Vec<String> {
        let mut numbers = Vec::new();
        let shown = [("quick cases", &round.quick), ("all cases", &round.comparison)];
        for (set, comparison) in shown {
            if let Some(comparison) = comparison {
                numbers.extend(self.of_duel(set, comparison));
            }
        }
        if let Some(check) = &round.check {
            let overall = check.comparison.overall.describe();
            numbers.push(format!("against the original: {overall}"));
        }
        if let Some(layouts) = &round.layouts {
            let ratios: Vec<String> = layouts.ratios.iter().map(|r| format!("{r:.3}x")).collect();
            numbers.push(format!("in other layouts of the same code: {}", ratios.join(", ")));
        }
        if round.shown().is_some()
            && let Some(charter) = self.charter()
        {
            let accept = &charter.policy.accept;
            numbers.push(format!(
                "a keep needs proof of more than {:.3}x, an estimate of at least {:.3}x, {} to {} \
                 blocks",
                accept.null_ratio, accept.effect_ratio, accept.blocks_min, accept.blocks_max
            ));
            if let Some(allowed) = accept.case_regress_ratio {
                let allowed = (allowed - 1.0) * 100.0;
                numbers.push(format!("no case may lose more than {allowed:.1}%"));
            }
        }
        numbers.truncate(NUMBERS_MAX);
        numbers
    }

    /// The figures of one duel, with the cases that stand out.
    fn of_duel(&self, set: &str, comparison: &Comparison) -> Vec<String> {
        let mut lines = vec![format!(
            "{set}: {} at 95%, {} blocks, evidence {:.3} for the gain and {:.3} against it",
            comparison.overall.describe(),
            comparison.blocks,
            comparison.evidence_faster,
            comparison.evidence_not_faster
        )];
        let lost = comparison.cases.iter().filter(|case| case.change == SpeedChange::Regressed);
        for case in lost {
            let (name, speed) = (strategy::visible_name(self, case.case), case.estimate.describe());
            lines.push(format!("{set}: {name} lost: {speed}"));
        }
        lines
    }
}

/// What would change the verdict of a round.
fn would_change(round: &RoundSummary) -> Vec<String> {
    let one = |text: &str| vec![text.to_owned()];
    let reason = match &round.verdict {
        Verdict::Keep { .. } | Verdict::KeepGated { .. } => return Vec::new(),
        Verdict::Undecided { .. } => {
            let remedy = round.missing.as_ref().map(|missing| missing.remedy());
            return one(remedy.unwrap_or("more blocks: policy.accept.blocks_max, limits.duel_s"));
        }
        Verdict::Drop { reason } => reason,
    };
    if let DropReason::Unproven { round, .. } = reason {
        return vec![
            "a contract, under which karve draws the inputs: \"karve contract FILE:FUNCTION\""
                .into(),
            format!(
                "your word after reading the diff: karve answer \"allow {round}\", then submit it \
                 again"
            ),
        ];
    }
    one(match reason {
        DropReason::NoCandidate { .. } => {
            "a proposal and a change that karve accepts; \"karve log\" and the session log of the \
             round show what the agent did"
        }
        DropReason::NoChange => "a change of an editable file (sources.editable)",
        DropReason::SameArtifact => {
            "a change that the compiler does not undo: the build made the same bytes, so nothing \
             was measured; if the build does not see the change, look at commands.build and \
             commands.artifacts"
        }
        DropReason::AlreadyTried { .. } => "another source: this one has its verdict",
        DropReason::Gate { .. } => {
            "a change that builds and is correct; \"karve check\" in the worktree tells in seconds"
        }
        DropReason::NotFaster => {
            "a larger effect: that this change gains what is worth keeping is disproved, and more \
             blocks would not change that"
        }
        DropReason::Regressed { .. } => {
            "the gain behind a condition that leaves those cases alone, minor = true for them, or \
             a larger policy.accept.case_regress_ratio"
        }
        DropReason::RoundTimeUp => "a larger policy.round_minutes, or smaller cases",
        DropReason::LayoutLuck { .. } => "a gain that other layouts of the same code show too",
        DropReason::Unproven { .. } => "a proof that the work was done",
        DropReason::SlowCalls { .. } => "the same gain in all calls: no work put off or cached",
        DropReason::Inflated(_) => "a gain over the original, not only over the incumbent",
        DropReason::Downgraded { .. } => "an answer to the reviewer's objection",
        DropReason::ClocksDisagree { .. } => {
            "the same gain by both clocks, or metric.clocks = \"metric\" if the difference is meant"
        }
    })
}

#[cfg(test)]
mod tests {
    use crate::testing::script::{play, script};

    #[test]
    fn every_settled_round_says_its_condition_its_numbers_and_what_would_change_it() {
        let mut script = script(&[1.3, 0.8]);
        script.charter.limits.rounds = 2;
        let (campaign, _) = play(&script);
        let kept = campaign.why(1).unwrap();
        assert_eq!((kept.verdict, kept.would_change.len()), ("keep", 0));
        assert!(kept.numbers[0].contains("all cases: 1.3"), "{:?}", kept.numbers);
        let dropped = campaign.why(2).unwrap();
        assert_eq!(dropped.verdict, "drop");
        assert_eq!(dropped.would_change.len(), 1);
        assert!(campaign.why(3).is_none());
    }
}
