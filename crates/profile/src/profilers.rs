//! Parsers for profiler output: text in, counters with their sources out.
//!
//! ```text
//! text ──▶ sniff ──▶ ncu │ ptxas │ perf │ … ──▶ launches ──▶ gather ──▶ kernels, longest first
//!                    torch │ nsys ──────────────▶ timeline ──────────▶ one more, for the whole run
//! ```
//!
//! A profiler's own names and units become the counters of `karve_core::profile::counters`, and
//! each value keeps the line and the text that it was read from. Nothing is guessed: whatever is
//! not clearly a number yields a note instead of a value, or the output is rejected with the line
//! and the reason. A last line without a newline is not read.

pub mod collect;
pub mod contract;
mod disassembly;
pub mod editable;
mod gather;
mod ncu;
pub mod nsys;
mod number;
pub mod perf;
mod ptxas;
mod rocprof;
mod rocprof_compute;
pub mod run;
mod text;
mod timeline;
mod torch;
pub mod valgrind;
pub(crate) mod vectors;
pub mod work;

use editable::EditableFiles;
use karve_core::profile::{KernelProfile, PROGRAM};
use std::fmt::{self, Display};

/// How many lines at the start of an output are searched for the name of its tool.
const SNIFF_LINES: usize = 5_000;

/// The magic bytes at the start of a database.
const SQLITE: &str = "SQLite format 3";

/// A tool whose output karve reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProfilerTool {
    /// Nsight Compute: `ncu --csv` with the page `details` or `raw`.
    Ncu,
    /// The report of `ptxas -v`, printed by `nvcc -Xptxas -v`.
    Ptxas,
    /// `perf stat -x,`.
    Perf,
    /// The output file of valgrind's cachegrind.
    Cachegrind,
    /// The output file of valgrind's callgrind.
    Callgrind,
    /// The kernel trace of `rocprofv3 --kernel-trace --output-format csv`.
    Rocprof,
    /// The tables of `rocprof-compute analyze`.
    RocprofCompute,
    /// The trace of PyTorch's profiler.
    Torch,
    /// Nsight Systems, exported by `nsys export --type sqlite`; a file, not text.
    Nsys,
}

impl ProfilerTool {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Ncu,
        Self::Ptxas,
        Self::Perf,
        Self::Cachegrind,
        Self::Callgrind,
        Self::Rocprof,
        Self::RocprofCompute,
        Self::Torch,
        Self::Nsys,
    ];

    /// Its name in commands and sources.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ncu => "ncu",
            Self::Ptxas => "ptxas",
            Self::Perf => "perf",
            Self::Cachegrind => "cachegrind",
            Self::Callgrind => "callgrind",
            Self::Rocprof => "rocprofv3",
            Self::RocprofCompute => "rocprof-compute",
            Self::Torch => "torch",
            Self::Nsys => "nsys",
        }
    }

    /// The program that is run for it.
    pub fn program(self) -> &'static str {
        match self {
            Self::Cachegrind | Self::Callgrind => "valgrind",
            Self::Torch => "python3",
            Self::Ncu
            | Self::Ptxas
            | Self::Perf
            | Self::Rocprof
            | Self::RocprofCompute
            | Self::Nsys => self.name(),
        }
    }

    /// The tool of that name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.name() == name)
    }
}

/// What was read from an output.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ParsedProfile {
    /// The kernels, the one that takes longest first; on a CPU functions, or the whole program.
    ///
    /// If one was launched several times, its values are those of the launch with the median time.
    pub kernels: Vec<KernelProfile>,
    /// What the whole timeline shows, from a tool that has one: how long the device was busy,
    /// idle or copying. It is not a kernel, and `kernels` does not contain it.
    pub timeline: Option<KernelProfile>,
    /// What else a reader should know.
    pub notes: Vec<String>,
}

/// Why an output cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfileParseError {
    /// The line, from 1.
    pub line: usize,
    /// The message, without a full stop.
    pub reason: String,
}

impl ProfileParseError {
    pub(crate) fn at(line: usize, reason: impl Into<String>) -> Self {
        Self { line, reason: reason.into() }
    }
}

impl Display for ProfileParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.reason)
    }
}

impl std::error::Error for ProfileParseError {}

/// Which tool wrote a text, judged by its first lines.
pub fn sniff(text: &str) -> Option<ProfilerTool> {
    let lines = text.lines().take(SNIFF_LINES);
    lines.map(|line| line.trim_start_matches('\u{feff}')).find_map(|line| {
        Some(if ncu::is_header(line) {
            ProfilerTool::Ncu
        } else if line.starts_with("# callgrind format") || line.starts_with("creator: callgrind") {
            ProfilerTool::Callgrind
        } else if line.starts_with("desc: I1 cache:") || line.starts_with("events: Ir") {
            ProfilerTool::Cachegrind
        } else if line.starts_with("ptxas info") {
            ProfilerTool::Ptxas
        } else if rocprof::is_header(line) {
            ProfilerTool::Rocprof
        } else if rocprof_compute::is_header(line) {
            ProfilerTool::RocprofCompute
        } else if line.contains("\"traceEvents\"") {
            ProfilerTool::Torch
        } else if line.starts_with(SQLITE) {
            ProfilerTool::Nsys
        } else if perf::is_row(line) {
            ProfilerTool::Perf
        } else {
            return None;
        })
    })
}

/// Reads the output of a tool. The output of nsys is a file: [`nsys::read`].
pub fn parse(tool: ProfilerTool, text: &str) -> Result<ParsedProfile, ProfileParseError> {
    parse_of(tool, text, &EditableFiles::default())
}

/// Reads the output of a tool; kernels that the editable files define come first.
pub fn parse_of(
    tool: ProfilerTool,
    text: &str,
    editable: &EditableFiles,
) -> Result<ParsedProfile, ProfileParseError> {
    let mut parsed = match tool {
        ProfilerTool::Ncu => ncu::parse(text),
        ProfilerTool::Ptxas => ptxas::parse(text),
        ProfilerTool::Perf => perf::parse(text),
        ProfilerTool::Cachegrind => valgrind::cachegrind::parse(text, editable),
        ProfilerTool::Callgrind => valgrind::callgrind::parse(text, editable),
        ProfilerTool::Rocprof => rocprof::parse(text),
        ProfilerTool::RocprofCompute => rocprof_compute::parse(text),
        ProfilerTool::Torch => torch::parse(text),
        ProfilerTool::Nsys => {
            Err(ProfileParseError::at(1, "a database must be read from its file"))
        }
    }?;
    own_first(&mut parsed, editable);
    Ok(parsed)
}

/// Puts the kernels that the editable files define first.
fn own_first(parsed: &mut ParsedProfile, editable: &EditableFiles) {
    for kernel in &mut parsed.kernels {
        kernel.editable |= editable.holds(&kernel.name, "");
    }
    parsed.kernels.sort_by_key(|kernel| !kernel.editable);
}

#[cfg(test)]
mod tests;
