//! The buffers in memory that processes map: drawn, poisoned and checked by karve's own process.

use super::{BufferView, KernelCall, plausible, spare_slots};
use crate::runner::memory::HostMemory;
use karve_numerics::contract::{CallLayout, PlacedArg, TensorRegion};
use karve_numerics::draw::{self, Poison};

/// Bytes that processors keep together in caches, at least.
const CACHE_LINE: usize = 64;

/// Draws the inputs of calls.
pub(super) fn fill(memory: &mut HostMemory, view: &BufferView<'_>, calls: &[KernelCall]) {
    let bytes = view.layout.input_bytes;
    let memory = memory.input.part_mut(0, u64::from(view.n_slots) * bytes);
    for (call, slot) in in_slots(memory, bytes, calls).0 {
        fill_slot(view, call, slot);
    }
}

/// Prepares what an arm writes: poison, guards, contents of what it also reads, unused slots.
pub(super) fn poison(memory: &mut HostMemory, view: &BufferView<'_>, calls: &[KernelCall]) {
    let bytes = view.layout.output_bytes;
    let memory = memory.output.part_mut(0, u64::from(view.n_slots) * bytes);
    let (used, spare) = in_slots(memory, bytes, calls);
    for (call, slot) in used {
        poison_slot(view, call, slot);
    }
    // What one arm leaves there, the other must not find.
    for (at, slot) in spare {
        spare_bytes(view.key, at, slot);
    }
}

/// Reads the inputs of calls, so that the next arm finds them in the caches that karve shares with
/// it, whatever the one before did to them.
pub(super) fn touch(memory: &mut HostMemory, view: &BufferView<'_>, calls: &[KernelCall]) {
    let bytes = view.layout.input_bytes;
    let memory = memory.input.part_mut(0, u64::from(view.n_slots) * bytes);
    let mut sum = 0_u8;
    for (_, slot) in in_slots(memory, bytes, calls).0 {
        for byte in slot.iter().step_by(CACHE_LINE) {
            sum = sum.wrapping_add(*byte);
        }
    }
    std::hint::black_box(sum);
}

/// Whether nothing was written but the outputs of these calls.
pub(super) fn holds(memory: &HostMemory, view: &BufferView<'_>, calls: &[KernelCall]) -> bool {
    let holds = |call| guards_hold(memory, view, call) && inputs_hold(memory, view, call);
    calls.iter().all(holds) && spare_slots_hold(memory, view, calls)
}

/// The value that was drawn for an argument of a call, read or written.
pub(super) fn drawn(view: &BufferView<'_>, index: usize, call: &KernelCall, to: &mut Vec<u8>) {
    to.clear();
    if let (PlacedArg::Input(region) | PlacedArg::Output(region), Some(_)) =
        (view.layout.places[index], view.contract.args[index].draw())
    {
        // A build that is not optimized would resize it byte by byte.
        *to = vec![0; region.bytes as usize];
        view.contract.fill(view.layout, index, view.inputs(call, index), to);
    }
}

/// Copies what an arm wrote in a call.
pub(super) fn copy_written(
    memory: &HostMemory,
    layout: &CallLayout,
    call: &KernelCall,
    to: &mut Vec<Vec<u8>>,
) {
    let start = u64::from(call.slot) * layout.output_bytes;
    to.resize_with(layout.outputs().count(), Vec::new);
    for ((_, region), bytes) in layout.outputs().zip(to) {
        memory.output.copy_out(start + region.offset, region.bytes, bytes);
    }
}

/// Whether nobody wrote to the slots that a batch leaves out.
fn spare_slots_hold(memory: &HostMemory, view: &BufferView<'_>, calls: &[KernelCall]) -> bool {
    let bytes = view.layout.output_bytes;
    let mut found = Vec::new();
    spare_slots(view.n_slots, calls).all(|at| {
        memory.output.copy_out(u64::from(at) * bytes, bytes, &mut found);
        let mut wanted = vec![0; found.len()];
        spare_bytes(view.key, at as usize, &mut wanted);
        found == wanted
    })
}

/// Whether the guards around the outputs of a call are unchanged.
fn guards_hold(memory: &HostMemory, view: &BufferView<'_>, call: &KernelCall) -> bool {
    let start = u64::from(call.slot) * view.layout.output_bytes;
    let mut found = Vec::new();
    view.layout.guards().into_iter().all(|(from, to)| {
        memory.output.copy_out(start + from, to - from, &mut found);
        let mut wanted = vec![0; found.len()];
        guard(call, from, &mut wanted);
        found == wanted
    })
}

/// Whether the inputs of a call are unchanged. If the operating system keeps workers from writing
/// there, they are.
fn inputs_hold(memory: &HostMemory, view: &BufferView<'_>, call: &KernelCall) -> bool {
    if memory.sealed {
        return true;
    }
    let start = u64::from(call.slot) * view.layout.input_bytes;
    let (mut found, mut wanted) = (Vec::new(), Vec::new());
    view.layout.places.iter().enumerate().all(|(index, place)| {
        let PlacedArg::Input(region) = place else {
            return true;
        };
        memory.input.copy_out(start + region.offset, region.bytes, &mut found);
        drawn(view, index, call, &mut wanted);
        found == wanted
    })
}

/// The memory of each call, with slots of this many bytes.
type UsedSlots<'a> = Vec<(&'a KernelCall, &'a mut [u8])>;

/// The memory of slots that no call has, by their numbers.
type SpareSlots<'a> = Vec<(usize, &'a mut [u8])>;

fn in_slots<'a>(
    memory: &'a mut [u8],
    bytes: u64,
    calls: &'a [KernelCall],
) -> (UsedSlots<'a>, SpareSlots<'a>) {
    let slots = memory.chunks_exact_mut((bytes as usize).max(1));
    let mut slots: Vec<Option<&mut [u8]>> = slots.map(Some).collect();
    let of_call = |call| Some((call, slots.get_mut(KernelCall::at(call))?.take()?));
    let used = calls.iter().filter_map(of_call).collect();
    let spare = slots.into_iter().enumerate().filter_map(|(at, slot)| Some((at, slot?)));
    (used, spare.collect())
}

fn fill_slot(view: &BufferView<'_>, call: &KernelCall, slot: &mut [u8]) {
    let BufferView { contract, layout, .. } = view;
    for (index, place) in layout.places.iter().enumerate() {
        if let PlacedArg::Input(region) = place {
            contract.fill(layout, index, view.inputs(call, index), &mut slot[range(*region)]);
        }
    }
}

fn poison_slot(view: &BufferView<'_>, call: &KernelCall, slot: &mut [u8]) {
    let BufferView { contract, layout, .. } = view;
    for (from, to) in layout.guards() {
        guard(call, from, &mut slot[from as usize..to as usize]);
    }
    let of = plausible(contract);
    for (index, region) in layout.outputs() {
        let dtype = layout.dtypes[index];
        let part = &mut slot[range(region)];
        if contract.args[index].draw().is_some() {
            contract.fill(layout, index, view.inputs(call, index), part);
        } else {
            draw::poison(call.poison.with(&of), call.poison_seed(index), dtype, part);
        }
    }
}

fn range(region: TensorRegion) -> std::ops::Range<usize> {
    let from = region.offset as usize;
    from..from + region.bytes as usize
}

fn guard(call: &KernelCall, from: u64, part: &mut [u8]) {
    let seed = call.seed ^ from.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    draw::poison(Poison::Pattern, seed, karve_numerics::tensor::Dtype::U8, part);
}

fn spare_bytes(seed: u64, at: usize, slot: &mut [u8]) {
    draw::poison(Poison::Pattern, seed ^ at as u64, karve_numerics::tensor::Dtype::U8, slot);
}
