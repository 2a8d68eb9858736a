//! One run of the benchmark: its command line, its environment, and where its numbers are.

use super::failure_text::wrong;
use super::{
    BenchParams, CaseRunSettings, CommandVariant, Harness, PAD, SEED, contract, criterion_home,
    names_case, raw,
};
use crate::outcome::GateResult;
use crate::placeholders::{expand, quote};
use karve_core::measurement::Gate;
use karve_numerics::case::Case;
use karve_os::error::{CommandError, Result};
use karve_os::process::{self, CommandOutcome, Exit, excerpt};
use karve_os::sandbox::CommandPurpose;
use std::fs;
use std::path::{Path, PathBuf};

impl Harness {
    /// Runs the benchmark; returns how it ended, and the text with its numbers.
    pub(super) fn run_bench(
        &self,
        line: &str,
        tree: &Path,
        cases: &[Case],
        call: BenchParams,
    ) -> Result<(CommandOutcome, String)> {
        let seed = call.seed;
        let out = self.output.from_file.then(|| self.out_dir().join(format!("out-{seed:016x}")));
        let one_case = if names_case(line, cases) { cases.first() } else { None };
        let mut values = self.placeholders(tree, seed, out.as_deref());
        let of_case = self.of_cases(cases);
        values.repeats = Some(of_case.repeats);
        let line = expand(line, one_case, &values)?;
        let line = match of_case.spin_us {
            Some(us) => followed_by_work(&line, us)?,
            None => line,
        };
        if out.is_some() {
            let dir = self.out_dir();
            fs::create_dir_all(&dir).map_err(|error| {
                CommandError::environment(format!("cannot create {}", dir.display())).cause(error)
            })?;
        }
        self.condition(tree)?;
        let command = self.command(&line, tree, CommandPurpose::Measure)?;
        let command = command.pin(&self.pinned);
        let pad = "x".repeat(usize::from(call.pad));
        let command = command.env(PAD, pad).env(SEED, seed.to_string());
        let estimates = self.criterion_home(seed)?;
        let command = match &estimates {
            Some(home) => command.env(criterion_home::VARIABLE, home.path().to_string_lossy()),
            None => command,
        };
        let run = process::run(&command, &self.stop)?;
        let text = match &out {
            Some(path) => raw::taken_text(path),
            None => {
                let written = estimates.and_then(criterion_home::CriterionHome::into_text);
                written.unwrap_or_else(|| run.stdout.text().into_owned())
            }
        };
        Ok((run, text))
    }

    /// What one run of the benchmark prints or writes, whatever its cases are called.
    pub fn bench_text(&self, tree: &Path, cases: &[Case]) -> GateResult<String> {
        let call = BenchParams::fresh(CommandVariant::Usual)?;
        let (run, text) = self.run_bench(&self.commands.bench, tree, cases, call)?;
        match run.exit {
            Exit::Code(0) => Ok(text),
            Exit::TimedOut => Err(Gate::TimedOut { what: "the benchmark".into() }.into()),
            Exit::Code(_) | Exit::Signal(_) | Exit::Stopped | Exit::TooMuch(_) => {
                Err(wrong("the benchmark", &run).into())
            }
        }
    }

    /// Where benchmarks write their results.
    pub(super) fn out_dir(&self) -> PathBuf {
        match &self.sandbox {
            Some(sandbox) => sandbox.out(),
            None => self.scratch.clone(),
        }
    }

    /// The settings for one run on these cases: the maximum of what they need.
    pub(super) fn of_cases(&self, cases: &[Case]) -> CaseRunSettings {
        let known = |case: &Case| self.per_case.get(&case.name).copied();
        let all: Vec<CaseRunSettings> = cases.iter().filter_map(known).collect();
        CaseRunSettings {
            repeats: all.iter().map(|one| one.repeats).max().unwrap_or(1),
            spin_us: all.iter().filter_map(|one| one.spin_us).max(),
        }
    }

    /// Brings the machine into the state that every timed run starts from.
    fn condition(&self, tree: &Path) -> Result<()> {
        let Some(line) = &self.commands.condition else {
            return Ok(());
        };
        // On the same CPUs, because it conditions their caches.
        let line = expand(line, None, &self.placeholders(tree, 0, None))?;
        let command = self.command(&line, tree, CommandPurpose::Measure)?;
        let run = process::run(&command.pin(&self.pinned), &self.stop)?;
        if run.exit.success() || self.stop.at_once() {
            return Ok(());
        }
        Err(CommandError::environment("commands.condition failed")
            .cause(excerpt(&run))
            .hint("run it by hand, and fix commands.condition in karve.toml"))
    }
}

/// The same line, followed by plain work that counts toward its time.
fn followed_by_work(line: &str, us: u64) -> Result<String> {
    let own = quote(&contract::own_program()?.to_string_lossy());
    let work = format!("{own} spin {us} || exit 1");
    Ok(format!("{line}\nstatus=$?\n{work}\nexit $status"))
}
