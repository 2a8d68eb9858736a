//! `karve verify`: judges every round again from the stored samples.

use super::history::repo_of;
use crate::error::{CommandError, Context, ErrorKind, Result};
use crate::git::{Oid, Repo};
use crate::project::Place;
use crate::store::{self, CampaignDir};
use crate::ui::style::counted;
use crate::{plain_file, reports, ui, world};
use karve_core::campaign::{Campaign, Event, Record, Step};
use serde::Serialize;
use std::fs;

/// Judge every round again from the stored samples, and report any difference
///
/// Checks the verdicts, the artifacts against their hashes, the commits against their trees, the
/// protected files of every kept commit against the baseline's, and the branch.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  karve verify
  karve verify --campaign matmul_c_cpu_202601010000 --json")]
pub struct Verify {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What was checked and what differs.
#[derive(Debug, Default, Serialize)]
struct Findings {
    records: usize,
    rounds: usize,
    blocks: usize,
    artifacts: usize,
    commits: usize,
    differences: Vec<String>,
    stale_files: Vec<String>,
}

impl Verify {
    /// Runs the command.
    pub fn run(&self, place: &Place) -> Result<()> {
        let dir = place.pick()?;
        let mut findings = Findings::default();
        let (campaign, records) = judge_again(&dir, &mut findings)?;
        findings.records = records.len();
        findings.rounds = campaign.rounds().len();
        let opened = crate::project::Opened {
            dir,
            records,
            campaign,
        };
        let repo = repo_of(place, &opened)?;
        check_candidates(&repo, &opened.dir, &opened.campaign, &mut findings)?;
        check_raw(&opened.dir, &opened.records, &mut findings);
        check_exchanges(&opened.dir, &opened.records, &mut findings);
        check_kept(&repo, &opened.campaign, &mut findings)?;
        for name in world::lost_refs(&repo, &opened.campaign)? {
            let name = format!("the ref {name} is gone; \"karve run --campaign NAME\" restores it");
            findings.differences.push(name);
        }
        for file in reports::derived_files(&opened.campaign) {
            let path = opened.dir.join(&file.path);
            if fs::read(&path).is_ok_and(|bytes| bytes != file.text.as_bytes()) {
                findings.stale_files.push(file.path);
            }
        }
        self.show(&findings);
        if findings.differences.is_empty() {
            return Ok(());
        }
        Err(CommandError::new(
            ErrorKind::Negative,
            format!("{} differences were found", findings.differences.len()),
        )
        .hint("do not trust the verdicts named above; \"karve show ROUND\" has the details"))
    }

    fn show(&self, findings: &Findings) {
        if self.json {
            ui::out_json(findings);
            return;
        }
        ui::outln(&format!(
            "judged {} again from {} in {}; checked {} and {}",
            counted(findings.rounds, "round"),
            counted(findings.blocks, "block"),
            counted(findings.records, "record"),
            counted(findings.artifacts, "artifact"),
            counted(findings.commits, "commit")
        ));
        for difference in &findings.differences {
            ui::outln(&format!("differs   {}", ui::style::safe(difference, 300)));
        }
        for path in &findings.stale_files {
            ui::outln(&format!(
                "stale     {path}; renew it with \"karve report --rebuild\""
            ));
        }
        if findings.differences.is_empty() {
            ui::outln("every verdict is what its samples say");
        }
    }
}

/// Folds the log; where a stored verdict differs, the one that the samples give is taken.
fn judge_again(dir: &CampaignDir, findings: &mut Findings) -> Result<(Campaign, Vec<Record>)> {
    let path = dir.log();
    let text = plain_file::read_text(&path, u64::MAX)
        .context(|| format!("cannot read {}", path.display()))?;
    let mut campaign = Campaign::new();
    let mut records = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let mut record: Record = match serde_json::from_str(line) {
            Ok(record) => record,
            Err(error) => {
                findings
                    .differences
                    .push(format!("line {}: {error}", number + 1));
                break;
            }
        };
        if matches!(record.event, Event::BlockMeasured { .. }) {
            findings.blocks += 1;
        }
        if let Err(error) = campaign.record(&record) {
            findings
                .differences
                .push(format!("line {}: {error}", number + 1));
            let due = campaign.next_step();
            let (Event::Settled { verdict, .. }, Some(Step::Settle { verdict: due, .. })) =
                (&mut record.event, due)
            else {
                break;
            };
            let name = |case| campaign.case_name(case);
            let said = format!("stored \"{}\"", verdict.describe(&name));
            let says = format!("the samples say \"{}\"", due.describe(&name));
            findings
                .differences
                .push(format!("line {}: {said}, {says}", number + 1));
            *verdict = due;
            if campaign.record(&record).is_err() {
                break;
            }
        }
        records.push(record);
    }
    Ok((campaign, records))
}

fn check_candidates(
    repo: &Repo,
    dir: &CampaignDir,
    campaign: &Campaign,
    findings: &mut Findings,
) -> Result<()> {
    for round in campaign.rounds() {
        let Some(candidate) = &round.candidate else {
            continue;
        };
        findings.artifacts += 1;
        if let Err(error) = store::get_artifact(dir, &candidate.patch) {
            findings
                .differences
                .push(format!("round {}: {}", round.number, error.message));
        }
        findings.commits += 1;
        let commit = Oid::named(&candidate.commit)?;
        match repo.tree_of(&commit) {
            Ok(tree) if tree.as_str() == candidate.tree => {}
            Ok(_) => findings
                .differences
                .push(format!("round {}: another tree", round.number)),
            Err(_) => findings.differences.push(format!(
                "round {}: the commit {} is not in the repository",
                round.number,
                commit.short()
            )),
        }
    }
    Ok(())
}

/// Output that could not be used is still what it was.
fn check_raw(dir: &CampaignDir, records: &[Record], findings: &mut Findings) {
    for record in records {
        let raw = match &record.event {
            Event::BlockFailed { raw, .. } => raw,
            Event::BaselineMeasured(baseline) => &baseline.raw,
            _ => continue,
        };
        let Some(hash) = raw else { continue };
        findings.artifacts += 1;
        if let Err(error) = store::get_artifact(dir, hash) {
            let seq = record.seq;
            let difference = format!("record {seq}: {}", error.message);
            findings.differences.push(difference);
        }
    }
}

/// What was said is still what was written down.
fn check_exchanges(dir: &CampaignDir, records: &[Record], findings: &mut Findings) {
    for record in records {
        let Some(hash) = record.event.exchange() else {
            continue;
        };
        findings.artifacts += 1;
        let path = dir.join("artifacts").join(hash);
        // It may be large, so it is read in pieces.
        let difference = match store::sha256_file(&path) {
            Ok(found) if found == hash => continue,
            Ok(_) => format!("{} is not what was stored there", path.display()),
            Err(error) => error.message,
        };
        let seq = record.seq;
        findings
            .differences
            .push(format!("record {seq}: {difference}"));
    }
}

/// Every kept commit has the baseline's protected files.
fn check_kept(repo: &Repo, campaign: &Campaign, findings: &mut Findings) -> Result<()> {
    let (Some(charter), Some(preparation)) = (campaign.charter(), campaign.preparation()) else {
        return Ok(());
    };
    let kept = campaign
        .lineage()
        .kept()
        .iter()
        .map(|kept| kept.commit.as_str());
    for commit in std::iter::once(preparation.base.as_str()).chain(kept) {
        let hash = world::harness_hash(repo, &Oid::named(commit)?, &charter.granted);
        if hash.as_ref().ok() != Some(&preparation.harness_hash) {
            findings
                .differences
                .push(format!("{commit}: the protected files differ"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use karve_core::campaign::{LOG_VERSION, Usage};
    use karve_core::knowledge::Lesson;

    fn learnt(exchange: Option<String>) -> Record {
        Record {
            v: LOG_VERSION,
            seq: 4,
            at_ms: 0,
            spent_ms: 0,
            event: Event::Learnt {
                round: 1,
                lesson: Lesson::default(),
                usage: Usage::default(),
                exchange,
            },
        }
    }

    #[test]
    fn what_was_said_about_a_round_is_checked_where_it_was_written_down() {
        let root = tempfile::tempdir().unwrap();
        let dir = CampaignDir::new(root.path(), "c");
        fs::create_dir_all(dir.join("artifacts")).unwrap();
        let hash = store::put_artifact(&dir, b"said\n").unwrap();
        let check = |records: &[Record]| {
            let mut findings = Findings::default();
            check_exchanges(&dir, records, &mut findings);
            findings
        };
        // An older log names none.
        let found = check(&[learnt(None)]);
        assert_eq!((found.artifacts, found.differences.len()), (0, 0));
        let records = [learnt(Some(hash.clone()))];
        let found = check(&records);
        assert_eq!((found.artifacts, found.differences.len()), (1, 0));
        let path = dir.join("artifacts").join(&hash);
        fs::remove_file(&path).unwrap();
        fs::write(&path, "said otherwise\n").unwrap();
        let found = check(&records).differences.join("; ");
        assert!(
            found.contains("record 4") && found.contains("is not what was stored"),
            "{found}"
        );
    }
}
