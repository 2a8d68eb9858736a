//! The built-in strategy: tunes all declared knobs at once, then applies library recipes that need
//! no agent, and moves knobs one at a time; each is a hypothesis.

mod recipes;
mod tasks;

use super::{Agent, Implementation, Proposal, Workspace, claim};
use karve_core::campaign::strategy::Brief;
use karve_core::campaign::{ImplementStep, ProposalRefusal};
use karve_core::hypothesis::{Direction, Hypothesis};
use karve_core::knowledge::KnownEntry;
use karve_core::spending::AgentUsage;
use karve_harness::git::{Oid, Repo};
use karve_harness::project_file;
use karve_numerics::search::{self, ProposedMove};
use karve_numerics::space::{
    Delivery, KNOBS_MAX, Knob, KnobDeclaration, KnobSetting, parse_knobs, set_knob,
};
use karve_os::error::{CommandError, Result, WithContext};
use karve_os::text::counted;
use std::fs;
use std::path::Path;

/// The expected gain of a sweep, before anything is known.
const SWEEP_RATIO: f64 = 1.2;

/// Proposes knob settings based on the history.
#[derive(Debug)]
pub struct BuiltinAgent {
    editable: Vec<String>,
    declared: Vec<KnobDeclaration>,
}

impl BuiltinAgent {
    /// The strategy for the knobs in the editable files and in `karve.toml`.
    pub fn new(editable: Vec<String>, declared: Vec<KnobDeclaration>) -> Self {
        Self { editable, declared }
    }
}

impl Agent for BuiltinAgent {
    fn propose(&mut self, brief: &Brief, workspace: &Workspace<'_>) -> Result<Proposal> {
        let knobs = knobs_at(workspace.repo, &brief.parent, &self.editable, &self.declared)?;
        if let Some(task) = &brief.task {
            return self.carry_out(task, brief, workspace.repo, &knobs);
        }
        if brief.sweep && knobs.len() > 1 {
            let hypothesis = Box::new(state_sweep(&knobs));
            return Ok(Proposal::Stated(hypothesis, AgentUsage::default()));
        }
        let base =
            config_of(&knobs_at(workspace.repo, &brief.base, &self.editable, &self.declared)?);
        let texts = recipes::texts_at(workspace.repo, &brief.parent, &self.editable)?;
        // If all knobs were tuned together, single values of an entry are already covered.
        let alone = if knobs.len() > 1 { &[][..] } else { &knobs };
        let recipe = recipes::next(&brief.recall, &texts, alone);
        let turn = search::propose(&knobs, &base, &brief.trials, brief.seed);
        let stated = match (&recipe, &turn) {
            (Some(recipe), Some(turn)) if turn.expected_ratio.ln() > recipe.promise() => {
                state(&knobs, turn)
            }
            (Some(recipe), _) => recipe.state(),
            (None, Some(turn)) => state(&knobs, turn),
            (None, None) => {
                let why = exhausted(knobs.len());
                return Ok(Proposal::Refused(
                    ProposalRefusal::Exhausted { why },
                    AgentUsage::default(),
                ));
            }
        };
        Ok(Proposal::Stated(Box::new(stated), AgentUsage::default()))
    }

    fn implement(
        &mut self,
        step: &ImplementStep,
        workspace: &Workspace<'_>,
    ) -> Result<Implementation> {
        let usage = AgentUsage::default();
        if step.repair.is_some() {
            let why = "a failing knob setting cannot be fixed".to_owned();
            return Ok(Implementation::NotDone { why, usage });
        }
        if step.hypothesis.sweep {
            // The tuner makes the change, starting from the current knob values.
            let summary = String::new();
            return Ok(Implementation::Done { summary, usage });
        }
        let knobs = knobs_at(workspace.repo, &step.parent, &self.editable, &self.declared)?;
        if step.hypothesis.entry.is_some() && step.hypothesis.config.is_empty() {
            return self.follow(step, workspace, &knobs);
        }
        let set = write_config(workspace.tree, &knobs, &step.hypothesis.config)?;
        Ok(Implementation::Done { summary: format!("set {}", set.join(", ")), usage })
    }

    fn reads_worktree(&self) -> bool {
        false
    }
}

impl BuiltinAgent {
    /// Applies the recipe of an entry.
    fn follow(
        &self,
        step: &ImplementStep,
        workspace: &Workspace<'_>,
        knobs: &[Knob],
    ) -> Result<Implementation> {
        let usage = AgentUsage::default();
        let hypothesis = &step.hypothesis;
        let usable = &step.brief.recall.usable;
        let known =
            usable.iter().find(|usable| hypothesis.entry.as_ref() == Some(&usable.known.id));
        let action = known.and_then(|of| of.known.apply.get(hypothesis.variant as usize));
        let texts = recipes::texts_at(workspace.repo, &step.parent, &self.editable)?;
        let change = action.and_then(|action| recipes::apply(action, &texts, knobs));
        let Some(recipes::RecipeChange::Texts(changed)) = change else {
            let why = "the library changed, and the recipe no longer changes anything".to_owned();
            return Ok(Implementation::NotDone { why, usage });
        };
        for text in &changed {
            let path = workspace.tree.join(&text.file);
            fs::write(&path, &text.text).context(|| format!("cannot write {}", path.display()))?;
        }
        let summary = format!("{} in {}", hypothesis.title, counted(changed.len(), "file"));
        Ok(Implementation::Done { summary, usage })
    }
}

/// Whether the strategy has anything to try: a knob, or an entry that changes an editable file.
pub fn has_ideas(
    repo: &Repo,
    commit: &str,
    editable: &[String],
    declared: &[KnobDeclaration],
    known: &[KnownEntry],
) -> Result<bool> {
    let knobs = knobs_at(repo, commit, editable, declared)?;
    let texts = recipes::texts_at(repo, commit, editable)?;
    let mut actions = known.iter().flat_map(|entry| &entry.apply);
    Ok(!knobs.is_empty() || actions.any(|action| recipes::apply(action, &texts, &knobs).is_some()))
}

fn exhausted(n_knobs: usize) -> String {
    match n_knobs {
        0 => "karve cannot apply any library entry here without an agent, and the editable files \
              declare no knobs (\"// karve: knob TILE in 8,16,32\")"
            .to_owned(),
        n => format!("no move of the {n} knobs and no library entry promises a gain"),
    }
}

/// Sets knobs in a worktree; returns a description of the change.
pub fn write_config(tree: &Path, knobs: &[Knob], config: &KnobSetting) -> Result<Vec<String>> {
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

/// The knobs declared in the editable files of a commit, in the order of the files.
pub fn knobs_at(
    repo: &Repo,
    commit: &str,
    editable: &[String],
    declared: &[KnobDeclaration],
) -> Result<Vec<Knob>> {
    let globs = project_file::glob_set(editable)?;
    let commit = Oid::named(commit)?;
    let mut knobs: Vec<Knob> = Vec::new();
    for (file, bytes) in repo.read_matching(&commit, &globs)? {
        let text = String::from_utf8_lossy(&bytes);
        let found = parse_knobs(&file, &text, declared).map_err(|reason| {
            CommandError::usage("cannot read the knobs")
                .cause(no_json(&file, &text, declared).unwrap_or(reason))
                .hint(format!("fix the declaration in {file} or in karve.toml"))
        })?;
        knobs.extend(found);
    }
    if knobs.len() > KNOBS_MAX {
        return Err(CommandError::usage(format!("there are more than {KNOBS_MAX} knobs"))
            .hint("declare fewer in the editable files or in karve.toml"));
    }
    Ok(knobs)
}

/// Why a file whose keys are declared as knobs is not valid JSON, and where.
fn no_json(file: &str, text: &str, declared: &[KnobDeclaration]) -> Option<String> {
    let is_json = |knob: &KnobDeclaration| knob.deliver == Delivery::Json && knob.file == file;
    declared.iter().find(|knob| is_json(knob))?;
    let read = serde_json::from_str::<serde::de::IgnoredAny>(text);
    Some(format!("{file} is not valid JSON: {}", read.err()?))
}

/// The current values.
pub fn config_of(knobs: &[Knob]) -> KnobSetting {
    knobs.iter().map(|knob| (knob.name.clone(), knob.current.clone())).collect()
}

/// All knobs together, as the tuner searches them: one hypothesis.
fn state_sweep(knobs: &[Knob]) -> Hypothesis {
    let mut files: Vec<String> = knobs.iter().map(|knob| knob.file.clone()).collect();
    files.dedup();
    let mechanism = format!(
        "I expect {SWEEP_RATIO:.2}x because the initial values of knobs are rarely the best \
         combination"
    );
    Hypothesis {
        direction: Direction::Tile,
        high_risk: true,
        files,
        sweep: true,
        ..claim(format!("tune all {} knobs", knobs.len()), mechanism, SWEEP_RATIO)
    }
}

fn state(knobs: &[Knob], next: &ProposedMove) -> Hypothesis {
    let changes: Vec<String> =
        next.changes.iter().map(|(name, from, to)| format!("{name} from {from} to {to}")).collect();
    let moved = |knob: &&Knob| next.changes.iter().any(|(name, _, _)| *name == knob.name);
    let moved: Vec<&Knob> = knobs.iter().filter(moved).collect();
    let mut files: Vec<String> = moved.iter().map(|knob| knob.file.clone()).collect();
    files.dedup();
    let ordered = moved.iter().all(|knob| knob.is_ordered());
    let mechanism = format!("I expect {:.2}x because {}", next.expected_ratio, next.why);
    Hypothesis {
        direction: if ordered { Direction::Tile } else { Direction::Algorithm },
        high_risk: !ordered,
        files,
        config: next.config.clone(),
        ..claim(format!("set {}", changes.join(" and ")), mechanism, next.expected_ratio)
    }
}
