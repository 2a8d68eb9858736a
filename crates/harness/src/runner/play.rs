//! Plays one case of a contract as a program of its own, so that a profiler can run it.
//!
//! karve draws the inputs and writes them to files, with a description of the call. The player is
//! karve's own program for a shared object, and worker.py for a module. It is not timed and nothing
//! that it prints is believed: a profiler only shows what the kernel does.

use super::python;
use super::setup::RunnerSetup;
use super::worker::refused_by_loader;
use karve_numerics::case::Case;
use karve_numerics::contract::{ALIGNMENT, CallInputs, Contract, Kernel, PlacedArg};
use karve_numerics::tensor::Dtype;
use karve_os::error::{CommandError, Result, WithContext};
use karve_os::gpu::{Gpu, GpuAddress, GpuError};
use karve_os::native::{self, EntryPoint, RegisterList};
use serde::{Deserialize, Serialize};
use std::cell::Cell;
use std::ffi::CString;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// Where the files of a player are, in the directory of `karve.toml` in a tree.
const PLAY_DIR: &str = "karve-play.tmp";

/// The description of the call.
const CALL_FILE: &str = "call.json";

/// The variable that sets how often the kernel is called, and the default.
pub const PLAYED_CALLS: &str = "KARVE_PLAYED_CALLS";
const CALLS_DEFAULT: u32 = 3;

/// Bytes of all tensors that are written to files, at most.
const PLAYED_BYTES_MAX: u64 = 2 << 30;

/// One call of a kernel.
#[derive(Debug, Serialize, Deserialize)]
struct PlayedCall {
    /// The shared object or the module.
    path: String,
    /// The function, or the name of a class.
    entry: String,
    /// The function that prepares for the call, if there is one.
    setup: Option<String>,
    /// The device of a module, or any text for a shared object that runs on one.
    device: Option<String>,
    /// Whether outputs are arguments, as they are for a function of a shared object.
    passes_outputs: bool,
    args: Vec<PlayedArg>,
}

/// One argument.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum PlayedArg {
    /// An integer.
    Integer { value: i64 },
    /// A floating-point number.
    Float { value: f64, single: bool },
    /// A tensor; one that is only written has no file.
    Tensor {
        dtype: String,
        shape: Vec<u64>,
        bytes: u64,
        file: Option<String>,
        /// Whether it goes to the setup, and not to the kernel.
        prepared: bool,
    },
}

/// The files of a player, until this is dropped.
#[derive(Debug)]
pub struct PlayFiles {
    dir: PathBuf,
    /// Whether the player tells a profiler of a device when to start: after its first call, which
    /// compiles the kernel.
    pub marks_start: bool,
}

impl Drop for PlayFiles {
    fn drop(&mut self) {
        // What stays behind goes with the tree.
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// Writes everything that plays a case of a built tree. Returns the words of the command, which
/// runs in the directory of `karve.toml`, and the files.
pub fn prepare(
    terms: &RunnerSetup,
    tree: &Path,
    case: &Case,
    seed: u64,
) -> Result<(Vec<String>, PlayFiles)> {
    let dir = terms.place(tree).join(PLAY_DIR);
    let cannot = || format!("cannot write to {}", dir.display());
    if dir.exists() {
        fs::remove_dir_all(&dir).context(cannot)?;
    }
    fs::create_dir_all(&dir).context(cannot)?;
    let is_module = matches!(terms.contract.kernel, Kernel::Python { .. });
    let marks_start = is_module && terms.contract.is_on_device();
    let files = PlayFiles { dir: dir.clone(), marks_start };
    let args = draw_args(&terms.contract, case, seed, &dir)?;
    let device = terms.contract.modules.device.clone();
    let (path, entry, passes_outputs, words) = match &terms.contract.kernel {
        Kernel::Library { path, entry } => {
            let player = dir.join("karve");
            fs::hard_link(&terms.worker, &player)
                .or_else(|_| fs::copy(&terms.worker, &player).map(drop))
                .context(cannot)?;
            let words = [&format!("{PLAY_DIR}/karve"), "worker", "--play", PLAY_DIR];
            (path, entry.as_str(), true, words.map(str::to_owned).to_vec())
        }
        Kernel::Python { path, style } => {
            let words = python::player(terms, &dir, PLAY_DIR)?;
            let passes_outputs = terms.contract.modules.passes_outputs;
            (path, python::entry_of(*style), passes_outputs, words)
        }
    };
    let setup = terms.contract.setup.as_ref().map(|setup| setup.entry.clone());
    let (path, entry) = (path.clone(), entry.to_owned());
    let call = PlayedCall { path, entry, setup, device, passes_outputs, args };
    let text = serde_json::to_string(&call).map_err(|error| unreadable(&error.to_string()))?;
    fs::write(dir.join(CALL_FILE), text).context(cannot)?;
    Ok((words, files))
}

/// Draws the inputs of a case, and writes each to a file.
fn draw_args(contract: &Contract, case: &Case, seed: u64, dir: &Path) -> Result<Vec<PlayedArg>> {
    let layout = contract.layout(case).map_err(|why| unreadable(&why))?;
    if layout.input_bytes.saturating_add(layout.output_bytes) > PLAYED_BYTES_MAX {
        return Err(CommandError::usage("the tensors of the case are too large to be profiled")
            .hint("name a smaller one with --case, or set commands.profile in karve.toml"));
    }
    let mut args = Vec::new();
    for (index, place) in layout.places.iter().enumerate() {
        let region = match place {
            PlacedArg::Integer(value) => {
                args.push(PlayedArg::Integer { value: *value });
                continue;
            }
            PlacedArg::Float(value) => {
                let single = layout.dtypes[index] == Dtype::F32;
                args.push(PlayedArg::Float { value: *value, single });
                continue;
            }
            PlacedArg::Input(region) | PlacedArg::Output(region) => region,
        };
        let file = contract.args[index].draw().is_some().then(|| format!("{index}.bin"));
        if let Some(file) = &file {
            let mut bytes = vec![0; region.bytes as usize];
            contract.fill(&layout, index, CallInputs { seed, pattern: None }, &mut bytes);
            let path = dir.join(file);
            fs::write(&path, bytes).context(|| format!("cannot write {}", path.display()))?;
        }
        args.push(PlayedArg::Tensor {
            dtype: layout.dtypes[index].name().to_owned(),
            shape: layout.extents[index].clone(),
            bytes: region.bytes,
            file,
            prepared: contract.is_prepared(index),
        });
    }
    Ok(args)
}

/// Plays the call that a directory describes, for a shared object.
pub fn play(dir: &Path) -> Result<()> {
    let path = dir.join(CALL_FILE);
    let text = fs::read_to_string(&path).context(|| format!("cannot read {}", path.display()))?;
    let call: PlayedCall =
        serde_json::from_str(&text).map_err(|error| unreadable(&error.to_string()))?;
    let gpu = call.device.as_ref().map(|_| Gpu::open(0)).transpose().map_err(failed)?;
    let mut tensors = Vec::new();
    for arg in &call.args {
        tensors.push(match arg {
            PlayedArg::Tensor { bytes, file, .. } => {
                Some(PlayedTensor::load(dir, *bytes, file.as_deref(), gpu.as_ref())?)
            }
            PlayedArg::Integer { .. } | PlayedArg::Float { .. } => None,
        });
    }
    // The loader searches the directories of the system for a name without a slash.
    let library = env::current_dir().context(|| "cannot find the directory".to_owned())?;
    let library = library.join(&call.path);
    let entry = load(&library, &call.entry)?;
    let state = Cell::new(0);
    let mut first = None;
    if let Some(setup) = &call.setup {
        let list = registers(&call, &tensors, true, Some(state.as_ptr() as usize));
        load(&library, setup)?.call(&list?.registers);
        first = Some(state.get());
    }
    let list = registers(&call, &tensors, false, first)?;
    for _ in 0..played_calls() {
        entry.call(&list.registers);
    }
    if let Some(gpu) = &gpu {
        gpu.synchronize().map_err(failed)?;
    }
    Ok(())
}

/// The arguments of the kernel or of the setup, after the state or where that goes.
fn registers(
    call: &PlayedCall,
    tensors: &[Option<PlayedTensor>],
    of_setup: bool,
    first: Option<usize>,
) -> Result<RegisterList> {
    let mut list = RegisterList::default();
    let mut placed = first.is_none_or(|first| list.integer(first).is_some());
    for (arg, tensor) in call.args.iter().zip(tensors) {
        placed &= match (arg, tensor) {
            (PlayedArg::Integer { value }, _) => list.integer(*value as usize).is_some(),
            (PlayedArg::Float { value, single }, _) => list.float(*value, *single).is_some(),
            (PlayedArg::Tensor { prepared, .. }, Some(tensor)) if *prepared == of_setup => {
                list.integer(tensor.address()).is_some()
            }
            (PlayedArg::Tensor { .. }, _) => true,
        };
    }
    // The stream of a device: the default one.
    placed &= call.device.is_none() || list.integer(0).is_some();
    match placed {
        true => Ok(list),
        false => Err(unreadable("it has too many arguments")),
    }
}

fn load(library: &Path, entry: &str) -> Result<EntryPoint> {
    let name = |text: &str| CString::new(text).map_err(|_| unreadable("a name has a zero"));
    native::load(&name(&library.to_string_lossy())?, &name(entry)?)
        .map_err(|failure| unreadable(&refused_by_loader(&failure)))
}

fn played_calls() -> u32 {
    let set = env::var(PLAYED_CALLS).ok().and_then(|text| text.parse().ok());
    set.unwrap_or(CALLS_DEFAULT)
}

/// A tensor of the player.
enum PlayedTensor {
    /// Bytes, and where the tensor starts in them.
    Host(Vec<u8>, usize),
    /// On a device.
    Device(GpuAddress),
}

impl PlayedTensor {
    fn load(dir: &Path, bytes: u64, file: Option<&str>, gpu: Option<&Gpu>) -> Result<Self> {
        let read = |file: &str| {
            let path = dir.join(file);
            fs::read(&path).context(|| format!("cannot read {}", path.display()))
        };
        let drawn = file.map(read).transpose()?.unwrap_or_default();
        let Some(gpu) = gpu else {
            let mut memory = vec![0; (bytes + ALIGNMENT) as usize];
            let start = memory.as_ptr().align_offset(ALIGNMENT as usize);
            let n = drawn.len().min(bytes as usize);
            memory[start..start + n].copy_from_slice(&drawn[..n]);
            return Ok(Self::Host(memory, start));
        };
        let at = gpu.alloc(bytes.max(1)).map_err(failed)?;
        gpu.zero(at, bytes).map_err(failed)?;
        gpu.to_device(at, &drawn).map_err(failed)?;
        Ok(Self::Device(at))
    }

    fn address(&self) -> usize {
        match self {
            Self::Host(memory, start) => memory.as_ptr() as usize + start,
            Self::Device(at) => *at as usize,
        }
    }
}

fn failed(error: GpuError) -> CommandError {
    CommandError::environment("the device failed").cause(error.to_string())
}

fn unreadable(why: &str) -> CommandError {
    CommandError::usage("the call cannot be played").cause(why)
}
