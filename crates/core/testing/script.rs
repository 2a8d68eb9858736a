//! A driver that runs a script: every result depends on the step alone, as after a crash.

use crate::campaign::{
    Baseline, CONTROL_SLOWDOWN, Campaign, ControlKind, DuelName, Event, ImplementStep, LOG_VERSION,
    MeasureStep, PlantedBug, Preparation, ProposalRefusal, Record, Step,
};
use crate::charter::Charter;
use crate::hypothesis::tests::hypothesis;
use crate::hypothesis::{Candidate, Hypothesis};
use crate::integrity::{AuditFinding, MutantCheck, WorkCounts};
use crate::knowledge::KnownEntry;
use crate::measurement::{
    BaselineReading, Block, DiscardReason, Environment, FirstArm, Gate, Pair, Sample,
};
use crate::profile::{Bottleneck, KernelProfile, Profile, ProfileDepth};
use crate::roles::ReviewAdvice;
use crate::sampling;
use crate::spending::AgentUsage;
use crate::testing::charter;
use karve_numerics::case::CaseSet;
use karve_numerics::roof::Roof;
use karve_numerics::stats::DrawRng;
use std::collections::BTreeMap;

pub(crate) use super::gates::{ScriptedAttempt, build_failed, wrong_result};

/// Events of one play at most; a longer one does not end.
const EVENTS_MAX: usize = 30_000;
/// Seconds since 1970 of the first event, in milliseconds.
const START_MS: i64 = 1_700_000_000_000;

/// What the world, the agent and the kernels do.
#[derive(Clone, Debug)]
pub(crate) struct CampaignScript {
    pub(crate) charter: Charter,
    pub(crate) mutation_check_passed: bool,
    pub(crate) base_gate: Gate,
    pub(crate) peak_gflops: Option<f64>,
    pub(crate) roof: Option<Roof>,
    /// The share of the time that a profile names.
    pub(crate) share: Option<f64>,
    /// What a profile reads.
    pub(crate) kernels: Vec<KernelProfile>,
    /// What the library knows.
    pub(crate) known: Vec<KnownEntry>,
    /// Answers by round and try; beyond the end the agent has nothing left.
    pub(crate) rounds: Vec<Vec<ScriptedAnswer>>,
    /// Full width of the relative noise of a reading.
    pub(crate) noise: f64,
    /// Work of every event.
    pub(crate) spent_ms: u64,
    /// How far the host's clock advances from event to event; it may go back.
    pub(crate) tick_ms: i64,
    /// The cost of every turn of the agent.
    pub(crate) usd: f64,
    pub(crate) advice: ReviewAdvice,
    /// How much faster a second build of the same commit is: 1 on a trustworthy host.
    pub(crate) copy_speed: f64,
    /// Speeds of baselines over the original; 0: not correct; negative: fails after a round.
    pub(crate) baselines: Vec<f64>,
    /// Whether only what is reported becomes shorter, but not the command.
    pub(crate) clock_lies: bool,
    /// The speedup that is left with overwritten memory, if a gate measures that.
    pub(crate) overwritten: Option<f64>,
    /// The work that every gate counts.
    pub(crate) work: Option<WorkCounts>,
    /// What the audit finds in every candidate.
    pub(crate) findings: Vec<AuditFinding>,
    /// What every gate says about planted bugs.
    pub(crate) mutants: Option<MutantCheck>,
}

/// What the agent answers when it is asked for a hypothesis.
#[derive(Clone, Debug)]
pub(crate) enum ScriptedAnswer {
    Idea(ScriptedIdea),
    Unreadable,
    AgentFails,
    Exhausted,
}

/// A hypothesis, what its candidates are, and how fast they are.
#[derive(Clone, Debug)]
pub(crate) struct ScriptedIdea {
    pub(crate) hypothesis: Hypothesis,
    /// Speed over the base by case; the last one counts for all further cases.
    pub(crate) speed: Vec<f64>,
    /// By retry; the last one counts for all further retries.
    pub(crate) attempts: Vec<ScriptedAttempt>,
    /// The block that cannot be read, if there is one.
    pub(crate) fails_at: Option<u32>,
    /// By how much it is slower as the incumbent of later rounds.
    pub(crate) asleep: f64,
    /// By how much each other layout of the code is faster than the usual one.
    pub(crate) layouts: [f64; 2],
    /// By how much its best setting is faster than the untuned candidate, rung by rung; it declares
    /// no knobs if there is none.
    pub(crate) tuned: Vec<f64>,
    /// The second and further implementations, if several are asked for: how fast each is relative
    /// to the first, and what it is.
    pub(crate) variants: Vec<(f64, ScriptedAttempt)>,
}

/// An idea that no other number is a duplicate of.
pub(crate) fn idea(number: u32, speed: &[f64]) -> ScriptedIdea {
    ScriptedIdea {
        hypothesis: hypothesis(&format!("Try change {number}"), "I expect it to help"),
        speed: speed.to_vec(),
        attempts: vec![ScriptedAttempt::passes()],
        fails_at: None,
        asleep: 1.0,
        layouts: [1.0; 2],
        tuned: Vec::new(),
        variants: Vec::new(),
    }
}

/// A script of one idea per round, with these speeds over the base.
pub(crate) fn script(speeds: &[f64]) -> CampaignScript {
    let ideas = (1..).zip(speeds).map(|(number, speed)| idea(number, &[*speed]));
    let mut charter = charter();
    charter.policy.accept.blocks_max = 60;
    CampaignScript {
        charter,
        mutation_check_passed: true,
        base_gate: Gate::Passed,
        peak_gflops: None,
        roof: None,
        share: None,
        kernels: Vec::new(),
        known: Vec::new(),
        rounds: ideas.map(|idea| vec![ScriptedAnswer::Idea(idea)]).collect(),
        noise: 0.004,
        spent_ms: 100,
        tick_ms: 1_000,
        usd: 0.25,
        advice: ReviewAdvice::Agree,
        copy_speed: 1.0,
        baselines: Vec::new(),
        clock_lies: false,
        overwritten: None,
        work: None,
        findings: Vec::new(),
        mutants: None,
    }
}

/// Plays a script from the first event to the end.
pub(crate) fn play(script: &CampaignScript) -> (Campaign, Vec<Record>) {
    resume(script, &[])
}

/// Folds a log and continues the script to the end.
pub(crate) fn resume(script: &CampaignScript, log: &[Record]) -> (Campaign, Vec<Record>) {
    resume_until(script, log, &|_| false)
}

/// Plays a script until a step is due, which is not performed.
pub(crate) fn play_until(
    script: &CampaignScript,
    due: &dyn Fn(&Step) -> bool,
) -> (Campaign, Vec<Record>) {
    resume_until(script, &[], due)
}

pub(crate) fn resume_until(
    script: &CampaignScript,
    log: &[Record],
    due: &dyn Fn(&Step) -> bool,
) -> (Campaign, Vec<Record>) {
    let (mut campaign, mut log) = (fold(log), log.to_vec());
    while let Some(step) = campaign.next_step().filter(|step| !due(step)) {
        assert!(log.len() < EVENTS_MAX, "the campaign does not end");
        let event = campaign.cases_due().unwrap_or_else(|| script.answer(&step));
        let record = script.record(log.len(), event);
        campaign.record(&record).unwrap();
        log.push(record);
    }
    (campaign, log)
}

/// The campaign that a log makes.
pub(crate) fn fold(log: &[Record]) -> Campaign {
    let mut campaign = Campaign::new();
    for record in log {
        campaign.record(record).unwrap();
    }
    campaign
}

impl CampaignScript {
    /// An event as line `seq` of the log.
    pub(crate) fn record(&self, seq: usize, event: Event) -> Record {
        Record {
            v: LOG_VERSION,
            seq: seq as u64,
            at_ms: START_MS + self.tick_ms * seq as i64,
            spent_ms: self.spent_ms,
            by: None,
            event,
        }
    }

    /// What happens when this step is performed.
    pub(crate) fn answer(&self, step: &Step) -> Event {
        match step {
            Step::DefineTarget
            | Step::Prepare
            | Step::CheckMutations
            | Step::ReadTips
            | Step::MeasureBaseline => self.open(step),
            Step::Profile { round, commit, depth } => {
                Event::Profiled { round: *round, profile: self.profile(commit, *depth) }
            }
            Step::ProfileFinal { commit, depth } => {
                Event::FinalProfiled { profile: self.profile(commit, *depth) }
            }
            Step::Propose { round, try_no, .. } => self.propose(*round, *try_no),
            Step::Implement(step) => self.implement(step),
            Step::Choose(step) => self.choose(step),
            Step::Review(step) => super::reviewed(step, self.advice),
            Step::Gate { round, retry, candidate, set } => {
                let attempt = self.attempt_of(&candidate.commit, *retry);
                let gate = if *set == CaseSet::Quick { &attempt.quick } else { &attempt.full };
                let tuned = &self.idea_of(&candidate.commit).tuned;
                Event::Gated {
                    round: *round,
                    retry: *retry,
                    set: *set,
                    gate: gate.clone(),
                    same_artifact: attempt.same_artifact,
                    errors: Vec::new(),
                    findings: self.findings.clone(),
                    knobs: tuned.len() as u32,
                    stale_memory: super::gates::overwritten(self),
                    work: self.work.clone().map(Box::new),
                    mutants: self.mutants,
                }
            }
            Step::Tune(step) => self.tune(step),
            Step::Measure(step) => self.measure(step),
            Step::Settle { round, verdict, .. } => {
                Event::Settled { commit: None, round: *round, verdict: verdict.clone() }
            }
            Step::Learn { round } => super::learned(*round),
            Step::Finish { reason, stated } => stated.finished(reason),
        }
    }

    pub(crate) fn profile(&self, commit: &str, depth: ProfileDepth) -> Profile {
        Profile {
            assembly: None,
            report: None,
            commit: commit.to_owned(),
            depth,
            bottleneck: Bottleneck::Memory,
            digest: "memory bound".into(),
            artifact: None,
            skipped: None,
            share: self.share,
            kernels: self.kernels.clone(),
            diagnosis: None,
            notes: Vec::new(),
        }
    }

    fn open(&self, step: &Step) -> Event {
        match step {
            Step::DefineTarget => Event::TargetDefined { charter: Box::new(self.charter.clone()) },
            Step::Prepare => Event::Prepared(Preparation {
                base: "base".into(),
                base_tree: "t0".into(),
                harness_hash: "h0".into(),
                environment: Environment::default(),
                provenance: None,
                args: Vec::new(),
                task_findings: Vec::new(),
            }),
            Step::CheckMutations => Event::MutationChecked {
                mutation_check_passed: self.mutation_check_passed,
                strength: None,
                planted_bugs: vec![PlantedBug {
                    file: "kernel.c".into(),
                    bug: "a sign flipped".into(),
                    noticed: self.mutation_check_passed,
                    unbuilt: false,
                    detail: String::new(),
                }],
            },
            Step::ReadTips => Event::TipsRead { tips: Vec::new(), known: self.known.clone() },
            _ => Event::BaselineMeasured(self.baseline()),
        }
    }

    fn baseline(&self) -> Baseline {
        let reading = |index: usize| BaselineReading {
            case: index % self.charter.cases.len(),
            sample: self.sample(index % self.charter.cases.len(), "base", index as u64),
        };
        let n_readings = self.charter.cases.len() * sampling::BASELINE_READINGS as usize;
        Baseline {
            reference: None,
            gate: self.base_gate.clone(),
            readings: (0..n_readings).map(reading).collect(),
            peak: self
                .peak_gflops
                .map(|peak| ("peak_gflops".to_owned(), peak))
                .into_iter()
                .collect::<BTreeMap<_, _>>(),
            halved: Vec::new(),
            repeats: Vec::new(),
            raw: None,
            conditions: None,
            roof: self.roof.clone(),
            seeds: None,
        }
    }

    fn usage(&self) -> AgentUsage {
        AgentUsage { tokens: 10, usd: self.usd, estimated: false }
    }

    /// The answers to a round are at this index.
    fn index(&self, round: u32) -> usize {
        (round - self.charter.policy.first_round) as usize
    }

    fn propose(&self, round: u32, try_no: u32) -> Event {
        let answers = self.rounds.get(self.index(round));
        let answer = answers.and_then(|answers| answers.get(try_no as usize - 1));
        let usage = self.usage();
        let refusal = match answer {
            Some(ScriptedAnswer::Idea(idea)) => {
                return Event::Proposed {
                    round,
                    try_no,
                    hypothesis: Box::new(idea.hypothesis.clone()),
                    usage,
                    session_log: None,
                    route: None,
                };
            }
            Some(ScriptedAnswer::Unreadable) => {
                ProposalRefusal::Unreadable { errors: vec!["no title".into()] }
            }
            Some(ScriptedAnswer::AgentFails) => {
                ProposalRefusal::AgentFailed { why: "exit code 1".into() }
            }
            Some(ScriptedAnswer::Exhausted) | None => {
                ProposalRefusal::Exhausted { why: "no ideas".into() }
            }
        };
        Event::ProposalRefused { round, try_no, refusal, usage, session_log: None, route: None }
    }

    fn implement(&self, step: &ImplementStep) -> Event {
        let (round, retry, usage) = (step.round, step.retry, self.usage());
        let answers = &self.rounds[self.index(round)];
        let place = answers.iter().position(|answer| match answer {
            ScriptedAnswer::Idea(idea) => idea.hypothesis == *step.hypothesis,
            _ => false,
        });
        let commit = match step.variant {
            0 => format!("r{round}.{}.{retry}", place.unwrap()),
            variant => format!("v{round}.{}.{retry}.{variant}", place.unwrap()),
        };
        let variant = step.variant;
        match &self.attempt_of(&commit, retry).tree {
            Some(tree) => Event::Implemented {
                round,
                retry,
                variant,
                candidate: Candidate {
                    tree: match tree.as_str() {
                        "" => format!("t-{commit}"),
                        given => given.to_owned(),
                    },
                    commit,
                    files: vec!["kernel.c".into()],
                    patch: "p".into(),
                    out_of_scope: Vec::new(),
                    whole: None,
                    summary: "done".into(),
                    parts: Vec::new(),
                },
                usage,
                session_log: None,
            },
            None => Event::NotImplemented {
                round,
                retry,
                variant,
                why: "gave up".into(),
                usage,
                session_log: None,
            },
        }
    }

    fn measure(&self, step: &MeasureStep) -> Event {
        let fails_at = match step.duel {
            DuelName::Round { .. } => self.idea_of(&step.candidate).fails_at,
            DuelName::Layout { .. }
            | DuelName::Control(_)
            | DuelName::Original { .. }
            | DuelName::Final => None,
            DuelName::Baseline { baseline, after } => (-1e9 * f64::from(after)..=0.0)
                .contains(&self.baselines[baseline as usize])
                .then_some(0),
        };
        if fails_at == Some(step.block) {
            return Event::BlockFailed {
                duel: step.duel,
                gate: Gate::TimedOut { what: "bench".into() },
                raw: None,
            };
        }
        let other = match step.duel {
            DuelName::Control(control) => control.after * 10 + control.attempt,
            DuelName::Layout { variant, .. } => variant,
            DuelName::Baseline { baseline, after } => 50_000 + 100 * after + baseline,
            DuelName::Round { .. } | DuelName::Original { .. } | DuelName::Final => 0,
        };
        let seed = u64::from(step.block) + 1_000 * (1 + u64::from(other));
        let factor = match step.duel {
            DuelName::Layout { variant, .. } => {
                self.idea_of(&step.candidate).layouts[variant as usize - 1]
            }
            DuelName::Control(control) => match control.kind {
                ControlKind::Same => self.copy_speed,
                ControlKind::Slower => 1.0 / CONTROL_SLOWDOWN,
            },
            DuelName::Baseline { baseline, .. } => 1.0 / self.baselines[baseline as usize].abs(),
            DuelName::Round { .. } | DuelName::Original { .. } | DuelName::Final => 1.0,
        };
        let asleep = match step.duel {
            DuelName::Round { .. } if step.parent != "base" => self.idea_of(&step.parent).asleep,
            _ => 1.0,
        };
        let pair = |case: &usize| {
            let mut candidate = self.sample(*case, &step.candidate, seed + 1_000_000);
            let mut parent = self.sample(*case, &step.parent, seed);
            candidate.value /= factor;
            parent.value *= asleep;
            Pair { case: *case, first: FirstArm::Parent, parent, candidate, turns: None }
        };
        Event::BlockMeasured {
            duel: step.duel,
            block: Block {
                seed,
                pad: 0,
                pairs: step.cases.iter().map(pair).collect(),
                aged: 0,
                discarded: (step.block == 0).then_some(DiscardReason::WarmUp),
                conditions: None,
            },
            raw: None,
        }
    }

    fn sample(&self, case: usize, commit: &str, seed: u64) -> Sample {
        let salt = commit
            .bytes()
            .fold(case as u64, |sum, byte| sum.wrapping_mul(131).wrapping_add(byte.into()));
        let mut draws = DrawRng::new(salt ^ (seed << 20));
        let noise = 1.0 + self.noise * (draws.next_f64() - 0.5);
        let value = 10.0 * (case + 1) as f64 * noise / self.speed(commit, case);
        // One call, and what the command needs to start.
        let run_us = if self.clock_lies { 30_000 } else { 5_000 + (value * 1e3) as u64 };
        Sample { value, wall_us: run_us, cpu_us: run_us / 2, passes: None, snr_db: None }
    }

    pub(super) fn speed(&self, commit: &str, case: usize) -> f64 {
        if commit == "base" {
            return 1.0;
        }
        let idea = self.idea_of(commit);
        let tuned = super::tuning::rung_of(commit).map_or(1.0, |rung| idea.tuned[rung]);
        let beside =
            super::variants::variant_of(commit).map_or(1.0, |variant| idea.variants[variant - 1].0);
        idea.speed[case.min(idea.speed.len() - 1)] * tuned * beside
    }

    /// The idea that a commit implements, by the commit's name.
    pub(super) fn idea_of(&self, commit: &str) -> &ScriptedIdea {
        let numbers: Vec<usize> = commit[1..].split('.').map(|n| n.parse().unwrap()).collect();
        let ScriptedAnswer::Idea(idea) = &self.rounds[self.index(numbers[0] as u32)][numbers[1]]
        else {
            panic!("{commit} implements no idea");
        };
        idea
    }
}

impl ScriptedIdea {
    pub(super) fn attempt(&self, retry: u32) -> &ScriptedAttempt {
        &self.attempts[(retry as usize).min(self.attempts.len() - 1)]
    }
}
