//! A turn of an agent: its workspace, and its session log as an artifact.

use super::World;
use super::gate::cases_at;
use karve_agents::{Agent, Workspace};
use karve_core::campaign::Campaign;
use karve_core::spending::AgentUsage;
use karve_harness::commands::Harness;
use karve_harness::git::{HistoryAccess, Oid};
use karve_harness::store;
use karve_numerics::case::{Case, CaseSet};
use karve_os::error::Result;
use std::fs;
use std::path::{Path, PathBuf};

/// The context of a turn, except for its worktree.
pub(super) struct WorkspaceSetup {
    harness: Harness,
    /// The visible cases.
    cases: Vec<Case>,
    /// What the campaign has used so far.
    pub(super) spent: AgentUsage,
}

/// The result of a turn, and the artifact with its session log.
pub(super) type TurnOutcome<T> = (T, Option<String>);

impl World {
    /// The context of a turn, except for its worktree.
    pub(super) fn setting(&self, campaign: &Campaign) -> WorkspaceSetup {
        WorkspaceSetup {
            harness: self.harness(),
            cases: cases_at(campaign, &campaign.cases_of(CaseSet::Full)),
            spent: campaign.cost(),
        }
    }

    /// A turn in a worktree, which stays as the agent left it.
    pub(super) fn turn_in<T>(
        &mut self,
        tree: &Path,
        setting: &WorkspaceSetup,
        turn: impl FnOnce(&mut dyn Agent, &Workspace<'_>) -> Result<T>,
    ) -> Result<TurnOutcome<T>> {
        // Outside everything that the agent sees.
        let exchange = self.dir.join("tmp").join("exchange.jsonl");
        let _ = fs::remove_file(&exchange);
        let desk = Workspace {
            repo: &self.repo,
            tree,
            notes: &self.dir.join("tmp").join("agent"),
            session_log: &exchange,
            stop: &self.stop,
            sandbox: self.sandbox.as_deref(),
            harness: &setting.harness,
            cases: &setting.cases,
            spent: setting.spent,
        };
        let came = turn(self.agent.as_mut(), &desk)?;
        let kept = match exchange.is_file() {
            true => Some(store::take_artifact(&self.dir, &exchange)?),
            false => None,
        };
        if self.agent.reads_worktree() {
            // A program may have changed more than its own worktree: the build of the incumbent,
            // or how git checks files out. Both arms are rebuilt, in the same way.
            self.trees.keep_only(&self.repo, &[])?;
        }
        Ok((came, kept))
    }

    /// A turn in which files are only read: at a commit, in a worktree whose changes are discarded.
    pub(super) fn turn_at<T>(
        &mut self,
        commit: &str,
        setting: &WorkspaceSetup,
        turn: impl FnOnce(&mut dyn Agent, &Workspace<'_>) -> Result<T>,
    ) -> Result<TurnOutcome<T>> {
        if !self.agent.reads_worktree() {
            let dir = self.dir.path().to_owned();
            return self.turn_in(&dir, setting, turn);
        }
        let tree = self.worktree_for_agent(commit)?;
        let came = self.turn_in(&tree, setting, turn);
        self.trees.remove(&self.repo, &tree)?;
        came
    }

    /// A fresh worktree for the agent, with a separate repository if the agent is a program.
    pub(super) fn worktree_for_agent(&self, commit: &str) -> Result<PathBuf> {
        let tree = self.trees.fresh(&self.repo, "agent", commit)?;
        if self.agent.reads_worktree() {
            self.detach(&tree, commit)?;
        }
        Ok(tree)
    }

    /// A confined agent cannot write to the user's repository, and may not see all of it.
    fn detach(&self, tree: &Path, parent: &str) -> Result<()> {
        if self.sandbox.is_none() {
            return Ok(());
        }
        let tells = !self.charter.hidden_cases().is_empty() || self.charter.sandbox.seals_history;
        // The repository of a workspace is in the campaign, which an agent cannot see.
        let is_users = self.repo.common_dir() == self.upstream.common_dir();
        let past = match is_users && !tells {
            true => HistoryAccess::Shown,
            false => HistoryAccess::Sealed,
        };
        self.repo.detach_worktree(tree, &Oid::named(parent)?, past)
    }
}
