//! An external agent: a person with an editor, a script, or an agent that drives karve.
//!
//! karve does not call an external agent; the campaign pauses at its next question until one
//! answers it. A submission is data like any other answer, and it is gated and measured in the
//! same way.

use super::secrets::Secrets;
use super::session_log::TurnPrompt;
use super::turn::{FinishedTurn, TurnEnd, TurnTask, UsageReport};
use super::{Agent, Implementation, Proposal, Workspace, answer, prompt, session_log};
use karve_core::campaign::strategy::Brief;
use karve_core::campaign::{ImplementStep, Step};
use karve_core::spending::AgentUsage;
use karve_harness::git::{ChangeKind, Oid, PatchResult};
use karve_os::error::{CommandError, ErrorKind, Result, WithContext};
use karve_os::files::{self, settled};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

pub use karve_core::charter::EXTERNAL;

/// Most files that are copied from a directory.
const FILES_MAX: usize = 1_000;
/// Largest file, in bytes.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// What an external agent submits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExternalAnswer {
    /// A proposal in the contract.
    Proposal(String),
    /// A change, with its author's summary.
    Change(ChangeSource, String),
    /// No change, and why.
    GiveUp(String),
}

/// Where a change is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangeSource {
    /// In a patch against the parent.
    Patch(Vec<u8>),
    /// In a changed copy of the project at the parent.
    Tree(PathBuf),
}

/// An external agent with an answer, or without one.
#[derive(Debug, Default)]
pub struct ExternalAgent {
    answer: Option<ExternalAnswer>,
    left: AnswerReceipt,
}

/// Whether an answer was used, for the caller.
#[derive(Clone, Debug, Default)]
pub struct AnswerReceipt(Arc<AtomicBool>);

impl AnswerReceipt {
    /// Whether the answer is unused, because no step asked for it.
    pub fn is_unused(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl ExternalAgent {
    /// An external agent with an answer.
    pub fn with(answer: ExternalAnswer) -> Self {
        Self { answer: Some(answer), left: AnswerReceipt(Arc::new(AtomicBool::new(true))) }
    }

    /// Says later whether the answer was used.
    pub fn brings(&self) -> AnswerReceipt {
        self.left.clone()
    }

    /// The answer is stored, so keys are removed from it.
    fn take(&mut self) -> Option<ExternalAnswer> {
        self.left.0.store(false, Ordering::Relaxed);
        let keys = Secrets::of(&BTreeMap::new());
        Some(match self.answer.take()? {
            ExternalAnswer::Proposal(text) => ExternalAnswer::Proposal(keys.redact(&text)),
            ExternalAnswer::Change(change, summary) => {
                ExternalAnswer::Change(change, keys.redact(&summary))
            }
            ExternalAnswer::GiveUp(why) => ExternalAnswer::GiveUp(keys.redact(&why)),
        })
    }
}

impl Agent for ExternalAgent {
    fn propose(&mut self, brief: &Brief, workspace: &Workspace<'_>) -> Result<Proposal> {
        let Some(ExternalAnswer::Proposal(text)) = self.take() else {
            return Err(nobody());
        };
        let brief = prompt::render_propose(brief, "with \"karve propose\"")?;
        write_down(workspace, TurnTask::Propose, &brief, &text)?;
        let turned = FinishedTurn { ended: TurnEnd::Replied(text), used: UsageReport::Claimed };
        Ok(turned.proposal())
    }

    fn implement(
        &mut self,
        step: &ImplementStep,
        workspace: &Workspace<'_>,
    ) -> Result<Implementation> {
        let (change, said) = match self.take() {
            Some(ExternalAnswer::Change(change, said)) => (change, said),
            Some(ExternalAnswer::GiveUp(why)) => {
                let usage = AgentUsage::default();
                write_down(workspace, TurnTask::Implement, &prompt::render_implement(step)?, &why)?;
                return Ok(Implementation::NotDone { why, usage });
            }
            Some(ExternalAnswer::Proposal(_)) | None => return Err(nobody()),
        };
        write_down(workspace, TurnTask::of(step), &prompt::render_implement(step)?, &said)?;
        // A summary may have the form of the workflow.
        let read = answer::parse_implementation(&said);
        let (summary, usage) = read.unwrap_or((said, AgentUsage::default()));
        let parent = Oid::named(&step.parent)?;
        if step.repair.is_some() {
            // The submission is the whole change, so the refused one is removed first.
            workspace.repo.worktree_add(workspace.tree, &parent)?;
        }
        match change {
            ChangeSource::Patch(patch) => take_patch(&patch, workspace, step)?,
            ChangeSource::Tree(tree) => take_over(&tree, workspace, &parent, step)?,
        }
        Ok(Implementation::Done { summary, usage })
    }

    fn reads_worktree(&self) -> bool {
        false
    }

    fn waits_for_answer(&self, step: &Step) -> bool {
        match step {
            Step::Propose { .. } => !matches!(self.answer, Some(ExternalAnswer::Proposal(_))),
            Step::Implement(_) => {
                !matches!(self.answer, Some(ExternalAnswer::Change(..) | ExternalAnswer::GiveUp(_)))
            }
            _ => false,
        }
    }
}

/// Logs the brief and the reply; the change itself is stored with the candidate.
fn write_down(workspace: &Workspace<'_>, task: TurnTask, brief: &str, said: &str) -> Result<()> {
    let asked = TurnPrompt { agent: EXTERNAL, task: task.name(), brief };
    let secrets = Secrets::of(&BTreeMap::new());
    session_log::write_down(workspace.session_log, asked, Ok(said), &secrets)
}

/// The error for a submission without a usable change. A slip does not cost a round: nothing is
/// recorded, and the round keeps waiting.
pub fn no_change(why: &str, step: &ImplementStep) -> CommandError {
    let message = format!("the change was not accepted, and round {} is still waiting", step.round);
    CommandError::new(ErrorKind::Negative, message)
        .cause(why)
        .hint(
            "try again: \"karve submit\" takes the workspace, --diff FILE a patch against the \
             parent, --tree DIR a changed copy of the parent",
        )
        .hint("or end the round with \"karve submit --give-up WHY\"")
}

/// A sweep changes nothing: karve tunes the existing knobs.
fn is_due(n_changes: usize, step: &ImplementStep) -> Result<()> {
    match n_changes == 0 && !step.hypothesis.sweep {
        true => Err(no_change("nothing differs from the parent", step)),
        false => Ok(()),
    }
}

fn take_patch(patch: &[u8], workspace: &Workspace<'_>, step: &ImplementStep) -> Result<()> {
    is_due(patch.trim_ascii().len(), step)?;
    match workspace.repo.apply_patch(workspace.tree, patch)? {
        PatchResult::Refused(why) => {
            let why = format!("the patch does not apply: {why}");
            Err(no_change(&why, step))
        }
        _ => Ok(()),
    }
}

/// Copies what differs in a directory to the worktree. Which files are editable is checked later.
fn take_over(
    from: &Path,
    workspace: &Workspace<'_>,
    parent: &Oid,
    step: &ImplementStep,
) -> Result<()> {
    let mut changes = workspace.repo.changes(from, parent)?;
    // In a checkout the campaigns are among the files, and so is this agent's own workspace.
    let (top, campaigns) = (settled(from), campaigns_of(workspace.session_log));
    changes.retain(|change| !is_no_source(&top, &change.path, campaigns.as_deref()));
    let mut taken = 0;
    if changes.len() > FILES_MAX {
        let why = format!("more than {FILES_MAX} files differ from the parent");
        return Err(no_change(&why, step));
    }
    for change in changes {
        let inside =
            Path::new(&change.path).components().all(|part| matches!(part, Component::Normal(_)));
        if !inside {
            let why = format!("{} is not a path in the project", change.path);
            return Err(no_change(&why, step));
        }
        let to = workspace.tree.join(&change.path);
        let cannot = || format!("cannot write {}", to.display());
        if change.kind == ChangeKind::Deleted {
            fs::remove_file(&to).context(cannot)?;
            taken += 1;
            continue;
        }
        if change.is_symlink() || !change.mode.is_file() {
            let why = format!("{} is not a regular file", change.path);
            return Err(no_change(&why, step));
        }
        let bytes = files::read(&from.join(&change.path), FILE_BYTES_MAX);
        let bytes = bytes.map_err(|error| {
            let why = format!("cannot read {}: {error}", change.path);
            no_change(&why, step)
        })?;
        // A worktree differs from the parent even without edits: it lacks the hidden cases.
        if files::read(&to, FILE_BYTES_MAX).is_ok_and(|there| there == bytes) {
            continue;
        }
        taken += 1;
        if let Some(dir) = to.parent() {
            fs::create_dir_all(dir).context(cannot)?;
        }
        fs::write(&to, bytes).context(cannot)?;
    }
    is_due(taken, step)
}

/// The directory of all campaigns, from a file in the temporary directory of one.
fn campaigns_of(log_file: &Path) -> Option<PathBuf> {
    log_file.ancestors().nth(3).map(settled)
}

/// Whether a path of a directory belongs to git or to karve, wherever campaigns are kept. The
/// workspace is itself below that directory, but holds sources.
fn is_no_source(top: &Path, path: &str, campaigns: Option<&Path>) -> bool {
    let own = |part: &std::ffi::OsStr| part == ".git" || part == ".karve";
    Path::new(path).iter().any(own)
        || campaigns.is_some_and(|campaigns| {
            !top.starts_with(campaigns) && top.join(path).starts_with(campaigns)
        })
}

fn nobody() -> CommandError {
    CommandError::new(ErrorKind::Bug, "an external agent was asked but has no answer")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_belongs_to_git_and_karve_is_no_source() {
        let campaigns = campaigns_of(Path::new("/nowhere/runs/toy/tmp/session.jsonl"));
        assert_eq!(campaigns.as_deref(), Some(Path::new("/nowhere/runs")));
        for (path, want) in [
            ("kernel.c", false),
            ("runs.c", false),
            ("karve/x.c", false),
            (".karve/toy/agent-workspace", true),
            ("sub/.karve/toy/events.jsonl", true),
            (".git", true),
            ("runs/toy/agent-workspace", true),
        ] {
            let got = is_no_source(Path::new("/nowhere"), path, campaigns.as_deref());
            assert_eq!(got, want, "{path}");
        }
        let workspace = Path::new("/nowhere/runs/toy/agent-workspace");
        assert!(!is_no_source(workspace, "kernel.c", campaigns.as_deref()));
    }
}
