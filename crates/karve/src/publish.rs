//! Writes what is derived from the events: tables, summaries, snapshots. All of it can be
//! deleted and rebuilt.

mod profiles;
mod quick_script;

use crate::reports::{self, DerivedFile};
use karve_core::campaign::{Campaign, DuelName, Event, Record, RoundSummary};
use karve_harness::git::{Oid, Repo};
use karve_harness::store::CampaignDir;
use karve_harness::{project_file, store};
use karve_os::error::Result;
use karve_os::files;
use std::fmt::Write;
use std::path::Path;

/// Up to this round, the files about all rounds are written after each round.
const OVERVIEW_ROUNDS: u32 = 120;
/// After that only occasionally, because they grow with the campaign and the cost of a round must
/// not; when the campaign pauses or ends they are complete again.
const OVERVIEW_EVERY: u32 = 10;

/// Writes the derived files of a campaign while it runs.
#[derive(Debug)]
pub struct Publisher {
    dir: CampaignDir,
    /// Records of the current round, from which its artifacts are written.
    round_records: Vec<Record>,
}

impl Publisher {
    /// For the campaign in a directory, with its records so far: those of a round that an earlier
    /// process started still count.
    pub fn new(dir: CampaignDir, records: &[Record]) -> Self {
        let ended = |record: &Record| {
            matches!(record.event, Event::Learned { .. } | Event::BaselineMeasured(_))
        };
        let start = records.iter().rposition(ended).map_or(0, |last| last + 1);
        Self { dir, round_records: records[start..].to_vec() }
    }

    /// Writes what a record changed. A round's files are written when the round is over.
    pub fn publish(&mut self, repo: &Repo, campaign: &Campaign, record: &Record) -> Result<()> {
        self.round_records.push(record.clone());
        match &record.event {
            Event::Learned { round, .. } => {
                write_files(&self.dir, reports::round_files(campaign, *round))?;
                if is_overview_due(*round) {
                    self.publish_overview(campaign)?;
                }
                let records = std::mem::take(&mut self.round_records);
                if let Some(summary) = campaign.rounds().last() {
                    write_round(repo, &self.dir, campaign, summary, &records)?;
                }
                Ok(())
            }
            Event::BaselineMeasured(_) => {
                self.round_records.clear();
                write_baseline(repo, &self.dir, campaign)?;
                write_texts(&self.dir, campaign)
            }
            Event::Finished { .. } => {
                self.round_records.clear();
                write_texts(&self.dir, campaign)
            }
            // After the end only this comes; the report says how long the device was held.
            Event::DeviceReleased { .. } | Event::DeviceHelped { .. } => {
                write_texts(&self.dir, campaign)
            }
            Event::Profiled { round, profile } => {
                profiles::write(&self.dir, campaign, &profiles::folder(campaign, *round), profile)
            }
            Event::FinalProfiled { profile } => {
                profiles::write(&self.dir, campaign, profiles::FINAL, profile)
            }
            Event::Extended { .. } => {
                // The final report is for a finished campaign, and this one continues.
                for name in reports::AT_THE_END {
                    let _ = std::fs::remove_file(self.dir.join(name));
                }
                write_texts(&self.dir, campaign)
            }
            Event::Prepared(_) => {
                quick_script::write(repo, &self.dir, campaign)?;
                write_texts(&self.dir, campaign)
            }
            Event::TargetDefined { .. } => write_texts(&self.dir, campaign),
            _ => Ok(()),
        }
    }

    /// Writes the files about all rounds.
    pub fn publish_overview(&self, campaign: &Campaign) -> Result<()> {
        write_files(&self.dir, reports::overview_files(campaign))
    }
}

/// Rewrites every derived file.
pub fn rebuild(
    repo: &Repo,
    dir: &CampaignDir,
    campaign: &Campaign,
    records: &[Record],
) -> Result<()> {
    write_texts(dir, campaign)?;
    let last = campaign.rounds().last().map_or(0, |round| round.number);
    let mut start = 0;
    for (index, record) in records.iter().enumerate() {
        match &record.event {
            Event::BaselineMeasured(_) => {
                write_baseline(repo, dir, campaign)?;
                start = index + 1;
            }
            Event::Profiled { round, profile } => {
                profiles::write(dir, campaign, &profiles::folder(campaign, *round), profile)?;
            }
            Event::FinalProfiled { profile } => {
                profiles::write(dir, campaign, profiles::FINAL, profile)?;
            }
            Event::Learned { round, .. } => {
                let summary = campaign.rounds().iter().find(|summary| summary.number == *round);
                let target = dir.join(format!("rounds/round-{round}/artifacts/samples.csv"));
                // A crash may have truncated the files of the last round.
                let whole = target.exists() && *round != last;
                if let (Some(summary), false) = (summary, whole) {
                    write_round(repo, dir, campaign, summary, &records[start..=index])?;
                }
                start = index + 1;
            }
            _ => {}
        }
    }
    Ok(())
}

/// Whether the files about all rounds are written after this one.
fn is_overview_due(round: u32) -> bool {
    round <= OVERVIEW_ROUNDS || round.is_multiple_of(OVERVIEW_EVERY)
}

fn write_texts(dir: &CampaignDir, campaign: &Campaign) -> Result<()> {
    write_files(dir, reports::derived_files(campaign))
}

fn write_files(dir: &CampaignDir, files: Vec<DerivedFile>) -> Result<()> {
    for file in files {
        files::write_derived(&dir.join(&file.path), file.text.as_bytes())?;
    }
    Ok(())
}

/// The folder of the baseline, if it has the number of a round.
fn write_baseline(repo: &Repo, dir: &CampaignDir, campaign: &Campaign) -> Result<()> {
    let Some(number) = campaign.charter().and_then(|c| c.policy.baseline_round()) else {
        return Ok(());
    };
    let home = dir.join(format!("rounds/round-{number}"));
    write_snapshot(repo, &home, campaign, campaign.base_commit())?;
    let mut table = reports::baseline_csv(campaign).unwrap_or_default();
    if let Some(hash) = campaign.baseline().and_then(|baseline| baseline.raw.as_ref()) {
        let raw = store::get_artifact(dir, hash)?;
        table = reports::with_reported_snr(&table, &String::from_utf8_lossy(&raw));
        files::write_derived(&home.join("artifacts/quick_baseline.log"), &raw)?;
    }
    quick_script::write(repo, dir, campaign)?;
    files::write_derived(&home.join("artifacts/benchmark.csv"), table.as_bytes())
}

/// The editable files of a commit.
fn write_snapshot(repo: &Repo, home: &Path, campaign: &Campaign, commit: &str) -> Result<()> {
    let globs = project_file::glob_set(campaign.charter().map_or(&[][..], |c| &c.editable))?;
    for (file, bytes) in repo.read_matching(&Oid::named(commit)?, &globs)? {
        files::write_derived(&home.join("kernel_snapshot").join(file), &bytes)?;
    }
    Ok(())
}

/// The snapshot of a round's kernel, its patch, its samples, and the benchmark's output.
fn write_round(
    repo: &Repo,
    dir: &CampaignDir,
    campaign: &Campaign,
    round: &RoundSummary,
    records: &[Record],
) -> Result<()> {
    let home = dir.join(format!("rounds/round-{}", round.number));
    let samples = render_samples(campaign, records);
    if let Some(candidate) = &round.candidate {
        write_snapshot(repo, &home, campaign, &candidate.commit)?;
        let patch = store::get_artifact(dir, &candidate.patch)?;
        files::write_derived(&home.join("artifacts/patch.diff"), &patch)?;
    }
    let mut table = reports::round_csv(campaign, round, records).unwrap_or_default();
    for record in records {
        if let Event::BlockFailed { raw: Some(hash), .. }
        | Event::BlockMeasured { duel: DuelName::Round { .. }, raw: Some(hash), .. } =
            &record.event
        {
            let raw = store::get_artifact(dir, hash)?;
            table = reports::with_reported_snr(&table, &String::from_utf8_lossy(&raw));
            files::write_derived(&home.join("artifacts").join(raw_name(campaign)), &raw)?;
        }
    }
    files::write_derived(&home.join("artifacts/benchmark.csv"), table.as_bytes())?;
    files::write_derived(&home.join("artifacts/samples.csv"), samples.as_bytes())
}

/// What the benchmark's output of a round is called; primus compares it with the baseline's.
fn raw_name(campaign: &Campaign) -> &'static str {
    match campaign.charter().and_then(|charter| charter.policy.baseline_round()) {
        Some(_) => "quick_validation.log",
        None => "raw_output.txt",
    }
}

fn render_samples(campaign: &Campaign, records: &[Record]) -> String {
    let mut text = String::from(
        "duel,block,seed,discarded,case,first,parent,candidate,parent_wall_us,candidate_wall_us,\
         parent_cpu_us,candidate_cpu_us\n",
    );
    let mut block_no = 0;
    for record in records {
        let Event::BlockMeasured { duel: DuelName::Round { set, .. }, block, .. } = &record.event
        else {
            continue;
        };
        for pair in &block.pairs {
            let name = campaign.case_name(pair.case).replace('"', "\"\"");
            let _ = writeln!(
                text,
                "{set:?},{block_no},{},{},\"{name}\",{:?},{},{},{},{},{},{}",
                block.seed,
                block.discarded.is_some(),
                pair.first,
                pair.parent.value,
                pair.candidate.value,
                pair.parent.wall_us,
                pair.candidate.wall_us,
                pair.parent.cpu_us,
                pair.candidate.cpu_us,
            );
        }
        block_no += 1;
    }
    text
}
