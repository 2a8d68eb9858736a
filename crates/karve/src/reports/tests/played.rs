//! A campaign played from a script: every step is answered, every round goes as scripted.

use karve_core::campaign::{
    Baseline, Campaign, ControlKind, DuelName, Event, Lesson, MeasureStep, PlantedBug, Preparation,
    ProposalRefusal, Record, Step,
};
use karve_core::charter::{
    Better, Branch, Charter, ClockRule, Commands, DeviceRule, Limits, Metric, OutputRule,
    SandboxRule, Target, TuneRule, WorkMode,
};
use karve_core::hypothesis::{Candidate, Direction, Hypothesis};
use karve_core::measurement::{
    BaselineReading, Block, DiscardReason, Environment, FailureCategory, FirstArm, Gate, Pair,
    PassRates, Sample,
};
use karve_core::policy::Preset;
use karve_core::spending::AgentUsage;
use karve_numerics::case::{Case, CaseSet};
use karve_numerics::roof::{ByteRate, Roof};
use std::collections::BTreeMap;

/// The name of the hidden case: nothing else in the script contains it by chance.
pub(super) const HIDDEN: &str = "zebra";
/// What an agent writes that looks for it.
pub(super) const GUESSES: &str = "okapi/zebra/quagga";
/// 2026-01-01 00:00 UTC.
const START_MS: i64 = 1_767_225_600_000;

/// How a round goes.
#[derive(Clone)]
pub(super) enum Play {
    /// The candidate is measured, with this speedup over its parent.
    Measured(f64),
    /// The build fails with this log.
    BuildFailed(&'static str),
    /// The result is wrong on the hidden case, with this log.
    WrongOnHidden(&'static str),
    /// The agent replies with nonsense.
    Nonsense(&'static str),
}

/// The reply of an agent in a round.
#[derive(Clone)]
pub(super) struct Said {
    pub(super) title: &'static str,
    pub(super) mechanism: &'static str,
    pub(super) lesson: &'static str,
    pub(super) direction: Direction,
}

/// Two visible cases and a hidden one, times in milliseconds; no retries.
pub(super) fn charter() -> Charter {
    let case = |name: &str, size: u32, set| Case {
        name: name.into(),
        params: BTreeMap::from([("M".to_owned(), size.to_string())]),
        set,
        minor: false,
        halve: None,
    };
    let mut policy = Preset::Strict.policy();
    (policy.debug_retries, policy.proposal_tries) = (0, 1);
    Charter {
        contract: None,
        baselines: Vec::new(),
        name: "matmul_c_cpu_20260101".into(),
        created: "2026-01-01 00:00".into(),
        target: Target {
            project_skill: None,
            op: "matmul".into(),
            backend: "c".into(),
            language: "C".into(),
            device: "cpu".into(),
            goal: None,
            constraints: vec!["keep \"restrict\"".into()],
        },
        mode: WorkMode::Repo,
        editable: vec!["src/kernel.c".into()],
        commands: Commands {
            build: Some("make".into()),
            test: "./test {case}".into(),
            bench: "./bench {case}".into(),
            ..Commands::default()
        },
        output: OutputRule { format: "metric".into(), from_file: false, ..OutputRule::default() },
        metric: Metric {
            name: "time_ms".into(),
            unit: "ms".into(),
            work: Some("2*M*M*M".into()),
            bytes: Some("12*M*M".into()),
            clocks: ClockRule::Auto,
            ..Metric::default()
        },
        cases: vec![
            case("small", 512, CaseSet::Full),
            case("large", 1024, CaseSet::Full),
            case(HIDDEN, 700, CaseSet::Hidden),
        ],
        policy,
        limits: limits(),
        device: DeviceRule::default(),
        audit: Default::default(),
        sandbox: SandboxRule::default(),
        agent: "builtin".into(),
        agenda: None,
        asks: karve_core::charter::AskRule::default(),
        knobs: Vec::new(),
        tune: TuneRule::default(),
        branch: Branch::Named { name: "optimize/matmul".into() },
        workdir: String::new(),
        remote: None,
        seed: 1,
    }
}

fn limits() -> Limits {
    Limits {
        rounds: 4,
        wall_s: Some(3_600),
        command_s: 60,
        agent_s: 60,
        duel_s: 600,
        agent_usd: None,
        final_blocks: 10,
    }
}

/// One kept, one not faster, one that fails to build, one without a candidate.
pub(super) fn script() -> Vec<(Play, Said)> {
    let said = |title, mechanism, lesson, direction| Said { title, mechanism, lesson, direction };
    vec![
        (
            Play::Measured(1.25),
            said(
                "Vectorize the inner loop",
                "eight lanes are idle now",
                "The loop was bound by scalar work.",
                Direction::Pipeline,
            ),
        ),
        (
            Play::Measured(0.99),
            said(
                "Unroll by 4 | <b>bold</b>\n# not a heading",
                "fewer branches; seen on okapi/zebra/quagga too",
                "The compiler unrolled already.",
                Direction::Tile,
            ),
        ),
        (
            Play::BuildFailed(
                "error: | ```` |\n```\ncase okapi/zebra/quagga: \u{1b}[31mbad\u{1b}[0m token `x`",
            ),
            said(
                "Prefetch the next row",
                "loads are late",
                "__builtin_prefetch needs a constant.",
                Direction::Memory,
            ),
        ),
        (Play::Nonsense("the answer is not JSON | at line 1"), said("", "", "", Direction::Memory)),
    ]
}

/// Plays a script to its end.
pub(super) struct Player {
    campaign: Campaign,
    charter: Charter,
    script: Vec<(Play, Said)>,
    speeds: BTreeMap<String, f64>,
    /// Readings of the base, one per case.
    pub(super) base: [f64; 3],
    /// How much the readings vary.
    pub(super) wiggle: f64,
    /// The passes of the baseline and of every candidate, if the metric is made of them.
    pub(super) passes: Option<[PassRates; 2]>,
    /// How fast a control with more work is.
    pub(super) slower: f64,
    /// How fast the last layout of a candidate is, against its usual one.
    pub(super) last_layout: f64,
    /// How fast the final kernel is on the hidden case, against the others.
    pub(super) on_hidden: f64,
    records: Vec<Record>,
}

impl Player {
    pub(super) fn new(charter: Charter, script: Vec<(Play, Said)>) -> Self {
        Self {
            campaign: Campaign::new(),
            charter,
            script,
            speeds: BTreeMap::from([("base0000000000000000".to_owned(), 1.0)]),
            base: [8.0, 64.0, 20.0],
            passes: None,
            wiggle: 0.002,
            slower: 1.0,
            last_layout: 1.0,
            on_hidden: 1.0,
            records: Vec::new(),
        }
    }

    /// All records, from the first to the last.
    pub(super) fn play(mut self) -> Vec<Record> {
        while let Some(step) = self.campaign.next_step() {
            let event = self.answer(step);
            let seq = self.records.len() as u64;
            let record = Record {
                v: 1,
                seq,
                at_ms: START_MS + 60_000 * seq as i64,
                spent_ms: 1_500,
                by: None,
                event,
            };
            self.campaign.record(&record).unwrap();
            self.records.push(record);
        }
        self.records
    }

    fn round(&self, number: u32) -> (Play, Said) {
        self.script[(number - self.charter.policy.first_round) as usize].clone()
    }

    fn answer(&mut self, step: Step) -> Event {
        match step {
            Step::DefineTarget => Event::TargetDefined { charter: Box::new(self.charter.clone()) },
            Step::Prepare => prepared(),
            Step::CheckMutations => Event::MutationChecked {
                mutation_check_passed: true,
                strength: None,
                planted_bugs: vec![PlantedBug {
                    file: "src/kernel.c".into(),
                    bug: "a sign was flipped".into(),
                    noticed: true,
                    unbuilt: false,
                    detail: String::new(),
                }],
            },
            Step::ReadTips => Event::TipsRead { tips: Vec::new(), known: Vec::new() },
            Step::MeasureBaseline => self.baseline(),
            Step::Propose { round, try_no, .. } => self.propose(round, try_no),
            Step::Implement(step) => {
                let candidate = candidate(step.round);
                let (play, _) = self.round(step.round);
                if let Play::Measured(ratio) = play {
                    let speed = self.speeds[&step.parent] * ratio;
                    self.speeds.insert(candidate.commit.clone(), speed);
                }
                Event::Implemented {
                    round: step.round,
                    retry: step.retry,
                    variant: step.variant,
                    candidate,
                    usage: usage(),
                    session_log: None,
                }
            }
            Step::Gate { round, retry, set, .. } => Event::Gated {
                round,
                retry,
                set,
                gate: gate(&self.round(round).0),
                same_artifact: false,
                errors: Vec::new(),
                findings: Vec::new(),
                knobs: 0,
                stale_memory: Vec::new(),
                work: None,
                mutants: None,
            },
            Step::Measure(step) => self.block(&step),
            Step::Settle { round, verdict, .. } => Event::Settled { round, verdict, commit: None },
            Step::Learn { round } => Event::Learned {
                round,
                lesson: Lesson { text: self.round(round).1.lesson.into(), ..Lesson::default() },
                usage: AgentUsage::default(),
                session_log: None,
            },
            Step::Finish { reason, stated } => stated.finished(&reason),
            step => panic!("nothing here is profiled, reviewed, tuned or chosen: {step:?}"),
        }
    }

    fn value(&self, case: usize, speed: f64) -> f64 {
        match self.charter.metric.better {
            Better::Lower => self.base[case] / speed,
            Better::Higher => self.base[case] * speed,
        }
    }

    fn baseline(&self) -> Event {
        let cases = 0..self.charter.cases.len();
        let readings = cases.map(|case| BaselineReading { case, sample: self.sample(case, 1.0) });
        Event::BaselineMeasured(Baseline {
            reference: None,
            gate: Gate::Passed,
            readings: readings.collect(),
            peak: BTreeMap::from([("peak_gflops".to_owned(), 100.0)]),
            halved: Vec::new(),
            repeats: Vec::new(),
            raw: None,
            conditions: None,
            roof: Some(Roof {
                flops: Some(1e11),
                rates: vec![ByteRate { bytes: 64 << 20, per_s: 1e10 }],
                ..Roof::default()
            }),
            seeds: None,
        })
    }

    fn propose(&self, round: u32, try_no: u32) -> Event {
        let (play, said) = self.round(round);
        if let Play::Nonsense(why) = play {
            return Event::ProposalRefused {
                round,
                try_no,
                refusal: ProposalRefusal::Unreadable { errors: vec![why.into()] },
                usage: usage(),
                session_log: None,
                route: None,
            };
        }
        Event::Proposed {
            round,
            try_no,
            hypothesis: Box::new(hypothesis(&said)),
            usage: usage(),
            session_log: None,
            route: None,
        }
    }

    fn block(&self, step: &MeasureStep) -> Event {
        // A steady jitter, and a final duel with a slightly smaller gain than the rounds.
        let wiggle = 1.0 + self.wiggle * (f64::from(step.block * 7 % 5) - 2.0);
        let faded = match step.duel {
            DuelName::Final => 1.0 - 4.0 * self.wiggle,
            DuelName::Control(control) if control.kind == ControlKind::Slower => self.slower,
            DuelName::Layout { variant: 2, .. } => self.last_layout,
            DuelName::Layout { .. } | DuelName::Control(_) | DuelName::Baseline { .. } => 1.0,
            DuelName::Round { .. } | DuelName::Original { .. } => 1.0,
        };
        let speed = self.speeds[&step.candidate] * wiggle * faded;
        let pair = |case: &usize| Pair {
            case: *case,
            first: FirstArm::Parent,
            parent: self.sample(*case, self.speeds[&step.parent]),
            candidate: match (step.duel, *case) {
                (DuelName::Final, 2) => self.sample(2, speed * self.on_hidden),
                _ => self.sample(*case, speed),
            },
            turns: None,
        };
        Event::BlockMeasured {
            duel: step.duel,
            block: Block {
                seed: u64::from(step.block),
                pad: 0,
                pairs: step.cases.iter().map(pair).collect(),
                aged: 0,
                discarded: (step.block == 0).then_some(DiscardReason::WarmUp),
                conditions: None,
            },
            raw: None,
        }
    }
}

pub(super) fn hypothesis(said: &Said) -> Hypothesis {
    Hypothesis {
        title: said.title.into(),
        bottleneck: "compute".into(),
        mechanism: said.mechanism.into(),
        expected_ratio: 1.2,
        direction: said.direction,
        high_risk: false,
        files: vec!["src/kernel.c".into()],
        counters: Vec::new(),
        gate: None,
        config: BTreeMap::new(),
        question: None,
        sweep: false,
        entry: None,
        variant: 0,
        differs: None,
        task: None,
        steps: Vec::new(),
        bucket: None,
        alternatives: Vec::new(),
    }
}

fn prepared() -> Event {
    Event::Prepared(Preparation {
        base: "base0000000000000000".into(),
        base_tree: "tree0".into(),
        harness_hash: "sha256:abc".into(),
        environment: Environment {
            facts: BTreeMap::from([("cpu".to_owned(), "Example | CPU".to_owned())]),
        },
        provenance: None,
        args: Vec::new(),
        task_findings: Vec::new(),
    })
}

fn candidate(round: u32) -> Candidate {
    Candidate {
        commit: format!("cand{round:04}000000000000"),
        tree: format!("tree{round}"),
        files: vec!["src/kernel.c".into()],
        patch: format!("patch-{round}"),
        out_of_scope: Vec::new(),
        whole: None,
        summary: "Did it.\n\n# And | more, as on okapi/zebra/quagga".into(),
        parts: Vec::new(),
    }
}

fn gate(play: &Play) -> Gate {
    match play {
        Play::Measured(_) | Play::Nonsense(_) => Gate::Passed,
        Play::BuildFailed(log) => {
            Gate::BuildFailed { category: FailureCategory::BuildCompile, excerpt: (*log).into() }
        }
        Play::WrongOnHidden(log) => Gate::WrongResult {
            case: HIDDEN.into(),
            category: FailureCategory::SnrFail,
            excerpt: (*log).into(),
        }
        .on(&charter().cases),
    }
}

impl Player {
    fn sample(&self, case: usize, speed: f64) -> Sample {
        let passes = self.passes.map(|[base, faster]| if speed == 1.0 { base } else { faster });
        Sample { value: self.value(case, speed), wall_us: 1, cpu_us: 1, passes, snr_db: None }
    }
}

fn usage() -> AgentUsage {
    AgentUsage { tokens: 100, usd: 0.05, estimated: false }
}
