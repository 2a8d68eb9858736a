//! Whether a candidate changes only what it may, in the language that its role was asked for.

use super::exact_globs;
use karve_core::campaign::Campaign;
use karve_core::hypothesis::Candidate;
use karve_core::integrity::{self, AuditFinding};
use karve_core::measurement::{Gate, WrongLanguageFile};
use karve_core::roles::wrong_language_files;
use karve_harness::git::{Oid, Repo};
use karve_harness::outcome::GateResult;
use karve_os::error::Result;
use std::collections::BTreeMap;

/// Refuses changes outside the editable files, in another language than requested, with parts
/// that the hypothesis does not state, or with findings that forbid them.
pub(crate) fn check_changes(
    repo: &Repo,
    campaign: &Campaign,
    candidate: &Candidate,
    findings: &[AuditFinding],
) -> GateResult<()> {
    let paths = candidate.out_of_scope.clone();
    let wrong_framework = wrong_files(repo, campaign, candidate)?;
    let policy = campaign.charter().map(|charter| &charter.policy);
    let unstated = policy.map_or_else(Vec::new, |policy| policy.unstated(&candidate.parts));
    if !paths.is_empty() || !wrong_framework.is_empty() || !unstated.is_empty() {
        return Err(Gate::OutOfScope { paths, wrong_framework, unstated }.into());
    }
    match integrity::forbids(findings) {
        Some(gate) => Err(gate.into()),
        None => Ok(()),
    }
}

/// The changed files in another language than the role of the round writes.
fn wrong_files(
    repo: &Repo,
    campaign: &Campaign,
    candidate: &Candidate,
) -> Result<Vec<WrongLanguageFile>> {
    let asks = campaign.charter().map(|charter| &charter.asks);
    let route = campaign.current_round().and_then(|round| round.route.as_ref());
    let (Some(asks), Some(route)) = (asks, route) else {
        return Ok(Vec::new());
    };
    let language = asks.role(&route.implements).and_then(|role| role.language.as_deref());
    let (Some(language), Some(role_table)) = (language, asks.role_table.as_deref()) else {
        return Ok(Vec::new());
    };
    let files = &candidate.files;
    let exact = exact_globs(files)?;
    let texts = |commit: &str| -> Result<BTreeMap<String, String>> {
        let files = repo.read_matching(&Oid::named(commit)?, &exact)?.into_iter();
        let text =
            |(path, bytes): (String, Vec<u8>)| (path, String::from_utf8_lossy(&bytes).into_owned());
        Ok(files.map(text).collect())
    };
    let (mut before, mut after) = (texts(campaign.incumbent())?, texts(&candidate.commit)?);
    let of = |path: &String| {
        let (before, after) = (before.remove(path), after.remove(path));
        (path.clone(), before.unwrap_or_default(), after.unwrap_or_default())
    };
    Ok(wrong_language_files(role_table, language, &files.iter().map(of).collect::<Vec<_>>()))
}
