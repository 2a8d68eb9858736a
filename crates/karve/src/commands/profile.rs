//! `karve profile`: why a kernel is slow, from a profiler's output to what is known about that.

use crate::config::{self, Overrides};
use crate::error::{CommandError, Context, Result};
use crate::git::{CommitNote, Oid, Repo};
use crate::harness::Harness;
use crate::library::situation::situation_of;
use crate::library::{Shelves, Stock};
use crate::process::StopFlag;
use crate::profilers::take::{self, Runs, Subject, Taken};
use crate::profilers::{Parsed, Tool};
use crate::project::Place;
use crate::reports::profile::{self as report, Shown};
use crate::sandbox::Sandbox;
use crate::scratch::{Kind, Scratch};
use crate::trees::Trees;
use crate::{clock, device, plain_file, session, ui};
use karve_core::charter::{Case, Charter};
use karve_core::knowledge::{Query, Situation};
use karve_core::profile::classify::with_derived;
use karve_core::profile::{KernelProfile, ProfileDepth, RuleSet, diagnose};
use std::path::Path;

/// Entries that are told of a kernel.
const ENTRIES_MAX: usize = 5;

/// Say why a kernel is slow: counters, the bottleneck, what promises most, and what is known
///
/// With files: reads the output of a profiler (ncu, ptxas, perf stat -x, cachegrind, callgrind,
/// rocprofv3, rocprof-compute, a PyTorch trace, an nsys export). Else builds a revision, or the
/// worktree, and runs the profilers that are there on one case, the light ones first. Every value
/// is shown with the line that it was read from. docs/profile.md lists the counters.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  karve profile                         the worktree, on its first case
  karve profile main --case M=96,N=96,K=96 --tool cachegrind
  karve profile ncu.csv ptxas.txt       what other runs have left
  karve profile ncu.csv --rules hyper-mla --form hyper-mla

Profiling never runs while a duel runs: it waits for the device.")]
pub struct Profile {
    /// A revision, or files with the output of profilers; the worktree without either
    #[arg(value_name = "REV|FILE")]
    what: Vec<String>,
    /// The case; the first one without it
    #[arg(long, value_name = "NAME")]
    case: Option<String>,
    /// Only this profiler: ncu, nsys, perf, cachegrind, callgrind, rocprofv3, rocprof-compute
    #[arg(long, value_parser = parse_tool)]
    tool: Option<Tool>,
    /// How deep to look: light, full or code [default: light, and full where that tells nothing]
    #[arg(long, value_parser = parse_depth)]
    depth: Option<ProfileDepth>,
    /// Whose lines decide: karve, hyper-mla, coordinator, primus or tilegym
    #[arg(long, default_value = "karve", value_parser = parse_rules)]
    rules: RuleSet,
    /// Whose report: karve, hyper-mla, coordinator or primus
    #[arg(long, value_enum, default_value = "karve")]
    form: report::Form,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

fn parse_tool(text: &str) -> std::result::Result<Tool, String> {
    Tool::by_name(text).ok_or_else(|| {
        let names: Vec<&str> = Tool::ALL.iter().map(|tool| tool.name()).collect();
        format!("it is one of {}", names.join(", "))
    })
}

fn parse_depth(text: &str) -> std::result::Result<ProfileDepth, String> {
    let all = [ProfileDepth::Light, ProfileDepth::Full, ProfileDepth::Code];
    let found = all.into_iter().find(|depth| depth.name() == text);
    found.ok_or_else(|| "it is light, full or code".to_owned())
}

fn parse_rules(text: &str) -> std::result::Result<RuleSet, String> {
    RuleSet::by_name(text).ok_or_else(|| {
        let names: Vec<&str> = RuleSet::ALL.iter().map(|rules| rules.name()).collect();
        format!("it is one of {}", names.join(", "))
    })
}

impl Profile {
    /// Runs the command.
    pub fn run(&self, place: &Place) -> Result<()> {
        let here = place.here()?;
        let files = self.what.iter().filter(|name| here.join(name).is_file());
        let stock = Shelves::of(place).load()?;
        if !self.what.is_empty() && files.count() == self.what.len() {
            let (parsed, at) = self.read_files(&here)?;
            return self.show(&self.what.join(", "), &parsed, (&stock, at.as_ref()));
        }
        let ([] | [_]) = self.what.as_slice() else {
            return Err(
                CommandError::usage("these are no files, and more than one revision")
                    .hint("name one revision, or files that a profiler wrote: karve profile FILE"),
            );
        };
        let stop = StopFlag::new();
        session::watch_signals_at_once(&stop, "stopping")?;
        let taken = self.take(place, &stop);
        let (title, taken, charter) = session::unless_stopped(&stop, taken)?;
        for (tool, hint) in &taken.failed {
            let problem = ui::style::safe(&hint.problem, 300);
            ui::note(&format!("note: {}: {problem}", tool.name()));
            for hint in &hint.hints {
                ui::note(&format!("hint: {hint}"));
            }
        }
        if taken.parsed.kernels.is_empty() && taken.parsed.timeline.is_none() {
            let mut error = CommandError::environment("no profiler gave a profile");
            for note in &taken.parsed.notes {
                error = error.cause(note);
            }
            return Err(error.hint("see the notes above, or read a file: karve profile FILE"));
        }
        let situation = situation_of(&charter.target);
        self.show(&title, &taken.parsed, (&stock, Some(&situation)))
    }

    /// What files say, all together, and where such kernels run.
    fn read_files(&self, here: &Path) -> Result<(Parsed, Option<Situation>)> {
        let mut all = Parsed::default();
        let mut at = None;
        for name in &self.what {
            let bytes = plain_file::read(&here.join(name), plain_file::RESULT_BYTES_MAX)
                .context(|| format!("cannot read {name}"))
                .map_err(|error| {
                    error.hint("name a file that a profiler wrote: karve profile FILE")
                })?;
            let read = match self.tool {
                Some(tool) if tool != Tool::Nsys => {
                    let text = String::from_utf8_lossy(&bytes);
                    take::read_text(tool, &text).map(|parsed| (tool, parsed))
                }
                _ => take::read_any(&bytes)?,
            };
            let (tool, parsed) = read.map_err(|why| {
                CommandError::usage(format!("cannot read {name}"))
                    .cause(why)
                    .hint("--tool NAME says whose output it is; see \"karve profile --help\"")
            })?;
            take::merge(&mut all, parsed);
            at.get_or_insert_with(|| situation_of_tool(tool));
        }
        Ok((all, at))
    }

    /// Builds a revision or the worktree, and profiles it.
    fn take(&self, place: &Place, stop: &StopFlag) -> Result<(String, Taken, Charter)> {
        let repo = Repo::discover(&place.here()?)?;
        let loaded = place.load_in(&repo, &Overrides::default())?;
        let charter = loaded.charter;
        let case = self.chosen(&charter)?;
        let scratch = Scratch::new(Kind::Check, &[&repo])?;
        let harness = Harness::new(&charter, &scratch.path().join("tmp"), &scratch.tag(), stop);
        let mut trees = Trees::new(&repo, scratch.path().join("worktrees"))?;
        let sandbox = Sandbox::of(&repo, &loaded.root, scratch.path(), &charter)?;
        let harness = harness.in_sandbox(sandbox.as_ref());
        let (title, commit) = self.commit(&repo, &charter)?;
        let built = trees.built(&repo, &harness, commit.as_str())?;
        let taken = match built {
            Err(gate) => Err(CommandError::usage("it does not build")
                .cause(gate.describe())
                .hint("mend it; \"karve check\" says more")),
            Ok(built) => {
                let _lease = device::lease_for(&charter, "karve profile", stop, &ui::notices())?;
                let subject = Subject {
                    tree: &built.path,
                    case: &case,
                    runs: runs_on(&situation_of(&charter.target)),
                };
                take::take(&harness, subject, (self.tool, self.depth), self.rules)
            }
        };
        trees.clear(&repo)?;
        Ok((format!("{title}, {}", case.name), taken?, charter))
    }

    fn chosen(&self, charter: &Charter) -> Result<Case> {
        let visible = charter.visible_cases();
        let mut cases = visible.iter().map(|index| &charter.cases[*index]);
        let found = match &self.case {
            Some(name) => cases.find(|case| case.name == *name),
            None => cases.next(),
        };
        found.cloned().ok_or_else(|| {
            let name = self.case.as_deref().unwrap_or_default();
            CommandError::usage(format!("there is no visible case {name:?}"))
                .hint("cases.list of karve.toml names them; --case takes one as it stands there")
        })
    }

    /// The commit to profile, and what it is.
    fn commit(&self, repo: &Repo, charter: &Charter) -> Result<(String, Oid)> {
        if let Some(revision) = self.what.first() {
            return Ok((revision.clone(), repo.rev_parse(revision)?));
        }
        let head = repo.head()?.oid().clone();
        let globs = config::glob_set(&charter.granted)?;
        let note = CommitNote {
            message: "karve profile\n",
            date: clock::now_s(),
        };
        let made = repo.commit_candidate(repo.root(), &head, &globs, &note)?;
        Ok(("the worktree".to_owned(), made.oid))
    }

    fn show(
        &self,
        title: &str,
        parsed: &Parsed,
        (stock, situation): (&Stock, Option<&Situation>),
    ) -> Result<()> {
        let all = parsed.kernels.iter().chain(&parsed.timeline);
        let shown: Vec<Shown> = all
            .map(|kernel| self.of_kernel(kernel, stock, situation))
            .collect();
        if self.json {
            ui::out_json(&serde_json::json!({
                "title": title,
                "notes": parsed.notes,
                "kernels": shown,
            }));
            return Ok(());
        }
        ui::out(&report::render(self.form, title, &shown, &parsed.notes));
        Ok(())
    }

    fn of_kernel(
        &self,
        kernel: &KernelProfile,
        stock: &Stock,
        situation: Option<&Situation>,
    ) -> Shown {
        let values = with_derived(kernel);
        let situation = situation.map(|at| at.with_op_in(&kernel.name));
        let query = Query {
            situation: situation.as_ref(),
            values: Some(&values),
            text: "",
            refuted: false,
        };
        let entries = stock.library.search(&query);
        let entries = entries.iter().take(ENTRIES_MAX).map(|matched| {
            let why = matched.why.first().map(|why| why.describe());
            report::Fitting {
                id: matched.entry.id.clone(),
                title: matched.entry.title.clone(),
                why: why.unwrap_or_default(),
            }
        });
        let entries: Vec<report::Fitting> = entries.collect();
        Shown {
            kernel: kernel.clone(),
            diagnosis: diagnose(kernel, self.rules),
            entries,
        }
    }
}

/// Where kernels run that a tool profiles, and what they may be written in.
fn situation_of_tool(tool: Tool) -> Situation {
    let (device, language): (&[&str], &[&str]) = match tool {
        Tool::Ncu | Tool::Ptxas | Tool::Nsys => (
            &["gpu", "cuda", "nvidia"],
            &["cuda", "triton", "cutile", "cute", "tileir"],
        ),
        Tool::Rocprof | Tool::RocprofCompute => {
            (&["gpu", "rocm", "amd"], &["hip", "triton", "flydsl"])
        }
        Tool::Perf | Tool::Cachegrind | Tool::Callgrind => (&["cpu"], &["c", "c++", "rust"]),
        Tool::Torch => (&["gpu"], &[]),
    };
    Situation::new("", &[], language, device)
}

/// Which profilers fit.
fn runs_on(at: &Situation) -> Runs {
    let named = |word: &str| at.device.contains(word) || at.language.contains(word);
    if named("rocm") || named("hip") {
        Runs::Rocm
    } else if named("cuda") || named("gpu") {
        Runs::Cuda
    } else {
        Runs::Cpu
    }
}
