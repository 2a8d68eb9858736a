//! `karve profile`: why a kernel is slow, from profiler output to matching library entries.

mod check;
mod modes;
mod roof;
mod saved;
#[cfg(test)]
mod take_tests;
mod version_profile;

use crate::library::LoadedLibrary;
use crate::library::recall::name_entries;
use crate::library::situation::of_words;
use crate::project::ProjectArgs;
use crate::reports::profile::{self as report, KernelComparison, KernelReport, ProfilePage};
use crate::{session, ui};
use karve_core::knowledge::{LibraryQuery, Situation};
use karve_core::profile::classify::with_derived;
use karve_core::profile::{DiagnosisRuleSet, KernelProfile, ProfileDepth, diagnose};
use karve_os::error::{CommandError, Result};
use karve_os::process::StopFlag;
use karve_profile::profilers::ProfilerTool;
use modes::ProfileMode;
use std::path::PathBuf;
use version_profile::VersionProfile;

/// Most entries shown for a kernel.
const ENTRIES_MAX: usize = 5;

/// Say why a kernel is slow: counters, bottleneck, most promising changes, library entries
///
/// With files: reads the output of a profiler (ncu, ptxas, perf stat -x, cachegrind, callgrind,
/// rocprofv3, rocprof-compute, a PyTorch trace, an nsys export). Otherwise builds a revision, or
/// the worktree, and runs the installed profilers on one case, the light ones first. Every value
/// is shown with the line that it was read from. docs/profile.md lists the counters.
/// With --against: what changed since an earlier version.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  karve profile                         the worktree, on its first case
  karve profile main --case M=96,N=96,K=96 --tool cachegrind
  karve profile ncu.csv ptxas.txt       output of earlier profiler runs
  karve profile ncu.csv --language triton
  karve profile --against HEAD~1         what changed since the last commit
  karve profile ncu.csv --rules hyper-mla --form hyper-mla
  karve profile --check REPORT.md       check a report against the hyper-mla format
  karve profile --mode ncu              a tree of files in out/profiles/ncu, as hyper-mla has it

Profiling never runs while a duel runs: it waits for the device.")]
pub struct ProfileArgs {
    /// Run it on this remote, with the files of this checkout; see `karve remote`
    #[arg(long, value_name = "NAME")]
    pub(super) on: Option<String>,
    /// A revision, or files with profiler output [default: the worktree]
    #[arg(value_name = "REV|FILE")]
    what: Vec<String>,
    /// What to compare with: a revision or a file; repeat it for more files
    #[arg(long, value_name = "REV|FILE")]
    against: Vec<String>,
    /// Only check a report against hyper-mla's profiler format, and list what is wrong with it
    #[arg(long, value_name = "REPORT", conflicts_with_all = ["what", "against", "case", "tool"])]
    check: Option<String>,
    /// The case [default: the first one]. With files, the case they were taken on, such as b=32,s=1
    #[arg(long, value_name = "NAME")]
    case: Option<String>,
    /// Only this profiler: ncu, nsys, perf, cachegrind, callgrind, rocprofv3, rocprof-compute
    #[arg(long, value_parser = parse_tool)]
    tool: Option<ProfilerTool>,
    /// hyper-mla's modes: leaves a tree of files in DIR/MODE/KERNEL/CASE/TIME
    #[arg(long, value_enum, alias = "prof_type", conflicts_with_all = ["tool", "check"])]
    mode: Option<ProfileMode>,
    /// Where --mode leaves its files [default: out/profiles]
    #[arg(long, value_name = "DIR", requires = "mode")]
    out: Option<PathBuf>,
    /// The language of the kernel, such as cuda or triton, where the files do not say
    #[arg(long)]
    language: Option<String>,
    /// How deep to profile: light, full or code [default: light, or full if light finds nothing]
    #[arg(long, value_parser = parse_depth)]
    depth: Option<ProfileDepth>,
    /// Whose thresholds to use: karve, hyper-mla, trtllm, primus or tilegym
    #[arg(long, default_value = "karve", value_parser = parse_rules)]
    rules: DiagnosisRuleSet,
    /// Whose report format
    #[arg(long, value_enum, default_value = "karve")]
    form: report::ReportFormat,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

fn parse_tool(text: &str) -> std::result::Result<ProfilerTool, String> {
    ProfilerTool::by_name(text).ok_or_else(|| {
        let names: Vec<&str> = ProfilerTool::ALL.iter().map(|tool| tool.name()).collect();
        format!("expected one of {}", names.join(", "))
    })
}

fn parse_depth(text: &str) -> std::result::Result<ProfileDepth, String> {
    let all = [ProfileDepth::Light, ProfileDepth::Full, ProfileDepth::Code];
    let found = all.into_iter().find(|depth| depth.name() == text);
    found.ok_or_else(|| "expected light, full or code".to_owned())
}

fn parse_rules(text: &str) -> std::result::Result<DiagnosisRuleSet, String> {
    DiagnosisRuleSet::by_name(text).ok_or_else(|| {
        let names: Vec<&str> = DiagnosisRuleSet::ALL.iter().map(|rules| rules.name()).collect();
        format!("expected one of {}", names.join(", "))
    })
}

impl ProfileArgs {
    /// Runs the command.
    pub fn run(&self, place: &ProjectArgs) -> Result<()> {
        if let Some(report) = &self.check {
            return check::run(&place.here()?, report, self.json);
        }
        let loaded = place.library().load()?;
        let stop = StopFlag::new();
        if !self.are_files(place, &self.what)? || !self.are_files(place, &self.against)? {
            session::watch_signals_at_once(&stop, "stopping")?;
        }
        let seen = session::unless_stopped(&stop, self.version_profiles(place, &self.what, &stop))?;
        let earlier = match self.against.as_slice() {
            [] => None,
            names => {
                Some(session::unless_stopped(&stop, self.version_profiles(place, names, &stop))?)
            }
        };
        self.show(place, &seen, earlier.as_ref(), &loaded)
    }

    fn show(
        &self,
        place: &ProjectArgs,
        seen: &VersionProfile,
        earlier: Option<&VersionProfile>,
        loaded: &LoadedLibrary,
    ) -> Result<()> {
        let all = seen.parsed.kernels.iter().chain(&seen.parsed.timeline);
        let shown: Vec<KernelReport> = all
            .map(|kernel| {
                let before = earlier.and_then(|earlier| earlier.same_as(kernel, &seen.parsed));
                let against = before.map(|before| KernelComparison::of(before, kernel));
                self.of_kernel(kernel, loaded, seen.at.as_ref(), against)
            })
            .collect();
        let mut notes = seen.parsed.notes.clone();
        for note in earlier.iter().flat_map(|earlier| &earlier.parsed.notes) {
            notes.push(format!("from the version it is compared with: {note}"));
        }
        let compared = |shown: &KernelReport| shown.against.as_ref().is_some_and(|a| !a.is_empty());
        if earlier.is_some() && !shown.iter().any(compared) {
            notes.push("no tool read the same counter of both versions: nothing to compare".into());
        }
        let against = earlier.map(|earlier| earlier.title.as_str());
        let page = ProfilePage {
            title: &seen.title,
            kernel: &seen.kernel,
            version: &seen.version,
            configuration: &seen.configuration,
            shown: &shown,
            notes: &notes,
            against,
        };
        if let Some(dir) = self.write_tree(&place.here()?, seen, &page)? {
            ui::note(&format!("note: the files are in {}", dir.display()));
        }
        if self.json {
            ui::out_json(&serde_json::json!({
                "title": seen.title,
                "against": against,
                "notes": notes,
                "kernels": shown,
            }));
            return Ok(());
        }
        if shown.is_empty() && self.form.is_contract() {
            return Err(CommandError::environment("there is no kernel to report on")
                .hint("leave out --form, or read another file: karve profile FILE"));
        }
        ui::out(&report::render(self.form, &page));
        Ok(())
    }

    /// The same, with the language given, or inferred from the kernel's name: only compiled C++ has
    /// a signature. If the tool reads several languages and nothing else decides, it stays open.
    fn spoken(&self, mut at: Situation, kernel: &KernelProfile) -> Situation {
        if let Some(language) = &self.language {
            at.language = of_words("", language, language, "").language;
        } else if at.language.len() > 1 && at.backend.is_empty() {
            let compiled = ["cuda", "hip"].into_iter();
            let compiled =
                compiled.filter(|of| kernel.name.contains('(') && at.language.contains(*of));
            at.language = compiled.map(str::to_owned).collect();
        }
        at
    }

    fn of_kernel(
        &self,
        kernel: &KernelProfile,
        loaded: &LoadedLibrary,
        situation: Option<&Situation>,
        against: Option<KernelComparison>,
    ) -> KernelReport {
        let values = with_derived(kernel);
        let situation = situation.map(|at| self.spoken(at.with_op_in(&kernel.name), kernel));
        let query = LibraryQuery {
            situation: situation.as_ref(),
            values: Some(&values),
            text: "",
            refuted: false,
        };
        let entries = loaded.library.search(&query);
        let entries = entries.iter().take(ENTRIES_MAX).map(|matched| {
            let why = matched.why.first().map(|why| why.describe());
            let mut why = why.unwrap_or_default();
            let of = &matched.entry.scope.language;
            let unknown = situation.as_ref().is_some_and(|at| at.language.is_empty());
            if unknown && !of.is_empty() {
                why = format!("{why}; only if the kernel is written in {}", of.join(" or "));
            }
            let impact = matched.entry.impact;
            report::FittingEntry {
                impact: impact.map(|impact| format!("{}x to {}x", impact.low, impact.high)),
                id: matched.entry.id.clone(),
                title: matched.entry.title.clone(),
                why,
            }
        });
        let entries: Vec<report::FittingEntry> = entries.collect();
        let mut diagnosis = diagnose(kernel, self.rules);
        name_entries(loaded, &query, &mut diagnosis);
        KernelReport { kernel: kernel.clone(), diagnosis, entries, against }
    }
}
