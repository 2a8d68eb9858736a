//! The worker for kernels in Python: a library that the interpreter loads before any code of a
//! candidate, and that never gives control back.
//!
//! It holds the socket, the memory, the clock and the loop that calls the kernel, and it checks and
//! copies the results. It calls Python for the kernel, and otherwise only what is implemented in C:
//! objects of a candidate's interpreter can be changed by the candidate, machine code cannot be
//! without leaving Python. It keeps the interpreter's lock, so no other thread runs Python code
//! unless the kernel is called. On a device, karve's memory is opened instead of mapped, events of
//! the driver time a batch, and results are copied after it.
//!
//! `crates/os/build.rs` compiles it, and worker.py in `crates/harness/src/runner` loads it. The
//! messages are those of protocol.rs there.

mod api;
mod arguments;
#[path = "../src/gpu/clock.rs"]
mod clock;
#[allow(dead_code, reason = "shared with karve's own process, which does more there")]
#[path = "../src/gpu/cuda.rs"]
mod cuda;
mod dlpack;
#[path = "../src/float_mode.rs"]
mod float_mode;
mod host;
#[path = "../src/plain_work.rs"]
mod plain_work;
mod results;
mod torch;

use api::{Attempt, PyRef, PythonFailure, RawObject, refused};
use arguments::{ArgObjects, CallPlan, NumpyCalls, PreparedSlot, ReadyCall, ResultTarget};
use clock::{ClockOptions, DeviceBatch, GpuClock};
use cuda::GpuError;
use dlpack::DlPlace;
use host::SharedMapping;
use results::ResultCheck;
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use torch::{NativeKinds, TorchCalls};

/// Maximum size of a message, in bytes.
const MESSAGE_BYTES_MAX: usize = 128 << 10;

/// The rounding mode of the worker's thread has changed.
const FLAG_MODE_CHANGED: u32 = 1;
/// A result is an input, part of one, or in the memory of another result.
const FLAG_ALIAS: u32 = 2;

/// The youngest generations of the garbage collector, which runs at the end of a batch.
const COLLECTED: i64 = 1;

/// Set once: a candidate that finds the library cannot serve a second time.
static SERVES: AtomicBool = AtomicBool::new(false);

/// Handles requests until karve closes the connection. It takes a tuple from worker.py, and does
/// not return. For `ctypes.PyDLL` only, which holds the interpreter's lock.
// SAFETY: no other function of this name is in the process.
#[unsafe(no_mangle)]
extern "C" fn karve_serve(given: *mut RawObject) {
    if SERVES.swap(true, Ordering::SeqCst) {
        return;
    }
    let given = PyRef::borrowed(given).and_then(|given| given.items().ok().flatten());
    let Some(given) = given.and_then(StartValues::of) else {
        return;
    };
    let nonce = given.nonce;
    let why = given.why.clone();
    let mut worker = PythonWorker::start(given);
    let mut alive = match &worker {
        Ok(_) => answer(b'd', nonce, &[]),
        Err(failure) => answer(b'e', nonce, explain(failure, &why).as_bytes()),
    };
    let mut buffer = vec![0; MESSAGE_BYTES_MAX];
    while alive {
        let n = host::receive(&mut buffer);
        let Some((kind, nonce, body)) = parse(&buffer[..n]) else {
            break;
        };
        alive = match worker.as_mut().map_err(|_| out_of_order()).and_then(|w| w.act(kind, body)) {
            Ok(Some(timing)) => answer(b'f', nonce, &timing.render()),
            Ok(None) => answer(b'd', nonce, &[]),
            Err(failure) => {
                let text = explain(&failure, &why);
                let device = worker.as_ref().ok().and_then(|worker| worker.device.as_ref());
                answer(b'e', nonce, by_device(device, text).as_bytes())
            }
        };
    }
    host::end()
}

/// What worker.py gives: all of it is from before the candidate is loaded.
struct StartValues {
    nonce: u64,
    /// The descriptors and sizes of both memories.
    memory: [i64; 4],
    /// What both are opened with, if they are on a device.
    handles: Vec<PyRef>,
    options: ClockOptions,
    numpy: NumpyCalls,
    kinds: NativeKinds,
    stop_collecting: PyRef,
    collect: PyRef,
    /// Loads the module, and returns its function and what prepares for calls, or `None`.
    load: PyRef,
    /// Makes the text of an exception.
    why: PyRef,
}

impl StartValues {
    fn of(given: Vec<PyRef>) -> Option<Self> {
        let [numbers, handles, ndarray, dtypes, kinds, stop_collecting, collect, load, why] =
            <[PyRef; 9]>::try_from(given).ok()?;
        let [function, method, module] = <[PyRef; 3]>::try_from(kinds.items().ok()??).ok()?;
        let numbers: Option<Vec<i64>> =
            numbers.items().ok()??.iter().map(|number| number.integer().ok()).collect();
        let [nonce, input_fd, input_bytes, output_fd, output_bytes, captures, warms] = numbers?[..]
        else {
            return None;
        };
        Some(Self {
            nonce: nonce as u64,
            memory: [input_fd, input_bytes, output_fd, output_bytes],
            handles: handles.items().ok()??,
            options: ClockOptions { captures: captures != 0, warms: warms != 0 },
            numpy: NumpyCalls::new(ndarray, &dtypes)?,
            kinds: NativeKinds { function, method, module },
            stop_collecting,
            collect,
            load,
            why,
        })
    }
}

/// A loaded module, and karve's memory.
struct PythonWorker {
    memory: [SharedMapping; 2],
    device: Option<GpuClock>,
    numpy: NumpyCalls,
    torch: Option<TorchCalls>,
    function: PyRef,
    /// What prepares for calls, and what it left for each slot.
    setup: Option<PyRef>,
    prepared: Vec<PreparedSlot>,
    plan: Option<CallPlan>,
    /// Calls that only have to be made.
    calls: Vec<ReadyCall>,
    /// What calls on a device returned, and where it goes.
    returned: Vec<(Vec<ResultTarget>, PyRef)>,
    stop_collecting: PyRef,
    collect: PyRef,
    /// The rounding mode after the module was loaded.
    mode: u32,
    /// Iterations of plain work per nanosecond, once needed.
    spin_rate: OnceCell<f64>,
    /// Whether a result of the last batch was not an array of its own.
    is_alias: Cell<bool>,
}

/// A failure, named after the error of the device that stays there, if one does: what a library
/// raises then says little.
fn by_device(device: Option<&GpuClock>, text: String) -> String {
    match device.map(|device| device.gpu.synchronize()) {
        Some(Err(error)) if !text.starts_with("fault\t") => {
            format!("fault\t{}\n{error}\n{text}", error.code)
        }
        _ => text,
    }
}

impl From<GpuError> for PythonFailure {
    fn from(error: GpuError) -> Self {
        Self::Refused(format!("fault\t{}\n{error}", error.code))
    }
}

/// Clock readings of a batch.
#[derive(Clone, Copy, Default)]
struct BatchClocks {
    wall_ns: u64,
    launch_ns: u64,
    flags: u32,
    device_ns: u64,
}

impl BatchClocks {
    fn render(self) -> Vec<u8> {
        let mut body = self.wall_ns.to_le_bytes().to_vec();
        body.extend(self.launch_ns.to_le_bytes());
        body.extend(self.flags.to_le_bytes());
        body.extend(self.device_ns.to_le_bytes());
        body
    }
}

impl PythonWorker {
    fn start(given: StartValues) -> Attempt<Self> {
        let [input_fd, input_bytes, output_fd, output_bytes] = given.memory;
        let sizes = [input_bytes as usize, output_bytes as usize];
        let mut device = match given.handles.is_empty() {
            true => None,
            false => Some(GpuClock::open(given.options)?),
        };
        let memory = match &mut device {
            None => {
                let map = |fd: i64, bytes: usize, is_writable| {
                    let mapping = SharedMapping::new(fd as i32, bytes, is_writable);
                    mapping.map_or_else(|| refused("memory"), Ok)
                };
                [map(input_fd, sizes[0], false)?, map(output_fd, sizes[1], true)?]
            }
            Some(device) => {
                let mut open = |at: usize| {
                    let text = given.handles.get(at).and_then(PyRef::text).unwrap_or_default();
                    let address = device.open_shared(&text, sizes[at] as u64)?;
                    Ok::<_, PythonFailure>(SharedMapping::on_device(address, sizes[at]))
                };
                [open(0)?, open(1)?]
            }
        };
        // From here on, candidate code runs.
        let loaded = given.load.call(&PyRef::tuple(Vec::new())?)?.items()?.unwrap_or_default();
        let Ok([function, setup]) = <[PyRef; 2]>::try_from(loaded) else {
            return refused("order");
        };
        let setup = Some(setup).filter(|setup| !setup.is_none());
        if !function.is_callable() {
            return refused("function");
        }
        let place = if device.is_some() { DlPlace::Device } else { DlPlace::Host };
        let torch = TorchCalls::find(&given.kinds, place)?;
        if let (Some(device), Some(torch)) = (&device, &torch) {
            torch.use_stream(&given.kinds, device.stream())?;
        }
        given.stop_collecting.call(&PyRef::tuple(Vec::new())?)?;
        Ok(Self {
            memory,
            device,
            numpy: given.numpy,
            torch,
            function,
            setup,
            prepared: Vec::new(),
            plan: None,
            calls: Vec::new(),
            returned: Vec::new(),
            stop_collecting: given.stop_collecting,
            collect: given.collect,
            mode: float_mode::floating_point_mode(),
            spin_rate: OnceCell::new(),
            is_alias: Cell::new(false),
        })
    }

    fn act(&mut self, kind: u8, body: &[u8]) -> Attempt<Option<BatchClocks>> {
        match kind {
            b'P' => {}
            b'S' => {
                self.calls.clear();
                let plan = CallPlan::parse(body, &self.numpy, self.torch.as_ref())?;
                self.prepare(&plan)?;
                self.plan = Some(plan);
            }
            b'I' => self.fill(body)?,
            b'B' => return self.batch(body).map(Some),
            b'O' => self.fetch()?,
            b'F' => self.fence(body)?,
            _ => return refused("order"),
        }
        Ok(None)
    }

    fn objects(&self) -> ArgObjects<'_> {
        ArgObjects {
            memory: &self.memory,
            is_on_device: self.device.is_some(),
            numpy: &self.numpy,
            torch: self.torch.as_ref(),
        }
    }

    /// Calls the setup for every slot, if there is one.
    fn prepare(&mut self, plan: &CallPlan) -> Attempt<()> {
        self.prepared.clear();
        let Some(setup) = &self.setup else {
            return Ok(());
        };
        let objects = self.objects();
        let prepared = (0..plan.prepared_slots).map(|slot| plan.set_up(setup, slot, &objects));
        self.prepared = prepared.collect::<Attempt<_>>()?;
        match &self.device {
            Some(device) => Ok(device.gpu.synchronize()?),
            None => Ok(()),
        }
    }

    /// Everything that is not timed: the objects of the arguments.
    fn fill(&mut self, body: &[u8]) -> Attempt<()> {
        self.calls.clear();
        let (Some(plan), (&[place, ref slots @ ..], [])) = (&self.plan, body.as_chunks::<8>())
        else {
            return refused("order");
        };
        let place = u64::from_le_bytes(place);
        if place != 0 && self.device.is_none() {
            let secrets = [place, place.rotate_left(32)];
            let moved = self.memory.iter_mut().zip(secrets).all(|(one, at)| one.relocate(at));
            if !moved {
                return refused("memory");
            }
        }
        let objects = self.objects();
        let mut calls = Vec::with_capacity(slots.len());
        for [a, b, c, d, e, f, g, h] in slots {
            let at = [[*a, *b, *c, *d], [*e, *f, *g, *h]].map(u32::from_le_bytes);
            calls.push(plan.prepare(at, &objects, &self.prepared)?);
        }
        self.calls = calls;
        Ok(())
    }

    /// Makes parts of both memories inaccessible: the number of those in the inputs, and the start
    /// and end of each.
    fn fence(&self, body: &[u8]) -> Attempt<()> {
        let (Some((of_input, ends)), None) = (body.split_first_chunk(), &self.device) else {
            return refused("order");
        };
        let ends = ends.as_chunks().0.iter().map(|end| u64::from_le_bytes(*end));
        let ends: Vec<u64> = ends.collect();
        let ranges = ends.as_chunks::<2>().0;
        let of_input = u64::from_le_bytes(*of_input) as usize;
        let [input, output] = &self.memory;
        match ranges.split_at_checked(of_input) {
            Some((first, rest)) if input.fence(first) && output.fence(rest) => Ok(()),
            _ => refused("memory"),
        }
    }

    /// Calls the kernel once for each prepared call.
    fn batch(&mut self, body: &[u8]) -> Attempt<BatchClocks> {
        let (spin_ns, rest) = body.split_first_chunk().ok_or_else(out_of_order)?;
        let (cover_ns, rest) = rest.split_first_chunk().ok_or_else(out_of_order)?;
        let (alive, slots) = rest.split_first_chunk().ok_or_else(out_of_order)?;
        let [spin_ns, cover_ns, alive] =
            [spin_ns, cover_ns, alive].map(|number| u64::from_le_bytes(*number));
        if slots.len() / 8 != self.calls.len() {
            return refused("order");
        }
        let start = Instant::now();
        let DeviceBatch { device_ns, launch_ns } = match self.device {
            None => self.call_on_host(spin_ns, alive as usize)?,
            Some(_) => self.call_on_device(spin_ns, cover_ns)?,
        };
        self.collect_garbage()?;
        let wall_ns = start.elapsed().as_nanos() as u64;
        let changed = float_mode::floating_point_mode() != self.mode;
        let flags = if changed { FLAG_MODE_CHANGED } else { 0 };
        let flags = if self.is_alias.take() { flags | FLAG_ALIAS } else { flags };
        Ok(BatchClocks { wall_ns, launch_ns, flags, device_ns })
    }

    /// Collects what the calls left, in the timed part, since that may run code of the candidate;
    /// and nothing until the next batch, even if the kernel wants that.
    fn collect_garbage(&self) -> Attempt<()> {
        self.collect.call_with(&[&PyRef::of_integer(COLLECTED)?])?;
        self.stop_collecting.call(&PyRef::tuple(Vec::new())?).map(drop)
    }

    /// What checks results, of which those of some calls before stay alive.
    fn check(&self, alive: usize) -> Attempt<ResultCheck<'_>> {
        let Some(plan) = &self.plan else {
            return refused("order");
        };
        Ok(ResultCheck {
            plan,
            numpy: &self.numpy,
            torch: self.torch.as_ref(),
            gpu: self.device.as_ref().map(|device| &device.gpu),
            spans: RefCell::default(),
            alive,
            inputs: self.memory[0].span(),
            is_alias: Cell::new(false),
        })
    }

    fn call_on_host(&mut self, spin_ns: u64, alive: usize) -> Attempt<DeviceBatch> {
        let spin = match spin_ns {
            0 => 0,
            ns => (ns as f64 * self.spin_rate.get_or_init(plain_work::rate)) as u64,
        };
        let calls = std::mem::take(&mut self.calls);
        let check = self.check(alive.max(1))?;
        // Arguments and results end here, in the timed part; a result lives until the next one is
        // there, as one that its caller uses, or as long as karve asks for.
        let mut living = VecDeque::with_capacity(check.alive + 1);
        for call in calls {
            let result = self.function.call(&call.args)?;
            check.put(&call.targets, &result)?;
            living.push_front(result);
            living.truncate(check.alive);
            drop(call);
            if spin > 0 {
                plain_work::work(spin);
            }
        }
        self.is_alias.set(check.is_alias.get());
        Ok(DeviceBatch { device_ns: 0, launch_ns: 0 })
    }

    /// The same on a device, without waiting for it between calls. Returns the time there.
    fn call_on_device(&mut self, spin_ns: u64, cover_ns: u64) -> Attempt<DeviceBatch> {
        let calls = std::mem::take(&mut self.calls);
        let (Some(device), function) = (&self.device, &self.function) else {
            return refused("order");
        };
        let mut returned = Vec::with_capacity(calls.len());
        self.returned.clear();
        let timed = device.time(cover_ns, || {
            for call in calls {
                let result = function.call(&call.args)?;
                returned.push((call.targets, result));
                if spin_ns > 0 {
                    device.spin(spin_ns)?;
                }
            }
            Ok::<(), PythonFailure>(())
        });
        self.returned = returned;
        timed
    }

    /// Copies what the calls on a device returned to karve's memory.
    fn fetch(&mut self) -> Attempt<()> {
        let returned = std::mem::take(&mut self.returned);
        let check = self.check(returned.len())?;
        for (targets, result) in &returned {
            check.put(targets, result)?;
        }
        match &self.device {
            Some(device) => Ok(device.gpu.synchronize()?),
            None => Ok(()),
        }
    }
}


/// The code of a failure with its arguments, and all of it for the user.
fn explain(failure: &PythonFailure, why: &PyRef) -> String {
    match failure {
        PythonFailure::Refused(code) => code.clone(),
        PythonFailure::Raised => {
            let text = api::take_error().and_then(|error| why.call_with(&[&error]).ok()?.text());
            api::clear_error();
            text.unwrap_or_else(|| "raised\tException\t0".into())
        }
    }
}

fn out_of_order() -> PythonFailure {
    PythonFailure::Refused("order".into())
}

fn parse(message: &[u8]) -> Option<(u8, u64, &[u8])> {
    let (kind, rest) = message.split_first()?;
    let (nonce, body) = rest.split_first_chunk()?;
    Some((*kind, u64::from_le_bytes(*nonce), body))
}

fn answer(kind: u8, nonce: u64, body: &[u8]) -> bool {
    let mut message = vec![kind];
    message.extend(nonce.to_le_bytes());
    message.extend(&body[..body.len().min(MESSAGE_BYTES_MAX - message.len())]);
    host::reply(&message)
}
