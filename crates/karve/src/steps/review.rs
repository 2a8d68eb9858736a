//! Roles in a round: what a role may change, whether it used its language, what a reviewer says.

use super::World;
use super::audit::exact_globs;
use globset::GlobSet;
use karve_agents::messages;
use karve_agents::{AgentQuestion, AgentReply, render_review};
use karve_core::campaign::{Campaign, Event, ReviewStep, UnreadableReview};
use karve_core::hypothesis::Candidate;
use karve_core::measurement::Gate;
use karve_core::measurement::WrongLanguageFile;
use karve_core::roles::{Review, wrong_language_files};
use karve_core::spending::AgentUsage;
use karve_harness::git::{Oid, Repo};
use karve_harness::project_file;
use karve_harness::store;
use karve_os::error::Result;
use std::collections::BTreeMap;

/// How often a reviewer is asked: again with every error listed, if its answer cannot be parsed.
const REVIEW_TRIES: u32 = 2;

impl World {
    /// What a candidate may include from a worktree: the editable files, and in a role only the
    /// changed ones that it may write.
    pub(super) fn grant(
        &self,
        tree: &std::path::Path,
        parent: &Oid,
        writes: Option<&[String]>,
    ) -> Result<GlobSet> {
        let editable = project_file::glob_set(&self.charter.editable)?;
        let Some(writes) = writes else {
            return Ok(editable);
        };
        let writes = project_file::glob_set(writes)?;
        let changes = self.repo.changes(tree, parent)?.into_iter();
        let paths = changes.map(|change| change.path);
        let both = paths.filter(|path| editable.is_match(path) && writes.is_match(path));
        exact_globs(&both.collect::<Vec<_>>())
    }

    /// The name of the agent behind an event, if there was one.
    pub fn asked_agent(&self, campaign: &Campaign, event: &Event) -> Option<String> {
        let of_round = || {
            campaign
                .current_round()
                .and_then(|round| round.route.as_deref())
        };
        let role = match event {
            Event::Proposed { route, .. } | Event::ProposalRefused { route, .. } => {
                route.as_ref().map(|route| route.role.as_str())
            }
            Event::Implemented { .. } | Event::NotImplemented { .. } => {
                of_round().map(|route| route.implements.as_str())
            }
            Event::Reviewed { .. } => {
                let reviewer = self.charter.asks.reviewer();
                reviewer.map(|role| role.name.as_str())
            }
            Event::Learned {
                session_log: Some(_),
                ..
            } => None,
            _ => return None,
        };
        self.agent.called(role).map(str::to_owned)
    }

    /// Another agent reviews a candidate. Whatever the review says, the gate is next, or the policy
    /// decides.
    pub(super) fn review(&mut self, step: &ReviewStep, campaign: &Campaign) -> Result<Event> {
        let patch = store::get_artifact(&self.dir, &step.candidate.patch)?;
        let patch = String::from_utf8_lossy(&patch).into_owned();
        let (mut usage, mut errors) = (AgentUsage::default(), Vec::new());
        let (mut review, mut earlier) = (None, Vec::new());
        let mut last: Option<UnreadableReview> = None;
        let mut setting = self.setting(campaign);
        let before = setting.spent;
        for _ in 0..REVIEW_TRIES {
            setting.spent = sum(before, usage);
            let brief = render_review(step, &patch, &errors);
            let question = AgentQuestion {
                round: step.round,
                retry: step.retry,
                role: &step.role,
                brief: &brief,
            };
            let commit = &step.candidate.commit;
            let (answered, exchange) =
                self.turn_at(commit, &setting, |agent, desk| agent.ask(&question, desk))?;
            earlier.extend(last.take());
            let (said, used) = match answered {
                AgentReply::Replied { text, usage } => (Ok(text), usage),
                AgentReply::Failed { why, usage } => (Err(why), usage),
            };
            usage = sum(usage, used);
            let is_answered = said.is_ok();
            let read = match said {
                Ok(text) => messages::review_of(&step.candidate.tree, &text)?,
                Err(why) => Err(vec![why]),
            };
            last = Some(UnreadableReview {
                errors: read.as_ref().err().cloned().unwrap_or_default(),
                usage: used,
                session_log: exchange,
            });
            match read {
                Ok(said) => review = Some(said),
                Err(faults) => errors = faults,
            }
            if review.is_some() || !is_answered {
                break;
            }
        }
        let tree = &step.candidate.tree;
        let failed = || Review::failed(tree, &errors.join("; "));
        Ok(Event::Reviewed {
            round: step.round,
            retry: step.retry,
            review: Box::new(review.unwrap_or_else(failed)),
            usage,
            session_log: last.and_then(|turn| turn.session_log),
            earlier,
        })
    }
}

fn sum(a: AgentUsage, b: AgentUsage) -> AgentUsage {
    AgentUsage {
        tokens: a.tokens.saturating_add(b.tokens),
        usd: a.usd + b.usd,
        estimated: a.estimated || b.estimated,
    }
}

/// The gate failure for changes outside the editable files, or in another language than requested;
/// none if there are none.
pub(super) fn out_of_scope(
    repo: &Repo,
    campaign: &Campaign,
    commits: (&Oid, &Oid),
    candidate: &Candidate,
) -> Result<Option<Gate>> {
    let paths = candidate.out_of_scope.clone();
    let wrong_framework = wrong_files(repo, campaign, commits, &candidate.files)?;
    let outside = !paths.is_empty() || !wrong_framework.is_empty();
    Ok(outside.then_some(Gate::OutOfScope {
        paths,
        wrong_framework,
    }))
}

/// The changed files in another language than the role of the round writes.
fn wrong_files(
    repo: &Repo,
    campaign: &Campaign,
    (parent, candidate): (&Oid, &Oid),
    files: &[String],
) -> Result<Vec<WrongLanguageFile>> {
    let asks = campaign.charter().map(|charter| &charter.asks);
    let route = campaign
        .current_round()
        .and_then(|round| round.route.as_ref());
    let (Some(asks), Some(route)) = (asks, route) else {
        return Ok(Vec::new());
    };
    let language = asks
        .role(&route.implements)
        .and_then(|role| role.language.as_deref());
    let (Some(language), Some(book)) = (language, asks.role_table.as_deref()) else {
        return Ok(Vec::new());
    };
    let exact = exact_globs(files)?;
    let texts = |commit: &Oid| -> Result<BTreeMap<String, String>> {
        let files = repo.read_matching(commit, &exact)?.into_iter();
        let text =
            |(path, bytes): (String, Vec<u8>)| (path, String::from_utf8_lossy(&bytes).into_owned());
        Ok(files.map(text).collect())
    };
    let (mut before, mut after) = (texts(parent)?, texts(candidate)?);
    let of = |path: &String| {
        let (before, after) = (before.remove(path), after.remove(path));
        (
            path.clone(),
            before.unwrap_or_default(),
            after.unwrap_or_default(),
        )
    };
    Ok(wrong_language_files(
        book,
        language,
        &files.iter().map(of).collect::<Vec<_>>(),
    ))
}
