//! The modes of hyper-mla's profiler, and the tree of files that each leaves.

use super::ProfileArgs;
use karve_core::charter::Charter;
use karve_core::profile::{Counter, KernelProfile, ProfileDepth, ProfileSource};
use karve_core::score::implied_seconds;
use karve_harness::commands::{BenchParams, CommandVariant, Harness};
use karve_harness::outcome::split;
use karve_numerics::space::parse_knobs;
use karve_numerics::stats;
use karve_os::error::{CommandError, ErrorKind, Result};
use karve_os::files;
use karve_profile::profilers::ProfilerTool;
use karve_profile::profilers::collect::{CollectedProfile, ProfileTarget};
use serde_json::{Map, Value, json};
use std::fs;
use std::path::{Path, PathBuf};

/// The largest journal of settings that is copied.
const JOURNAL_BYTES_MAX: u64 = 1 << 26;
/// Readings of a version in the mode `event`.
const EVENT_READINGS: usize = 7;

/// How a version is profiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum ProfileMode {
    /// The light profilers and the roofline: the usual first look
    Annotation,
    /// No profiler, only the time of a call: for a quick comparison of versions
    Event,
    /// Nsight Compute, in depth
    Ncu,
    /// Nsight Systems: overlap, idle time and concurrency
    Nsys,
    /// Nothing but whether the kernel is right; leaves no files
    Disabled,
}

impl ProfileMode {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Annotation => "annotation",
            Self::Event => "event",
            Self::Ncu => "ncu",
            Self::Nsys => "nsys",
            Self::Disabled => "disabled",
        }
    }
}

/// A file of the tree: its path there, and what it holds.
pub(super) type TreeFile = (PathBuf, Vec<u8>);

/// A version that was profiled.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProfiledTree<'a> {
    /// Where it is built.
    pub(super) tree: &'a Path,
    /// Its editable files.
    pub(super) sources: &'a [(String, Vec<u8>)],
    /// What the profilers found.
    pub(super) taken: &'a CollectedProfile,
    /// Where the tuner keeps its journals.
    pub(super) journals: &'a Path,
}

impl ProfileArgs {
    /// The only profiler to run, if there is one.
    pub(super) fn only_tool(&self) -> Option<ProfilerTool> {
        match self.mode {
            Some(ProfileMode::Ncu) => Some(ProfilerTool::Ncu),
            Some(ProfileMode::Nsys) => Some(ProfilerTool::Nsys),
            _ => self.tool,
        }
    }

    pub(super) fn wanted_depth(&self) -> Option<ProfileDepth> {
        match self.mode {
            Some(ProfileMode::Ncu) => Some(ProfileDepth::Full),
            Some(ProfileMode::Annotation) => self.depth.or(Some(ProfileDepth::Light)),
            _ => self.depth,
        }
    }

    /// What a mode without a profiler finds out; `None` for the others.
    pub(super) fn without_profiler(
        &self,
        harness: &Harness,
        charter: &Charter,
        subject: ProfileTarget<'_>,
    ) -> Result<Option<CollectedProfile>> {
        let cases = std::slice::from_ref(subject.case);
        let mut taken = CollectedProfile::default();
        let name = &subject.case.name;
        match self.mode {
            Some(ProfileMode::Disabled) => {
                let tested = split(harness.test(subject.tree, cases, CommandVariant::Usual))?;
                if let Err(gate) = tested {
                    let error = CommandError::new(ErrorKind::Negative, "the kernel is not right");
                    return Err(error.cause(gate.describe()).hint("\"karve check\" shows more"));
                }
                taken.parsed.notes.push(format!("the kernel is right on {name}"));
            }
            Some(ProfileMode::Event) => {
                let mut seconds = Vec::new();
                for _ in 0..EVENT_READINGS {
                    let call = BenchParams::fresh(CommandVariant::Usual)?;
                    let read = split(harness.bench(subject.tree, cases, call))?;
                    let samples = read.map_err(|gate| {
                        CommandError::usage("the case cannot be timed")
                            .cause(gate.describe())
                            .hint("\"karve check\" shows more")
                    })?;
                    seconds.extend(samples.first().and_then(|sample| {
                        implied_seconds(&charter.metric, sample.value, subject.case)
                    }));
                }
                let Some(median) = stats::median(&seconds) else {
                    return Err(CommandError::usage(
                        "the metric does not say how long a call takes",
                    )
                    .hint("metric.work in karve.toml relates a rate to a time"));
                };
                taken.parsed.kernels.push(timed(&charter.target.op, &seconds, median));
            }
            _ => return Ok(None),
        }
        Ok(Some(taken))
    }

    /// What is in the tree besides the reports: what was profiled, its knobs, its generated code
    /// and what the profilers wrote.
    pub(super) fn tree_files(
        &self,
        harness: &Harness,
        charter: &Charter,
        of: ProfiledTree<'_>,
    ) -> Result<Vec<TreeFile>> {
        let ProfiledTree { tree, sources, taken, journals } = of;
        let mut all = Vec::new();
        for (tool, output) in &taken.raw {
            all.push((Path::new("raw").join(tool.name()), output.clone()));
        }
        for (file, bytes) in sources {
            let stage = Path::new(file).file_stem().unwrap_or_default();
            let knobs = parse_knobs(file, &String::from_utf8_lossy(bytes), &charter.knobs);
            let knobs = knobs.map_err(CommandError::usage)?;
            if !knobs.is_empty() {
                let set = knobs.iter().map(|knob| (knob.name.clone(), json!(knob.current)));
                let set: Map<String, Value> = set.collect();
                let path = Path::new("tiling").join(stage).with_extension("json");
                all.push((path, pretty(&Value::Object(set))));
                let path = Path::new("tiling").join(stage).join("autotuning.json");
                all.push((path, pretty(&Value::Array(tried_in(journals)))));
            }
            if self.mode == Some(ProfileMode::Ncu) {
                all.push((Path::new("source").join(file), bytes.clone()));
            }
        }
        if let Some(code) = harness.assembly(tree, &[])? {
            let text = harness.without_private_dirs(tree, &code.stdout.text());
            let path = Path::new("compiled").join(files::path_part(&charter.target.op));
            let path = path.join("assembly.txt");
            all.push((path, text.into_bytes()));
        }
        Ok(all)
    }
}

/// The lines of the newest journal of `karve tune`.
fn tried_in(dir: &Path) -> Vec<Value> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let dated = entries.filter_map(|entry| {
        let path = entry.path();
        let fits = path.extension().is_some_and(|end| end == "jsonl");
        fits.then_some((entry.metadata().ok()?.modified().ok()?, path))
    });
    let newest = dated.max().map(|(_, path)| files::read(&path, JOURNAL_BYTES_MAX));
    let bytes = newest.and_then(Result::ok).unwrap_or_default();
    let lines = bytes.split(|byte| *byte == b'\n');
    lines.filter_map(|line| serde_json::from_slice(line).ok()).collect()
}

/// A kernel of which only the time is known.
fn timed(op: &str, seconds: &[f64], median: f64) -> KernelProfile {
    let of = |q| stats::quantile(seconds, q).unwrap_or(median) * 1e6;
    let quote = format!("median of {} calls, {:.4} to {:.4} us", seconds.len(), of(0.0), of(1.0));
    let source = ProfileSource { tool: "event".into(), quote, ..ProfileSource::default() };
    let counter = Counter { value: median * 1e6, source };
    KernelProfile {
        name: op.to_owned(),
        editable: true,
        counters: [("duration_us".to_owned(), counter)].into(),
        remarks: Vec::new(),
    }
}

pub(super) fn pretty(value: &Value) -> Vec<u8> {
    let text = serde_json::to_string_pretty(value).unwrap_or_default();
    format!("{text}\n").into_bytes()
}
