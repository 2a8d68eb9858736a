//! What a candidate must show before it is kept: its work, counted call by call, where that can
//! prove a doubted gain; and before the first keep, whether the tests notice bugs in it.

use super::context::Context;
use super::repeats::settings_per_case;
use crate::checks::{MutationCheck, exact_globs};
use karve_core::campaign::{Campaign, CountingReason, KeepEvidence};
use karve_core::hypothesis::Candidate;
use karve_core::integrity::{
    CaseWork, MutantCheck, WorkCounts, can_notice, can_tell_by_computing, is_interpreted,
};
use karve_core::measurement::Gate;
use karve_harness::commands::Harness;
use karve_harness::git::Oid;
use karve_harness::outcome::{Failure, IndexedCase, ReasonResult, split};
use karve_harness::project_file::glob_set;
use karve_numerics::case::{Case, CaseSet};
use karve_os::error::Result;
use karve_os::random::fresh_seed;
use karve_profile::profilers::editable::EditableFiles;
use karve_profile::profilers::work::{self, WorkTarget};
use std::path::PathBuf;
use std::time::Duration;

/// The most runs of the benchmark that are counted, for each arm.
const RUNS_MAX: usize = 8;
/// How long bugs are planted in a candidate.
const MUTANTS_TIME_MAX: Duration = Duration::from_secs(60);

/// The work of incumbent and candidate, if that can prove the gain, and nothing else does; or if it
/// can show that results outlive a call.
pub(super) fn count_work(
    context: &mut Context,
    candidate: &Candidate,
    evidence: &KeepEvidence,
    campaign: &Campaign,
) -> Result<Option<Box<WorkCounts>>> {
    let Some(why) = campaign.work_due(evidence) else {
        return Ok(None);
    };
    let sources = changed_sources(context, candidate)?;
    // A choice of path by features of the processor matters only for a proof.
    let noticed = match why {
        CountingReason::Proof => is_interpreted(&context.charter.editable)
            .or_else(|| can_notice(&evidence.findings, &context.charter.audit, &sources)),
        CountingReason::Buffer | CountingReason::Sample => None,
    };
    let counts = match noticed {
        Some(why) => Ok(WorkCounts::NotCounted { why }),
        None => split(count_cases(context, candidate, why, campaign))?,
    };
    let counts = match (counts, can_tell_by_computing(&sources)) {
        (Ok(WorkCounts::Counted { .. }), Some(why)) => WorkCounts::Evaded { why },
        (Ok(counts), _) => counts,
        (Err(_), _) if why == CountingReason::Sample => return Ok(None),
        (Err(why), _) => WorkCounts::NotCounted { why },
    };
    Ok(Some(Box::new(counts)))
}

/// The text of the files that a candidate changes.
fn changed_sources(context: &Context, candidate: &Candidate) -> Result<String> {
    let commit = Oid::named(&candidate.commit)?;
    let changed = context.repos.work.read_matching(&commit, &exact_globs(&candidate.files)?)?;
    let sources: Vec<_> = changed.iter().map(|(_, text)| String::from_utf8_lossy(text)).collect();
    Ok(sources.join("\n"))
}

/// Plants bugs in a candidate, if it would be the first keep.
pub(super) fn check_mutants(
    context: &Context,
    candidate: &Candidate,
    evidence: &KeepEvidence,
    campaign: &Campaign,
) -> Result<Option<MutantCheck>> {
    if !campaign.mutants_due(evidence) {
        return Ok(None);
    }
    let check = MutationCheck {
        repo: &context.repos.work,
        trees: &context.repos.trees,
        harness: &context.harness(),
        charter: &context.charter,
        time_max: Some(MUTANTS_TIME_MAX),
        strength_max: Duration::ZERO,
    };
    let result = check.run(&candidate.commit)?;
    // Bugs that there was no time for might have been noticed.
    let known = result.caught || !result.time_up;
    Ok(known.then_some(MutantCheck { tested: result.tested, noticed: result.caught }))
}

/// Counts the work in one run for each case, or in one for all; of a sample only in one.
fn count_cases(
    context: &mut Context,
    candidate: &Candidate,
    why: CountingReason,
    campaign: &Campaign,
) -> ReasonResult<WorkCounts> {
    let harness = context.harness().with_cases(settings_per_case(campaign));
    let before = CountedTree::of(context, &harness, campaign.incumbent())?;
    let after = CountedTree::of(context, &harness, &candidate.commit)?;
    let indexed = |index: usize| Some((index, campaign.case(index)?));
    let mut cases: Vec<IndexedCase> =
        campaign.cases_of(CaseSet::Full).into_iter().filter_map(indexed).collect();
    let plain: Vec<Case> = cases.iter().map(|(_, case)| case.clone()).collect();
    if why == CountingReason::Sample || harness.benches_all_at_once(&plain) {
        cases.truncate(1);
    }
    if cases.len() > RUNS_MAX {
        return Err(format!("work is counted on at most {RUNS_MAX} cases").into());
    }
    let mut counted = Vec::with_capacity(cases.len());
    for (index, case) in &cases {
        let seed = fresh_seed()?;
        let (entry, old) = work::count(&harness, before.target(case, seed), None)?;
        let new = work::count(&harness, after.target(case, seed), Some(&entry));
        match split(new)? {
            Ok((_, new)) => counted.push(CaseWork::of(*index, &old, &new)),
            Err(why) => return Ok(WorkCounts::Evaded { why }),
        }
        if let Some(work) = counted.last_mut().filter(|work| work.needs_second_count()) {
            let (_, again) = work::count(&harness, before.target(case, seed), None)?;
            work.again = u32::try_from(again.calls.len()).ok();
        }
    }
    Ok(WorkCounts::Counted { cases: counted })
}

/// A built tree, and the functions of its editable files.
struct CountedTree {
    path: PathBuf,
    editable: EditableFiles,
}

impl CountedTree {
    fn of(context: &mut Context, harness: &Harness, commit: &str) -> ReasonResult<Self> {
        let in_words = |failure: Failure<Gate>| failure.map(|gate| gate.describe());
        let path = context.repos.built(harness, commit).map_err(in_words)?.path;
        let globs = glob_set(&context.charter.editable)?;
        let files = context.repos.work.read_matching(&Oid::named(commit)?, &globs)?;
        Ok(Self { path, editable: EditableFiles::of(&files) })
    }

    fn target<'a>(&'a self, case: &'a Case, seed: u64) -> WorkTarget<'a> {
        WorkTarget { tree: &self.path, case, editable: &self.editable, seed }
    }
}
