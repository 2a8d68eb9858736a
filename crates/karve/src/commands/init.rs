//! `karve init`: writes a `karve.toml` for the current project.

mod offer;
mod trial;

use super::project_files;
use crate::detect::{ConfigProposal, ProjectFiles};
use crate::project::{CONFIG, ProjectArgs};
use crate::{config, detect, session, ui};
use karve_core::policy::Preset;
use karve_harness::git::Repo;
use karve_os::error::{CommandError, ErrorKind, Result, WithContext};
use karve_os::process::{self, StopFlag};
use std::fs;
use std::io::{BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;
use trial::ProposalTrial;

/// How long the project's tests may take to list the cases.
const COLLECT_LIMIT: Duration = Duration::from_secs(120);
/// How long one run of the benchmark may take.
const BENCH_LIMIT: Duration = Duration::from_secs(900);
/// Write a karve.toml for your own kernel
///
/// Detects the build system, the commands and the kernel file, runs them once in a scratch worktree
/// to see that they work and which cases there are, asks about the rest, and writes karve.toml.
/// Never overwrites an existing one. A C or C++ function without a test and a benchmark gets a
/// contract, and so does a task of KernelBench.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  karve init             asks, with the detected values as defaults
  karve init rms_norm    the same for the kernel in a file rms_norm.py
  karve init --yes       uses the detected values
  karve init -p 'gemm_fp8_blockwise in Triton on MI300X, >500 TFLOPS, all shapes'
  karve init --print     shows the file and writes nothing")]
pub struct InitArgs {
    /// The kernel: its path, or its file name with or without extension; by default the likeliest
    kernel: Option<String>,
    /// Take the target, the commands and the shapes from a manifest of primus
    #[arg(long, value_name = "FILE", conflicts_with = "kernel")]
    manifest: Option<PathBuf>,
    /// What you want in your own words: operation, backend, device, goal, rounds, workflow
    #[arg(short, long, value_name = "WORDS")]
    prompt: Option<String>,
    /// Run the benchmark once and take every shape that it prints
    #[arg(long)]
    all_shapes: bool,
    /// Use the detected values without asking
    #[arg(short, long)]
    yes: bool,
    /// Run nothing: take only what the files show
    #[arg(long, conflicts_with = "all_shapes")]
    no_run: bool,
    /// Print the file instead of writing it
    #[arg(long)]
    print: bool,
}

impl InitArgs {
    /// Runs the command.
    pub fn run(&self, place: &ProjectArgs) -> Result<()> {
        let dir = place.here()?;
        let path = dir.join(CONFIG);
        if path.exists() && !self.print {
            return Err(CommandError::usage(format!("{} already exists", path.display()))
                .hint("edit it, check it with \"karve doctor\", or move it away first"));
        }
        let found = self.found(&dir);
        if self.manifest.is_none()
            && let Some(task) = detect::find_model_task(&found)
        {
            return offer::write_task(&self.worded(task), self.print, &dir);
        }
        let mut proposal = match &self.manifest {
            Some(file) => of_manifest(file)?,
            None => self.detected(&found, &dir)?,
        };
        if let Some(words) = &self.prompt {
            detect::apply_words(&mut proposal, &detect::read_words(words));
        }
        // The mode is a question of primus's workflow, and of a target in words as it takes them.
        if self.prompt.is_some() || proposal.preset == Preset::Primus.name() {
            let mode = detect::recommended_mode(&found, proposal.build.as_deref());
            proposal.why.push(mode);
        }
        let outcome = if self.all_shapes || proposal.all_shapes {
            take_all_shapes(&mut proposal, &dir)?;
            ProposalTrial::NotRun
        } else {
            let target = self.offered(&mut proposal, &found);
            if let Some(target) = target {
                return offer::declare(target, self.print, place);
            }
            self.tried(&mut proposal, &dir)?
        };
        for why in &proposal.why {
            ui::note(&format!("found: {why}"));
        }
        if !self.yes && !self.print {
            if !std::io::stdin().is_terminal() {
                return Err(CommandError::usage("standard input is not a terminal")
                    .hint("use the detected values with \"karve init --yes\""));
            }
            ask(&mut proposal, outcome)?;
        }
        let text = detect::render_karve_toml(&proposal);
        if self.print {
            ui::out(&text);
            return Ok(());
        }
        let by_hand = "run \"karve init\" again, or write it by hand: see docs/karve-toml.md";
        config::check(&text, &dir, by_hand)?;
        write_new(&path, &text)?;
        ui::outln(&format!("wrote {}", path.display()));
        if Repo::discover(&dir).is_err() {
            ui::note(
                "note: this is not a git repository yet; a campaign needs one commit: \"git init\"",
            );
        }
        ui::outln("next: review it, then \"karve doctor\", then \"karve run\"");
        Ok(())
    }

    /// The files, and the kernel that was named.
    fn found(&self, dir: &Path) -> ProjectFiles {
        let mut found = project_files::look(dir);
        found.kernel.clone_from(&self.kernel);
        found
    }

    /// A task with the device that the user's words name.
    fn worded(&self, mut task: detect::ModelTask) -> detect::ModelTask {
        let said = self.prompt.as_deref().map(detect::read_words);
        if let Some(device) = said.and_then(|said| said.device) {
            task.device = device;
        }
        task
    }

    /// The proposal for the files of a project.
    fn detected(&self, found: &ProjectFiles, dir: &Path) -> Result<ConfigProposal> {
        let mut proposal = detect::propose(found);
        if let Some(kernel) = &self.kernel
            && !found.files.iter().any(|(path, _)| proposal.editable.contains(path))
        {
            return Err(CommandError::usage(format!("no kernel is named {kernel:?}"))
                .hint("name a file of this project, or leave it out: \"karve init\""));
        }
        list_cases(&mut proposal, dir);
        Ok(proposal)
    }

    /// The function that gets a contract, if the project has nothing else to judge it by.
    fn offered(&self, proposal: &mut ConfigProposal, found: &ProjectFiles) -> Option<String> {
        let callable = offer::callable(found, proposal).filter(|_| self.manifest.is_none());
        match proposal.is_placeholder {
            true => callable.filter(|target| offer::is_seen_by_karve(target)),
            false => {
                proposal.why.extend(callable.as_deref().map(offer::sentence));
                None
            }
        }
    }

    /// Runs the proposed commands, unless there are none to run.
    fn tried(&self, proposal: &mut ConfigProposal, dir: &Path) -> Result<ProposalTrial> {
        if self.no_run || self.manifest.is_some() || proposal.is_placeholder {
            return Ok(ProposalTrial::NotRun);
        }
        let stop = StopFlag::new();
        session::watch_signals_at_once(&stop, "stopping")?;
        let outcome = trial::run(proposal, dir, &stop)?;
        if outcome == ProposalTrial::Fails {
            ui::note("note: not everything works as proposed; the last lines say what to edit");
        }
        Ok(outcome)
    }
}

/// The proposal of a manifest.
fn of_manifest(file: &Path) -> Result<ConfigProposal> {
    let text = fs::read_to_string(file).context(|| format!("cannot read {}", file.display()))?;
    detect::propose_from_manifest(&text).map_err(|fault| {
        let hint = "name a manifest.yaml of a campaign, such as .karve/NAME/manifest.yaml";
        CommandError::usage(fault).hint(hint)
    })
}

/// Creates the file; one that appeared in the meantime is not overwritten.
fn write_new(path: &Path, text: &str) -> Result<()> {
    let cannot = || format!("cannot write {}", path.display());
    let mut file =
        fs::OpenOptions::new().write(true).create_new(true).open(path).context(cannot)?;
    file.write_all(text.as_bytes()).context(cannot)
}

/// Builds and runs the benchmark once, and takes every shape that it prints as a case.
fn take_all_shapes(proposal: &mut ConfigProposal, dir: &Path) -> Result<()> {
    let build = proposal.build.iter().map(|build| format!("{{ {build}; }} >&2 && "));
    let line = build.chain([proposal.bench.clone()]).collect::<String>();
    let command = process::Command::shell(line.clone(), dir).limit(BENCH_LIMIT);
    let run = process::run(&command, &StopFlag::new())?;
    let cases = match run.exit.success() {
        true => detect::shapes_in(proposal, &run.stdout.text()),
        false => Err(process::excerpt(&run)),
    };
    proposal.cases = cases.map_err(|why| {
        let hint = "run it by hand, or leave --all-shapes out and list the shapes in [cases]";
        CommandError::usage(format!("cannot read all shapes from \"{line}\"")).cause(why).hint(hint)
    })?;
    proposal
        .why
        .push(format!("The cases are the {} shapes that it printed.", proposal.cases.len()));
    Ok(())
}

/// Asks the project's own tests for the cases, where they can tell.
fn list_cases(proposal: &mut ConfigProposal, dir: &Path) {
    let Some(line) = &proposal.collect else {
        return;
    };
    let command = process::Command::shell(line.clone(), dir).limit(COLLECT_LIMIT);
    match process::run(&command, &StopFlag::new()) {
        Ok(run) if run.exit.success() => detect::take_cases(proposal, &run.stdout.text()),
        Ok(_) | Err(_) => {
            let why = "The ids of the cases are not known here; list in [cases] what is in the \
                       brackets of:";
            proposal.why.push(format!("{why} {line}"));
        }
    }
}

/// Asks what is not known: which files may be changed; and the rest, unless it was seen to work.
fn ask(proposal: &mut ConfigProposal, outcome: ProposalTrial) -> Result<()> {
    let stdin = std::io::stdin();
    let is_open = |key: &str| key == "editable" || outcome != ProposalTrial::Works;
    for question in detect::questions(proposal).into_iter().filter(|one| is_open(one.key)) {
        loop {
            ui::prompt(&format!("{} [{}]: ", question.prompt, question.default));
            let mut answer = String::new();
            let n = stdin.lock().read_line(&mut answer).context(|| "cannot read".into())?;
            if n == 0 {
                return Err(CommandError::new(ErrorKind::Interrupted, "no answer was given")
                    .hint("use the detected values with \"karve init --yes\""));
            }
            match detect::apply_answer(proposal, question.key, answer.trim()) {
                Ok(()) => break,
                Err(error) => ui::note(&error.to_string()),
            }
        }
    }
    Ok(())
}
