//! `karve export`: a kernel of a campaign and its figures in the format of another project.

use super::history::{find, repo_of};
use crate::exports::{
    ExportFile, ExportFormat, ExportNames, ExportResult, ExportSource, VersionFigures,
};
use crate::project::{LoadedCampaign, ProjectArgs};
use crate::tasks::TASK_PATH;
use crate::ui;
use karve_core::campaign::Record;
use karve_core::measurement::Gate;
use karve_harness::git::{Oid, Repo};
use karve_harness::project_file::glob_set;
use karve_os::error::{CommandError, Result, WithContext};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Write a kernel and its figures in the format of KernelBench, GPU MODE and others
///
/// By default it is the best kernel of the newest campaign. A format of one file is printed, unless
/// --out names a file; a format of several files needs --out with a directory. Nothing is measured:
/// the figures are those of the log.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  karve export kernelbench --out softmax_new.py
  karve export gpumode --leaderboard vectoradd_v2 --gpu H100 --out submission.py
  karve export flashinfer --out flashinfer-trace     solutions/ and traces/ there
  karve export sol-execbench --out result            solution, traces and the SOL score
  karve export autoresearch > results.tsv            all rounds
  karve export shinka --round 3 --out results        metrics.json and correct.json")]
pub struct TaskExportArgs {
    /// The format
    #[arg(value_enum)]
    format: ExportFormat,
    /// The version: `best`, the number of a round, or 0 for the original
    #[arg(long, value_name = "N", default_value = "best")]
    round: VersionChoice,
    /// The file to write; a directory for formats of several files
    #[arg(long, value_name = "PATH")]
    out: Option<PathBuf>,
    /// The leaderboard that a submission of GPU MODE names
    #[arg(long, value_name = "NAME", value_parser = word)]
    leaderboard: Option<String>,
    /// A GPU that a submission of GPU MODE asks for; may be given several times
    #[arg(long, value_name = "NAME", value_parser = word)]
    gpu: Vec<String>,
    /// The definition of FlashInfer-Bench or SOL-ExecBench [default: that of the imported task]
    #[arg(long, value_name = "NAME")]
    definition: Option<String>,
    /// The author of a solution [default: karve]
    #[arg(long, value_name = "NAME")]
    author: Option<String>,
    /// Overwrite files that exist
    #[arg(long)]
    force: bool,
    /// Print JSON: the files with their contents
    #[arg(long)]
    json: bool,
}

/// Which version is exported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum VersionChoice {
    Best,
    Round(u32),
}

impl FromStr for VersionChoice {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        match text {
            "best" => Ok(Self::Best),
            number => {
                number.parse().map(Self::Round).map_err(|_| "write `best` or a number".to_owned())
            }
        }
    }
}

/// A name without spaces, as directives need it.
fn word(text: &str) -> std::result::Result<String, String> {
    let is_word = !text.is_empty() && !text.contains(|c: char| c.is_whitespace() || c.is_control());
    is_word.then(|| text.to_owned()).ok_or_else(|| "a name has no spaces".to_owned())
}

impl TaskExportArgs {
    /// Runs the command.
    pub fn run(&self, place: &ProjectArgs) -> Result<()> {
        let opened = place.open()?;
        let campaign = &opened.campaign;
        let (Some(charter), true) = (campaign.charter(), campaign.baseline().is_some()) else {
            return Err(CommandError::usage("the campaign has no baseline yet")
                .hint("resume with \"karve run\""));
        };
        let (number, commit) = self.version(&opened)?;
        let source = ExportSource {
            campaign,
            charter,
            figures: VersionFigures::of(campaign, number),
            files: files_of(&repo_of(place, &opened)?, &commit, charter)?,
            commit,
            at_s: opened.records.last().map_or(0, |record: &Record| record.at_ms / 1_000),
            names: ExportNames {
                leaderboard: self.leaderboard.clone(),
                gpus: self.gpu.clone(),
                definition: self.definition.clone(),
                author: self.author.clone(),
            },
        };
        let mut result = self.format.export(&source)?;
        result.notes.extend(source.figures.baseline_note());
        if self.json {
            self.print_json(&source, &result);
        }
        self.write(&place.here()?, &result)?;
        for note in result.notes.iter().filter(|_| !self.json) {
            ui::note(&format!("note: {note}"));
        }
        Ok(())
    }

    /// The number and the commit of the version.
    fn version(&self, opened: &LoadedCampaign) -> Result<(u32, String)> {
        let campaign = &opened.campaign;
        let number = match self.round {
            VersionChoice::Best => campaign.view().best_round,
            VersionChoice::Round(number) => number,
        };
        if number == 0 {
            return Ok((0, campaign.base_commit().to_owned()));
        }
        let round = find(opened, number)?;
        let passed = round.gate.as_ref().is_some_and(Gate::passed);
        match round.candidate.as_ref().filter(|_| passed) {
            Some(candidate) => Ok((number, candidate.commit.clone())),
            None => {
                let message = format!("version {number} was not found to be right");
                Err(CommandError::usage(message)
                    .hint(format!("\"karve why {number}\" says why; --round best is another")))
            }
        }
    }

    fn write(&self, here: &Path, result: &ExportResult) -> Result<()> {
        let (out, only) = match (&self.out, result.files.as_slice()) {
            (Some(out), [only]) => (here.join(out), Some(only)),
            (Some(out), _) => (here.join(out), None),
            (None, _) if self.json => return Ok(()),
            (None, [only]) => {
                ui::out(&only.text);
                return Ok(());
            }
            (None, files) => {
                let names: Vec<&str> = files.iter().map(|file| file.path.as_str()).collect();
                let message = format!("{} has several files", self.format.name());
                return Err(CommandError::usage(message)
                    .cause(names.join(", "))
                    .hint("name a directory for them with --out DIR"));
            }
        };
        let files: Vec<(PathBuf, &str)> = match only {
            Some(only) if !out.is_dir() => vec![(out, &only.text)],
            _ => result.files.iter().map(|file| (out.join(&file.path), &*file.text)).collect(),
        };
        // Nothing is written unless all can be.
        files.iter().try_for_each(|(path, _)| self.may_write(path))?;
        files.iter().try_for_each(|(path, text)| self.write_one(path, text))
    }

    fn may_write(&self, path: &Path) -> Result<()> {
        let shown = path.display();
        let Ok(there) = fs::symlink_metadata(path) else {
            return Ok(());
        };
        if !there.is_file() {
            return Err(CommandError::usage(format!("{shown} is not a plain file"))
                .hint("name another place with --out"));
        }
        if !self.force {
            return Err(CommandError::usage(format!("{shown} exists"))
                .hint("overwrite it with --force, or name another place with --out"));
        }
        Ok(())
    }

    fn write_one(&self, path: &Path, text: &str) -> Result<()> {
        let made = path.parent().map_or(Ok(()), fs::create_dir_all);
        made.and_then(|()| fs::write(path, text))
            .context(|| format!("cannot write {}", path.display()))
            .map_err(|error| error.hint("name another place with --out"))?;
        if !self.json {
            ui::outln(&path.display().to_string());
        }
        Ok(())
    }

    fn print_json(&self, source: &ExportSource<'_>, result: &ExportResult) {
        let file = |file: &ExportFile| serde_json::json!({ "path": file.path, "text": file.text });
        ui::out_json(&serde_json::json!({
            "format": self.format.name(),
            "round": source.figures.round,
            "commit": source.commit,
            "figures": source.figures,
            "files": result.files.iter().map(file).collect::<Vec<_>>(),
            "notes": result.notes,
        }));
    }
}

/// The text files of a version that an export may need, relative to `karve.toml`.
fn files_of(
    repo: &Repo,
    commit: &str,
    charter: &karve_core::charter::Charter,
) -> Result<BTreeMap<String, String>> {
    let prefix = match charter.workdir.as_str() {
        "" => String::new(),
        dir => format!("{dir}/"),
    };
    let globs = [format!("{prefix}**/*.py"), format!("{prefix}{TASK_PATH}")];
    let found = repo.read_matching(&Oid::named(commit)?, &glob_set(&globs)?)?;
    let texts = found.into_iter().filter_map(|(path, bytes)| {
        let path = path.strip_prefix(&prefix)?.to_owned();
        Some((path, String::from_utf8(bytes).ok()?))
    });
    Ok(texts.collect())
}
