//! The reference, which decides which result is right, on exactly the inputs that a kernel got.
//!
//! It runs in its own process, from the unchanged project, and computes in float64 if it can. No
//! candidate sees its results.

use super::arm::{KernelWorker, WorkerProgram};
use super::buffers::{KernelBuffers, KernelCall, parts_of, tensors_at};
use super::memory::{
    ArmMemory, DeviceMemory, HostMemory, InputSharing, MemoryPlace, MemorySizes, gpu_failed,
};
use super::protocol::CallSlot;
use super::setup::{RunnerSetup, reference_hint};
use super::worker_failure::WorkerFailure;
use crate::outcome::Failure;
use karve_numerics::accuracy::{OutputInfo, Sensitivity};
use karve_numerics::case::Case;
use karve_numerics::contract::{CallLayout, Contract, PlacedArg, Precision, TensorRegion};
use karve_numerics::tensor::Dtype;
use karve_numerics::{draw, tensor};
use karve_os::error::{CommandError, Result, WithContext};
use karve_os::gpu::{GpuMemory, GpuResult, GpuTensor, SharedStage, TensorCopy};
use karve_os::process::{Command, StopFlag};
use karve_os::{files, process};
use std::fs;
use std::path::PathBuf;

/// A reference, ready to be called.
#[derive(Debug)]
pub(super) struct ReferenceRunner {
    precision: Precision,
    speaker: ReferenceBackend,
    /// The hint when it fails.
    hint: String,
    layout: CallLayout,
    /// How much its results depend on the last bits of the inputs, tensor by tensor; determined by
    /// the first call on a case.
    sensitivity: Option<Vec<Sensitivity>>,
}

#[derive(Debug)]
enum ReferenceBackend {
    /// A worker, with the memory that it reads.
    Worker { arm: Box<KernelWorker>, memory: ArmMemory },
    /// A command that reads and writes files.
    Command { command: Command, dir: PathBuf, stop: StopFlag },
}

/// Where a reference comes from.
#[derive(Clone, Debug)]
pub(super) enum ReferenceSource {
    /// A worker.
    Worker(WorkerProgram),
    /// A command whose files are in a directory.
    Command(Command, PathBuf),
}

/// The tensors that a kernel should have written, in the order of the contract.
#[derive(Debug)]
pub(super) struct ReferenceOutput {
    /// The results.
    pub(super) values: ReferenceValues,
    /// What else is known about them.
    pub(super) outputs: Vec<OutputInfo>,
}

impl ReferenceOutput {
    /// Whether all results are finite numbers, as far as they are in the memory of the host.
    pub(super) fn is_finite(&self) -> bool {
        match &self.values {
            ReferenceValues::Host(tensors) => tensors.iter().flatten().all(|v| v.is_finite()),
            ReferenceValues::Device(_) => true,
        }
    }
}

/// The results of a reference.
#[derive(Debug)]
pub(super) enum ReferenceValues {
    /// In float64.
    Host(Vec<Vec<f64>>),
    /// On a device.
    Device(DeviceValues),
}

/// Tensors on a device, and the memory that they are in.
#[derive(Debug)]
pub(super) struct DeviceValues {
    _memory: GpuMemory,
    /// The tensors.
    pub(super) tensors: Vec<GpuTensor>,
}

/// Inputs as they were drawn, or each changed by a last bit.
#[derive(Clone, Copy, PartialEq, Eq)]
enum InputVariant {
    AsDrawn,
    Nudged,
}

impl ReferenceRunner {
    /// Starts a reference for some cases.
    pub(super) fn start(
        terms: &RunnerSetup,
        source: &ReferenceSource,
        precision: Precision,
        cases: &[&Case],
    ) -> Result<Self> {
        let RunnerSetup { contract, limit, stop, .. } = terms;
        let hint = reference_hint(&contract.reference);
        let layouts: std::result::Result<Vec<CallLayout>, String> =
            cases.iter().map(|case| contract.layout_in(case, precision)).collect();
        let layouts = layouts.map_err(|why| unfit(&why))?;
        let most = |of: fn(&CallLayout) -> u64| layouts.iter().map(of).max().unwrap_or(1);
        let sizes = MemorySizes {
            input: most(|layout| layout.input_bytes),
            output: most(|layout| layout.output_bytes),
        };
        let speaker = match source {
            ReferenceSource::Worker(program) => {
                let sharing = match precision {
                    Precision::Native => InputSharing::Shared,
                    Precision::Wide => InputSharing::Alone,
                };
                let memory = ArmMemory::new(sizes, terms.stage()?.as_ref(), sharing)?;
                let arm = KernelWorker::start(program, &memory, *limit, stop)
                    .map_err(|failure| worker_fails(failure, "its start", &hint))?;
                ReferenceBackend::Worker { arm: Box::new(arm), memory }
            }
            ReferenceSource::Command(command, dir) => ReferenceBackend::Command {
                command: command.clone().limit(*limit),
                dir: dir.clone(),
                stop: stop.clone(),
            },
        };
        let layout = layouts.into_iter().next();
        Ok(Self {
            precision,
            speaker,
            hint,
            layout: layout.ok_or_else(|| unfit("there is no case"))?,
            sensitivity: None,
        })
    }

    /// Sets the case of all following calls.
    pub(super) fn set(&mut self, contract: &Contract, case: &Case) -> Result<()> {
        let layout = contract.layout_in(case, self.precision);
        self.layout = layout.map_err(|why| unfit(&why))?;
        self.sensitivity = None;
        if let ReferenceBackend::Worker { arm, .. } = &mut self.speaker {
            arm.renew_limit();
            arm.set_up(contract, &self.layout, 1)
                .map_err(|failure| worker_fails(failure, &case.name, &self.hint))?;
        }
        Ok(())
    }

    /// The correct result of a call.
    pub(super) fn truth(
        &mut self,
        stage: &KernelBuffers,
        call: &KernelCall,
    ) -> Result<ReferenceOutput> {
        let values = self.ask(stage, call, InputVariant::AsDrawn)?;
        // Inputs with a pattern may amplify errors far more than others.
        let known = self.sensitivity.take();
        let sensitivity = match known.as_ref().filter(|_| call.pattern.is_none()) {
            Some(known) => known.clone(),
            None => {
                let again = self.ask(stage, call, InputVariant::AsDrawn)?;
                let is_same = values.has_same_bits(&again, stage)?;
                drop(again);
                if !is_same {
                    let why = "it gives a different result when called again";
                    return Err(fails(why, &self.hint));
                }
                let nudged = self.ask(stage, call, InputVariant::Nudged)?;
                let drawn = stage.contract().args.iter().filter(|arg| arg.draw().is_some());
                let epsilon = drawn.map(|arg| arg.dtype.epsilon()).fold(0.0, f64::max);
                values.sensitivity(&nudged, epsilon.max(Dtype::F64.epsilon()), stage)?
            }
        };
        let written = stage.contract().written().zip(&sensitivity);
        let outputs = written.map(|((_, arg), sensitivity)| OutputInfo {
            dtype: arg.dtype,
            reduction: match call.pattern {
                None => stage.layout().reduction,
                // In the worst order, such as sorted, partial sums are as large as all terms
                // together: an honest error grows with n, not with its root.
                Some(_) => stage.layout().reduction.map(|n| n.saturating_mul(n)),
            },
            sensitivity: Some(*sensitivity),
            is_reference_native: self.precision == Precision::Native,
        });
        let outputs = outputs.collect();
        self.sensitivity = if call.pattern.is_none() { Some(sensitivity) } else { known };
        Ok(ReferenceOutput { values, outputs })
    }

    fn ask(
        &mut self,
        stage: &KernelBuffers,
        call: &KernelCall,
        inputs: InputVariant,
    ) -> Result<ReferenceValues> {
        let values = match &mut self.speaker {
            ReferenceBackend::Command { .. } => self.ask_command(stage, call, inputs)?,
            ReferenceBackend::Worker { arm, memory } => {
                let layout = &self.layout;
                match &mut memory.place {
                    MemoryPlace::Host(host) => put_on_host(host, layout, stage, call, inputs)?,
                    MemoryPlace::Device(device) => {
                        put_on_device(device, layout, stage, call, inputs)?;
                    }
                }
                arm.renew_limit();
                arm.run_batch(&[CallSlot { input: 0, output: 0 }])
                    .map_err(|failure| worker_fails(failure, "the inputs of a call", &self.hint))?;
                if let MemoryPlace::Device(device) = &memory.place
                    && inputs == InputVariant::Nudged
                    && device.shares_input(stage.memory())
                {
                    restore(device, layout, stage, call)?;
                }
                match &memory.place {
                    MemoryPlace::Host(host) => taken_from_host(host, layout),
                    MemoryPlace::Device(device) => {
                        let taken = DeviceValues::taken(device, layout).map_err(gpu_failed)?;
                        return Ok(ReferenceValues::Device(taken));
                    }
                }
            }
        };
        match stage.stage() {
            None => Ok(ReferenceValues::Host(values)),
            Some(device) => {
                let put = DeviceValues::uploaded(device, &values).map_err(gpu_failed)?;
                Ok(ReferenceValues::Device(put))
            }
        }
    }

    fn ask_command(
        &self,
        stage: &KernelBuffers,
        call: &KernelCall,
        how: InputVariant,
    ) -> Result<Vec<Vec<f64>>> {
        let ReferenceBackend::Command { command, dir, stop } = &self.speaker else {
            return Ok(Vec::new());
        };
        let args = &stage.contract().args;
        let file = |index: usize| dir.join(format!("{}.bin", args[index].name));
        let cannot = || format!("cannot write to {}", dir.display());
        fs::create_dir_all(dir).context(cannot)?;
        for (index, place) in self.layout.places.iter().enumerate() {
            if matches!(place, PlacedArg::Input(_) | PlacedArg::Output(_)) {
                let bytes = input_values(stage, call, index, self.layout.dtypes[index], how)?;
                fs::write(file(index), bytes).context(cannot)?;
            }
        }
        let run = process::run(command, stop)?;
        if !run.exit.success() {
            return Err(fails(&karve_os::process::excerpt(&run), &self.hint));
        }
        let mut truth = Vec::new();
        for (index, region) in self.layout.outputs() {
            let path = file(index);
            let bytes = files::read(&path, region.bytes + 1)
                .context(|| format!("cannot read {}", path.display()))?;
            if bytes.len() as u64 != region.bytes {
                let name = &args[index].name;
                let found = bytes.len();
                let why = format!("{name}.bin has {found} bytes instead of {}", region.bytes);
                return Err(fails(&why, &self.hint));
            }
            let mut values = Vec::new();
            tensor::to_f64(self.layout.dtypes[index], &bytes, &mut values);
            truth.push(values);
        }
        Ok(truth)
    }
}

/// The value of an argument before the call, in the type that the reference takes.
fn input_values(
    stage: &KernelBuffers,
    call: &KernelCall,
    index: usize,
    dtype: Dtype,
    how: InputVariant,
) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    stage.drawn(index, call, &mut bytes)?;
    let native = stage.layout().dtypes[index];
    if how == InputVariant::Nudged {
        draw::nudge(native, call.seed, index as u64, &mut bytes);
    }
    if native == dtype {
        return Ok(bytes);
    }
    let mut values = Vec::new();
    tensor::to_f64(native, &bytes, &mut values);
    let mut wide = vec![0; values.len() * dtype.bytes()];
    tensor::from_f64(dtype, &values, &mut wide);
    Ok(wide)
}

/// Writes the inputs of a call for a reference.
fn put_on_host(
    memory: &mut HostMemory,
    layout: &CallLayout,
    stage: &KernelBuffers,
    call: &KernelCall,
    how: InputVariant,
) -> Result<()> {
    for (index, place) in layout.places.iter().enumerate() {
        let (side, region) = match place {
            PlacedArg::Input(region) => (&mut memory.input, region),
            PlacedArg::Output(region) => (&mut memory.output, region),
            PlacedArg::Integer(_) | PlacedArg::Float(_) => continue,
        };
        let bytes = input_values(stage, call, index, layout.dtypes[index], how)?;
        let part = side.part_mut(region.offset, region.bytes);
        match bytes.len() == part.len() {
            true => part.copy_from_slice(&bytes),
            false => part.fill(0),
        }
    }
    Ok(())
}

/// The same on a device.
fn put_on_device(
    memory: &DeviceMemory,
    layout: &CallLayout,
    stage: &KernelBuffers,
    call: &KernelCall,
    how: InputVariant,
) -> Result<()> {
    for (index, place) in layout.places.iter().enumerate() {
        let (base, region) = match place {
            PlacedArg::Input(region) => (memory.input.at(), region),
            PlacedArg::Output(region) => (memory.output.at(), region),
            PlacedArg::Integer(_) | PlacedArg::Float(_) => continue,
        };
        let to = base + region.offset;
        let dtype = layout.dtypes[index];
        // Without a copy, where it is drawn in the type that the reference takes.
        let drawn = match stage.layout().dtypes[index] == dtype {
            true => stage.draw_at(&memory.stage, index, call, to)?.map(|tensor| (None, tensor)),
            false => {
                let drawn = stage.drawn_on_device(&memory.stage, index, call)?;
                drawn.map(|(kept, tensor)| (Some(kept), tensor))
            }
        };
        let mut device = memory.stage.here().map_err(gpu_failed)?;
        let Some((_kept, from)) = drawn else {
            device.gpu().zero(to, region.bytes).map_err(gpu_failed)?;
            continue;
        };
        let nudges = how == InputVariant::Nudged && from.dtype.is_float();
        let key = draw::hash64(call.seed, &(index as u64).to_le_bytes());
        let nudge = nudges.then(|| (from.dtype.epsilon(), key));
        if from.at == to && nudge.is_none() {
            continue;
        }
        device.convert(&[TensorCopy { from, to, dtype, nudge }]).map_err(gpu_failed)?;
        device.gpu().synchronize().map_err(gpu_failed)?;
    }
    Ok(())
}

/// Draws the inputs of a call again, in memory that kernels have, too.
fn restore(
    memory: &DeviceMemory,
    layout: &CallLayout,
    stage: &KernelBuffers,
    call: &KernelCall,
) -> Result<()> {
    for (index, place) in layout.places.iter().enumerate() {
        if let PlacedArg::Input(region) = place {
            stage.draw_at(&memory.stage, index, call, memory.input.at() + region.offset)?;
        }
    }
    Ok(())
}

/// What a reference wrote.
fn taken_from_host(memory: &HostMemory, layout: &CallLayout) -> Vec<Vec<f64>> {
    let mut bytes = Vec::new();
    let tensor = |(index, region): (usize, TensorRegion)| {
        memory.output.copy_out(region.offset, region.bytes, &mut bytes);
        let mut values = Vec::new();
        tensor::to_f64(layout.dtypes[index], &bytes, &mut values);
        values
    };
    layout.outputs().map(tensor).collect()
}

impl DeviceValues {
    /// A copy of what a reference wrote.
    fn taken(memory: &DeviceMemory, layout: &CallLayout) -> GpuResult<Self> {
        let stage = memory.stage.here()?;
        let copy = GpuMemory::new(stage.gpu(), layout.output_bytes)?;
        stage.gpu().copy(copy.at(), memory.output.at(), layout.output_bytes)?;
        let tensors = tensors_at(layout, copy.at());
        Ok(Self { _memory: copy, tensors })
    }

    /// Values of the host.
    fn uploaded(stage: &SharedStage, values: &[Vec<f64>]) -> GpuResult<Self> {
        let stage = stage.here()?;
        let bytes: usize = values.iter().map(|tensor| 8 * tensor.len()).sum();
        let memory = GpuMemory::new(stage.gpu(), bytes as u64)?;
        let (mut at, mut tensors) = (memory.at(), Vec::new());
        for tensor in values {
            let bytes: Vec<u8> = tensor.iter().flat_map(|value| value.to_ne_bytes()).collect();
            stage.gpu().to_device(at, &bytes)?;
            tensors.push(GpuTensor { at, dtype: Dtype::F64, count: tensor.len() as u64 });
            at += bytes.len() as u64;
        }
        Ok(Self { _memory: memory, tensors })
    }
}

impl ReferenceValues {
    /// Whether a reference gave the same result twice, bit for bit.
    fn has_same_bits(&self, other: &Self, buffers: &KernelBuffers) -> Result<bool> {
        let bits =
            |of: &[Vec<f64>]| -> Vec<u64> { of.iter().flatten().map(|v| v.to_bits()).collect() };
        match (self, other, buffers.stage()) {
            (Self::Host(one), Self::Host(other), _) => Ok(bits(one) == bits(other)),
            (Self::Device(one), Self::Device(other), Some(stage)) => {
                let mut stage = stage.here().map_err(gpu_failed)?;
                let mut sums = |of: &DeviceValues| {
                    stage.checksums(&parts_of(&of.tensors, buffers.key())).map_err(gpu_failed)
                };
                Ok(sums(one)? == sums(other)?)
            }
            _ => Ok(false),
        }
    }

    /// How much it depends on the last bits of the inputs, tensor by tensor.
    fn sensitivity(
        &self,
        nudged: &Self,
        epsilon: f64,
        buffers: &KernelBuffers,
    ) -> Result<Vec<Sensitivity>> {
        match (nudged, self, buffers.stage()) {
            (Self::Device(nudged), Self::Device(truth), Some(stage)) => {
                let mut stage = stage.here().map_err(gpu_failed)?;
                let both = nudged.tensors.iter().zip(&truth.tensors);
                let one = both.map(|(nudged, truth)| stage.sensitivity(*nudged, *truth, epsilon));
                one.collect::<GpuResult<_>>().map_err(gpu_failed)
            }
            (Self::Host(nudged), Self::Host(truth), _) => {
                let both = nudged.iter().zip(truth);
                Ok(both.map(|(nudged, truth)| Sensitivity::of(nudged, truth, epsilon)).collect())
            }
            _ => Ok(Vec::new()),
        }
    }
}

fn unfit(why: &str) -> CommandError {
    CommandError::usage("the contract does not match the reference")
        .cause(why)
        .hint("fix [contract] in karve.toml")
}

/// Without its worker there is no reference, so karve cannot continue.
fn worker_fails(failure: Failure<WorkerFailure>, on: &str, hint: &str) -> CommandError {
    failure.into_error(|broken| fails(&broken.in_full(on), hint))
}

fn fails(why: &str, hint: &str) -> CommandError {
    CommandError::environment("the reference failed").cause(why).hint(hint)
}
