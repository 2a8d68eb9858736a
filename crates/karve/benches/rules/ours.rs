//! karve's own rule: the real duel and the real judge, fed with recorded pairs.

use crate::Decision;
use crate::trials::{Series, Trial};
use karve_core::charter::{
    Better, Branch, Charter, ClockRule, Commands, DeviceRule, Limits, Metric, OutputRule,
    SandboxRule, Target, TuneRule, WorkMode,
};
use karve_core::comparison::Clock;
use karve_core::duel::{Duel, DuelRule};
use karve_core::measurement::{Block, FirstArm, Pair, Sample};
use karve_core::policy::Preset;
use karve_core::verdict::{self, DuelDeadline, DuelRuling, Verdict};
use karve_numerics::case::{Case, CaseSet};
use std::collections::BTreeMap;

/// The charter of one case under the strict policy.
pub(crate) fn charter() -> Charter {
    Charter {
        contract: None,
        baselines: Vec::new(),
        name: "rules".into(),
        created: "2026-01-01 00:00".into(),
        target: Target::default(),
        mode: WorkMode::Repo,
        editable: vec!["kernel.c".into()],
        commands: Commands::default(),
        output: OutputRule { format: "metric".into(), from_file: false, ..OutputRule::default() },
        metric: Metric {
            passes: None,
            name: "time_ns".into(),
            unit: "ns".into(),
            better: Better::Lower,
            expr: None,
            work: None,
            bytes: None,
            clocks: ClockRule::Metric,
        },
        cases: vec![Case {
            name: "matmul".into(),
            params: BTreeMap::new(),
            set: CaseSet::Full,
            minor: false,
            halve: None,
        }],
        policy: Preset::Strict.policy(),
        limits: Limits {
            rounds: 119,
            wall_s: None,
            command_s: 60,
            agent_s: 60,
            duel_s: 600,
            agent_usd: None,
            final_blocks: 200,
        },
        device: DeviceRule::default(),
        audit: Default::default(),
        sandbox: SandboxRule::default(),
        agent: "builtin".into(),
        agenda: None,
        asks: karve_core::charter::AskRule::default(),
        knobs: Vec::new(),
        tune: TuneRule::default(),
        branch: Branch::Named { name: "optimize/rules".into() },
        workdir: String::new(),
        remote: None,
        seed: 1,
    }
}

/// Plays a trial on one clock, pair by pair, until the judge decides.
pub(crate) fn by_one(charter: &Charter, trial: &Trial, series: &Series) -> Decision {
    play(charter, trial, series, None)
}

/// The same with the wall clock as the metric and the CPU clock beside it.
pub(crate) fn by_both(charter: &Charter, trial: &Trial) -> Decision {
    play(charter, trial, &trial.wall, Some(Clock::Cpu))
}

fn play(charter: &Charter, trial: &Trial, series: &Series, second: Option<Clock>) -> Decision {
    let rule = DuelRule::of(charter, charter.keep_evidence()).with_second(second);
    let mut duel = Duel::new(charter, &[0], rule);
    for i in 0..trial.candidate_first.len() {
        if duel.take(&block(trial, series, i)).is_err() {
            break;
        }
        match verdict::judge_duel(&duel, DuelDeadline::Left) {
            DuelRuling::Continue => {}
            DuelRuling::Decided(Verdict::Undecided { .. }) => break,
            DuelRuling::Decided(verdict) => return Decision::new(verdict.keeps(), i + 1),
        }
    }
    Decision::undecided(trial.candidate_first.len())
}

fn block(trial: &Trial, series: &Series, i: usize) -> Block {
    // A duel looks at ratios only. Times of 1 ms in whole microseconds would lose digits that the
    // recording has, so these are in ns throughout.
    let sample = |pick: fn(&Series) -> &Vec<f64>| Sample {
        value: pick(series)[i],
        wall_us: pick(&trial.wall)[i] as u64,
        cpu_us: pick(&trial.cpu)[i] as u64,
        passes: None,
        snr_db: None,
    };
    Block {
        seed: i as u64,
        pad: 0,
        pairs: vec![Pair {
            case: 0,
            first: if trial.candidate_first[i] { FirstArm::Candidate } else { FirstArm::Parent },
            parent: sample(|series| &series.parent),
            candidate: sample(|series| &series.candidate),
            // As a project's own command reports it; only a kernel runner sees single turns.
            turns: None,
        }],
        discarded: None,
        conditions: None,
        aged: 0,
    }
}
