//! A recorded campaign as an agent: the same hypotheses and patches, judged again.

use super::{
    Agent, AgentQuestion, AgentReply, Implementation, LessonAnswer, LessonQuestion, Proposal,
    QuestionKind, Workspace,
};
use crate::messages;
use karve_core::campaign::strategy::Brief;
use karve_core::campaign::{Event, ImplementStep, ProposalRefusal, Record};
use karve_core::hypothesis::{Candidate, Hypothesis};
use karve_core::knowledge::LessonNotes;
use karve_core::profile::AgentProfile;
use karve_core::roles::Review;
use karve_core::spending::AgentUsage;
use karve_harness::git::{Oid, PatchResult};
use karve_harness::store::{self, CampaignDir};
use karve_os::error::{CommandError, Result};
use std::collections::BTreeMap;
use std::path::Path;

/// The hypotheses and patches of a recorded campaign.
#[derive(Debug)]
pub struct ReplayAgent {
    dir: CampaignDir,
    hypotheses: BTreeMap<u32, Box<Hypothesis>>,
    /// By round, retry and variant.
    candidates: BTreeMap<(u32, u32, u32), Candidate>,
    /// Why there is none, by the same keys.
    absent: BTreeMap<(u32, u32, u32), String>,
    /// Which variant advanced, by round.
    chosen: BTreeMap<u32, u32>,
    /// What the profiler reported, by round.
    reports: BTreeMap<u32, Box<AgentProfile>>,
    /// What reviewers said, by round and attempt.
    reviews: BTreeMap<(u32, u32), Review>,
    /// Lessons by round.
    words: BTreeMap<u32, LessonNotes>,
    /// The last settled round.
    last: u32,
}

impl ReplayAgent {
    /// Opens the directory of a recorded campaign.
    pub fn open(path: &Path) -> Result<Self> {
        let (Some(root), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(CommandError::usage(format!("{} is not a campaign", path.display())));
        };
        let dir = CampaignDir::new(root, &name.to_string_lossy());
        if !dir.exists() {
            return Err(CommandError::usage(format!("{} contains no campaign", path.display()))
                .hint("name the directory of a recorded campaign; \"karve list\" shows them"));
        }
        let mut replay = Self {
            dir: dir.clone(),
            hypotheses: BTreeMap::new(),
            candidates: BTreeMap::new(),
            absent: BTreeMap::new(),
            chosen: BTreeMap::new(),
            reports: BTreeMap::new(),
            reviews: BTreeMap::new(),
            words: BTreeMap::new(),
            last: 0,
        };
        for record in store::read(&dir)?.records {
            replay.take(record);
        }
        Ok(replay)
    }

    fn take(&mut self, record: Record) {
        match record.event {
            Event::Proposed { round, hypothesis, .. } => {
                // A refused duplicate is followed by another proposal.
                self.hypotheses.insert(round, hypothesis);
            }
            Event::Implemented { round, retry, variant, candidate, .. } => {
                self.candidates.insert((round, retry, variant), candidate);
            }
            Event::NotImplemented { round, retry, variant, why, .. } => {
                self.absent.insert((round, retry, variant), why);
            }
            Event::Chosen { round, first, .. } => {
                self.chosen.insert(round, first);
            }
            Event::Reviewed { round, retry, review, .. } => {
                self.reviews.insert((round, retry), *review);
            }
            Event::Profiled { round, profile } => {
                self.reports.extend(profile.report.map(|report| (round, report)));
            }
            Event::Settled { round, .. } => self.last = round,
            Event::Learned { round, lesson, .. } => {
                let words = lesson.learning.map(|learning| learning.words);
                if let Some(words) = words.filter(|words| !words.is_empty()) {
                    self.words.insert(round, words);
                }
            }
            _ => {}
        }
    }
}

impl ReplayAgent {
    /// The recording of a step. If one implementation is requested and several were recorded, it is
    /// the one that advanced.
    fn recorded(&self, step: &ImplementStep) -> Option<&Candidate> {
        let (round, retry) = (step.round, step.retry);
        let at = |variant: u32| self.candidates.get(&(round, retry, variant));
        if step.of > 1 {
            return at(step.variant);
        }
        let all = (round, retry, 0)..=(round, retry, u32::MAX);
        let chosen = self.chosen.get(&round).and_then(|variant| at(*variant));
        chosen.or_else(|| self.candidates.range(all).next().map(|(_, made)| made))
    }
}

/// The artifact with the whole change, including files that it must not change: without that part
/// a refused change might pass.
fn change_of(candidate: &Candidate) -> std::result::Result<&str, String> {
    match (&candidate.whole, candidate.out_of_scope.as_slice()) {
        (Some(whole), _) => Ok(whole),
        (None, []) => Ok(&candidate.patch),
        (None, orphans) => Err(format!(
            "the recorded change also touched {}, which the recording does not contain",
            orphans.join(", ")
        )),
    }
}

impl Agent for ReplayAgent {
    fn propose(&mut self, brief: &Brief, _: &Workspace<'_>) -> Result<Proposal> {
        let usage = AgentUsage::default();
        Ok(match self.hypotheses.get(&brief.round) {
            Some(hypothesis) => {
                let mut again = hypothesis.clone();
                let anew = || "a recording is judged again".to_owned();
                again.differs.get_or_insert_with(anew);
                Proposal::Stated(again, usage)
            }
            None if brief.round <= self.last => {
                let why = format!("the recorded round {} has no hypothesis", brief.round);
                Proposal::Refused(ProposalRefusal::AgentFailed { why }, usage)
            }
            None => {
                let why = format!("the recorded campaign has no round {}", brief.round);
                Proposal::Refused(ProposalRefusal::Exhausted { why }, usage)
            }
        })
    }

    fn implement(
        &mut self,
        step: &ImplementStep,
        workspace: &Workspace<'_>,
    ) -> Result<Implementation> {
        let usage = AgentUsage::default();
        let Some(candidate) = self.recorded(step) else {
            let absent = self.absent.get(&(step.round, step.retry, step.variant));
            let none = || "the recorded campaign has no candidate here".to_owned();
            let why = absent.cloned().unwrap_or_else(none);
            return Ok(Implementation::NotDone { why, usage });
        };
        let patch = match change_of(candidate) {
            Ok(patch) => store::get_artifact(&self.dir, patch)?,
            Err(why) => return Ok(Implementation::NotDone { why, usage }),
        };
        if step.repair.is_some() {
            // The patch is the whole change, so the refused change is removed first.
            let parent = Oid::named(&step.parent)?;
            workspace.repo.worktree_add(workspace.tree, &parent)?;
        }
        if let PatchResult::Refused(said) = workspace.repo.apply_patch(workspace.tree, &patch)? {
            let why = format!("the recorded patch does not apply: {said}");
            return Ok(Implementation::NotDone { why, usage });
        }
        Ok(Implementation::Done { summary: candidate.summary.clone(), usage })
    }

    fn ask(&mut self, question: &AgentQuestion<'_>, _: &Workspace<'_>) -> Result<AgentReply> {
        let usage = AgentUsage::default();
        if question.kind == QuestionKind::Profile {
            let report = self.reports.get(&question.round);
            return Ok(match report.filter(|report| !report.text.is_empty()) {
                Some(report) => AgentReply::Replied { text: report.text.clone(), usage },
                None => AgentReply::Failed {
                    why: "the recorded campaign has no report here".to_owned(),
                    usage,
                },
            });
        }
        let review = self.reviews.get(&(question.round, question.retry));
        let said = review.and_then(messages::render_review);
        Ok(match said {
            Some(text) => AgentReply::Replied { text, usage },
            None => AgentReply::Failed {
                why: review.map_or_else(
                    || "the recorded campaign has no review here".to_owned(),
                    |review| review.failed.clone(),
                ),
                usage,
            },
        })
    }

    fn reads_worktree(&self) -> bool {
        false
    }

    fn learns(&self, _: Option<&str>) -> bool {
        !self.words.is_empty()
    }

    fn learn(&mut self, taught: &LessonQuestion<'_>, _: &Workspace<'_>) -> Result<LessonAnswer> {
        let words = self.words.get(&taught.round).cloned();
        Ok(LessonAnswer { words: words.unwrap_or_default(), ..LessonAnswer::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_change_is_given_again_or_none() {
        let candidate = |orphans: &[&str], whole: Option<&str>| Candidate {
            commit: "c".into(),
            tree: "t".into(),
            files: vec!["kernel.c".into()],
            patch: "editable".into(),
            out_of_scope: orphans.iter().map(|orphan| (*orphan).to_owned()).collect(),
            whole: whole.map(str::to_owned),
            summary: String::new(),
            parts: Vec::new(),
        };
        assert_eq!(change_of(&candidate(&[], None)), Ok("editable"));
        assert_eq!(change_of(&candidate(&["bench.c"], Some("all"))), Ok("all"));
        let why = change_of(&candidate(&["bench.c"], None)).unwrap_err();
        assert!(why.contains("also touched bench.c"), "{why}");
    }
}
