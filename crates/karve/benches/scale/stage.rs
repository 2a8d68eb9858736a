//! What is played: a repository, its commands, and an agent that follows a script.

use karve_agents::{Agent, Implementation, Proposal, Workspace};
use karve_core::campaign::ImplementStep;
use karve_core::campaign::strategy::Brief;
use karve_core::charter::{
    Better, Branch, Charter, Commands, DeviceRule, Limits, Metric, OutputRule, SandboxRule, Target,
    TuneRule, WorkMode,
};
use karve_core::hypothesis::{Direction, Hypothesis};
use karve_core::policy::Preset;
use karve_core::spending::AgentUsage;
use karve_harness::git::{self, CommitNote, NewFile, Repo};
use karve_numerics::case::{Case, CaseSet};
use karve_os::error::{Result, WithContext};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Each so many rounds the agent has a gain to offer.
const GAIN_EVERY: u32 = 25;
/// Files of the repository besides the kernel.
const FILES: u32 = 20;

/// An agent that has an idea for every round and a gain now and then.
#[derive(Debug)]
pub(crate) struct Script;

impl Agent for Script {
    fn propose(&mut self, brief: &Brief, _: &Workspace<'_>) -> Result<Proposal> {
        Ok(Proposal::Stated(Box::new(idea(brief.round)), AgentUsage::default()))
    }

    fn implement(
        &mut self,
        step: &ImplementStep,
        workspace: &Workspace<'_>,
    ) -> Result<Implementation> {
        let time_us = 100.0 / (step.brief.cumulative_ratio * gain(step.round));
        let path = workspace.tree.join("kernel.c");
        fs::write(&path, kernel(time_us, step.round))
            .context(|| format!("cannot write {}", path.display()))?;
        Ok(Implementation::Done { summary: "split the loop".into(), usage: AgentUsage::default() })
    }

    fn reads_worktree(&self) -> bool {
        false
    }
}

/// How much faster the candidate of a round is than its parent.
pub(crate) fn gain(round: u32) -> f64 {
    if round.is_multiple_of(GAIN_EVERY) { 1.05 } else { 1.0 }
}

/// The hypothesis of a round.
pub(crate) fn idea(round: u32) -> Hypothesis {
    let directions = Direction::ALL;
    Hypothesis {
        title: format!("Split the loop {}", word(round, 0)),
        bottleneck: "memory".into(),
        mechanism: format!(
            "I expect the loads of {} to overlap, because {} does not depend on {} and the \
             compiler cannot see that {} stays the same",
            word(round, 1),
            word(round, 2),
            word(round, 3),
            word(round, 4),
        ),
        expected_ratio: 1.03,
        direction: directions[round as usize % directions.len()],
        high_risk: false,
        files: vec!["kernel.c".into()],
        counters: vec!["loads per cycle".into()],
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

/// A word that no other round has; with numbers alone hypotheses would be told apart too easily.
fn word(round: u32, salt: u32) -> String {
    let mut left = round * 31 + salt;
    let mut word = String::from("x");
    while left > 0 {
        word.push(char::from(b'a' + (left % 26) as u8));
        left /= 26;
    }
    word
}

/// A kernel that says itself how fast it is.
pub(crate) fn kernel(time_us: f64, round: u32) -> String {
    format!(
        "// METRIC time_us={time_us:.9}\n\
         // round {round}\n\
         void kernel(int n, const float *a, const float *b, float *c) {{\n\
         \x20   for (int i = 0; i < n; i++) c[i] += a[i] * b[i];\n\
         }}\n"
    )
}

pub(crate) fn repository(path: &Path) -> Result<Repo> {
    let file =
        |path: String, text: String| NewFile { path, bytes: text.into_bytes(), executable: false };
    let mut files = vec![file("kernel.c".into(), kernel(100.0, 0))];
    files.extend((0..FILES).map(|n| file(format!("src/part-{n}.c"), format!("int part_{n};\n"))));
    let note = CommitNote { message: "A kernel\n", date: 1_700_000_000 };
    git::init_with(path, &files, &note).map(|(repo, _)| repo)
}

/// Commands that start no process but the shell; the test notices the planted faults.
pub(crate) fn cheap_commands() -> Commands {
    Commands {
        build: Some(":".into()),
        test: "while read -r line; do case $line in *'+='*) exit 0;; esac; done < kernel.c; exit 1"
            .into(),
        bench: "read -r _ line < kernel.c; echo \"$line\"".into(),
        ..Commands::default()
    }
}

/// The same commands, one for each case.
pub(crate) fn for_each_case(cheap: &Commands) -> Commands {
    let each = |line: &str| format!(": {{case}}; {line}");
    Commands { test: each(&cheap.test), bench: each(&cheap.bench), ..cheap.clone() }
}

/// The same commands, each 100 ms slower and one for each case; builds and tests count themselves.
pub(crate) fn slowed(cheap: &Commands, count: &Path) -> Commands {
    let counted = |line: &str| format!("printf x >> '{}'; sleep 0.1; {line}", count.display());
    let each = |line: &str| format!(": {{case}}; {line}");
    Commands {
        build: cheap.build.as_deref().map(counted),
        test: each(&counted(&cheap.test)),
        bench: each(&format!("sleep 0.1; {}", cheap.bench)),
        ..Commands::default()
    }
}

pub(crate) fn charter(name: &str, commands: &Commands, rounds: u32, n_cases: usize) -> Charter {
    let names = ["small", "medium", "large"];
    let case = |n: usize| Case {
        name: names.get(n).map_or_else(|| format!("case {n}"), |name| (*name).to_owned()),
        params: BTreeMap::new(),
        set: CaseSet::Full,
        minor: false,
        halve: None,
    };
    Charter {
        contract: None,
        baselines: Vec::new(),
        name: name.into(),
        created: "2026-01-01 00:00".into(),
        target: Target {
            op: "multiply-add".into(),
            backend: "c".into(),
            language: "c".into(),
            // Its own, so that nobody else's lease is waited for.
            device: format!("cpu of process {}", std::process::id()),
            ..Target::default()
        },
        mode: WorkMode::Repo,
        editable: vec!["kernel.c".into()],
        commands: commands.clone(),
        output: OutputRule { format: "metric".into(), from_file: false, ..OutputRule::default() },
        metric: Metric {
            name: "time_us".into(),
            unit: "us".into(),
            better: Better::Lower,
            ..Metric::default()
        },
        cases: (0..n_cases).map(case).collect(),
        policy: Preset::Strict.policy(),
        limits: Limits {
            rounds,
            wall_s: None,
            command_s: 60,
            agent_s: 60,
            duel_s: 600,
            agent_usd: None,
            final_blocks: 10,
        },
        audit: Default::default(),
        sandbox: SandboxRule::default(),
        device: DeviceRule { pressure_max: 100.0, ..DeviceRule::default() },
        agent: "script".into(),
        agenda: None,
        asks: karve_core::charter::AskRule::default(),
        knobs: Vec::new(),
        tune: TuneRule::default(),
        branch: Branch::Named { name: format!("optimize/{name}") },
        workdir: String::new(),
        remote: None,
        seed: 1,
    }
}
