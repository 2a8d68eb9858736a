//! The brief benchmark: how long does it take to build a brief late in a campaign?
//!
//! `cargo bench --bench brief` plays a campaign of 100 rounds that knows 1,000 entries, with a real
//! profile and a role, and builds the brief of the next round, from the events to the text that an
//! agent reads; and the size of the briefs of rounds 1, 10 and 50. The exit code is 1 if a bound is
//! missed. It is held to its bound in CPU time
//! where that is less than the clock says. `cargo test --bench brief` checks the sizes only.

#[path = "figures/shared.rs"]
mod figures;

use figures::{exit_code, tell, time};
use karve::library::catalog;
use karve::roles;
use karve_core::campaign::{
    Baseline, Campaign, Event, LOG_VERSION, PlantedBug, Preparation, Record, Step,
};
use karve_core::charter::Charter;
use karve_core::hypothesis::{Candidate, Direction, Hypothesis};
use karve_core::knowledge::{KnownEntry, Lesson};
use karve_core::measurement::{BaselineReading, Environment, Gate, Sample};
use karve_core::profile::{Bottleneck, Profile};
use karve_core::spending::AgentUsage;
use karve_os::error::{CommandError, Result, WithContext};
use karve_profile::profilers::{self, ProfilerTool};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

/// Rounds that are settled.
const ROUNDS: u32 = 100;
/// Entries that the campaign knows.
const ENTRIES: usize = 1_000;
/// Building a brief at most.
const BRIEF_MS_MAX: f64 = 50.0;
/// Characters of a brief at most, also in round 50 and with a library of 1,000 entries.
const BRIEF_CHARS_MAX: f64 = 6_000.0;
/// Rounds before the brief whose size is shown.
const SIZES: [(&str, u32); 3] = [("brief of round 1", 0), ("round 10", 9), ("round 50", 49)];
/// How often it is built.
const BUILDS: usize = 51;
/// Readings of each case at the baseline.
const READINGS: usize = 5;

fn main() -> ExitCode {
    exit_code(measure())
}

fn measure() -> Result<bool> {
    let mut fits = true;
    for (name, settled) in SIZES {
        let text = brief_of(&play(settled)?);
        fits &= tell(name, text.chars().count() as f64, "characters", Some(BRIEF_CHARS_MAX));
    }
    let campaign = play(ROUNDS)?;
    tell("rounds", campaign.rounds().len() as f64, "", None);
    tell("entries", campaign.known().len() as f64, "", None);
    let mut text = String::new();
    let took = time(BUILDS, || {
        text = brief_of(&campaign);
    });
    tell("bytes of the brief", text.len() as f64, "", None);
    tell("building it, by the clock", took.clock_ms, "ms", None);
    // "cargo bench" says so; "cargo test" builds without optimization, beside other tests.
    let is_timed = std::env::args().any(|word| word == "--bench");
    let most = is_timed.then_some(BRIEF_MS_MAX);
    let held = tell("building a brief", took.own_ms(), "ms", most);
    Ok(held && fits && !text.is_empty())
}

/// The brief of the next step; empty if it has none.
fn brief_of(campaign: &Campaign) -> String {
    let brief = |step| karve_agents::brief_of(&step, "here", Path::new("workspace")).ok().flatten();
    campaign.next_step().and_then(brief).unwrap_or_default()
}

/// The project of the benchmark.
const PROJECT: &str = r#"
[target]
op = "softmax"
backend = "triton"
device = "H200"
[sources]
editable = ["kernel.py"]
[commands]
test = "true {case}"
bench = "true {case}"
profile = "auto"
[output]
format = "metric"
[metric]
name = "time_us"
[cases]
list = ["n=1", "n=2", "n=3", "n=4"]
[policy]
profile_when = "on_escalation"
[policy.controls]
every = 0
[limits]
rounds = 119
[roles.triton-specialist]
"#;

fn charter() -> Result<Charter> {
    let now = karve::config::CharterTime { minute: "2026-01-01 00:00".to_owned() };
    let overrides = karve::config::Overrides::default();
    let loaded = karve::config::parse(PROJECT, Path::new("/project"), &overrides, &now)?;
    Ok(loaded.charter)
}

/// The counters of a real kernel.
fn profile(commit: &str) -> Result<Profile> {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/profiles/ncu_details.csv");
    let text = fs::read_to_string(&path).context(|| format!("cannot read {}", path.display()))?;
    let unreadable = |why| CommandError::environment("the sample cannot be read").cause(why);
    let parsed = profilers::parse(ProfilerTool::Ncu, &text).map_err(unreadable)?;
    Ok(Profile {
        assembly: None,
        report: None,
        commit: commit.to_owned(),
        depth: karve_core::profile::ProfileDepth::Light,
        bottleneck: Bottleneck::Memory,
        digest: "memory bound ".repeat(400),
        artifact: None,
        skipped: None,
        share: None,
        kernels: parsed.kernels,
        diagnosis: None,
        notes: Vec::new(),
    })
}

/// Entries as the library has them, under names of their own.
fn known() -> Vec<KnownEntry> {
    let seeds = catalog::built_in();
    let made = seeds.iter().cycle().take(ENTRIES).enumerate();
    made.map(|(number, seed)| KnownEntry {
        id: format!("{}-{number}", seed.id),
        kind: seed.kind,
        title: format!("{}, number {number}", seed.title),
        status: seed.status,
        triggers: seed.triggers.clone(),
        text: seed.section("Mechanism").unwrap_or_default().to_owned(),
        expected_ratio: 1.1,
        n_evidence: 1,
        scope: seed.scope.clone(),
        ..KnownEntry::default()
    })
    .collect()
}

/// A campaign after its rounds, before the next proposal.
fn play(rounds: u32) -> Result<Campaign> {
    let charter = charter()?;
    roles::built_in()?;
    let (mut campaign, mut seq) = (Campaign::new(), 0);
    while let Some(step) = campaign.next_step() {
        let done = campaign.rounds().len() >= rounds as usize;
        if done && matches!(step, Step::Propose { .. }) {
            break;
        }
        let record = Record {
            v: LOG_VERSION,
            seq,
            at_ms: 0,
            spent_ms: 1,
            by: None,
            event: answer(&step, &charter)?,
        };
        campaign
            .record(&record)
            .map_err(|error| CommandError::environment("the play is wrong").cause(error))?;
        seq += 1;
    }
    Ok(campaign)
}

fn answer(step: &Step, charter: &Charter) -> Result<Event> {
    Ok(match step {
        Step::DefineTarget => Event::TargetDefined { charter: Box::new(charter.clone()) },
        Step::Prepare => Event::Prepared(Preparation {
            base: "base".to_owned(),
            base_tree: "t0".to_owned(),
            harness_hash: "h".to_owned(),
            environment: Environment::default(),
            provenance: None,
            args: Vec::new(),
            task_findings: Vec::new(),
        }),
        Step::CheckMutations => Event::MutationChecked {
            mutation_check_passed: true,
            planted_bugs: Vec::<PlantedBug>::new(),
            strength: None,
        },
        Step::ReadTips => Event::TipsRead { tips: Vec::new(), known: known() },
        Step::MeasureBaseline => Event::BaselineMeasured(baseline(charter)),
        Step::Profile { round, commit, .. } => {
            Event::Profiled { round: *round, profile: profile(commit)? }
        }
        Step::Propose { round, try_no, brief } => Event::Proposed {
            round: *round,
            try_no: *try_no,
            hypothesis: Box::new(hypothesis(*round)),
            usage: AgentUsage::default(),
            session_log: None,
            route: brief.roles.as_ref().map(|roles| Box::new(roles.route.clone())),
        },
        other => in_round(other)?,
    })
}

fn in_round(step: &Step) -> Result<Event> {
    Ok(match step {
        Step::Implement(step) => Event::Implemented {
            round: step.round,
            retry: step.retry,
            variant: step.variant,
            candidate: Candidate {
                commit: format!("c{}", step.round),
                tree: format!("t{}", step.round),
                files: vec!["kernel.py".to_owned()],
                patch: "p".to_owned(),
                out_of_scope: Vec::new(),
                whole: None,
                summary: "as the hypothesis says".to_owned(),
                parts: Vec::new(),
            },
            usage: AgentUsage::default(),
            session_log: None,
        },
        Step::Gate { round, retry, set, .. } => Event::Gated {
            round: *round,
            retry: *retry,
            set: *set,
            gate: Gate::TimedOut {
                what: "the test on n=4, which is the largest of all cases".to_owned(),
            },
            same_artifact: false,
            errors: Vec::new(),
            findings: Vec::new(),
            knobs: 0,
            stale_memory: Vec::new(),
            work: None,
            mutants: None,
        },
        Step::Settle { round, verdict, .. } => {
            Event::Settled { round: *round, verdict: verdict.clone(), commit: None }
        }
        Step::Learn { round } => Event::Learned {
            round: *round,
            lesson: Lesson {
                text: "it ran past its limit, so nothing is known of its speed".to_owned(),
                ..Lesson::default()
            },
            usage: AgentUsage::default(),
            session_log: None,
        },
        other => {
            let name = other.name();
            return Err(CommandError::environment(format!("{name} was not expected")));
        }
    })
}

fn baseline(charter: &Charter) -> Baseline {
    let readings = (0..charter.cases.len() * READINGS).map(|index| BaselineReading {
        case: index % charter.cases.len(),
        sample: Sample { value: 100.0, wall_us: 1_000, cpu_us: 1_000, passes: None, snr_db: None },
    });
    Baseline {
        gate: Gate::Passed,
        readings: readings.collect(),
        peak: BTreeMap::new(),
        halved: Vec::new(),
        repeats: Vec::new(),
        raw: None,
        conditions: None,
        reference: None,
        roof: None,
        seeds: None,
    }
}

fn hypothesis(round: u32) -> Hypothesis {
    Hypothesis {
        title: format!("Change number {round} of the inner loop"),
        bottleneck: format!("bottleneck {round}"),
        mechanism: format!("I expect {round} percent because the loads no longer wait"),
        expected_ratio: 1.1,
        direction: Direction::Memory,
        high_risk: false,
        files: vec!["kernel.py".to_owned()],
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
