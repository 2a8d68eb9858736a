//! The kernel as it is handed back: built and tested on all cases, and by the project's own
//! acceptance test.

use super::context::Context;
use karve_core::campaign::Campaign;
use karve_core::charter::{Charter, WorkMode};
use karve_core::measurement::Gate;
use karve_harness::commands::{CommandVariant, Harness};
use karve_harness::git::Repo;
use karve_harness::outcome::{GateResult, split};
use karve_harness::worktrees::Worktrees;
use karve_numerics::case::Case;
use karve_os::error::Result;

/// What is tested, and with what.
pub(crate) struct AcceptanceTest<'a> {
    pub(crate) campaign: &'a Campaign,
    pub(crate) charter: &'a Charter,
    pub(crate) harness: Harness,
    /// The user's repository.
    pub(crate) upstream: &'a Repo,
}

impl AcceptanceTest<'_> {
    /// Builds and tests a commit with the commands of its mode.
    pub(crate) fn run(self, trees: &mut Worktrees, commit: &str) -> Result<Gate> {
        let Self { campaign, charter, harness, upstream } = self;
        let harness = harness.with_commands(match &charter.mode {
            WorkMode::Repo => &charter.commands,
            WorkMode::Workspace { integration, .. } => integration,
        });
        let cases = charter.all_cases().into_iter();
        let cases: Vec<Case> = cases.filter_map(|index| campaign.case(index)).collect();
        let mut test = || -> GateResult<()> {
            let built = trees.built(upstream, &harness, commit)?;
            // Under a contract the gate of its round called it on all cases, and nothing changed
            // since.
            if charter.contract.is_none() {
                harness.test(&built.path, &cases, CommandVariant::Usual)?;
            }
            match &charter.commands.acceptance {
                Some(line) => harness.accept(line, &built.path),
                None => Ok(()),
            }
        };
        Ok(split(test())?.err().unwrap_or(Gate::Passed))
    }
}

/// The same where the campaign is measured.
pub(crate) fn accept(context: &mut Context, commit: &str, campaign: &Campaign) -> Result<Gate> {
    let test = AcceptanceTest {
        campaign,
        charter: &context.charter,
        harness: context.harness(),
        upstream: &context.repos.upstream,
    };
    test.run(&mut context.repos.trees, commit)
}
