//! Agenda items that karve can carry out without an agent: knob values, a sweep, an entry's recipe.

use super::recipes::ApplicableRecipe;
use super::{BuiltinAgent, knobs_at, recipes, state_sweep};
use crate::Proposal;
use karve_core::agenda::{AgendaItem, ItemAction};
use karve_core::campaign::strategy::Brief;
use karve_core::campaign::{AgendaTask, ProposalRefusal};
use karve_core::hypothesis::{Direction, Hypothesis};
use karve_core::knowledge::KnownEntry;
use karve_core::spending::AgentUsage;
use karve_harness::git::Repo;
use karve_numerics::space::{Knob, KnobSetting};
use karve_os::error::Result;

impl BuiltinAgent {
    /// States the hypothesis of an item, or why it cannot be carried out.
    pub(super) fn carry_out(
        &self,
        task: &AgendaTask,
        brief: &Brief,
        (repo, knobs): (&Repo, &[Knob]),
    ) -> Result<Proposal> {
        let item = &task.item;
        let stated = match &item.how {
            ItemAction::Words => Err("only an agent can carry out a task in words".to_owned()),
            ItemAction::Knobs { config } => state_values(item, config, knobs),
            ItemAction::Sweep if knobs.is_empty() => {
                Err("no knobs are declared anymore".to_owned())
            }
            ItemAction::Sweep if !brief.sweep => {
                Err("all knobs of this kernel are already tuned, or no time is left".to_owned())
            }
            ItemAction::Sweep => Ok(state_sweep(knobs)),
            ItemAction::Entry { entry } => {
                let texts = recipes::texts_at(repo, &brief.parent, &self.editable)?;
                let recipe = recipes::of_entry(&brief.recall, entry, (&texts, knobs));
                let none = || format!("no other recipe of the entry {entry} changes anything here");
                recipe.as_ref().map(ApplicableRecipe::state).ok_or_else(none)
            }
        };
        let usage = AgentUsage::default();
        Ok(match stated {
            Ok(mut hypothesis) => {
                hypothesis.task = Some(item.id.clone());
                Proposal::Stated(Box::new(hypothesis), usage)
            }
            Err(why) => Proposal::Refused(ProposalRefusal::Exhausted { why }, usage),
        })
    }

    /// Whether a recipe of an entry changes anything in the editable files of a commit.
    pub fn can_apply(&self, repo: &Repo, commit: &str, known: &KnownEntry) -> Result<bool> {
        let knobs = knobs_at(repo, commit, &self.editable, &self.declared)?;
        let texts = recipes::texts_at(repo, commit, &self.editable)?;
        let mut ways = known.apply.iter();
        Ok(ways.any(|action| recipes::apply(action, &texts, &knobs).is_some()))
    }
}

/// The hypothesis that some knobs are better at these values.
fn state_values(
    item: &AgendaItem,
    wanted: &KnobSetting,
    knobs: &[Knob],
) -> Result<Hypothesis, String> {
    let mut changes = Vec::new();
    let mut files = Vec::new();
    let mut ordered = true;
    for (name, value) in wanted {
        let Some(knob) = knobs.iter().find(|knob| knob.name == *name) else {
            return Err(format!("the kernel no longer has a knob {name}"));
        };
        if knob.current != *value {
            changes.push(format!("{name} from {} to {value}", knob.current));
            files.push(knob.file.clone());
            ordered &= knob.is_ordered();
        }
    }
    if changes.is_empty() {
        return Err("the knobs already have these values".to_owned());
    }
    files.sort();
    files.dedup();
    let mut config = super::config_of(knobs);
    config.extend(wanted.clone());
    Ok(Hypothesis {
        title: format!("set {}", changes.join(" and ")),
        mechanism: format!(
            "I expect {:.2}x because the agenda asks for it: {}",
            item.expected_ratio, item.title
        ),
        expected_ratio: item.expected_ratio,
        direction: Direction::Tile,
        high_risk: !ordered,
        files,
        config,
        ..Hypothesis::default()
    })
}
