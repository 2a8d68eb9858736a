//! Profiles a built tree: runs the available tools, the light ones first, and goes deeper as long
//! as the counters do not show what limits the kernel.

use super::editable::{EditableFiles, plain_name};
use super::run::{ProfilerHint, diagnose_failure, limit_of, start, too_long};
use super::valgrind::callgrind;
use super::vectors::{KernelCode, NOT_READ};
use super::{ParsedProfile, ProfilerTool, SQLITE, nsys, own_first, parse, parse_of, sniff, torch};
use karve_core::knowledge::Situation;
use karve_core::measurement::{Gate, Sample};
use karve_core::profile::{
    Bottleneck, DiagnosisRuleSet, KernelProfile, ProfileDepth, ProfilerRemark, diagnose,
};
use karve_harness::commands::{
    BenchParams, CommandVariant, Harness, PROFILE_DIR, ProfiledRun, ProfilerStart, SEED,
};
use karve_harness::outcome::{ReasonResult, split};
use karve_harness::runner::{PLAYED_CALLS, PlayFiles};
use karve_numerics::case::Case;
use karve_os::error::{Result, WithContext};
use karve_os::files;
use karve_os::process::{CommandOutcome, Exit};
use karve_os::random::fresh_seed;
use std::fs;
use std::io::{BufReader, Read, Seek};
use std::path::Path;
use std::time::Duration;

/// How many characters of a tool's output are searched.
const TOOL_OUTPUT_CHARS: usize = 20_000;

/// How many bytes at the start of a file are searched for its tool.
const HEAD_BYTES: u64 = 1 << 20;

/// For how long karve's player calls a kernel that a tool counts with everything else, in seconds,
/// and how often at most.
const PLAYED_S: f64 = 0.5;
const PLAYED_CALLS_MAX: f64 = 1e6;

/// The kind of device a kernel runs on, which decides which tools fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DevicePlatform {
    /// On a CPU.
    Cpu,
    /// On an NVIDIA GPU.
    Cuda,
    /// On an AMD GPU.
    Rocm,
}

impl DevicePlatform {
    /// Where a kernel runs, by the terms that apply there.
    pub fn at(situation: &Situation) -> Self {
        let named =
            |word: &str| situation.device.contains(word) || situation.language.contains(word);
        if named("rocm") || named("hip") {
            Self::Rocm
        } else if named("cuda") || named("gpu") {
            Self::Cuda
        } else {
            Self::Cpu
        }
    }

    /// The tools for it, the light ones first.
    fn tools(self) -> &'static [ProfilerTool] {
        match self {
            Self::Cpu => &[ProfilerTool::Perf, ProfilerTool::Callgrind],
            Self::Cuda => &[ProfilerTool::Nsys, ProfilerTool::Ncu],
            Self::Rocm => &[ProfilerTool::Rocprof, ProfilerTool::RocprofCompute],
        }
    }
}

/// What to profile.
#[derive(Clone, Copy, Debug)]
pub struct ProfileTarget<'a> {
    /// The built tree.
    pub tree: &'a Path,
    /// The case.
    pub case: &'a Case,
    /// Where its kernel runs.
    pub runs: DevicePlatform,
    /// The editable files: what they define is the kernel.
    pub editable: &'a EditableFiles,
}

/// How to profile it.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProfileRequest<'a> {
    /// Only with this tool.
    pub tool: Option<ProfilerTool>,
    /// At this depth; else light first, and deeper if that is not conclusive.
    pub depth: Option<ProfileDepth>,
    /// Without these.
    pub without: &'a [ProfilerTool],
}

/// The result of profiling.
#[derive(Clone, Debug, Default)]
pub struct CollectedProfile {
    /// The merged counters of all tools.
    pub parsed: ParsedProfile,
    /// The raw output of each tool.
    pub raw: Vec<(ProfilerTool, Vec<u8>)>,
    /// Tools that failed, and what to do.
    pub failed: Vec<(ProfilerTool, ProfilerHint)>,
    /// The benchmark without a profiler, if it is a command.
    pub alone: Option<Result<Sample, Gate>>,
}

impl CollectedProfile {
    /// Whether a tool has already produced output.
    fn has_run(&self, tool: ProfilerTool) -> bool {
        self.raw.iter().any(|(ran, _)| *ran == tool)
    }

    /// Whether a tool has failed: it hung, or does not work here.
    fn has_failed(&self, tool: ProfilerTool) -> bool {
        self.failed.iter().any(|(failed, _)| *failed == tool)
    }

    fn fail(&mut self, tool: ProfilerTool, problem: String, hint: &str) {
        let hints = vec![hint.to_owned()];
        self.failed.push((tool, ProfilerHint { problem, hints }));
    }
}

/// Profiles a case of a built tree with one tool, or with all that fit.
pub fn take(
    harness: &Harness,
    subject: ProfileTarget<'_>,
    ProfileRequest { tool, depth, without }: ProfileRequest<'_>,
    rules: DiagnosisRuleSet,
) -> Result<CollectedProfile> {
    let mut taken = CollectedProfile::default();
    let seed = fresh_seed()?;
    let profiled = harness.profiled_words(subject.tree, subject.case, seed)?;
    let Some((words, played)) = profiled else {
        let note = "there is no benchmark command: set commands.bench, or commands.profile";
        taken.parsed.notes.push(note.to_owned());
        return Ok(taken);
    };
    let Some(alone) = run_alone(harness, subject, &mut taken)? else {
        return Ok(taken);
    };
    let tools = tool.as_ref().map_or(subject.runs.tools(), std::slice::from_ref);
    let is_named = tool.is_some();
    let depths = [ProfileDepth::Light, ProfileDepth::Full, ProfileDepth::Code];
    for at in depths {
        // A named tool runs at the requested depth only; otherwise depths are tried in order.
        if tool.is_some() && depth.is_some_and(|wanted| wanted != at) {
            continue;
        }
        for tool in tools.iter().filter(|tool| !without.contains(tool)) {
            // Most tools have no deeper level, and a tool that hung would hang again.
            let again = at == ProfileDepth::Code && taken.has_run(*tool);
            let again = again || taken.has_failed(*tool);
            let mut start = start(*tool, at, &words, Path::new(PROFILE_DIR)).filter(|_| !again);
            let may_skip = !is_named && played.is_none() && start.is_some();
            if let Some(problem) = too_long(*tool, alone, harness.limit()).filter(|_| may_skip) {
                taken.fail(*tool, problem, "run it with more time: --tool callgrind");
                start = None;
            }
            if let Some(mut start) = start {
                start.environment.push((SEED.to_owned(), seed.to_string()));
                if let Some(files) = &played {
                    play_under(*tool, harness, &taken, files, &mut start);
                }
                let harness = harness.clone().within_limit(limit_of(*tool, alone));
                let run = ToolRun { harness, tool: *tool, start: &start, alone };
                run.perform(subject, &mut taken)?;
            }
        }
        // A named tool runs as deep as it can; otherwise deeper only if needed.
        let enough = match tool {
            Some(_) => !taken.raw.is_empty() || !taken.failed.is_empty(),
            None => at == ProfileDepth::Full || finds_bottleneck(&taken, rules),
        };
        if depth == Some(at) || (depth.is_none() && enough) {
            break;
        }
    }
    let has = |name: &str| taken.parsed.kernels.iter().any(|k| k.value(name).is_some());
    let reported = |note: &String| note.starts_with(NOT_READ);
    let is_told = taken.parsed.notes.iter().any(reported) || has("vector_pct");
    if subject.runs == DevicePlatform::Cpu && has("instructions") && !is_told {
        taken.parsed.notes.push(format!(
            "{NOT_READ}: no profiler that ran counts vector operations, so rules that need it \
             cannot match; \"--tool callgrind\" measures it with the help of objdump"
        ));
    }
    Ok(taken)
}

/// Sets up a tool for karve's player: how often it calls the kernel, and when it starts to count.
fn play_under(
    tool: ProfilerTool,
    harness: &Harness,
    taken: &CollectedProfile,
    files: &PlayFiles,
    start: &mut ProfilerStart,
) {
    // perf counts the whole process, so the kernel must be most of it.
    if let (ProfilerTool::Perf, Some(Ok(sample))) = (tool, &taken.alone) {
        let call_s = sample.value * harness.metric().seconds_per_unit().unwrap_or(1e-6);
        let calls = (PLAYED_S / call_s.max(1e-9)).clamp(1.0, PLAYED_CALLS_MAX) as u32;
        start.environment.push((PLAYED_CALLS.to_owned(), calls.to_string()));
    }
    if tool == ProfilerTool::Ncu && files.marks_start {
        for words in &mut start.commands {
            words.splice(1..1, ["--profile-from-start".to_owned(), "off".to_owned()]);
        }
    }
}

/// Reads callgrind's output, and how much of the first kernel's arithmetic is vectorized.
fn with_vectors(
    harness: &Harness,
    subject: ProfileTarget<'_>,
    text: &str,
) -> ReasonResult<ParsedProfile> {
    let (mut parsed, code) =
        callgrind::parse_code(text, subject.editable).map_err(|why| why.to_string())?;
    own_first(&mut parsed, subject.editable);
    let kernel = parsed.kernels.iter_mut();
    let same = |code: &KernelCode| kernel.into_iter().find(|kernel| kernel.name == code.kernel);
    if let Some(code) = code
        && let Some(kernel) = same(&code)
    {
        let run = harness.disassemble(subject.tree, &code.ranges())?;
        let weighed = match run.exit {
            Exit::Code(0) if !run.stdout.truncated() => code.weigh(&run.stdout.text(), kernel),
            Exit::Code(0) => Err("the disassembly is too long".to_owned()),
            Exit::Code(127) => Err("objdump, which decodes the counted instructions, is not \
                                    installed: \"apt-get install binutils\""
                .to_owned()),
            other => Err(format!("objdump: {}", other.describe())),
        };
        if let Err(why) = weighed {
            parsed.notes.push(format!("{NOT_READ}: {why}"));
        }
    }
    Ok(parsed)
}

/// Whether the counters show what limits the kernel.
fn finds_bottleneck(taken: &CollectedProfile, rules: DiagnosisRuleSet) -> bool {
    let kernel = taken.parsed.kernels.first();
    kernel.is_some_and(|kernel| diagnose(kernel, rules).bottleneck != Bottleneck::Unknown)
}

/// How long the benchmark takes without a profiler; nothing is profiled if it fails.
fn run_alone(
    harness: &Harness,
    subject: ProfileTarget<'_>,
    taken: &mut CollectedProfile,
) -> Result<Option<Duration>> {
    let call = BenchParams::fresh(CommandVariant::Usual)?;
    let samples = split(harness.bench(subject.tree, std::slice::from_ref(subject.case), call))?;
    let wall = match &samples {
        Ok(samples) => samples.first().map(|s| Duration::from_micros(s.wall_us)),
        Err(gate) => {
            let why = gate.describe();
            let note = format!("not profiled: the benchmark fails without a profiler: {why}");
            taken.parsed.notes.push(note);
            None
        }
    };
    taken.alone = match samples {
        Ok(samples) => samples.first().copied().map(Ok),
        Err(gate) => Some(Err(gate)),
    };
    Ok(wall)
}

/// One run of the benchmark under a profiler.
struct ToolRun<'a> {
    harness: Harness,
    tool: ProfilerTool,
    start: &'a ProfilerStart,
    /// How long the benchmark takes without it.
    alone: Duration,
}

impl ToolRun<'_> {
    fn perform(&self, subject: ProfileTarget<'_>, taken: &mut CollectedProfile) -> Result<()> {
        let tool = self.tool;
        let ProfiledRun { run, printed, output } =
            self.harness.run_profiler(subject.tree, self.start)?;
        if !run.exit.success() {
            taken.failed.push((tool, failure(tool, &run, self.alone)));
            return Ok(());
        }
        if run.stdout.truncated() {
            let problem = "its output is too long".to_owned();
            taken.fail(tool, problem, "profile a shorter case: --case NAME");
            return Ok(());
        }
        if let Err(gate) = self.harness.check_metric(&printed, subject.case) {
            let why = gate.describe();
            let problem = format!(
                "its profile was discarded: the benchmark behaves differently under it than \
                 without it: {why}"
            );
            taken.fail(tool, problem, &try_another(tool));
            return Ok(());
        }
        match split(self.parse(subject, &output))? {
            Ok(parsed) => merge(&mut taken.parsed, parsed),
            Err(why) => taken.fail(
                tool,
                format!("its output cannot be read: {why}"),
                "save the output and read it with \"karve profile FILE\"",
            ),
        }
        taken.raw.push((tool, output));
        Ok(())
    }

    fn parse(&self, subject: ProfileTarget<'_>, output: &[u8]) -> ReasonResult<ParsedProfile> {
        let text = String::from_utf8_lossy(output);
        match self.tool {
            ProfilerTool::Nsys => read_database(output),
            ProfilerTool::Callgrind => with_vectors(&self.harness, subject, &text),
            tool => Ok(parse_of(tool, &text, subject.editable).map_err(|why| why.to_string())?),
        }
    }
}

fn failure(tool: ProfilerTool, run: &CommandOutcome, alone: Duration) -> ProfilerHint {
    let said: String = run.stderr.text().chars().take(TOOL_OUTPUT_CHARS).collect();
    let exit = match run.exit {
        Exit::Code(code) => Some(code),
        Exit::Signal(signal) => Some(128 + signal),
        Exit::TimedOut => {
            let (s, alone) = (run.wall.as_secs_f64(), alone.as_secs_f64());
            return ProfilerHint {
                problem: format!(
                    "it was killed after {s:.1} s with its child processes, without output; the \
                     benchmark alone takes {alone:.3} s"
                ),
                hints: vec!["profile a shorter case: --case NAME".to_owned(), try_another(tool)],
            };
        }
        Exit::Stopped | Exit::TooMuch(_) => Some(1),
    };
    diagnose_failure(tool, exit, &said).unwrap_or_else(|| ProfilerHint {
        problem: format!(
            "the benchmark succeeds alone but fails under it: {}",
            karve_os::process::excerpt(run)
        ),
        hints: vec![try_another(tool)],
    })
}

fn try_another(tool: ProfilerTool) -> String {
    format!("try another tool: --tool {}", other(tool).name())
}

fn other(tool: ProfilerTool) -> ProfilerTool {
    match tool {
        ProfilerTool::Perf => ProfilerTool::Cachegrind,
        ProfilerTool::Ncu => ProfilerTool::Nsys,
        ProfilerTool::Nsys => ProfilerTool::Ncu,
        ProfilerTool::Rocprof => ProfilerTool::RocprofCompute,
        ProfilerTool::RocprofCompute => ProfilerTool::Rocprof,
        ProfilerTool::Cachegrind
        | ProfilerTool::Callgrind
        | ProfilerTool::Ptxas
        | ProfilerTool::Torch => ProfilerTool::Perf,
    }
}

/// Reads a text of a tool.
pub fn read_text(tool: ProfilerTool, text: &str) -> std::result::Result<ParsedProfile, String> {
    parse(tool, text).map_err(|why| why.to_string())
}

/// Reads an output of any tool.
pub fn read_any(bytes: &[u8]) -> ReasonResult<(ProfilerTool, ParsedProfile)> {
    if bytes.starts_with(SQLITE.as_bytes()) {
        return Ok((ProfilerTool::Nsys, read_database(bytes)?));
    }
    let text = String::from_utf8_lossy(bytes);
    match sniff(&text) {
        Some(tool) => Ok((tool, read_text(tool, &text)?)),
        None => Err("it is not the output of a profiler that karve supports".to_owned().into()),
    }
}

/// Reads a file with the output of one tool, or of any. A trace and a database are streamed;
/// others are loaded at once, and are rejected if they are too long for that.
pub fn read_file(
    path: &Path,
    tool: Option<ProfilerTool>,
) -> ReasonResult<(ProfilerTool, ParsedProfile)> {
    let cannot = || format!("cannot read {}", path.display());
    let mut file = files::open(path).context(cannot)?;
    let mut head = Vec::new();
    let begins = Read::by_ref(&mut file).take(HEAD_BYTES);
    BufReader::new(begins).read_to_end(&mut head).context(cannot)?;
    if head.starts_with(SQLITE.as_bytes()) {
        let parsed = nsys::read(path).map_err(|why| why.to_string())?;
        return Ok((ProfilerTool::Nsys, parsed));
    }
    if tool.or_else(|| sniff(&String::from_utf8_lossy(&head))) == Some(ProfilerTool::Torch) {
        file.rewind().context(cannot)?;
        let parsed = torch::read(BufReader::new(file)).map_err(|why| why.to_string())?;
        return Ok((ProfilerTool::Torch, parsed));
    }
    let bytes = files::read(path, files::RESULT_BYTES_MAX).context(cannot)?;
    match tool {
        Some(ProfilerTool::Nsys) | None => read_any(&bytes),
        Some(tool) => Ok((tool, read_text(tool, &String::from_utf8_lossy(&bytes))?)),
    }
}

/// A database is read from a separate file.
fn read_database(bytes: &[u8]) -> ReasonResult<ParsedProfile> {
    let dir = tempfile::tempdir().context(|| "cannot create a directory".into())?;
    let path = dir.path().join("export.sqlite");
    fs::write(&path, bytes).context(|| format!("cannot write {}", path.display()))?;
    Ok(nsys::read(&path).map_err(|why| why.to_string())?)
}

/// Merges the counters of another tool. If both report a single kernel, or one of the same
/// name, the counters of the later, deeper tool are added.
pub fn merge(into: &mut ParsedProfile, more: ParsedProfile) {
    for note in more.notes {
        if !into.notes.contains(&note) {
            into.notes.push(note);
        }
    }
    if into.timeline.is_none() {
        into.timeline = more.timeline;
    }
    if into.kernels.is_empty() {
        into.kernels = more.kernels;
        return;
    }
    let alone = into.kernels.len() == 1 && more.kernels.len() == 1;
    let joined = joined(&into.kernels, &more.kernels);
    for (kernel, joined) in more.kernels.into_iter().zip(joined) {
        let mut known = into.kernels.iter();
        let same = known.position(|known| alone || known.name == kernel.name);
        match same.or(joined) {
            Some(same) => add(&mut into.kernels[same], kernel),
            None => into.kernels.push(kernel),
        }
    }
    // A function is more specific than the whole program, which includes everything around it.
    into.kernels.sort_by_key(|kernel| (!kernel.editable, kernel.value("inst_share_pct").is_none()));
}

/// Which known kernel each new one is, by its name without arguments, if that is unambiguous: a
/// compiler and a profiler spell the same function differently.
fn joined(known: &[KernelProfile], more: &[KernelProfile]) -> Vec<Option<usize>> {
    let tool = |kernel: &KernelProfile| {
        let first = kernel.counters.values().next();
        first.map(|counter| counter.source.tool.clone())
    };
    let alike = |a: &KernelProfile, b: &KernelProfile| plain_name(&a.name) == plain_name(&b.name);
    let of = |kernel: &KernelProfile| {
        let is_same = |own: &&KernelProfile| alike(own, kernel) && tool(own) != tool(kernel);
        let mut found = known.iter().filter(is_same);
        let (first, second) = (found.next()?, found.next());
        let others = more.iter().filter(|other| alike(other, kernel)).count();
        let is_clear = second.is_none() && others == 1;
        known.iter().position(|own| is_clear && own.name == first.name)
    };
    more.iter().map(of).collect()
}

/// Sets the file that all values were read from.
pub fn name_file(parsed: &mut ParsedProfile, name: &str) {
    let base = Path::new(name).file_name();
    let base = base.map_or_else(|| name.into(), |base| base.to_string_lossy());
    for kernel in parsed.kernels.iter_mut().chain(&mut parsed.timeline) {
        let counters = kernel.counters.values_mut().map(|counter| &mut counter.source);
        let remarks = kernel.remarks.iter_mut().map(|remark| &mut remark.source);
        for source in counters.chain(remarks) {
            source.file = base.clone().into_owned();
        }
    }
}

fn add(known: &mut KernelProfile, more: KernelProfile) {
    for (name, counter) in more.counters {
        known.counters.entry(name).or_insert(counter);
    }
    known.editable |= more.editable;
    // The same output may be passed twice.
    for remark in more.remarks {
        let same = |own: &ProfilerRemark| own.rule == remark.rule && own.text == remark.text;
        if !known.remarks.iter().any(same) {
            known.remarks.push(remark);
        }
    }
}
