//! `karve check`: gates and measures the current worktree, without a verdict.

use crate::bench::text;
use crate::config::Overrides;
use crate::project::ProjectArgs;
use crate::{checks, session, ui};
use karve_core::charter::Charter;
use karve_harness::commands::{BenchParams, CommandVariant, Harness, take_raw};
use karve_harness::git::{CommitNote, Repo};
use karve_harness::outcome::{GateResult, split};
use karve_harness::project_file;
use karve_harness::scratch::{ScratchDir, ScratchKind};
use karve_harness::worktrees::{BuiltTree, Worktrees};
use karve_numerics::case::{Case, CaseSet};
use karve_numerics::stats;
use karve_os::error::{CommandError, ErrorKind, Result};
use karve_os::process::StopFlag;
use karve_os::sandbox::Sandbox;
use karve_os::{clock, device};
use serde::Serialize;

/// Readings per case.
const READINGS: usize = 3;

/// Gate and measure the current worktree once, as a campaign would, without a verdict
///
/// Builds and tests HEAD plus your changes to the editable files, in a scratch worktree; your
/// checkout is not touched. Changes to other tracked files are listed and left out; new files
/// that are not editable are left out too.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  karve check --quick      the quick set with the quick commands
  karve check --full       every visible case
  karve check --json")]
pub struct CheckArgs {
    /// Run it on this remote, with the files of this checkout; see `karve remote`
    #[arg(long, value_name = "NAME")]
    pub(super) on: Option<String>,
    /// Only the quick cases
    #[arg(long, conflicts_with = "full")]
    quick: bool,
    /// All visible cases (the default)
    #[arg(long)]
    full: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Lines, and characters of a line, of what a kernel's process said.
const OUTPUT_LINES_MAX: usize = 20;
const OUTPUT_CHARS_MAX: usize = 200;

/// What was found.
#[derive(Debug, Serialize)]
pub(super) struct CheckReport {
    commit: String,
    changed: Vec<String>,
    left_out: Vec<String>,
    gate: String,
    /// What the kernel's process said, for the user's terminal only.
    #[serde(skip)]
    kernel_output: Vec<String>,
    pub(super) passed: bool,
    metric: String,
    unit: String,
    pub(super) cases: Vec<CaseReading>,
}

#[derive(Debug, Serialize)]
pub(super) struct CaseReading {
    pub(super) case: String,
    pub(super) median: f64,
    low: f64,
    high: f64,
}

impl CheckArgs {
    /// Every visible case, for another command.
    pub(super) fn of_all_cases() -> Self {
        Self { on: None, quick: false, full: true, json: false }
    }

    /// Runs the command.
    pub fn run(&self, place: &ProjectArgs) -> Result<()> {
        let stop = StopFlag::new();
        session::watch_signals_at_once(&stop, "stopping")?;
        let findings = self.findings(place, &stop)?;
        self.show(&findings);
        findings.expect_passed()
    }

    /// Gates and measures the worktree.
    pub(super) fn findings(&self, place: &ProjectArgs, stop: &StopFlag) -> Result<CheckReport> {
        let repo = Repo::discover(&place.here()?)?;
        let loaded = place.load_in(&repo, &Overrides::default())?;
        let scratch = ScratchDir::new(ScratchKind::Check, &[&repo])?;
        let tmp = scratch.path().join("tmp");
        let harness = Harness::new(&loaded.charter, &tmp, &scratch.tag(), stop);
        let trees = Worktrees::new(&repo, scratch.path().join("worktrees"))?;
        let mut trees = trees.sharing_builds(&loaded.root);
        let sandbox = Sandbox::of(&repo.checkout(), &loaded.root, scratch.path(), &loaded.charter)?;
        let harness = harness.in_sandbox(sandbox.as_ref());
        let measuring = CheckContext { charter: &loaded.charter, harness: &harness, stop };
        let mut findings = self.find(&measuring, &repo, &mut trees);
        if let (Ok(found), Some(said)) = (&mut findings, take_raw(&tmp)) {
            let said = String::from_utf8_lossy(&said);
            found.kernel_output =
                karve_os::text::safe_lines(&said, OUTPUT_LINES_MAX, OUTPUT_CHARS_MAX);
        }
        trees.clear(&repo)?;
        if stop.at_once() {
            return Err(session::stopped());
        }
        findings
    }

    fn find(
        &self,
        measuring: &CheckContext<'_>,
        repo: &Repo,
        trees: &mut Worktrees,
    ) -> Result<CheckReport> {
        let charter = measuring.charter;
        let head = repo.head()?.oid().clone();
        let globs = project_file::glob_set(&charter.editable)?;
        let note = CommitNote { message: "karve check\n", date: clock::now_s() };
        let made = repo.commit_candidate(repo.root(), &head, &globs, &note)?;
        checks::check_editable(repo, &made.oid, charter)?;
        let (set, variant) = if self.quick {
            (CaseSet::Quick, CommandVariant::Quick)
        } else {
            (CaseSet::Full, CommandVariant::Usual)
        };
        let mut cases = cases_of(charter, set);
        let built = trees.built(repo, measuring.harness, made.oid.as_str());
        let measured = built.and_then(|built| measuring.measure(&built, &mut cases, variant));
        let (gate, readings) = match split(measured)? {
            Ok(readings) => ("passed".to_owned(), readings),
            Err(gate) => (gate.describe(), Vec::new()),
        };
        Ok(CheckReport {
            commit: head.to_string(),
            changed: made.files,
            // Untracked files next to the kernel, such as build outputs, do not count as changes.
            left_out: made
                .out_of_scope
                .into_iter()
                .filter(|refused| refused.change.tracked)
                .map(|refused| refused.change.path)
                .collect(),
            passed: gate == "passed",
            kernel_output: Vec::new(),
            gate,
            metric: charter.metric.name.clone(),
            unit: charter.metric.unit.clone(),
            cases: readings,
        })
    }

    fn show(&self, findings: &CheckReport) {
        if self.json {
            ui::out_json(findings);
            return;
        }
        let commit = findings.commit.get(..10).unwrap_or_default();
        let changed = match findings.changed.len() {
            0 => "no editable file is changed".to_owned(),
            _ => format!("with {}", findings.changed.join(", ")),
        };
        ui::outln(&format!("tree      HEAD {commit} {changed}"));
        for path in &findings.left_out {
            ui::outln(&format!("left out  {} (read-only)", text::safe(path, 120)));
        }
        ui::outln(&format!("gate      {}", findings.gate));
        for line in &findings.kernel_output {
            ui::outln(&format!("          {line}"));
        }
        for case in &findings.cases {
            ui::outln(&format!(
                "reading   {:<32} {} {:.6} {} ({:.6} to {:.6})",
                case.case, findings.metric, case.median, findings.unit, case.low, case.high
            ));
        }
    }
}

impl CheckReport {
    /// Fails for a worktree that did not pass.
    pub(super) fn expect_passed(&self) -> Result<()> {
        if self.passed {
            return Ok(());
        }
        Err(CommandError::new(ErrorKind::Negative, "the worktree does not pass the gate")
            .hint("fix what is named above, and run \"karve check\" again"))
    }
}

/// The visible cases of a set; all of them if none is marked quick.
fn cases_of(charter: &Charter, set: CaseSet) -> Vec<Case> {
    let quick = charter.quick_cases();
    let indices =
        if set == CaseSet::Quick && !quick.is_empty() { quick } else { charter.visible_cases() };
    indices.into_iter().map(|index| charter.cases[index].clone()).collect()
}

/// What a check measures with.
struct CheckContext<'a> {
    charter: &'a Charter,
    harness: &'a Harness,
    stop: &'a StopFlag,
}

impl CheckContext<'_> {
    fn measure(
        &self,
        built: &BuiltTree,
        cases: &mut [Case],
        variant: CommandVariant,
    ) -> GateResult<Vec<CaseReading>> {
        let harness = self.harness;
        match variant {
            CommandVariant::Usual => {
                checks::fit_cases(harness, &built.path, cases)?;
            }
            CommandVariant::Quick => harness.test(&built.path, cases, variant)?,
        }
        let _lease = device::lease_for(self.charter, "karve check", self.stop, &ui::notices())?;
        let mut values: Vec<Vec<f64>> = vec![Vec::new(); cases.len()];
        for _ in 0..READINGS {
            let samples = harness.bench(&built.path, cases, BenchParams::fresh(variant)?)?;
            values.iter_mut().zip(samples).for_each(|(list, sample)| list.push(sample.value));
        }
        let quantile = |values: &[f64], q| stats::quantile(values, q).unwrap_or(f64::NAN);
        let reading = |(case, values): (&Case, Vec<f64>)| CaseReading {
            case: case.name.clone(),
            median: quantile(&values, 0.5),
            low: quantile(&values, 0.0),
            high: quantile(&values, 1.0),
        };
        Ok(cases.iter().zip(values).map(reading).collect())
    }
}
