//! The built-in strategy: tunes all declared knobs at once, then turns them one at a time, each a
//! hypothesis.

use super::{Agent, Desk, Implementation, Proposal};
use crate::config;
use crate::error::{CommandError, Context, Result};
use crate::git::{Oid, Repo};
use karve_core::campaign::{ImplementStep, Refusal, Usage};
use karve_core::charter::KnobDeclaration;
use karve_core::hypothesis::{Direction, Hypothesis};
use karve_core::search::{self, Move};
use karve_core::space::{Config, KNOBS_MAX, Knob, parse_knobs, set_knob};
use karve_core::strategy::Brief;
use std::fs;
use std::path::Path;

/// What a sweep is expected to gain, before anything is known.
const SWEEP_RATIO: f64 = 1.2;

/// Proposes knob settings from what the history says.
#[derive(Debug)]
pub struct Builtin {
    granted: Vec<String>,
    declared: Vec<KnobDeclaration>,
}

impl Builtin {
    /// The strategy for the knobs in the granted files and in `karve.toml`.
    pub fn new(granted: Vec<String>, declared: Vec<KnobDeclaration>) -> Self {
        Self { granted, declared }
    }
}

impl Agent for Builtin {
    fn propose(&mut self, brief: &Brief, desk: &Desk<'_>) -> Result<Proposal> {
        let knobs = knobs_at(desk.repo, &brief.parent, &self.granted, &self.declared)?;
        if knobs.is_empty() {
            let why = "the granted files declare no knobs (\"// karve: knob TILE in 8,16,32\")";
            let refusal = Refusal::Exhausted { why: why.into() };
            return Ok(Proposal::Refused(refusal, Usage::default()));
        }
        if brief.sweep && knobs.len() > 1 {
            let hypothesis = Box::new(state_sweep(&knobs));
            return Ok(Proposal::Stated(hypothesis, Usage::default()));
        }
        let base = config_of(&knobs_at(
            desk.repo,
            &brief.base,
            &self.granted,
            &self.declared,
        )?);
        Ok(
            match search::propose(&knobs, &base, &brief.trials, brief.seed) {
                Some(next) => Proposal::Stated(Box::new(state(&knobs, &next)), Usage::default()),
                None => {
                    let why = format!("no move of the {} knobs promises a gain", knobs.len());
                    Proposal::Refused(Refusal::Exhausted { why }, Usage::default())
                }
            },
        )
    }

    fn implement(&mut self, step: &ImplementStep, desk: &Desk<'_>) -> Result<Implementation> {
        let usage = Usage::default();
        if step.mend.is_some() {
            let why = "a knob setting that fails cannot be mended".to_owned();
            return Ok(Implementation::NotDone { why, usage });
        }
        if step.hypothesis.sweep {
            // The tuner makes the change, from where the knobs stand.
            let summary = String::new();
            return Ok(Implementation::Done { summary, usage });
        }
        let knobs = knobs_at(desk.repo, &step.parent, &self.granted, &self.declared)?;
        let set = write_config(desk.tree, &knobs, &step.hypothesis.config)?;
        Ok(Implementation::Done {
            summary: format!("set {}", set.join(", ")),
            usage,
        })
    }

    fn reads_worktree(&self) -> bool {
        false
    }
}

/// Sets knobs in a worktree; gives what was changed, in words.
pub fn write_config(tree: &Path, knobs: &[Knob], config: &Config) -> Result<Vec<String>> {
    let mut set = Vec::new();
    for knob in knobs {
        let Some(value) = config.get(&knob.name).filter(|v| **v != knob.current) else {
            continue;
        };
        let path = tree.join(&knob.file);
        let text =
            fs::read_to_string(&path).context(|| format!("cannot read {}", path.display()))?;
        let Some(changed) = set_knob(&text, knob, value) else {
            continue;
        };
        fs::write(&path, changed).context(|| format!("cannot write {}", path.display()))?;
        set.push(format!("{} = {value}", knob.name));
    }
    Ok(set)
}

/// The knobs declared in the granted files of a commit, in the order of the files.
pub fn knobs_at(
    repo: &Repo,
    commit: &str,
    granted: &[String],
    declared: &[KnobDeclaration],
) -> Result<Vec<Knob>> {
    let globs = config::glob_set(granted)?;
    let commit = Oid::named(commit)?;
    let mut knobs: Vec<Knob> = Vec::new();
    for (file, bytes) in repo.read_matching(&commit, &globs)? {
        let text = String::from_utf8_lossy(&bytes);
        let found = parse_knobs(&file, &text, declared).map_err(|reason| {
            CommandError::usage("cannot read the knobs")
                .cause(reason)
                .hint(format!("mend the declaration in {file} or in karve.toml"))
        })?;
        knobs.extend(found);
    }
    if knobs.len() > KNOBS_MAX {
        return Err(
            CommandError::usage(format!("there are more than {KNOBS_MAX} knobs"))
                .hint("declare fewer in the granted files or in karve.toml"),
        );
    }
    Ok(knobs)
}

/// The values that stand there now.
pub fn config_of(knobs: &[Knob]) -> Config {
    knobs
        .iter()
        .map(|knob| (knob.name.clone(), knob.current.clone()))
        .collect()
}

/// All knobs at once, as the tuner searches them: one hypothesis.
fn state_sweep(knobs: &[Knob]) -> Hypothesis {
    let mut files: Vec<String> = knobs.iter().map(|knob| knob.file.clone()).collect();
    files.dedup();
    Hypothesis {
        title: format!("tune all {} knobs", knobs.len()),
        bottleneck: String::new(),
        mechanism: format!(
            "I expect {SWEEP_RATIO:.2}x because knobs that stand at their first values are rarely \
             the best together"
        ),
        expected_ratio: SWEEP_RATIO,
        direction: Direction::Tile,
        high_risk: true,
        files,
        counters: Vec::new(),
        gate: None,
        config: Config::new(),
        question: None,
        sweep: true,
    }
}

fn state(knobs: &[Knob], next: &Move) -> Hypothesis {
    let changes: Vec<String> = next
        .changes
        .iter()
        .map(|(name, from, to)| format!("{name} from {from} to {to}"))
        .collect();
    let moved = |knob: &&Knob| next.changes.iter().any(|(name, _, _)| *name == knob.name);
    let moved: Vec<&Knob> = knobs.iter().filter(moved).collect();
    let mut files: Vec<String> = moved.iter().map(|knob| knob.file.clone()).collect();
    files.dedup();
    let ordered = moved.iter().all(|knob| knob.is_ordered());
    Hypothesis {
        title: format!("set {}", changes.join(" and ")),
        bottleneck: String::new(),
        mechanism: format!("I expect {:.2}x because {}", next.expected_ratio, next.why),
        expected_ratio: next.expected_ratio,
        direction: if ordered {
            Direction::Tile
        } else {
            Direction::Algorithm
        },
        high_risk: !ordered,
        files,
        counters: Vec::new(),
        gate: None,
        config: next.config.clone(),
        question: None,
        sweep: false,
    }
}
