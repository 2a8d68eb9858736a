//! A bundle from somebody else: its files, its log, and where the repository is, its patch.

use super::{JudgedLog, VerifyReport, charter, check_artifacts, judge_again};
use crate::bundle::{self, BundleFacts, PATCH, UnpackedBundle};
use crate::project::ProjectArgs;
use crate::reports;
use karve_core::campaign::Campaign;
use karve_harness::git::{Oid, PatchedTree, Repo};
use karve_os::error::Result;
use karve_os::files;
use karve_os::text::{counted, safe};
use serde::Serialize;
use std::collections::BTreeSet;
use std::path::Path;

/// What was checked of a bundle.
#[derive(Debug, Serialize)]
pub(super) struct BundleChecks {
    campaign: String,
    /// The version of karve that wrote it.
    karve: String,
    /// Files that have the hash of its list.
    files: usize,
    /// Artifacts that it does not have.
    left_out: usize,
    /// What is known about the patch.
    patch: PatchCheck,
}

/// Whether the patch gives the final kernel.
#[derive(Debug, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
enum PatchCheck {
    /// It does, in the repository here.
    Checked { tree: String },
    /// It does not.
    Differs,
    /// It could not be checked.
    NotChecked { why: String },
    /// Nothing was kept, and the patch is empty.
    Nothing,
}

impl BundleChecks {
    pub(super) fn lines(&self) -> Vec<String> {
        let files = counted(self.files, "file");
        let (campaign, karve) = (safe(&self.campaign, 80), safe(&self.karve, 40));
        let mut lines =
            vec![format!("bundle    {campaign}: {files} as listed, written by karve {karve}")];
        if self.left_out > 0 {
            let n = counted(self.left_out, "artifact");
            lines.push(format!("left out  {n}, so not checked; no verdict depends on them"));
        }
        lines.push(match &self.patch {
            PatchCheck::Checked { tree } => {
                let tree = tree.get(..10).unwrap_or_default();
                format!("patch     the original with it is the final kernel (tree {tree})")
            }
            PatchCheck::Differs => "patch     does not give the final kernel".to_owned(),
            PatchCheck::NotChecked { why } => format!("patch     not checked: {}", safe(why, 200)),
            PatchCheck::Nothing => "patch     none: nothing was kept".to_owned(),
        });
        lines
    }
}

/// Checks a bundle; also what it claims, for a terminal.
pub(super) fn check(place: &ProjectArgs, path: &Path) -> Result<(VerifyReport, String)> {
    let here = place.here()?;
    let bundle = bundle::unpack(&here.join(path))?;
    let mut findings = VerifyReport::default();
    let JudgedLog { campaign, records, torn_bytes } = judge_again(&bundle.dir, &mut findings)?;
    if torn_bytes > 0 {
        // Nobody is writing it, as they may be in a campaign.
        findings.differences.push(format!("line {}: it is incomplete", records.len() + 1));
    }
    let left_out: BTreeSet<&str> =
        bundle.facts.left_out.iter().map(|artifact| artifact.sha256.as_str()).collect();
    check_artifacts(&bundle.dir, &records, &left_out, &mut findings);
    check_rendered(&bundle, &campaign, &mut findings)?;
    match repo_with_base(&here, &campaign) {
        Some(repo) => charter::check(&repo, &campaign, &mut findings),
        None => findings.not_checked.push(
            "the charter against karve.toml of the original commit, which is not here".to_owned(),
        ),
    }
    let patch = check_patch(&here, &bundle, &campaign)?;
    if matches!(patch, PatchCheck::Differs) {
        let what = "with the original does not give the tree of the final kernel";
        findings.differences.push(format!("{PATCH} {what}"));
    }
    // Messages name files of the temporary directory, which nobody can look at.
    let home = format!("{}/", bundle.dir.path().display());
    for difference in &mut findings.differences {
        *difference = difference.replace(&home, "");
    }
    findings.bundle = Some(BundleChecks {
        campaign: bundle.facts.campaign.clone(),
        karve: bundle.facts.karve.clone(),
        files: bundle.files,
        left_out: left_out.len(),
        patch,
    });
    Ok((findings, format!("{}\n", reports::render_terminal_summary(&campaign))))
}

/// Everything beside the log, the artifacts and the patch is what the log gives. Another version of
/// karve may word it differently.
fn check_rendered(
    bundle: &UnpackedBundle,
    campaign: &Campaign,
    findings: &mut VerifyReport,
) -> Result<()> {
    let said = &bundle.facts;
    let facts = BundleFacts::of(campaign, &said.karve, said.left_out.clone());
    if facts != *said {
        findings.differences.push("bundle.json is not what the log says".to_owned());
    }
    for (path, text) in bundle::rendered(campaign, &facts)? {
        let found = files::read(&bundle.dir.join(path), files::RESULT_BYTES_MAX);
        if found.is_ok_and(|bytes| bytes == text.as_bytes()) {
            continue;
        }
        if said.karve == env!("CARGO_PKG_VERSION") {
            findings.differences.push(format!("{path} is not what the log says"));
        } else {
            findings.stale_files.push(path.to_owned());
        }
    }
    Ok(())
}

fn repo_with_base(here: &Path, campaign: &Campaign) -> Option<Repo> {
    Repo::discover(here).ok().filter(|repo| repo.has_commit(campaign.base_commit()))
}

/// Needs a repository with the original commit; only that, because the tree is in the log.
fn check_patch(here: &Path, bundle: &UnpackedBundle, campaign: &Campaign) -> Result<PatchCheck> {
    let Some(best) = campaign.lineage().best() else {
        return Ok(match bundle.patch.is_empty() {
            true => PatchCheck::Nothing,
            false => PatchCheck::Differs,
        });
    };
    let base = campaign.base_commit();
    let Some(repo) = repo_with_base(here, campaign) else {
        let base = base.get(..10).unwrap_or(base);
        let why = format!("no repository here has the commit {base}; run this in a clone of it");
        return Ok(PatchCheck::NotChecked { why });
    };
    Ok(match repo.tree_with_patch(&Oid::named(base)?, &bundle.patch)? {
        PatchedTree::Tree(tree) if tree.as_str() == best.tree => {
            PatchCheck::Checked { tree: best.tree.clone() }
        }
        PatchedTree::Tree(_) | PatchedTree::Refused(_) => PatchCheck::Differs,
    })
}
