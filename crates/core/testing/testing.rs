//! A charter and a scripted driver for the tests of this crate.

mod gates;
pub(crate) mod script;
pub(crate) mod tuning;
mod variants;

use crate::charter::{
    Better, Branch, Charter, ClockRule, Commands, DeviceRule, Limits, Metric, OutputRule,
    SandboxRule, Target, TuneRule, WorkMode,
};
use crate::policy::{Controls, Policy, Preset};
use karve_numerics::case::{Case, CaseSet};
use proptest::test_runner::{Config, RngSeed};
use std::collections::BTreeMap;

/// Two visible cases and a hidden one, the strict policy, times in milliseconds.
pub(crate) fn charter() -> Charter {
    let case = |name: &str, size: u32, set| Case {
        name: name.into(),
        params: BTreeMap::from([("M".to_owned(), size.to_string())]),
        set,
        minor: false,
        halve: None,
    };
    Charter {
        name: "test".into(),
        created: "2026-01-01 00:00".into(),
        target: Target {
            op: "matmul".into(),
            backend: "c".into(),
            language: "c".into(),
            device: "cpu".into(),
            ..Target::default()
        },
        mode: WorkMode::Repo,
        contract: None,
        baselines: Vec::new(),
        editable: vec!["kernel.c".into()],
        commands: Commands {
            test: "./test {case}".into(),
            bench: "./bench {case}".into(),
            ..Commands::default()
        },
        output: OutputRule { format: "metric".into(), ..OutputRule::default() },
        metric: Metric {
            name: "time_ms".into(),
            unit: "ms".into(),
            better: Better::Lower,
            work: Some("2*M*M*M".into()),
            clocks: ClockRule::Auto,
            ..Metric::default()
        },
        cases: vec![
            case("small", 64, CaseSet::Full),
            case("large", 256, CaseSet::Full),
            case("secret", 100, CaseSet::Hidden),
        ],
        policy: policy(Preset::Strict),
        limits: Limits {
            rounds: 5,
            wall_s: None,
            command_s: 60,
            agent_s: 60,
            duel_s: 600,
            agent_usd: None,
            final_blocks: 10,
        },
        device: DeviceRule::default(),
        audit: Default::default(),
        sandbox: SandboxRule::default(),
        agent: "builtin".into(),
        agenda: None,
        asks: Default::default(),
        knobs: Vec::new(),
        tune: TuneRule::default(),
        branch: branch(),
        workdir: String::new(),
        remote: None,
        seed: 1,
    }
}

fn branch() -> Branch {
    Branch::Named { name: "optimize/test".into() }
}

/// The rules of a preset without controls: tests that want them say so.
pub(crate) fn policy(preset: Preset) -> Policy {
    Policy { controls: Controls::default(), ..preset.policy() }
}

/// Properties are tried on the same cases in every run.
pub(crate) fn fixed(cases: u32) -> Config {
    Config { cases, rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..Config::default() }
}

/// A round that taught next to nothing.
fn learned(round: u32) -> crate::campaign::Event {
    crate::campaign::Event::Learned {
        round,
        lesson: crate::knowledge::Lesson {
            text: format!("lesson {round}"),
            ..crate::knowledge::Lesson::default()
        },
        usage: crate::spending::AgentUsage::default(),
        session_log: None,
    }
}

/// A review of a candidate, with one signal.
fn reviewed(
    step: &crate::campaign::ReviewStep,
    advice: crate::roles::ReviewAdvice,
) -> crate::campaign::Event {
    use crate::roles::{Review, ReviewSignal, Stance};
    crate::campaign::Event::Reviewed {
        round: step.round,
        retry: step.retry,
        review: Box::new(Review {
            tree: step.candidate.tree.clone(),
            advice: Some(advice),
            reason: "as it seems".into(),
            signals: [(ReviewSignal::NoiseBand, Stance::Unknown)].into(),
            failed: String::new(),
        }),
        usage: crate::spending::AgentUsage::default(),
        session_log: None,
        earlier: Vec::new(),
    }
}
