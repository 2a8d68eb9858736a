//! How far a function reaches into its arguments: it is called on memory that shows that, in a
//! process of its own. For `karve contract`, which knows types from the source but no lengths.

use super::worker_text::refusal;
use karve_numerics::stats::DrawRng;
use karve_numerics::tensor::{self, Dtype};
use karve_os::error::{CommandError, ErrorKind, Result};
use karve_os::native::{self, CallRegisters, EntryPoint, RegisterList, STEP_BYTES, WatchedMemory};
use karve_os::process::{self, Command, Exit, ReadableTree, StopFlag};
use serde::{Deserialize, Serialize};
use std::ffi::CString;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long all calls of one probe may take.
const LIMIT: Duration = Duration::from_secs(30);

/// Most arguments and most bytes of a request.
const ARGS_MAX: usize = 24;
const REQUEST_BYTES_MAX: u64 = 1 << 20;

/// The line of the answer starts with this; what the function prints does not.
const ANSWER: &str = "karve-probe ";

/// A function, and what it is called with.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ProbeRequest {
    /// The shared object.
    pub library: PathBuf,
    /// The function in it.
    pub entry: String,
    /// Its arguments.
    pub args: Vec<ProbeArg>,
    /// What it may read.
    pub tree: ReadableTree,
}

/// One argument.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum ProbeArg {
    /// An integer.
    Integer(i64),
    /// A floating-point number.
    Float {
        /// Its value.
        value: f64,
        /// Whether it is a float32.
        single: bool,
    },
    /// Memory.
    Tensor {
        /// The type of its elements.
        dtype: Dtype,
        /// Whether it may be written to.
        is_mut: bool,
    },
}

/// What the calls showed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeReport {
    /// Its tensors, in order.
    pub tensors: Vec<ProbedTensor>,
    /// How long a call took.
    pub call_ns: u64,
}

/// How a function used one tensor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbedTensor {
    /// It reached beyond this many bytes, and not beyond the maximum.
    pub bytes_above: u64,
    /// See there.
    pub bytes_max: u64,
    /// It wrote to it.
    pub is_written: bool,
    /// What it wrote depends on what was there, or it did not write every element.
    pub is_state: bool,
}

/// Probes a function, with karve's own program.
pub fn probe(karve: &Path, request: &ProbeRequest, stop: &StopFlag) -> Result<ProbeReport> {
    let args = [karve.as_os_str(), "worker".as_ref(), "--probe".as_ref()];
    let asked = serde_json::to_vec(request).unwrap_or_default();
    let command = Command::argv(args, &request.tree.root).stdin(asked).limit(LIMIT);
    let run = process::run(&command, stop)?;
    let text = run.stdout.text();
    let answer = text.lines().rev().find_map(|line| line.strip_prefix(ANSWER));
    match answer.and_then(|line| serde_json::from_str(line).ok()) {
        Some(report) if run.exit.success() => Ok(report),
        _ => {
            let why = match run.exit {
                Exit::TimedOut => format!("it took more than {} s", LIMIT.as_secs()),
                _ => process::excerpt(&run),
            };
            Err(CommandError::new(
                ErrorKind::Negative,
                format!("{} cannot be called", request.entry),
            )
            .cause(why)
            .hint("give every shape: \"karve contract FILE:FUNCTION --shape x=n,m\""))
        }
    }
}

/// The process that calls it: reads a request from standard input, and prints the report.
pub fn serve_probe() -> Result<String> {
    let mut text = Vec::new();
    let bounded = io::Read::take(io::stdin(), REQUEST_BYTES_MAX);
    let failed = |why: String| {
        CommandError::new(ErrorKind::Negative, "the function cannot be probed").cause(why)
    };
    io::Read::read_to_end(&mut { bounded }, &mut text)
        .map_err(|error| failed(error.to_string()))?;
    let request: ProbeRequest =
        serde_json::from_slice(&text).map_err(|error| failed(error.to_string()))?;
    let report = Probe::run(&request).map_err(failed)?;
    Ok(format!("{ANSWER}{}", serde_json::to_string(&report).unwrap_or_default()))
}

/// A loaded function and its memory.
struct Probe {
    entry: EntryPoint,
    registers: CallRegisters,
    /// Place among the integers, memory, type, whether it may be written to.
    tensors: Vec<WatchedTensor>,
}

struct WatchedTensor {
    place: usize,
    memory: WatchedMemory,
    dtype: Dtype,
    is_mut: bool,
}

impl Probe {
    fn run(request: &ProbeRequest) -> std::result::Result<ProbeReport, String> {
        let name = |text: &str| CString::new(text).map_err(|_| "a name with a zero".to_owned());
        let (path, entry) = (name(&request.library.to_string_lossy())?, name(&request.entry)?);
        // From here on, code of the project runs.
        process::give_up(&path, &request.tree);
        let entry = native::load(&path, &entry).map_err(|failure| match failure {
            native::LoadFailure::Library(said) => refusal("library", &said),
            native::LoadFailure::Entry(said) => refusal("entry", &said),
        })?;
        let mut probe =
            Self { entry, registers: RegisterList::default().registers, tensors: Vec::new() };
        probe.place(&request.args)?;
        let failed = |error: io::Error| error.to_string();
        let start = Instant::now();
        let pages = probe.pages(&vec![0; probe.tensors.len()]).map_err(failed)?;
        let call_ns = start.elapsed().as_nanos() as u64;
        let ends = probe.ends(&pages).map_err(failed)?;
        let used = probe.uses(&ends);
        Ok(ProbeReport { tensors: used, call_ns })
    }

    fn place(&mut self, args: &[ProbeArg]) -> std::result::Result<(), String> {
        let mut list = RegisterList::default();
        for arg in args.iter().take(ARGS_MAX) {
            let placed = match *arg {
                ProbeArg::Float { value, single } => list.float(value, single),
                ProbeArg::Integer(value) => list.integer(value as usize).map(drop),
                ProbeArg::Tensor { dtype, is_mut } => {
                    let memory = WatchedMemory::new().map_err(|error| error.to_string())?;
                    let watched = |place| WatchedTensor { place, memory, dtype, is_mut };
                    list.integer(0).map(|place| self.tensors.push(watched(place)))
                }
            };
            placed.ok_or("it has too many arguments")?;
        }
        self.registers = list.registers;
        Ok(())
    }

    fn call(&self) {
        let placed: Vec<_> = self.tensors.iter().map(|one| (one.place, &one.memory)).collect();
        self.entry.call_watched(&self.registers, &placed);
    }

    /// The last page of each tensor that a call touches if the tensors start at these offsets.
    fn pages(&mut self, offsets: &[usize]) -> io::Result<Vec<usize>> {
        for (tensor, offset) in self.tensors.iter_mut().zip(offsets) {
            tensor.memory.clear();
            tensor.memory.offset = *offset;
        }
        self.call();
        self.tensors.iter().map(|tensor| tensor.memory.last_page()).collect()
    }

    /// Where each tensor ends, in bytes: a tensor reaches the next page once it starts late enough.
    fn ends(&mut self, pages: &[usize]) -> io::Result<Vec<ProbedTensor>> {
        let page = self.tensors.first().map_or(4_096, |one| one.memory.page_bytes());
        let n = pages.len();
        // For each tensor, the latest start known to fit, and the earliest known not to, in steps.
        let (mut fits, mut exceeds) = (vec![0; n], vec![page / STEP_BYTES; n]);
        while (0..n).any(|at| exceeds[at] - fits[at] > 1) {
            let middle: Vec<usize> = (0..n).map(|at| (fits[at] + exceeds[at]) / 2).collect();
            let offsets: Vec<usize> = middle.iter().map(|step| step * STEP_BYTES).collect();
            let found = self.pages(&offsets)?;
            for (at, step) in middle.into_iter().enumerate() {
                let bound = if found[at] > pages[at] { &mut exceeds } else { &mut fits };
                bound[at] = step;
            }
        }
        let end = |(pages, fits): (&usize, &usize)| {
            let bytes_max = (pages * page).saturating_sub(fits * STEP_BYTES) as u64;
            let bytes_above = bytes_max.saturating_sub(STEP_BYTES as u64);
            ProbedTensor { bytes_above, bytes_max, ..ProbedTensor::default() }
        };
        Ok(pages.iter().zip(&fits).map(end).collect())
    }

    /// Calls it twice with the same inputs and different contents of what it may write to.
    fn uses(&mut self, ends: &[ProbedTensor]) -> Vec<ProbedTensor> {
        let [first, second] = [1, 2].map(|turn| {
            let before = self.fill(ends, turn);
            self.call();
            let after: Vec<Vec<u8>> = self.contents(ends);
            (before, after)
        });
        let used = |(at, end): (usize, &ProbedTensor)| {
            let bytes = self.tensors[at].dtype.bytes();
            let [a, b] = [&first, &second].map(|(before, after)| {
                before[at].chunks(bytes).zip(after[at].chunks(bytes)).collect::<Vec<_>>()
            });
            let written = |at: usize| a[at].0 != a[at].1 || b[at].0 != b[at].1;
            let last = (0..a.len()).rev().find(|at| written(*at));
            let span = last.map_or(0, |last| last + 1);
            let is_state = (0..span).any(|at| !written(at) || a[at].1 != b[at].1);
            ProbedTensor { is_written: last.is_some(), is_state, ..*end }
        };
        ends.iter().enumerate().map(used).collect()
    }

    /// Fills the tensors: what it only reads with the same numbers in each turn.
    fn fill(&mut self, ends: &[ProbedTensor], turn: u64) -> Vec<Vec<u8>> {
        for (at, (tensor, end)) in self.tensors.iter_mut().zip(ends).enumerate() {
            tensor.memory.offset = 0;
            let seed = at as u64 + if tensor.is_mut { 100 * turn } else { 0 };
            let bytes = tensor.memory.bytes_mut(end.bytes_max as usize);
            fill(tensor.dtype, seed, bytes);
        }
        self.contents(ends)
    }

    fn contents(&mut self, ends: &[ProbedTensor]) -> Vec<Vec<u8>> {
        let tensors = self.tensors.iter_mut().zip(ends);
        tensors.map(|(one, end)| one.memory.bytes_mut(end.bytes_max as usize).to_vec()).collect()
    }
}

/// Numbers from 0.5 to 1.5, or small integers.
fn fill(dtype: Dtype, seed: u64, bytes: &mut [u8]) {
    let mut draws = DrawRng::new(seed);
    let n = bytes.len() / dtype.bytes();
    let bytes = &mut bytes[..n * dtype.bytes()];
    if dtype.is_float() {
        let values: Vec<f64> = (0..n).map(|_| 0.5 + draws.next_f64()).collect();
        tensor::from_f64(dtype, &values, bytes);
    } else {
        let values: Vec<i64> = (0..n).map(|_| draws.below(8) as i64).collect();
        tensor::from_i64(dtype, &values, bytes);
    }
}
