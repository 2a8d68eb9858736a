//! The driver of NVIDIA's GPUs, loaded at run time: with nvml.rs, the only file with its names.
//!
//! It has no dependencies, so that the worker for Python, which has none, can use it too.

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::fmt;
use std::ptr::{null, null_mut};

const LIBRARY: &CStr = c"libcuda.so.1";
const RTLD_NOW: c_int = 2;

/// Attributes of a device.
const MULTIPROCESSORS: c_int = 16;
const L2_BYTES: c_int = 38;
const THREADS_PER_MULTIPROCESSOR: c_int = 39;
const MAJOR: c_int = 75;
const MINOR: c_int = 76;

/// How a stream is captured: calls that are not part of the work are allowed.
const RELAXED: c_int = 2;

const OUT_OF_MEMORY: c_int = 2;
const NOT_INITIALIZED: c_int = 3;
const NO_DEVICE: c_int = 100;
const INVALID_DEVICE: c_int = 101;

unsafe extern "C" {
    pub(super) fn dlopen(path: *const c_char, flags: c_int) -> *mut c_void;
    pub(super) fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
}

/// What a device reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpuError {
    /// What kind of failure it is.
    pub kind: GpuFailure,
    /// The driver's number of the error; 0 if there is no driver.
    pub code: i32,
    /// What was tried, and the name of the error.
    pub text: String,
}

/// The kinds of failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GpuFailure {
    /// There is no driver, or no device.
    Missing,
    /// The memory of the device is not enough.
    Memory,
    /// The device, or this process's part of it, is unusable from now on.
    Lost,
}

impl fmt::Display for GpuError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The result of a call.
pub type GpuResult<T> = Result<T, GpuError>;

/// Device memory, by its address there.
pub type GpuAddress = u64;

macro_rules! driver {
    ($($field:ident = $name:literal ($($arg:ty),*);)*) => {
        /// The functions of the driver.
        struct Driver { $($field: unsafe extern "C" fn($($arg),*) -> c_int,)* }

        impl Driver {
            fn load() -> GpuResult<Self> {
                let missing = |what: &CStr| GpuError {
                    kind: GpuFailure::Missing,
                    code: 0,
                    text: format!("there is no {}", what.to_string_lossy()),
                };
                // SAFETY: each function is declared as the header of the driver does, and the
                // library stays loaded.
                unsafe {
                    let library = dlopen(LIBRARY.as_ptr(), RTLD_NOW);
                    if library.is_null() {
                        return Err(missing(LIBRARY));
                    }
                    $(let $field = dlsym(library, $name.as_ptr());
                    if $field.is_null() {
                        return Err(missing($name));
                    })*
                    Ok(Self { $($field: std::mem::transmute::<
                        *mut c_void,
                        unsafe extern "C" fn($($arg),*) -> c_int,
                    >($field),)* })
                }
            }
        }
    };
}

driver! {
    init = c"cuInit" (c_uint);
    error_name = c"cuGetErrorName" (c_int, *mut *const c_char);
    device = c"cuDeviceGet" (*mut c_int, c_int);
    device_name = c"cuDeviceGetName" (*mut c_char, c_int, c_int);
    attribute = c"cuDeviceGetAttribute" (*mut c_int, c_int, c_int);
    retain = c"cuDevicePrimaryCtxRetain" (*mut *mut c_void, c_int);
    reset = c"cuDevicePrimaryCtxReset_v2" (c_int);
    set_current = c"cuCtxSetCurrent" (*mut c_void);
    synchronize = c"cuCtxSynchronize" ();
    share = c"cuIpcGetMemHandle" (*mut GpuHandle, GpuAddress);
    open_shared = c"cuIpcOpenMemHandle_v2" (*mut GpuAddress, GpuHandle, c_uint);
    create_event = c"cuEventCreate" (*mut *mut c_void, c_uint);
    record = c"cuEventRecord" (*mut c_void, *mut c_void);
    elapsed = c"cuEventElapsedTime" (*mut f32, *mut c_void, *mut c_void);
    memory_info = c"cuMemGetInfo_v2" (*mut usize, *mut usize);
    alloc = c"cuMemAlloc_v2" (*mut GpuAddress, usize);
    free = c"cuMemFree_v2" (GpuAddress);
    to_device = c"cuMemcpyHtoD_v2" (GpuAddress, *const c_void, usize);
    to_host = c"cuMemcpyDtoH_v2" (*mut c_void, GpuAddress, usize);
    copy = c"cuMemcpyDtoDAsync_v2" (GpuAddress, GpuAddress, usize, *mut c_void);
    zero = c"cuMemsetD8Async" (GpuAddress, u8, usize, *mut c_void);
    load_module = c"cuModuleLoadData" (*mut *mut c_void, *const c_void);
    function = c"cuModuleGetFunction" (*mut *mut c_void, *mut c_void, *const c_char);
    create_stream = c"cuStreamCreate" (*mut *mut c_void, c_uint);
    begin_capture = c"cuStreamBeginCapture_v2" (*mut c_void, c_int);
    end_capture = c"cuStreamEndCapture" (*mut c_void, *mut *mut c_void);
    instantiate = c"cuGraphInstantiateWithFlags" (*mut *mut c_void, *mut c_void, u64);
    launch_graph = c"cuGraphLaunch" (*mut c_void, *mut c_void);
    destroy_graph = c"cuGraphDestroy" (*mut c_void);
    destroy_instance = c"cuGraphExecDestroy" (*mut c_void);
    launch = c"cuLaunchKernel" (
        *mut c_void, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, *mut c_void,
        *mut *mut c_void, *mut *mut c_void);
}

/// A device. Handles of the driver are kept as numbers: they hold on every thread.
pub struct Gpu {
    driver: Driver,
    device: c_int,
    context: usize,
}

/// What another process opens memory with.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GpuHandle(pub [u8; 64]);

impl GpuHandle {
    /// As text.
    pub fn text(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// From text.
    pub fn parse(text: &str) -> Option<Self> {
        let mut bytes = [0; 64];
        if text.len() != 2 * bytes.len() {
            return None;
        }
        for (at, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok()?;
        }
        Some(Self(bytes))
    }
}

/// A point in the work of the default stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct GpuEvent(usize);

/// A stream whose work waits for that of the default stream, and the other way around.
#[derive(Clone, Copy, Debug)]
pub(super) struct GpuStream(pub(super) usize);

/// Captured work, which can be launched.
pub(super) struct GpuGraph {
    graph: usize,
    instance: usize,
}

/// A kernel of a module.
#[derive(Clone, Copy)]
pub(super) struct GpuKernel(usize);

/// How large a grid is; its blocks have 256 threads.
#[derive(Clone, Copy, Debug)]
pub(super) struct GpuGrid {
    /// Blocks of one item.
    pub blocks: u32,
    /// Items.
    pub items: u32,
}

/// Threads of a block.
pub(super) const BLOCK_THREADS: u32 = 256;

impl Gpu {
    /// Opens a device by its number among those that are visible.
    pub fn open(number: u32) -> GpuResult<Self> {
        let driver = Driver::load()?;
        let mut gpu = Self { driver, device: 0, context: 0 };
        // SAFETY: every pointer is to a place that outlives its call.
        unsafe {
            gpu.check("start", (gpu.driver.init)(0))?;
            let mut device = 0;
            gpu.check("find the device", (gpu.driver.device)(&mut device, number as c_int))?;
            gpu.device = device;
            let mut context = null_mut();
            gpu.check("open the device", (gpu.driver.retain)(&mut context, device))?;
            gpu.context = context as usize;
        }
        gpu.use_here()?;
        Ok(gpu)
    }

    /// Gives up everything that this process has on the device, which ends an error that stays.
    pub fn reset(&self) -> GpuResult<()> {
        // SAFETY: it takes a number.
        let code = unsafe { (self.driver.reset)(self.device) };
        self.check("reset the device", code)
    }

    /// Makes the device that of the calling thread.
    pub fn use_here(&self) -> GpuResult<()> {
        // SAFETY: the context lives as long as the process.
        let code = unsafe { (self.driver.set_current)(self.context as *mut c_void) };
        self.check("use the device", code)
    }

    fn check(&self, what: &str, code: c_int) -> GpuResult<()> {
        if code == 0 {
            return Ok(());
        }
        let mut name: *const c_char = null();
        // SAFETY: the driver sets it to a text that is never freed, or leaves it.
        let name = unsafe {
            (self.driver.error_name)(code, &mut name);
            match name.is_null() {
                true => format!("error {code}"),
                false => CStr::from_ptr(name).to_string_lossy().into_owned(),
            }
        };
        let kind = match code {
            OUT_OF_MEMORY => GpuFailure::Memory,
            NO_DEVICE | INVALID_DEVICE | NOT_INITIALIZED => GpuFailure::Missing,
            _ => GpuFailure::Lost,
        };
        Err(GpuError { kind, code, text: format!("cannot {what}: {name}") })
    }

    /// Its name.
    pub fn name(&self) -> GpuResult<String> {
        let mut name = [0_u8; 256];
        // SAFETY: the driver writes at most this many bytes, the last of them zero.
        let code = unsafe { (self.driver.device_name)(name.as_mut_ptr().cast(), 255, self.device) };
        self.check("ask for its name", code)?;
        let text = CStr::from_bytes_until_nul(&name).unwrap_or_default();
        Ok(text.to_string_lossy().into_owned())
    }

    fn attribute(&self, which: c_int) -> GpuResult<u32> {
        let mut value = 0;
        // SAFETY: the place outlives the call.
        let code = unsafe { (self.driver.attribute)(&mut value, which, self.device) };
        self.check("ask for an attribute", code)?;
        Ok(value.max(0) as u32)
    }

    /// Its multiprocessors.
    pub fn multiprocessors(&self) -> GpuResult<u32> {
        self.attribute(MULTIPROCESSORS)
    }

    /// Threads that fit on one of them.
    pub fn threads_per_multiprocessor(&self) -> GpuResult<u32> {
        self.attribute(THREADS_PER_MULTIPROCESSOR)
    }

    /// Bytes of its largest cache.
    pub fn cache_bytes(&self) -> GpuResult<u64> {
        Ok(u64::from(self.attribute(L2_BYTES)?))
    }

    /// Its generation, as its compilers name it.
    pub fn architecture(&self) -> GpuResult<String> {
        Ok(format!("sm_{}{}", self.attribute(MAJOR)?, self.attribute(MINOR)?))
    }

    /// Bytes that are free, and all of them.
    pub fn memory(&self) -> GpuResult<(u64, u64)> {
        let (mut free, mut total) = (0, 0);
        // SAFETY: both places outlive the call.
        let code = unsafe { (self.driver.memory_info)(&mut free, &mut total) };
        self.check("ask for its memory", code)?;
        Ok((free as u64, total as u64))
    }

    /// Allocates memory.
    pub fn alloc(&self, bytes: u64) -> GpuResult<GpuAddress> {
        let mut at = 0;
        // SAFETY: the place outlives the call.
        let code = unsafe { (self.driver.alloc)(&mut at, bytes.max(1) as usize) };
        self.check(&format!("allocate {bytes} bytes"), code)?;
        Ok(at)
    }

    /// What another process opens this memory with.
    pub fn share(&self, at: GpuAddress) -> GpuResult<GpuHandle> {
        let mut handle = GpuHandle([0; 64]);
        // SAFETY: the place outlives the call, and what is not device memory is refused.
        let code = unsafe { (self.driver.share)(&mut handle, at) };
        self.check("share memory", code)?;
        Ok(handle)
    }

    /// Opens memory of another process, for as long as this one lives.
    pub(super) fn open_shared(&self, handle: GpuHandle) -> GpuResult<GpuAddress> {
        let mut at = 0;
        // Access from other devices is set up when it is needed, which is the only choice.
        let lazily = 1;
        // SAFETY: the place outlives the call, and the driver refuses what is not a handle.
        let code = unsafe { (self.driver.open_shared)(&mut at, handle, lazily) };
        self.check("open shared memory", code)?;
        Ok(at)
    }

    /// An event to be recorded.
    pub(super) fn event(&self) -> GpuResult<GpuEvent> {
        let mut event = null_mut();
        // SAFETY: the place outlives the call.
        let code = unsafe { (self.driver.create_event)(&mut event, 0) };
        self.check("create an event", code)?;
        Ok(GpuEvent(event as usize))
    }

    /// Records an event behind all work of the default stream so far.
    pub(super) fn record(&self, event: GpuEvent) -> GpuResult<()> {
        // SAFETY: events are never destroyed.
        let code = unsafe { (self.driver.record)(event.0 as *mut c_void, null_mut()) };
        self.check("record an event", code)
    }

    /// Nanoseconds from one event to the other, after both.
    pub(super) fn elapsed_ns(&self, from: GpuEvent, to: GpuEvent) -> GpuResult<u64> {
        let mut ms = 0.0;
        let (from, to) = (from.0 as *mut c_void, to.0 as *mut c_void);
        // SAFETY: the place outlives the call, and events are never destroyed.
        let code = unsafe { (self.driver.elapsed)(&mut ms, from, to) };
        self.check("read events", code)?;
        Ok((f64::from(ms) * 1e6) as u64)
    }

    /// Frees memory.
    pub fn free(&self, at: GpuAddress) -> GpuResult<()> {
        // SAFETY: an address that is not allocated is refused.
        let code = unsafe { (self.driver.free)(at) };
        self.check("free memory", code)
    }

    /// Copies bytes to the device.
    pub fn to_device(&self, at: GpuAddress, bytes: &[u8]) -> GpuResult<()> {
        // SAFETY: the driver reads this many bytes, and refuses what is not device memory.
        let code = unsafe { (self.driver.to_device)(at, bytes.as_ptr().cast(), bytes.len()) };
        self.check("copy to the device", code)
    }

    /// Copies bytes from the device.
    pub fn to_host(&self, at: GpuAddress, bytes: &mut [u8]) -> GpuResult<()> {
        // SAFETY: the driver writes this many bytes.
        let code = unsafe { (self.driver.to_host)(bytes.as_mut_ptr().cast(), at, bytes.len()) };
        self.check("copy from the device", code)
    }

    /// Copies from one place of the device to another.
    pub fn copy(&self, to: GpuAddress, from: GpuAddress, bytes: u64) -> GpuResult<()> {
        // SAFETY: the driver refuses what is not device memory.
        let code = unsafe { (self.driver.copy)(to, from, bytes as usize, null_mut()) };
        self.check("copy on the device", code)
    }

    /// Sets bytes to zero.
    pub fn zero(&self, at: GpuAddress, bytes: u64) -> GpuResult<()> {
        // SAFETY: the driver refuses what is not device memory.
        let code = unsafe { (self.driver.zero)(at, 0, bytes as usize, null_mut()) };
        self.check("clear memory", code)
    }

    /// A new stream.
    pub(super) fn stream(&self) -> GpuResult<GpuStream> {
        let mut stream = null_mut();
        // SAFETY: the place outlives the call.
        let code = unsafe { (self.driver.create_stream)(&mut stream, 0) };
        self.check("create a stream", code)?;
        Ok(GpuStream(stream as usize))
    }

    /// From now on, work of a stream is only recorded. Other calls stay allowed meanwhile.
    pub(super) fn begin_capture(&self, stream: GpuStream) -> GpuResult<()> {
        // SAFETY: streams are never destroyed.
        let code = unsafe { (self.driver.begin_capture)(stream.0 as *mut c_void, RELAXED) };
        self.check("capture a stream", code)
    }

    /// What was recorded.
    pub(super) fn end_capture(&self, stream: GpuStream) -> GpuResult<GpuGraph> {
        let (mut graph, mut instance) = (null_mut(), null_mut());
        // SAFETY: streams are never destroyed, and both places outlive their calls.
        unsafe {
            let code = (self.driver.end_capture)(stream.0 as *mut c_void, &mut graph);
            self.check("capture the calls", code)?;
            let code = (self.driver.instantiate)(&mut instance, graph, 0);
            self.check("make a graph of the calls", code)?;
        }
        Ok(GpuGraph { graph: graph as usize, instance: instance as usize })
    }

    /// Launches recorded work.
    pub(super) fn launch_graph(&self, graph: &GpuGraph, stream: GpuStream) -> GpuResult<()> {
        let (instance, stream) = (graph.instance as *mut c_void, stream.0 as *mut c_void);
        // SAFETY: the graph has not been destroyed, and streams never are.
        let code = unsafe { (self.driver.launch_graph)(instance, stream) };
        self.check("launch a graph", code)
    }

    /// Frees recorded work.
    pub(super) fn destroy(&self, graph: GpuGraph) -> GpuResult<()> {
        // SAFETY: both are destroyed once.
        let code = unsafe {
            (self.driver.destroy_instance)(graph.instance as *mut c_void);
            (self.driver.destroy_graph)(graph.graph as *mut c_void)
        };
        self.check("free a graph", code)
    }

    /// Waits until everything is done, on every stream.
    pub fn synchronize(&self) -> GpuResult<()> {
        // SAFETY: it takes nothing.
        let code = unsafe { (self.driver.synchronize)() };
        self.check("wait for the device", code)
    }

    /// The kernels of a module, by their names.
    pub(super) fn kernels<const N: usize>(
        &self,
        text: &str,
        names: [&CStr; N],
    ) -> GpuResult<[GpuKernel; N]> {
        let text = CString::new(text).unwrap_or_default();
        let mut module = null_mut();
        let mut kernels = [GpuKernel(0); N];
        // SAFETY: the text ends with a zero, and every place outlives its call.
        unsafe {
            let code = (self.driver.load_module)(&mut module, text.as_ptr().cast());
            self.check("load the kernels of the stage", code)?;
            for (kernel, name) in kernels.iter_mut().zip(names) {
                let mut function = null_mut();
                let code = (self.driver.function)(&mut function, module, name.as_ptr());
                self.check("find a kernel of the stage", code)?;
                kernel.0 = function as usize;
            }
        }
        Ok(kernels)
    }

    /// Launches a kernel on the default stream.
    pub(super) fn launch(&self, kernel: GpuKernel, grid: GpuGrid, args: &[u64]) -> GpuResult<()> {
        self.launch_on(GpuStream(0), kernel, grid, args)
    }

    /// Launches a kernel. Each argument has eight bytes; a kernel that takes
    /// four reads the lower ones.
    pub(super) fn launch_on(
        &self,
        stream: GpuStream,
        kernel: GpuKernel,
        grid: GpuGrid,
        args: &[u64],
    ) -> GpuResult<()> {
        let mut args: Vec<*mut c_void> =
            args.iter().map(|arg| std::ptr::from_ref(arg).cast_mut().cast()).collect();
        // SAFETY: the arguments are those that the kernel declares, and are copied by the call.
        let code = unsafe {
            (self.driver.launch)(
                kernel.0 as *mut c_void,
                grid.blocks,
                grid.items,
                1,
                BLOCK_THREADS,
                1,
                1,
                0,
                stream.0 as *mut c_void,
                args.as_mut_ptr(),
                null_mut(),
            )
        };
        self.check("launch a kernel of the stage", code)
    }
}
