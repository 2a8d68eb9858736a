//! The worker: a process that loads one kernel and calls it on karve's request.
//!
//! It runs the code of a candidate in its own address space, so it is not trusted: karve itself
//! reads and checks everything that matters. It exists to be frozen, watched and discarded.

use super::protocol::{
    BatchExtra, CallSetup, CallSlot, FLAG_MODE_CHANGED, MESSAGE_BYTES_MAX, WireArg, WorkerHello,
    WorkerReply, WorkerRequest, WorkerTiming,
};
use super::worker_text::refusal;
use karve_numerics::contract::SlotRange;
use karve_os::gpu::{ClockOptions, DeviceBatch, GpuClock, GpuError};
use karve_os::native::{
    CallRegisters, EntryPoint, LoadFailure, MappingAccess, RegisterList, WorkerMemory,
};
use karve_os::process::{self, ReadableTree};
use karve_os::{native, plain_work};
use std::cell::{Cell, OnceCell};
use std::ffi::{CStr, CString};
use std::os::fd::OwnedFd;
use std::time::Instant;

/// A worker that has loaded its kernel.
struct LoadedKernel {
    entry: EntryPoint,
    /// What prepares for calls, and what it left for each slot.
    setup_entry: Option<EntryPoint>,
    states: Vec<Cell<usize>>,
    input: WorkerMemory,
    output: WorkerMemory,
    /// What the kernel runs on, if not the host.
    device: Option<GpuClock>,
    setup: Option<PreparedCall>,
    /// Iterations of plain work per nanosecond, once needed.
    spin_rate: OnceCell<f64>,
}

/// Arguments that lack only their addresses.
struct PreparedCall {
    registers: CallRegisters,
    /// Which integer is a pointer, into which memory, and its offset from the start of the slot.
    pointers: Vec<(usize, BufferSide, u64)>,
    input_stride: u64,
    output_stride: u64,
}

#[derive(Clone, Copy)]
enum BufferSide {
    Input,
    Output,
    /// What the setup left, or where it leaves it.
    State(CallPurpose),
}

/// What is called.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CallPurpose {
    Kernel,
    Setup,
}

/// Handles requests until karve closes the connection.
pub fn serve() {
    serve_after(process::give_up);
}

/// For the tests of the cheats: the same without the seccomp and Landlock profile, which shows what
/// a cheat could do if it were not for that. No command starts it.
#[doc(hidden)]
pub fn serve_unconfined() {
    serve_after(|_, _| ());
}

/// What happens to the process before it loads a kernel from this path of this tree.
type Confinement = fn(&CStr, &ReadableTree);

fn serve_after(confine: Confinement) {
    let mut buffer = vec![0; MESSAGE_BYTES_MAX];
    let mut worker: Option<LoadedKernel> = None;
    while let Ok((bytes, fds)) = native::receive(&mut buffer) {
        if bytes == 0 {
            return;
        }
        let Ok((nonce, question)) = WorkerRequest::parse(&buffer[..bytes]) else {
            return;
        };
        let answer = match (question, &mut worker) {
            (WorkerRequest::Hello(hello), None) => match LoadedKernel::new(&hello, &fds, confine) {
                Ok(made) => {
                    worker = Some(made);
                    WorkerReply::Done
                }
                Err(why) => WorkerReply::Failed(why),
            },
            // A shared object has nothing to prepare, and writes to karve's memory itself.
            (WorkerRequest::Ping | WorkerRequest::Fill { .. } | WorkerRequest::Fetch, _) => {
                WorkerReply::Done
            }
            (WorkerRequest::Fence(fences), Some(worker)) => match worker.fence(&fences) {
                Ok(()) => WorkerReply::Done,
                Err(why) => WorkerReply::Failed(why),
            },
            (WorkerRequest::Setup(setup), Some(worker)) => match worker.prepare(&setup) {
                Ok(()) => WorkerReply::Done,
                Err(why) => WorkerReply::Failed(why),
            },
            (WorkerRequest::Batch { slots, extra }, Some(worker)) => worker.batch(&slots, extra),
            (_, _) => WorkerReply::Failed("order".into()),
        };
        if native::answer(&answer.render(nonce)).is_err() {
            return;
        }
    }
}

impl LoadedKernel {
    fn new(hello: &WorkerHello, fds: &[OwnedFd], confine: Confinement) -> Result<Self, String> {
        let name = |text: &str| CString::new(text).map_err(|_| "a name with a zero".to_owned());
        let (path, entry) = (name(&hello.path)?, name(&hello.entry)?);
        // Before the driver of a device starts threads of its own.
        confine(&path, &hello.tree);
        let (device, [input, output]) = match &hello.device {
            None => (None, mapped(hello, fds)?),
            Some(on) => {
                let options = ClockOptions { captures: on.captures, warms: on.warms };
                let mut clock = GpuClock::open(options).map_err(fault)?;
                let mut open = |at: usize, bytes: u64| {
                    let address = clock.open_shared(&on.handles[at], bytes).map_err(fault)?;
                    Ok::<_, String>(WorkerMemory::on_device(address, bytes))
                };
                let memory = [open(0, hello.input_bytes)?, open(1, hello.output_bytes)?];
                (Some(clock), memory)
            }
        };
        // From here on, candidate code runs.
        let entry = native::load(&path, &entry).map_err(|failure| refused_by_loader(&failure))?;
        let setup_entry = match &hello.setup {
            None => None,
            Some(setup) => {
                let loaded = native::load(&path, &name(setup)?);
                Some(loaded.map_err(|failure| match failure {
                    LoadFailure::Entry(said) => refusal("setup", &said),
                    LoadFailure::Library(_) => refused_by_loader(&failure),
                })?)
            }
        };
        Ok(Self {
            entry,
            setup_entry,
            states: Vec::new(),
            input,
            output,
            device,
            setup: None,
            spin_rate: OnceCell::new(),
        })
    }

    /// Takes the arguments of following calls, and prepares for them.
    fn prepare(&mut self, setup: &CallSetup) -> Result<(), String> {
        let calls = [CallPurpose::Setup, CallPurpose::Kernel]
            .map(|purpose| PreparedCall::new(setup, purpose, self.device.as_ref()));
        let [of_setup, of_kernel] = calls;
        if let Some(entry) = &self.setup_entry {
            let of_setup = of_setup?;
            // A slot keeps what it has, so that a setup can use its memory again.
            let wanted = self.states.len().max(setup.prepared_slots as usize);
            self.states.resize_with(wanted, Cell::default);
            for slot in 0..setup.prepared_slots {
                let call = of_setup.call(self, CallSlot { input: slot, output: slot });
                entry.call(&call.ok_or("a slot outside the memory")?);
            }
            if let Some(device) = &self.device {
                device.gpu.synchronize().map_err(fault)?;
            }
        }
        self.setup = Some(of_kernel?);
        Ok(())
    }

    fn fence(&self, [input, output]: &[Vec<SlotRange>; 2]) -> Result<(), String> {
        let fenced = self.input.fence(input).and_then(|()| self.output.fence(output));
        fenced.map_err(|error| refusal("memory", &error.to_string()))
    }

    fn batch(&self, slots: &[CallSlot], extra: BatchExtra) -> WorkerReply {
        let Some(setup) = &self.setup else {
            return WorkerReply::Failed("a batch before its arguments".into());
        };
        let mut calls = Vec::with_capacity(slots.len());
        for slot in slots {
            let Some(call) = setup.call(self, *slot) else {
                return WorkerReply::Failed("a slot outside the memory".into());
            };
            calls.push(call);
        }
        let mode = native::floating_point_mode();
        let spin = match (&self.device, extra.spin_ns) {
            (Some(_), _) | (None, 0) => 0,
            (None, ns) => (ns as f64 * self.spin_rate.get_or_init(plain_work::rate)) as u64,
        };
        let start = Instant::now();
        let call_all = || {
            for call in &calls {
                self.entry.call(call);
                match &self.device {
                    _ if extra.spin_ns == 0 => {}
                    Some(device) => device.spin(extra.spin_ns)?,
                    None => plain_work::work(spin),
                }
            }
            Ok(())
        };
        let timed = match &self.device {
            None => call_all().map(|()| DeviceBatch { device_ns: 0, launch_ns: 0 }),
            Some(device) => device.time(extra.cover_ns, call_all),
        };
        let DeviceBatch { device_ns, launch_ns } = match timed {
            Ok(times) => times,
            Err(error) => return WorkerReply::Failed(fault(error)),
        };
        let wall_ns = start.elapsed().as_nanos() as u64;
        let changed = native::floating_point_mode() != mode;
        WorkerReply::Finished(WorkerTiming {
            wall_ns,
            launch_ns,
            flags: if changed { FLAG_MODE_CHANGED } else { 0 },
            device_ns,
        })
    }
}

/// The memory that karve shares, mapped.
fn mapped(hello: &WorkerHello, fds: &[OwnedFd]) -> Result<[WorkerMemory; 2], String> {
    let [input, output] = fds else {
        return Err(refusal("memory", "the memory did not arrive"));
    };
    let map = |fd: &OwnedFd, bytes: u64, access| {
        WorkerMemory::new(fd, bytes as usize, access)
            .map_err(|error| refusal("memory", &error.to_string()))
    };
    Ok([
        map(input, hello.input_bytes, MappingAccess::Read)?,
        map(output, hello.output_bytes, MappingAccess::Write)?,
    ])
}

/// A failure of the device in this process.
fn fault(error: GpuError) -> String {
    refusal(&format!("fault\t{}", error.code), &error.text)
}

/// Why a shared object cannot be used.
pub(super) fn refused_by_loader(failure: &LoadFailure) -> String {
    match failure {
        LoadFailure::Library(said) => refusal(kind_of(said), said),
        LoadFailure::Entry(said) => refusal("entry", said),
    }
}

/// The kind of a message of the loader.
fn kind_of(said: &str) -> &'static str {
    match said {
        said if said.contains("undefined symbol") => "symbol",
        said if said.contains("No such file") => "missing",
        _ => "library",
    }
}

impl PreparedCall {
    fn new(
        setup: &CallSetup,
        purpose: CallPurpose,
        device: Option<&GpuClock>,
    ) -> Result<Self, String> {
        let (mut list, mut pointers) = (RegisterList::default(), Vec::new());
        if setup.prepared_slots > 0 {
            let at = list.integer(0).ok_or("too many arguments")?;
            pointers.push((at, BufferSide::State(purpose), 0));
        }
        for given in &setup.args {
            let placed = match given {
                WireArg::Input(_) | WireArg::Output(_) | WireArg::InOut(_)
                    if purpose == CallPurpose::Setup =>
                {
                    continue;
                }
                WireArg::Prepared(_) if purpose == CallPurpose::Kernel => continue,
                WireArg::Float { bits, single } => list.float(f64::from_bits(*bits), *single),
                WireArg::Integer { value } => list.integer(*value as usize).map(drop),
                WireArg::Input(tensor) | WireArg::Prepared(tensor) => {
                    list.integer(0).map(|at| pointers.push((at, BufferSide::Input, tensor.offset)))
                }
                WireArg::Output(tensor) | WireArg::InOut(tensor) => {
                    list.integer(0).map(|at| pointers.push((at, BufferSide::Output, tensor.offset)))
                }
            };
            placed.ok_or("too many arguments")?;
        }
        if let Some(device) = device {
            list.integer(device.stream() as usize).ok_or("too many arguments")?;
        }
        Ok(Self {
            registers: list.registers,
            pointers,
            input_stride: setup.input_stride,
            output_stride: setup.output_stride,
        })
    }

    fn call(&self, worker: &LoadedKernel, slot: CallSlot) -> Option<CallRegisters> {
        let mut registers = self.registers;
        for (index, side, offset) in &self.pointers {
            let address = match side {
                BufferSide::Input => {
                    let start = self.input_stride.checked_mul(u64::from(slot.input))?;
                    worker.input.address(start.checked_add(*offset)?)
                }
                BufferSide::Output => {
                    let start = self.output_stride.checked_mul(u64::from(slot.output))?;
                    worker.output.address(start.checked_add(*offset)?)
                }
                BufferSide::State(purpose) => {
                    let state = worker.states.get(slot.input as usize)?;
                    Some(match purpose {
                        CallPurpose::Kernel => state.get(),
                        CallPurpose::Setup => state.as_ptr() as usize,
                    })
                }
            };
            registers.integers[*index] = address?;
        }
        Some(registers)
    }
}
