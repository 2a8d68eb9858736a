//! Counts the work of a benchmark's kernel under callgrind, call by call.
//!
//! A first run finds the function that the benchmark calls, and counts the instructions of the
//! whole program; a second one counts only inside that function, and writes the counts after each
//! call.

use super::editable::{EditableFiles, plain_name};
use super::number::whole;
use super::run::diagnose_failure;
use super::valgrind::{KernelEntry, callgrind};
use super::{ProfilerTool, text::Lines};
use karve_core::integrity::{CallCost, CountedRun};
use karve_harness::commands::{
    DIR_VARIABLE, Harness, ProfilerOutput, ProfilerStart, SEED, StdoutWriter,
};
use karve_harness::outcome::ReasonResult;
use karve_numerics::case::Case;
use karve_os::process::{Exit, excerpt};
use std::path::Path;
use std::time::Duration;

/// The time limit of one run.
const LIMIT: Duration = Duration::from_secs(60);
/// The most calls of one run.
const CALLS_MAX: usize = 20_000;
/// Where each file begins.
const BEGINS: &str = "# callgrind format";
/// Before the reason for which a file was written.
const TRIGGER: &str = "desc: Trigger: --dump-after=";

/// What is counted.
#[derive(Clone, Copy, Debug)]
pub struct WorkTarget<'a> {
    /// The built tree.
    pub tree: &'a Path,
    /// The case.
    pub case: &'a Case,
    /// The files whose functions are the kernel.
    pub editable: &'a EditableFiles,
    /// The seed of the inputs, the same for all trees that are compared.
    pub seed: u64,
}

/// Counts one run of the benchmark. `like` is the name of the function whose calls are counted,
/// from another tree; without it, the outermost function of the kernel is. Returns its name too.
pub fn count(
    harness: &Harness,
    target: WorkTarget<'_>,
    like: Option<&str>,
) -> ReasonResult<(String, CountedRun)> {
    let text = run(harness, target, &["--cache-sim=no"])?;
    let KernelEntry { function, instructions } =
        callgrind::entry(&text, target.editable).map_err(|why| why.to_string())?;
    let name = plain_name(&function).to_owned();
    if let Some(like) = like.filter(|like| *like != name) {
        let why = format!("the benchmark calls {like} in the incumbent, but {name} here");
        return Err(why.into());
    }
    let (dump, toggle) =
        (format!("--dump-after={function}"), format!("--toggle-collect={function}"));
    let text = run(harness, target, &["--cache-sim=yes", &dump, &toggle])?;
    let calls = parse_calls(&text)?;
    Ok((name, CountedRun { calls, instructions }))
}

/// One run under callgrind: its files.
fn run(harness: &Harness, target: WorkTarget<'_>, flags: &[&str]) -> ReasonResult<String> {
    let Some(words) = harness.bench_words(target.tree, target.case, target.seed)? else {
        return Err("the project has no benchmark command".to_owned().into());
    };
    let tool = ["valgrind", "--tool=callgrind", "--trace-children=yes"];
    let out = format!("--callgrind-out-file=%q{{{DIR_VARIABLE}}}/callgrind.%p");
    let tool = tool.iter().copied().chain([out.as_str()]).chain(flags.iter().copied());
    let start = ProfilerStart {
        commands: vec![tool.map(str::to_owned).chain(words).collect()],
        environment: vec![
            ("LC_ALL".to_owned(), "C".to_owned()),
            // Else the first call of a function also pays for finding it.
            ("LD_BIND_NOW".to_owned(), "1".to_owned()),
            (SEED.to_owned(), target.seed.to_string()),
        ],
        output: ProfilerOutput::FileOfEach("callgrind.".to_owned()),
        printed: StdoutWriter::ByTheTool,
    };
    let ran = harness.clone().within_limit(LIMIT).run_profiler(target.tree, &start)?;
    if !ran.run.exit.success() {
        let exit = match ran.run.exit {
            Exit::Code(code) => Some(code),
            Exit::Signal(signal) => Some(128 + signal),
            Exit::TimedOut => {
                let why = format!("callgrind was killed after {:.0} s", ran.run.wall.as_secs_f64());
                return Err(why.into());
            }
            Exit::Stopped | Exit::TooMuch(_) => Some(1),
        };
        let known = diagnose_failure(ProfilerTool::Callgrind, exit, &ran.run.stderr.text());
        let why = known.map(|hint| format!("{}: {}", hint.problem, hint.hints.join("; ")));
        return Err(why.unwrap_or_else(|| format!("callgrind: {}", excerpt(&ran.run))).into());
    }
    if ran.run.stdout.truncated() {
        return Err("the output of callgrind is too long".to_owned().into());
    }
    harness.check_metric(&ran.printed, target.case).map_err(|gate| gate.describe())?;
    Ok(String::from_utf8_lossy(&ran.output).into_owned())
}

/// What one file of callgrind says about a call.
#[derive(Default)]
struct CallFile {
    process: u64,
    part: u64,
    /// Whether it was written after a call, and not at the end.
    is_call: bool,
    events: Vec<String>,
    totals: Option<Vec<u64>>,
}

/// The cost of each call, in order, from the files that callgrind wrote after each of them.
pub fn parse_calls(text: &str) -> Result<Vec<CallCost>, String> {
    let lines = Lines::of(text).map_err(|why| why.to_string())?;
    let mut files: Vec<CallFile> = Vec::new();
    for (number, line) in &lines.whole {
        if line.starts_with(BEGINS) {
            files.push(CallFile::default());
            if files.len() > CALLS_MAX {
                return Err(format!("the kernel is called more than {CALLS_MAX} times"));
            }
        }
        let Some(file) = files.last_mut() else {
            continue;
        };
        let numbers = |text: &str| -> Result<Vec<u64>, String> {
            let number = |word: &str| whole(word).ok_or_else(|| format!("line {number}: {word:?}"));
            text.split_whitespace().map(number).collect()
        };
        if let Some(process) = line.strip_prefix("pid: ") {
            file.process = numbers(process)?.first().copied().unwrap_or(0);
        } else if let Some(part) = line.strip_prefix("part: ") {
            file.part = numbers(part)?.first().copied().unwrap_or(0);
        } else if let Some(events) = line.strip_prefix("events: ") {
            file.events = events.split_whitespace().map(str::to_owned).collect();
        } else if let Some(totals) = line.strip_prefix("totals: ") {
            file.totals = Some(numbers(totals)?);
        } else if line.starts_with(TRIGGER) {
            file.is_call = true;
        }
    }
    files.retain(|file| file.is_call);
    files.sort_by_key(|file| file.part);
    let first = files.first().map(|file| file.process);
    if files.iter().any(|file| Some(file.process) != first) {
        return Err("several processes call the kernel".to_owned());
    }
    files.iter().map(CallFile::cost).collect()
}

impl CallFile {
    fn cost(&self) -> Result<CallCost, String> {
        let totals = self.totals.as_ref().ok_or("a file of callgrind has no totals")?;
        let of = |name: &str| -> Result<u64, String> {
            let at = self.events.iter().position(|event| event == name);
            let at = at.ok_or_else(|| format!("callgrind does not count {name}"))?;
            // Zeros at the end are not written.
            Ok(totals.get(at).copied().unwrap_or(0))
        };
        let accesses = of("Dr")?.saturating_add(of("Dw")?);
        Ok(CallCost { instructions: of("Ir")?, accesses })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(process: u32, part: u32, trigger: &str, totals: &str) -> String {
        format!(
            "# callgrind format\nversion: 1\npid: {process}\ncmd: ./main\npart: {part}\n\n\
             desc: Trigger: {trigger}\n\npositions: line\nevents: Ir Dr Dw I1mr\n\
             summary: {totals}\n\nfn=(1) kernel\n0 {totals}\n\ntotals: {totals}\n"
        )
    }

    #[test]
    fn each_file_after_a_call_is_one_call_in_the_order_of_their_parts() {
        let text = [
            file(7, 1, "--dump-after=kernel", "100 20 5"),
            file(7, 10, "--dump-after=kernel", "300 20 5 1"),
            file(7, 2, "--dump-after=kernel", "200 20"),
            file(7, 11, "Program termination", "0"),
        ];
        let cost = |instructions, accesses| CallCost { instructions, accesses };
        let calls = parse_calls(&text.concat()).unwrap();
        assert_eq!(calls, [cost(100, 25), cost(200, 20), cost(300, 25)]);
        let other = file(8, 1, "--dump-after=kernel", "100 20 5");
        let two = format!("{}{other}", text.concat());
        assert_eq!(parse_calls(&two).unwrap_err(), "several processes call the kernel");
        assert_eq!(parse_calls("").unwrap(), []);
    }

    #[test]
    fn what_cannot_be_read_is_refused() {
        let bad = file(7, 1, "--dump-after=kernel", "100 x");
        assert!(parse_calls(&bad).unwrap_err().contains("\"x\""));
        let cut = "# callgrind format\npid: 7\npart: 1\ndesc: Trigger: --dump-after=k\n";
        assert_eq!(parse_calls(cut).unwrap_err(), "a file of callgrind has no totals");
        let none = "# callgrind format\npid: 7\npart: 1\ndesc: Trigger: --dump-after=k\n\
                    events: Ir\ntotals: 5\n";
        assert_eq!(parse_calls(none).unwrap_err(), "callgrind does not count Dr");
    }
}
