//! The buffers on a device: drawn, poisoned and checked there by the stage.
//!
//! Nothing leaves the device but figures. A kernel there can write to any memory that its process
//! has opened, so checksums under a secret key show whether inputs, guards and unused slots are as
//! karve left them.

use super::{BufferView, KernelCall, plausible, spare_slots};
use crate::runner::memory::DeviceMemory;
use karve_numerics::contract::{CacheState, CallLayout, PlacedArg, TensorRegion};
use karve_numerics::draw::{self, ElementDraw, ElementLayer};
use karve_os::gpu::{
    GpuAddress, GpuMemory, GpuResult, GpuStage, GpuTensor, KeyedBytes, SharedStage, TensorDraw,
};
use std::sync::Arc;
use std::time::Duration;

/// How long work that an arm left on the device may take.
const IDLE_LIMIT: Duration = Duration::from_secs(1);

/// Sums over memory that no kernel may write to.
#[derive(Debug, Default)]
pub(super) struct MemorySums {
    /// Sums over the inputs, slot by slot.
    inputs: Vec<u64>,
    /// Guards and unused slots of the outputs, and their sums.
    rest: Vec<KeyedBytes>,
    rest_sums: Vec<u64>,
}

/// What an arm wrote in a call: a copy of its slot that only karve has.
#[derive(Clone, Debug)]
pub(in crate::runner) struct DeviceOutput {
    memory: Arc<GpuMemory>,
    at: GpuAddress,
}

impl DeviceOutput {
    /// Its tensors, in the order of the contract.
    pub(in crate::runner) fn tensors(&self, layout: &CallLayout) -> Vec<GpuTensor> {
        tensors_at(layout, self.at)
    }
}

/// The written tensors of a slot.
pub(in crate::runner) fn tensors_at(layout: &CallLayout, slot: GpuAddress) -> Vec<GpuTensor> {
    let tensor = |(index, region): (usize, TensorRegion)| GpuTensor {
        at: slot + region.offset,
        dtype: layout.dtypes[index],
        count: region.elements,
    };
    layout.outputs().map(tensor).collect()
}

/// What is drawn: on the device, or on the host where only that can.
#[derive(Default)]
struct DrawList {
    /// Each over those before it.
    layers: Vec<Vec<TensorDraw>>,
    bytes: Vec<KeyedBytes>,
    uploads: Vec<(GpuAddress, Vec<u8>)>,
}

impl DrawList {
    fn add(&mut self, view: &BufferView<'_>, index: usize, call: &KernelCall, at: GpuAddress) {
        let BufferView { contract, layout, .. } = view;
        let (PlacedArg::Input(region) | PlacedArg::Output(region)) = layout.places[index] else {
            return;
        };
        match contract.element_layers(layout, index, view.inputs(call, index)) {
            Some(layers) => {
                let bytes = layout.dtypes[index].bytes() as u64;
                for (ElementLayer { from, count, draw }, layer) in layers.into_iter().zip(0..) {
                    self.push(layer, TensorDraw { at: at + from * bytes, count, draw });
                }
            }
            None => {
                let mut bytes = vec![0; region.bytes as usize];
                contract.fill(layout, index, view.inputs(call, index), &mut bytes);
                self.uploads.push((at, bytes));
            }
        }
    }

    fn push(&mut self, layer: usize, tensor: TensorDraw) {
        if self.layers.len() <= layer {
            self.layers.resize_with(layer + 1, Vec::new);
        }
        self.layers[layer].push(tensor);
    }

    fn put(&self, stage: &mut GpuStage) -> GpuResult<()> {
        for (at, bytes) in &self.uploads {
            stage.gpu().to_device(*at, bytes)?;
        }
        for layer in &self.layers {
            stage.draw(layer)?;
        }
        stage.randomize(&self.bytes)
    }
}

/// Draws the inputs of calls.
pub(super) fn fill(
    memory: &DeviceMemory,
    view: &BufferView<'_>,
    calls: &[KernelCall],
    sums: &mut MemorySums,
) -> GpuResult<()> {
    let mut list = DrawList::default();
    for call in calls {
        let slot = input_slot(memory, view, call);
        for (index, place) in view.layout.places.iter().enumerate() {
            if let PlacedArg::Input(region) = place {
                list.add(view, index, call, slot + region.offset);
            }
        }
    }
    let mut stage = memory.stage.here()?;
    list.put(&mut stage)?;
    sums.inputs = stage.checksums(&input_parts(memory, view))?;
    Ok(())
}

/// Prepares what an arm writes: poison, guards, contents of what it also reads, unused slots.
pub(super) fn poison(
    memory: &DeviceMemory,
    view: &BufferView<'_>,
    calls: &[KernelCall],
    sums: &mut MemorySums,
) -> GpuResult<()> {
    let mut list = DrawList::default();
    let of = plausible(view.contract);
    let key = view.key;
    sums.rest.clear();
    for call in calls {
        let slot = memory.output.at() + u64::from(call.slot) * view.layout.output_bytes;
        for (from, to) in view.layout.guards() {
            sums.rest.push(KeyedBytes { at: slot + from, bytes: to - from, key });
        }
        for (index, region) in view.layout.outputs() {
            let at = slot + region.offset;
            if view.contract.args[index].draw().is_some() {
                list.add(view, index, call, at);
                continue;
            }
            let (dtype, count) = (view.layout.dtypes[index], region.elements);
            let seed = call.poison_seed(index);
            match ElementDraw::of_poison(call.poison.with(&of), seed, dtype, count) {
                Some(draw) => list.push(0, TensorDraw { at, count, draw }),
                None => list.bytes.push(KeyedBytes { at, bytes: region.bytes, key: seed }),
            }
        }
    }
    let bytes = view.layout.output_bytes;
    for slot in spare_slots(view.n_slots, calls) {
        let at = memory.output.at() + u64::from(slot) * bytes;
        sums.rest.push(KeyedBytes { at, bytes, key });
    }
    sums.rest.push(beyond(&memory.output, view.n_slots, bytes, key));
    // Different bytes everywhere, every time.
    let fresh = |part: &KeyedBytes| KeyedBytes {
        key: draw::hash64(key ^ calls.first().map_or(0, |call| call.seed), &part.at.to_le_bytes()),
        ..*part
    };
    list.bytes.extend(sums.rest.iter().map(fresh));
    let mut stage = memory.stage.here()?;
    list.put(&mut stage)?;
    sums.rest_sums = stage.checksums(&sums.rest)?;
    match view.contract.timing.cache {
        CacheState::Cold => stage.flush_cache(),
        CacheState::Warm => Ok(()),
    }
}

/// Whether nothing was written but the outputs of the last calls.
pub(super) fn holds(
    memory: &DeviceMemory,
    view: &BufferView<'_>,
    sums: &MemorySums,
) -> GpuResult<bool> {
    let mut parts = input_parts(memory, view);
    parts.extend(&sums.rest);
    let found = memory.stage.here()?.checksums(&parts)?;
    Ok(found.iter().eq(sums.inputs.iter().chain(&sums.rest_sums)))
}

/// Waits until nothing runs on the device; returns how long that took, and whether it was
/// successful.
pub(super) fn wait_until_idle(memory: &DeviceMemory) -> GpuResult<(Duration, bool)> {
    memory.stage.here()?.wait_until_idle(IDLE_LIMIT)
}

/// Copies what an arm wrote, into the memory of earlier copies where these are of the same size.
pub(super) fn copy_written(
    memory: &DeviceMemory,
    view: &BufferView<'_>,
    calls: &[KernelCall],
    earlier: Option<&DeviceOutput>,
) -> GpuResult<Vec<DeviceOutput>> {
    let bytes = view.layout.output_bytes;
    let stage = memory.stage.here()?;
    let wanted = bytes * calls.len() as u64;
    let kept = earlier.map(|output| &output.memory).filter(|kept| kept.bytes() == wanted);
    let copies = match kept {
        Some(kept) => Arc::clone(kept),
        None => Arc::new(GpuMemory::new(stage.gpu(), wanted)?),
    };
    let mut written = Vec::with_capacity(calls.len());
    for (call, index) in calls.iter().zip(0..) {
        let at = copies.at() + index * bytes;
        let from = memory.output.at() + u64::from(call.slot) * bytes;
        stage.gpu().copy(at, from, bytes)?;
        written.push(DeviceOutput { memory: Arc::clone(&copies), at });
    }
    Ok(written)
}

/// Whether two calls gave the same bits.
pub(super) fn same_bits(
    memory: &DeviceMemory,
    view: &BufferView<'_>,
    one: &DeviceOutput,
    other: &DeviceOutput,
) -> GpuResult<bool> {
    let parts = |output: &DeviceOutput| parts_of(&output.tensors(view.layout), view.key);
    let mut stage = memory.stage.here()?;
    Ok(stage.checksums(&parts(one))? == stage.checksums(&parts(other))?)
}

/// The bytes of some tensors.
pub(in crate::runner) fn parts_of(tensors: &[GpuTensor], key: u64) -> Vec<KeyedBytes> {
    let part = |tensor: &GpuTensor| KeyedBytes {
        at: tensor.at,
        bytes: tensor.count * tensor.dtype.bytes() as u64,
        key,
    };
    tensors.iter().map(part).collect()
}

/// The value that was drawn for an argument of a call, again, in memory of its own.
pub(super) fn drawn(
    stage: &SharedStage,
    view: &BufferView<'_>,
    index: usize,
    call: &KernelCall,
) -> GpuResult<Option<(GpuMemory, GpuTensor)>> {
    let region = match view.layout.places[index] {
        PlacedArg::Input(region) | PlacedArg::Output(region) => region,
        PlacedArg::Integer(_) | PlacedArg::Float(_) => return Ok(None),
    };
    if view.contract.args[index].draw().is_none() {
        return Ok(None);
    }
    let memory = GpuMemory::new(stage.here()?.gpu(), region.bytes)?;
    let tensor = draw_at(stage, view, index, call, memory.at())?;
    Ok(tensor.map(|tensor| (memory, tensor)))
}

/// The same at an address.
pub(super) fn draw_at(
    stage: &SharedStage,
    view: &BufferView<'_>,
    index: usize,
    call: &KernelCall,
    at: GpuAddress,
) -> GpuResult<Option<GpuTensor>> {
    let region = match view.layout.places[index] {
        PlacedArg::Input(region) | PlacedArg::Output(region) => region,
        PlacedArg::Integer(_) | PlacedArg::Float(_) => return Ok(None),
    };
    if view.contract.args[index].draw().is_none() {
        return Ok(None);
    }
    let mut list = DrawList::default();
    list.add(view, index, call, at);
    list.put(&mut *stage.here()?)?;
    Ok(Some(GpuTensor { at, dtype: view.layout.dtypes[index], count: region.elements }))
}

fn input_slot(memory: &DeviceMemory, view: &BufferView<'_>, call: &KernelCall) -> GpuAddress {
    memory.input.at() + u64::from(call.slot) * view.layout.input_bytes
}

/// The inputs of all slots, and what is beyond them.
fn input_parts(memory: &DeviceMemory, view: &BufferView<'_>) -> Vec<KeyedBytes> {
    let (bytes, key) = (view.layout.input_bytes, view.key);
    let part =
        |slot: u32| KeyedBytes { at: memory.input.at() + u64::from(slot) * bytes, bytes, key };
    let parts = (0..view.n_slots).map(part);
    parts.chain([beyond(&memory.input, view.n_slots, bytes, key)]).collect()
}

/// What is beyond the slots of the current case.
fn beyond(memory: &GpuMemory, n_slots: u32, slot_bytes: u64, key: u64) -> KeyedBytes {
    let used = u64::from(n_slots) * slot_bytes;
    KeyedBytes { at: memory.at() + used, bytes: memory.bytes().saturating_sub(used), key }
}
