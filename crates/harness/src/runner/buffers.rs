//! The buffers of both arms: inputs and outputs, one case at a time, one slot for each call.
//!
//! karve draws the inputs from a secret seed, again for every call, into memory that the workers
//! can only read. Outputs are poisoned before a call, so that unwritten memory does not look like
//! a result, and are surrounded by guards that no honest kernel touches. On a device, the same
//! happens there.

mod device;
mod host;

pub(super) use device::{DeviceOutput, parts_of, tensors_at};

use super::memory::{ArmMemory, InputSharing, MemoryPlace, MemorySizes, gpu_failed};
use super::protocol::CallSlot;
use super::setup::RunnerSetup;
use karve_numerics::case::Case;
use karve_numerics::contract::{
    Arg, CacheState, CallInputs, CallLayout, ChosenPattern, Contract, TensorEdge,
};
use karve_numerics::draw::{self, Draw, Poison};
use karve_numerics::stats::DrawRng;
use karve_os::error::{CommandError, Result};
use karve_os::gpu::{GpuAddress, GpuMemory, GpuResult, GpuTensor, SharedStage};
use karve_os::native::page_bytes;
use karve_os::random::secret;
use std::collections::BTreeSet;
use std::time::Duration;

/// Maximum bytes of the inputs, and of the outputs of one arm, unless a single call needs more.
const MEMORY_BYTES_MAX: u64 = 128 << 20;

/// The same on a device, which is faster, so a batch needs more calls.
const DEVICE_BYTES_MAX: u64 = 2 << 30;

/// Slots beyond those of one batch, so that a call does not reuse the addresses of the last one;
/// and if they are larger than this many bytes.
const SPARE_SLOTS: u32 = 3;
const LARGE_SLOT_BYTES: u64 = 4 << 20;
const SPARE_LARGE_SLOTS: u32 = 1;

/// Inputs and the layout of everything.
#[derive(Debug)]
pub(super) struct KernelBuffers {
    contract: Contract,
    memory: ArmMemory,
    layout: CallLayout,
    /// The calls in one batch of each case.
    batches: Vec<(String, u32)>,
    /// The slots of the current case; no other memory is in use.
    n_slots: u32,
    /// Bytes that the slots may have, so that they stay in the cache.
    cached_bytes: u64,
    /// The secret of what is in the slots that a batch leaves out.
    spare_seed: u64,
    /// On a device, sums over what no kernel may write to.
    sums: device::MemorySums,
    /// Patterns that some of the calls have in their inputs.
    patterns: Vec<ChosenPattern>,
    /// Which ones these are.
    pick: u64,
}

/// One call: where, and from which seed.
#[derive(Clone, Copy, Debug)]
pub(super) struct KernelCall {
    /// The slot, the same in both memories.
    pub(super) slot: u32,
    /// The secret of this call.
    pub(super) seed: u64,
    /// The pattern of its inputs; none if they are nominal.
    pub(super) pattern: Option<ChosenPattern>,
    /// What the outputs are poisoned with.
    pub(super) poison: PoisonKind,
}

/// What outputs are poisoned with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PoisonKind {
    /// Values that are never a result.
    Nan,
    /// Values that could be a result.
    Plausible,
    /// Random bits.
    Pattern,
}

/// The contract, the layout and the slots of the current case, and the key of checksums.
#[derive(Clone, Copy)]
struct BufferView<'a> {
    contract: &'a Contract,
    layout: &'a CallLayout,
    n_slots: u32,
    key: u64,
}

impl BufferView<'_> {
    /// What an argument of a call is drawn from. What the setup gets is the same in all calls.
    fn inputs(&self, call: &KernelCall, index: usize) -> CallInputs {
        match self.contract.is_prepared(index) {
            true => CallInputs { seed: self.key ^ PREPARED_STREAM, pattern: None },
            false => CallInputs { seed: call.seed, pattern: call.pattern },
        }
    }
}

impl PoisonKind {
    /// The poison itself; a plausible one is drawn from this.
    fn with(self, of: &Draw) -> Poison<'_> {
        match self {
            Self::Nan => Poison::Nan,
            Self::Plausible => Poison::Plausible { of },
            Self::Pattern => Poison::Pattern,
        }
    }

    /// One of them, by a secret.
    pub(super) fn of(secret: u64) -> Self {
        match secret % 3 {
            0 => Self::Nan,
            1 => Self::Plausible,
            _ => Self::Pattern,
        }
    }
}

impl KernelCall {
    fn at(&self) -> usize {
        self.slot as usize
    }

    fn poison_seed(&self, index: usize) -> u64 {
        self.seed ^ POISON_STREAM ^ index as u64
    }

    /// The request for a worker.
    pub(super) fn slot(&self) -> CallSlot {
        CallSlot { input: self.slot, output: self.slot }
    }
}

/// The stream of the guards and of poison.
const POISON_STREAM: u64 = 1 << 32;

/// The stream of what the setup gets.
const PREPARED_STREAM: u64 = 1 << 33;

impl KernelBuffers {
    /// Memory for some cases, with this many calls in one batch for each.
    pub(super) fn new(terms: &RunnerSetup, cases: &[(&Case, u32)]) -> Result<Self> {
        let contract = &terms.contract;
        let sizes = sizes_of(contract, cases)?;
        let (first, calls) =
            cases.first().ok_or_else(|| CommandError::environment("there is no case"))?;
        let layout = layout_of(contract, first)?;
        let stage = terms.stage()?;
        let cached_bytes = cached_bytes(contract, stage.as_ref()).map_err(gpu_failed)?;
        let sharing = InputSharing::Shared;
        let memory = ArmMemory::timed(sizes, stage.as_ref(), contract.timing, sharing)?;
        let most = if memory.is_large()? { 1 } else { slots_in(&layout, cached_bytes) };
        let n_slots = slots_of(contract, &layout, *calls).min(most);
        let pick = secret()?;
        Ok(Self {
            patterns: contract.timed_patterns(pick),
            pick,
            contract: contract.clone(),
            memory,
            cached_bytes,
            layout,
            batches: cases.iter().map(|(case, calls)| (case.name.clone(), *calls)).collect(),
            n_slots,
            spare_seed: secret()?,
            sums: device::MemorySums::default(),
        })
    }

    fn view(&self) -> BufferView<'_> {
        let (contract, layout) = (&self.contract, &self.layout);
        BufferView { contract, layout, n_slots: self.n_slots, key: self.spare_seed }
    }

    /// What draws and compares on a device.
    pub(super) fn stage(&self) -> Option<&SharedStage> {
        match &self.memory.place {
            MemoryPlace::Host(_) => None,
            MemoryPlace::Device(device) => Some(&device.stage),
        }
    }

    /// The secret key of checksums.
    pub(super) fn key(&self) -> u64 {
        self.spare_seed
    }

    /// The memory that all arms share.
    pub(super) fn memory(&self) -> &ArmMemory {
        &self.memory
    }

    /// The contract with the current distribution of inputs.
    pub(super) fn contract(&self) -> &Contract {
        &self.contract
    }

    /// The layout of everything.
    pub(super) fn layout(&self) -> &CallLayout {
        &self.layout
    }

    /// Sets the case of all following calls, drawn as this contract says.
    pub(super) fn set(&mut self, contract: &Contract, case: &Case) -> Result<()> {
        self.contract.clone_from(contract);
        self.layout = layout_of(contract, case)?;
        let of_case = self.batches.iter().find(|(name, _)| *name == case.name);
        let calls = of_case.map_or(1, |(_, calls)| *calls);
        let most = match self.memory.is_large()? {
            true => 1,
            false => self.slots_max().min(slots_in(&self.layout, self.cached_bytes)),
        };
        self.n_slots = slots_of(contract, &self.layout, calls).min(most);
        self.patterns = contract.timed_patterns(self.pick);
        self.draw_prepared()
    }

    /// Draws what a setup gets, in every slot. The rest is drawn again for every call.
    fn draw_prepared(&mut self) -> Result<()> {
        match self.contract.setup {
            None => Ok(()),
            Some(_) => self.fill(&self.calls(self.n_slots, secret()?)),
        }
    }

    /// The slots of the current case.
    pub(super) fn n_slots(&self) -> u32 {
        self.n_slots
    }

    /// Puts the tensors of following calls next to fences, with one call at a time.
    pub(super) fn set_edge(&mut self, edge: TensorEdge) -> Result<()> {
        self.layout = self.layout.fenced(edge, page_bytes());
        self.n_slots = 1;
        self.draw_prepared()
    }

    /// Calls on nominal inputs from a fresh secret.
    pub(super) fn nominal_calls(&self, n: u32) -> Result<Vec<KernelCall>> {
        let mut calls = self.fresh_calls(n)?;
        calls.iter_mut().for_each(|call| call.pattern = None);
        Ok(calls)
    }

    /// Calls from a fresh secret.
    pub(super) fn fresh_calls(&self, n: u32) -> Result<Vec<KernelCall>> {
        Ok(self.calls(n, secret()?))
    }

    /// Calls in some of the slots, in an order that nobody can predict, each with its own secret;
    /// all of it is derived from one secret, from which the inputs can be reconstructed later.
    pub(super) fn calls(&self, n: u32, root: u64) -> Vec<KernelCall> {
        let drawn = |index: u64| draw::hash64(root, &index.to_le_bytes());
        let mut order: Vec<u32> = (0..self.n_slots).collect();
        let mut draws = DrawRng::new(drawn(u64::MAX));
        for at in 0..n.min(self.n_slots) as usize {
            let other = at + draws.below(order.len() - at);
            order.swap(at, other);
        }
        let call = |index: u32| {
            let seed = drawn(2 * u64::from(index));
            KernelCall {
                slot: order[index as usize],
                seed,
                pattern: ChosenPattern::of(seed, &self.patterns),
                poison: PoisonKind::of(drawn(2 * u64::from(index) + 1)),
            }
        };
        (0..n.min(self.n_slots)).map(call).collect()
    }

    fn slots_max(&self) -> u32 {
        let input = self.memory.sizes.input / self.layout.input_bytes.max(1);
        let output = self.memory.sizes.output / self.layout.output_bytes.max(1);
        input.min(output).clamp(1, u64::from(u32::MAX)) as u32
    }

    /// Draws the inputs of all calls of a batch.
    pub(super) fn fill(&mut self, calls: &[KernelCall]) -> Result<()> {
        let (contract, layout) = (&self.contract, &self.layout);
        let view = BufferView { contract, layout, n_slots: self.n_slots, key: self.spare_seed };
        match &mut self.memory.place {
            MemoryPlace::Host(memory) => host::fill(memory, &view, calls),
            MemoryPlace::Device(memory) => {
                device::fill(memory, &view, calls, &mut self.sums).map_err(gpu_failed)?;
            }
        }
        Ok(())
    }

    /// Prepares the memory that an arm writes: poison, guards, and the contents of what it also
    /// reads. What it only reads is in the same caches for each arm.
    pub(super) fn poison_outputs(&mut self, calls: &[KernelCall]) -> Result<()> {
        let (contract, layout) = (&self.contract, &self.layout);
        let view = BufferView { contract, layout, n_slots: self.n_slots, key: self.spare_seed };
        match &mut self.memory.place {
            MemoryPlace::Host(memory) => {
                host::poison(memory, &view, calls);
                host::touch(memory, &view, calls);
            }
            MemoryPlace::Device(memory) => {
                device::poison(memory, &view, calls, &mut self.sums).map_err(gpu_failed)?;
            }
        }
        Ok(())
    }

    /// Whether nobody wrote to anything but the outputs of these calls.
    pub(super) fn holds(&self, calls: &[KernelCall]) -> Result<bool> {
        match &self.memory.place {
            MemoryPlace::Host(memory) => Ok(host::holds(memory, &self.view(), calls)),
            MemoryPlace::Device(memory) => {
                device::holds(memory, &self.view(), &self.sums).map_err(gpu_failed)
            }
        }
    }

    /// On a device, waits until nothing runs there; returns how long that took, and whether it was
    /// successful.
    pub(super) fn wait_until_idle(&self) -> Result<(Duration, bool)> {
        match &self.memory.place {
            MemoryPlace::Host(_) => Ok((Duration::ZERO, true)),
            MemoryPlace::Device(memory) => device::wait_until_idle(memory).map_err(gpu_failed),
        }
    }

    /// The value that was drawn for an argument of a call, read or written.
    pub(super) fn drawn(&self, index: usize, call: &KernelCall, to: &mut Vec<u8>) -> Result<()> {
        let Some(stage) = self.stage() else {
            host::drawn(&self.view(), index, call, to);
            return Ok(());
        };
        to.clear();
        if let Some((memory, tensor)) = self.drawn_on_device(stage, index, call)? {
            to.resize(memory.bytes() as usize, 0);
            let stage = stage.here().map_err(gpu_failed)?;
            stage.gpu().to_host(tensor.at, to).map_err(gpu_failed)?;
        }
        Ok(())
    }

    /// The same on a device; nothing for what is not drawn.
    pub(super) fn drawn_on_device(
        &self,
        stage: &SharedStage,
        index: usize,
        call: &KernelCall,
    ) -> Result<Option<(GpuMemory, GpuTensor)>> {
        device::drawn(stage, &self.view(), index, call).map_err(gpu_failed)
    }

    /// The same at an address.
    pub(super) fn draw_at(
        &self,
        stage: &SharedStage,
        index: usize,
        call: &KernelCall,
        at: GpuAddress,
    ) -> Result<Option<GpuTensor>> {
        device::draw_at(stage, &self.view(), index, call, at).map_err(gpu_failed)
    }

    /// Copies what the last arm wrote in some calls, into memory that earlier copies had.
    pub(super) fn copy_written(
        &self,
        calls: &[KernelCall],
        to: &mut Vec<CallOutput>,
    ) -> Result<()> {
        match &self.memory.place {
            MemoryPlace::Host(memory) => {
                to.resize_with(calls.len(), || CallOutput::Host(Vec::new()));
                for (call, written) in calls.iter().zip(to) {
                    if let CallOutput::Host(written) = written {
                        host::copy_written(memory, &self.layout, call, written);
                    }
                }
            }
            MemoryPlace::Device(memory) => {
                let earlier = to.iter().find_map(|output| match output {
                    CallOutput::Device(output) => Some(output),
                    CallOutput::Host(_) => None,
                });
                let written = device::copy_written(memory, &self.view(), calls, earlier);
                *to = written.map_err(gpu_failed)?.into_iter().map(CallOutput::Device).collect();
            }
        }
        Ok(())
    }

    /// Whether two calls gave the same bits.
    pub(super) fn same_bits(&self, one: &CallOutput, other: &CallOutput) -> Result<bool> {
        match (&self.memory.place, one, other) {
            (_, CallOutput::Host(one), CallOutput::Host(other)) => Ok(one == other),
            (MemoryPlace::Device(memory), CallOutput::Device(one), CallOutput::Device(other)) => {
                device::same_bits(memory, &self.view(), one, other).map_err(gpu_failed)
            }
            _ => Ok(false),
        }
    }
}

/// The slots that no call of a batch has.
fn spare_slots(n_slots: u32, calls: &[KernelCall]) -> impl Iterator<Item = u32> {
    let used: BTreeSet<u32> = calls.iter().map(|call| call.slot).collect();
    (0..n_slots).filter(move |at| !used.contains(at))
}

/// What an arm wrote in a call.
#[derive(Clone, Debug)]
pub(super) enum CallOutput {
    /// The bytes of every tensor.
    Host(Vec<Vec<u8>>),
    /// A copy on the device.
    Device(DeviceOutput),
}

/// Values that a result might have: like those of the first input.
fn plausible(contract: &Contract) -> Draw {
    let mut inputs = contract.args.iter().filter_map(Arg::draw);
    inputs.next().cloned().unwrap_or(Draw::Uniform { low: -1.0, high: 1.0 })
}

/// How much memory some cases need, with this many calls in one batch for each.
pub(super) fn sizes_of(contract: &Contract, cases: &[(&Case, u32)]) -> Result<MemorySizes> {
    let mut sizes = MemorySizes { input: 0, output: 0 };
    for (case, calls) in cases {
        let layout = layout_of(contract, case)?;
        let n_slots = u64::from(slots_of(contract, &layout, *calls));
        sizes.input = sizes.input.max(layout.input_bytes * n_slots);
        sizes.output = sizes.output.max(layout.output_bytes * n_slots);
        // There are no fences on a device.
        if !contract.is_on_device() {
            let fenced = layout.fenced(TensorEdge::End, page_bytes());
            sizes.input = sizes.input.max(fenced.input_bytes);
            sizes.output = sizes.output.max(fenced.output_bytes);
        }
    }
    Ok(sizes)
}

/// Slots for a batch of this many calls.
fn slots_of(contract: &Contract, layout: &CallLayout, calls: u32) -> u32 {
    let bytes_max = match contract.modules.device {
        None => MEMORY_BYTES_MAX,
        Some(_) => DEVICE_BYTES_MAX,
    };
    let slot = layout.input_bytes.max(layout.output_bytes).max(1);
    let fit = (bytes_max / slot).clamp(1, u64::from(u32::MAX)) as u32;
    let spare = if slot > LARGE_SLOT_BYTES { SPARE_LARGE_SLOTS } else { SPARE_SLOTS };
    calls.saturating_add(spare).min(fit)
}

/// Bytes that all slots together may have, so that they stay in the cache of a device, if the
/// contract wants a warm one: a quarter of it, since each half of the cache may hold all of them,
/// and kernels have outputs of their own.
fn cached_bytes(contract: &Contract, stage: Option<&SharedStage>) -> GpuResult<u64> {
    match (stage, contract.timing.cache) {
        (Some(stage), CacheState::Warm) => Ok(stage.here()?.gpu().cache_bytes()? / 4),
        _ => Ok(u64::MAX),
    }
}

/// Slots that fit into this many bytes.
fn slots_in(layout: &CallLayout, bytes: u64) -> u32 {
    let slot = (layout.input_bytes + layout.output_bytes).max(1);
    (bytes / slot).clamp(1, u64::from(u32::MAX)) as u32
}

/// The layout of everything; an impossible one is an error in the contract.
fn layout_of(contract: &Contract, case: &Case) -> Result<CallLayout> {
    contract.layout(case).map_err(|why| {
        CommandError::usage("the contract does not match a case")
            .cause(why)
            .hint("fix the shapes in [contract] of karve.toml")
    })
}
