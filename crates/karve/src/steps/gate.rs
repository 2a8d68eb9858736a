//! The steps of a round except the duel: profile, propose, implement, gate, settle, learn.

use super::audit::audit_commits;
use super::missing_candidate::{CandidateResult, MissingCandidate};
use super::review::out_of_scope;
use super::{World, bug, refs_of};
use crate::reports;
use karve_agents::builtin::{config_of, knobs_at};
use karve_agents::{Implementation, Proposal};
use karve_core::agenda::ItemAction;
use karve_core::campaign::strategy::Brief;
use karve_core::campaign::{Campaign, Event, ImplementStep, Step};
use karve_core::charter::Branch;
use karve_core::hypothesis::{Candidate, Hypothesis};
use karve_core::integrity;
use karve_core::measurement::Gate;
use karve_harness::commands::{CommandVariant, Harness};
use karve_harness::git::{CandidateCommit, CandidateFilter, CommitNote, ExpectedRef, Oid};
use karve_harness::outcome::GateResult;
use karve_harness::store;
use karve_numerics::case::{Case, CaseSet};
use karve_numerics::contract::CaseTensorError;
use karve_numerics::space::KnobSetting;
use karve_os::clock;
use karve_os::error::Result;
use std::path::Path;

/// Files of a refused change that are named.
const NAMED_MAX: usize = 10;

impl World {
    pub(super) fn propose(
        &mut self,
        (round, try_no): (u32, u32),
        brief: &Brief,
        campaign: &Campaign,
    ) -> Result<Event> {
        let setting = self.setting(campaign);
        let asked = brief.agenda_request.as_ref();
        let route = asked.map(|asked| Box::new(asked.route.clone()));
        let (proposal, exchange) = self.turn_at(&brief.parent, &setting, |agent, desk| {
            agent.propose(brief, desk)
        })?;
        Ok(match proposal {
            Proposal::Stated(hypothesis, usage) => Event::Proposed {
                round,
                try_no,
                hypothesis,
                usage,
                session_log: exchange,
                route,
            },
            Proposal::Refused(refusal, usage) => Event::ProposalRefused {
                round,
                try_no,
                refusal,
                usage,
                session_log: exchange,
                route,
            },
        })
    }

    pub(super) fn implement(&mut self, step: &ImplementStep, campaign: &Campaign) -> Result<Event> {
        let ImplementStep {
            round,
            retry,
            variant,
            ..
        } = *step;
        let tree = self.worktree_for_agent(&step.parent)?;
        self.apply_failed_change(&tree, step)?;
        let setting = self.setting(campaign);
        let (implementation, exchange) =
            self.turn_in(&tree, &setting, |agent, desk| agent.implement(step, desk))?;
        let (made, usage) = match implementation {
            Implementation::NotDone { why, usage } => (Err(why), usage),
            Implementation::Done { summary, usage } => {
                let taken = self.take(step, (&tree, summary), campaign)?;
                (taken, usage)
            }
        };
        if let (Ok(candidate), true) = (&made, step.of > 1) {
            self.keep_variant(candidate, (round, variant))?;
        }
        let event = match made {
            Ok(candidate) => Event::Implemented {
                round,
                retry,
                variant,
                candidate,
                usage,
                session_log: exchange,
            },
            Err(why) => Event::NotImplemented {
                round,
                retry,
                variant,
                why,
                usage,
                session_log: exchange,
            },
        };
        self.trees.remove(&self.repo, &tree)?;
        Ok(event)
    }

    /// What an agent left in its worktree, as a candidate, or why it is not one.
    fn take(
        &self,
        step: &ImplementStep,
        (tree, summary): (&Path, String),
        campaign: &Campaign,
    ) -> Result<std::result::Result<Candidate, String>> {
        let asked = step.brief.agenda_request.as_ref();
        let writes = asked.map(|asked| asked.implements.writes.as_slice());
        let at = (step.round, step.parent.as_str());
        let taken = self.candidate_in((tree, writes), at, &step.hypothesis, summary)?;
        let (candidate, refused) = match taken {
            Ok(taken) => taken,
            Err(MissingCandidate(why)) => return Ok(Err(why)),
        };
        let why = self.why_rejected(step, (&candidate, &refused), campaign)?;
        Ok(why.map_or(Ok(candidate), Err))
    }

    /// Why a change is not a candidate, if so: it changes only files that it must not, or it sets
    /// other values than the agenda item that is due asks for.
    fn why_rejected(
        &self,
        step: &ImplementStep,
        (candidate, refused): (&Candidate, &[String]),
        campaign: &Campaign,
    ) -> Result<Option<String>> {
        if candidate.files.is_empty() && !refused.is_empty() && !step.hypothesis.sweep {
            let named = refused.iter().take(NAMED_MAX).cloned();
            let named = named.collect::<Vec<String>>().join(", ");
            let more = match refused.len().saturating_sub(NAMED_MAX) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            let who = step.brief.agenda_request.as_ref().map_or_else(
                || "not editable".to_owned(),
                |asked| format!("not editable in the role {}", asked.route.implements),
            );
            return Ok(Some(format!(
                "out of scope: the only changes are to {named}{more}, {who}"
            )));
        }
        let Some(task) = campaign.task() else {
            return Ok(None);
        };
        if !matches!(task.item.how, ItemAction::Knobs { .. }) {
            return Ok(None);
        }
        let values = |commit: &str| -> Result<KnobSetting> {
            let (editable, declared) = (&self.charter.editable, &self.charter.knobs);
            let knobs = knobs_at(&self.repo, commit, editable, declared)?;
            Ok(config_of(&knobs))
        };
        let before = values(&step.parent)?;
        // Declarations that no longer parse do not have the requested values.
        let after = values(&candidate.commit).unwrap_or_default();
        Ok(task.item.misses_values(&before, &after))
    }

    /// The parent's tree plus the worktree's editable files becomes a commit under a hidden ref. A
    /// role may include only some of them; files that are left out are named. Every candidate is
    /// made here, whoever wrote it, so this is where one that contains a key is refused.
    pub(super) fn candidate_in(
        &self,
        (worktree, writes): (&Path, Option<&[String]>),
        (round, parent): (u32, &str),
        hypothesis: &Hypothesis,
        summary: String,
    ) -> Result<CandidateResult> {
        let message = reports::render_candidate_message(&self.charter, round, hypothesis);
        let note = CommitNote {
            message: &message,
            date: clock::now_s(),
        };
        self.trees.reveal(&self.repo, worktree, parent)?;
        let on = Oid::named(parent)?;
        let globs = self.grant(worktree, &on, writes)?;
        let forbids = |bytes: &[u8]| self.holds_key(bytes);
        let terms = CandidateFilter {
            editable: &globs,
            forbids: &forbids,
        };
        let made = self.repo.commit_within(worktree, &on, terms, &note)?;
        if let Some(untaken) = MissingCandidate::of(&made, terms) {
            return Ok(Err(untaken));
        }
        let CandidateCommit {
            oid,
            tree,
            files,
            patch,
            out_of_scope,
            ..
        } = made;
        let refused = out_of_scope.iter().map(|refused| &refused.change.path);
        let refused: Vec<String> = refused.cloned().collect();
        // An extra new file is just left behind; a changed read-only file is reported.
        let out_of_scope: Vec<String> = out_of_scope
            .into_iter()
            .filter(|refused| refused.change.tracked)
            .map(|refused| refused.change.path)
            .collect();
        let whole = self.whole_change((worktree, &on), (&files, &out_of_scope), &note)?;
        let name = format!("{}/round-{round}", refs_of(&self.charter.name));
        self.repo.update_ref(&name, &oid, ExpectedRef::Any)?;
        let candidate = Candidate {
            commit: oid.to_string(),
            tree: tree.to_string(),
            files,
            patch: store::put_artifact(&self.dir, &patch)?,
            out_of_scope,
            whole,
            summary,
        };
        Ok(Ok((candidate, refused)))
    }

    pub(super) fn gate(&mut self, step: &Step, campaign: &Campaign) -> Result<Event> {
        let Step::Gate {
            round,
            retry,
            candidate,
            set,
        } = step
        else {
            return Err(bug("the gate was called for another step"));
        };
        let commits = (
            &Oid::named(campaign.incumbent())?,
            &Oid::named(&candidate.commit)?,
        );
        if self.charter.policy.best_of > 1 {
            self.name_candidate(*round, commits.1)?;
        }
        let findings = audit_commits(&self.repo, &self.charter, commits, &candidate.files)?;
        let forbidden = integrity::forbids(&findings);
        let gated = |gate, same_artifact| Event::Gated {
            round: *round,
            retry: *retry,
            set: *set,
            gate,
            same_artifact,
            errors: Vec::new(),
            findings,
            knobs: 0,
        };
        if let Some(gate) = out_of_scope(&self.repo, campaign, commits, candidate)? {
            return Ok(gated(gate, false));
        }
        if let Some(gate) = forbidden {
            return Ok(gated(gate, false));
        }
        let harness = self.harness();
        let built = match self.trees.built(&self.repo, &harness, &candidate.commit)? {
            Ok(built) => built,
            Err(gate) => return Ok(gated(gate, false)),
        };
        let parent = self
            .trees
            .built(&self.repo, &harness, campaign.incumbent())?;
        let harness = match &parent {
            Ok(parent) => harness.beside(&parent.path),
            Err(_) => harness,
        };
        let parent_artifacts = parent.ok().and_then(|built| built.artifacts);
        let same = built.artifacts.is_some() && built.artifacts == parent_artifacts;
        let (gate, errors) = tested(&harness, &built.path, *set, campaign)?;
        let passed = gate.is_ok();
        let mut event = match gate {
            Ok(()) => gated(Gate::Passed, same),
            Err(gate) => gated(gate, false),
        };
        if let Event::Gated {
            errors: seen,
            knobs,
            ..
        } = &mut event
        {
            *seen = errors;
            *knobs = match passed {
                true => self.tunable_knobs(candidate, campaign.incumbent()),
                false => 0,
            };
        }
        Ok(event)
    }

    pub(super) fn settle(&mut self, step: &Step, campaign: &Campaign) -> Result<Event> {
        let Step::Settle {
            round,
            verdict,
            candidate,
        } = step
        else {
            return Err(bug("settle was called for another step"));
        };
        let settled = |commit| Event::Settled {
            round: *round,
            verdict: verdict.clone(),
            commit,
        };
        let (Some(candidate), true) = (candidate, verdict.keeps()) else {
            self.trees.keep_only(&self.repo, &[campaign.incumbent()])?;
            return Ok(settled(None));
        };
        let Some(state) = campaign.current_round() else {
            return Err(bug("settle was called outside a round"));
        };
        // The message has the result, which was not known when the candidate was committed.
        let message = reports::render_commit_message(campaign, &state.preview(verdict.clone()));
        let new = self
            .repo
            .recommit(&Oid::named(&candidate.commit)?, &message)?;
        if let Branch::Named { name } = &self.charter.branch {
            let old = Oid::named(campaign.incumbent())?;
            self.repo
                .update_ref(&format!("refs/heads/{name}"), &new, ExpectedRef::At(&old))?;
        }
        for name in [format!("round-{round}"), "best".to_owned()] {
            let name = format!("{}/{name}", refs_of(&self.charter.name));
            self.repo.update_ref(&name, &new, ExpectedRef::Any)?;
        }
        self.trees.rename(&candidate.commit, new.as_str());
        self.trees.keep_only(&self.repo, &[new.as_str()])?;
        Ok(settled(Some(new.to_string())))
    }
}

/// The test result of a built tree on a set, and how far its results are from the reference.
fn tested(
    harness: &Harness,
    tree: &Path,
    set: CaseSet,
    campaign: &Campaign,
) -> Result<(GateResult<()>, Vec<CaseTensorError>)> {
    let variant = if set == CaseSet::Quick {
        CommandVariant::Quick
    } else {
        CommandVariant::Usual
    };
    let (mut gate, errors) = tested_visibly(harness, tree, (set, variant), campaign)?;
    if gate.is_ok() && set == CaseSet::Full {
        let hidden = cases_at(campaign, &campaign.cases_of(CaseSet::Hidden));
        if harness.tests_each_case(&hidden) {
            gate = harness.test(tree, &hidden, variant)?.map_err(conceal);
        }
    }
    Ok((gate, errors))
}

/// The same without hidden cases.
pub(super) fn tested_visibly(
    harness: &Harness,
    tree: &Path,
    (set, variant): (CaseSet, CommandVariant),
    campaign: &Campaign,
) -> Result<(GateResult<()>, Vec<CaseTensorError>)> {
    let visible = cases_at(campaign, &campaign.cases_of(set));
    Ok(match harness.check_kernel(tree, &visible)? {
        Some(Ok(examined)) => (Ok(()), examined),
        Some(Err(gate)) => (Err(gate), Vec::new()),
        None => (harness.test(tree, &visible, variant)?, Vec::new()),
    })
}

pub(super) fn cases_at(campaign: &Campaign, indices: &[usize]) -> Vec<Case> {
    indices
        .iter()
        .filter_map(|index| campaign.case(*index))
        .collect()
}

/// Removes the details of a hidden case and of its failure.
fn conceal(gate: Gate) -> Gate {
    match gate {
        Gate::WrongResult { category, .. } => Gate::WrongResult {
            case: "a hidden case".into(),
            category,
            excerpt: "hidden cases are reported without details".into(),
        },
        Gate::TimedOut { .. } => Gate::TimedOut {
            what: "the test on a hidden case".into(),
        },
        other => other,
    }
}
