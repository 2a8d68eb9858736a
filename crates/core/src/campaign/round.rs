//! A round: one hypothesis from proposal to verdict.

use super::out_of_order::EventResult;
use super::{DuelName, HostTally, Lesson, OriginalCheck, PhaseCost, ProcessAge, RunningCheck};
use crate::comparison::{Clock, Comparison, SecondClock};
use crate::duel::{ClaimTrack, Duel};
use crate::hypothesis::{Candidate, Hypothesis};
use crate::integrity::{AuditFinding, MutantCheck, WorkCounts, suspicious_note};
use crate::ladder::{LadderResult, Rung};
use crate::measurement::{Block, Gate};
use crate::roles::{Review, RoutingDecision};
use crate::spending::AgentUsage;
use crate::variants::{ImplementedVariant, VariantTrial};
use crate::verdict::{self, DropReason, MissingProof, Verdict};
use karve_numerics::case::CaseSet;
use karve_numerics::contract::CaseTensorError;
use serde::{Deserialize, Serialize};

/// A round under way.
#[derive(Clone, Debug)]
pub struct RoundState {
    /// Its number, from 1.
    pub number: u32,
    /// The commit to beat.
    pub parent: String,
    /// Where it stands.
    pub phase: RoundPhase,
    /// The item of the agenda that it is for.
    pub task: Option<String>,
    /// Whether the agent said that nothing is left to try for that item.
    pub gave_up: bool,
    /// Why the agent gave up a change that the gate had refused.
    pub given_up: Option<String>,
    /// The hypothesis that was accepted, once there is one.
    pub hypothesis: Option<Box<Hypothesis>>,
    /// The implementations so far, if there will be several.
    pub variants: Vec<ImplementedVariant>,
    /// Their results.
    pub tryouts: Vec<VariantTrial>,
    /// Which of them continued.
    pub chosen: Option<u32>,
    /// The last candidate, once there is one.
    pub candidate: Option<Candidate>,
    /// The role that was asked, and why, if there are roles.
    pub route: Option<Box<RoutingDecision>>,
    /// The reviews of its candidates.
    pub reviews: Vec<Review>,
    /// The last result of the gate.
    pub gate: Option<Gate>,
    /// What the audit of the last candidate found.
    pub findings: Vec<AuditFinding>,
    /// Blocks of the last candidate with overwritten memory, if it was about to be kept.
    pub stale_memory: Vec<Block>,
    /// The work of the last candidate, if it was counted.
    pub work: Option<Box<WorkCounts>>,
    /// Whether the tests notice bugs in the last candidate, if that was checked.
    pub mutants: Option<MutantCheck>,
    /// How far the last candidate was from the reference, under a contract.
    pub errors: Vec<CaseTensorError>,
    /// Trees that did not pass the gate in this round.
    pub failed_trees: Vec<String>,
    /// What tuning showed, if there was any.
    pub tuned: Option<Box<LadderResult>>,
    /// Time of tuning in this round.
    pub tuned_ms: u64,
    /// What the quick set showed, if it was measured on its own.
    pub quick: Option<Comparison>,
    /// What the deciding duel showed.
    pub comparison: Option<Comparison>,
    /// What the last duel's self-reported metric claims, against karve's own clock.
    pub claims: ClaimTrack,
    /// What an undecided duel lacks for a keep.
    pub missing: Option<MissingProof>,
    /// What other layouts of the same code showed, once all were tried.
    pub layouts: Option<LayoutResults>,
    /// What the original against the candidate showed, if that was measured.
    pub check: Option<OriginalCheck>,
    /// Proposals that were refused, in words.
    pub refused: Vec<String>,
    /// Repair attempts.
    pub retries: u32,
    /// Time of work in this round.
    pub spent_ms: u64,
    /// What the host did to its readings.
    pub host: HostTally,
    /// What the agent used in this round.
    pub usage: AgentUsage,
    /// The same time and usage by phase, in order.
    pub phases: Vec<PhaseCost>,
}

/// Where a round stands, with what is known there.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum RoundPhase {
    Profiling,
    Proposing {
        try_no: u32,
        errors: Vec<String>,
    },
    Implementing {
        hypothesis: Box<Hypothesis>,
        retry: u32,
        variant: u32,
        repair: Option<(Candidate, Gate)>,
        review: Option<Box<Review>>,
    },
    /// `set` is what its gate will check; `proven` is the verdict, if the review is after the duel.
    Reviewing {
        hypothesis: Box<Hypothesis>,
        retry: u32,
        candidate: Candidate,
        set: CaseSet,
        proven: Option<Verdict>,
    },
    Choosing {
        hypothesis: Box<Hypothesis>,
    },
    /// `proven` is the verdict of a duel that needs no further one: only correctness is still open.
    Gating {
        hypothesis: Box<Hypothesis>,
        retry: u32,
        candidate: Candidate,
        set: CaseSet,
        proven: Option<Verdict>,
    },
    /// `set` is what the candidate passed its gate on; `None` if it is the incumbent itself.
    Tuning {
        hypothesis: Box<Hypothesis>,
        retry: u32,
        candidate: Candidate,
        set: Option<CaseSet>,
        rung: Rung,
    },
    Measuring(RunningDuel),
    Checking(RunningCheck),
    Settling {
        verdict: Verdict,
    },
    Learning {
        verdict: Verdict,
    },
}

/// A duel under way.
#[derive(Clone, Debug)]
pub struct RunningDuel {
    /// What the candidate implements.
    pub hypothesis: Box<Hypothesis>,
    /// The candidate.
    pub candidate: Candidate,
    /// The set of cases.
    pub set: CaseSet,
    /// What it has shown so far.
    pub duel: Box<Duel>,
    /// Blocks taken, the warm-up included.
    pub blocks: u32,
    /// Time spent on it.
    pub spent_ms: u64,
    /// The layouts of a proven candidate, while they are tried.
    pub layouts: Option<LayoutTrial>,
}

/// A proven candidate whose other layouts are tried.
#[derive(Clone, Debug)]
pub struct LayoutTrial {
    /// The verdict, if they agree.
    pub verdict: Verdict,
    /// The clock that proved it.
    pub clock: Clock,
    /// The smallest log speedup worth keeping.
    pub effect_ln: f64,
    /// Log speedups of the layouts so far; the first is the proven one.
    pub ln_speedups: Vec<f64>,
}

/// What a proven candidate showed in several layouts of its code.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LayoutResults {
    /// By this clock.
    pub clock: Clock,
    /// The speedup in each layout; the first is the proven one.
    pub ratios: Vec<f64>,
}

impl RunningDuel {
    /// The duel's name in a round.
    pub(super) fn name(&self, round: u32) -> DuelName {
        match self.layout() {
            0 => DuelName::Round { round, set: self.set },
            variant => DuelName::Layout { round, set: self.set, variant },
        }
    }

    /// How long the processes of the next block must have lived before it.
    pub(super) fn age_due(&self) -> ProcessAge {
        match self.layouts.is_none() && verdict::aging_due(&self.duel) {
            true => ProcessAge::Aged,
            false => ProcessAge::Usual,
        }
    }

    /// Which layout of the candidate is measured; 0 is the usual one.
    pub(super) fn layout(&self) -> u32 {
        let tried = self.layouts.as_ref().map_or(0, |trial| trial.ln_speedups.len());
        u32::try_from(tried).unwrap_or(u32::MAX)
    }
}

/// An undecided duel.
#[derive(Clone, Debug)]
pub(super) struct UndecidedDuel {
    pub(super) set: CaseSet,
    pub(super) duel: Box<Duel>,
}

impl RoundPhase {
    /// Its name for screens.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Profiling => "profile",
            Self::Proposing { .. } => "propose",
            Self::Implementing { .. } => "implement",
            Self::Choosing { .. } => "choose",
            Self::Reviewing { .. } => "review",
            Self::Gating { .. } => "gate",
            Self::Tuning { .. } => "tune",
            Self::Measuring(_) => "measure",
            Self::Checking(_) => "check against the original",
            Self::Settling { .. } => "settle",
            Self::Learning { .. } => "learn",
        }
    }
}

/// A settled round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoundSummary {
    /// Its number, from 1.
    pub number: u32,
    /// The commit it was measured against.
    pub parent: String,
    /// The item of the agenda that it was for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// Whether the agent said that nothing is left to try for that item.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gave_up: bool,
    /// Why the agent gave up a change that the gate had refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub given_up: Option<String>,
    /// The hypothesis, if one was accepted.
    pub hypothesis: Option<Box<Hypothesis>>,
    /// The implementations, if there were several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variants: Vec<ImplementedVariant>,
    /// Their results before one was chosen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tryouts: Vec<VariantTrial>,
    /// Which of them continued.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chosen: Option<u32>,
    /// The candidate, if there was one.
    pub candidate: Option<Candidate>,
    /// The role that was asked, and why, if there are roles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub route: Option<Box<RoutingDecision>>,
    /// The reviews of its candidates.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reviews: Vec<Review>,
    /// The last result of the gate.
    pub gate: Option<Gate>,
    /// What the audit of the last candidate found.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<AuditFinding>,
    /// The work of the last candidate, if it was counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<Box<WorkCounts>>,
    /// How far the candidate was from the reference, under a contract.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<CaseTensorError>,
    /// What tuning showed, if there was any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tuned: Option<Box<LadderResult>>,
    /// What the quick set showed, if it was measured on its own.
    pub quick: Option<Comparison>,
    /// What the deciding duel showed.
    pub comparison: Option<Comparison>,
    /// What an undecided duel lacks for a keep.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<MissingProof>,
    /// What other layouts of the same code showed, if they were tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layouts: Option<LayoutResults>,
    /// What the original against the candidate showed, if that was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<OriginalCheck>,
    /// What became of it.
    pub verdict: Verdict,
    /// What it taught.
    pub lesson: Lesson,
    /// Proposals that were refused, in words.
    pub refused: Vec<String>,
    /// Repair attempts.
    pub retries: u32,
    /// Time of work.
    pub spent_ms: u64,
    /// What the host did to its readings.
    #[serde(default, skip_serializing_if = "HostTally::is_default")]
    pub host: HostTally,
    /// What the agent used.
    pub usage: AgentUsage,
    /// The same time and usage by phase, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<PhaseCost>,
    /// When it was settled, by the host's clock.
    pub at_ms: i64,
    /// The speedup over the original up to and including this round: as last measured directly,
    /// times the gains kept since then.
    pub cumulative_ratio: f64,
    /// How many gains that is.
    #[serde(default)]
    pub unchecked_keeps: u32,
}

impl RoundState {
    /// A round before its first step.
    pub(super) fn new(number: u32, parent: String, stage: RoundPhase) -> Self {
        Self {
            number,
            parent,
            phase: stage,
            task: None,
            gave_up: false,
            given_up: None,
            hypothesis: None,
            variants: Vec::new(),
            tryouts: Vec::new(),
            chosen: None,
            candidate: None,
            route: None,
            reviews: Vec::new(),
            gate: None,
            findings: Vec::new(),
            stale_memory: Vec::new(),
            work: None,
            mutants: None,
            errors: Vec::new(),
            failed_trees: Vec::new(),
            tuned: None,
            tuned_ms: 0,
            quick: None,
            comparison: None,
            claims: ClaimTrack::default(),
            missing: None,
            layouts: None,
            check: None,
            refused: Vec::new(),
            retries: 0,
            spent_ms: 0,
            host: HostTally::default(),
            usage: AgentUsage::default(),
            phases: Vec::new(),
        }
    }

    /// What its duel has shown.
    pub fn shown(&self) -> Option<&Comparison> {
        self.comparison.as_ref().or(self.quick.as_ref())
    }

    /// A block of its duel failed by its own fault.
    pub(super) fn fail_block(&mut self, gate: &Gate) -> EventResult {
        let verdict = verdict::judge_gate(gate, false)
            .ok_or_else(|| "a failed block needs a failed gate".to_owned())?;
        self.gate = Some(gate.clone());
        self.phase = RoundPhase::Settling { verdict };
        Ok(())
    }

    /// Whether the gate is the last thing before a keep.
    pub fn is_before_keep(&self) -> bool {
        matches!(&self.phase, RoundPhase::Gating { proven: Some(verdict), .. } if verdict.keeps())
    }

    /// The round as it would be if it were settled now.
    pub fn preview(&self, verdict: Verdict) -> RoundSummary {
        self.clone().close(verdict, Lesson::default(), 0)
    }

    /// The settled round.
    pub(super) fn close(self, verdict: Verdict, lesson: Lesson, at_ms: i64) -> RoundSummary {
        RoundSummary {
            number: self.number,
            parent: self.parent,
            task: self.task,
            gave_up: self.gave_up,
            given_up: self.given_up,
            hypothesis: self.hypothesis,
            variants: self.variants,
            tryouts: self.tryouts,
            chosen: self.chosen,
            candidate: self.candidate,
            route: self.route,
            reviews: self.reviews,
            gate: self.gate,
            findings: self.findings,
            work: self.work,
            errors: self.errors,
            tuned: self.tuned,
            quick: self.quick,
            comparison: self.comparison,
            missing: self.missing,
            layouts: self.layouts,
            check: self.check,
            verdict,
            lesson,
            refused: self.refused,
            retries: self.retries,
            spent_ms: self.spent_ms,
            host: self.host,
            usage: self.usage,
            phases: self.phases,
            at_ms,
            cumulative_ratio: 1.0,
            unchecked_keeps: 0,
        }
    }
}

impl RoundSummary {
    /// What its duel showed.
    pub fn shown(&self) -> Option<&Comparison> {
        self.comparison.as_ref().or(self.quick.as_ref())
    }

    /// The speedup over the parent, if it was measured.
    pub fn ratio(&self) -> Option<f64> {
        self.shown().map(|c| c.overall.ratio)
    }

    /// The speedup over the original, if it was measured: by a check, or because the original was
    /// the parent.
    pub(super) fn checked_ratio(&self, base: &str) -> Option<f64> {
        let checked = self.check.as_ref().map(|check| check.comparison.overall.ratio);
        checked.or_else(|| self.ratio().filter(|_| self.parent == base))
    }

    /// The second clock, if it decided that the candidate is not faster.
    pub(crate) fn disproved_by(&self) -> Option<&SecondClock> {
        let not_faster = Verdict::Drop { reason: DropReason::NotFaster };
        self.shown().filter(|_| self.verdict == not_faster)?.disproved_by()
    }

    /// The verdict in words: which clock decided, if it was not the metric, and which condition an
    /// undecided one does not meet.
    pub(crate) fn reason(&self, name: &dyn Fn(usize) -> String) -> String {
        let mut why = self.verdict.describe(name);
        if let Some(other) = self.disproved_by() {
            why += &format!(" by {}, {}", other.clock.name(), other.overall.describe());
        }
        match (&self.missing, &self.given_up) {
            (Some(missing), _) => format!("{why}: {}", missing.describe(name)),
            (None, Some(words)) => {
                // Agents that answer in a form begin with the same words.
                let words = words.strip_prefix("the agent gave up: ").unwrap_or(words);
                format!("{why}; the agent gave up: {words}")
            }
            (None, None) => why,
        }
    }

    /// Why it ended as it did, in words; `name` gives the name of a case. A keep says that a person
    /// should look at it, if so.
    pub fn why(&self, name: &dyn Fn(usize) -> String) -> String {
        let why = self.reason(name);
        match suspicious_note(&self.findings).filter(|_| self.verdict.keeps()) {
            Some(note) => format!("{why}; {note}"),
            None => why,
        }
    }

    /// One line: the title of the hypothesis, or that there is none.
    pub fn title(&self) -> &str {
        self.hypothesis.as_ref().map_or("no hypothesis", |hypothesis| &hypothesis.title)
    }
}
