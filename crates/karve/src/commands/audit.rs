//! `karve audit`: scans a change for things an honest kernel never needs, without building it.

use crate::bench::text;
use crate::config::Overrides;
use crate::project::ProjectArgs;
use crate::{checks, ui};
use karve_audit;
use karve_audit::{AuditContext, FileChange};
use karve_core::integrity::{self, AuditFinding, AuditRule, Severity};
use karve_harness::git::{CommitNote, Repo};
use karve_harness::project_file;
use karve_os::error::{CommandError, ErrorKind, Result, WithContext};
use karve_os::{clock, files};
use serde::Serialize;
use std::collections::BTreeSet;
use std::path::Path;

/// Scan a change for things an honest kernel never needs: result caches, clocks, patches
///
/// Without arguments: the worktree's changes to editable files since HEAD. With a revision: since
/// that revision. With FROM..TO: what TO changes. With files: their whole content, as if it were
/// new; this needs no karve.toml. Nothing is built or run. docs/audit.md lists the rules.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  karve audit                    the worktree against HEAD
  karve audit main..topic        what topic changes
  karve audit kernel.c --json    one file, all of it

Exit codes: 0 nothing forbidden was found, 1 something forbidden was found.")]
pub struct AuditArgs {
    /// A revision, FROM..TO, or files
    #[arg(value_name = "REV|FILE")]
    what: Vec<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What was found.
#[derive(Debug, Serialize)]
struct AuditReport {
    /// A description of what was compared.
    compared: String,
    /// The files that were read.
    files: Vec<String>,
    /// Where the gain would come from.
    buckets: Vec<&'static str>,
    /// Whether it transfers.
    decision: &'static str,
    findings: Vec<AuditFinding>,
}

/// What was compared, the files, and what was found in them.
type AuditResult = (String, Vec<String>, Vec<AuditFinding>);

impl AuditArgs {
    /// Runs the command.
    pub fn run(&self, place: &ProjectArgs) -> Result<()> {
        let here = place.here()?;
        let files = self.what.iter().filter(|name| here.join(name).is_file()).count();
        let (compared, files, findings) = match self.what.as_slice() {
            [] => self.of_worktree(place, "HEAD")?,
            what if files == what.len() => self.of_files(&here)?,
            [one] => match one.split_once("..") {
                Some((from, to)) => of_revisions(place, (from, to))?,
                None => self.of_worktree(place, one)?,
            },
            [..] => {
                let missing = self.what.iter().find(|name| !here.join(name).is_file());
                let name = missing.map_or("", String::as_str);
                return Err(CommandError::usage(format!("there is no file {name:?}"))
                    .hint("name files, or one revision, or FROM..TO; see \"karve audit --help\""));
            }
        };
        let classified = integrity::classify(&findings, None);
        self.show(&AuditReport {
            compared,
            files,
            buckets: classified.buckets.iter().map(|bucket| bucket.name()).collect(),
            decision: classified.transfer().decision(),
            findings: findings.clone(),
        });
        match findings.iter().filter(|f| f.severity == Severity::Forbidden).count() {
            0 => Ok(()),
            n => Err(CommandError::new(
                ErrorKind::Negative,
                format!("the audit forbids {n} of these findings"),
            )
            .hint("fix them, or name a rule in audit.allow of karve.toml; see docs/audit.md")),
        }
    }

    fn of_worktree(&self, place: &ProjectArgs, revision: &str) -> Result<AuditResult> {
        let repo = Repo::discover(&place.here()?)?;
        let charter = place.load_in(&repo, &Overrides::default())?.charter;
        let parent = repo.rev_parse(revision)?;
        let globs = project_file::glob_set(&charter.editable)?;
        let note = CommitNote { message: "karve audit\n", date: clock::now_s() };
        let made = repo.commit_candidate(repo.root(), &parent, &globs, &note)?;
        let compared = format!("the worktree against {revision}");
        let findings = checks::audit_commits(&repo, &charter, &parent, &made.oid, &made.files)?;
        Ok((compared, made.files, findings))
    }

    /// Whole files, as if everything in them were new.
    fn of_files(&self, here: &Path) -> Result<AuditResult> {
        let mut changes = Vec::new();
        for name in &self.what {
            let bytes = files::read(&here.join(name), files::WRITTEN_BYTES_MAX)
                .context(|| format!("cannot read {name}"))
                .map_err(|error| {
                    error.hint("name a source file, as in \"karve audit kernel.c\"")
                })?;
            changes.push(FileChange { path: name.clone(), before: None, after: Some(bytes) });
        }
        let scene = AuditContext {
            cases: &[],
            rule: &AuditRule::default(),
            harness: &[],
            reads: &BTreeSet::new(),
        };
        let findings = karve_audit::audit(&changes, &scene);
        Ok(("whole files".to_owned(), self.what.clone(), findings))
    }

    fn show(&self, audited: &AuditReport) {
        if self.json {
            ui::out_json(audited);
            return;
        }
        let files = match audited.files.len() {
            0 => "no editable file is changed".to_owned(),
            _ => audited.files.join(", "),
        };
        ui::outln(&format!("audit     {}: {}", audited.compared, text::safe(&files, 200)));
        for finding in &audited.findings {
            let place = format!("{}:{}", finding.file, finding.line);
            ui::outln(&format!(
                "{:<9} {} {}: {}",
                finding.severity.name(),
                text::safe(&place, 80),
                finding.rule,
                text::safe(&finding.what, 200)
            ));
        }
        let buckets = match audited.buckets.is_empty() {
            true => "unknown".to_owned(),
            false => audited.buckets.join(", "),
        };
        ui::outln(&format!("bucket    {buckets}: {}", audited.decision));
    }
}

fn of_revisions(place: &ProjectArgs, (from, to): (&str, &str)) -> Result<AuditResult> {
    let repo = Repo::discover(&place.here()?)?;
    let charter = place.load_in(&repo, &Overrides::default())?.charter;
    let head = |name: &str| {
        if name.is_empty() { "HEAD".to_owned() } else { name.to_owned() }
    };
    let (from, to) = (head(from), head(to));
    let commits = (repo.rev_parse(&from)?, repo.rev_parse(&to)?);
    let globs = project_file::glob_set(&charter.editable)?;
    let files = repo.diff_stat(&commits.0, &commits.1)?.into_iter().map(|stat| stat.path);
    let files: Vec<String> = files.filter(|path| globs.is_match(path)).collect();
    let compared = format!("{to} against {from}");
    let findings = checks::audit_commits(&repo, &charter, &commits.0, &commits.1, &files)?;
    Ok((compared, files, findings))
}
