//! `karve verify`: judges every round again from the stored samples.

mod bundled;
mod charter;

use super::history::repo_of;
use crate::project::ProjectArgs;
use crate::{checks, project, refs, reports, ui};
use karve_agents::agreement;
use karve_core::campaign::{Campaign, Event, Misstatement, Record, Step};
use karve_harness::git::{Oid, Repo};
use karve_harness::store::{self, CampaignDir};
use karve_os::error::{CommandError, ErrorKind, Result, WithContext};
use karve_os::text::counted;
use karve_os::{files, text};
use serde::Serialize;
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

/// What no check of a log can show.
const UNPROVEN: &str = "whether they were measured cannot be seen in a log: \"karve bench BASE \
                        FINAL\" and \"karve bench --baselines FINAL\" measure them again";

/// Judge every round again from the stored samples, and report any difference
///
/// Checks the verdicts, what the log states about its final duel and its duels with baselines, the
/// baselines against karve.toml of the original commit, the artifacts against their hashes, the
/// commits against their trees, the read-only files of every kept commit against the baseline's,
/// and the branch.
///
/// A log that somebody forged as a whole passes: only measuring again shows what is true. See
/// "karve bench".
///
/// With a bundle: checks every file against its hash, the verdicts, the artifacts, and that the
/// rest was rendered from the log, without the repository. In a clone that has the original commit,
/// also that the patch gives the final kernel.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  karve verify
  karve verify --campaign matmul_c_cpu_202601010000 --json
  karve verify matmul.tar.gz        a bundle from \"karve report --bundle\"
  karve verify ./matmul             the same, unpacked")]
pub struct VerifyArgs {
    /// A bundle that `karve report --bundle` wrote, packed or as a directory [default: the
    /// campaign of this project]
    #[arg(value_name = "BUNDLE")]
    bundle: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What was checked and what differs.
#[derive(Debug, Default, Serialize)]
struct VerifyReport {
    records: usize,
    rounds: usize,
    blocks: usize,
    artifacts: usize,
    commits: usize,
    differences: Vec<String>,
    /// What could not be checked, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    not_checked: Vec<String>,
    stale_files: Vec<String>,
    /// What is particular to a bundle.
    #[serde(skip_serializing_if = "Option::is_none")]
    bundle: Option<bundled::BundleChecks>,
}

impl VerifyArgs {
    /// Runs the command.
    pub fn run(&self, place: &ProjectArgs) -> Result<()> {
        if let Some(path) = &self.bundle {
            let (findings, claim) = bundled::check(place, path)?;
            if !self.json {
                ui::out(&claim);
            }
            return self.conclude(&findings);
        }
        let dir = place.pick()?;
        let mut findings = VerifyReport::default();
        let JudgedLog { campaign, records, torn_bytes } = judge_again(&dir, &mut findings)?;
        if torn_bytes > 0 {
            ui::note(&project::torn_note(torn_bytes));
        }
        if let Some(why) = place.is_foreign(&campaign) {
            findings.differences.push(format!("the campaign is not of this project: {why}"));
        }
        let opened = crate::project::LoadedCampaign { dir, records, campaign };
        let repo = repo_of(place, &opened)?;
        charter::check(&place.repo()?, &opened.campaign, &mut findings);
        check_candidates(&repo, &opened.campaign, &mut findings)?;
        check_artifacts(&opened.dir, &opened.records, &BTreeSet::new(), &mut findings);
        check_kept(&repo, &opened.campaign, &mut findings)?;
        for name in refs::lost_refs(&repo, &opened.campaign)? {
            let name = format!("no ref {name}; \"karve run --campaign NAME\" restores it");
            findings.differences.push(name);
        }
        for file in reports::derived_files(&opened.campaign) {
            let path = opened.dir.join(&file.path);
            if fs::read(&path).is_ok_and(|bytes| bytes != file.text.as_bytes()) {
                findings.stale_files.push(file.path);
            }
        }
        self.conclude(&findings)
    }

    fn conclude(&self, findings: &VerifyReport) -> Result<()> {
        self.show(findings);
        if findings.differences.is_empty() {
            return Ok(());
        }
        Err(CommandError::new(
            ErrorKind::Negative,
            format!("found {}", counted(findings.differences.len(), "difference")),
        )
        .hint(match findings.bundle {
            None => "do not trust the verdicts named above; \"karve show ROUND\" has the details",
            Some(_) => "do not trust it; get a new one from \"karve report --bundle FILE\"",
        }))
    }

    fn show(&self, findings: &VerifyReport) {
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
        for line in findings.bundle.iter().flat_map(|bundle| bundle.lines()) {
            ui::outln(&line);
        }
        for difference in &findings.differences {
            ui::outln(&format!("differs   {}", text::safe(difference, 300)));
        }
        for what in &findings.not_checked {
            ui::outln(&format!("not checked  {}", text::safe(what, 300)));
        }
        for path in &findings.stale_files {
            let rebuild = match &findings.bundle {
                None => "rebuild it with \"karve report --rebuild\"",
                Some(_) => "another version of karve rendered it",
            };
            ui::outln(&format!("stale     {path}; {rebuild}"));
        }
        if findings.differences.is_empty() {
            ui::outln(match findings.not_checked.is_empty() {
                true => "every verdict matches its samples",
                false => "every verdict matches its samples, apart from what was not checked",
            });
            ui::outln(UNPROVEN);
        }
    }
}

/// A log that was judged again.
struct JudgedLog {
    campaign: Campaign,
    records: Vec<Record>,
    /// Bytes of an incomplete last line, which does not count, as in `store::read`.
    torn_bytes: u64,
}

/// Folds the log; where a stored verdict differs, the verdict from the samples is used.
fn judge_again(dir: &CampaignDir, findings: &mut VerifyReport) -> Result<JudgedLog> {
    let path = dir.log();
    let bytes = files::read(&path, u64::MAX)
        .context(|| format!("cannot read {}", path.display()))
        .map_err(|error| error.hint("name another campaign with --campaign"))?;
    let mut campaign = Campaign::new();
    let mut records = Vec::new();
    let mut torn_bytes = 0;
    if bytes.is_empty() {
        findings.differences.push(format!("{} has no records", path.display()));
    }
    let mut lines = bytes.split_inclusive(|byte| *byte == b'\n').enumerate().peekable();
    while let Some((number, line)) = lines.next() {
        let mut record = match store::parse_line(line) {
            Ok(record) => record,
            Err(_) if lines.peek().is_none() && !store::is_other_format(line) => {
                torn_bytes = line.len() as u64;
                break;
            }
            Err(why) => {
                findings.differences.push(format!("line {}: {why}", number + 1));
                break;
            }
        };
        if matches!(record.event, Event::BlockMeasured { .. }) {
            findings.blocks += 1;
        }
        if let Err(error) = campaign.record(&record) {
            findings.differences.push(format!("line {}: {error}", number + 1));
            let due = campaign.next_step();
            let (Event::Settled { verdict, .. }, Some(Step::Settle { verdict: due, .. })) =
                (&mut record.event, due)
            else {
                break;
            };
            let name = |case| campaign.case_name(case);
            let said = format!("stored \"{}\"", verdict.describe(&name));
            let says = format!("the samples say \"{}\"", due.describe(&name));
            findings.differences.push(format!("line {}: {said}, {says}", number + 1));
            *verdict = due;
            if campaign.record(&record).is_err() {
                break;
            }
        }
        records.push(record);
    }
    findings.differences.extend(campaign.misstatements().iter().map(Misstatement::describe));
    let unstated = campaign.unstated_duels();
    if let Some(first) = unstated.first() {
        let n = counted(unstated.len(), "duel");
        findings.not_checked.push(format!(
            "{n}, such as the {first}: the log has no end that states what they showed, because it \
             is not finished or an older karve wrote it; a changed reading would not be noticed"
        ));
    }
    findings.records = records.len();
    findings.rounds = campaign.rounds().len();
    Ok(JudgedLog { campaign, records, torn_bytes })
}

fn check_candidates(repo: &Repo, campaign: &Campaign, findings: &mut VerifyReport) -> Result<()> {
    for round in campaign.rounds() {
        let Some(candidate) = &round.candidate else {
            continue;
        };
        findings.commits += 1;
        let commit = Oid::named(&candidate.commit)?;
        match repo.tree_of(&commit) {
            Ok(tree) if tree.as_str() == candidate.tree => {}
            Ok(_) => findings
                .differences
                .push(format!("round {}: the commit has a different tree", round.number)),
            Err(_) => findings.differences.push(format!(
                "round {}: the commit {} is not in the repository",
                round.number,
                commit.short()
            )),
        }
    }
    Ok(())
}

/// Every artifact that an event names is still what was stored: patches, including those of
/// variants that were not chosen, session logs, profiles, and unusable output.
fn check_artifacts(
    dir: &CampaignDir,
    records: &[Record],
    left_out: &BTreeSet<&str>,
    findings: &mut VerifyReport,
) {
    let mut seen = BTreeSet::new();
    for record in records {
        for hash in record.event.artifacts() {
            if left_out.contains(hash) || !seen.insert(hash) {
                continue;
            }
            findings.artifacts += 1;
            let path = dir.join("artifacts").join(hash);
            // It may be large, so it is read in chunks.
            let differences = match files::sha256_file(&path) {
                Ok(found) if found == hash && record.event.session_log() == Some(hash) => {
                    agreement::differences(&record.event, &path)
                }
                Ok(found) if found == hash => continue,
                Ok(_) => vec![format!("{} does not match its hash", path.display())],
                Err(error) => vec![error.message],
            };
            let seq = record.seq;
            let reported = differences.iter().map(|why| format!("record {seq}: {why}"));
            findings.differences.extend(reported);
        }
    }
}

/// Every kept commit has the baseline's read-only files.
fn check_kept(repo: &Repo, campaign: &Campaign, findings: &mut VerifyReport) -> Result<()> {
    let (Some(charter), Some(preparation)) = (campaign.charter(), campaign.preparation()) else {
        return Ok(());
    };
    let kept = campaign.lineage().kept().iter().map(|kept| kept.commit.as_str());
    for commit in std::iter::once(preparation.base.as_str()).chain(kept) {
        let hash = checks::harness_hash(repo, &Oid::named(commit)?, &charter.editable);
        if hash.as_ref().ok() != Some(&preparation.harness_hash) {
            findings.differences.push(format!("{commit}: the read-only files differ"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use karve_core::campaign::LOG_VERSION;
    use karve_core::hypothesis::Candidate;
    use karve_core::knowledge::Lesson;
    use karve_core::spending::AgentUsage;

    fn variant(dir: &CampaignDir, number: u32) -> Record {
        let patch = store::put_artifact(dir, format!("patch {number}").as_bytes()).unwrap();
        let log_file = store::put_artifact(dir, format!("said {number}").as_bytes()).unwrap();
        let candidate = Candidate {
            commit: "c".into(),
            tree: "t".into(),
            files: Vec::new(),
            patch,
            out_of_scope: Vec::new(),
            whole: None,
            summary: String::new(),
            parts: Vec::new(),
        };
        Record {
            v: 2,
            seq: number.into(),
            at_ms: 0,
            spent_ms: 0,
            by: None,
            event: Event::Implemented {
                round: 1,
                retry: 0,
                variant: number,
                candidate,
                usage: AgentUsage::default(),
                session_log: Some(log_file),
            },
        }
    }

    #[test]
    fn one_byte_more_in_any_artifact_is_found() {
        let root = tempfile::tempdir().unwrap();
        let dir = CampaignDir::new(root.path(), "c");
        fs::create_dir_all(dir.join("artifacts")).unwrap();
        let records = [variant(&dir, 0), variant(&dir, 1)];
        let found = |records: &[Record]| {
            let mut findings = VerifyReport::default();
            check_artifacts(&dir, records, &BTreeSet::new(), &mut findings);
            assert_eq!(findings.artifacts, 4);
            findings.differences.len()
        };
        assert_eq!(found(&records), 0);
        for (n, file) in fs::read_dir(dir.join("artifacts")).unwrap().enumerate() {
            let path = file.unwrap().path();
            let mut bytes = fs::read(&path).unwrap();
            bytes.push(b' ');
            // Stored artifacts are read-only.
            fs::remove_file(&path).unwrap();
            fs::write(&path, bytes).unwrap();
            assert_eq!(found(&records), n + 1);
        }
    }

    fn learned(log_file: Option<String>) -> Record {
        Record {
            v: LOG_VERSION,
            seq: 4,
            at_ms: 0,
            spent_ms: 0,
            by: None,
            event: Event::Learned {
                round: 1,
                lesson: Lesson::default(),
                usage: AgentUsage::default(),
                session_log: log_file,
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
            let mut findings = VerifyReport::default();
            check_artifacts(&dir, records, &BTreeSet::new(), &mut findings);
            findings
        };
        // An older log names none.
        let found = check(&[learned(None)]);
        assert_eq!((found.artifacts, found.differences.len()), (0, 0));
        let records = [learned(Some(hash.clone()))];
        let found = check(&records);
        assert_eq!((found.artifacts, found.differences.len()), (1, 0));
        let path = dir.join("artifacts").join(&hash);
        fs::remove_file(&path).unwrap();
        fs::write(&path, "said otherwise\n").unwrap();
        let found = check(&records).differences.join("; ");
        assert!(found.contains("record 4") && found.contains("does not match its hash"), "{found}");
    }
}
