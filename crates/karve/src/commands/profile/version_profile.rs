//! The profile of one version of a kernel: read from files, or taken from a built tree.

use super::modes::{ProfileMode, ProfiledTree, TreeFile};
use super::{ProfileArgs, roof};
use crate::bench::text;
use crate::config::Overrides;
use crate::explain::version_of;
use crate::library::situation::situation_of;
use crate::project::ProjectArgs;
use crate::ui;
use karve_core::charter::Charter;
use karve_core::knowledge::Situation;
use karve_core::profile::KernelProfile;
use karve_harness::commands::Harness;
use karve_harness::git::Repo;
use karve_harness::outcome::{Failure, split};
use karve_harness::project_file;
use karve_harness::scratch::{ScratchDir, ScratchKind};
use karve_harness::worktrees::Worktrees;
use karve_numerics::case::Case;
use karve_os::device;
use karve_os::error::{CommandError, Result};
use karve_os::process::StopFlag;
use karve_os::sandbox::Sandbox;
use karve_profile::profilers::collect::{
    CollectedProfile, DevicePlatform, ProfileRequest, ProfileTarget,
};
use karve_profile::profilers::editable::EditableFiles;
use karve_profile::profilers::{ParsedProfile, ProfilerTool, collect};
use std::path::Path;

/// The profile of one version.
pub(super) struct VersionProfile {
    /// What was profiled.
    pub(super) title: String,
    /// The operation, if known.
    pub(super) kernel: String,
    /// Which version of it.
    pub(super) version: String,
    /// The parameters of the case.
    pub(super) configuration: Vec<(String, String)>,
    /// The profile.
    pub(super) parsed: ParsedProfile,
    /// The target that such kernels run on.
    pub(super) at: Option<Situation>,
    /// Files for the tree that a mode leaves.
    pub(super) files: Vec<TreeFile>,
}

impl VersionProfile {
    /// The matching kernel of another version. If this version's slowest kernel does not exist
    /// there, the slowest one there is taken to have replaced it.
    pub(super) fn same_as(
        &self,
        kernel: &KernelProfile,
        later: &ParsedProfile,
    ) -> Option<&KernelProfile> {
        let mut all = self.parsed.kernels.iter().chain(&self.parsed.timeline);
        let named = all.find(|own| own.name == kernel.name);
        let first = self.parsed.kernels.first();
        let is_gone = |own: &&KernelProfile| later.kernels.iter().all(|k| k.name != own.name);
        let is_first = later.kernels.first().is_some_and(|k| k.name == kernel.name);
        named.or(first.filter(|_| is_first).filter(is_gone))
    }
}

impl ProfileArgs {
    /// Whether all names are files; no name means the worktree.
    pub(super) fn are_files(&self, place: &ProjectArgs, names: &[String]) -> Result<bool> {
        let here = place.here()?;
        Ok(!names.is_empty() && names.iter().all(|name| here.join(name).is_file()))
    }

    /// What files or a revision show.
    pub(super) fn version_profiles(
        &self,
        place: &ProjectArgs,
        names: &[String],
        stop: &StopFlag,
    ) -> Result<VersionProfile> {
        if self.are_files(place, names)? {
            if self.mode.is_some() {
                return Err(CommandError::usage("--mode profiles a version, not files")
                    .hint("name a revision, or leave out --mode: karve profile FILE"));
            }
            return self.read_files(&place.here()?, names);
        }
        let revision = match names {
            [] => None,
            [revision] => Some(revision.as_str()),
            _ => {
                let here = place.here()?;
                let odd = names.iter().find(|name| !here.join(name).is_file());
                let odd = text::safe(odd.map_or("", |name| name), 60);
                let error = CommandError::usage(format!("{odd:?} is not a file"));
                return Err(error.hint(
                    "name one revision, or files written by a profiler: karve profile FILE",
                ));
            }
        };
        let directory = revision.filter(|name| place.here().is_ok_and(|h| h.join(name).is_dir()));
        let (mut seen, failed) =
            self.of_revision(place, revision, stop).map_err(|error| match directory {
                Some(name) => error.hint(format!(
                    "{name:?} is a directory: name files in it, as in karve profile FILE"
                )),
                None => error,
            })?;
        let wanted = failed.iter().find(|(tool, _)| self.only_tool() == Some(*tool));
        if let Some((tool, hint)) = wanted {
            let what = format!("{} produced no profile", tool.name());
            let error = CommandError::environment(what).cause(text::safe(&hint.problem, 300));
            let hints = hint.hints.iter();
            return Err(hints.fold(error, |error, hint| error.hint(hint.as_str())));
        }
        let is_silent = failed.is_empty();
        for (tool, hint) in failed {
            let problem = text::safe(&hint.problem, 300);
            ui::note(&format!("note: {}: {problem}", tool.name()));
            for hint in &hint.hints {
                ui::note(&format!("hint: {hint}"));
            }
        }
        let is_tested = self.mode == Some(ProfileMode::Disabled);
        if seen.parsed.kernels.is_empty() && seen.parsed.timeline.is_none() && !is_tested {
            let mut error = CommandError::environment("no profiler produced a profile");
            for note in std::mem::take(&mut seen.parsed.notes) {
                error = error.cause(note);
            }
            return Err(error.hint(if is_silent {
                "read a profiler's output from a file: karve profile FILE"
            } else {
                "see the notes above, or read a file: karve profile FILE"
            }));
        }
        Ok(seen)
    }

    /// The combined content of the files, and the target such kernels run on.
    fn read_files(&self, here: &Path, names: &[String]) -> Result<VersionProfile> {
        let mut parsed = ParsedProfile::default();
        let mut at = None;
        for name in names {
            let path = here.join(name);
            let read = collect::read_file(&path, self.tool);
            let (tool, mut more) = read.map_err(|failure| match failure {
                Failure::Outcome(why) => CommandError::usage(format!("cannot read {name}"))
                    .cause(why)
                    .hint("--tool NAME says which profiler wrote it; see \"karve profile --help\""),
                Failure::Error(error) => {
                    error.hint("name a readable file written by a profiler: karve profile FILE")
                }
            })?;
            if names.len() > 1 {
                collect::name_file(&mut more, name);
            }
            collect::merge(&mut parsed, more);
            at.get_or_insert_with(|| situation_of_tool(tool));
        }
        let base = |name: &String| {
            let file = Path::new(name).file_name();
            file.map_or_else(|| name.clone(), |file| file.to_string_lossy().into_owned())
        };
        let version: Vec<String> = names.iter().map(base).collect();
        Ok(VersionProfile {
            title: names.join(", "),
            kernel: String::new(),
            version: version.join("+"),
            configuration: self.case.as_deref().map(pairs_of).unwrap_or_default(),
            parsed,
            at,
            files: Vec::new(),
        })
    }

    /// Builds a revision or the worktree, and profiles it.
    fn of_revision(
        &self,
        place: &ProjectArgs,
        revision: Option<&str>,
        stop: &StopFlag,
    ) -> Result<(VersionProfile, FailedTools)> {
        let repo = Repo::discover(&place.here()?)?;
        let loaded = place.load_in(&repo, &Overrides::default())?;
        let charter = loaded.charter;
        let case = self.chosen(&charter)?;
        let scratch = ScratchDir::new(ScratchKind::Check, &[&repo])?;
        let harness = Harness::new(&charter, &scratch.path().join("tmp"), &scratch.tag(), stop);
        let mut trees = Worktrees::new(&repo, scratch.path().join("worktrees"))?;
        let sandbox = Sandbox::of(&repo.checkout(), &loaded.root, scratch.path(), &charter)?;
        let harness = harness.in_sandbox(sandbox.as_ref());
        let (title, commit) = version_of(&repo, &charter, revision)?;
        let globs = project_file::glob_set(&charter.editable)?;
        let sources = repo.read_matching(&commit, &globs)?;
        let editable = EditableFiles::of(&sources);
        let taken = match split(trees.built(&repo, &harness, commit.as_str()))? {
            Err(gate) => Err(CommandError::usage("it does not build")
                .cause(gate.describe())
                .hint("fix it; \"karve check\" shows more")),
            Ok(built) => {
                let _lease = device::lease_for(&charter, "karve profile", stop, &ui::notices())?;
                let subject = ProfileTarget {
                    tree: &built.path,
                    case: &case,
                    runs: DevicePlatform::at(&situation_of(&charter)),
                    editable: &editable,
                };
                let taken = self.take(&harness, &charter, subject);
                taken.and_then(|taken| {
                    let files = match self.mode {
                        None | Some(ProfileMode::Disabled) => Vec::new(),
                        Some(_) => {
                            let of = ProfiledTree {
                                tree: &built.path,
                                sources: &sources,
                                taken: &taken,
                                journals: &loaded.root.join("tune"),
                            };
                            self.tree_files(&harness, &charter, of)?
                        }
                    };
                    Ok((taken, files))
                })
            }
        };
        trees.clear(&repo)?;
        let (taken, files) = taken?;
        let seen = VersionProfile {
            title: format!("{title}, {}", case.name),
            kernel: charter.target.op.clone(),
            version: revision.unwrap_or("worktree").to_owned(),
            configuration: if case.params.is_empty() {
                pairs_of(&case.name)
            } else {
                case.params.into_iter().collect()
            },
            parsed: taken.parsed,
            at: Some(situation_of(&charter)),
            files,
        };
        Ok((seen, taken.failed))
    }

    fn take(
        &self,
        harness: &Harness,
        charter: &Charter,
        subject: ProfileTarget<'_>,
    ) -> Result<CollectedProfile> {
        if let Some(taken) = self.without_profiler(harness, charter, subject)? {
            return Ok(taken);
        }
        let (tool, depth) = (self.only_tool(), self.wanted_depth());
        let wish = ProfileRequest { tool, depth, without: &[] };
        let mut taken = collect::take(harness, subject, wish, self.rules)?;
        if subject.runs == DevicePlatform::Cpu {
            roof::add(harness, charter, subject, &mut taken)?;
        }
        Ok(taken)
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
                .hint("cases.list of karve.toml lists them; pass one to --case as written there")
        })
    }
}

/// Tools that produced no profile, and what to do.
type FailedTools = Vec<(ProfilerTool, karve_profile::profilers::run::ProfilerHint)>;

/// The parameters in the name of a case; the name itself if it has none.
fn pairs_of(name: &str) -> Vec<(String, String)> {
    let pair = |part: &str| {
        let (name, value) = part.split_once('=')?;
        Some((name.trim().to_owned(), value.trim().to_owned()))
    };
    let pairs: Option<Vec<(String, String)>> = name.split(',').map(pair).collect();
    pairs.unwrap_or_else(|| vec![("case".to_owned(), name.to_owned())])
}

/// The target of the kernels that a tool profiles, and their possible languages.
fn situation_of_tool(tool: ProfilerTool) -> Situation {
    let (device, language): (&[&str], &[&str]) = match tool {
        ProfilerTool::Ncu | ProfilerTool::Ptxas | ProfilerTool::Nsys => {
            (&["gpu", "cuda", "nvidia"], &["cuda", "triton", "cutile", "cute", "tileir"])
        }
        ProfilerTool::Rocprof | ProfilerTool::RocprofCompute => {
            (&["gpu", "rocm", "amd"], &["hip", "triton", "flydsl"])
        }
        ProfilerTool::Perf | ProfilerTool::Cachegrind | ProfilerTool::Callgrind => {
            (&["cpu"], &["c", "c++", "rust"])
        }
        ProfilerTool::Torch => (&["gpu"], &[]),
    };
    Situation::new("", &[], language, device)
}
