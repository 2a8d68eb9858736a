//! A long campaign whose commands never ran: every step gets an answer that is made up, and karve
//! decides by it as it would by real readings. Pages cannot tell, and it takes seconds.

use super::stage::{gain, idea, kernel};
use karve_core::campaign::strategy;
use karve_core::campaign::{
    Baseline, CONTROL_SLOWDOWN, Campaign, ControlKind, DuelName, Event, ImplementStep, LOG_VERSION,
    MeasureStep, PlantedBug, Preparation, Record, Step,
};
use karve_core::charter::Charter;
use karve_core::hypothesis::Candidate;
use karve_core::measurement::{
    BaselineReading, Block, DiscardReason, Environment, FirstArm, Gate, Pair, Sample,
};
use karve_core::sampling;
use karve_core::spending::AgentUsage;
use karve_harness::store::{self, CampaignDir};
use karve_numerics::stats::DrawRng;
use karve_os::error::{CommandError, ErrorKind, Result, WithContext as _};
use std::collections::BTreeMap;
use std::fs;

/// What the first event has as its time.
const START_MS: i64 = 1_700_000_000_000;
/// Time between two events, and the work of each.
const TICK_MS: i64 = 3_000;
const SPENT_MS: u64 = 700;
/// Full width of the relative noise of a reading.
const NOISE: f64 = 0.004;

/// Writes the log of a whole campaign that began at a commit.
pub(super) fn write(dir: &CampaignDir, charter: &Charter, base: &str) -> Result<()> {
    let cannot = || format!("cannot write {}", dir.path().display());
    fs::create_dir_all(dir.join("artifacts")).context(cannot)?;
    let speeds = BTreeMap::from([(base.to_owned(), 1.0)]);
    let mut world = World { dir, charter, base, speeds, draws: DrawRng::new(charter.seed) };
    let (mut campaign, mut log, mut seq) = (Campaign::new(), Vec::new(), 0);
    while let Some(step) = campaign.next_step() {
        let record = Record {
            v: LOG_VERSION,
            seq,
            at_ms: START_MS + TICK_MS * i64::try_from(seq).unwrap_or(0),
            spent_ms: SPENT_MS,
            by: None,
            event: world.answer(&campaign, &step)?,
        };
        campaign.record(&record).map_err(wrong)?;
        serde_json::to_writer(&mut log, &record).map_err(wrong)?;
        log.push(b'\n');
        seq += 1;
    }
    fs::write(dir.log(), log).context(cannot)
}

fn wrong(why: impl std::fmt::Display) -> CommandError {
    CommandError::new(ErrorKind::Bug, "the campaign cannot be made up").cause(why)
}

/// What answers in place of commands and agents.
struct World<'a> {
    dir: &'a CampaignDir,
    charter: &'a Charter,
    base: &'a str,
    /// How much faster than the base each commit is.
    speeds: BTreeMap<String, f64>,
    draws: DrawRng,
}

impl World<'_> {
    fn answer(&mut self, campaign: &Campaign, step: &Step) -> Result<Event> {
        Ok(match step {
            Step::DefineTarget => Event::TargetDefined { charter: Box::new(self.charter.clone()) },
            Step::Prepare => prepared(self.base),
            Step::CheckMutations => Event::MutationChecked {
                mutation_check_passed: true,
                strength: None,
                planted_bugs: Vec::<PlantedBug>::new(),
            },
            Step::ReadTips => Event::TipsRead { tips: Vec::new(), known: Vec::new() },
            Step::MeasureBaseline => Event::BaselineMeasured(self.baseline()),
            Step::Propose { round, try_no, .. } => Event::Proposed {
                round: *round,
                try_no: *try_no,
                hypothesis: Box::new(idea(*round)),
                usage: AgentUsage::default(),
                session_log: None,
                route: None,
            },
            Step::Implement(step) => self.implemented(step)?,
            Step::Gate { round, retry, set, .. } => Event::Gated {
                round: *round,
                retry: *retry,
                set: *set,
                gate: Gate::Passed,
                same_artifact: false,
                errors: Vec::new(),
                findings: Vec::new(),
                knobs: 0,
                stale_memory: Vec::new(),
                work: None,
                mutants: None,
            },
            Step::Measure(step) => self.measured(step),
            Step::Settle { round, verdict, candidate } => Event::Settled {
                round: *round,
                verdict: verdict.clone(),
                commit: candidate.as_ref().map(|candidate| candidate.commit.clone()),
            },
            Step::Learn { round } => Event::Learned {
                round: *round,
                lesson: strategy::lesson(campaign, None),
                usage: AgentUsage::default(),
                session_log: None,
            },
            Step::Finish { reason, stated } => stated.finished(reason),
            step => return Err(wrong(format!("nobody answers to {}", step.name()))),
        })
    }

    fn baseline(&mut self) -> Baseline {
        let n_cases = self.charter.cases.len();
        let n_readings = n_cases * sampling::BASELINE_READINGS as usize;
        let reading =
            |index: usize| BaselineReading { case: index % n_cases, sample: self.sample(1.0) };
        Baseline {
            reference: None,
            gate: Gate::Passed,
            readings: (0..n_readings).map(reading).collect(),
            peak: BTreeMap::new(),
            halved: Vec::new(),
            repeats: Vec::new(),
            raw: None,
            conditions: None,
            roof: None,
            seeds: None,
        }
    }

    fn implemented(&mut self, step: &ImplementStep) -> Result<Event> {
        let round = step.round;
        let speed = self.speed(&step.parent);
        let commit = format!("c{round:039}");
        self.speeds.insert(commit.clone(), speed * gain(round));
        let lines = |speed: f64, round: u32| kernel(100.0 / speed, round);
        let (old, new) = (lines(speed, round - 1), lines(speed * gain(round), round));
        let changed = |text: &str, sign: char| -> String {
            text.lines().take(2).map(|line| format!("{sign}{line}\n")).collect()
        };
        let patch = format!(
            "diff --git a/kernel.c b/kernel.c\n--- a/kernel.c\n+++ b/kernel.c\n\
             @@ -1,2 +1,2 @@\n{}{}",
            changed(&old, '-'),
            changed(&new, '+')
        );
        Ok(Event::Implemented {
            round,
            retry: step.retry,
            variant: step.variant,
            candidate: Candidate {
                tree: format!("d{round:039}"),
                commit,
                files: vec!["kernel.c".into()],
                patch: store::put_artifact(self.dir, patch.as_bytes())?,
                out_of_scope: Vec::new(),
                whole: None,
                summary: "split the loop".into(),
                parts: Vec::new(),
            },
            usage: AgentUsage::default(),
            session_log: None,
        })
    }

    fn speed(&self, commit: &str) -> f64 {
        self.speeds.get(commit).copied().unwrap_or(1.0)
    }

    fn measured(&mut self, step: &MeasureStep) -> Event {
        let slower = match step.duel {
            DuelName::Control(control) if control.kind == ControlKind::Slower => CONTROL_SLOWDOWN,
            _ => 1.0,
        };
        let (parent, candidate) = (self.speed(&step.parent), self.speed(&step.candidate) / slower);
        let pair = |case: &usize| Pair {
            case: *case,
            first: FirstArm::Parent,
            parent: self.sample(parent),
            candidate: self.sample(candidate),
            turns: None,
        };
        let block = Block {
            pairs: step.cases.iter().map(pair).collect(),
            seed: self.draws.next_u64(),
            pad: 0,
            aged: 0,
            discarded: (step.block == 0).then_some(DiscardReason::WarmUp),
            conditions: None,
        };
        Event::BlockMeasured { duel: step.duel, block, raw: None }
    }

    fn sample(&mut self, speed: f64) -> Sample {
        let noise = 1.0 + NOISE * (self.draws.next_f64() - 0.5);
        let value = 100.0 * noise / speed;
        Sample { value, wall_us: 5_000, cpu_us: 2_500, passes: None, snr_db: None }
    }
}

fn prepared(base: &str) -> Event {
    Event::Prepared(Preparation {
        base: base.into(),
        base_tree: "t0".into(),
        harness_hash: "h0".into(),
        environment: Environment::default(),
        provenance: None,
        args: Vec::new(),
        task_findings: Vec::new(),
    })
}
