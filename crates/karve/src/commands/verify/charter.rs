//! The charter of a log against `karve.toml` of the commit that the campaign started from.

use super::VerifyReport;
use crate::project::charter_at_start;
use karve_core::campaign::Campaign;
use karve_harness::git::Repo;

/// A campaign starts only with the baselines that are committed. Other tables may have been changed
/// and not committed, which is said.
pub(super) fn check(repo: &Repo, campaign: &Campaign, findings: &mut VerifyReport) {
    let Some(charter) = campaign.charter() else {
        return;
    };
    let there = match charter_at_start(repo, campaign) {
        Ok(Some(there)) => there,
        Ok(None) if charter.baselines.is_empty() => return,
        Ok(None) => {
            let why = "the charter against karve.toml: the original commit has none";
            return findings.not_checked.push(why.to_owned());
        }
        Err(error) => {
            let why = format!("the charter against karve.toml of the original commit: {error}");
            return findings.not_checked.push(why);
        }
    };
    for table in charter.task_differences(&there) {
        match table {
            "baselines" => findings.differences.push(
                "the charter has other baselines than karve.toml of the original commit".to_owned(),
            ),
            table => findings.not_checked.push(format!(
                "[{table}] of the charter, which is not that of karve.toml in the original commit: \
                 it was changed and not committed when the campaign began, or in the log afterwards"
            )),
        }
    }
}
