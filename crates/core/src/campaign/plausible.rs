//! What a campaign knows about the bounds of a gain: the roofline of its cases, and the profile.

use super::Campaign;
use super::round::{RoundPhase, RoundState, RoundSummary};
use crate::comparison::{ClaimCheck, Comparison};
use crate::duel::{CaseClaim, fixed_calls};
use crate::hypothesis::Candidate;
use crate::integrity::{
    self, AuditFinding, GainDoubt, GainProof, ImplausibleReason, WorkCounts, allowed_round,
    assess_gain, assess_time,
};
use crate::measurement::{Block, Sample};
use crate::verdict::{DropReason, ImplausibleFigure, ProofState, StaleMemoryRuling, Verdict};
use crate::{score, verdict};
use karve_numerics::case::CaseSet;
use karve_numerics::roof::CallDemand;
use karve_numerics::stats;

/// The names of agents that are part of karve: its strategy, and the recording of the demo.
const OWN_AGENTS: [&str; 2] = ["builtin", "scripted"];

/// What the last gate of a candidate found out so far, besides its result.
#[derive(Clone, Debug, Default)]
pub struct KeepEvidence {
    /// What the audit found.
    pub findings: Vec<AuditFinding>,
    /// Blocks with overwritten memory.
    pub stale_memory: Vec<Block>,
    /// Its work, if it was counted.
    pub work: Option<Box<WorkCounts>>,
}

/// Why the work of a candidate is counted before a keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CountingReason {
    /// It could prove the gain, and nothing else does.
    Proof,
    /// The candidate has a buffer that could hold results.
    Buffer,
    /// Results could also be where the audit does not look, such as in the caller's memory.
    Sample,
}

impl Campaign {
    /// The least time of one call on a case, in seconds, if known. A floor that the unchanged
    /// kernel is already below says nothing: then the work or the peak is wrong.
    pub fn floor_s(&self, case: usize) -> Option<f64> {
        let floor = self.baseline()?.roof.as_ref()?.floor_s(self.demand(case)?);
        let usual = self.seconds(case, *self.baseline_values().get(&case)?)?;
        assess_time(usual, floor).ok()?;
        floor
    }

    /// The least work of one call on a case.
    pub fn demand(&self, case: usize) -> Option<CallDemand> {
        self.charter()?.demand(&self.case(case)?)
    }

    fn seconds(&self, case: usize, value: f64) -> Option<f64> {
        score::implied_seconds(&self.charter()?.metric, value, &self.case(case)?)
    }

    /// What a self-reported metric claims about the time of a run, case by case: the calls that
    /// karve asked for, or those that the baseline shows, or one.
    pub(super) fn claims(&self) -> Vec<CaseClaim> {
        let reported =
            self.charter().filter(|c| c.contract.is_none() && c.metric.own_clock().is_none());
        let (Some(charter), Some(baseline)) = (reported, self.baseline()) else {
            return Vec::new();
        };
        let median_of = |case: usize, of: &dyn Fn(&Sample) -> f64| {
            let readings = baseline.readings.iter().filter(|reading| reading.case == case);
            let values: Vec<f64> = readings.map(|reading| of(&reading.sample)).collect();
            stats::median(&values)
        };
        let run_s = |case: usize| median_of(case, &|sample| sample.wall_us as f64 * 1e-6);
        let call_s = |case: usize| self.seconds(case, median_of(case, &|sample| sample.value)?);
        let cases: Vec<usize> = (0..charter.cases.len()).collect();
        let times: Option<Vec<(f64, f64)>> =
            cases.iter().map(|case| Some((call_s(*case)?, run_s(*case)?))).collect();
        let fixed = times.as_deref().and_then(fixed_calls);
        let claim = |case: &usize| {
            let asked = baseline.repeats.iter().find(|of| of.case == *case);
            let calls = asked.map(|of| f64::from(of.calls)).or(fixed).unwrap_or(1.0);
            // A benchmark may report the time of all calls together.
            let fits = calls * call_s(*case)? <= run_s(*case)?;
            let unit_s = self.seconds(*case, 1.0)?;
            Some(CaseClaim { case: *case, unit_s, calls: if fits { calls } else { 1.0 } })
        };
        cases.iter().filter_map(claim).collect()
    }

    /// The verdict of a duel, unless its result is implausible.
    pub(super) fn believed(
        &self,
        verdict: Verdict,
        parent: &str,
        comparison: &Comparison,
    ) -> Verdict {
        if !verdict.keeps() {
            return verdict;
        }
        let mut doubts = Vec::new();
        for case in &comparison.cases {
            let mut doubt = |why: ImplausibleReason, certain: bool| {
                doubts.push(ImplausibleFigure {
                    case: case.case,
                    name: self.case_name(case.case),
                    why,
                    certain,
                });
            };
            if let (Some(time_s), Some(floor_s)) =
                (self.seconds(case.case, case.candidate_median), self.floor_s(case.case))
                && let Err(why) = assess_time(time_s, Some(floor_s))
            {
                // Without a contract it is unknown how many threads the peak is for.
                let knows = self.charter().is_some_and(|c| c.contract.is_some());
                doubt(why, knows && why.is_certain());
            }
            let ratio = case.estimate.low.unwrap_or(case.estimate.ratio);
            if let Err(why) = assess_gain(ratio, self.share(parent, case.case)) {
                doubt(why, why.is_certain());
            }
        }
        verdict::judge_doubts(verdict, &doubts)
    }

    /// What shows that candidates do the work, whatever they are.
    pub fn standing_proof(&self) -> Option<GainProof> {
        let contract = self.charter().is_some_and(|charter| charter.contract.is_some());
        contract.then_some(GainProof::Contract)
    }

    /// What settled the doubts about a kept round; empty if nothing did.
    pub fn settled_by(&self, round: &RoundSummary) -> Vec<GainProof> {
        let candidate = round.candidate.as_ref();
        let proofs = candidate.map_or_else(Vec::new, |candidate| self.proofs(candidate));
        // Work is counted where a gain is doubted, and without a proof it is not kept.
        match proofs.is_empty() && round.work.is_some() && round.verdict.keeps() {
            true => vec![GainProof::Work],
            false => proofs,
        }
    }

    /// What shows that this candidate does the work.
    fn proofs(&self, candidate: &Candidate) -> Vec<GainProof> {
        let allowed = self.answers().iter().filter_map(|answer| allowed_round(answer));
        let allows = |round: u32| {
            let mut rounds = self.rounds.iter().filter(|summary| summary.number == round);
            rounds.any(|summary| {
                let of = summary.candidate.as_ref().map(|candidate| &candidate.tree);
                is_unproven(&summary.verdict) && of == Some(&candidate.tree)
            })
        };
        let person = allowed.into_iter().any(allows).then_some(GainProof::Person);
        let own = self.agents().iter().all(|agent| OWN_AGENTS.contains(agent));
        let own = own.then_some(GainProof::OwnStrategy);
        self.standing_proof().into_iter().chain(own).chain(person).collect()
    }

    /// The verdict of a candidate that is about to be kept: what is too good needs a proof.
    pub(super) fn proven(
        &self,
        round: &RoundState,
        candidate: &Candidate,
        verdict: Verdict,
    ) -> Verdict {
        let mut doubts = self.doubts(round, &verdict);
        doubts.extend(cache_in(round).filter(|_| doubts.is_empty() && verdict.keeps()));
        let mut state = ProofState { proofs: self.proofs(candidate), work: None };
        if let Some(counts) = &round.work {
            state.work = integrity::objection(counts, &|case| self.call_s(round, case));
            if state.work.is_none() {
                state.proofs.push(GainProof::Work);
            }
        }
        verdict::judge_proof(verdict, round.number, doubts, state).noting(round.mutants)
    }

    /// Why a keep needs a proof, before any proof.
    fn doubts(&self, round: &RoundState, verdict: &Verdict) -> Vec<GainDoubt> {
        let mut doubts = verdict::find_doubts(verdict, &round.findings, round.shown());
        doubts.extend(self.stale_doubt(round).filter(|_| verdict.keeps()));
        let is_clock = |doubt: &GainDoubt| matches!(doubt, GainDoubt::Clock { .. });
        if verdict.keeps() && !doubts.iter().any(is_clock) {
            doubts.extend(counted_doubt(round));
        }
        doubts.extend(calls_doubt(round).filter(|_| verdict.keeps()));
        doubts
    }

    /// Whether bugs must be planted in a candidate that passed its last gate: it would be the first
    /// keep, and without a contract only the project's tests say that it is right.
    pub fn mutants_due(&self, evidence: &KeepEvidence) -> bool {
        let own_tests = self.charter().is_some_and(|charter| charter.contract.is_none());
        let Some((round, candidate, verdict)) = self.about_to_keep(evidence) else {
            return false;
        };
        let first = self.lineage.kept().is_empty();
        own_tests && first && self.proven(&round, candidate, verdict.clone()).keeps()
    }

    /// Why the work of a candidate that passed its last gate is counted, if it is.
    pub fn work_due(&self, evidence: &KeepEvidence) -> Option<CountingReason> {
        let (round, candidate, verdict) = self.about_to_keep(evidence)?;
        let doubts = self.doubts(&round, verdict);
        let mut proofs = self.proofs(candidate);
        let open = integrity::remaining(doubts.clone(), &proofs);
        if open.is_empty() {
            let compiled = candidate.files.iter().any(|file| is_compiled(file));
            let why = match integrity::buffers_in(&round.findings).next() {
                Some(_) => CountingReason::Buffer,
                None => CountingReason::Sample,
            };
            return (compiled && proofs.is_empty()).then_some(why);
        }
        proofs.push(GainProof::Work);
        integrity::remaining(doubts, &proofs).is_empty().then_some(CountingReason::Proof)
    }

    /// Whether a candidate that passed its last gate must show its gain with overwritten memory: it
    /// may still be kept, and nothing but the project's own benchmark says that it does the work.
    pub fn stale_memory_due(&self, evidence: &KeepEvidence) -> bool {
        let Some((round, candidate, verdict)) = self.about_to_keep(evidence) else {
            return false;
        };
        let open = integrity::remaining(self.doubts(&round, verdict), &[GainProof::Work]);
        self.proofs(candidate).is_empty() && open.is_empty()
    }

    /// What blocks with overwritten memory show so far about a candidate that passed its last gate.
    pub fn stale_memory_ruling(&self, evidence: &KeepEvidence) -> StaleMemoryRuling {
        let round = self.about_to_keep(evidence).map(|(round, ..)| round);
        let saved = round.and_then(|round| self.saved_shares(&round));
        saved.map_or(StaleMemoryRuling::Independent, |saved| verdict::judge_stale_memory(&saved))
    }

    /// Why a candidate needs a proof after its blocks with overwritten memory, if it does.
    fn stale_doubt(&self, round: &RoundState) -> Option<GainDoubt> {
        let saved = self.saved_shares(round)?;
        let depends = verdict::judge_stale_memory(&saved) == StaleMemoryRuling::Dependent;
        let (ratio, left) = (round.shown()?.overall.ratio, stats::median(&saved)?);
        depends.then_some(GainDoubt::StaleMemory { ratio, left })
    }

    /// What each block with overwritten memory saves, as a share of what the candidate saved in its
    /// duel; `None` if that saved nothing. Each case counts in units of the incumbent's time.
    fn saved_shares(&self, round: &RoundState) -> Option<Vec<f64>> {
        let (metric, shown) = (&self.charter()?.metric, round.shown()?);
        let time = |value: f64| metric.ln_speedup(value, 1.0).exp();
        let usual: Vec<f64> = shown.cases.iter().map(|case| time(case.parent_median)).collect();
        let saved: f64 =
            shown.cases.iter().zip(&usual).map(|(c, t)| 1.0 - time(c.candidate_median) / t).sum();
        let share = |block: &Block| {
            let pairs = block.pairs.iter().zip(&usual);
            let here = pairs.map(|(p, t)| (time(p.parent.value) - time(p.candidate.value)) / t);
            here.sum::<f64>() / saved
        };
        (saved > 0.0).then(|| round.stale_memory.iter().map(share).collect())
    }

    /// The candidate whose last gate is due and found out this, and the verdict of its duel.
    fn about_to_keep(&self, evidence: &KeepEvidence) -> Option<(RoundState, &Candidate, &Verdict)> {
        let round = self.current_round()?;
        let RoundPhase::Gating { candidate, proven: Some(verdict), .. } = &round.phase else {
            return None;
        };
        let mut round = round.clone();
        round.findings.clone_from(&evidence.findings);
        round.stale_memory.clone_from(&evidence.stale_memory);
        round.work.clone_from(&evidence.work);
        Some((round, candidate, verdict))
    }

    /// Seconds of one call of the candidate on a case, by what the benchmark reports.
    fn call_s(&self, round: &RoundState, case: usize) -> Option<f64> {
        let mut cases = round.shown()?.cases.iter();
        self.seconds(case, cases.find(|of| of.case == case)?.candidate_median)
    }

    /// The share of the parent's time on a case that is spent in what a candidate may change, if
    /// its profile reported it.
    fn share(&self, parent: &str, case: usize) -> Option<f64> {
        let profiled = self.cases_of(CaseSet::Full).into_iter().next()?;
        let profile = self.profile()?;
        (profile.commit == parent && profiled == case).then_some(profile.share)?
    }
}

/// Whether a candidate was not kept for want of a proof.
pub(super) fn is_unproven(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Drop { reason: DropReason::Unproven { .. } })
}

/// Whether karve's own clock contradicts a gain, by the calls that were counted in a run.
fn counted_doubt(round: &RoundState) -> Option<GainDoubt> {
    let work = round.work.as_ref()?;
    let ClaimCheck { claimed_s, seen_s } = round.claims.counted(&|case| work.calls_of(case))?;
    Some(GainDoubt::Clock { claimed_s, seen_s })
}

/// Whether the candidate has fewer calls than the benchmark makes.
fn calls_doubt(round: &RoundState) -> Option<GainDoubt> {
    let ratio = round.shown()?.overall.ratio;
    let [parent, candidate] = round.work.as_ref()?.skipped_calls(ratio)?;
    Some(GainDoubt::Calls { parent, candidate })
}

/// Results of the candidate that outlive a call, by its counted work: in a buffer of its own, or
/// in memory of its caller. Where work cannot be counted, any buffer could hold them.
fn cache_in(round: &RoundState) -> Option<GainDoubt> {
    let mut buffers = integrity::buffers_in(&round.findings);
    if let Some(found) = buffers.find(|found| !is_compiled(&found.file)) {
        let finding = format!("{}, and work is counted only in C, C++ and Rust", found.describe());
        return Some(GainDoubt::State { finding });
    }
    let unequal = round.work.as_ref()?.unequal_calls(round.shown()?.overall.ratio)?;
    let finding = match integrity::buffers_in(&round.findings).next() {
        Some(found) => format!("{}, and {unequal}", found.describe()),
        None => unequal,
    };
    Some(GainDoubt::State { finding })
}

/// Whether a file is in a language whose functions callgrind can count.
fn is_compiled(file: &str) -> bool {
    let extension = file.rsplit_once('.').map_or("", |(_, extension)| extension);
    ["c", "h", "cc", "cpp", "cxx", "hh", "hpp", "rs"].contains(&extension)
}
