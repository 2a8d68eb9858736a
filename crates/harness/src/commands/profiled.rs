//! The benchmark of one case under a profiler, and whether it did the same as without one.

use super::criterion_home::VARIABLE as CRITERION_HOME;
use super::{CommandPurpose, Harness, rows};
use crate::commands::PathBuf;
use crate::placeholders::{expand, quote};
use crate::runner::{self, PlayFiles};
use karve_core::measurement::Gate;
use karve_numerics::case::Case;
use karve_os::error::Result;
use karve_os::process::{self, CommandOutcome};
use std::path::Path;

/// Where a profiler writes, inside the commands' directory; it is removed afterward.
pub const PROFILE_DIR: &str = "karve-profile.tmp";
/// Maximum size of a profiler's output, in bytes.
const OUTPUT_BYTES_MAX: usize = 64 << 20;
/// Maximum size of the benchmark's output, in bytes.
const PRINTED_BYTES_MAX: usize = 4 << 20;
/// Maximum size of a disassembly, in bytes.
const CODE_BYTES_MAX: usize = 16 << 20;
/// The result file of a benchmark that writes one.
const RESULT: &str = "result";

/// The variable with the full path of the directory for files: a child process may run in
/// another directory.
pub const DIR_VARIABLE: &str = "KARVE_PROFILE_DIR";

/// The file in it with the output of the benchmark.
pub const PRINTED: &str = "printed";

/// Commands that profile a program, in order, and where their output is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfilerStart {
    /// Program and arguments of each command.
    pub commands: Vec<Vec<String>>,
    /// Variables that are set for all, so that numbers have the format that karve parses.
    pub environment: Vec<(String, String)>,
    /// Where the output is.
    pub output: ProfilerOutput,
    /// Who saves the output of the program.
    pub printed: StdoutWriter,
}

/// Who writes the output of the profiled program to the file [`PRINTED`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StdoutWriter {
    /// The standard output of the tool contains nothing else.
    ByTheTool,
    /// The tool also prints there, so the program gets a separate output.
    ByItself,
}

/// Where a profiler leaves its output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProfilerOutput {
    /// In a file.
    File(PathBuf),
    /// In a file per process, whose names have this prefix, below the directory for files.
    FileOfEach(String),
    /// On the standard output of the last command.
    Stdout,
}

/// The prefix of the line before the code of a part.
pub const PART: &str = "karve part ";

/// Code to disassemble.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeRange {
    /// The file that it lies in.
    pub object: String,
    /// Its first address.
    pub start: u64,
    /// The first address after it.
    pub stop: u64,
}

/// How a benchmark went under a profiler.
#[derive(Clone, Debug)]
pub struct ProfiledRun {
    /// The run of both.
    pub run: CommandOutcome,
    /// The benchmark's output, in which its metric is looked for.
    pub printed: Vec<u8>,
    /// The profiler's output.
    pub output: Vec<u8>,
}

impl Harness {
    /// The words of the command that benchmarks one case with a seed; none if the project has no
    /// such command, and a shell if it needs one.
    pub fn bench_words(&self, tree: &Path, case: &Case, seed: u64) -> Result<Option<Vec<String>>> {
        if self.is_under_contract() || self.commands.bench.is_empty() {
            return Ok(None);
        }
        let out = if self.output.from_file {
            tree.join(&self.workdir).join(PROFILE_DIR).join(RESULT)
        } else {
            Path::new("/dev/null").to_owned()
        };
        let mut values = self.placeholders(tree, seed, Some(&out));
        values.repeats = Some(self.of_cases(std::slice::from_ref(case)).repeats);
        let line = expand(&self.commands.bench, Some(case), &values)?;
        let plain = |c: char| c.is_ascii_alphanumeric() || " _-./=,:+@%".contains(c);
        Ok(Some(if line.chars().all(plain) {
            line.split_whitespace().map(str::to_owned).collect()
        } else {
            vec!["sh".to_owned(), "-c".to_owned(), line]
        }))
    }

    /// The command that a profiler runs on one case: the project's benchmark, or under a contract
    /// karve's own player, whose files are removed with the result.
    pub fn profiled_words(
        &self,
        tree: &Path,
        case: &Case,
        seed: u64,
    ) -> Result<Option<(Vec<String>, Option<PlayFiles>)>> {
        match &self.under_contract {
            None => Ok(self.bench_words(tree, case, seed)?.map(|words| (words, None))),
            Some(under) => {
                let terms = self.terms(under, tree)?;
                let (words, files) = runner::prepare_play(&terms, tree, case, seed)?;
                Ok(Some((words, Some(files))))
            }
        }
    }

    /// Runs a benchmark under a profiler.
    pub fn run_profiler(&self, tree: &Path, start: &ProfilerStart) -> Result<ProfiledRun> {
        let trial = self.trial(tree, CommandPurpose::Profile)?;
        let command = self.within(&self.profiler_line(start), tree, trial.as_ref());
        let run = process::run(&command.capture_bytes(OUTPUT_BYTES_MAX), &self.stop)?;
        let (printed, output) = if run.exit.success() && !run.stdout.truncated() {
            parts(&run.stdout.bytes)
        } else {
            (Vec::new(), Vec::new())
        };
        let run = match run.exit.success() {
            true => run,
            false => self.private_to(tree, start).hide(run),
        };
        Ok(ProfiledRun { run, printed, output })
    }

    /// A script that prints the benchmark's output, after a line with its length, and then the
    /// profiler's. The first command is the one that runs the benchmark.
    fn profiler_line(&self, start: &ProfilerStart) -> String {
        let dir = PROFILE_DIR;
        let mut line = format!("mkdir -p {dir} || exit 125\n");
        line.push_str(&format!("export {DIR_VARIABLE}=\"$PWD/{dir}\"\n"));
        if self.uses_criterion() {
            line.push_str(&format!("export {CRITERION_HOME}=\"$PWD/{dir}/criterion\"\n"));
        }
        for (name, value) in &start.environment {
            line.push_str(&format!("export {name}={}\n", quote(value)));
        }
        for (number, words) in start.commands.iter().enumerate() {
            let words: Vec<String> = words.iter().map(|word| quote(word)).collect();
            let words = words.join(" ");
            line.push_str(&match (number, start.printed) {
                // Endless output must not fill the disk.
                (0, StdoutWriter::ByTheTool) => format!(
                    "{{ {words}; echo $? >{dir}/status; }} | \
                     {{ head -c {PRINTED_BYTES_MAX} >{dir}/{PRINTED}; cat >/dev/null; }}\n\
                     status=$(cat {dir}/status) || exit 125\n\
                     [ \"$status\" = 0 ] || exit \"$status\"\n"
                ),
                (0, StdoutWriter::ByItself) => format!("{words} >/dev/null || exit $?\n"),
                _ => format!("{words} >{dir}/last || exit $?\n"),
            });
        }
        if self.uses_criterion() {
            line.push_str(&format!(
                "find \"${CRITERION_HOME}\" -type d -name new -exec sh -c \
                 'cat \"$1/benchmark.json\"; echo; cat \"$1/estimates.json\"; echo' _ {{}} \\; \
                 >{dir}/{PRINTED}\n"
            ));
        }
        let said = if self.output.from_file { RESULT } else { PRINTED };
        line.push_str(&format!(
            "touch {dir}/{said}\nhead -c {PRINTED_BYTES_MAX} {dir}/{said} >{dir}/said || exit 125\n\
             wc -c <{dir}/said\ncat {dir}/said\n"
        ));
        line.push_str(&match &start.output {
            ProfilerOutput::File(path) => format!("cat {}\n", quote(&path.to_string_lossy())),
            ProfilerOutput::FileOfEach(begins) => format!("cat {dir}/{}*\n", quote(begins)),
            ProfilerOutput::Stdout => format!("cat {dir}/last\n"),
        });
        format!("(\n{line})\nstatus=$?\nrm -rf {dir}\nexit $status")
    }

    /// Disassembles code of built files, where the benchmark ran.
    pub fn disassemble(&self, tree: &Path, ranges: &[CodeRange]) -> Result<CommandOutcome> {
        let mut line = String::new();
        for (number, range) in ranges.iter().enumerate() {
            let (start, stop) = (range.start, range.stop);
            let object = quote(&range.object);
            // Anything but a plain file might never end.
            line.push_str(&format!(
                "echo '{PART}{number}'\n[ -f {object} ] && {{ LC_ALL=C objdump -d -w \
                 --no-show-raw-insn --start-address={start:#x} --stop-address={stop:#x} -- \
                 {object}; code=$?; [ $code = 127 ] && exit 127; }}\n"
            ));
        }
        line.push_str("exit 0\n");
        let trial = self.trial(tree, CommandPurpose::Profile)?;
        let command = self.within(&line, tree, trial.as_ref());
        process::run(&command.capture_bytes(CODE_BYTES_MAX), &self.stop)
    }

    /// Whether a benchmark printed what a plain run prints: the metric of the case.
    pub fn check_metric(&self, printed: &[u8], case: &Case) -> Result<(), Gate> {
        if self.metric.own_clock().is_some() {
            return Ok(());
        }
        let text = String::from_utf8_lossy(printed);
        let cases = std::slice::from_ref(case);
        let values = rows::values(&text, &self.output, &self.metric, cases)?;
        match values.iter().map(|row| row.value).find(|value| !(value.is_finite() && *value > 0.0))
        {
            None => Ok(()),
            Some(value) => Err(Gate::Dishonest {
                why: format!("{} is {value}, which is impossible", self.metric.name),
            }),
        }
    }
}

/// The benchmark's output, and the profiler's.
fn parts(bytes: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let end = bytes.iter().position(|byte| *byte == b'\n');
    let split = end.and_then(|end| {
        let length = std::str::from_utf8(&bytes[..end]).ok()?;
        let length: usize = length.trim().parse().ok()?;
        let rest = &bytes[end + 1..];
        (length <= rest.len()).then(|| rest.split_at(length))
    });
    let (printed, output) = split.unwrap_or((&[], bytes));
    (printed.to_vec(), output.to_vec())
}
