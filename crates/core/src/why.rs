//! Why a round ended as it did: the condition, the numbers behind it, and what would change it.

use crate::campaign::{Campaign, RoundSummary};
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
        let name = |case: usize| self.case_name(case);
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
        if let Some(second) = &comparison.second {
            lines.push(format!(
                "{set}, by {}: {} at 95%, evidence {:.3} for the gain and {:.3} against it",
                second.clock.name(),
                second.overall.describe(),
                second.evidence_faster,
                second.evidence_not_faster
            ));
        }
        let lost = comparison.cases.iter().filter(|case| case.change == SpeedChange::Regressed);
        for case in lost {
            let (name, speed) = (self.case_name(case.case), case.estimate.describe());
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
    if let Some(other) = round.disproved_by() {
        return vec![format!(
            "a gain that {} shows too, or metric.clocks = \"metric\" if only the metric counts",
            other.clock.name()
        )];
    }
    one(match reason {
        DropReason::NoCandidate { .. } => {
            "a proposal and a change that karve accepts; \"karve log\" and the session log of the \
             round show what the agent did"
        }
        DropReason::NoChange => "a change of an editable file (sources.editable)",
        DropReason::SameArtifact => {
            "a change of the code that the compiler does not undo: nothing was measured; \
             if the build does not see the change, look at commands.build and commands.artifacts"
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
    use super::{DropReason, Verdict, would_change};
    use crate::comparison::{Clock, Estimate, SecondClock};
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

    #[test]
    fn a_round_that_another_clock_decided_names_it() {
        let (campaign, _) = play(&script(&[0.8]));
        let mut round = campaign.rounds()[0].clone();
        round.verdict = Verdict::Drop { reason: DropReason::NotFaster };
        assert_eq!(round.reason(&|_| String::new()), "not faster");
        let shown = round.comparison.as_mut().or(round.quick.as_mut()).unwrap();
        let overall = Estimate { ratio: 0.992, low: Some(0.99), high: Some(0.994) };
        let against = shown.evidence_not_faster;
        let cpu = |evidence_not_faster| SecondClock {
            clock: Clock::Cpu,
            overall,
            evidence_faster: 0.1,
            evidence_not_faster,
        };
        shown.second = Some(cpu(against * 2.0));
        assert_eq!(
            round.reason(&|_| String::new()),
            "not faster by CPU time, 0.992x [0.990, 0.994]"
        );
        assert!(would_change(&round)[0].contains("CPU time"));
        let shown = round.shown().unwrap();
        let lines = campaign.of_duel("all cases", shown);
        assert!(lines[1].starts_with("all cases, by CPU time: 0.992x"), "{lines:?}");
        round.quick = None;
        round.comparison.as_mut().unwrap().second = Some(cpu(against / 2.0));
        assert_eq!(round.reason(&|_| String::new()), "not faster");
    }
}
